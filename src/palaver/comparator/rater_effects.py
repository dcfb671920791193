"""What a rater adds to a rating: a level, a stretch and noise of their own.

The model is rating = a_r + b_r * q(dialogue) + e_r. The level a_r is taken out within a sitting (or a rater);
where there is only one rating it is shrunk towards the level of all, the best linear unbiased predictor of a
random effect (Henderson 1975). The stretch is shrunk towards the common one and divided out. How far a rater
can be trusted is the correlation of their centred ratings with the scores of a model that has not seen them,
and their slope b_r on these scores, both shrunk towards what raters have in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.errors import DataError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_FLOOR = 0.05
"""No rater is left out altogether: who seems to contradict the model may still be right."""
_CEILING = 3.0
_PRIOR = 6.0
"""A rater's own correlation counts as much as the common one once they have rated this many dialogues."""


@dataclass(frozen=True)
class Effects:
    """Ratings without their raters: `target` in units of the spread in a sitting; and what was taken out."""

    target: Floats  # (N,)
    level: Floats  # (N,) the a_r of each row
    stretch: Floats  # (N,) the divisor of each row
    level_share: float
    """The part of the ratings' variance that lies between sittings."""


@dataclass(frozen=True)
class Reliability:
    """Agreement of each rater with the model: raw and shrunk correlation, and the weight of their rows."""

    raters: Codes  # (R,)
    correlation: Floats  # (R,) nan where it is not defined
    shrunk: Floats  # (R,)
    slope: Floats  # (R,) their shrunk b_r, 1 where they spread dialogues as raters do on average
    spread: Floats  # (R,) standard deviation of their ratings
    span: Floats  # (R,) their shrunk spread beside the common one, at most 1
    common: float

    @property
    def trust(self) -> Floats:
        """(R,) correlation and slope together: 1 for the common rater, 0 for who rates past the dialogues."""
        relative = self.shrunk / self.common if self.common > 0 else np.ones(len(self.shrunk))
        return np.asarray((relative + self.slope) / 2)

    @property
    def care(self) -> Floats:
        """(R,) the trust, and less of it in raters whose ratings lie closer together than is common.

        To find careless raters. What is learnt from a rating already counts it by the spread of its sitting.
        """
        return np.where(self.trust > 0, self.trust * self.span, self.trust)

    def of_rows(self, raters: ArrayLike, values: Floats | None = None) -> Floats:
        """(N,) the trust in each row's rater, or their `values` (R,); 1 where nobody knows the rater."""
        codes = np.asarray(raters, dtype=np.int64)
        rows = np.ones(len(codes))
        known = codes >= 0
        rows[known] = (self.trust if values is None else values)[np.searchsorted(self.raters, codes[known])]
        return rows

    def weights(self, raters: ArrayLike) -> Floats:
        """(N,) the weight of each row, 1 on average."""
        raw = np.clip(self.of_rows(raters), _FLOOR, _CEILING)
        return np.asarray(raw / raw.mean())


def sittings(raters: ArrayLike, groups: ArrayLike) -> Codes:
    """(N,) who is centred together: the sitting where it is known, else the rater, else all the rest (0)."""
    rater = np.asarray(raters, dtype=np.int64)
    group = np.asarray(groups, dtype=np.int64)
    if rater.shape != group.shape or rater.ndim != 1:
        raise DataError(f"expected one rater and one group a row, found {rater.shape} and {group.shape}")
    both = np.stack([np.where(group >= 0, -1, rater), group])  # (2, N)
    _, codes = np.unique(both, axis=1, return_inverse=True)
    return codes.reshape(-1).astype(np.int64)


def effects(ratings: ArrayLike, sitting: ArrayLike) -> Effects:
    """Take level and stretch out of the ratings of each sitting.

    Sittings of two and more lose their whole mean, so that only comparisons within them are left: a level
    shrunk towards that of all was tried on the Reliable-Eval ratings and cost a point of accuracy. A single
    rating has nothing to be compared with in its sitting; it keeps the part that shrinking leaves.
    """
    y = np.asarray(ratings, dtype=np.float64)
    codes = np.asarray(sitting, dtype=np.int64)
    if y.ndim != 1 or y.shape != codes.shape or not y.size:
        raise DataError(f"expected one rating a row, found {y.shape} and {codes.shape}")
    if not np.isfinite(y).all():
        raise DataError(f"{int((~np.isfinite(y)).sum())} ratings are not numbers")
    n = np.bincount(codes).astype(np.float64)  # (G,)
    mean = np.bincount(codes, y) / np.maximum(n, 1)
    squares = np.bincount(codes, (y - mean[codes]) ** 2)  # (G,)
    some = n > 0
    noise = float(squares.sum() / max(1.0, len(y) - some.sum()))  # variance within a sitting
    between = _between(mean[some], n[some], noise)
    shrunk = n * between / np.maximum(n * between + noise, 1e-12)
    level = y.mean() + np.where(n > 1, 1.0, shrunk) * (mean - y.mean())  # (G,)
    common = max(np.sqrt(noise), 1e-9)
    own = np.sqrt(squares / np.maximum(n, 1))
    stretch = np.maximum(_shrunk_spread(own, n, common), 0.25 * common)  # (G,)
    target = (y - level[codes]) / stretch[codes]
    share = between / (between + noise) if between + noise > 0 else 0.0
    return Effects(target, level[codes], stretch[codes], share)


def _shrunk_spread(own: Floats, n: Floats | Codes, common: float) -> Floats:
    """(G,) spreads of so many ratings each, shrunk towards the common one."""
    return (n * own + _PRIOR / 2 * common) / (n + _PRIOR / 2)


def _between(means: Floats, n: Floats, noise: float) -> float:
    """The variance of levels between sittings, by the method of moments (unequal sizes)."""
    if len(means) < 2:
        return 0.0
    total = n.sum()
    overall = (n * means).sum() / total
    squares = (n * (means - overall) ** 2).sum()
    scale = total - (n**2).sum() / total
    return max(0.0, float((squares - (len(n) - 1) * noise) / scale)) if scale > 0 else 0.0


def reliability(ratings: ArrayLike, scores: ArrayLike, raters: ArrayLike, sitting: ArrayLike) -> Reliability:
    """How well each rater's ratings go with `scores`, which must come from a model that has not seen them."""
    y = np.asarray(ratings, dtype=np.float64)
    q = np.asarray(scores, dtype=np.float64)
    rater = np.asarray(raters, dtype=np.int64)
    codes = np.asarray(sitting, dtype=np.int64)
    known = rater >= 0
    yc, qc = _centred(y, codes), _centred(q, codes)
    names, row = np.unique(rater[known], return_inverse=True)
    if not len(names):
        empty = np.zeros(0)
        return Reliability(names, empty, empty, empty, empty, empty, 1.0)
    n = np.bincount(row)
    xy, xx, yy = (np.bincount(row, v[known]) for v in (yc * qc, qc * qc, yc * yc))  # (R,)
    own = _centred(y[known], row)
    squares = np.bincount(row, own**2)
    spread, usual = np.sqrt(squares / n), np.sqrt(squares.sum() / n.sum())
    wide = _shrunk_spread(spread, n, usual)
    # a single rating says nothing of it
    span = np.where((n > 1) & (wide < usual), wide / max(usual, 1e-12), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where((xx > 0) & (yy > 0), xy / np.sqrt(xx * yy), np.nan)
    defined = np.isfinite(correlation)
    common = float(np.average(correlation[defined], weights=n[defined])) if defined.any() else 0.0
    common = max(common, 0.0)
    own_part = np.where(defined, correlation, 0.0)  # who gives everything the same says nothing
    shrunk = (n * own_part + _PRIOR * common) / (n + _PRIOR)
    all_slope = float(xy.sum() / xx.sum()) if xx.sum() > 0 else 0.0
    if all_slope > 0:
        pull = _PRIOR * xx.sum() / n.sum()  # so many dialogues of ordinary spread
        slope = (xy / all_slope + pull) / (xx + pull)
    else:
        slope = np.ones(len(names))
    return Reliability(names, correlation, shrunk, slope, spread, span, common)


def _centred(values: Floats, codes: Codes) -> Floats:
    n = np.maximum(np.bincount(codes), 1)
    return values - (np.bincount(codes, values) / n)[codes]
