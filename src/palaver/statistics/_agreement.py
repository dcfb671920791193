"""What the agreement statistics share: the ratings they accept, grouped by item, and what results say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import MANY, Floats, Interval, Ints, pays_to_fold
from palaver.tabular import Tabular, columns_of, show_number

_MOST_STEPS = 50
"""A scale of more values does not repeat its patterns; its keys would not fit a double either."""
_CHUNK = 2**20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Agreement(Tabular):
    """A measure of agreement; `reason` says why `value`, or else the interval, is nan where it is."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float
    boot: Interval | None = None
    """Percentile interval over resampled items, where replicates were asked for."""
    n_items: int
    n_raters: int
    """Distinct raters; the largest number of ratings of an item where raters are not known."""
    dropped: int
    notes: tuple[str, ...]
    reason: str = ""

    @property
    def measure(self) -> str:
        """What was measured, in a few words."""
        return ""

    def _headline(self) -> str:
        return f"{self.measure} = {interval_text(self)}; {self.n_items:,} items, {self.n_raters:,} raters"

    def _tables(self) -> dict[str, Any]:
        return {
            "agreement": {"measure": [self.measure], **columns_of(type(self), [self], leave_out=("boot",))}
        }


def interval_text(result: Any) -> str:
    """`0.62, 95% 0.41 to 0.80`, or why there is no value."""
    if math.isnan(result.value):
        return f"undefined ({result.reason})"
    if math.isnan(result.low):
        return show_number(result.value)
    return (
        f"{show_number(result.value)}, {result.confidence:.0%} "
        f"{show_number(result.low)} to {show_number(result.high)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatedItems:
    """Ratings by item, each item's `times` over: items with the same ratings may stand here as one."""

    item: Ints
    """Codes 0 .. n-1, one per rating."""
    value: Floats
    times: Floats | None
    """How many items have these ratings, one number per code; None where each code is one item."""
    n_codes: int

    @property
    def n_items(self) -> int:
        return self.n_codes if self.times is None else int(self.times.sum())

    def count(self, chosen: NDArray[np.bool_]) -> int:
        """How many items the chosen codes stand for."""
        return int(chosen.sum() if self.times is None else self.times[chosen].sum())

    def total(self, by_code: Floats | Ints) -> float:
        """The sum over items of a number that each code has."""
        return float(by_code.sum() if self.times is None else (by_code * self.times).sum())

    @property
    def weights(self) -> Floats | None:
        """How often each rating counts; None for once."""
        return None if self.times is None else self.times[self.item]

    def only(self, chosen: NDArray[np.bool_]) -> RatedItems:
        """The chosen codes, numbered anew."""
        if chosen.all():
            return self
        rows = chosen[self.item]
        return RatedItems(
            item=(np.cumsum(chosen) - 1)[self.item[rows]],
            value=self.value[rows],
            times=None if self.times is None else self.times[chosen],
            n_codes=int(chosen.sum()),
        )


def rated_items(item: Ints, value: Floats, n_items: int) -> RatedItems:
    """Group ratings by item, and items by their ratings where many have the same.

    An item's pattern (how often it got each value) is one number in base m + 1, m being the most ratings
    of an item.
    """
    plain = RatedItems(item=item, value=value, times=None, n_codes=n_items)
    if n_items < MANY or np.unique(value[:MANY]).size > _MOST_STEPS:
        return plain
    values = np.unique(value)
    base = int(np.bincount(item, minlength=n_items).max()) + 1
    if values.size > _MOST_STEPS or base**values.size > 2**53:
        return plain
    digits = float(base) ** np.arange(values.size)
    keys = np.zeros(n_items)
    for begin in range(0, value.size, _CHUNK):  # in chunks, to save memory
        rows = slice(begin, begin + _CHUNK)
        added = digits[np.searchsorted(values, value[rows])]
        keys += np.bincount(item[rows], added, minlength=n_items)
    patterns, times = np.unique(keys, return_counts=True)
    if not pays_to_fold(patterns.size, n_items):
        return plain
    counts = patterns[:, None] // digits % base  # (patterns, values)
    pattern, place = np.nonzero(counts)
    repeats = counts[pattern, place].astype(np.int64)
    return RatedItems(
        item=np.repeat(pattern, repeats),
        value=np.repeat(values[place], repeats),
        times=times.astype(np.float64),
        n_codes=patterns.size,
    )


def wide_table(ratings: ArrayLike) -> Floats:
    """`ratings` as a float table of (items, raters), nan where there is none."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings must be a table of (items, raters), not of shape {table.shape}")
    return table


def long_columns(**columns: ArrayLike) -> list[NDArray[np.generic]]:
    """One-dimensional columns of equal length, in the order given."""
    arrays = [np.asarray(column) for column in columns.values()]
    if any(a.ndim != 1 for a in arrays) or len({a.size for a in arrays}) > 1:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in zip(columns, arrays, strict=True))
        raise ValueError(f"expected 1-D columns of one length, found {shapes}")
    return arrays


def notes_of(counts: Mapping[str, int]) -> tuple[str, ...]:
    """A note for every count that is not zero; the texts start with a plural.

    >>> notes_of({"items without a rating": 1, "ratings missing": 3, "raters without a rating": 0})
    ('1 item without a rating', '3 ratings missing')
    """
    notes = []
    for text, count in counts.items():
        noun, _, rest = text.partition(" ")
        if count:
            notes.append(f"{count} {noun.removesuffix('s') if count == 1 else noun} {rest}")
    return tuple(notes)
