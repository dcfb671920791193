"""A pilot study: how far real ratings vary, to plan the real study with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from palaver.errors import DataError, UserError, nearest
from palaver.statistics.components import Components, estimate_components
from palaver.statistics.power import Draw
from palaver.studies.judgements import judgements_of
from palaver.studies.ratings import ASKED, RatingTable
from palaver.studies.simulate import Habits


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """What a criterion's ratings vary by, in the unit of its scores."""

    criterion: str
    systems: tuple[str, ...]
    components: Components
    is_ratio: bool
    """Whether scores are logarithms of magnitudes, which have no points."""
    scale: str = ""
    """What the ratings were taken for, in words."""
    notes: tuple[str, ...] = ()

    @property
    def rater_unit(self) -> float:
        """A rater unit in the unit of the scores: noise is as many of them as that of a simulated rater."""
        noise = self.components.noise
        if math.isnan(noise):
            noise = self.components.item_system
        return noise / Habits().noise

    @property
    def best_difference(self) -> float:
        """How far the two best systems lie apart."""
        second, first = sorted(self.components.means)[-2:]
        return first - second

    def draw(self, difference: float) -> Draw:
        """Studies with the pilot's variances, of two systems `difference` apart in scores."""
        return self.components.draw(difference)


def read_pilot(table: RatingTable, criterion: str | None = None) -> Pilot:
    """The variances of one criterion, or of the first that has numbers."""
    able = [
        name
        for name in table.criteria
        if table.treatments[name].kind == "number" and table.kinds[name] in ASKED
    ]
    named = ", ".join(table.hashes)
    if criterion is not None and criterion not in table.criteria:
        raise UserError(
            f"{named} has no criterion {criterion!r}{nearest(criterion, list(table.criteria))}",
            f"it has {', '.join(table.criteria)}",
        )
    if criterion is None and not able:
        raise DataError(f"{named}: power is found for ratings that are numbers, and there are none by people")
    chosen = criterion or able[0]
    if table.treatments[chosen].kind != "number":
        raise UserError(f"power is found for ratings that are numbers, {chosen!r} has none")
    judged = judgements_of(table, chosen)
    try:
        components = estimate_components(judged.score, judged.item, judged.system, judged.rater)
    except ValueError as error:
        raise DataError(f"{named}, {chosen}: {error}") from None
    return Pilot(
        criterion=chosen,
        systems=judged.systems,
        components=components,
        is_ratio=judged.normalisation != "raw",
        scale=judged.treatment.describe(judged.normalisation),
        notes=(*table.reading.notes, *judged.notes, *components.notes),
    )
