"""A study's answers as rows of the long format, read from the database in pieces while it is being used.

Answers are numbered in the order in which they came and never change, so reading up to the last number at a
moment when none was on its way gives one consistent picture without holding a transaction open.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import Connection, Row, func, select

from palaver.errors import DataError
from palaver.readers.rating_columns import SCHEMA as LONG
from palaver.readers.rating_files import RatingFormat, encode_frames, rating_format, write_frames
from palaver.schema import Study
from palaver.schema.rating import pair_context
from palaver.schema.scale import Form
from palaver.server.database import Database
from palaver.server.records import count_answers
from palaver.server.tables import answer, assignment, comment, rater, screen
from palaver.server.tables import study as study_table
from palaver.server.words import LANGUAGE
from palaver.tables import FrameSource, open_frame

BATCH = 5000
SCHEMA: dict[str, Any] = {
    **LONG,
    **dict.fromkeys(("excluded", "screened", "late"), pl.Boolean),
    "screen": pl.String,
}
"""The long format, then the marks: the rater is excluded from analysis, was screened out, or answered after
the place had gone to somebody else; and what the screen was (main, check, degraded, training). Where raters
had a choice of languages, the one that was shown comes last."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which answers to export: all those on real items, unless said otherwise."""

    all_screens: bool = False
    """Also checks, broken copies and training."""
    excluded: bool = True
    """Also the answers of raters who are excluded from analysis."""
    share: bool = False
    """Raters by their pseudonyms."""
    excel: bool = False
    """No cell is taken for a formula by a spreadsheet."""
    texts: bool = True
    """Also free text, which may name people."""


EVERYBODY = Selection()
FOR_ANALYSIS = Selection(excluded=False)


def study_of(database: Database) -> Study:
    """The study in a database."""
    with database.reading() as connection:
        return Study.model_validate_json(connection.execute(select(study_table.c.document)).scalar_one())


def frames(database: Database, selection: Selection = EVERYBODY) -> Iterator[pl.DataFrame]:
    """The answers in the order of arrival, a few thousand at a time; nothing for a study without any."""
    with database.settled() as connection:
        name = connection.execute(select(study_table.c.name)).scalar_one()
        chances = _sampling_probabilities(connection)
        last = connection.execute(select(func.coalesce(func.max(answer.c.number), 0))).scalar_one()
        schema = {**SCHEMA, LANGUAGE: pl.String} if _has_languages(connection) else SCHEMA
    wanted = []
    if not selection.all_screens:
        wanted.append(screen.c.kind == "main")
    if not selection.excluded:
        wanted.append(rater.c.excluded.is_(False))
    if not selection.texts:
        wanted.append(answer.c.criterion.not_in(_criteria(database, "text")))
    query = (
        select(
            answer,
            answer.c.rater_id.label("rater"),
            rater.c.excluded,
            (rater.c.state == "screened").label("screened"),
            (assignment.c.status == "late").label("late"),
            screen.c.kind.label("screen"),
            rater.c.parameters,
        )
        .join(assignment, assignment.c.id == answer.c.assignment_id)
        .join(screen, screen.c.id == assignment.c.screen_id)
        .join(rater, rater.c.id == answer.c.rater_id)
        .where(*wanted)
        .order_by(answer.c.number)
        .limit(BATCH)
    )
    done = 0
    while done < last:
        with database.reading() as connection:
            rows = connection.execute(query.where(answer.c.number > done, answer.c.number <= last)).all()
        if not rows:
            return
        fields = [
            {
                **row._mapping,
                "study": name,
                "kind": "human",
                "context": row.item
                if row.turn is not None
                else pair_context(row.item, row.system, row.against),
                "version": str(row.version),
                "sampling_probability": chances.get(row.item),
                "given_at": datetime.fromtimestamp(row.given_at, UTC).replace(tzinfo=None),
                LANGUAGE: json.loads(row.parameters).get(LANGUAGE) if LANGUAGE in schema else None,
            }
            for row in rows
        ]
        frame = pl.DataFrame(fields, schema=schema)
        if selection.share:
            names = {id: pseudonym(id) for id in frame["rater"].unique()}
            frame = frame.with_columns(pl.col("rater").replace_strict(names, return_dtype=pl.String))
        yield without_formulas(frame) if selection.excel else frame
        done = rows[-1].number


def _has_languages(connection: Connection) -> bool:
    """Whether raters had a choice of languages: the export then says which one each has seen."""
    chose = rater.c.parameters.like(f'%"{LANGUAGE}": %')
    return connection.execute(select(rater.c.id).where(chose).limit(1)).first() is not None


def _sampling_probabilities(connection: Connection) -> dict[str, float]:
    """Item -> the probability with which it was drawn, where the study says one."""
    document = connection.execute(select(study_table.c.document)).scalar_one()
    if '"sampling_probability":' not in document:  # a large study is not parsed for nothing
        return {}
    items = json.loads(document)["items"]
    return {item["id"]: item["sampling_probability"] for item in items if item.get("sampling_probability")}


def pseudonym(rater_id: str) -> str:
    """A rater's name in what is published: always the same, and it leads back to nobody.

    A rater's id is 128 random bits that stay in the database, so that no list of platform ids gives it away.
    """
    return f"rater-{hashlib.sha256(f'pseudonym {rater_id}'.encode()).hexdigest()[:12]}"


_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts that a spreadsheet would run as a formula get an apostrophe in front; numbers stay numbers."""
    return frame.with_columns(_harmless(n) for n, kind in frame.schema.items() if kind == pl.String)


def _harmless(name: str) -> pl.Expr:
    cell = pl.col(name)
    is_formula = cell.str.contains(_FORMULA) & ~cell.str.contains(_NUMBER)
    return pl.when(is_formula).then(pl.lit("'") + cell).otherwise(cell).alias(name)


def _without_written_formulas(frame: pl.DataFrame, texts: set[str]) -> pl.DataFrame:
    """The same for what raters wrote, in every CSV file; readers of ratings take the apostrophe off again."""
    is_text = pl.col("criterion").is_in(list(texts))
    return frame.with_columns(pl.when(is_text).then(_harmless("value")).otherwise("value").alias("value"))


def stream(database: Database, kind: RatingFormat, selection: Selection = EVERYBODY) -> Iterator[bytes]:
    """The export as bytes, piece by piece. Without a single row it raises before the first piece."""
    pieces = _pieces(database, kind, selection)
    return encode_frames(pieces, kind, _criteria(database, "boxes"), _criteria(database, "text"))


def _pieces(database: Database, kind: RatingFormat, selection: Selection) -> Iterator[pl.DataFrame]:
    """The frames as a file of this format has them."""
    pieces, texts = _some_frames(database, selection), _criteria(database, "text")
    if kind == "csv" and texts:
        return (_without_written_formulas(frame, texts) for frame in pieces)
    return pieces


def _criteria(database: Database, form: Form) -> set[str]:
    """The criteria whose answers have this form."""
    return {q.criterion for q in study_of(database).questions if q.scale.form == form}


def _some_frames(database: Database, selection: Selection) -> Iterator[pl.DataFrame]:
    """The same as `frames`; a study without any answer is an error, raised at once."""
    pieces = frames(database, selection)
    first = next(pieces, None)
    if first is None:
        raise DataError(_why_empty(database, selection), "wait for the first answers, then export again")
    return chain([first], pieces)


def _why_empty(database: Database, selection: Selection) -> str:
    with database.reading() as connection:
        n = count_answers(connection)
    if not n:
        return "there is nothing to export: nobody has answered yet"
    hidden = [] if selection.all_screens else ["are about checks or training"]
    hidden += [] if selection.excluded else ["come from excluded raters"]
    hidden += [] if selection.texts else ["are free text"]
    return f"there is nothing to export: all {n:,} answers {' or '.join(hidden)}"


def write_export(database: Database, path: Path, selection: Selection = EVERYBODY) -> int:
    """Write the export to a file, whole or not at all, in the format of its name; how many rows."""
    pieces = _pieces(database, rating_format(path), selection)
    return write_frames(pieces, path, _criteria(database, "boxes"), _criteria(database, "text"))


def read_answers(database: Database, selection: Selection = FOR_ANALYSIS) -> FrameSource:
    """The answers as a table that readers take like a file; its name is the study's."""
    frame = pl.concat(_some_frames(database, selection))
    return open_frame(frame.select(*LONG), study_of(database).name)


def rater_lines(database: Database) -> Iterator[bytes]:
    """Everybody who came in, one JSON line each: where from, how far, survey answers, comments.

    This is where the platforms' names for people are; the export of the answers does not have them.
    """
    with database.reading() as connection:
        people = connection.execute(select(rater).order_by(rater.c.entered_at, rater.c.id)).all()
        remarks: dict[str, list[dict[str, object]]] = {}
        for row in connection.execute(
            select(comment, screen.c.item, screen.c.kind)
            .join(assignment, assignment.c.id == comment.c.assignment_id)
            .join(screen, screen.c.id == assignment.c.screen_id)
            .order_by(comment.c.received_at, comment.c.id)
        ):
            remarks.setdefault(row.rater_id, []).append(
                {
                    "item": row.item,
                    "system": row.system,
                    "screen": row.kind,
                    "text": row.text,
                    "at": _iso(row.received_at),
                }
            )
    if not people:
        raise DataError("there is nothing to export: nobody has come in yet")
    return (_rater_line(row, remarks.get(row.id, [])) for row in people)


def shared_rater_lines(database: Database, texts: bool = False) -> Iterator[bytes]:
    """Everybody who came in, as it may be published; with what they wrote only if `texts`.

    Free text may name people: read it before you publish it.
    """
    for line in rater_lines(database):
        person = json.loads(line)
        kept: dict[str, object] = {"rater": pseudonym(person["rater"])}
        kept |= {key: person[key] for key in ("state", LANGUAGE, "checks_failed", "excluded")}
        if texts:
            kept |= {"survey": person["survey"]}
            kept["comments"] = [{k: c[k] for k in c if k != "at"} for c in person["comments"]]
        yield (json.dumps(kept, ensure_ascii=False) + "\n").encode(errors="replace")


def _rater_line(row: Row[Any], comments: list[dict[str, object]]) -> bytes:
    parameters = json.loads(row.parameters)
    plain = {
        "rater": row.id,
        "platform": row.platform,
        "external": row.external,
        "parameters": parameters,
        LANGUAGE: parameters.get(LANGUAGE),
        "state": row.state,
        "entered_at": _iso(row.entered_at),
        "seen_at": _iso(row.seen_at),
        "checks_failed": row.checks_failed,
        "blocked": row.blocked,
        "excluded": row.excluded,
        "code": row.code,
        "survey": json.loads(row.survey) if row.survey else None,
        "comments": comments,
    }
    return (json.dumps(plain, ensure_ascii=False) + "\n").encode(errors="replace")


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
