"""What finds bad ratings: trust in raters, KNN-Shapley values, or something trivial? On two data sets.

    python experiments/comparator/cleaning.py --data DATA --work WORK --out RESULTS

WORK is the folder that ship.py was given with --work; what is encoded here is kept there too.

Reliable-Eval says which raters passed quality control. That mark is read here only. Every sitting there has a
degraded control bot, and quality control asks whether a rater marks it down.

ConvAI2 names the users of a part of its dialogues and has no such mark, so bad ratings are planted: a third
of the users with several ratings is drawn, and theirs are replaced in one of three ways (`PLANTED`). The
dialogues without a user are split: one half to learn from, the other makes the compared pairs that Shapley
values need.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "src")]

import plain_kernels  # noqa: E402

plain_kernels.use_where_needed()

from record import GAP, head_of, held_out, parser_of  # noqa: E402

from palaver.comparator.cleaning import clean  # noqa: E402
from palaver.comparator.cmade.shapley import pair_values  # noqa: E402
from palaver.comparator.method import MethodSettings, fit, rating_pairs  # noqa: E402
from palaver.comparator.rater_effects import reliability, sittings  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import Representation, represent, turn_encoder  # noqa: E402
from palaver.comparator.training_data import Pairs, RatedDialogues, load_arrays  # noqa: E402

Floats = NDArray[np.float64]
Generator = np.random.Generator

FEWEST = 3
"""Ratings of a user whose ratings may be planted, and among whom they are looked for."""
PART = 1 / 3
N_PAIRS = 700
TRUST = "trust in the rater"
CARE = "the same, less where the rater's ratings lie close together"
"""The `suspicion` of `palaver compare clean`."""
OWN_SPREAD = "trivial: the rater's own spread is small"
QUICK = MethodSettings(heads=1, trees=0)
"""The linear part of the method: it is fitted anew for every draw."""

PLANTED: dict[str, Callable[[Floats, Generator], Floats]] = {
    "drawn at random from 1 to 5": lambda own, rng: rng.integers(1, 6, len(own)).astype(float),
    "exchanged among the users drawn": lambda own, rng: rng.permutation(own),
    "all the same": lambda own, rng: np.full(len(own), 3.0),
}
"""The ratings of all users drawn, and what stands in their place."""


def trivial_measures(y: Floats, rater: NDArray[np.int64]) -> dict[str, Floats]:
    """(N,) each, higher is more suspicious; they see ratings and raters, no dialogue."""
    n = np.bincount(rater)
    mean = np.bincount(rater, y) / n
    spread = np.sqrt(np.bincount(rater, (y - mean[rater]) ** 2) / n)
    commonest = np.array([np.unique(y[rater == r], return_counts=True)[1].max() for r in range(len(n))])
    return {
        OWN_SPREAD: -spread[rater],
        "trivial: share of the rater's commonest rating": (commonest / n)[rater],
        "trivial: the rater's mean is far from that of all": np.abs(mean - y.mean())[rater],
        "trivial: few ratings": -n[rater].astype(float),
    }


def auc(score: Floats, positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores higher than a negative (ties half)."""
    from scipy.stats import rankdata

    ranks, n = rankdata(score), int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(ranks) - n)))


def on_reliable_eval(data: Path, work: Path, resamples: int) -> dict[str, Any]:
    """Who failed quality control? Intervals by a bootstrap over raters."""
    folder = data / "rated"
    rated = read_rated(folder / "reliable_eval.train.jsonl.gz")
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    x, dev_x = (
        Representation(**load_arrays(work / name)) for name in ("represented.npz", "represented-dev.npz")
    )
    held, _ = held_out(work, rated.ids)
    y, rater = rated.values, rated.codes("rater")
    agreement = reliability(y, held, rater, sittings(rater, rated.codes("group")))
    values = pair_values(x.vectors, y - y.mean(), dev_x.vectors, pairs)
    measures = {
        TRUST: -agreement.of_rows(rater),
        CARE: -agreement.of_rows(rater, agreement.care),
        "KNN-Shapley, summed over the rater": -np.bincount(rater, values)[rater],
        "KNN-Shapley of the rating": -values,
        **trivial_measures(y, rater),
    }
    failed = np.array([not row.dialogue.labels["passed_qc"] for row in rated.rows])
    rng = np.random.default_rng(0)
    rows_of = [np.flatnonzero(rater == r) for r in range(int(rater.max()) + 1)]
    draws = [
        np.concatenate([rows_of[r] for r in rng.integers(len(rows_of), size=len(rows_of))])
        for _ in range(resamples)
    ]
    spread, care = measures[OWN_SPREAD], measures[CARE]
    gains = [auc(care[rows], failed[rows]) - auc(spread[rows], failed[rows]) for rows in draws]
    return {
        "n_ratings": len(rated),
        "n_raters": len(rows_of),
        "care_less_own_spread": _with_interval(auc(care, failed) - auc(spread, failed), gains),
        "n_bad": int(failed.sum()),
        "auc": {
            name: _with_interval(auc(score, failed), [auc(score[rows], failed[rows]) for rows in draws])
            for name, score in measures.items()
        },
    }


def _with_interval(value: float, draws: list[float]) -> dict[str, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"auc": round(value, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


@dataclasses.dataclass(frozen=True)
class ConvAI2:
    """Ratings to learn from, users known or not, and compared pairs of other dialogues."""

    rated: RatedDialogues
    x: Representation
    pairs: Pairs
    pairs_x: Representation


def read_convai2(data: Path, work: Path, first: int | None) -> ConvAI2:
    """Half of the dialogues without a user make pairs; `first` takes only so many dialogues, for a trial."""
    whole = read_rated(data / "rated/convai2_rated.jsonl.gz")
    if first is not None:
        named = [i for i, row in enumerate(whole.rows) if row.rater is not None]
        rest = [i for i, row in enumerate(whole.rows) if row.rater is None]
        whole = whole.take([*named[:first], *rest[:first]])
    kept = work / f"cleaning-convai2-{len(whole)}.npz"
    if not kept.is_file():
        x = represent(whole.dialogues, turn_encoder())
        np.savez(kept, features=x.features, vectors=x.vectors)
    x = Representation(**load_arrays(kept))
    rng = np.random.default_rng(0)
    unknown = rng.permutation([i for i, row in enumerate(whole.rows) if row.rater is None])
    others = np.sort(unknown[: len(unknown) // 2])
    own = np.setdiff1d(np.arange(len(whole)), others)
    of_others = whole.take(others.tolist())
    all_pairs = rating_pairs(of_others.values, np.zeros(len(others), np.int64), gap=GAP)
    assert all_pairs is not None
    drawn = rng.choice(len(all_pairs), min(N_PAIRS, len(all_pairs)), replace=False)
    pairs = Pairs(all_pairs.first[drawn], all_pairs.second[drawn], all_pairs.label[drawn])
    return ConvAI2(whole.take(own.tolist()), x.take(own), pairs, x.take(others))


def plant(
    rated: RatedDialogues, kind: str, rng: Generator
) -> tuple[RatedDialogues, NDArray[np.bool_], NDArray[np.bool_]]:
    """The ratings with bad ones among them; which are looked at, and which of these are bad."""
    rater = rated.codes("rater")
    n = np.bincount(rater[rater >= 0])
    several = np.flatnonzero(n >= FEWEST)
    drawn = rng.choice(several, max(1, round(PART * len(several))), replace=False)
    looked_at, bad = np.isin(rater, several), np.isin(rater, drawn)
    values = rated.values.copy()
    values[bad] = PLANTED[kind](values[bad], rng)
    rows = tuple(
        dataclasses.replace(row, rating=float(value)) for row, value in zip(rated.rows, values, strict=True)
    )
    return RatedDialogues(rows, rated.scale), looked_at, bad


def on_convai2(source: ConvAI2, seeds: int) -> dict[str, Any]:
    """AUC of finding the planted ratings: the mean over the draws, and where nine in ten of them lie."""
    table: dict[str, Any] = {}
    for kind in PLANTED:
        of_kind: dict[str, list[float]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng((seed, list(PLANTED).index(kind)))
            rated, looked_at, bad = plant(source.rated, kind, rng)
            fitted = fit(rated, source.x, settings=QUICK)
            cleaned = clean(rated, source.x, pairs=source.pairs, pairs_x=source.pairs_x, fitted=fitted)
            rater = rated.codes("rater")[looked_at]
            values = np.array([row.shapley for row in cleaned.ratings], float)[looked_at]
            agreement = fitted.reliability
            measures = {
                TRUST: -agreement.of_rows(rater),
                CARE: -agreement.of_rows(rater, agreement.care),
                "KNN-Shapley, summed over the rater": -np.bincount(rater, values)[rater],
                "KNN-Shapley of the rating": -values,
                **trivial_measures(rated.values[looked_at], np.unique(rater, return_inverse=True)[1]),
            }
            for name, score in measures.items():
                of_kind.setdefault(name, []).append(auc(score, bad[looked_at]))
        table[kind] = {
            name: {
                "auc": round(float(np.mean(found)), 4),
                "low": round(float(np.quantile(found, 0.05)), 4),
                "high": round(float(np.quantile(found, 0.95)), 4),
            }
            for name, found in of_kind.items()
        }
        print(kind, {name: row["auc"] for name, row in table[kind].items()}, flush=True)
    codes = source.rated.codes("rater")
    n = np.bincount(codes[codes >= 0])
    return {
        "n_ratings": len(source.rated),
        "n_users": int((n > 0).sum()),
        "n_users_looked_at": int((n >= FEWEST).sum()),
        "n_ratings_looked_at": int(n[n >= FEWEST].sum()),
        "n_users_drawn": max(1, round(PART * int((n >= FEWEST).sum()))),
        "fewest_ratings": FEWEST,
        "n_pairs": len(source.pairs),
        "draws": seeds,
        "auc": table,
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--first", type=int, help="dialogues of ConvAI2, for a trial")
    given = parser.parse_args()
    content = {
        **head_of(__file__, "comparator-cleaning.json", seed=f"0 to {given.seeds - 1}"),
        "reliable_eval": on_reliable_eval(given.data, given.work, given.resamples),
        "convai2": on_convai2(read_convai2(given.data, given.work, given.first), given.seeds),
    }
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
