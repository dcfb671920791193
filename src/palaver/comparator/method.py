"""The method `palaver`: compare dialogues from ratings whose raters are known.

On real ratings most of the noise lies between raters, and no stage of Liang et al. (2020) takes it out. Here

1. level and stretch of each rater leave the ratings (`raters.effects`), so only comparisons within a sitting
   are learnt from;
2. raters count by how well they agree with a model that has not seen them (`raters.reliability`), in rounds;
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

from palaver.comparator.data import Pairs, Ratings
from palaver.comparator.evaluate import Calibration, PairResult, calibration, evaluate_pairs
from palaver.comparator.raters import Effects, Reliability, effects, reliability, sittings
from palaver.comparator.represent import Represented
from palaver.comparator.trees import Trees, fit_trees
from palaver.errors import DataError, UserError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Tell = Callable[[str, int, int], None]

_CLIP = 4.0
"""A dialogue unlike all others is far away in one direction at most this much."""
_LEAST = 20


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
        wrong = [f"{n} must be at least 1" for n in ("heads", "rounds", "depth") if getattr(self, n) < 1]
        wrong += ["folds must be at least 2"] * (self.folds < 2) + ["trees must not be negative"] * (
            self.trees < 0
        )
        if not self.ridge > 0:
            wrong.append("ridge must be above 0")
        if wrong:
            raise UserError("these settings of the method cannot be used", problems=wrong)


@dataclass(frozen=True)
class Head:
    """One fit: a row of weights, and trees."""

    weights: Floats  # (F + 4d,)
    intercept: float
    trees: Trees | None


@dataclass(frozen=True)
class Model:
    """What scores dialogues. `unit` makes differences of scores log-odds."""

    centre: Floats  # (F + 4d,)
    scale: Floats  # (F + 4d,), vectors already made smaller
    heads: tuple[Head, ...]
    unit: float = 1.0

    def raw(self, x: Represented) -> Floats:
        """(H, N) what each head says, before the unit."""
        z = standard(x, self.centre, self.scale)
        linear = z @ np.stack([h.weights for h in self.heads]).T + [h.intercept for h in self.heads]
        grown = [0.0 if h.trees is None else h.trees.predict(x.features) for h in self.heads]
        return np.asarray(linear.T + np.stack(np.broadcast_arrays(*grown, linear[:, 0])[:-1]))

    def heads_of(self, x: Represented) -> Floats:
        """(H, N) scores of each head."""
        if x.features.shape[1] + x.vectors.shape[1] != len(self.centre):
            raise UserError(
                f"this comparator was trained on {len(self.centre)} numbers a dialogue, found "
                f"{x.features.shape[1] + x.vectors.shape[1]}: is it another encoder?"
            )
        return self.unit * self.raw(x)


@dataclass(frozen=True)
class Fitted:
    """A model, and what was found on the way; held-out scores are by models that had not seen the rater."""

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


def fit(
    ratings: Ratings,
    x: Represented,
    *,
    pairs: Pairs | None = None,
    pairs_x: Represented | None = None,
    settings: MethodSettings | None = None,
    tell: Tell | None = None,
) -> Fitted:
    """Learn from `ratings`, whose dialogues are `x`. `pairs` over `pairs_x` fix the unit, no more."""
    s = settings or MethodSettings()
    y = ratings.values
    if len(x) != len(y):
        raise DataError(f"{len(y)} ratings, but {len(x)} dialogues")
    if len(y) < _LEAST:
        raise DataError(f"{len(y)} rated dialogues are too few to learn from", f"give at least {_LEAST}")
    if (pairs is None) != (pairs_x is None):
        raise UserError("compared pairs and the dialogues they compare go together")
    rater, notes = _raters(ratings)
    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    taken = effects(y, sitting)
    if not np.ptp(taken.target) > 0:
        raise DataError("within their sittings all ratings are equal: there is nothing to compare")
    fold = _folds(rater, s.folds, s.seed)
    weights = np.ones(len(y))
    n_steps, done = s.folds * (s.rounds + 1) + s.heads, 0

    def step(what: str) -> None:
        nonlocal done
        done += 1
        if tell is not None:
            tell(what, done, n_steps)

    trust = reliability(y, np.zeros(len(y)), ratings.codes("rater"), sitting)
    linear = dataclasses.replace(s, trees=0, heads=1)
    for _ in range(s.rounds):
        seen = _held_out(x, taken.target, weights, rater, fold, linear, lambda: step("learning raters"))
        trust = reliability(y, seen, ratings.codes("rater"), sitting)
        weights = trust.weights(ratings.codes("rater"))
    few = dataclasses.replace(s, heads=min(3, s.heads))
    held = _held_out(x, taken.target, weights, rater, fold, few, lambda: step("held-out scores"))
    trust = reliability(y, held, ratings.codes("rater"), sitting)
    model = fit_model(x, taken.target, weights, rater, s, lambda: step("fitting"))
    own = rating_pairs(y, sitting, gap=0.5 * math.sqrt(float(np.mean((y - taken.level) ** 2))))
    unit = 1.0
    prob = label = on_pairs = None
    if pairs is not None and pairs_x is not None and len(pairs):
        scores = model.raw(pairs_x).mean(0)
        difference, label = scores[pairs.first] - scores[pairs.second], pairs.label.astype(np.float64)
        unit = log_odds_unit(difference, label)
        on_pairs = evaluate_pairs(scores, pairs)
    elif own is not None:
        difference, label = held[own.first] - held[own.second], own.label.astype(np.float64)
        unit = log_odds_unit(difference, label, weights[own.first])
        notes.append("without compared pairs the unit comes from the ratings themselves and is cautious")
    if label is not None:
        prob = 1 / (1 + np.exp(-unit * difference))
    return Fitted(
        dataclasses.replace(model, unit=unit),
        s,
        unit * held,
        weights,
        taken,
        trust,
        evaluate_pairs(held, own) if own is not None else None,
        on_pairs,
        calibration(prob, label) if prob is not None and label is not None else None,
        tuple(notes),
    )


def held_out_scores(
    ratings: Ratings, x: Represented, *, settings: MethodSettings | None = None, tell: Tell | None = None
) -> Fitted:
    """`fit` for its held-out scores: few heads, as the model itself is not kept."""
    return fit(ratings, x, settings=settings or MethodSettings(heads=1), tell=tell)


def fit_model(
    x: Represented,
    target: Floats,
    weights: Floats,
    rater: Rows,
    s: MethodSettings,
    step: Callable[[], None] = lambda: None,
) -> Model:
    """`s.heads` fits, each on raters drawn with replacement; a single one is fitted on all."""
    whole = np.hstack([x.features, x.vectors]).astype(np.float64)
    centre, spread = whole.mean(0), whole.std(0)
    # What never varies says nothing; sums of equal numbers differ in their last digits.
    scale = np.where(spread > 1e-6 * np.maximum(1.0, np.abs(centre)), spread, np.inf)
    scale[x.features.shape[1] :] /= s.vector_share
    z = standard(x, centre, scale)
    heads = []
    for h in range(s.heads):
        rng = np.random.default_rng((s.seed, h))
        n_raters = int(rater.max()) + 1
        if s.heads == 1:
            drawn = np.ones(len(target))
        else:
            drawn = np.bincount(rng.integers(n_raters, size=n_raters), minlength=n_raters)[rater].astype(
                float
            )
        rows = np.flatnonzero(drawn)
        w = (weights * drawn)[rows]
        coefficients, intercept = _ridge(z[rows], target[rows], w, s.ridge)
        trees = (
            fit_trees(
                x.features[rows],
                target[rows],
                w,
                n_trees=s.trees,
                depth=s.depth,
                seed=int(rng.integers(2**31)),
            )
            if s.trees
            else None
        )
        heads.append(Head(coefficients, intercept, trees))
        step()
    return Model(centre, scale, tuple(heads))


def standard(x: Represented, centre: Floats, scale: Floats) -> Floats:
    """(N, F + 4d) features and vectors on the scale of the training dialogues."""
    z = (np.hstack([x.features, x.vectors]) - centre) / scale
    n = x.features.shape[1]
    np.clip(z[:, :n], -_CLIP, _CLIP, out=z[:, :n])
    return np.asarray(z)


def _ridge(z: Floats, y: Floats, w: Floats, penalty: float) -> tuple[Floats, float]:
    """Weighted ridge regression; the weights sum to the number of rows, so the penalty keeps its meaning."""
    w = w * (len(w) / w.sum())
    middle, level = np.average(z, axis=0, weights=w), float(np.average(y, weights=w))
    root = np.sqrt(w)[:, None]
    a = (z - middle) * root  # (N, D)
    b = (y - level) * root[:, 0]
    if len(a) < a.shape[1]:  # the smaller of the two systems
        found = a.T @ np.linalg.solve(a @ a.T + penalty * np.eye(len(a)), b)
    else:
        found = np.linalg.solve(a.T @ a + penalty * np.eye(a.shape[1]), a.T @ b)
    return found, level - float(middle @ found)


def _held_out(
    x: Represented,
    target: Floats,
    weights: Floats,
    rater: Rows,
    fold: Rows,
    s: MethodSettings,
    step: Callable[[], None],
) -> Floats:
    found = np.zeros(len(target))
    for k in range(int(fold.max()) + 1):
        seen, unseen = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        _, codes = np.unique(rater[seen], return_inverse=True)
        model = fit_model(x.take(seen), target[seen], weights[seen], codes, s)
        found[unseen] = model.raw(x.take(unseen)).mean(0)
        step()
    return found


def _raters(ratings: Ratings) -> tuple[Rows, list[str]]:
    """(N,) who is drawn and held out together: the rater, else the sitting, else each row by itself."""
    rater, group = ratings.codes("rater"), ratings.codes("group")
    alone = np.arange(len(rater))
    both = np.stack([rater, np.where(rater >= 0, -1, group), np.where((rater < 0) & (group < 0), alone, -1)])
    _, codes = np.unique(both, axis=1, return_inverse=True)
    notes = []
    unknown = int(((rater < 0) & (group < 0)).sum())
    if unknown:
        notes.append(f"{unknown} ratings name no rater: their raters' levels cannot be taken out")
    return codes.reshape(-1).astype(np.int64), notes


def _folds(rater: Rows, folds: int, seed: int) -> Rows:
    n = int(rater.max()) + 1
    if n < 2:
        raise DataError(
            "all ratings are by one rater: there is nobody to hold out",
            "name the rater of each dialogue, or leave the field out",
        )
    return (np.random.default_rng((seed, 7)).permutation(n) % min(folds, n))[rater]


def rating_pairs(y: Floats, sitting: Rows, *, gap: float) -> Pairs | None:
    """Pairs of one sitting whose ratings differ by more than `gap`; at most a few thousand a sitting."""
    order = np.argsort(sitting, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(sitting[order]) != 0, True])
    first, second = [], []
    rng = np.random.default_rng(0)
    for begin, end in pairwise(starts):
        rows = order[begin:end]
        if len(rows) > 60:
            rows = rng.choice(rows, 60, replace=False)
        i, j = np.triu_indices(len(rows), 1)
        wide = np.abs(y[rows[i]] - y[rows[j]]) > gap
        first.append(rows[i[wide]])
        second.append(rows[j[wide]])
    a, b = np.concatenate(first), np.concatenate(second)
    return Pairs(a, b, np.sign(y[a] - y[b]).astype(np.int8)) if len(a) else None


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


def describe(found: Fitted) -> dict[str, Any]:
    """The figures of a fit, for a record."""
    return {
        "settings": dataclasses.asdict(found.settings),
        "n_ratings": len(found.held_out),
        "n_raters": len(found.reliability.raters),
        "common_correlation": found.reliability.common,
        "level_share": found.effects.level_share,
        "on_ratings": None if found.on_ratings is None else dataclasses.asdict(found.on_ratings),
        "on_pairs": None if found.on_pairs is None else dataclasses.asdict(found.on_pairs),
        "ece": None if found.calibration is None else found.calibration.ece,
        "unit": found.model.unit,
    }
