"""Rows of the database that every step needs: who the rater is, what was answered, the study's diary."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from palaver.server.refusal import Refusal
from palaver.server.tables import answer, event, rater, study_version

Rater = Row[Any]
"""A row of the table `rater`, and `study_version`, the number of the study's newest version."""
AnswerKey = tuple[str, str, int | None]
"""What an answer of a screen is about: criterion, system, and the turn, where it is about one."""
LEFT = ("done", "screened", "declined", "withdrawn")
"""The states of people who are no longer at work."""

_VERSION = select(func.max(study_version.c.number)).scalar_subquery()
_RATER = select(rater, _VERSION.label("study_version")).where(rater.c.id == bindparam("rater_id"))
_ANSWERS = (
    select(answer.c.criterion, answer.c.system, answer.c.turn, answer.c.value)
    .where(answer.c.assignment_id == bindparam("of_assignment"))
    .order_by(answer.c.number)
)
_COUNT = select(func.count()).select_from(answer)
_STOPPED = select(event.c.detail).where(event.c.kind == "stopped").order_by(event.c.id).limit(1)
_MEET = (
    update(rater)
    .where(rater.c.id == bindparam("rater_id"))
    .values(seen_at=bindparam("now"))
    .returning(rater, _VERSION.label("study_version"))
)


def meet(connection: Connection, rater_id: str, now: float) -> Rater:
    """Who this is, seen now. Until the step ends, no other step of this rater begins."""
    row = connection.execute(_MEET, {"rater_id": rater_id, "now": now}).first()
    if row is None:
        raise _unknown()
    return row


def rater_of(connection: Connection, rater_id: str) -> Rater:
    """Who this is."""
    row = connection.execute(_RATER, {"rater_id": rater_id}).first()
    if row is None:
        raise _unknown()
    return row


def _unknown() -> Refusal:
    return Refusal("you have not entered this study", 401)


def change_rater(connection: Connection, rater_id: str, **values: object) -> None:
    """Change columns of a rater's row."""
    connection.execute(update(rater).where(rater.c.id == rater_id).values(values))


def answers_of(connection: Connection, assignment_id: int) -> dict[AnswerKey, str]:
    """What was answered, as it stands: of several values the latest."""
    rows = connection.execute(_ANSWERS, {"of_assignment": assignment_id})
    return {(criterion, system, turn): value for criterion, system, turn, value in rows}


def count_answers(connection: Connection) -> int:
    """How many answers there are."""
    return int(connection.execute(_COUNT).scalar_one())


def stop_reason(connection: Connection) -> str | None:
    """Why the study stopped by itself; None while it goes on."""
    row = connection.execute(_STOPPED).first()
    return None if row is None else str(row.detail)


def log(connection: Connection, at: float, rater_id: str | None, kind: str, detail: str = "") -> None:
    """Add to the study's diary."""
    connection.execute(insert(event).values(at=at, rater_id=rater_id, kind=kind, detail=detail))
