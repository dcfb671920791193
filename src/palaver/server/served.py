"""A study as it is served: items, questions and known answers by name, and the rows of who is where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select

from palaver.errors import UserError
from palaver.schema import Item, Question, Study
from palaver.schema.delivery import Expected, KnownItem
from palaver.server.tables import answer, event, rater, screen
from palaver.studies.checks import can_degrade, degrade
from palaver.studies.screens import Screen, plan_screens, question_groups

UNLIMITED = 1_000_000
"""Checks and training are for everybody."""


def storable(text: str, what: str, longest: int, *, shortest: int = 0) -> str:
    """Text that every database takes: no NUL, no half characters, not too long."""
    if not shortest <= len(text) <= longest:
        raise Refused(f"{what}: expected {shortest} to {longest:,} characters, found {len(text):,}", 422)
    return clean(text, what)


def clean(text: str, what: str = "the text") -> str:
    """Text as every database takes it: no NUL, no half of a surrogate pair."""
    if "\0" in text:
        raise Refused(f"{what} contains a NUL character, which cannot be stored", 422)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(f"{what} is not valid Unicode", 422) from None
    return text


class Refused(UserError):
    """A request that the study's rules do not permit; `status` is what HTTP calls it."""

    def __init__(self, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.status = status


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


@dataclass(frozen=True, slots=True)
class Place:
    """A screen with what it shows."""

    screen: Screen
    kind: str
    item: Item
    questions: tuple[Question, ...]
    expected: tuple[Expected, ...] = ()
    """What is known of the right answers to this screen's questions."""


class Served:
    """Look-ups that do not change while a study runs."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.items = {item.id: item for item in study.items}
        self.groups = question_groups(study)
        known = [*(study.training.items if study.training else ()), *study.checks.items]
        self.known: dict[str, KnownItem] = {k.item.id: k for k in known}
        self.n_screens = len(plan_screens(study))
        self._places: dict[int, Place] = {}

    def place(self, connection: Connection, screen_id: int) -> Place:
        """What is on a screen. Only its count of raters ever changes, so the rest is read once."""
        if screen_id not in self._places:
            self._places[screen_id] = self._read_place(connection, screen_id)
        return self._places[screen_id]

    def _read_place(self, connection: Connection, screen_id: int) -> Place:
        row = connection.execute(select(screen).where(screen.c.id == screen_id)).one()
        where = Screen(row.id, row.item, tuple(json.loads(row.criteria)), row.group_no, row.place)
        questions = self.groups[row.group_no]
        if row.kind in ("check", "training"):
            known = self.known[row.item]
            asked = tuple(e for e in known.expected if e.criterion in where.criteria)
            return Place(where, row.kind, known.item, questions, asked)
        item = self.items[row.item]
        return Place(
            where, row.kind, degrade(item, self.study.seed) if row.kind == "degraded" else item, questions
        )


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
        raise Refused("you have not entered this study", 401)
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


def screen_rows(study: Study) -> list[dict[str, object]]:
    """Every screen that can be handed out: real ones, broken copies, checks, and training by attempt."""
    plan = plan_screens(study)
    rows = [_row(s, "main", study.raters_per_item) for s in plan]
    if study.checks.degraded:
        breakable = {item.id for item in study.items if can_degrade(item, study.seed)}
        rows += [_row(s, "degraded", UNLIMITED) for s in plan if s.item in breakable]
    known = [("check", 0, k) for k in study.checks.items]
    if study.training:
        known += [("training", n, k) for n in range(study.training.attempts) for k in study.training.items]
    for kind, block, k in known:
        for group, questions in enumerate(question_groups(study)):
            criteria = tuple(q.criterion for q in questions)
            if {e.criterion for e in k.expected} & set(criteria):
                rows.append(_row(Screen(0, k.item.id, criteria, group, block), kind, UNLIMITED))
    return [{**row, "id": number} for number, row in enumerate(rows)]


def _row(place: Screen, kind: str, target: int) -> dict[str, object]:
    return {
        "kind": kind,
        "item": place.item,
        "criteria": json.dumps(place.criteria),
        "group_no": place.group,
        "place": place.place,
        "block_no": place.block if kind in ("main", "degraded") else place.place,
        "target": target,
        "taken": 0,
    }
