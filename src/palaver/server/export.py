"""A study's answers as rows of the long format, read from the database in pieces while it is being used.

Answers are numbered in the order in which they were committed and never change, so reading up to the last
number known at the start gives one consistent picture without holding a transaction open.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from sqlalchemy import func, select

from palaver.errors import DataError
from palaver.files import Format, format_by_name, write_atomically
from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.tables import answer, assignment, comment, rater, screen
from palaver.server.tables import study as study_table
from palaver.studies.rows import SCHEMA as LONG

BATCH = 5000
SCHEMA: dict[str, Any] = {
    **LONG,
    **dict.fromkeys(("excluded", "screened", "late"), pl.Boolean),
    "kind": pl.String,
}
"""The long format, then the marks: the rater is excluded from analysis, was screened out, or answered after
the place had gone to somebody else; and what the screen was (main, check, degraded, training)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which answers to export: all those on real items, unless said otherwise."""

    all_screens: bool = False
    """Also checks, broken copies and training."""
    excluded: bool = True
    """Also the answers of raters who are excluded from analysis."""


EVERYBODY = Selection()
FOR_ANALYSIS = Selection(excluded=False)


def study_of(database: Database) -> Study:
    """The study in a database."""
    with database.reading() as connection:
        return Study.model_validate_json(connection.execute(select(study_table.c.document)).scalar_one())


def frames(database: Database, selection: Selection = EVERYBODY) -> Iterator[pl.DataFrame]:
    """The answers in the order of arrival, a few thousand at a time; nothing for a study without any."""
    with database.reading() as connection:
        name = connection.execute(select(study_table.c.name)).scalar_one()
        last = connection.execute(select(func.coalesce(func.max(answer.c.number), 0))).scalar_one()
    wanted = []
    if not selection.all_screens:
        wanted.append(screen.c.kind == "main")
    if not selection.excluded:
        wanted.append(rater.c.excluded.is_(False))
    query = (
        select(
            answer,
            assignment.c.status,
            rater.c.excluded,
            rater.c.state,
            screen.c.kind,
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
        yield pl.DataFrame([_cells(name, row) for row in rows], schema=SCHEMA, orient="row")
        done = rows[-1].number


def _cells(study: str, row: Any) -> tuple[object, ...]:
    return (
        study,
        row.item,
        row.system,
        row.against,
        row.output,
        row.rater_id,
        row.criterion,
        row.value,
        datetime.fromtimestamp(row.given_at, UTC).replace(tzinfo=None),
        row.seconds,
        row.shown_position,
        bool(row.excluded),
        row.state == "screened",
        row.status == "late",
        row.kind,
    )


def stream(
    database: Database,
    kind: Format,
    selection: Selection = EVERYBODY,
    progress: Callable[[int], None] | None = None,
) -> Iterator[bytes]:
    """The export as bytes, piece by piece. Without a single row it raises before the first piece.

    `progress` is told of the rows of each piece.
    """
    found = frames(database, selection)
    first = next(found, None)
    if first is None:
        raise DataError(_why_empty(database, selection), "wait for the first answers, then export again")
    encode = {"jsonl": _json_lines, "csv": _csv, "parquet": _parquet}[kind]
    boxes = {q.criterion for q in study_of(database).questions if q.scale.form == "boxes"}

    def every() -> Iterator[pl.DataFrame]:
        for frame in chain([first], found):
            if progress is not None:
                progress(frame.height)
            yield frame

    return encode(every(), boxes)


def _why_empty(database: Database, selection: Selection) -> str:
    with database.reading() as connection:
        n = connection.execute(select(func.count()).select_from(answer)).scalar_one()
    if not n:
        return "there is nothing to export: nobody has answered yet"
    hidden = [] if selection.all_screens else ["are about checks or training"]
    hidden += [] if selection.excluded else ["come from excluded raters"]
    return f"there is nothing to export: all {n:,} answers {' or '.join(hidden)}"


def write_export(database: Database, path: Path, selection: Selection = EVERYBODY) -> int:
    """Write the export to a file, whole or not at all, in the format of its name; how many rows."""
    count = 0

    def counted(n: int) -> None:
        nonlocal count
        count += n

    pieces = stream(database, format_by_name(path), selection, counted)
    with write_atomically(path, "wb") as file:
        file.writelines(pieces)
    return count


@contextmanager
def exported(database: Database, selection: Selection = FOR_ANALYSIS) -> Iterator[Path]:
    """The answers as a Parquet file for as long as the block lasts."""
    with TemporaryDirectory(prefix="palaver-") as folder:
        path = Path(folder) / "answers.parquet"
        write_export(database, path, selection)
        yield path


def _json_lines(found: Iterator[pl.DataFrame], boxes: set[str]) -> Iterator[bytes]:
    for frame in found:
        lines = (json.dumps(_plain(row, boxes), ensure_ascii=False) for row in frame.iter_rows(named=True))
        yield ("\n".join(lines) + "\n").encode(errors="replace")


def _plain(row: dict[str, Any], boxes: set[str]) -> dict[str, Any]:
    """Without empty fields; numbers as numbers, ticked boxes as a list."""
    plain = {key: value for key, value in row.items() if value is not None}
    plain["given_at"] = plain["given_at"].isoformat(timespec="microseconds")
    value = plain["value"]
    if row["criterion"] in boxes:
        plain["value"] = value.split("|")
    else:
        try:
            number = float(value)
            plain["value"] = int(number) if number.is_integer() and abs(number) < 2**53 else number
        except ValueError:
            pass  # win, tie, loss
    return plain


def _csv(found: Iterator[pl.DataFrame], boxes: set[str]) -> Iterator[bytes]:
    for n, frame in enumerate(found):
        text = frame.write_csv(include_header=n == 0, datetime_format="%Y-%m-%dT%H:%M:%S%.6f")
        yield text.encode(errors="replace")


class _Sink(io.RawIOBase):
    """Where a Parquet writer writes; what has come in can be taken out at any time."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(self._pieces[-1])

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def _parquet(found: Iterator[pl.DataFrame], boxes: set[str]) -> Iterator[bytes]:
    import pyarrow
    import pyarrow.parquet

    sink = _Sink()
    writer: Any = None
    for frame in found:
        table = frame.to_arrow()
        writer = writer or pyarrow.parquet.ParquetWriter(
            pyarrow.PythonFile(sink, mode="w"), table.schema, compression="zstd"
        )
        writer.write_table(table)
        yield sink.take()
    writer.close()
    yield sink.take()


def rater_lines(database: Database) -> Iterator[bytes]:
    """Everybody who came in, one JSON line each: where from, how far, survey answers, comments.

    This is where the platforms' names for people are; the export of the answers does not have them.
    """
    with database.reading() as connection:
        people = connection.execute(select(rater).order_by(rater.c.entered_at, rater.c.id)).all()
        remarks: dict[str, list[dict[str, object]]] = {}
        for row in connection.execute(
            select(comment.c.rater_id, comment.c.text, comment.c.received_at, screen.c.item, screen.c.kind)
            .join(assignment, assignment.c.id == comment.c.assignment_id)
            .join(screen, screen.c.id == assignment.c.screen_id)
            .order_by(comment.c.received_at, comment.c.assignment_id)
        ):
            remarks.setdefault(row.rater_id, []).append(
                {"item": row.item, "kind": row.kind, "text": row.text, "at": _iso(row.received_at)}
            )
    if not people:
        raise DataError("there is nothing to export: nobody has come in yet")
    for row in people:
        plain = {
            "rater": row.id,
            "platform": row.platform,
            "external": row.external,
            "parameters": json.loads(row.parameters),
            "state": row.state,
            "entered_at": _iso(row.entered_at),
            "seen_at": _iso(row.seen_at),
            "checks_failed": row.checks_failed,
            "blocked": bool(row.blocked),
            "excluded": bool(row.excluded),
            "code": row.code,
            "survey": json.loads(row.survey) if row.survey else None,
            "comments": remarks.get(row.id, []),
        }
        yield (json.dumps(plain, ensure_ascii=False) + "\n").encode(errors="replace")


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
