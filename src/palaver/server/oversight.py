"""What the person who runs a study can see and decide. Nothing here deletes: decisions are marks."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, case, func, select, update

from palaver.server import leases
from palaver.server.database import Database
from palaver.server.records import log
from palaver.server.refusal import Refusal
from palaver.server.tables import answer, assignment, rater, screen
from palaver.server.tables import study as study_table

AT_WORK = 300.0
"""Seconds since the last sign of life during which somebody is said to be at work."""
_LEFT = ("done", "screened")


# --- how far the study is -----------------------------------------------------------------------------------


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
    groups: tuple[tuple[tuple[str, ...], int, int], ...] = field(default=())
    """(criteria, done, target) of each group of questions."""


def status(database: Database, now: float | None = None) -> Status:
    """Where the study stands."""
    now = time.time() if now is None else now
    with database.reading() as connection:
        head = connection.execute(select(study_table.c.name, study_table.c.created_at)).one()
        screens = _screens(connection, now)
        people = connection.execute(
            select(rater.c.state, rater.c.blocked, rater.c.excluded, rater.c.seen_at > now - AT_WORK)
        ).all()
        answers = connection.execute(select(func.coalesce(func.max(answer.c.number), 0))).scalar_one()
        late = connection.execute(
            select(func.count()).select_from(assignment).where(assignment.c.status == "late")
        ).scalar_one()
    states: dict[str, int] = {}
    for state, *_ in people:
        states[state] = states.get(state, 0) + 1
    items: dict[str, bool] = {}
    groups: dict[int, tuple[tuple[str, ...], int, int]] = {}
    for s in screens:
        items[s.item] = items.get(s.item, True) and s.done >= s.target
        criteria, done, target = groups.get(s.group, (s.criteria, 0, 0))
        groups[s.group] = (criteria, done + min(s.done, s.target), target + s.target)
    return Status(
        study=head.name,
        created_at=head.created_at,
        now=now,
        done=sum(min(s.done, s.target) for s in screens),
        open=sum(s.open for s in screens),
        target=sum(s.target for s in screens),
        items_done=sum(items.values()),
        items=len(items),
        answers=answers,
        late=late,
        raters=len(people),
        at_work=sum(
            bool(recent) and not blocked and state not in _LEFT for state, blocked, _, recent in people
        ),
        states=states,
        blocked=sum(bool(blocked) for _, blocked, *_ in people),
        excluded=sum(bool(excluded) for _, _, excluded, _ in people),
        groups=tuple(groups[g] for g in sorted(groups)),
    )


@dataclass(frozen=True, slots=True)
class _Screen:
    item: str
    criteria: tuple[str, ...]
    group: int
    target: int
    done: int
    open: int


def _screens(connection: Connection, now: float) -> list[_Screen]:
    counted = (
        select(
            assignment.c.screen_id,
            func.sum(case((assignment.c.status == "done", 1), else_=0)).label("done"),
            func.sum(
                case(((assignment.c.status == "open") & (assignment.c.expires_at > now), 1), else_=0)
            ).label("open"),
        )
        .join(rater, rater.c.id == assignment.c.rater_id)
        .where(rater.c.excluded.is_(False))
        .group_by(assignment.c.screen_id)
        .subquery()
    )
    rows = connection.execute(
        select(screen, counted.c.done, counted.c.open)
        .outerjoin(counted, counted.c.screen_id == screen.c.id)
        .where(screen.c.kind == "main")
        .order_by(screen.c.id)
    )
    return [
        _Screen(
            r.item, tuple(json.loads(r.criteria)), r.group_no, r.target, int(r.done or 0), int(r.open or 0)
        )
        for r in rows
    ]


# --- raters -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterStatus:
    """One rater as the admin sees them."""

    id: str
    platform: str
    external: str | None
    state: str
    entered_at: float
    seen_at: float
    at_work: bool
    screens: int
    checks_failed: int
    blocked: bool
    excluded: bool


def rater_table(database: Database, now: float | None = None) -> list[RaterStatus]:
    """Everybody who came in, the latest seen first."""
    now = time.time() if now is None else now
    finished = (
        select(assignment.c.rater_id, func.count().label("n"))
        .join(screen, screen.c.id == assignment.c.screen_id)
        .where(assignment.c.status.in_(("done", "late")), screen.c.kind == "main")
        .group_by(assignment.c.rater_id)
        .subquery()
    )
    with database.reading() as connection:
        rows = connection.execute(
            select(rater, finished.c.n)
            .outerjoin(finished, finished.c.rater_id == rater.c.id)
            .order_by(rater.c.seen_at.desc(), rater.c.id)
        ).all()
    return [
        RaterStatus(
            id=r.id,
            platform=r.platform,
            external=r.external,
            state=r.state,
            entered_at=r.entered_at,
            seen_at=r.seen_at,
            at_work=r.seen_at > now - AT_WORK and r.state not in _LEFT and not r.blocked,
            screens=r.n or 0,
            checks_failed=r.checks_failed,
            blocked=bool(r.blocked),
            excluded=bool(r.excluded),
        )
        for r in rows
    ]


def block(database: Database, rater_id: str, now: float | None = None) -> None:
    """No more screens for this rater; what was answered still counts."""
    with database.writing() as connection:
        me, at = _known(connection, rater_id, now)
        if not me.blocked:
            # The screen in hand is free for others at once.
            connection.execute(
                update(assignment)
                .where(assignment.c.rater_id == rater_id, assignment.c.status == "open")
                .values(expires_at=at)
            )
            leases.reclaim(connection, at)
            _mark(connection, at, rater_id, "blocked", blocked=True)


def unblock(database: Database, rater_id: str, now: float | None = None) -> None:
    """The rater may go on."""
    with database.writing() as connection:
        me, at = _known(connection, rater_id, now)
        if me.blocked:
            _mark(connection, at, rater_id, "unblocked", blocked=False)


def exclude(database: Database, rater_id: str, now: float | None = None) -> None:
    """The rater's answers stay out of the analysis, and their places go to others."""
    with database.writing() as connection:
        me, at = _known(connection, rater_id, now)
        if not me.excluded:
            leases.set_excluded(connection, rater_id, True)
            log(connection, at, rater_id, "excluded", "by the admin")


def include(database: Database, rater_id: str, now: float | None = None) -> None:
    """The rater's answers count again; those whose place has gone to somebody else are kept as late ones."""
    with database.writing() as connection:
        me, at = _known(connection, rater_id, now)
        if me.excluded:
            for before, after in (("done", "late"), ("open", "expired")):
                _yield_places(connection, rater_id, before, after)
            leases.set_excluded(connection, rater_id, False)
            log(connection, at, rater_id, "included", "by the admin")


ACTIONS = {"block": block, "unblock": unblock, "exclude": exclude, "include": include}


def _known(connection: Connection, rater_id: str, now: float | None):  # type: ignore[no-untyped-def]
    row = connection.execute(select(rater.c.blocked, rater.c.excluded).where(rater.c.id == rater_id)).first()
    if row is None:
        raise Refusal("there is no such rater", 404)
    return row, time.time() if now is None else now


def _yield_places(connection: Connection, rater_id: str, before: str, after: str) -> None:
    """Screens of an excluded rater that have all their raters by now."""
    full = select(screen.c.id).where(screen.c.kind == "main", screen.c.taken >= screen.c.target)
    connection.execute(
        update(assignment)
        .where(assignment.c.rater_id == rater_id, assignment.c.status == before)
        .where(assignment.c.screen_id.in_(full))
        .values(status=after)
    )


def _mark(connection: Connection, at: float, rater_id: str, what: str, **values: bool) -> None:
    connection.execute(update(rater).where(rater.c.id == rater_id).values(**values))
    log(connection, at, rater_id, what, "by the admin")


# --- the admin's token --------------------------------------------------------------------------------------


def arm_token(database: Database, token: str | None = None) -> str:
    """Make `token` (or a new one) the one that signs the admin in; only its hash is kept. The token."""
    token = token or secrets.token_urlsafe(24)
    with database.writing() as connection:
        connection.execute(update(study_table).values(admin_hash=_hash(token)))
    return token


def redeem_token(database: Database, token: str) -> bool:
    """Whether this is the token; if so it is used up."""
    with database.writing() as connection:
        held = connection.execute(select(study_table.c.admin_hash)).scalar()
        if not hmac.compare_digest(held or "", _hash(token)):
            return False
        connection.execute(update(study_table).values(admin_hash=None))
    return True


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
