"""Who gets which screen. All of it is state in the database; any process may serve any request.

A screen is leased to a rater. Leases that run out are taken back before anything is handed out, so `taken`
(answered, or leased and still running) never exceeds the number of raters a screen is to have. Somebody who
answers after the lease ran out is still counted while there is room, and kept but not counted (`late`) if
somebody else took the place.

A new lease is short until the page shows that somebody is there (`SIGN_OF_LIFE`): whoever only opens pages
keeps no screen from others for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, exists, func, insert, select, update

from palaver.server.records import Rater
from palaver.server.refusal import Refusal
from palaver.server.tables import assignment, rater, screen

SIGN_OF_LIFE = 300.0
"""Seconds within which a page has to show that somebody is there; then the study says how long a lease is."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A screen in a rater's hands."""

    id: int
    rater: str
    screen: int
    kind: str
    turn: int
    status: str
    fresh: bool = False
    """Just handed out, so that nothing can have been answered."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a rater has in hand and has done."""

    held: int | None
    """The assignment given and not yet answered, its lease running or not."""
    done: int
    """Real screens answered."""
    shown: int
    """Screens answered, checks among them."""
    checks: int
    """Checks given."""
    some_ran_out: bool
    """Whether there are leases to be taken back, of whomever."""


# Statements are built once: building one costs more than running it.
_LEASES = select(
    assignment.c.id,
    assignment.c.rater_id.label("rater"),
    screen.c.id.label("screen"),
    screen.c.kind,
    assignment.c.turn,
    assignment.c.status,
).join(screen, screen.c.id == assignment.c.screen_id)
_LEASE = _LEASES.where(
    assignment.c.id == bindparam("of_assignment"), assignment.c.rater_id == bindparam("by_rater")
)
_HOLD = _LEASE.with_for_update(of=assignment, key_share=True)
_is_answered = assignment.c.status.in_(("done", "late"))
_is_check = screen.c.kind.in_(("check", "degraded"))
_mine = (
    select(
        func.max(case((assignment.c.status.in_(("open", "expired")), assignment.c.id))).label("held"),
        func.count(case((_is_answered & (screen.c.kind == "main"), 1))).label("done"),
        func.count(case((_is_answered & (screen.c.kind != "training"), 1))).label("shown"),
        func.count(case((_is_check, 1))).label("checks"),
    )
    .select_from(assignment.join(screen, screen.c.id == assignment.c.screen_id))
    .where(assignment.c.rater_id == bindparam("by_rater"))
    .subquery()
)
_ran_out = (assignment.c.status == "open") & (assignment.c.expires_at <= bindparam("now"))
_STANDING = select(_mine, exists().where(_ran_out).label("some_ran_out"))
_RECLAIM = (
    update(assignment)
    .where(_ran_out)
    .values(status="expired")
    .returning(assignment.c.screen_id, assignment.c.rater_id)
)
_TAKE = (
    update(screen)
    .where(
        screen.c.id == bindparam("of_screen"),
        exists().where(rater.c.id == bindparam("by_rater"), ~rater.c.excluded),
    )
    .values(taken=screen.c.taken + bindparam("change"))
)
_TURN = select(func.count()).select_from(assignment).where(assignment.c.screen_id == bindparam("of_screen"))
_GIVE = (
    insert(assignment)
    .values(turn=_TURN.scalar_subquery(), status="open")
    .returning(assignment.c.id, assignment.c.turn)
)
_UNSEEN = ~exists().where(
    assignment.c.screen_id == screen.c.id, assignment.c.rater_id == bindparam("by_rater")
)
_FREE = (
    select(screen.c.id)
    .where(screen.c.kind == bindparam("of_kind"), screen.c.group_no == bindparam("of_group"))
    .where(screen.c.taken < screen.c.target, _UNSEEN)
    .order_by(screen.c.block_no, screen.c.taken, screen.c.id)
    .limit(bindparam("most"))
)
_OCCUPY = update(screen).values(taken=screen.c.taken + bindparam("change"))
_OCCUPY_ONE = _OCCUPY.where(
    screen.c.id == bindparam("of_screen"), (screen.c.taken < screen.c.target) | (screen.c.kind != "main")
)
# Whoever waits for a screen that another step has just locked would find it full, or nearly so.
_OCCUPY_NEXT, _OCCUPY_LAST = (
    _OCCUPY.where(screen.c.id == free.correlate(None).scalar_subquery()).returning(screen.c.id)
    for free in (
        _FREE.with_for_update(key_share=True, skip_locked=True),
        _FREE.with_for_update(key_share=True),
    )
)
_NEEDIEST = (
    select(screen.c.group_no)
    .where(screen.c.kind == "main", screen.c.taken < screen.c.target, _UNSEEN)
    .group_by(screen.c.group_no)
    .order_by(func.sum(screen.c.target - screen.c.taken).desc(), screen.c.group_no)
    .limit(1)
)
_others = assignment.alias("others")
_UNANSWERED = ~exists().where(
    assignment.c.screen_id == screen.c.id,
    assignment.c.rater_id == bindparam("by_rater"),
    assignment.c.status.in_(("done", "late")),
)
_HELD_BY_OTHERS = (
    select(screen.c.id)
    .join(_others, _others.c.screen_id == screen.c.id)
    .where(screen.c.kind == "main", _others.c.status == "open", _UNANSWERED)
    .limit(1)
)
_RENEW = (
    update(assignment)
    .where(assignment.c.id == bindparam("of_assignment"))
    .values(status="open", expires_at=bindparam("until"))
)
_FINISH = (
    update(assignment)
    .where(assignment.c.id == bindparam("of_assignment"))
    .values(status=bindparam("new_status"), done_at=bindparam("now"))
)
_COUNTED = (
    select(assignment.c.screen_id)
    .where(assignment.c.rater_id == bindparam("by_rater"), assignment.c.status.in_(("open", "done")))
    .with_for_update(key_share=True)
)
_LATEST = (
    _LEASES.where(
        assignment.c.rater_id == bindparam("by_rater"),
        assignment.c.status.in_(("done", "late")),
        screen.c.kind != "training",
    )
    .order_by(assignment.c.done_at.desc(), assignment.c.id.desc())
    .limit(1)
)


def standing_of(connection: Connection, rater_id: str, now: float) -> Standing:
    """Where a rater stands."""
    row = connection.execute(_STANDING, {"by_rater": rater_id, "now": now}).one()
    return Standing(**row._mapping)


def reclaim(connection: Connection, now: float) -> int:
    """Take back the leases that ran out; how many. Nobody else may be writing."""
    expired = connection.execute(_RECLAIM, {"now": now}).all()
    for screen_id, rater_id in expired:
        of_screen = {"of_screen": screen_id, "by_rater": rater_id, "change": -1}
        connection.execute(_TAKE, of_screen)  # raters who are excluded were never counted
    return len(expired)


def lease_of(connection: Connection, rater_id: str, assignment_id: int) -> Lease:
    """A screen that this rater has, or had."""
    return _lease(connection, _LEASE, rater_id, assignment_id)


def hold(connection: Connection, rater_id: str, assignment_id: int) -> Lease:
    """The same, and until the step ends the lease stays as it is."""
    return _lease(connection, _HOLD, rater_id, assignment_id)


def _lease(connection: Connection, query: Select[Any], rater_id: str, assignment_id: int) -> Lease:
    row = None
    if 0 < assignment_id < 2**31:
        row = connection.execute(query, {"by_rater": rater_id, "of_assignment": assignment_id}).first()
    if row is None:
        raise Refusal("this screen is not yours", 404)
    return Lease(**row._mapping)


def renew(connection: Connection, me: Rater, held: Lease, now: float, lease: float) -> bool:
    """Run the lease of a screen in hand anew; False if it ran out and somebody else has the place."""
    if not _keeps_place(connection, me, held):
        return False
    connection.execute(_RENEW, {"of_assignment": held.id, "until": now + lease})
    return True


def _keeps_place(connection: Connection, me: Rater, held: Lease) -> bool:
    """Count an expired lease again; False if somebody else has the place."""
    return held.status != "expired" or occupy(connection, me, held.screen)


def occupy(connection: Connection, me: Rater, screen_id: int) -> bool:
    """Take a place at a screen; False if it has all its raters. Who is excluded is never counted."""
    values = {"of_screen": screen_id, "change": _weight(me)}
    return connection.execute(_OCCUPY_ONE, values).rowcount > 0


def occupy_next(connection: Connection, me: Rater, group: int) -> int | None:
    """Take a place at the next screen of a group of questions that this rater has not had."""
    values = {"by_rater": me.id, "of_kind": "main", "of_group": group, "most": 1, "change": _weight(me)}
    screen_id = connection.execute(_OCCUPY_NEXT, values).scalar()
    if screen_id is None:  # is there none, or were the last ones just locked?
        screen_id = connection.execute(_OCCUPY_LAST, values).scalar()
    return screen_id


def _weight(me: Rater) -> int:
    return 0 if me.excluded else 1


def give(connection: Connection, rater_id: str, screen_id: int, kind: str, now: float, lease: float) -> Lease:
    """Lease a screen to a rater who has taken a place there."""
    row = {"screen_id": screen_id, "rater_id": rater_id, "given_at": now, "expires_at": now + lease}
    new = connection.execute(_GIVE, {**row, "of_screen": screen_id}).one()
    return Lease(new.id, rater_id, screen_id, kind, new.turn, "open", fresh=True)


def free_screens(
    connection: Connection, rater_id: str, kind: str, group: int, *, limit: int = 50
) -> list[int]:
    """Screens with room that this rater has not had, in the order in which blocks are to be filled."""
    values = {"by_rater": rater_id, "of_kind": kind, "of_group": group, "most": limit}
    return list(connection.execute(_FREE, values).scalars())


def neediest_group(connection: Connection, rater_id: str) -> int | None:
    """The group of questions with most room left that this rater can still work on."""
    return connection.execute(_NEEDIEST, {"by_rater": rater_id}).scalar()


def others_hold_work(connection: Connection, rater_id: str) -> bool:
    """Whether others have screens in hand that this rater could still get, should they not answer."""
    return connection.execute(_HELD_BY_OTHERS, {"by_rater": rater_id}).first() is not None


def finish(connection: Connection, me: Rater, held: Lease, now: float) -> str:
    """All is answered: counted as `done` if there is room, kept as `late` if there is none."""
    status = "done" if _keeps_place(connection, me, held) else "late"
    connection.execute(_FINISH, {"of_assignment": held.id, "new_status": status, "now": now})
    return status


def set_excluded(connection: Connection, rater_id: str, excluded: bool) -> None:
    """A rater's screens stop counting (screened out, excluded by the admin), or count again."""
    changed = connection.execute(
        update(rater).where(rater.c.id == rater_id, rater.c.excluded != excluded).values(excluded=excluded)
    ).rowcount
    if not changed:
        return
    counted = connection.execute(_COUNTED, {"by_rater": rater_id}).scalars().all()
    # In the order of their ids: two who are screened out at once would otherwise wait for each other.
    held = select(screen.c.id).where(screen.c.id.in_(counted)).order_by(screen.c.id)
    connection.execute(held.with_for_update(key_share=True)).all()
    change = -1 if excluded else +1
    connection.execute(update(screen).where(screen.c.id.in_(counted)).values(taken=screen.c.taken + change))


def latest_answered(connection: Connection, rater_id: str) -> Lease | None:
    """The screen that a rater answered last, training aside."""
    row = connection.execute(_LATEST, {"by_rater": rater_id}).first()
    return Lease(**row._mapping) if row else None
