"""Variance components of ratings: how far items, raters, and systems from item to item, differ.

score = system + item + item x system + rater (on this item) + noise. Noise is what is left in a rater's
differences between outputs of one item, or, where nobody judged two outputs of an item, beside the rater's
own level. Moment estimates; a component that comes out negative is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palaver.statistics.bootstrap import Floats
from palaver.statistics.power import Draw, normal_draw

Codes = NDArray[np.integer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Standard deviations in the unit of the scores; nan where the design does not tell."""

    item: float
    rater: float
    item_system: float
    noise: float
    means: tuple[float, ...]
    """Of each system."""
    n_ratings: int
    notes: tuple[str, ...] = ()

    def draw(self, difference: float) -> Draw:
        """Studies of two systems that lie `difference` apart, with these deviations."""
        known = {name: value for name, value in self._deviations().items() if not math.isnan(value)}
        return normal_draw(difference, **{**dict.fromkeys(self._deviations(), 0.0), **known})

    def _deviations(self) -> dict[str, float]:
        return {
            "sd_item": self.item,
            "sd_rater": self.rater,
            "sd_item_system": self.item_system,
            "sd_noise": self.noise,
        }


def estimate_components(score: Floats, item: Codes, system: Codes, rater: Codes) -> Components:
    """From equally long arrays, one entry per rating; codes count from 0."""
    known = np.isfinite(score)
    score, item, system, rater = score[known], item[known], system[known], rater[known]
    if np.unique(item).size < 2 or np.unique(system).size < 2:
        raise ValueError("variances need at least two items and two systems")
    cell = _codes(item, system)
    block = _codes(item, rater)
    notes = []
    n_of_cell = np.bincount(cell)
    by_rater = _fit(score, cell, rater)
    adjusted = score - by_rater.second[rater] if by_rater.df else score
    noise = by_rater.variance
    if np.bincount(block).max() > 1:  # what a rater thinks of an item cancels between its outputs
        by_block = _fit(score, cell, block)
        noise = by_block.variance if by_block.df else noise
    means = np.bincount(cell, adjusted) / n_of_cell
    first = np.unique(cell, return_index=True)[1]
    between = _fit(means, item[first], system[first])
    if not between.df:
        raise ValueError("no item has outputs of two systems, so nothing can be compared within items")
    if math.isnan(noise):
        notes.append(
            "each output was rated once: what raters differ in counts as what systems differ in from item to "
            "item, so more raters per item do not seem to help"
        )
    raters = math.nan
    if by_rater.df:
        chance = by_rater.variance * float((1 / np.bincount(rater)[np.unique(rater)]).mean())
        raters = math.sqrt(max(0.0, float(by_rater.second[np.unique(rater)].var()) - chance))
    share = float((1 / n_of_cell).mean())
    item_system = max(0.0, between.variance - (0.0 if math.isnan(noise) else noise * share))
    return Components(
        item=math.sqrt(max(0.0, _between_groups(means, item[first], between.variance))),
        rater=raters,
        item_system=math.sqrt(item_system),
        noise=math.sqrt(noise),
        means=tuple((np.bincount(system, score) / np.maximum(1, np.bincount(system))).tolist()),
        n_ratings=score.size,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    second: Floats
    """The levels of the second factor."""
    variance: float
    """Of what neither factor explains; nan without a degree of freedom."""
    df: int


def _fit(values: Floats, first: Codes, second: Codes) -> _Fit:
    """Least squares of two factors without interaction."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import lsqr

    rows, n_first = np.arange(values.size), int(first.max()) + 1
    n = n_first + int(second.max()) + 1
    columns = np.r_[first, n_first + second]
    design = csr_array((np.ones(2 * values.size), (np.r_[rows, rows], columns)), (values.size, n))
    graph = csr_array((np.ones(values.size), (first, n_first + second)), (n, n))
    levels = np.unique(columns).size
    n_unused = n - levels
    rank = levels - (connected_components(graph, directed=False)[0] - n_unused)
    df = values.size - rank
    levels_of = lsqr(design, values - values.mean(), atol=1e-10, btol=1e-10)[0]
    rest = values - values.mean() - design @ levels_of
    variance = float(rest @ rest) / df if df > 0 else math.nan
    return _Fit(np.asarray(levels_of[n_first:]), variance, max(0, df))


def _between_groups(values: Floats, group: Codes, within: float) -> float:
    """Variance of the groups' means beyond what their sizes explain; 0 where that is not known."""
    n = np.bincount(group)
    used = n > 0
    means = np.bincount(group, values)[used] / n[used]
    if means.size < 2 or math.isnan(within):
        return 0.0
    return float(means.var(ddof=1) - within * (1 / n[used]).mean())


def _codes(*parts: Codes) -> Codes:
    """One code for each combination."""
    _, codes = np.unique(np.stack(parts), axis=1, return_inverse=True)
    return np.asarray(codes).ravel()
