"""Leases: handed out in order, taken back, never a surplus, also not from several processes at once."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from palaver.schema import Study
from palaver.server import leases
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.study_state import StudyState, Task
from palaver.server.tables import assignment, screen
from palaver.server.tables import rater as rater_table

LEASE = 60.0
Make = Callable[..., Study]


@pytest.fixture
def open_study(database: Database, clock: Any, make_study: Make) -> Callable[..., StudyState]:
    return lambda **fields: StudyState.create(database, make_study(**fields), "", clock)


def come(study_state: StudyState) -> str:
    rater = study_state.enter()
    study_state.begin(rater)
    return rater


def answers(task: Task, value: object = 3) -> list[RawAnswer]:
    return [
        RawAnswer(str(uuid.uuid4()), q.criterion, p, value)
        for q in task.questions
        for p in range(1 if q.scale.kind == "pairwise" else len(task.order))
    ]


def work(study_state: StudyState, rater: str) -> Task | None:
    task = study_state.visit(rater).task
    if task is not None:
        assert study_state.submit(rater, task.assignment, answers(task)).finished
    return task


def status_of(study_state: StudyState, assignment_id: int) -> str:
    with study_state.database.reading() as connection:
        chosen = select(assignment.c.status).where(assignment.c.id == assignment_id)
        return str(connection.execute(chosen).scalar_one())


def taken(study_state: StudyState) -> list[int]:
    with study_state.database.reading() as connection:
        return list(connection.execute(select(screen.c.taken).order_by(screen.c.id)).scalars())


def test_raters_share_the_work_and_then_there_is_none(open_study: Any) -> None:
    study_state = open_study(n_items=3, raters_per_item=2)
    seen: Counter[str] = Counter()
    for rater in [come(study_state) for _ in range(4)]:
        mine = []
        while (task := work(study_state, rater)) is not None:
            mine.append(task.item.id)
        assert len(mine) == len(set(mine))
        seen.update(mine)
    assert seen == {"item-0": 2, "item-1": 2, "item-2": 2}
    assert study_state.visit(come(study_state)).state == "unneeded"
    assert taken(study_state) == [2, 2, 2]


def test_a_quota_ends_the_work(open_study: Any) -> None:
    study_state = open_study(n_items=5, items_per_rater=2)
    rater = come(study_state)
    assert [work(study_state, rater) is not None for _ in range(4)] == [True, True, False, False]
    assert study_state.visit(rater).state == "done"


def test_blocks_are_filled_in_order_of_arrival(open_study: Any) -> None:
    """An early stop leaves whole items: the first ten have all their raters before the eleventh has one."""
    study_state = open_study(n_items=25, raters_per_item=2)
    given = []
    for rater in [come(study_state) for _ in range(2)]:
        for _ in range(10):
            task = work(study_state, rater)
            assert task is not None
            given.append(task.item.id)
    assert set(Counter(given).values()) == {2}
    assert len(set(given)) == 10


def test_a_reload_keeps_the_screen_and_runs_its_lease_anew(open_study: Any, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    rater, other = come(study_state), come(study_state)
    first = study_state.visit(rater).task
    for _ in range(3):
        clock.sleep(LEASE * 0.9)
        assert study_state.visit(rater).task == first
    assert study_state.visit(other).task.item.id != first.item.id


def test_a_lease_that_ran_out_is_somebody_elses(open_study: Any, clock: Any) -> None:
    study_state = open_study(n_items=1, raters_per_item=1)
    slow, quick = come(study_state), come(study_state)
    held = study_state.visit(slow).task
    assert study_state.visit(quick).task is None
    clock.sleep(LEASE)
    again = come(study_state)
    task = study_state.visit(again).task
    assert task is not None
    assert task.item.id == held.item.id
    assert study_state.submit(again, task.assignment, answers(task)).finished
    # The slow one's answers arrive: kept, marked, not counted.
    assert study_state.submit(slow, held.assignment, answers(held)).finished
    assert status_of(study_state, held.assignment) == "late"
    assert taken(study_state) == [1]


def test_a_late_answer_counts_while_there_is_room(open_study: Any, clock: Any) -> None:
    study_state = open_study(n_items=1, raters_per_item=1)
    slow = come(study_state)
    held = study_state.visit(slow).task
    clock.sleep(10 * LEASE)
    with study_state.database.writing() as connection:
        assert leases.reclaim(connection, clock()) == 1
    assert taken(study_state) == [0]
    study_state.submit(slow, held.assignment, answers(held))
    assert status_of(study_state, held.assignment) == "done"
    assert taken(study_state) == [1]


def test_who_comes_back_gets_the_screen_again_while_there_is_room(open_study: Any, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    slow = come(study_state)
    held = study_state.visit(slow).task
    clock.sleep(10 * LEASE)
    assert study_state.visit(slow).task == held
    assert status_of(study_state, held.assignment) == "open"


def test_who_comes_back_too_late_gets_another_screen(open_study: Any, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    slow, quick = come(study_state), come(study_state)
    held = study_state.visit(slow).task
    clock.sleep(10 * LEASE)
    mine = study_state.visit(quick).task
    assert mine.item.id == held.item.id
    task = study_state.visit(slow).task
    assert task is not None
    assert task.item.id != held.item.id


def test_an_excluded_raters_place_is_free_and_they_take_no_other(open_study: Any, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    out, other = come(study_state), come(study_state)
    work(study_state, out)
    held = study_state.visit(out).task
    with study_state.database.writing() as connection:
        leases.set_excluded(connection, out, True)
        leases.set_excluded(connection, out, True)  # twice is once
    assert taken(study_state) == [0, 0]
    study_state.submit(out, held.assignment, answers(held))
    clock.sleep(10 * LEASE)
    assert work(study_state, other) is not None
    assert work(study_state, other) is not None
    assert taken(study_state) == [1, 1]


def test_who_is_included_again_counts_again(open_study: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=2)
    rater = come(study_state)
    work(study_state, rater)
    for excluded in (True, False):
        with study_state.database.writing() as connection:
            leases.set_excluded(connection, rater, excluded)
    assert sorted(taken(study_state)) == [0, 1]


def test_separate_criteria_stay_apart(open_study: Any) -> None:
    """A rater does one criterion to its end before another; two raters share the criteria."""
    study_state = open_study(n_items=3, raters_per_item=1, criteria=("a", "b"), layout="separate")
    first, second = come(study_state), come(study_state)
    mine = [task.questions[0].criterion for _ in range(3) if (task := work(study_state, first))]
    assert mine == ["a"] * 3
    task = work(study_state, second)
    assert task is not None
    assert task.questions[0].criterion == "b"


GOLD = {
    "item": {"id": "gold", "outputs": [{"system": "a", "text": "good"}, {"system": "b", "text": "bad"}]},
    "expected": [{"criterion": "quality", "system": "a", "low": 3}],
}


@pytest.mark.parametrize("checks", [{}, {"items": [GOLD], "rate": 0.5, "allowed_failures": 0}])
def test_many_at_once_never_make_a_surplus(
    database: Database, make_study: Make, checks: dict[str, Any]
) -> None:
    """Threads with engines of their own, as worker processes have, about 200 visits.

    With checks, half of the raters are screened out: all places that they had are free again, at once.
    """
    study = make_study(n_items=20, raters_per_item=3, checks=checks)
    StudyState.create(database, study, "")
    errors: list[BaseException] = []
    given: list[tuple[str, str]] = []
    begin = threading.Barrier(8)

    def worker() -> None:
        own = Database(database.url)
        try:
            study_state = StudyState(own)
            begin.wait(30)
            for value in (1, 5):
                rater = come(study_state)
                for n in range(13):
                    task = study_state.visit(rater).task
                    if task is None:
                        break
                    if n % 4 == 3:
                        break  # leaves with a screen in hand
                    study_state.submit(rater, task.assignment, answers(task, value))
                    given.append((rater, task.item.id))
        except BaseException as error:
            errors.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert len(given) == len(set(given))
    with database.reading() as connection:
        held = (
            select(assignment.c.screen_id, func.count().label("n"))
            .join(rater_table, rater_table.c.id == assignment.c.rater_id)
            .where(assignment.c.status.in_(("open", "done")), ~rater_table.c.excluded)
            .group_by(assignment.c.screen_id)
        )
        is_real = screen.c.kind == "main"
        per_screen = dict(connection.execute(held).all())  # type: ignore[arg-type]
        counted = {s: n for s, n in connection.execute(select(screen.c.id, screen.c.taken)) if n}
        real = set(connection.execute(select(screen.c.id).where(is_real)).scalars())
    assert per_screen == counted
    assert max(n for s, n in per_screen.items() if s in real) <= 3
    assert sum(per_screen.values()) >= (20 if checks else 48)


def test_the_last_place_goes_to_one(database: Database, make_study: Make) -> None:
    """One screen, one place, everybody at once: exactly one gets it."""
    StudyState.create(database, make_study(n_items=1, raters_per_item=1), "")
    begin = threading.Barrier(8)
    got: list[bool] = []

    def worker() -> None:
        own = Database(database.url)
        try:
            study_state = StudyState(own)
            rater = come(study_state)
            begin.wait(30)
            got.append(study_state.visit(rater).task is not None)
        finally:
            own.close()

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == [False] * 7 + [True]


@pytest.mark.parametrize("n_outputs", [2, 3, 4, 5])
@pytest.mark.parametrize("raters", [1, 2, 3])
def test_places_are_counterbalanced_as_served(
    sqlite: Database, clock: Any, make_study: Make, n_outputs: int, raters: int
) -> None:
    """Over the whole study every output stands in every place equally often (±1), raters in any rhythm."""
    study = make_study(n_items=11, n_outputs=n_outputs, raters_per_item=raters)
    study_state = StudyState.create(sqlite, study, "", clock)
    people = [come(study_state) for _ in range(raters)]
    stood: Counter[tuple[int, int]] = Counter()
    busy = True
    while busy:
        busy = False
        for rater in people:
            task = work(study_state, rater)
            if task is not None:
                busy = True
                stood.update((output, place) for place, output in enumerate(task.order))
    assert sum(stood.values()) == 11 * raters * n_outputs
    assert len(stood) == n_outputs**2
    assert max(stood.values()) - min(stood.values()) <= 1
