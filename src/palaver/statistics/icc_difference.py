"""Do raters agree more in one design than in another? The difference of two ICCs, by a bootstrap over items.

A replicate draws items with replacement; what both designs judged is drawn for both at once, so that easy
and hard items do not pass for a difference of the designs. Ratings go with their item. The p-value is
two-sided: twice the share of replicates, the ratings themselves among them, that contradict the others' sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from palaver.statistics._anova import centre
from palaver.statistics._icc_sums import (
    one_way_icc,
    one_way_rows,
    rating_moments,
    sums_of_groups,
    two_way_icc,
    two_way_rows,
)
from palaver.statistics.bootstrap import (
    Floats,
    Ints,
    Resampling,
    Rng,
    check_replicates,
    least_p,
    percentile_interval,
    resample_sums,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatedOutputs:
    """Ratings of one design, one row each. Codes of items mean the same in both designs."""

    output: Ints
    """Codes 0 .. n-1; what raters agree about."""
    rater: Ints
    item: Ints
    value: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class IccDifference:
    """ICC of one design minus that of another, in one form."""

    form: str
    a: float
    b: float
    difference: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    n_items_a: int
    n_items_b: int
    n_shared: int
    """Items that both designs judged."""
    n_replicates: int
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """Sums of each item, from which both forms of the ICC follow."""

    rows: Floats
    """(items, columns)"""
    is_crossed: bool

    def icc(self, sums: Floats) -> tuple[Floats, Floats]:
        return two_way_icc(sums) if self.is_crossed else one_way_icc(sums)


def compare_icc(
    a: RatedOutputs,
    b: RatedOutputs,
    *,
    crossed: bool = False,
    confidence: float = 0.95,
    n_replicates: int = 1000,
    rng: Rng,
) -> tuple[IccDifference, IccDifference]:
    """The difference of ICC(1,1) and that of ICC(1,k), a minus b; of ICC(2,.) where raters are `crossed`."""
    check_replicates(n_replicates)
    resampling = Resampling.of(confidence, n_replicates, rng)
    n_items = 1 + max(int(design.item.max(initial=-1)) for design in (a, b))
    designs = [_design(ratings, n_items, crossed) for ratings in (a, b)]
    in_a, in_b = (design.rows[:, 0] > 0 for design in designs)
    sums = [design.rows.sum(axis=0)[None] for design in designs]
    samples = [np.zeros((n_replicates, design.rows.shape[1])) for design in designs]
    width = samples[0].shape[1]
    together = np.column_stack([design.rows for design in designs])
    for drawn in (in_a & in_b, in_a & ~in_b, in_b & ~in_a):
        if drawn.any():
            block = resample_sums(together[drawn], n_replicates, resampling.rng)
            samples[0] += block[:, :width]
            samples[1] += block[:, width:]
    number = "2" if crossed else "1"
    differences = []
    for i, size in enumerate(("1", "k")):
        values = [design.icc(s)[i] for design, s in zip(designs, sums, strict=True)]
        drawn_values = [design.icc(s)[i] for design, s in zip(designs, samples, strict=True)]
        differences.append(
            _difference(
                IccDifference(
                    form=f"ICC({number},{size})",
                    a=float(values[0][0]),
                    b=float(values[1][0]),
                    difference=float(values[0][0] - values[1][0]),
                    n_items_a=int(in_a.sum()),
                    n_items_b=int(in_b.sum()),
                    n_shared=int((in_a & in_b).sum()),
                    n_replicates=n_replicates,
                ),
                drawn_values[0] - drawn_values[1],
                resampling,
            )
        )
    return differences[0], differences[1]


def _difference(facts: IccDifference, samples: Floats, resampling: Resampling) -> IccDifference:
    if math.isnan(facts.difference):
        undefined = " and ".join(name for name in "ab" if math.isnan(getattr(facts, name)))
        return replace(facts, reason=f"no agreement can be measured in {undefined}")
    if min(facts.n_items_a, facts.n_items_b) < 2:
        return replace(facts, reason="one item only, so there is no interval")
    # Columns of one matrix product may be added up in different orders: rounding alone is no difference.
    samples = np.where(np.abs(samples) < 1e-12, 0.0, samples)
    interval = percentile_interval(samples, resampling.confidence)
    defined = samples[np.isfinite(samples)]
    against = min((defined <= 0).sum(), (defined >= 0).sum())
    p = min(1.0, 2 * (1 + int(against)) / (1 + defined.size))
    p = max(p, least_p(min(facts.n_items_a, facts.n_items_b)))
    return replace(facts, low=interval.low, high=interval.high, p=p)


def _design(ratings: RatedOutputs, n_items: int, crossed: bool) -> _Design:
    given = np.isfinite(ratings.value)
    output, rater, value = ratings.output[given], ratings.rater[given], ratings.value[given]
    n_outputs = int(ratings.output.max(initial=-1)) + 1
    item = np.zeros(n_outputs, dtype=np.int64)
    item[ratings.output] = ratings.item
    if not crossed:
        moments = rating_moments(output, centre(value).values if value.size else value, n_outputs)
        return _Design(sums_of_groups(one_way_rows(moments), item, n_items), False)
    table = np.full((n_outputs, int(rater.max(initial=-1)) + 1), np.nan)
    table[output, rater] = value
    complete = np.isfinite(table).all(axis=1)
    return _Design(sums_of_groups(two_way_rows(table[complete]), item[complete], n_items), True)
