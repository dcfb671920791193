"""One criterion's ratings as arrays of codes, the form in which statistics take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.schema import Pairwise
from palaver.statistics.codes import dense_codes
from palaver.statistics.normalise import normalise
from palaver.studies.ratings import RatingTable
from palaver.studies.treatment import Treatment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Key = Literal["item", "system", "rater"]

_COLUMNS = ("item", "system", "against", "rater", "value", "text", "seconds", "sampling_probability")


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Equally long arrays, one entry per judgement. Codes index `items`, `systems` and `raters`."""

    criterion: str
    treatment: Treatment
    normalisation: str
    item: Codes
    system: Codes
    against: Codes
    """-1 where there is no other system."""
    rater: Codes
    dialogue: Codes
    """What items may share: the context, or the item itself where it has none. Drawn and left out as one."""
    unit: Codes
    """What was judged: an output (item x system), or an unordered pair of outputs."""
    value: Floats
    """As given; for boxes a code of the combination, for pairs 1, 0.5 or 0."""
    score: Floats
    """What statistics use; higher is better. For pairs it is about the pair's first system by name."""
    seconds: NDArray[np.float32]
    texts: tuple[str, ...]
    """What the codes in `value` stand for, for boxes."""
    items: pl.Series
    """Sorted names. There may be millions, so they stay a column."""
    systems: tuple[str, ...]
    raters: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())
    sampling: Floats | None = None
    """The probability with which each judgement's item was drawn; None where all had the same."""

    @property
    def n_units(self) -> int:
        return int(self.unit.max()) + 1 if self.unit.size else 0

    def only(self, kept: NDArray[np.bool_]) -> Judgements:
        """Some of the judgements; codes and names stay."""
        names = ("item", "system", "against", "rater", "dialogue", "unit", "value", "score", "seconds")
        rows = {name: getattr(self, name)[kept] for name in names}
        return replace(self, **rows, sampling=None if self.sampling is None else self.sampling[kept])

    def ticked(self, option: str) -> NDArray[np.bool_]:
        """For boxes: whether `option` is ticked in each judgement."""
        holds = np.array([option in text.split("|") for text in self.texts])
        return holds[self.value.astype(np.int64)]


def judgements_of(table: RatingTable, criterion: str, normalisation: str = "auto") -> Judgements:
    """Take one criterion out of the table and normalise it; `"auto"` leaves that to the scale."""
    treatment = table.treatments[criterion]
    rows = table.frame.lazy()
    if len(table.criteria) > 1:
        rows = rows.filter(pl.col("criterion") == criterion)
    frame = rows.select(_COLUMNS).collect()
    (item,), items = _codes(frame["item"])
    (rater,), raters = _codes(frame["rater"])
    (system, against), systems = _codes(frame["system"], frame["against"])
    value = frame["value"].to_numpy()
    texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    used = normalisation_of(treatment, normalisation)
    if treatment.kind == "pair":
        value = _outcomes(frame, value)
        score = np.where(system < against, value, 1 - value)
        pair = np.minimum(system, against).astype(np.int64) * len(systems) + np.maximum(system, against)
        unit = _units(item, pair, len(systems) ** 2)
    else:
        unit = _units(item, system, len(systems))
        if treatment.kind == "boxes":
            value, texts = _combinations(frame, treatment)
            score = value
        else:
            reference = treatment.reference if used == "ratio" else None
            normal = normalise(value, rater, used, reference=reference)
            score = normal.values
            notes = tuple(f"{criterion}: {note}" for note in normal.notes)
    return Judgements(
        criterion=criterion,
        treatment=treatment,
        normalisation=used,
        item=item,
        system=system,
        against=against,
        rater=rater,
        dialogue=_dialogues(table, item, items),
        unit=unit,
        value=value,
        score=score,
        seconds=frame["seconds"].to_numpy().astype(np.float32, copy=False),
        texts=texts,
        items=items,
        systems=tuple(systems),
        raters=tuple(raters),
        notes=notes,
        sampling=_sampling(frame["sampling_probability"]),
    )


def _sampling(column: pl.Series) -> Floats | None:
    """An item without a probability was drawn surely."""
    if column.null_count() == len(column):
        return None
    return np.asarray(column.fill_null(1.0).cast(pl.Float64).to_numpy())


def contexts_of(table: RatingTable) -> dict[str, str]:
    """Item -> its context, for the items that have one."""
    frame = table.frame
    if frame["context"].null_count() == frame.height:
        return {}
    pairs = frame.filter(pl.col("context").is_not_null()).select("item", "context").unique("item")
    return dict(pairs.cast(pl.String).iter_rows())


def _dialogues(table: RatingTable, item: Codes, items: pl.Series) -> Codes:
    contexts = contexts_of(table)
    if not contexts:
        return item
    codes = items.replace(contexts).rank("dense").to_numpy().astype(np.int32) - 1
    return np.asarray(codes[item])


def normalisation_of(treatment: Treatment, normalisation: str) -> str:
    """The normalisation that a criterion gets when `normalisation` is asked for.

    Choices (nominal criteria) have no size that could be normalised and stay as they are.
    """
    if treatment.kind != "number" or treatment.level == "nominal":
        return "raw"
    return treatment.default_normalisation if normalisation == "auto" else normalisation


def shared_codes(judged: Sequence[Judgements], key: Key) -> tuple[list[Ints], int]:
    """For each criterion a table from its codes to codes that all criteria share, and how many those are."""
    names = [pl.Series(getattr(j, f"{key}s"), dtype=pl.String) for j in judged]
    if len(names) == 1:
        return [np.arange(len(names[0]))], len(names[0])
    union = pl.concat(names).unique().sort()
    return [union.search_sorted(own).to_numpy().astype(np.int64) for own in names], len(union)


def _codes(*columns: pl.Series) -> tuple[list[Codes], pl.Series]:
    """Codes in the sorted names of all the columns (-1 where there is no name), and those names.

    The names are looked up once for each category, so that no long column of text is compared.
    """
    distinct = [column.unique().drop_nulls() for column in columns]
    names = pl.concat([categories.cast(pl.String) for categories in distinct]).unique().sort()
    codes = []
    for column, categories in zip(columns, distinct, strict=True):
        if categories.is_empty():
            codes.append(np.broadcast_to(np.int32(-1), len(column)))
            continue
        physical = categories.to_physical().to_numpy()
        lookup = np.full(int(physical.max()) + 1, -1, dtype=np.int32)
        lookup[physical] = names.search_sorted(categories.cast(pl.String)).to_numpy()
        codes.append(lookup[column.to_physical().fill_null(0).to_numpy()])
        if column.null_count():
            codes[-1][column.is_null().to_numpy()] = -1
    return codes, names


def _units(item: Codes, part: NDArray[Any], n_parts: int) -> Codes:
    combined = item.astype(np.int64)
    combined *= n_parts
    combined += part
    return dense_codes("unit", combined)[0].astype(np.int32)


def _outcomes(frame: pl.DataFrame, value: Floats) -> Floats:
    words = frame["text"].cast(pl.String).str.to_lowercase()
    spoken = words.replace_strict(Pairwise.SCORES, default=None, return_dtype=pl.Float64)
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
