"""Rows of the database that every step needs: who the rater is, what was answered, the study's diary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select

from palaver.server.refusal import Refusal
from palaver.server.tables import answer, event, rater


@dataclass(frozen=True, slots=True)
class Rater:
    """A person, as far as the next step depends on it."""

    id: str
    state: str
    platform: str
    parameters: Mapping[str, str]
    group: int | None
    attempts: int
    checks_failed: int
    blocked: bool
    excluded: bool
    code: str


_RATER = select(rater).where(rater.c.id == bindparam("rater_id"))
_ANSWERS = (
    select(answer.c.criterion, answer.c.system, answer.c.value)
    .where(answer.c.assignment_id == bindparam("of_assignment"))
    .order_by(answer.c.number)
)


def rater_of(connection: Connection, rater_id: str) -> Rater:
    """Who this is."""
    row = connection.execute(_RATER, {"rater_id": rater_id}).first()
    if row is None:
        raise Refusal("you have not entered this study", 401)
    return Rater(
        row.id,
        row.state,
        row.platform,
        json.loads(row.parameters),
        row.group_no,
        row.attempts,
        row.checks_failed,
        row.blocked,
        row.excluded,
        row.code,
    )


def answers_of(connection: Connection, assignment_id: int) -> dict[tuple[str, str], str]:
    """(criterion, system) -> value as it stands: of several, the latest."""
    rows = connection.execute(_ANSWERS, {"of_assignment": assignment_id})
    return {(criterion, system): value for criterion, system, value in rows}


def log(connection: Connection, at: float, rater_id: str | None, kind: str, detail: str = "") -> None:
    """Add to the study's diary."""
    connection.execute(insert(event).values(at=at, rater_id=rater_id, kind=kind, detail=detail))
