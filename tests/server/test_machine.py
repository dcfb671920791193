"""A state machine over everything raters and the admin can do, in any order, and what must hold after each
step: no surplus, no screen twice to one rater, no acknowledged answer missing, no output that changes place.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from sqlalchemy import event, func, select, update

from palaver.schema import Study
from palaver.server import leases
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.refusal import Refusal
from palaver.server.study_state import StudyState, Task
from palaver.server.tables import answer, assignment, rater, screen

LEASE = 60.0
N_ITEMS = 3
pick = st.integers(0, 1_000_000)
"""Taken modulo what there is at that moment."""


def known_item(name: str) -> dict[str, Any]:
    outputs = [{"system": "a", "text": "a fine answer"}, {"system": "b", "text": "no"}]
    return {
        "item": {"id": name, "outputs": outputs},
        "expected": [{"criterion": "quality", "system": "a", "low": 3, "feedback": "it was fine"}],
    }


def design(raters: int, quota: int | None, layout: str, extras: set[str]) -> Study:
    asked = [("quality", True), ("fluency", True), ("remarkable", False)]
    data: dict[str, Any] = {
        "name": "machine",
        "layout": layout,
        "raters_per_item": raters,
        "items_per_rater": quota,
        "lease_minutes": LEASE / 60,
        "questions": [
            {"criterion": c, "text": "?", "scale": {"kind": "likert"}, "required": needed}
            for c, needed in asked[: 3 if layout == "joint" else 2]
        ],
        "items": [
            {"id": f"i{i}", "outputs": [{"system": s, "text": f"{s} says word {i} twice"} for s in "abc"]}
            for i in range(N_ITEMS)
        ],
    }
    checks: dict[str, Any] = {"rate": 0.5, "allowed_failures": 0}
    if "checks" in extras:
        checks["items"] = [known_item("gold")]
    if "degraded" in extras:
        checks["degraded"] = True
    if "training" in extras:
        data["training"] = {"items": [known_item("practice")], "pass_mark": 1.0, "attempts": 2}
    if "survey" in extras:
        data["survey"] = [{"name": "age", "text": "Your age?"}]
    return Study.model_validate({**data, "checks": checks})


class Raters(RuleBasedStateMachine):
    """Raters who come, work, dawdle, send twice, vanish and are thrown out."""

    new_database: Callable[[], Database]

    @initialize(
        raters=st.integers(1, 3),
        quota=st.sampled_from([None, 2]),
        layout=st.sampled_from(["joint", "separate"]),
        extras=st.sets(st.sampled_from(["checks", "degraded", "training", "survey"])),
    )
    def open_study(self, raters: int, quota: int | None, layout: str, extras: set[str]) -> None:
        self.now = 1_700_000_000.0
        self.database = type(self).new_database()
        self.study_state = StudyState.create(
            self.database, design(raters, quota, layout, extras), "", lambda: self.now
        )
        self.raters: list[str] = []
        self.tasks: list[tuple[str, Task]] = []
        self.sent: list[tuple[str, int, list[RawAnswer]]] = []
        self.acknowledged: dict[str, str] = {}
        self.shown: dict[int, tuple[Any, ...]] = {}

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()

    # --- raters

    @rule(person=st.none() | st.sampled_from("abcdef"))
    def enter(self, person: str | None) -> None:
        someone = self.study_state.enter("link" if person is None else "prolific", person)
        if someone not in self.raters:
            self.raters.append(someone)
        self.study_state.agree(someone)
        self.study_state.begin(someone)

    @precondition(lambda self: self.raters)
    @rule(who=pick)
    def visit(self, who: int) -> None:
        someone = self.raters[who % len(self.raters)]
        found = self.study_state.visit(someone)
        if found.task is None:
            left = ("survey", "done", "withdrawn", "screened", "blocked")
            assert found.state in ("waiting", "unneeded", *left)
            return
        task = found.task
        again = self.study_state.visit(someone).task
        assert again is not None
        assert (again.assignment, again.order) == (task.assignment, task.order), "a reload changes nothing"
        there = (someone, task.item.id, task.order, task.questions)
        assert self.shown.setdefault(task.assignment, there) == there, "an assignment changed"
        if (someone, task.assignment) not in [(r, t.assignment) for r, t in self.tasks]:
            self.tasks.append((someone, task))

    def _answers(self, task: Task, values: int, *, only: int | None = None) -> list[RawAnswer]:
        cells = [(q, p) for q in task.questions for p in range(len(task.order)) if q.required]
        chosen = cells if only is None else [cells[only % len(cells)]]
        return [
            RawAnswer(str(uuid.uuid4()), q.criterion, p, 1 + (values >> n) % 6, 1.5, self.now)
            for n, (q, p) in enumerate(chosen)
        ]

    def _send(self, someone: str, assignment_id: int, answers: list[RawAnswer]) -> None:
        try:
            saved = self.study_state.submit(someone, assignment_id, answers)
        except Refusal as refusal:
            in_training = self.shown[assignment_id][1] == "practice"
            too_often = "too many times" in refusal.message
            assert refusal.status == 403 or (refusal.status == 409 and (in_training or too_often)), refusal
            return
        assert saved.saved == tuple(a.id for a in answers)
        self.acknowledged |= {a.id: str(a.value) for a in answers}
        self.sent.append((someone, assignment_id, answers))

    @precondition(lambda self: self.tasks)
    @rule(which=pick, values=pick)
    def answer(self, which: int, values: int) -> None:
        """Old tasks are among them: late answers, and answers to what somebody else has meanwhile."""
        someone, task = self.tasks[which % len(self.tasks)]
        self._send(someone, task.assignment, self._answers(task, values))

    @precondition(lambda self: self.tasks)
    @rule(values=pick)
    def answer_the_latest(self, values: int) -> None:
        someone, task = self.tasks[-1]
        self._send(someone, task.assignment, self._answers(task, values))

    @precondition(lambda self: self.tasks)
    @rule(which=pick, values=pick, only=pick)
    def answer_a_part(self, which: int, values: int, only: int) -> None:
        someone, task = self.tasks[which % len(self.tasks)]
        self._send(someone, task.assignment, self._answers(task, values, only=only))

    @precondition(lambda self: self.sent)
    @rule(which=pick)
    def send_again(self, which: int) -> None:
        before = self._count(answer)
        self._send(*self.sent[which % len(self.sent)])
        assert self._count(answer) == before, "the same answer twice is one row"

    @precondition(lambda self: len(self.raters) > 1 and self.tasks)
    @rule(who=pick, which=pick)
    def meddle(self, who: int, which: int) -> None:
        owner, task = self.tasks[which % len(self.tasks)]
        other = self.raters[who % len(self.raters)]
        if other == owner:
            return
        before = self._count(answer)
        with pytest.raises(Refusal) as caught:
            self.study_state.submit(other, task.assignment, self._answers(task, 0))
        assert caught.value.status in (403, 404)
        assert self._count(answer) == before

    @precondition(lambda self: self.raters)
    @rule(who=pick)
    def drop(self, who: int) -> None:
        """Somebody closes the page for good."""
        gone = self.raters.pop(who % len(self.raters))
        self.tasks = [(r, t) for r, t in self.tasks if r != gone]

    @precondition(lambda self: self.raters)
    @rule(who=pick)
    def leave(self, who: int) -> None:
        self.study_state.withdraw(self.raters[who % len(self.raters)])

    # --- time and the admin

    @rule(share=st.sampled_from([0.4, 1.0, 3.0]))
    def wait(self, share: float) -> None:
        self.now += share * LEASE

    @precondition(lambda self: self.raters)
    @rule(who=pick, blocked=st.booleans())
    def block(self, who: int, blocked: bool) -> None:
        with self.database.writing() as connection:
            chosen = rater.c.id == self.raters[who % len(self.raters)]
            connection.execute(update(rater).where(chosen).values(blocked=blocked))

    @precondition(lambda self: self.raters)
    @rule(who=pick)
    def exclude(self, who: int) -> None:
        someone = self.raters[who % len(self.raters)]
        with self.database.writing() as connection:
            leases.set_excluded(connection, someone, True)

    # --- what must hold

    def _count(self, table: Any) -> int:
        with self.database.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(table)).scalar_one())

    @invariant()
    def nobody_is_surplus_and_nothing_is_lost(self) -> None:
        if not hasattr(self, "database"):
            return
        with self.database.reading() as connection:
            rows = connection.execute(
                select(
                    assignment.c.screen_id,
                    assignment.c.rater_id,
                    assignment.c.status,
                    rater.c.excluded,
                    screen.c.kind,
                )
                .join(rater, rater.c.id == assignment.c.rater_id)
                .join(screen, screen.c.id == assignment.c.screen_id)
            ).all()
            taken = dict(connection.execute(select(screen.c.id, screen.c.taken)).all())  # type: ignore[arg-type]
            stored = dict(connection.execute(select(answer.c.id, answer.c.value)).all())  # type: ignore[arg-type]
        target = self.study_state.study.raters_per_item
        for place, number in taken.items():
            here = [row for row in rows if row.screen_id == place]
            counted = [row for row in here if not row.excluded and row.status == "done"]
            held = [row for row in here if not row.excluded and row.status in ("done", "open")]
            assert number == len(held), f"screen {place}: taken {number}, recounted {len(held)}"
            if here and here[0].kind == "main":
                assert len(counted) <= target, f"screen {place}: surplus"
                assert len(held) <= target, f"screen {place}: surplus in hand"
        seen = [(row.screen_id, row.rater_id) for row in rows]
        assert len(seen) == len(set(seen)), "a screen twice to one rater"
        lost = {i: v for i, v in self.acknowledged.items() if stored.get(i) != v}
        assert not lost, "acknowledged and not stored"


def careless(database: Database) -> Database:
    """No waiting for the disk: what is tested here is logic, and there are thousands of commits."""

    @event.listens_for(database.engine, "connect")
    def _prepare(connection: Any, record: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    return database


def test_on_sqlite(tmp_path: Path) -> None:
    template = tmp_path / "template.db"
    first = Database(f"sqlite:///{template}")
    migrate(first)
    first.close()

    def fresh() -> Database:
        path = Path(tempfile.mkdtemp(dir=tmp_path)) / "study.db"
        shutil.copy(template, path)
        return careless(Database(f"sqlite:///{path}"))

    run(fresh, max_examples=30, stateful_step_count=50)


def test_on_postgresql(postgres: Any) -> None:
    template = postgres.new()
    first = Database(template)
    migrate(first)
    first.close()
    name = template.rpartition("/")[2]
    run(lambda: Database(postgres.new(name)), max_examples=10, stateful_step_count=30)


def run(new_database: Callable[[], Database], **limits: int) -> None:
    machine = type("Machine", (Raters,), {"new_database": staticmethod(new_database)})
    run_machine(
        machine,
        settings=settings(deadline=None, suppress_health_check=list(HealthCheck), **limits),  # type: ignore[arg-type]
    )
