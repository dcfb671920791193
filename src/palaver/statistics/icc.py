"""Intraclass correlation: the six forms of Shrout & Fleiss (1979) with tests, intervals and bootstrap.

Values: Shrout & Fleiss (1979), Psychological Bulletin 86:420-428, from the mean squares of a one-way
(ICC(1,.)) or a two-way analysis of variance without interaction (ICC(2,.), ICC(3,.)). F tests of "no
reliability" and intervals: McGraw & Wong (1996), Psychological Methods 1:30-46, who write ICC(A,.) for
ICC(2,.) and ICC(C,.) for ICC(3,.).

Items with unequal numbers of ratings: the one-way forms use every rating and put the effective number
k0 = (N - sum k_i^2 / N) / (n - 1) in the place of k (Donner 1986, International Statistical Review
54:67-82); F and interval are then approximate. The two-way forms use the items that every rater rated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics._agreement import Agreement, long_columns, rated_items, wide_table
from palaver.statistics._anova import Anova, one_way, one_way_of, two_way
from palaver.statistics.bootstrap import Floats, Ints, Resampling, Rng, percentile_interval
from palaver.statistics.codes import dense_codes
from palaver.tabular import Tabular, columns_of, show_number

FORMS = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")

_LEAST_DF = 0.01
_NO_BOUND = 1e-8  # share of its terms below which the divisor of a bound is as good as zero
_ROUNDING = 1e-13  # share of its terms below which a difference of mean squares is rounding error
_NO_NOISE = "no interval: raters never differ on an item, which does not show how sure this is"
_CONSTANT = "no interval: raters differ by a constant only, which does not show how sure this is"
_SLOTS = "raters are not crossed with items: a two-way form needs the same raters on every item"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IccForm(Agreement):
    """One form; `dropped` counts missing ratings (one-way) or incomplete items (two-way), see `notes`."""

    form: str
    f: float = math.nan
    """F of the test that the true value is 0; inf where raters never differ on an item."""
    df1: int = 0
    df2: int = 0
    p: float = math.nan
    k: float
    """Ratings per item; the effective number where items have unequal numbers."""

    @property
    def measure(self) -> str:
        return self.form


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IccResult(Tabular):
    """All six forms, in the order of `FORMS`; `result["ICC(1,k)"]` picks one."""

    forms: tuple[IccForm, ...]
    crossed: bool

    def __getitem__(self, form: str) -> IccForm:
        for candidate in self.forms:
            if candidate.form == form:
                return candidate
        raise KeyError(f"{form!r} is none of {', '.join(FORMS)}")

    def _headline(self) -> str:
        values = ", ".join(f"{form.form} = {show_number(form.value)}" for form in self.forms)
        return f"{values}; {self.forms[0].n_items:,} items"

    def _tables(self) -> dict[str, Any]:
        columns = columns_of(IccForm, self.forms, leave_out=("boot",))
        return {"forms": {"form": columns.pop("form"), **columns}}


def icc(
    ratings: ArrayLike,
    *,
    crossed: bool = True,
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> IccResult:
    """Intraclass correlation of an (items, raters) table, nan where a rating is missing.

    `crossed=False` says that a column is a slot and not a person (other raters judged each item); the
    two-way forms are then undefined.

    >>> table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> print(*(round(form.value, 2) for form in icc(table).forms))
    0.17 0.29 0.71 0.44 0.62 0.91
    """
    resampling = Resampling.of(confidence, n_replicates, rng)
    table = wide_table(ratings)
    given = np.isfinite(table)
    if given.all():
        two = two_way(table, len(table), resampling)
        return _result(one_way_of(two), two, crossed, confidence)
    items, _ = np.nonzero(given)
    rated = rated_items(items, table[given], len(table))
    one = one_way(rated, given.size - items.size, resampling)
    raters = given.any(axis=0)
    complete = given[:, raters].all(axis=1) & raters.any()
    if not crossed:
        resampling = replace(resampling, n_replicates=0)
    two = two_way(table[complete][:, raters], len(table), resampling)
    return _result(replace(one, n_raters=two.n_raters), two, crossed, confidence)


def icc_long(
    item: ArrayLike,
    rater: ArrayLike | None,
    value: ArrayLike,
    *,
    crossed: bool = True,
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> IccResult:
    """The same from one row per rating: integer codes of item and rater, and the value (nan: missing).

    Made for crowd data in which each item has other raters: no (items, raters) table is built beyond
    the items that every rater rated exactly once; where there are fewer than two of those, the two-way
    forms are undefined. `rater=None` says that raters are unknown.
    """
    resampling = Resampling.of(confidence, n_replicates, rng)
    crossed = crossed and rater is not None
    item_column, rater_column, value_column = long_columns(
        item=item, rater=item if rater is None else rater, value=value
    )
    values = value_column.astype(np.float64, copy=False)
    items, n_items = dense_codes("item", item_column)
    given = np.isfinite(values)
    if not given.all():
        items, rater_column, values = items[given], rater_column[given], values[given]
    rated = rated_items(items, values, n_items)
    one = one_way(rated, given.size - values.size, resampling)
    if rater is not None:
        raters, n_raters = dense_codes("rater", rater_column)
        one = replace(one, n_raters=n_raters)
    table = np.empty((0, one.n_raters))
    if crossed:
        table = _complete_items(items, raters, values, n_items, n_raters)
    return _result(one, two_way(table, n_items, resampling), crossed, confidence)


def _complete_items(items: Ints, raters: Ints, values: Floats, n_items: int, n_raters: int) -> Floats:
    """The (items, raters) table of the items that each rater rated exactly once.

    Only items with as many ratings as there are raters enter, so it has no more cells than rows came in.
    """
    full = np.bincount(items, minlength=n_items) == n_raters
    rows = full[items]
    table: Floats = np.full((int(full.sum()), n_raters), np.nan)
    table[(np.cumsum(full) - 1)[items[rows]], raters[rows]] = values[rows]
    complete = np.isfinite(table).all(axis=1)
    return table[complete]  # where a rater counts twice, another's cell is empty


def _result(one: Anova, two: Anova, crossed: bool, confidence: float) -> IccResult:
    if not crossed:
        two = replace(two, reason=_SLOTS)
    single_1, average_1 = _consistency_forms("1", one, confidence)
    single_2, average_2 = _absolute_forms(two, confidence)
    single_3, average_3 = _consistency_forms("3", two, confidence)
    forms = (single_1, single_2, single_3, average_1, average_2, average_3)
    return IccResult(forms=forms, crossed=crossed)


def _consistency_forms(number: str, anova: Anova, confidence: float) -> list[IccForm]:
    """ICC(1,1) and ICC(1,k) of a one-way, ICC(3,1) and ICC(3,k) of a two-way analysis."""
    if anova.reason:
        return _empty_forms(number, anova, confidence)
    from scipy.special import fdtri

    k, f = anova.k, _f_ratio(anova)
    tail = 0.5 + confidence / 2
    if f == math.inf:
        f = math.nan  # F has no quantile that could tell how far this is from chance
    low_f = f / float(fdtri(anova.df1, anova.df2, tail))
    high_f = f * float(fdtri(anova.df2, anova.df1, tail))
    bounds = (
        (1 - k / (low_f + k - 1), 1 - k / (high_f + k - 1)),
        (1 - 1 / low_f, 1 - 1 / high_f) if f > 0 else (math.nan, math.nan),
    )
    samples = None
    if anova.replicates is not None:
        samples = _consistency(anova.replicates.between, anova.replicates.noise, anova.replicates.k)
    values = _consistency(anova.between, anova.noise, k)
    return _forms(_empty_forms(number, anova, confidence), anova, values, bounds, samples)


def _absolute_forms(anova: Anova, confidence: float) -> list[IccForm]:
    """ICC(2,1) and ICC(2,k)."""
    facts = _empty_forms("2", anova, confidence)
    if anova.reason:
        return facts
    values = _absolute(anova.between, anova.noise, anova.raters, anova.k, anova.n_items)
    bounds = _absolute_bounds(anova, float(values[0]), 0.5 + confidence / 2)
    samples = None
    if anova.replicates is not None:
        r = anova.replicates
        samples = _absolute(r.between, r.noise, r.raters, anova.k, anova.n_items)
    return _forms(facts, anova, values, bounds, samples)


def _absolute_bounds(anova: Anova, value: float, tail: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """McGraw & Wong's intervals of ICC(A,1) and ICC(A,k); Satterthwaite's degrees of freedom.

    Those fall towards 0 for some negative estimates, and the quantiles of F out of sight with them:
    there is no interval then.
    """
    from scipy.special import fdtri

    n, k = anova.n_items, anova.k
    between, raters, error = anova.between, anova.raters, anova.noise
    if raters == 0 and error == 0:
        return (math.nan, math.nan), (math.nan, math.nan)
    a = k * value * raters
    b = (n * (1 + (k - 1) * value) - k * value) * error
    parts = a**2 / (k - 1) + b**2 / ((n - 1) * (k - 1))
    df = (a + b) ** 2 / parts if parts > 0 else 0.0
    if not df > _LEAST_DF:
        return (math.nan, math.nan), (math.nan, math.nan)
    low_f, high_f = float(fdtri(n - 1, df, tail)), 1 / float(fdtri(df, n - 1, tail))
    single, average = [], []
    for f in (low_f, high_f):
        signal = n * (between - f * error)
        single.append(signal / (f * (k * raters + (k * n - k - n) * error) + n * between))
        whole, terms = f * (raters - error) + n * between, f * (raters + error) + n * between
        average.append(float(_share(signal, whole, _NO_BOUND * terms)))
    return tuple(single), tuple(average)


def _consistency(between: Floats | float, noise: Floats | float, k: Floats | float) -> tuple[Floats, Floats]:
    signal = between - noise
    return _share(signal, between + (k - 1) * noise), _share(signal, between)


def _absolute(
    between: Floats | float, noise: Floats | float, raters: Floats | float, k: float, n: int
) -> tuple[Floats, Floats]:
    signal, bias = between - noise, (raters - noise) / n
    least = _ROUNDING * (between + noise + raters)
    single = _share(signal, between + (k - 1) * noise + k * bias, least)
    return single, _share(signal, between + bias, least)


def _share(part: Floats | float, whole: Floats | float, least: Floats | float = 0.0) -> Floats:
    """part / whole, undefined where the estimated total variance is not positive (above rounding)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.greater(whole, least), np.divide(part, whole), np.nan)


def _f_ratio(anova: Anova) -> float:
    if anova.noise > 0:
        return anova.between / anova.noise
    return math.inf if anova.between > 0 else math.nan


def _empty_forms(number: str, anova: Anova, confidence: float) -> list[IccForm]:
    """A form of one rating and one of k, with what does not depend on their values."""
    return [
        IccForm(
            form=f"ICC({number},{size})",
            confidence=confidence,
            k=anova.k,
            n_items=anova.n_items,
            n_raters=anova.n_raters,
            dropped=anova.dropped,
            notes=anova.notes,
            reason=anova.reason,
        )
        for size in ("1", "k")
    ]


def _forms(
    facts: list[IccForm],
    anova: Anova,
    values: tuple[Floats, Floats],
    bounds: tuple[tuple[float, ...], ...],
    samples: tuple[Floats, Floats] | None,
) -> list[IccForm]:
    from scipy.special import fdtrc

    f = _f_ratio(anova)
    p = math.nan if f == math.inf else float(fdtrc(anova.df1, anova.df2, f))
    forms = []
    for i, form in enumerate(facts):
        form = replace(form, value=float(values[i]), f=f, df1=anova.df1, df2=anova.df2, p=p)
        low, high = bounds[i]
        if math.isnan(form.value):
            form = replace(form, reason=_why_undefined(anova))
        else:
            unbounded = math.isnan(low) or math.isnan(high)
            why = "no interval: mean squares like these leave it unbounded"
            if form.value == 1:
                why = _CONSTANT if anova.raters > 0 else _NO_NOISE
            form = replace(
                form,
                low=low,
                high=high,
                boot=percentile_interval(samples[i], form.confidence) if samples else None,
                reason=why if unbounded else "",
            )
        forms.append(form)
    return forms


def _why_undefined(anova: Anova) -> str:
    if anova.between == 0 and anova.noise == 0:
        return "the ratings do not vary"
    if anova.between == 0:
        return "the items' mean ratings do not vary"
    return "the estimated total variance is not positive"
