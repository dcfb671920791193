"""Agreement statistics beside their peers: same input, one process, one thread, warmed up, best of several.

    python -m benchmarks.statistics_agreement

Each case first checks that both sides give the same answer. Bootstrap intervals are the exception: evalica
follows KALPHA (Krippendorff 2006; Hayes), which redraws single differences of pairs and keeps the expected
disagreement, ours redraws items with all their ratings. The point estimates are the same; the intervals
are not, so ours is checked against a plain loop that redraws items.
"""

from __future__ import annotations

import warnings
from typing import Any

import evalica
import krippendorff
import numpy as np
import pandas as pd
import pingouin

from benchmarks.harness import Report, Table, best_of
from palaver.statistics.alpha import LEVELS, Level, krippendorff_alpha
from palaver.statistics.icc import icc

N_REPLICATES = 1000


def likert(n_items: int, n_raters: int, seed: int = 0) -> Any:
    """Six-point ratings of items of different quality by raters of different strictness."""
    rng = np.random.default_rng(seed)
    latent = (
        rng.normal(size=(n_items, 1)) + 0.5 * rng.normal(size=n_raters) + rng.normal(size=(n_items, n_raters))
    )
    return np.clip(np.round(latent + 3.5), 1, 6)


def run_icc(report: Report) -> None:
    """Six forms with intervals beside pingouin, and their bootstrap within a second."""
    table = likert(10_000, 10)
    item, rater = np.indices(table.shape)
    long = pd.DataFrame({"item": item.ravel(), "rater": rater.ravel(), "value": table.ravel()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, oracle = best_of(lambda: pingouin.intraclass_corr(long, "item", "rater", "value"), 5)
    ours, result = best_of(lambda: icc(table), 50)
    np.testing.assert_allclose([form.value for form in result.forms], oracle["ICC"], rtol=1e-9)
    np.testing.assert_allclose([form.f for form in result.forms], oracle["F"], rtol=1e-9)
    bounds = [[form.low, form.high] for form in result.forms]
    np.testing.assert_allclose(bounds, np.stack(oracle["CI95"]), atol=0.0051)  # it rounds to two places
    name = "ICC, six forms with intervals, 10,000 x 10"
    report(name, peer=theirs, ours=ours, target=150, note="pingouin.intraclass_corr")

    large = likert(100_000, 10)
    ours, result = best_of(lambda: icc(large, n_replicates=N_REPLICATES, rng=1), 3)
    form = result["ICC(1,1)"]
    assert form.boot.low < form.value < form.boot.high
    np.testing.assert_allclose([form.boot.low, form.boot.high], [form.low, form.high], atol=0.002)
    report("ICC, bootstrap of six forms, 1,000 replicates, 100,000 x 10", peer=None, ours=ours, limit=1.0)


def run_alpha(report: Report, level: Level) -> None:
    """The value beside `krippendorff`, the bootstrap beside evalica."""
    table = likert(10_000, 10)
    theirs, oracle = best_of(lambda: krippendorff.alpha(table.T, level_of_measurement=level), 5)
    ours, result = best_of(lambda: krippendorff_alpha(table, level=level), 20)
    np.testing.assert_allclose(result.value, oracle, rtol=1e-10)
    report(f"Alpha, {level}, 10,000 x 10", peer=theirs, ours=ours, target=1, note="krippendorff.alpha")

    frame = pd.DataFrame(table.T)
    theirs, oracle = best_of(
        lambda: evalica.alpha_bootstrap(frame, level, n_resamples=N_REPLICATES, random_state=1), 1
    )
    ours, result = best_of(
        lambda: krippendorff_alpha(table, level=level, n_replicates=N_REPLICATES, rng=1), 5
    )
    np.testing.assert_allclose(result.value, oracle.alpha, rtol=1e-10)
    check_spread(table, level, result)
    report(
        f"Alpha, {level}, bootstrap, 1,000 replicates, 10,000 x 10",
        peer=theirs,
        ours=ours,
        target=20,
        note=f"evalica.alpha_bootstrap (pairs, [{oracle.low:.3f}, {oracle.high:.3f}]; "
        f"ours: items, [{result.low:.3f}, {result.high:.3f}])",
    )


def check_spread(table: Any, level: Level, result: Any) -> None:
    """The interval is as wide as that of a loop that redraws items."""
    rng = np.random.default_rng(2)
    draws = rng.integers(0, len(table), size=(150, len(table)))
    loop = np.std([krippendorff.alpha(table[draw].T, level_of_measurement=level) for draw in draws])
    np.testing.assert_allclose((result.high - result.low) / (2 * 1.96), loop, rtol=0.25)


def run(report: Report) -> None:
    """All cases."""
    run_icc(report)
    for level in LEVELS:
        run_alpha(report, level)


if __name__ == "__main__":
    run(Table())
