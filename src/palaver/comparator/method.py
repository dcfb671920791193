"""The method `palaver`: compare dialogues from ratings whose raters are known.

On real ratings most of the noise lies between raters, and no stage of Liang et al. (2020) takes it out. Here

1. level and stretch of each rater leave the ratings (`rater_effects.effects`), so only comparisons within a
   sitting are learnt from;
2. raters count by how well they agree with a model that has not seen them (`rater_effects.reliability`), in
   rounds;
3. the quality of a dialogue is a ridge regression on surface features, the flow of its turns and mean
   vectors of both roles and of answers beside what they answer, plus boosted trees on the first two;
4. both are fitted several times on resampled raters: their mean is the score, their spread its interval;
5. scores are stretched so that P(a is better than b) = sigmoid(a - b) holds on compared pairs.

Neither the system's name nor anything else beside the turns is seen when a dialogue is scored.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.evaluation import Calibration, PairResult, calibration, evaluate_pairs
from palaver.comparator.model import Head, Model, standardise
from palaver.comparator.rater_effects import Effects, Reliability, effects, reliability, sittings
from palaver.comparator.representation import Representation
from palaver.comparator.training_data import USER, Pairs, RatedDialogues
from palaver.comparator.trees import fit_trees
from palaver.errors import DataError, UserError
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_LEAST = 20
_MOST_IN_A_SITTING = 60
"""Dialogues of one sitting that are compared with each other; of more, so many are drawn."""


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """Chosen by cross-validation over raters on the Reliable-Eval training ratings."""

    heads: int = 10
    """Fits on resampled raters."""
    folds: int = 5
    rounds: int = 2
    """Times the raters' weights are learnt anew."""
    ridge: float = 1000.0
    vector_share: float = 0.3
    """How much smaller an entry of a vector is than a feature, so 1,536 of them do not drown the rest."""
    trees: int = 150
    depth: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        problems = [f"{n} must be at least 1" for n in ("heads", "rounds", "depth") if getattr(self, n) < 1]
        if self.folds < 2:
            problems.append("folds must be at least 2")
        if self.trees < 0:
            problems.append("trees must not be negative")
        if not self.ridge > 0:
            problems.append("ridge must be above 0")
        if problems:
            raise UserError("these settings of the method cannot be used", problems=problems)


@dataclass(frozen=True)
class Fit:
    """A model, and what was learnt on the way. Held-out scores are by models that had not seen the rater."""

    model: Model
    settings: MethodSettings
    held_out: Floats  # (N,) in the model's unit
    weights: Floats  # (N,) of the rows
    effects: Effects
    reliability: Reliability
    on_ratings: PairResult | None
    """Pairs within a sitting whose ratings lie at least half a spread apart, by held-out scores."""
    on_pairs: PairResult | None
    calibration: Calibration | None
    notes: tuple[str, ...] = ()
    longer_on_ratings: PairResult | None = None
    """What a rule reaches on the same pairs: the dialogue is better in which the system says more."""

    def describe(self) -> dict[str, Any]:
        """The figures of the fit, for a record."""
        return {
            "settings": dataclasses.asdict(self.settings),
            "n_ratings": len(self.held_out),
            "n_raters": len(self.reliability.raters),
            "common_correlation": self.reliability.common,
            "level_share": self.effects.level_share,
            "on_ratings": None if self.on_ratings is None else dataclasses.asdict(self.on_ratings),
            "on_pairs": None if self.on_pairs is None else dataclasses.asdict(self.on_pairs),
            "ece": None if self.calibration is None else self.calibration.ece,
            "unit": self.model.unit,
            "notes": list(self.notes),
        }


def fit(
    ratings: RatedDialogues,
    x: Representation,
    *,
    pairs: Pairs | None = None,
    pairs_x: Representation | None = None,
    settings: MethodSettings | None = None,
    progress: Progress = no_progress,
) -> Fit:
    """Learn from `ratings`, whose dialogues are `x`. `pairs` over `pairs_x` fix the unit, no more."""
    s = settings or MethodSettings()
    y = ratings.values
    if len(x) != len(y):
        raise DataError(f"{len(y)} ratings, but {len(x)} dialogues")
    if len(y) < _LEAST:
        raise DataError(f"{len(y)} rated dialogues are too few to learn from", f"give at least {_LEAST}")
    if (pairs is None) != (pairs_x is None):
        raise UserError("compared pairs and the dialogues they compare go together")
    group, notes = held_out_together(ratings)
    rater = ratings.codes("rater")
    sitting = sittings(rater, ratings.codes("group"))
    if len(np.unique(sitting)) == len(sitting):
        raise DataError(
            "no rater rated two dialogues: nothing can be compared within a rater",
            "leave the raters out to compare all dialogues with each other",
        )
    taken = effects(y, sitting)
    if not np.ptp(taken.target) > 0:
        raise DataError("within their sittings all ratings are equal: there is nothing to compare")
    fold = draw_folds(group, s.folds, s.seed)
    weights = np.ones(len(y))
    n_steps, n_done = s.folds * (s.rounds + 1) + s.heads, 0

    def step(what: str) -> None:
        nonlocal n_done
        n_done += 1
        progress(what, n_done, n_steps)

    linear = dataclasses.replace(s, trees=0, heads=1)
    for _ in range(s.rounds):
        held = held_out_scores(x, taken.target, weights, group, fold, linear, lambda: step("learning raters"))
        weights = reliability(y, held, rater, sitting).weights(rater)
    few = dataclasses.replace(s, heads=min(3, s.heads))
    held = held_out_scores(x, taken.target, weights, group, fold, few, lambda: step("held-out scores"))
    trust = reliability(y, held, rater, sitting)
    model = fit_model(x, taken.target, weights, group, s, lambda: step("fitting"))
    own = rating_pairs(y, sitting, gap=0.5 * math.sqrt(float(np.mean((y - taken.level) ** 2))))
    unit = 1.0
    on_pairs = calibrated = None
    if pairs is not None and pairs_x is not None and len(pairs):
        scores = model.raw(pairs_x).mean(0)
        on_pairs = evaluate_pairs(scores, pairs)
        unit, calibrated = _calibrate(scores, pairs)
    elif own is not None:
        unit, calibrated = _calibrate(held, own, weights[own.first])
        notes.append("without compared pairs the unit comes from the ratings themselves and is cautious")
    return Fit(
        dataclasses.replace(model, unit=unit),
        s,
        unit * held,
        weights,
        taken,
        trust,
        evaluate_pairs(held, own) if own is not None else None,
        on_pairs,
        calibrated,
        tuple(notes),
        evaluate_pairs([_said(dialogue) for dialogue in ratings.dialogues], own) if own is not None else None,
    )


def _said(dialogue: Dialogue) -> int:
    """Characters that the system says."""
    return sum(len(turn.text) for turn in dialogue.turns if turn.speaker != USER)


def fit_model(
    x: Representation,
    target: Floats,
    weights: Floats,
    group: Rows,
    s: MethodSettings,
    step: Callable[[], None] = lambda: None,
) -> Model:
    """`s.heads` fits, each on raters drawn with replacement; a single one is fitted on all."""
    whole = np.hstack([x.features, x.vectors]).astype(np.float64)
    centre, spread = whole.mean(0), whole.std(0)
    # What never varies says nothing; sums of equal numbers differ in their last digits.
    scale = np.where(spread > 1e-6 * np.maximum(1.0, np.abs(centre)), spread, np.inf)
    scale[x.features.shape[1] :] /= s.vector_share
    z = standardise(x, centre, scale)
    n_groups = int(group.max()) + 1
    heads = []
    for h in range(s.heads):
        rng = np.random.default_rng((s.seed, h))
        times_drawn = np.ones(n_groups)
        if s.heads > 1:
            times_drawn = np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups).astype(float)
        drawn = times_drawn[group]
        rows = np.flatnonzero(drawn)
        w = (weights * drawn)[rows]
        coefficients, intercept = _ridge(z[rows], target[rows], w, s.ridge)
        trees = None
        if s.trees:
            seed = int(rng.integers(2**31))
            features = x.features[rows]
            trees = fit_trees(features, target[rows], w, n_trees=s.trees, depth=s.depth, seed=seed)
        heads.append(Head(coefficients, intercept, trees))
        step()
    return Model(centre, scale, tuple(heads))


def _ridge(z: Floats, y: Floats, w: Floats, penalty: float) -> tuple[Floats, float]:
    """Weighted ridge regression; the weights sum to the number of rows, so the penalty keeps its meaning."""
    w = w * (len(w) / w.sum())
    middle, level = np.average(z, axis=0, weights=w), float(np.average(y, weights=w))
    root = np.sqrt(w)[:, None]
    a = (z - middle) * root  # (N, D)
    b = (y - level) * root[:, 0]
    if len(a) < a.shape[1]:  # the smaller of the two systems
        coefficients = a.T @ np.linalg.solve(a @ a.T + penalty * np.eye(len(a)), b)
    else:
        coefficients = np.linalg.solve(a.T @ a + penalty * np.eye(a.shape[1]), a.T @ b)
    return coefficients, level - float(middle @ coefficients)


def held_out_scores(
    x: Representation,
    target: Floats,
    weights: Floats,
    group: Rows,
    fold: Rows,
    s: MethodSettings,
    step: Callable[[], None] = lambda: None,
) -> Floats:
    """(N,) the score of each row by a model that has seen no row of its fold."""
    scores = np.zeros(len(target))
    for k in range(int(fold.max()) + 1):
        seen, unseen = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        _, codes = np.unique(group[seen], return_inverse=True)
        model = fit_model(x.take(seen), target[seen], weights[seen], codes, s)
        scores[unseen] = model.raw(x.take(unseen)).mean(0)
        step()
    return scores


def held_out_together(ratings: RatedDialogues) -> tuple[Rows, list[str]]:
    """(N,) which rows are drawn and held out together, and notes.

    They are the rows of one rater, else of one sitting, else each row by itself.
    """
    rater, sitting = ratings.codes("rater"), ratings.codes("group")
    unknown = (rater < 0) & (sitting < 0)
    alone = np.where(unknown, np.arange(len(rater)), -1)
    _, codes = np.unique(
        np.stack([rater, np.where(rater >= 0, -1, sitting), alone]), axis=1, return_inverse=True
    )
    notes = []
    if unknown.any():
        notes.append(f"{unknown.sum()} ratings name no rater: their raters' levels cannot be taken out")
    return codes.reshape(-1).astype(np.int64), notes


def draw_folds(group: Rows, folds: int, seed: int) -> Rows:
    """(N,) the fold of each row; rows of one group lie in one fold."""
    n_groups = int(group.max()) + 1
    if n_groups < 2:
        raise DataError(
            "all ratings are by one rater: there is nobody to hold out",
            "name the rater of each dialogue, or leave the field out",
        )
    fold_of_group = np.random.default_rng((seed, 7)).permutation(n_groups) % min(folds, n_groups)
    return np.asarray(fold_of_group[group])


def rating_pairs(y: Floats, sitting: Rows, *, gap: float) -> Pairs | None:
    """Pairs of one sitting whose ratings differ by more than `gap`; at most a few thousand a sitting."""
    order = np.argsort(sitting, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(sitting[order]) != 0, True])
    first, second = [], []
    rng = np.random.default_rng(0)
    for begin, end in pairwise(starts):
        rows = order[begin:end]
        if len(rows) > _MOST_IN_A_SITTING:
            rows = rng.choice(rows, _MOST_IN_A_SITTING, replace=False)
        i, j = np.triu_indices(len(rows), 1)
        wide = np.abs(y[rows[i]] - y[rows[j]]) > gap
        first.append(rows[i[wide]])
        second.append(rows[j[wide]])
    a, b = np.concatenate(first), np.concatenate(second)
    return Pairs(a, b, np.sign(y[a] - y[b]).astype(np.int8)) if len(a) else None


def _calibrate(scores: Floats, pairs: Pairs, weights: Floats | None = None) -> tuple[float, Calibration]:
    """The unit that makes differences of `scores` log-odds on `pairs`, and how honest they then are."""
    difference, label = scores[pairs.first] - scores[pairs.second], pairs.label.astype(np.float64)
    unit = log_odds_unit(difference, label, weights)
    return unit, calibration(1 / (1 + np.exp(-unit * difference)), label)


def log_odds_unit(difference: Floats, label: Floats, weights: Floats | None = None) -> float:
    """The u that makes sigmoid(u * difference) most likely (Newton's method on one number)."""
    d = difference * np.sign(label)
    w = np.ones(len(d)) if weights is None else weights
    size = float(np.sqrt(np.average(d * d, weights=w)))
    if not size > 0:
        return 1.0
    d = d / size
    u = 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-u * d))
        # a hundredth of a prior keeps it finite where every pair is right
        slope = float((w * (1 - p) * d).sum()) - 0.01 * u
        bend = float((w * p * (1 - p) * d * d).sum()) + 0.01
        change = slope / bend
        u += float(np.clip(change, -2, 2))
        if abs(change) < 1e-10:
            break
    return max(u, 1e-3) / size
