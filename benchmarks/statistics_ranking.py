"""Ranking statistics beside their peers: same input, one process, one thread, warmed up, best of several.

    python -m benchmarks.statistics_ranking

Each case first checks that both sides give the same answer. FastChat is measured where it is installed:

    pip install --no-deps fschat==0.2.36 && pip install pandas scikit-learn plotly pytz tqdm requests
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Report, Table, best_of
from palaver.statistics.bootstrap import resample_sums
from palaver.statistics.bradley_terry import bradley_terry, bradley_terry_bootstrap
from palaver.statistics.ranking import as_comparisons, paired_bootstrap, win_matrix
from palaver.statistics.trueskill import TrueSkillSettings, trueskill

FASTCHAT = "pip install --no-deps fschat==0.2.36 && pip install plotly pytz tqdm requests"


def comparisons(n: int, n_systems: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Codes and outcomes of systems of different strength, a fifth of them drawn."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n_systems)
    first = rng.integers(0, n_systems, n)
    second = (first + rng.integers(1, n_systems, n)) % n_systems
    won = rng.random(n) < 1 / (1 + np.exp(strength[second] - strength[first]))
    outcome = np.where(rng.random(n) < 0.2, 0, np.where(won, 1, -1))
    return first.astype(np.int32), second.astype(np.int32), outcome.astype(np.int8)


def run_trueskill(report: Report) -> None:
    import trueskill as peer

    first, second, outcome = comparisons(10_000, 20)
    rows = list(zip(first.tolist(), second.tolist(), outcome.tolist(), strict=True))
    env = peer.TrueSkill(draw_probability=0.10)

    def rate_with_peer() -> list[Any]:
        ratings = [env.create_rating() for _ in range(20)]
        for a, b, o in rows:
            if o < 0:
                a, b = b, a
            ratings[a], ratings[b] = peer.rate_1vs1(ratings[a], ratings[b], drawn=o == 0, env=env)
        return ratings

    settings = TrueSkillSettings()
    trueskill((first, second, outcome), 20, settings)
    ours, result = best_of(lambda: trueskill((first, second, outcome), 20, settings), 50)
    theirs, ratings = best_of(rate_with_peer, 2)
    np.testing.assert_allclose(result.mu, [r.mu for r in ratings], atol=1e-5)
    report("TrueSkill, 10,000 comparisons", peer=theirs, ours=ours, target=3000, note="trueskill.rate_1vs1")

    million = comparisons(1_000_000, 100)
    ours, _ = best_of(lambda: trueskill(million, 100, settings), 3)
    report("TrueSkill, 1,000,000 comparisons of 100 systems", peer=None, ours=ours, limit=0.3)


def run_bradley_terry(report: Report) -> None:
    import evalica

    first, second, outcome = comparisons(100_000, 20)
    systems = [f"system-{i:02d}" for i in range(20)]
    names_first, names_second = [systems[i] for i in first], [systems[i] for i in second]
    outcomes = outcome.tolist()
    winners = [(evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y)[o] for o in outcomes]

    from_codes, result = best_of(lambda: bradley_terry(as_comparisons(first, second, outcome), 20), 50)
    theirs, peer = best_of(lambda: evalica.bradley_terry(names_first, names_second, winners), 5)
    np.testing.assert_allclose(result.strength, np.log(peer.scores[systems].to_numpy()), atol=1e-5)
    name = "Bradley-Terry, 100,000 comparisons of 20"
    report(name, peer=theirs, ours=from_codes, target=50, note="evalica.bradley_terry from names")
    codes = first.tolist(), second.tolist()
    theirs, _ = best_of(lambda: evalica.bradley_terry(*codes, winners), 5)
    report(name, peer=theirs, ours=from_codes, target=50, note="evalica.bradley_terry from codes")

    def ours_bootstrap() -> Any:
        coded = as_comparisons(first, second, outcome)
        return bradley_terry_bootstrap(win_matrix(coded, 20), systems, n_replicates=100, rng=0)

    ours_bootstrap()
    ours, result = best_of(ours_bootstrap, 20)
    theirs, peer = best_of(
        lambda: evalica.bootstrap(
            evalica.bradley_terry,
            names_first,
            names_second,
            winners,
            n_resamples=100,
            bootstrap_method="percentile",  # the default, BCa, would fit 100,000 jackknife samples more
            random_state=0,
        ),
        1,
        warm_up=False,
    )
    spread = np.log(peer.distribution[systems].to_numpy()).std(axis=0)
    np.testing.assert_allclose(result.samples.std(axis=0), spread, rtol=0.35)
    name = "Bradley-Terry bootstrap, 100 replicates"
    report(name, peer=theirs, ours=ours, target=500, note="evalica.bootstrap(method='percentile')")
    run_fastchat(report, name, (names_first, names_second, outcomes), systems, ours, result)


def load_fastchat() -> Any:
    """FastChat's elo_analysis, or None where it is not installed."""
    spec = importlib.util.find_spec("fastchat")
    if spec is None or not spec.submodule_search_locations:
        return None
    package = types.ModuleType("fastchat.model")  # by hand: its own __init__ loads torch
    package.__path__ = [str(Path(spec.submodule_search_locations[0]) / "model")]
    sys.modules.setdefault("fastchat.model", package)
    return importlib.import_module("fastchat.serve.monitor.elo_analysis")


def run_fastchat(
    report: Report,
    name: str,
    data: tuple[list[str], list[str], list[int]],
    systems: list[str],
    ours: float,
    result: Any,
) -> None:
    fastchat = load_fastchat()
    if fastchat is None:
        print(f"skipped: {name} beside FastChat, which is not installed ({FASTCHAT})")
        return
    import pandas as pd

    winner = [("tie", "model_a", "model_b")[o] for o in data[2]]
    battles = pd.DataFrame({"model_a": data[0], "model_b": data[1], "winner": winner})
    np.random.seed(0)  # noqa: NPY002 (FastChat's sampling reads the global state)
    with contextlib.redirect_stderr(io.StringIO()):
        theirs, table = best_of(
            lambda: fastchat.get_bootstrap_result(battles, fastchat.compute_elo_mle_with_tie, num_round=100),
            1,
            warm_up=False,
        )
    strength = (table[systems].to_numpy() - 1000) * np.log(10) / 400
    strength -= strength.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(result.samples.mean(axis=0), strength.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(result.samples.std(axis=0), strength.std(axis=0), rtol=0.35)
    report(name, peer=theirs, ours=ours, target=10, note="fastchat get_bootstrap_result, mle_with_tie")


N_ITEMS, N_SYSTEMS, N_REPLICATES = 10_000, 10, 1000


def run_paired_bootstrap(report: Report) -> None:
    """Beside sacrebleu.significance._paired_bs_test, run as its PairedTest does: nine systems, one baseline.

    The sufficient statistics of the segments are handed to it, so that only its resampling is timed:
    the two columns of TER, the ten of BLEU, and one column with a score of our own, which no metric
    of sacrebleu has but is what a table of human ratings holds; it is shown without a target. Ours
    resamples tables of equal size.
    """
    from sacrebleu.metrics import BLEU, TER
    from sacrebleu.metrics.base import Score

    class GivenTER(TER):
        def _extract_corpus_statistics(self, hypotheses: Any, references: Any) -> Any:
            return hypotheses

    class GivenBLEU(BLEU):
        def _extract_corpus_statistics(self, hypotheses: Any, references: Any) -> Any:
            return hypotheses

    class GivenMean(GivenTER):
        def _compute_score_from_stats(self, stats: Any) -> Any:
            return Score("mean", float(stats[0]) / N_ITEMS)

    rng = np.random.default_rng(0)
    shape = (N_ITEMS, N_SYSTEMS)
    length, reference = rng.integers(10, 30, shape), rng.integers(10, 30, shape)
    total = length[:, :, None] - np.arange(4)
    correct = rng.binomial(total, [0.6, 0.4, 0.3, 0.2])
    bleu = np.concatenate([np.stack([length, reference], -1), correct, total], axis=-1)
    ter = np.stack([rng.binomial(reference, 0.4), reference], axis=-1)
    run_paired_case(report, "TER", GivenTER(), ter)
    run_paired_case(report, "BLEU", GivenBLEU(), bleu)
    run_paired_case(report, "mean score", GivenMean(), rng.integers(1, 101, (*shape, 1)))


def run_paired_case(report: Report, label: str, metric: Any, stats: Any) -> None:
    """One metric; `stats` is (segments, systems, columns)."""
    from sacrebleu.significance import Result, _paired_bs_test

    width = stats.shape[2]
    given = [stats[:, s].tolist() for s in range(N_SYSTEMS)]
    table = np.asarray(stats, dtype=np.float64).reshape(N_ITEMS, -1)
    names = [str(s) for s in range(N_SYSTEMS)]
    baseline = {"metric": (given[0], Result(metric._aggregate_and_compute(given[0]).score))}

    def peer() -> list[Any]:
        tests = [
            _paired_bs_test(baseline, name, rows, None, {"metric": metric}, N_REPLICATES, seed=1)
            for name, rows in zip(names[1:], given[1:], strict=True)
        ]
        return [results["metric"] for _, results in tests]

    def whole() -> Any:
        return paired_bootstrap(table, names, n_replicates=N_REPLICATES, rng=0)

    def sums() -> Any:
        return resample_sums(table, N_REPLICATES, np.random.default_rng(0))

    own = sums().reshape(N_REPLICATES, N_SYSTEMS, width)[:, -1]
    scores = np.array([metric._compute_score_from_stats(row).score for row in own])
    ours, _ = best_of(whole if width == 1 else sums, 7)
    theirs, results = best_of(peer, 2 if width == 1 else 1, warm_up=False)
    np.testing.assert_allclose(scores.mean(), results[-1].mean, rtol=0.01)
    np.testing.assert_allclose(np.ptp(np.quantile(scores, [0.025, 0.975])) / 2, results[-1].ci, rtol=0.2)
    report(
        f"Paired bootstrap, 10,000 x 10, 1,000 replicates, {label}",
        peer=theirs,
        ours=ours,
        target=50 if width > 1 else None,
        note=f"sacrebleu _paired_bs_test, {width} column{'s' * (width > 1)} per system",
    )


def run(report: Report) -> None:
    """All cases."""
    run_trueskill(report)
    run_bradley_terry(report)
    run_paired_bootstrap(report)


if __name__ == "__main__":
    run(Table())
