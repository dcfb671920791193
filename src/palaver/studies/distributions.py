"""How often each value was given: per criterion, by system and by rater."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from palaver.statistics.codes import distinct_values
from palaver.studies.judgements import Codes, Floats, Ints, Judgements
from palaver.studies.rankings import unit_of
from palaver.studies.raters import busiest_raters
from palaver.studies.results import CriterionSummary, Distribution

MAX_BINS = 12


def summarise(judged: Judgements) -> CriterionSummary:
    """Counts, range and distributions of one criterion."""
    place, labels = _bins(judged)
    by_system = _count(judged.system, len(judged.systems), place, len(labels))
    if judged.treatment.kind == "pair":  # a win of one is a loss of the other
        by_system += _count(judged.against, len(judged.systems), 2 - place, len(labels))
    by_rater = _count(judged.rater, len(judged.raters), place, len(labels))
    numeric = judged.treatment.kind == "number"
    return CriterionSummary(
        criterion=judged.criterion,
        treated_as=judged.treatment.describe(judged.normalisation),
        unit=unit_of(judged) if numeric else "choice",
        n_ratings=int(judged.value.size),
        n_items=len(judged.items),
        n_outputs=judged.n_units,
        n_raters=len(judged.raters),
        minimum=float(judged.value.min()) if numeric else np.nan,
        maximum=float(judged.value.max()) if numeric else np.nan,
        bins=labels,
        systems=tuple(_distribution(judged, name, by_system[i]) for i, name in enumerate(judged.systems)),
        raters=tuple(_distribution(judged, judged.raters[r], by_rater[r]) for r in busiest_raters(judged)),
        choices=_choices(judged) if judged.treatment.kind == "boxes" else (),
    )


def _distribution(judged: Judgements, name: str, counts: Ints) -> Distribution:
    return Distribution(criterion=judged.criterion, name=name, counts=tuple(counts.tolist()))


def _count(group: Codes, n_groups: int, place: Codes, n_bins: int) -> Ints:
    """How often each bin occurs in each group, (groups, bins)."""
    cell = group * np.int64(n_bins) + place
    return np.bincount(cell, minlength=n_groups * n_bins).reshape(n_groups, n_bins)


def _bins(judged: Judgements) -> tuple[Codes, tuple[str, ...]]:
    """The bin of each judgement and the bins' labels: single values while they are few, ranges otherwise."""
    value = judged.value
    if judged.treatment.kind == "boxes":
        return value.astype(np.int32), judged.texts
    if judged.treatment.kind == "pair":
        return np.round(value * 2).astype(np.int32), ("loss", "tie", "win")
    scale = judged.treatment.scale
    low, high = getattr(scale, "low", None), getattr(scale, "high", None)
    stepped = scale is not None and scale.bounds.step == 1
    if low is not None and high is not None and stepped and high - low < MAX_BINS:
        return (value - low).astype(np.int32), tuple(f"{low + step:g}" for step in range(int(high - low) + 1))
    distinct, code = distinct_values(value)
    if distinct.size <= MAX_BINS:
        return code.astype(np.int32), tuple(f"{v:g}" for v in distinct)
    edges = _edges(value, logarithmic=judged.treatment.is_magnitude)
    place = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, edges.size - 2)
    labels = tuple(f"{a:.3g}–{b:.3g}" for a, b in pairwise(edges))
    return place.astype(np.int32), labels


def _edges(value: Floats, *, logarithmic: bool) -> Floats:
    """Equal steps over the middle 98% (equal ratios for magnitudes); the outer bins take the rest."""
    low, high = np.quantile(value, [0.01, 0.99])
    if high <= low:
        low, high = value.min(), value.max()
    if logarithmic and low > 0:
        return np.geomspace(low, high, MAX_BINS + 1)
    return np.linspace(low, high, MAX_BINS + 1)


def _choices(judged: Judgements) -> tuple[tuple[str, tuple[tuple[str, float], ...]], ...]:
    """For each system, the share of its ratings in which each box is ticked."""
    ticked = {option: judged.ticked(option) for option in judged.treatment.options}
    return tuple(
        (name, tuple((option, float(on[judged.system == i].mean())) for option, on in ticked.items()))
        for i, name in enumerate(judged.systems)
        if (judged.system == i).any()
    )
