"""What makes two ratings the same judgement: the later one counts; turns and repeats are told apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.readers.ratings import ORDER
from palaver.statistics.codes import dense_codes

KEYS = ("criterion", "item", "system", "against", "rater", "turn", "repeat")
"""What makes two rows of one kind the same judgement; the later one counts."""

_PARTS = {
    ("item", "turn"): "ratings of single turns: each turn counts as an item of its own (item #turn)",
    ("rater", "repeat"): "repeated ratings: each repeat counts as a rater of its own (rater #repeat)",
}
"""Columns whose names are told apart by another column, and what is said about it."""


def _has_parts(frame: pl.DataFrame, part: str) -> bool:
    """Whether there are turns, or more than one asking."""
    if frame[part].null_count() == frame.height:
        return False
    return part == "turn" or frame[part].drop_nulls().n_unique() > 1


def tell_repeats_apart(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Give each turn the name of an item of its own, and each asking of a judge that of a rater."""
    notes = []
    for (name, part), note in _PARTS.items():
        if _has_parts(table, part):
            label = pl.format("{} #{}", pl.col(name).cast(pl.String), pl.col(part))
            table = table.with_columns(pl.coalesce(label, pl.col(name)).cast(pl.Categorical).alias(name))
            notes.append(note)
    return table, notes


def without_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """The names of items and raters as they were before their repeats were told apart."""
    for name, part in _PARTS:
        if _has_parts(frame, part):
            text = pl.col(name).cast(pl.String)
            plain = text.str.strip_suffix(pl.format(" #{}", pl.col(part)))
            frame = frame.with_columns(pl.coalesce(plain, text).alias(name))
    return frame


def drop_earlier(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Of rows that are the same judgement only the latest, by time if all have one, else by place."""
    key = _judgement_codes(table)
    ordered = np.sort(key)
    if not (ordered[1:] == ordered[:-1]).any():
        return table, 0
    keyed = table.with_columns(pl.Series("_key", key))
    if table["given_at"].null_count() == 0:
        keyed = keyed.sort("given_at", maintain_order=True)
    latest = keyed.unique(subset="_key", keep="last").drop("_key").sort(ORDER)
    return latest, table.height - latest.height


def _judgement_codes(table: pl.DataFrame) -> NDArray[np.int64]:
    """One number for each judgement, the same for rows that are the same by `KEYS`."""
    combined = np.zeros(table.height, dtype=np.int64)
    size = 1
    for name, key in _keys(table):
        codes, n = dense_codes(name, key)
        if size * n >= 2**62:
            combined, size = dense_codes("judgement", combined)
        combined *= n
        combined += codes
        size *= n
    return combined


def _keys(table: pl.DataFrame) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The columns that have something in them, as numbers; -1 is nothing."""
    names = [name for name in KEYS if table[name].null_count() < table.height]
    if "against" in names:  # "a beats b" and "b loses to a" are one judgement
        system, against = np.split(_numbers(pl.concat([table["system"], table["against"]])), 2)
        yield "system", np.minimum(system, against)
        yield "against", np.maximum(system, against)
        names = [name for name in names if name not in ("system", "against")]
    for name in names:
        yield name, _numbers(table[name])


def _numbers(column: pl.Series) -> NDArray[np.int64]:
    return column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
