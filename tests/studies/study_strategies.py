"""What hypothesis draws: single ratings that a table can hold, and tables of ratings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

from palaver.readers.rating_options import MISSING
from palaver.schema import Rating
from palaver.schema.rating import KINDS

clean_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name == name.strip() and name.strip() and "\x00" not in name
)
"""Names that a table keeps: readers of tables strip spaces around a cell."""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_word(text: str) -> bool:
    return not _is_number(text) and "|" not in text and text.lower() not in MISSING and text != "None"


_words = clean_names.filter(_is_word)
_zones = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=8))])
moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=_zones)

ratings = st.builds(
    Rating,
    study=st.just("") | clean_names,
    item=clean_names,
    system=clean_names,
    against=st.none() | clean_names,
    output=st.none() | clean_names,
    rater=clean_names,
    criterion=clean_names,
    value=st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(-(10**15), 10**15).map(float),
        _words,
        st.lists(_words, min_size=2, max_size=3).map(tuple),
    ),
    given_at=st.none() | moments,
    seconds=st.none() | st.floats(0, 1e6),
    shown_position=st.none() | st.integers(0, 99),
    kind=st.sampled_from(KINDS),
    signature=st.none() | clean_names,
    context=st.none() | clean_names,
    turn=st.none() | st.integers(0, 9),
    repeat=st.none() | st.integers(0, 9),
    version=st.none() | clean_names,
    probability=st.none() | st.floats(0, 1),
)

Row = dict[str, Any]
FIELDS = ("item", "system", "rater", "criterion", "value")


@st.composite
def tables(draw: st.DrawFn, *, criteria: Sequence[str] = ("quality", "naturalness")) -> list[Row]:
    """Rows of whole numbers from 1 to 6, with holes, in any order; never the same judgement twice."""
    n_items, n_systems, n_raters = draw(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4)))
    cells = [
        (f"item {i}", f"sys{s}", f"r{r}", c)
        for i in range(n_items)
        for s in range(n_systems)
        for r in range(n_raters)
        for c in criteria
    ]
    kept = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=len(cells), unique=True))
    values = draw(st.lists(st.integers(1, 6), min_size=len(kept), max_size=len(kept)))
    return [dict(zip(FIELDS, (*cell, value), strict=True)) for cell, value in zip(kept, values, strict=True)]


def write_csv(rows: Iterable[Mapping[str, Any]], path: Path, columns: Sequence[str] = FIELDS) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", restval="")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def write_jsonl(rows: Iterable[Mapping[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(rows: Sequence[Mapping[str, Any]], path: Path, *, as_text: bool = False) -> Path:
    frame = pl.DataFrame(rows)
    (frame.with_columns(pl.col("value").cast(pl.String)) if as_text else frame).write_parquet(path)
    return path
