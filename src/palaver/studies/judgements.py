"""One criterion's ratings as arrays of codes, the form in which statistics take them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.statistics.normalise import normalise
from palaver.studies.ratings import RatingTable
from palaver.studies.treatment import Treatment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Equally long arrays, one entry per judgement. Codes index `items`, `systems` and `raters`."""

    criterion: str
    treatment: Treatment
    normalisation: str
    item: Ints
    system: Ints
    against: Ints
    """-1 where there is no other system."""
    rater: Ints
    unit: Ints
    """What was judged: an output (item x system), or an unordered pair of outputs."""
    value: Floats
    """As given; for boxes a code of the combination, for pairs 1, 0.5 or 0."""
    score: Floats
    """What statistics use; higher is better. For pairs it is about the pair's first system by name."""
    seconds: Floats
    texts: tuple[str, ...]
    """What the codes in `value` stand for, for boxes."""
    items: tuple[str, ...]
    systems: tuple[str, ...]
    raters: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def n_units(self) -> int:
        return int(self.unit.max()) + 1 if self.unit.size else 0

    def ticked(self, option: str) -> NDArray[np.bool_]:
        """For boxes: whether `option` is ticked in each judgement."""
        holds = np.array([option in text.split("|") for text in self.texts])
        return holds[self.value.astype(np.int64)]


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """How intervals and rank groups are found."""

    confidence: float
    n_replicates: int
    rng: np.random.Generator


def judgements_of(table: RatingTable, criterion: str, normalisation: str = "auto") -> Judgements:
    """Take one criterion out of the table and normalise it; `"auto"` leaves that to the scale.

    Choices (nominal criteria) have no size that could be normalised and stay as they are.
    """
    treatment = table.treatments[criterion]
    frame = table.of(criterion)
    item, items = _codes(frame["item"])
    rater, raters = _codes(frame["rater"])
    both = pl.concat([frame["system"], frame["against"].drop_nulls()])
    names = tuple(sorted(both.cast(pl.String).unique().to_list()))
    system = _codes_in(frame["system"], names)
    against = _codes_in(frame["against"], names)
    value = frame["value"].to_numpy().astype(np.float64)
    texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    used = "raw"
    if treatment.kind == "pair":
        value = _outcomes(frame, value)
        score = np.where(system < against, value, 1 - value)
        unit = _dense(item, np.minimum(system, against), np.maximum(system, against))
    else:
        unit = _dense(item, system)
        if treatment.kind == "boxes":
            value, texts = _combinations(frame, treatment)
            score = value
        else:
            if treatment.level != "nominal":
                used = treatment.default_normalisation if normalisation == "auto" else normalisation
            reference = treatment.reference if used == "ratio" else None
            normal = normalise(value, rater, used, reference=reference)
            score = normal.values
            notes = tuple(f"{criterion}: {note}" for note in normal.notes)
    return Judgements(
        criterion,
        treatment,
        used,
        item,
        system,
        against,
        rater,
        unit,
        value,
        score,
        frame["seconds"].to_numpy().astype(np.float64),
        texts,
        items,
        names,
        raters,
        notes,
    )


def _codes(column: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Dense codes in the order of the names."""
    names = tuple(sorted(column.cast(pl.String).unique().to_list()))
    return _codes_in(column, names), names


def _codes_in(column: pl.Series, names: tuple[str, ...]) -> Ints:
    """Codes in `names`, by way of the category codes, so that no long column of text is compared."""
    distinct = column.unique().drop_nulls()
    place = {name: i for i, name in enumerate(names)}
    physical = distinct.to_physical().to_numpy()
    lookup = np.full(int(physical.max(initial=0)) + 1, -1, dtype=np.int64)
    lookup[physical] = [place[name] for name in distinct.cast(pl.String).to_list()]
    filled = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    return np.where(filled < 0, -1, lookup[np.maximum(filled, 0)])


def _dense(*codes: Ints) -> Ints:
    combined = np.zeros(codes[0].size, dtype=np.int64)
    for code in codes:
        combined = combined * (int(code.max(initial=0)) + 1) + code
    return np.unique(combined, return_inverse=True)[1].astype(np.int64)


def _outcomes(frame: pl.DataFrame, value: Floats) -> Floats:
    words = frame["text"].cast(pl.String).str.to_lowercase()
    spoken = words.replace_strict(
        {"win": 1.0, "tie": 0.5, "loss": 0.0}, default=None, return_dtype=pl.Float64
    )
    return np.where(np.isnan(value), spoken.to_numpy().astype(np.float64), value)


def _combinations(frame: pl.DataFrame, treatment: Treatment) -> tuple[Floats, tuple[str, ...]]:
    """Each distinct set of ticked boxes gets a code; "missing\\nadded" and "added|missing" are the same."""
    texts = frame["text"].cast(pl.String)
    order = {option: i for i, option in enumerate(treatment.options)}
    plain: dict[str, str] = {}
    for text in texts.unique().to_list():
        parts = {part.strip() for part in text.replace("\n", "|").split("|") if part.strip()}
        plain[text] = "|".join(sorted(parts, key=lambda part: order.get(part, len(order))))
    names = tuple(sorted(set(plain.values())))
    place = {name: i for i, name in enumerate(names)}
    codes = texts.replace_strict({t: place[p] for t, p in plain.items()}, return_dtype=pl.Int64)
    return codes.to_numpy().astype(np.float64), names
