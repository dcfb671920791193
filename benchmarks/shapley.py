"""KNN-Shapley beside a plain loop over pairs and neighbours, and beside pyDVL: one process, one thread.

    python -m benchmarks.shapley [--out docs/results/comparator-shapley.json]
    pip install pyDVL        # the second peer; without it that line says so

- 10,000 training dialogues of 768 dimensions, 400 pairs over 100 development dialogues. The peer is the loop
  as the paper describes it: per pair and side, distances, a sort, Python over all neighbours. It is timed on
  `--loop-pairs` of the 400 and scaled up, since all pairs cost the same.
- 100,000 training dialogues, 20 development dialogues. pyDVL values a classifier; with one class asked for by
  all queries its game is ours with y in {0, 1}.

Both sides must give the same values. Ends with 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Report, Table, best_of, machine
from palaver.comparator.cmade.shapley import knn_shapley, pair_values

K = 50


def plain_loop(train: Any, ratings: Any, dev: Any, pairs: list[tuple[int, int, int]]) -> Any:
    """Per pair and side: all distances, a sort, and the recursion of theorem 1 in Python."""
    n = len(train)
    values = np.zeros(n)
    for first, second, label in pairs:
        for query, sign in ((first, label), (second, -label)):
            order = np.argsort(np.linalg.norm(train - dev[query], axis=1), kind="stable")
            s = np.zeros(n)
            s[order[n - 1]] = ratings[order[n - 1]] / max(n, K)
            for i in range(n - 1, 0, -1):
                here, after = order[i - 1], order[i]
                s[here] = s[after] + (ratings[here] - ratings[after]) / K * min(K, i) / i
            values += sign * s
    return values


def run_pairs(report: Report, n_loop: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n, n_dev, n_pairs = 10_000, 100, 400
    train = rng.normal(size=(n, 768)).astype(np.float32)
    dev = rng.normal(size=(n_dev, 768)).astype(np.float32)
    ratings = rng.integers(1, 6, n).astype(np.float64)
    first = rng.integers(0, n_dev, n_pairs)
    second = (first + rng.integers(1, n_dev, n_pairs)) % n_dev
    label = rng.choice([-1, 1], n_pairs)

    def pairs(count: int) -> Any:
        return SimpleNamespace(first=first[:count], second=second[:count], label=label[:count])

    begin = time.perf_counter()
    slow = plain_loop(train, ratings, dev, list(zip(first, second, label, strict=True))[:n_loop])
    loop = (time.perf_counter() - begin) * n_pairs / n_loop
    check_same(slow, pair_values(train, ratings, dev, pairs(n_loop), k=K))
    ours, _ = best_of(lambda: pair_values(train, ratings, dev, pairs(n_pairs), k=K), 15)
    note = f"loop timed on {n_loop} of 400 pairs"
    report("10,000 x 768, 400 pairs over 100, plain loop", peer=loop, ours=ours, target=500, note=note)
    return {"peer": "a plain loop", "peer_seconds": loop, "seconds": ours, "target": 500}


def run_pydvl(report: Report) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    n, n_queries = 100_000, 20
    train = rng.normal(size=(n, 768)).astype(np.float32)
    queries = rng.normal(size=(n_queries, 768)).astype(np.float32)
    y = rng.integers(0, 2, n)
    ours, values = best_of(lambda: knn_shapley(train, y, queries, k=K), 9)
    tracemalloc.start()
    knn_shapley(train, y, queries, k=K)
    peer, note = None, f"ours takes {tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB beside the data"
    tracemalloc.stop()
    try:
        from pydvl.valuation import Dataset, KNNShapleyValuation
        from sklearn.neighbors import KNeighborsClassifier
    except ImportError as error:
        note += f"; pyDVL not measured: {error}"
    else:
        data = Dataset(train, y)
        test = Dataset(queries, np.ones(n_queries, dtype=int))
        model = KNeighborsClassifier(n_neighbors=K)
        peer, result = best_of(
            lambda: KNNShapleyValuation(model, test, progress=False).fit(data).result, 2, warm_up=False
        )
        theirs = np.empty(n)
        theirs[result.indices] = result.values
        check_same(theirs * n_queries, values)
    report("100,000 x 768, 20 development dialogues, pyDVL", peer=peer, ours=ours, target=25, note=note)
    name = f"pyDVL {version('pyDVL')}" if peer is not None else "pyDVL"
    return {"peer": name, "peer_seconds": peer, "seconds": ours, "target": 25}


def check_same(slow: Any, fast: Any) -> None:
    """Equal but for neighbours whose distances differ in the last digits of float32 and change places."""
    apart = np.abs(slow - fast) > 1e-2 * slow.std()
    assert apart.mean() < 0.01, f"{apart.sum()} of {apart.size} values differ"
    assert np.corrcoef(slow, fast)[0, 1] > 1 - 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loop-pairs", type=int, default=20, help="pairs the plain loop is timed on")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Table()
    print(machine())
    print(f"{'':<66} {'peer':>13} {'ours':>13}")
    with threadpool_limits(1):
        results = [run_pairs(report, options.loop_pairs), run_pydvl(report)]
    if options.out is not None:
        record = {
            "command": "python -m benchmarks.shapley --out docs/results/comparator-shapley.json",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{machine()}, one thread",
            "seed": [0, 1],
            "results": results,
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if report.missed:
        sys.exit(f"missed: {'; '.join(report.missed)}")


if __name__ == "__main__":
    main()
