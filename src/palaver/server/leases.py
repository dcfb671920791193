"""Who gets which screen. All of it is state in the database; any process may serve any request.

A screen is leased to a rater. Leases that run out are taken back before anything is handed out, so `taken`
(answered, or leased and still running) never exceeds the number of raters a screen is to have. Somebody who
answers after the lease ran out is still counted while there is room, and kept but not counted (`late`) if
somebody else took the place.

A new lease is short until the page shows that somebody is there (`SIGN_OF_LIFE`): whoever only opens pages
keeps no screen from others for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, bindparam, exists, func, insert, select, update

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
_RECLAIM = (
    update(assignment)
    .where(assignment.c.status == "open", assignment.c.expires_at <= bindparam("now"))
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
_CURRENT = (
    _LEASES.where(
        assignment.c.rater_id == bindparam("by_rater"), assignment.c.status.in_(("open", "expired"))
    )
    .order_by(assignment.c.id.desc())
    .limit(1)
)
_TURN = select(func.count()).select_from(assignment).where(assignment.c.screen_id == bindparam("of_screen"))
_GIVE = insert(assignment).returning(assignment.c.id)
_UNSEEN = ~exists().where(
    and_(assignment.c.screen_id == screen.c.id, assignment.c.rater_id == bindparam("by_rater"))
)
_FREE = (
    select(screen.c.id)
    .where(screen.c.kind == bindparam("of_kind"), screen.c.group_no == bindparam("of_group"))
    .where(screen.c.taken < screen.c.target, _UNSEEN)
    .order_by(screen.c.block_no, screen.c.taken, screen.c.id)
    .limit(bindparam("most"))
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
_PROGRESS = (
    select(func.count())
    .select_from(assignment.join(screen, screen.c.id == assignment.c.screen_id))
    .where(
        assignment.c.rater_id == bindparam("by_rater"),
        assignment.c.status.in_(("done", "late")),
        screen.c.kind.in_(bindparam("kinds", expanding=True)),
    )
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


def reclaim(connection: Connection, now: float) -> int:
    """Take back the leases that ran out; how many."""
    expired = connection.execute(_RECLAIM, {"now": now}).all()
    for screen_id, rater_id in expired:
        _take(connection, screen_id, rater_id, -1)
    return len(expired)


def _take(connection: Connection, screen_id: int, rater_id: str, change: int) -> None:
    """Change how many a screen has; raters who are excluded were never among them."""
    connection.execute(_TAKE, {"of_screen": screen_id, "by_rater": rater_id, "change": change})


def current(connection: Connection, rater_id: str) -> Lease | None:
    """The screen a rater has been given and not yet answered, its lease running or not."""
    row = connection.execute(_CURRENT, {"by_rater": rater_id}).first()
    return Lease(**row._mapping) if row else None


def lease_of(connection: Connection, rater_id: str, assignment_id: int) -> Lease:
    """A screen that this rater has, or had."""
    row = None
    if 0 < assignment_id < 2**31:
        row = connection.execute(_LEASE, {"by_rater": rater_id, "of_assignment": assignment_id}).first()
    if row is None:
        raise Refusal("this screen is not yours", 404)
    return Lease(**row._mapping)


def renew(connection: Connection, held: Lease, now: float, lease: float) -> bool:
    """Run the lease of a screen in hand anew; False if it ran out and somebody else has the place."""
    if not _keeps_place(connection, held):
        return False
    connection.execute(
        update(assignment).where(assignment.c.id == held.id).values(status="open", expires_at=now + lease)
    )
    return True


def _keeps_place(connection: Connection, held: Lease) -> bool:
    """Count an expired lease again; False if somebody else has the place."""
    if held.status != "expired":
        return True
    room = connection.execute(
        select(screen.c.taken < screen.c.target).where(screen.c.id == held.screen)
    ).scalar_one()
    if not room and held.kind == "main":
        return False
    _take(connection, held.screen, held.rater, +1)
    return True


def give(connection: Connection, rater_id: str, screen_id: int, kind: str, now: float, lease: float) -> Lease:
    """Lease a screen to a rater."""
    turn = connection.execute(_TURN, {"of_screen": screen_id}).scalar_one()
    row = {"screen_id": screen_id, "rater_id": rater_id, "status": "open", "turn": turn}
    new = connection.execute(_GIVE, {**row, "given_at": now, "expires_at": now + lease}).scalar_one()
    _take(connection, screen_id, rater_id, +1)
    return Lease(new, rater_id, screen_id, kind, turn, "open", fresh=True)


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


def finish(connection: Connection, held: Lease, now: float) -> str:
    """All is answered: counted as `done` if there is room, kept as `late` if there is none."""
    status = "done" if _keeps_place(connection, held) else "late"
    connection.execute(
        update(assignment).where(assignment.c.id == held.id).values(status=status, done_at=now)
    )
    return status


def set_excluded(connection: Connection, rater_id: str, excluded: bool) -> None:
    """A rater's screens stop counting (screened out, excluded by the admin), or count again."""
    changed = connection.execute(
        update(rater).where(rater.c.id == rater_id, rater.c.excluded != excluded).values(excluded=excluded)
    ).rowcount
    if not changed:
        return
    held = select(assignment.c.screen_id).where(
        assignment.c.rater_id == rater_id, assignment.c.status.in_(("open", "done"))
    )
    change = -1 if excluded else +1
    connection.execute(update(screen).where(screen.c.id.in_(held)).values(taken=screen.c.taken + change))


def progress(connection: Connection, rater_id: str, kinds: Sequence[str] = ("main",)) -> int:
    """How many real screens a rater has answered, or screens of other kinds."""
    return connection.execute(_PROGRESS, {"by_rater": rater_id, "kinds": list(kinds)}).scalar_one()


def latest_answered(connection: Connection, rater_id: str) -> Lease | None:
    """The screen that a rater answered last, training aside."""
    row = connection.execute(_LATEST, {"by_rater": rater_id}).first()
    return Lease(**row._mapping) if row else None
