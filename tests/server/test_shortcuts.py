"""What is done in one call on PostgreSQL: the same rows as by the long way, and nobody in between."""

from __future__ import annotations

import itertools
import random
import secrets
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from palaver.schema import Study
from palaver.server import oversight, shortcuts
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.export import frames
from palaver.server.live import Live
from palaver.server.migrations import migrate
from palaver.server.refusal import Refusal
from palaver.server.study_state import StudyState, Task
from palaver.server.tables import answer, metadata

Make = Callable[..., Study]


@pytest.fixture
def new_database(postgres: Any) -> Iterator[Callable[[], Database]]:
    made: list[Database] = []

    def new() -> Database:
        made.append(Database(postgres.new()))
        migrate(made[-1])
        return made[-1]

    yield new
    for database in made:
        database.close()


def come(study_state: StudyState) -> str:
    rater = study_state.enter()
    study_state.begin(rater)
    return rater


def all_answers(task: Task, value: int = 4) -> list[RawAnswer]:
    return [
        RawAnswer(str(uuid.uuid4()), q.criterion, place, value)
        for q in task.questions
        for place in range(len(task.order))
    ]


def checked_study(make_study: Make, **fields: Any) -> Study:
    known = {
        "item": {"id": "gold", "outputs": [{"system": "a", "text": "fine"}, {"system": "b", "text": "no"}]},
        "expected": [{"criterion": "quality", "system": "a", "low": 3}],
    }
    checks = {"items": [known], "degraded": True, "rate": 0.4, "allowed_failures": 1}
    return make_study(**{"n_items": 15, "raters_per_item": 3, "checks": checks, **fields})


def act_at_random(database: Database, study: Study, seed: int) -> list[str]:
    """Raters who come, work, dawdle, send twice and are thrown out; what they were told."""
    now = [1_700_000_000.0]
    numbers = random.Random(seed)
    study_state = StudyState.create(database, study, "", lambda: now[0])
    raters: list[str] = []
    told: list[str] = []
    sent: list[tuple[str, int, list[RawAnswer]]] = []
    held: dict[str, Task] = {}

    def send(rater: str, assignment: int, answers: list[RawAnswer], remark: str = "") -> None:
        try:
            told.append(str(study_state.submit(rater, assignment, answers, remark)))
        except Refusal as refusal:
            told.append(refusal.message)

    for step in range(220):
        now[0] += numbers.choice([0.1, 1.0, 20.0])
        if not raters or (len(raters) < 9 and numbers.random() < 0.1):
            raters.append(come(study_state))
        rater = numbers.choice(raters)
        task = held.get(rater)
        deed = numbers.random()
        if task is None or deed < 0.2:
            visit = study_state.visit(rater)
            told.append(f"{visit.state} {visit.code} {visit.task}")
            if visit.task is not None:
                held[rater] = visit.task
        elif deed < 0.85:
            answers = [
                RawAnswer(f"answer-{step}-{n}", q.criterion, place, numbers.randint(1, 6), 1.5, now[0])
                for n, (q, place) in enumerate(itertools.product(task.questions, range(len(task.order))))
            ]
            if numbers.random() < 0.15:
                answers = answers[:1]
            send(rater, task.assignment, answers, "hm" if numbers.random() < 0.1 else "")
            sent.append((rater, task.assignment, answers))
            held.pop(rater)
        elif deed < 0.93 and sent:
            send(*numbers.choice(sent))
        else:
            oversight.decide(
                database, rater, numbers.choice(["exclude", "include", "block", "unblock"]), now[0]
            )
    return told


def rows(database: Database) -> dict[str, list[Any]]:
    with database.reading() as connection:
        return {
            name: sorted(map(tuple, connection.execute(sa.select(table))), key=repr)
            for name, table in metadata.tables.items()
            if name != "study"  # it has a secret
        }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("layout", ["joint", "separate"])
def test_the_short_way_leads_where_the_long_one_does(
    new_database: Callable[[], Database],
    make_study: Make,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    layout: str,
) -> None:
    study = checked_study(
        make_study, layout=layout, criteria=("quality", "fluency"), items_per_rater=[None, 5][seed % 2]
    )
    stored: list[bool] = []
    store = shortcuts.store_answers

    def note_and_store(*args: Any) -> bool:
        stored.append(store(*args))
        return stored[-1]

    def outcome() -> tuple[list[str], dict[str, list[Any]]]:
        counter = itertools.count()
        here, token_hex = threading.get_ident(), secrets.token_hex

        def next_token(n: int) -> str:
            """In the order of this play; what other threads draw does not count."""
            return f"{next(counter):0{2 * n}x}" if threading.get_ident() == here else token_hex(n)

        monkeypatch.setattr(secrets, "token_hex", next_token)
        database = new_database()
        return act_at_random(database, study, seed), rows(database)

    monkeypatch.setattr(shortcuts, "store_answers", note_and_store)
    short = outcome()
    assert stored.count(True) >= 5, "the short way was hardly taken"
    monkeypatch.setattr(shortcuts, "take_screen", lambda *args: None)
    monkeypatch.setattr(shortcuts, "store_answers", lambda *args: False)
    long = outcome()
    assert short[0] == long[0]
    assert short[1] == long[1]


def test_a_page_and_its_answer_are_one_statement_each(
    new_database: Callable[[], Database], make_study: Make
) -> None:
    database = new_database()
    study_state = StudyState.create(database, make_study(n_items=6), "")
    rater = come(study_state)

    def work() -> None:
        task = study_state.visit(rater).task
        assert task is not None
        assert study_state.submit(rater, task.assignment, all_answers(task)).finished

    work()  # the first screen settles the group of questions
    said: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    work()
    assert ["palaver_" in statement for statement in said] == [True, True]


def test_an_id_that_is_taken_is_refused_by_the_short_way_too(
    new_database: Callable[[], Database], make_study: Make
) -> None:
    study_state = StudyState.create(new_database(), make_study(n_items=6), "")
    rater = come(study_state)
    first = study_state.visit(rater).task
    study_state.submit(rater, first.assignment, all_answers(first))
    second = study_state.visit(rater).task
    given = all_answers(second)
    study_state.submit(rater, second.assignment, given)
    third = study_state.visit(rater).task
    assert third is not None
    with pytest.raises(Refusal, match="has this id already"):
        study_state.submit(rater, third.assignment, given)


def test_the_admin_waits_for_steps_and_they_for_the_admin(
    new_database: Callable[[], Database], make_study: Make
) -> None:
    database = new_database()
    study_state = StudyState.create(database, make_study(n_items=6), "")
    rater = come(study_state)
    study_state.submit(rater, (task := study_state.visit(rater).task).assignment, all_answers(task))
    visit = threading.Thread(target=study_state.visit, args=(rater,))
    with database.writing():
        visit.start()
        visit.join(0.3)
        assert visit.is_alive(), "somebody stepped in while the admin was writing"
    visit.join(10)
    assert not visit.is_alive()


def test_a_database_that_was_restarted_is_found_again(
    new_database: Callable[[], Database], make_study: Make
) -> None:
    database = new_database()
    study_state = StudyState.create(database, make_study(n_items=6), "")
    rater = come(study_state)
    for _ in range(2):  # by the long way, then by the short one
        task = study_state.visit(rater).task
        other = Database(database.url)
        with other.writing() as connection:
            connection.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )
            )
        other.close()
        assert study_state.submit(rater, task.assignment, all_answers(task)).finished


def test_an_answer_that_is_committed_late_is_not_missed(
    new_database: Callable[[], Database], make_study: Make
) -> None:
    """It has drawn a lower number than one that is there already."""
    database = new_database()
    study_state = StudyState.create(database, make_study(n_items=6), "")
    raters = [come(study_state) for _ in range(2)]
    tasks = [study_state.visit(rater).task for rater in raters]
    live = Live(database)
    exported: list[int] = []
    export = threading.Thread(target=lambda: exported.extend(f.height for f in frames(database)))
    before = live.wait().answers
    with database.step() as connection:
        row = {
            "id": "slow",
            "assignment_id": tasks[0].assignment,
            "rater_id": raters[0],
            "item": tasks[0].item.id,
            "system": "system-0",
            "criterion": "quality",
            "value": "3",
            "given_at": 1.0,
            "received_at": 1.0,
            "version": 1,
        }
        connection.execute(sa.insert(answer).values(row))
        assert study_state.submit(raters[1], tasks[1].assignment, all_answers(tasks[1])).finished
        between = live._news()[0]
        export.start()
        export.join(0.3)
        assert export.is_alive(), "the export did not wait for an answer on its way"
    export.join(10)
    assert (before, between, live.wait().answers) == (0, 2, 3)
    assert exported == [3]
