"""What the person who runs a study can see and decide. Nothing here deletes: decisions are marks."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, case, delete, func, select, update

from palaver.errors import UserError
from palaver.server import leases
from palaver.server.admin_accounts import hash_token
from palaver.server.database import Database
from palaver.server.records import LEFT, change_rater, count_answers, log
from palaver.server.refusal import Refusal
from palaver.server.tables import admin_session, assignment, rater, screen
from palaver.server.tables import study as study_table

AT_WORK = 300.0
"""Seconds since the last sign of life during which somebody is said to be at work."""


# --- how far the study is -----------------------------------------------------------------------------------


@dataclass(slots=True)
class GroupProgress:
    """How far one group of questions is."""

    criteria: tuple[str, ...]
    done: int = 0
    target: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Counts, all from one look at the database."""

    study: str
    created_at: float
    now: float
    done: int
    """Screens answered that count: one item, one group of questions, one rater."""
    open: int
    """Screens in somebody's hands."""
    target: int
    items_done: int
    """Items every question of which has all the raters it is to have."""
    items: int
    answers: int
    late: int
    raters: int
    at_work: int
    states: Mapping[str, int]
    blocked: int
    excluded: int
    groups: tuple[GroupProgress, ...]


def status(database: Database, now: float | None = None) -> Status:
    """Where the study stands."""
    now = time.time() if now is None else now
    with database.reading() as connection:
        study = connection.execute(select(study_table.c.name, study_table.c.created_at)).one()
        screens = connection.execute(_screens(now)).all()
        raters = connection.execute(_raters(now)).all()
        answers = count_answers(connection)
        late = connection.execute(
            select(func.count()).select_from(assignment).where(assignment.c.status == "late")
        ).scalar_one()
    items: dict[str, bool] = {}
    groups: dict[int, GroupProgress] = {}
    for s in screens:
        items[s.item] = items.get(s.item, True) and s.done >= s.target
        group = groups.setdefault(s.group_no, GroupProgress(tuple(json.loads(s.criteria))))
        group.done += min(s.done, s.target)
        group.target += s.target
    return Status(
        study=study.name,
        created_at=study.created_at,
        now=now,
        done=sum(group.done for group in groups.values()),
        open=sum(s.open for s in screens),
        target=sum(group.target for group in groups.values()),
        items_done=sum(items.values()),
        items=len(items),
        answers=answers,
        late=late,
        raters=len(raters),
        at_work=sum(r.at_work for r in raters),
        states=dict(Counter(r.state for r in raters)),
        blocked=sum(r.blocked for r in raters),
        excluded=sum(r.excluded for r in raters),
        groups=tuple(groups[number] for number in sorted(groups)),
    )


def _screens(now: float) -> Select[Any]:
    """The real screens, and how many raters have answered each (`done`) or have it in hand (`open`)."""
    is_open = (assignment.c.status == "open") & (assignment.c.expires_at > now)
    counted = (
        select(
            assignment.c.screen_id,
            func.sum(case((assignment.c.status == "done", 1), else_=0)).label("done"),
            func.sum(case((is_open, 1), else_=0)).label("open"),
        )
        .join(rater, rater.c.id == assignment.c.rater_id)
        .where(rater.c.excluded.is_(False))
        .group_by(assignment.c.screen_id)
        .subquery()
    )
    return (
        select(
            screen,
            func.coalesce(counted.c.done, 0).label("done"),
            func.coalesce(counted.c.open, 0).label("open"),
        )
        .outerjoin(counted, counted.c.screen_id == screen.c.id)
        .where(screen.c.kind == "main")
        .order_by(screen.c.id)
    )


# --- raters -------------------------------------------------------------------------------------------------


def rater_table(database: Database, now: float | None = None) -> Sequence[Row[Any]]:
    """Everybody who came in, the latest seen first."""
    now = time.time() if now is None else now
    with database.reading() as connection:
        return connection.execute(_raters(now)).all()


def _raters(now: float) -> Select[Any]:
    finished = (
        select(assignment.c.rater_id, func.count().label("n"))
        .join(screen, screen.c.id == assignment.c.screen_id)
        .where(assignment.c.status.in_(("done", "late")), screen.c.kind == "main")
        .group_by(assignment.c.rater_id)
        .subquery()
    )
    at_work = (rater.c.seen_at > now - AT_WORK) & rater.c.state.not_in(LEFT) & ~rater.c.blocked
    return (
        select(
            rater.c.id,
            rater.c.platform,
            rater.c.external,
            rater.c.state,
            rater.c.entered_at,
            rater.c.seen_at,
            at_work.label("at_work"),
            func.coalesce(finished.c.n, 0).label("screens"),
            rater.c.checks_failed,
            rater.c.blocked,
            rater.c.excluded,
        )
        .outerjoin(finished, finished.c.rater_id == rater.c.id)
        .order_by(rater.c.seen_at.desc(), rater.c.id)
    )


Action = Literal["block", "unblock", "exclude", "include"]
_EVENTS = {"block": "blocked", "unblock": "unblocked", "exclude": "excluded", "include": "included"}


def decide(
    database: Database, rater_id: str, action: Action, now: float | None = None, by: str = "the admin"
) -> None:
    """Mark a rater; twice is once.

    `block`: no more screens, and what was answered still counts. `exclude`: the answers stay out of the
    analysis, and their places go to others. `include`: they count again; those whose place has gone to
    somebody else are kept as late ones. Nobody can include what a person has withdrawn.
    """
    now = time.time() if now is None else now
    with database.writing() as connection:
        row = connection.execute(select(rater).where(rater.c.id == rater_id)).first()
        if row is None:
            raise Refusal("there is no such rater", 404)
        about_blocking = action in ("block", "unblock")
        before = row.blocked if about_blocking else row.excluded
        after = action in ("block", "exclude")
        if before == after:
            return
        if action == "include" and row.state == "withdrawn":
            raise Refusal("this person has left the study: what was answered stays out of the analysis", 409)
        if action == "block":  # the screen in hand is free for others at once
            held = (assignment.c.rater_id == rater_id) & (assignment.c.status == "open")
            connection.execute(update(assignment).where(held).values(expires_at=now))
            leases.reclaim(connection, now)
        elif action == "include":
            _yield_places(connection, rater_id, "done", "late")
            _yield_places(connection, rater_id, "open", "expired")
        if about_blocking:
            change_rater(connection, rater_id, blocked=after)
        else:
            leases.set_excluded(connection, rater_id, after)
        log(connection, now, rater_id, _EVENTS[action], f"by {by}")


def _yield_places(connection: Connection, rater_id: str, before: str, after: str) -> None:
    """Screens of an excluded rater that have all their raters by now."""
    full = select(screen.c.id).where(screen.c.kind == "main", screen.c.taken >= screen.c.target)
    connection.execute(
        update(assignment)
        .where(assignment.c.rater_id == rater_id, assignment.c.status == before)
        .where(assignment.c.screen_id.in_(full))
        .values(status=after)
    )


# --- where the study is served ---------------------------------------------------------------------------


def note_address(database: Database, address: str) -> None:
    """Keep the address that people use."""
    with database.writing() as connection:
        connection.execute(update(study_table).values(address=address))


def served_address(database: Database) -> str | None:
    """The address under which the study was served last."""
    with database.reading() as connection:
        return connection.execute(select(study_table.c.address)).scalar()


# --- keys ---------------------------------------------------------------------------------------------------


def renew_keys(database: Database) -> None:
    """A new key for cookies and forms: every session ends, raters' and admins'."""
    with database.writing() as connection:
        connection.execute(update(study_table).values(secret=secrets.token_hex(32)))
        connection.execute(delete(admin_session))


# --- the admin's token --------------------------------------------------------------------------------------


SHORTEST_TOKEN = 16


def arm_token(database: Database, token: str | None = None) -> str:
    """Make `token` (or a new one) the one that signs the admin in; only its hash is kept. The token."""
    token = secrets.token_urlsafe(24) if token is None else token.strip()
    if len(token) < SHORTEST_TOKEN:
        raise UserError(
            f"the admin's token has {len(token)} characters, which can be guessed",
            f"choose one of at least {SHORTEST_TOKEN}, or leave it out and get a new one",
        )
    with database.writing() as connection:
        connection.execute(update(study_table).values(admin_hash=hash_token(token)))
    return token


def redeem_token(database: Database, token: str) -> bool:
    """Whether this is the token; if so it is used up."""
    with database.writing() as connection:
        held = connection.execute(select(study_table.c.admin_hash)).scalar()
        if not hmac.compare_digest(held or "", hash_token(token)):
            return False
        connection.execute(update(study_table).values(admin_hash=None))
    return True
