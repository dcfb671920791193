"""People who come back with a platform's name for them: the name alone opens nobody's session.

Platform ids stand in links, lists and browsers' histories. So a browser has to show that it is the one that
began: by its session, because the owner let it go on, or by the platform's signature. Work is paid once: a
second assignment of somebody who has finished gets no completion.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from palaver.server.database import Database
from palaver.server.records import Rater, log
from palaver.server.refusal import Refusal
from palaver.server.tables import rater, resume_request

MOST_REQUESTS = 5
"""Of one rater; the oldest go."""
_ASSIGNMENT = {"prolific": "SESSION_ID", "mturk": "assignmentId"}
"""What a platform pays for."""


@dataclass(frozen=True, slots=True)
class Browser:
    """What a browser shows of itself."""

    rater: str | None
    """Whose session it has."""
    device: str | None
    """Its own name, which it got when it asked to go on as somebody."""


class Elsewhere(Refusal):
    """This person began in another browser."""

    def __init__(self, rater_id: str) -> None:
        super().__init__("you began this study in another browser", 403)
        self.rater = rater_id


class Repetition(Refusal):
    """This person has finished, and comes with another assignment."""

    def __init__(self) -> None:
        super().__init__("you have finished this study already", 409)


def check_return(
    connection: Connection, known: Rater, parameters: Mapping[str, str], browser: Browser | None
) -> None:
    """Whether somebody known may go on. Without `browser` it is certain who this is."""
    if browser is not None and browser.rater != known.id:
        allowed = delete(resume_request).where(
            resume_request.c.rater_id == known.id,
            resume_request.c.device == browser.device,
            resume_request.c.is_allowed,
        )
        if browser.device is None or not connection.execute(allowed).rowcount:
            raise Elsewhere(known.id)
    key = _ASSIGNMENT.get(known.platform, "")
    before, now = json.loads(known.parameters).get(key), parameters.get(key)
    if known.state in ("done", "screened") and now and before != now:
        raise Repetition


def ask_to_resume(database: Database, rater_id: str, device: str, now: float) -> str:
    """Put a browser's wish before the owner; the code by which both know it."""
    mine = resume_request.c.rater_id == rater_id
    with database.writing() as connection:
        known = connection.execute(select(resume_request.c.device).where(mine)).scalars().all()
        if device not in known:
            row = {"rater_id": rater_id, "device": device, "asked_at": now, "is_allowed": False}
            connection.execute(insert(resume_request).values(row))
            waiting = mine & ~resume_request.c.is_allowed
            newest = select(resume_request.c.id).where(waiting).order_by(resume_request.c.id.desc())
            kept = connection.execute(newest.limit(MOST_REQUESTS)).scalars().all()
            connection.execute(delete(resume_request).where(waiting, resume_request.c.id.not_in(kept)))
    return code_of(device)


def code_of(device: str) -> str:
    return device[:6].upper()


def resume_requests(database: Database) -> Sequence[Row[Any]]:
    """What the owner has not decided yet, the latest first."""
    query = (
        select(resume_request, rater.c.external, rater.c.platform)
        .join(rater, rater.c.id == resume_request.c.rater_id)
        .where(~resume_request.c.is_allowed)
        .order_by(resume_request.c.id.desc())
        .limit(100)
    )
    with database.reading() as connection:
        return connection.execute(query).all()


def allow_resume(database: Database, request_id: int, now: float, by: str = "the admin") -> None:
    """Let a browser go on as the rater it asked for, once; twice is once."""
    chosen = update(resume_request).where(resume_request.c.id == request_id)
    with database.writing() as connection:
        allowed = connection.execute(chosen.values(is_allowed=True).returning(resume_request.c.rater_id))
        rater_id = allowed.scalar()
        if rater_id is None:
            raise Refusal("there is no such request any more", 404)
        log(connection, now, rater_id, "resume allowed", f"by {by}")
