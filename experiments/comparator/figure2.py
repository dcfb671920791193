"""Figure 2 (Liang et al. 2020) on real ratings, and its rating study: docs/results/comparator.md.

    python experiments/comparator/figure2.py --data DATA --out docs/images/removal.svg \
        --results docs/results/comparator-removal.json

Accuracy of KNN regressors in the encoder's space as the ratings of least Shapley value are taken away, and
as any are. Values come from the pairs of one half of the raters, accuracy from those of the other half:
with the same pairs for both, the curve would rise by itself. With --arrays the space is that of a stage's
arrays.npz, else MiniLM's before any training.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import machine  # noqa: E402

from palaver.comparator.cmade.removal import figure2, halves  # noqa: E402
from palaver.comparator.cmade.shapley import pair_values  # noqa: E402
from palaver.comparator.rating_study import study_ratings  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.training_data import RatedDialogues  # noqa: E402
from palaver.schema.run import plain  # noqa: E402

SHARES = (0, 0.25, 0.5, 0.75)
"""Of the ratings removed, for which accuracies are told."""
TOLD = (1, 10, 50, 100)
"""Neighbours for which they are."""
COLOURS = {"ink": "#1c1e20", "muted": "#5b6168", "line": "#d4d7da"}


def spaces(given: argparse.Namespace, ratings: RatedDialogues, dev: RatedDialogues) -> tuple[Any, Any]:
    """Embeddings of the rated and of the development dialogues."""
    if given.arrays is not None:
        with np.load(given.arrays) as arrays:
            return arrays["train_embeddings"], arrays["dev_embeddings"]
    from palaver.comparator.cmade.network import apply_network, build_network

    network = build_network(given.encoder or None)
    _, of_ratings = apply_network(network, network.inputs(ratings.dialogues))
    _, of_dev = apply_network(network, network.inputs(dev.dialogues))
    return of_ratings, of_dev


def with_colours(svg: str) -> str:
    """A figure made for a page, which says its colours, with the colours of a light page."""
    for name, colour in COLOURS.items():
        svg = svg.replace(f"var(--{name})", colour)
    return svg


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PALAVER_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--results", type=Path, help="write the figures to this file, too")
    parser.add_argument("--arrays", type=Path)
    parser.add_argument("--encoder", default="")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = given.data / "rated"
    ratings = read_rated(folder / "reliable_eval.train.jsonl.gz")
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    studies = {
        name: asdict(study_ratings(read_rated(folder / f"{name}.jsonl.gz").values))
        for name in ("reliable_eval.train", "convai2_rated", "convai2017_humanbot")
    }
    train, held = spaces(given, ratings, dev)
    one, other = halves(pairs, dev.codes("rater")[pairs.first], given.seed)
    values = pair_values(train, ratings.values, held, one, k=50)
    curves = figure2(train, ratings.values, values, held, other, rng=given.seed)
    told = {int(k): i for i, k in enumerate(curves.ks) if k in TOLD}
    steps = [int(np.abs(curves.removed - share * len(ratings)).argmin()) for share in SHARES]
    record = {
        "command": "python experiments/comparator/figure2.py --data DATA --out docs/images/removal.svg "
        "--results docs/results/comparator-removal.json",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "seed": given.seed,
        "data": {"ratings": ratings.digest, "pairs": pairs.digest},
        "n_pairs_of_values": len(one),
        "n_pairs_of_accuracy": len(other),
        "n_ratings": len(ratings),
        "removed": [
            {
                "n": int(curves.removed[step]),
                "by_value": {k: float(curves.by_value[step, i]) for k, i in told.items()},
                "at_random": {k: float(curves.at_random[:, step, i].mean()) for k, i in told.items()},
            }
            for step in steps
        ],
        "ratings": studies,
    }
    print(json.dumps(plain(record), indent=1))
    if given.results is not None:
        given.results.write_text(json.dumps(plain(record), indent=1) + "\n", encoding="utf-8")
    from palaver.drawing import standalone
    from palaver.reports.compare_figures import removal_plot

    svg = standalone(with_colours(removal_plot(curves, "removal")))
    given.out.write_text(svg, encoding="utf-8")
    print(f"{len(one)} pairs gave the values, {len(other)} the accuracy: {given.out}")


if __name__ == "__main__":
    main()
