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

LEASE = 60.0
Make = Callable[..., Study]


@pytest.fixture
def open_study(database: Database, clock: Any, make_study: Make) -> Callable[..., StudyState]:
    return lambda **fields: StudyState.create(database, make_study(**fields), "", clock)


def come(service: StudyState) -> str:
    rater = service.enter()
    service.begin(rater)
    return rater


def answers(task: Task, value: object = 3) -> list[RawAnswer]:
    return [
        RawAnswer(str(uuid.uuid4()), q.criterion, p, value)
        for q in task.questions
        for p in range(1 if q.scale.kind == "pairwise" else len(task.order))
    ]


def work(service: StudyState, rater: str) -> Task | None:
    task = service.visit(rater).task
    if task is not None:
        assert service.submit(rater, task.assignment, answers(task)).finished
    return task


def status_of(service: StudyState, assignment_id: int) -> str:
    with service.database.reading() as connection:
        chosen = select(assignment.c.status).where(assignment.c.id == assignment_id)
        return str(connection.execute(chosen).scalar_one())


def taken(service: StudyState) -> list[int]:
    with service.database.reading() as connection:
        return list(connection.execute(select(screen.c.taken).order_by(screen.c.id)).scalars())


def test_raters_share_the_work_and_then_there_is_none(open_study: Any) -> None:
    service = open_study(n_items=3, raters_per_item=2)
    seen: Counter[str] = Counter()
    for rater in [come(service) for _ in range(4)]:
        mine = []
        while (task := work(service, rater)) is not None:
            mine.append(task.item.id)
        assert len(mine) == len(set(mine))
        seen.update(mine)
    assert seen == {"item-0": 2, "item-1": 2, "item-2": 2}
    assert service.visit(come(service)).state == "done"
    assert taken(service) == [2, 2, 2]


def test_a_quota_ends_the_work(open_study: Any) -> None:
    service = open_study(n_items=5, items_per_rater=2)
    rater = come(service)
    assert [work(service, rater) is not None for _ in range(4)] == [True, True, False, False]
    assert service.visit(rater).state == "done"


def test_blocks_are_filled_in_order_of_arrival(open_study: Any) -> None:
    """An early stop leaves whole items: the first ten have all their raters before the eleventh has one."""
    service = open_study(n_items=25, raters_per_item=2)
    given = []
    for rater in [come(service) for _ in range(2)]:
        for _ in range(10):
            task = work(service, rater)
            assert task is not None
            given.append(task.item.id)
    assert set(Counter(given).values()) == {2}
    assert len(set(given)) == 10


def test_a_reload_keeps_the_screen_and_runs_its_lease_anew(open_study: Any, clock: Any) -> None:
    service = open_study(n_items=2, raters_per_item=1)
    rater, other = come(service), come(service)
    first = service.visit(rater).task
    for _ in range(3):
        clock.sleep(LEASE * 0.9)
        assert service.visit(rater).task == first
    assert service.visit(other).task.item.id != first.item.id


def test_a_lease_that_ran_out_is_somebody_elses(open_study: Any, clock: Any) -> None:
    service = open_study(n_items=1, raters_per_item=1)
    slow, quick = come(service), come(service)
    held = service.visit(slow).task
    assert service.visit(quick).task is None
    clock.sleep(LEASE)
    again = come(service)
    task = service.visit(again).task
    assert task is not None
    assert task.item.id == held.item.id
    assert service.submit(again, task.assignment, answers(task)).finished
    # The slow one's answers arrive: kept, marked, not counted.
    assert service.submit(slow, held.assignment, answers(held)).finished
    assert status_of(service, held.assignment) == "late"
    assert taken(service) == [1]


def test_a_late_answer_counts_while_there_is_room(open_study: Any, clock: Any) -> None:
    service = open_study(n_items=1, raters_per_item=1)
    slow = come(service)
    held = service.visit(slow).task
    clock.sleep(10 * LEASE)
    with service.database.writing() as connection:
        assert leases.reclaim(connection, clock()) == 1
    assert taken(service) == [0]
    service.submit(slow, held.assignment, answers(held))
    assert status_of(service, held.assignment) == "done"
    assert taken(service) == [1]


def test_who_comes_back_gets_the_screen_again_while_there_is_room(open_study: Any, clock: Any) -> None:
    service = open_study(n_items=2, raters_per_item=1)
    slow = come(service)
    held = service.visit(slow).task
    clock.sleep(10 * LEASE)
    assert service.visit(slow).task == held
    assert status_of(service, held.assignment) == "open"


def test_who_comes_back_too_late_gets_another_screen(open_study: Any, clock: Any) -> None:
    service = open_study(n_items=2, raters_per_item=1)
    slow, quick = come(service), come(service)
    held = service.visit(slow).task
    clock.sleep(10 * LEASE)
    mine = service.visit(quick).task
    assert mine.item.id == held.item.id
    task = service.visit(slow).task
    assert task is not None
    assert task.item.id != held.item.id


def test_an_excluded_raters_place_is_free_and_they_take_no_other(open_study: Any, clock: Any) -> None:
    service = open_study(n_items=2, raters_per_item=1)
    out, other = come(service), come(service)
    work(service, out)
    held = service.visit(out).task
    with service.database.writing() as connection:
        leases.set_excluded(connection, out, True)
        leases.set_excluded(connection, out, True)  # twice is once
    assert taken(service) == [0, 0]
    service.submit(out, held.assignment, answers(held))
    clock.sleep(10 * LEASE)
    assert work(service, other) is not None
    assert work(service, other) is not None
    assert taken(service) == [1, 1]


def test_who_is_included_again_counts_again(open_study: Any) -> None:
    service = open_study(n_items=2, raters_per_item=2)
    rater = come(service)
    work(service, rater)
    for excluded in (True, False):
        with service.database.writing() as connection:
            leases.set_excluded(connection, rater, excluded)
    assert sorted(taken(service)) == [0, 1]


def test_separate_criteria_stay_apart(open_study: Any) -> None:
    """A rater does one criterion to its end before another; two raters share the criteria."""
    service = open_study(n_items=3, raters_per_item=1, criteria=("a", "b"), layout="separate")
    first, second = come(service), come(service)
    mine = [task.questions[0].criterion for _ in range(3) if (task := work(service, first))]
    assert mine == ["a"] * 3
    task = work(service, second)
    assert task is not None
    assert task.questions[0].criterion == "b"


def test_many_at_once_never_make_a_surplus(database: Database, make_study: Make) -> None:
    """Threads with engines of their own, as worker processes have, about 200 visits."""
    study = make_study(n_items=20, raters_per_item=3)
    StudyState.create(database, study, "")
    errors: list[BaseException] = []
    given: list[tuple[str, str]] = []
    begin = threading.Barrier(8)

    def worker() -> None:
        own = Database(database.url)
        try:
            service = StudyState(own)
            begin.wait(30)
            for _ in range(2):
                rater = come(service)
                for n in range(13):
                    task = service.visit(rater).task
                    if task is None:
                        break
                    if n % 4 == 3:
                        break  # leaves with a screen in hand
                    service.submit(rater, task.assignment, answers(task))
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
            .where(assignment.c.status.in_(("open", "done")))
            .group_by(assignment.c.screen_id)
        )
        per_screen = dict(connection.execute(held).all())  # type: ignore[arg-type]
        counted = {s: n for s, n in connection.execute(select(screen.c.id, screen.c.taken)) if n}
    assert per_screen == counted
    assert max(per_screen.values()) <= 3
    assert sum(per_screen.values()) >= 48


def test_the_last_place_goes_to_one(database: Database, make_study: Make) -> None:
    """One screen, one place, everybody at once: exactly one gets it."""
    StudyState.create(database, make_study(n_items=1, raters_per_item=1), "")
    begin = threading.Barrier(8)
    got: list[bool] = []

    def worker() -> None:
        own = Database(database.url)
        try:
            service = StudyState(own)
            rater = come(service)
            begin.wait(30)
            got.append(service.visit(rater).task is not None)
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
    service = StudyState.create(sqlite, study, "", clock)
    people = [come(service) for _ in range(raters)]
    stood: Counter[tuple[int, int]] = Counter()
    busy = True
    while busy:
        busy = False
        for rater in people:
            task = work(service, rater)
            if task is not None:
                busy = True
                stood.update((output, place) for place, output in enumerate(task.order))
    assert sum(stood.values()) == 11 * raters * n_outputs
    assert len(stood) == n_outputs**2
    assert max(stood.values()) - min(stood.values()) <= 1
