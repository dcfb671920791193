"""Which system is better: paired bootstrap, rank groups, and comparisons made from scores.

The paired bootstrap over items is that of Koehn (2004), "Statistical significance tests for machine
translation evaluation", section 3: a beats b at 95% when a's mean is higher in at least 95% of the
replicates. It is one-sided. Rank groups are the clusters of the WMT shared tasks (Bojar et al. 2013,
section 3.2): a line is drawn between two places exactly when every system above beats every system below.

With few items the bootstrap is surer than anybody can be: of two items on which one system is ahead every
draw says so, as it does of two equal systems half of the time. So no share is above 1 - 1 / 2^n, n being the
items that either has: as often as that a fair coin falls on one side n times in a row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics._agreement import notes_of
from palaver.statistics.bootstrap import (
    Floats,
    Interval,
    Ints,
    Rng,
    check_fraction,
    check_replicates,
    percentile_interval,
    resample_sums,
)
from palaver.statistics.codes import dense_codes
from palaver.tabular import Tabular

Codes = NDArray[np.int32]

MOST_CELLS = 2**25
"""A table of items and kinds of comparisons may have this many cells (256 MB)."""
_ROUNDING = 1e-11
"""Two means closer than this part of the largest score are tied: sums of equal values in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Systems that share the places `first` to `last` (counted from 1), best mean first."""

    first: int
    last: int
    systems: tuple[str, ...]

    @property
    def label(self) -> str:
        """`1.–2. Slug2Slug + TGen`, or `3. Sheffield` for a place of its own."""
        return f"{self.places} {' + '.join(self.systems)}"

    @property
    def places(self) -> str:
        """`1.–2.`, or `3.` for a place of its own."""
        return f"{self.first}." if self.first == self.last else f"{self.first}.–{self.last}."


def format_groups(groups: Sequence[RankGroup]) -> str:
    """`1.–2. Slug2Slug + TGen, 3. Sheffield`."""
    return ", ".join(group.label for group in groups)


def rank_groups(
    means: ArrayLike, better: ArrayLike, systems: Sequence[str], confidence: float = 0.95
) -> tuple[RankGroup, ...]:
    """Places of `systems`, best first, from the fraction of replicates in which row beat column.

    A pair is separated when its fraction is at least `confidence` (one-sided); an undefined fraction
    separates nothing. Equal means are ordered by name. A system whose mean is nan has no place.

    >>> better = [[0.5, 0.6, 1.0], [0.4, 0.5, 0.97], [0.0, 0.03, 0.5]]
    >>> format_groups(rank_groups([3.0, 2.9, 1.0], better, ["a", "b", "c"]))
    '1.–2. a + b, 3. c'
    """
    check_fraction("confidence", confidence)
    values = np.asarray(means, dtype=np.float64)
    fractions = np.asarray(better, dtype=np.float64)
    n = len(systems)
    if values.shape != (n,) or fractions.shape != (n, n):
        raise ValueError(
            f"{n} systems need means of shape {(n,)} and fractions of shape {(n, n)}, "
            f"not {values.shape} and {fractions.shape}"
        )
    placed = [i for i in range(n) if not np.isnan(values[i])]
    order = sorted(placed, key=lambda i: (-values[i], systems[i]))
    with np.errstate(invalid="ignore"):
        separated = fractions[np.ix_(order, order)] >= confidence
    groups = []
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or bool(separated[:end, end:].all()):
            names = tuple(systems[i] for i in order[start:end])
            groups.append(RankGroup(first=start + 1, last=end, systems=names))
            start = end
    return tuple(groups)


def win_fractions(samples: ArrayLike, tolerance: float = 0.0) -> Floats:
    """From (replicates, systems): the fraction of replicates in which row is above column, ties half.

    A replicate in which either is undefined does not count for that pair.
    """
    values = np.asarray(samples, dtype=np.float64)
    fractions = np.empty((values.shape[1], values.shape[1]))
    for i in range(values.shape[1]):  # one system at a time: memory stays at replicates x systems
        gap = values[:, i, None] - values
        above, tied = (gap > tolerance).sum(0), (np.abs(gap) <= tolerance).sum(0)
        defined = np.isfinite(gap).sum(0)
        fractions[i] = np.where(defined > 0, (above + 0.5 * tied) / np.maximum(defined, 1), np.nan)
    return fractions


def limit_wins(wins: Floats, n_items: ArrayLike) -> Floats:
    """Shares no nearer to 0 and 1 than so many items of each system allow."""
    counts = np.asarray(n_items, dtype=np.float64)
    least = 0.5 ** np.maximum(1.0, np.minimum(counts[:, None], counts))
    return np.clip(wins, least, 1 - least)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ranking(Tabular):
    """What bootstrap samples of items say of systems: intervals, how often each beat each, and the places."""

    systems: tuple[str, ...]
    samples: Floats
    """Scores, (replicates, systems); nan where a replicate gives a system none."""
    intervals: tuple[Interval, ...]
    wins: Floats
    """Fraction of replicates in which the row is above the column, ties half; within `limit_wins`."""
    groups: tuple[RankGroup, ...]
    n_items: int
    n_replicates: int
    confidence: float
    reason: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def from_samples(
        cls,
        samples: Floats,
        score: Floats,
        systems: Sequence[str],
        *,
        wins: Floats,
        confidence: float,
        **more: Any,
    ) -> Self:
        """Rank systems by `score`; `more` are the other fields."""
        return cls(
            samples=samples,
            systems=tuple(systems),
            intervals=tuple(percentile_interval(column, confidence) for column in samples.T),
            wins=wins,
            groups=rank_groups(score, wins, systems, confidence),
            n_replicates=len(samples),
            confidence=confidence,
            **more,
        )

    @property
    @abstractmethod
    def scores(self) -> Floats:
        """What the systems are ranked by, in the order of `systems`."""

    def _headline(self) -> str:
        return f"{format_groups(self.groups) or self.reason}; {self.n_items:,} items"

    def _tables(self) -> dict[str, Any]:
        place = {system: group.places for group in self.groups for system in group.systems}
        ranked = [*place, *(system for system in self.systems if system not in place)]
        order = [self.systems.index(system) for system in ranked]
        return {
            "ranking": {
                "system": ranked,
                "place": [place.get(system, "") for system in ranked],
                "score": self.scores[order],
                "low": [self.intervals[i].low for i in order],
                "high": [self.intervals[i].high for i in order],
            },
            "wins": {"system": list(self.systems), **dict(zip(self.systems, self.wins.T, strict=True))},
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PairedBootstrap(Ranking):
    """Systems by their means over the same items."""

    means: Floats
    dropped: int = 0

    @property
    def scores(self) -> Floats:
        return self.means


def paired_bootstrap(
    scores: ArrayLike,
    systems: Sequence[str],
    *,
    by: ArrayLike | None = None,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    rng: Rng,
) -> PairedBootstrap:
    """Resample the items of `scores` (items x systems, nan where there is none) and compare the means.

    Items with the same code in `by` are drawn together. A system's mean is over its own items. A system with
    fewer than two items has no interval and is separated from nobody: its mean would be the same in every
    replicate.
    """
    table = np.asarray(scores, dtype=np.float64)
    n_systems = len(systems)
    if table.ndim != 2 or table.shape[1] != n_systems:
        raise ValueError(f"scores must be (items, {n_systems} systems), not of shape {table.shape}")
    if np.isinf(table).any():
        raise ValueError("scores must be finite, or nan where there is none; found inf")
    check_fraction("confidence", confidence)
    check_replicates(n_replicates)
    known = ~np.isnan(table)
    kept = known.any(axis=1)
    table, known = table[kept], known[kept]
    counts = known.sum(axis=0)
    drawn = None
    n_drawn = counts
    if by is not None:
        codes, n_groups = dense_codes("by", np.asarray(by)[kept])
        if n_groups < len(table):
            drawn = codes
            n_drawn = (_sums_by(known, drawn, n_groups) > 0).sum(axis=0)
    one, more = ("scored item", "scored items")
    if drawn is not None:
        one, more = ("scored group of items", "scored groups of items")
    usable = n_drawn >= 2
    dropped = int((~kept).sum())
    notes = [*notes_of({"items without any score": dropped})]
    for name, count in zip(systems, n_drawn.tolist(), strict=True):
        if count < 2:
            notes.append(f"{name} has {count or 'no'} {one if count == 1 else more}")
    # Centred, the sums keep their last digits whatever constant the scores carry.
    centre = float(table[known].mean()) if known.any() else 0.0
    centred = np.where(known, table - centre, 0.0)
    means = np.where(counts > 0, centred.sum(axis=0) / np.maximum(counts, 1) + centre, np.nan)
    if usable.any():
        samples = _replicate_means(centred, known, drawn, n_replicates, np.random.default_rng(rng))
        samples[:, ~usable] = np.nan
        reason = ""
    else:
        samples = np.full((n_replicates, n_systems), np.nan)
        reason = f"no system has two {more}: there is nothing to resample"
    tolerance = _ROUNDING * float(np.abs(centred).max(initial=0.0))
    return PairedBootstrap.from_samples(
        samples + centre,
        means,
        systems,
        wins=limit_wins(win_fractions(samples, tolerance), n_drawn),
        confidence=confidence,
        means=means,
        n_items=int(kept.sum()) if drawn is None else n_groups,
        dropped=dropped,
        reason=reason,
        notes=tuple(notes),
    )


def _replicate_means(
    centred: Floats, known: NDArray[np.bool_], by: Ints | None, n_replicates: int, rng: np.random.Generator
) -> Floats:
    if by is None and known.all():
        return resample_sums(centred, n_replicates, rng) / len(centred)
    table = np.hstack([centred, known])
    if by is not None:
        table = _sums_by(table, by, int(by.max()) + 1)
    sums = resample_sums(table, n_replicates, rng)
    totals, counts = np.hsplit(sums, 2)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def _sums_by(table: NDArray[Any], by: Ints, n_groups: int) -> Floats:
    return np.column_stack([np.bincount(by, column, minlength=n_groups) for column in table.T])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparisons:
    """Pairs of systems (integer codes), who won (1: first, -1: second, 0: draw) and on which screen."""

    first: Codes
    second: Codes
    outcome: NDArray[np.int8]
    screen: Codes
    dropped: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.first.size)


def as_comparisons(
    first: ArrayLike, second: ArrayLike, outcome: ArrayLike, screen: ArrayLike | None = None
) -> Comparisons:
    """Check and pack arrays; without `screen`, each comparison is a screen of its own."""
    a, b = _codes(first, "first"), _codes(second, "second")
    result = np.asarray(outcome)
    where = np.arange(a.size, dtype=np.int32) if screen is None else _codes(screen, "screen")
    sizes = {a.size, b.size, result.size, where.size}
    if len(sizes) > 1 or result.ndim != 1:
        raise ValueError(f"first, second, outcome and screen must be equally long; found {sorted(sizes)}")
    if result.size and (result.dtype.kind not in "iu" or result.min() < -1 or result.max() > 1):
        raise ValueError("outcome must be whole numbers: 1 (first won), 0 (draw) or -1 (second won)")
    if (a == b).any():
        raise ValueError(f"a system is compared with itself (comparison {int((a == b).argmax())})")
    return Comparisons(first=a, second=b, outcome=result.astype(np.int8, copy=False), screen=where)


def comparisons_from_scores(screen: ArrayLike, system: ArrayLike, score: ArrayLike) -> Comparisons:
    """Every pair of systems on a screen (one rater's judgement of one item) as one comparison.

    One row per judged output: integer codes of screen and system, and a score where higher is better.
    Rows without a score are dropped and counted. Comparisons come in the order of the screens' codes.
    """
    from palaver.statistics._ranking_kernels import compare_rows

    where, who = _codes(screen, "screen"), _codes(system, "system")
    value = np.asarray(score, dtype=np.float64)
    if not where.shape == who.shape == value.shape:
        raise ValueError(
            f"screen, system and score must be equally long; found {where.size}, {who.size}, {value.size}"
        )
    known = ~np.isnan(value)
    dropped = int(value.size - known.sum())
    if dropped:
        where, who, value = where[known], who[known], value[known]
    if (where[1:] < where[:-1]).any():
        order = np.argsort(where, kind="stable")
        where, who, value = where[order], who[order], value[order]
    first, second, outcome, screens, n_self = compare_rows(where, who, value)
    return Comparisons(
        first=first,
        second=second,
        outcome=outcome,
        screen=screens,
        dropped=dropped,
        notes=notes_of({"rows without a score": dropped, "pairs of a system with itself": n_self}),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WinMatrix:
    """How often row beat column, and how often the two drew (symmetric)."""

    wins: Floats
    ties: Floats

    @property
    def n_systems(self) -> int:
        return int(self.wins.shape[0])

    @property
    def n_comparisons(self) -> float:
        return float(self.wins.sum() + self.ties.sum() / 2)

    @property
    def games(self) -> Floats:
        """How many comparisons each system took part in."""
        return np.asarray((self.wins + self.wins.T + self.ties).sum(axis=1))


def win_matrix(comparisons: Comparisons, n_systems: int) -> WinMatrix:
    """Add up comparisons; no system's code may reach `n_systems`."""
    from palaver.statistics._ranking_kernels import tally

    check_codes(comparisons, n_systems)
    cells = np.zeros(n_systems * n_systems * 3)
    tally(comparisons.first, comparisons.second, comparisons.outcome, n_systems, cells)
    lost, drawn, won = np.moveaxis(cells.reshape(n_systems, n_systems, 3), -1, 0)
    return WinMatrix(wins=won + lost.T, ties=drawn + drawn.T)


def counts_by_item(comparisons: Comparisons, item: Ints, n_items: int, pair: Ints) -> Floats:
    """What each item's comparisons add to (pairs, 3) counts of left's wins, right's wins and ties, flattened.

    `pair[a, b]` is the number of the pair of a and b, either way round.
    """
    from palaver.statistics._ranking_kernels import tally_items

    table = np.zeros((n_items, 3 * (int(pair.max(initial=-1)) + 1)))
    tally_items(comparisons.first, comparisons.second, comparisons.outcome, item, pair, table)
    return table


def items_of_systems(comparisons: Comparisons, item: Ints, n_systems: int) -> Ints:
    """On how many items each system was compared."""
    seen = [item.astype(np.int64) * n_systems + codes for codes in (comparisons.first, comparisons.second)]
    return np.bincount(np.unique(np.concatenate(seen)) % n_systems, minlength=n_systems)


def number_pairs(left: Ints, right: Ints, n_systems: int) -> Ints:
    """A table of which pair two systems are."""
    pair = np.zeros((n_systems, n_systems), dtype=np.int64)
    pair[left, right] = pair[right, left] = np.arange(left.size)
    return pair


def check_codes(comparisons: Comparisons, n_systems: int) -> None:
    """Raise where a system's code is not below `n_systems` (the compiled loops do not look)."""
    for name, codes in (("first", comparisons.first), ("second", comparisons.second)):
        if codes.size and not 0 <= codes.min() <= codes.max() < n_systems:
            raise ValueError(
                f"{name} must hold codes from 0 to {n_systems - 1}; found {codes.min()} to {codes.max()}"
            )


def _codes(values: ArrayLike, name: str) -> Codes:
    """Integer codes as int32."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a row of integer codes, not {array.dtype} of shape {array.shape}")
    if array.size and not 0 <= array.min() <= array.max() < 2**31:
        raise ValueError(f"{name} must be codes from 0 to 2**31 - 1; found {array.min()} to {array.max()}")
    return array.astype(np.int32, copy=False)
