"""How often each value was given: per criterion, by system and by rater."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from palaver.studies.judgements import Floats, Ints, Judgements
from palaver.studies.rankings import unit_of
from palaver.studies.raters import SHOWN
from palaver.studies.results import CriterionSummary, Distribution

MAX_BINS = 12


def summarise(judged: Judgements) -> CriterionSummary:
    """Counts, range and distributions of one criterion."""
    place, labels = _bins(judged)
    counts = np.bincount(judged.rater, minlength=len(judged.raters))
    busiest = sorted(range(len(judged.raters)), key=lambda r: (-counts[r], judged.raters[r]))[:SHOWN]
    system, at = judged.system, place
    if judged.treatment.kind == "pair":  # a win of one is a loss of the other
        system, at = np.r_[judged.system, judged.against], np.r_[place, 2 - place]
    systems = [
        Distribution(criterion=judged.criterion, name=name, counts=_count(at[system == i], len(labels)))
        for i, name in enumerate(judged.systems)
    ]
    raters = [
        Distribution(
            criterion=judged.criterion,
            name=judged.raters[r],
            counts=_count(place[judged.rater == r], len(labels)),
        )
        for r in busiest
    ]
    nominal = judged.treatment.kind != "number"
    known = judged.value[np.isfinite(judged.value)] if not nominal else np.empty(0)
    return CriterionSummary(
        criterion=judged.criterion,
        treated_as=judged.treatment.describe(judged.normalisation),
        unit=unit_of(judged) if not nominal else "choice",
        n_ratings=int(judged.value.size),
        n_items=len(judged.items),
        n_outputs=judged.n_units,
        n_raters=len(judged.raters),
        minimum=float(known.min()) if known.size else np.nan,
        maximum=float(known.max()) if known.size else np.nan,
        bins=labels,
        systems=tuple(systems),
        raters=tuple(raters),
        choices=_choices(judged) if judged.treatment.kind == "boxes" else (),
    )


def _count(place: Ints, n_bins: int) -> tuple[int, ...]:
    return tuple(int(n) for n in np.bincount(place[place >= 0], minlength=n_bins))


def _bins(judged: Judgements) -> tuple[Ints, tuple[str, ...]]:
    """The bin of each judgement and the bins' labels: single values while they are few, ranges otherwise."""
    value = judged.value
    if judged.treatment.kind == "boxes":
        return value.astype(np.int64), judged.texts
    if judged.treatment.kind == "pair":
        return np.round(value * 2).astype(np.int64), ("loss", "tie", "win")
    distinct, place = np.unique(value, return_inverse=True)
    scale = judged.treatment.scale
    low, high = getattr(scale, "low", None), getattr(scale, "high", None)
    stepped = scale is not None and scale.bounds.step == 1
    if low is not None and high is not None and stepped and high - low < MAX_BINS:
        return (value - low).astype(np.int64), tuple(f"{low + step:g}" for step in range(int(high - low) + 1))
    if distinct.size <= MAX_BINS:
        return place.astype(np.int64), tuple(f"{v:g}" for v in distinct)
    edges = _edges(value, logarithmic=judged.treatment.is_magnitude)
    place = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, edges.size - 2)
    labels = tuple(f"{a:.3g}–{b:.3g}" for a, b in pairwise(edges))
    return place.astype(np.int64), labels


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
