"""A rater's way through a study, call by call, on both databases; and what is refused on the way."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select, update

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server import leases
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.refusal import Refusal
from palaver.server.study_state import Receipt, StudyState, Task
from palaver.server.tables import answer, assignment, comment, event, rater, screen
from palaver.server.tables import study as study_table

Open = Callable[..., StudyState]
GOLD = {
    "item": {
        "id": "gold",
        "outputs": [{"system": "x", "text": "a fine answer"}, {"system": "y", "text": "no"}],
    },
    "expected": [{"criterion": "quality", "system": "x", "low": 4, "feedback": "x was fine"}],
}


@pytest.fixture
def open_study(database: Database, clock: Any, make_study: Callable[..., Study]) -> Open:
    return lambda **fields: StudyState.create(database, make_study(**fields), "the file", clock)


def come(study_state: StudyState, **who: Any) -> str:
    someone = study_state.enter(**who)
    study_state.agree(someone)
    study_state.begin(someone)
    return someone


def task_of(study_state: StudyState, someone: str) -> Task:
    task = study_state.visit(someone).task
    assert task is not None
    return task


def answers(task: Task, value: Any = 3) -> list[RawAnswer]:
    """`value` may depend on the system whose output stands there."""
    return [
        RawAnswer(
            str(uuid.uuid4()),
            q.criterion,
            place,
            value(task.item.outputs[o].system) if callable(value) else value,
        )
        for q in task.questions
        for place, o in enumerate(task.order[: 1 if q.scale.kind == "pairwise" else None])
    ]


def work(study_state: StudyState, someone: str, value: Any = 3) -> Receipt:
    task = task_of(study_state, someone)
    return study_state.submit(someone, task.assignment, answers(task, value))


def rows(study_state: StudyState, table: Any) -> list[Any]:
    with study_state.database.reading() as connection:
        return list(connection.execute(select(table)).all())


# --- the study and its file


def test_the_study_is_kept_as_it_was(open_study: Open) -> None:
    study_state = open_study(consent="Do you agree?")
    again = StudyState(study_state.database)
    assert again.study == study_state.study
    assert (again.secret, again.hash, again.source) == (study_state.secret, study_state.hash, "the file")
    assert open_study(consent="Do you agree?").secret == study_state.secret


def test_a_changed_file_is_refused(open_study: Open) -> None:
    open_study()
    with pytest.raises(UserError, match="changed") as caught:
        open_study(raters_per_item=7)
    assert caught.value.hint


def test_a_study_of_an_older_version_is_the_same_study(open_study: Open) -> None:
    study_state = open_study()
    document = json.loads(study_state.study.model_dump_json())
    del document["wait_minutes"]  # a field that the older version did not have
    with study_state.database.writing() as connection:
        connection.execute(update(study_table).values(document=json.dumps(document), hash="another"))
    assert open_study().study == study_state.study


def test_an_empty_database_says_so(database: Database) -> None:
    with pytest.raises(UserError, match="no study"):
        StudyState(database)


def test_a_nul_in_a_study_is_refused_and_its_name_is_not(open_study: Open) -> None:
    with pytest.raises(UserError, match="NUL"):
        open_study(instructions="a\0b")
    assert open_study(instructions="how to write \\u0000 in JSON").study.instructions


# --- coming in


def test_the_states_of_a_plain_study(open_study: Open) -> None:
    study_state = open_study(
        n_items=1,
        consent="Do you agree?",
        survey=[{"name": "age", "text": "Your age?"}],
        completion={"code": "DONE1", "url": "https://app.prolific.com/x?cc=DONE1"},
    )
    someone = study_state.enter()
    assert study_state.visit(someone).state == "consent"
    study_state.begin(someone)  # too early: nothing happens
    assert study_state.visit(someone).state == "consent"
    study_state.agree(someone)
    study_state.agree(someone)
    assert study_state.visit(someone).state == "instructions"
    study_state.begin(someone)
    found = study_state.visit(someone)
    assert (found.state, found.task is not None) == ("working", True)
    assert work(study_state, someone).finished
    assert study_state.visit(someone).state == "survey"
    study_state.answer_survey(someone, {"age": "30", "unknown": "left out"})
    found = study_state.visit(someone)
    assert (found.state, found.code) == ("done", "DONE1")
    assert found.url == "https://app.prolific.com/x?cc=DONE1"
    assert rows(study_state, rater)[0].survey == '{"age": "30"}'
    assert [e.kind for e in rows(study_state, event)] == [
        "entered",
        "instructions",
        "working",
        "survey",
        "done",
    ]


def test_without_a_code_everybody_has_their_own(open_study: Open) -> None:
    study_state = open_study()
    codes = {study_state.visit(study_state.enter()).code for _ in range(5)}
    assert len(codes) == 5
    assert all(codes)


def test_a_person_who_comes_back_is_the_same(open_study: Open) -> None:
    study_state = open_study()
    first = study_state.enter("prolific", "p1", {"SESSION_ID": "one"})
    assert study_state.enter("prolific", "p1", {"SESSION_ID": "two"}) == first
    assert study_state.visit(first).parameters == {"SESSION_ID": "two"}
    assert study_state.enter("mturk", "p1") != first
    assert study_state.enter() != study_state.enter()


def test_nobody_unknown_gets_anything(open_study: Open) -> None:
    study_state = open_study()
    for call in (
        study_state.visit,
        study_state.agree,
        study_state.begin,
        lambda r: study_state.submit(r, 1, []),
    ):
        with pytest.raises(Refusal) as caught:
            call("nobody")
        assert caught.value.status == 401


def test_blocked_people_are_told_and_store_nothing(open_study: Open) -> None:
    study_state = open_study()
    someone = come(study_state)
    task = task_of(study_state, someone)
    with study_state.database.writing() as connection:
        connection.execute(rater.update().values(blocked=True))
    assert study_state.visit(someone).state == "blocked"
    assert study_state.visit(someone).task is None
    with pytest.raises(Refusal) as caught:
        study_state.submit(someone, task.assignment, answers(task))
    assert caught.value.status == 403
    assert rows(study_state, answer) == []


# --- answering


def test_an_answer_is_stored_under_the_system_that_stood_there(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=1, n_outputs=3)
    someone = come(study_state)
    task = task_of(study_state, someone)
    sent = [
        RawAnswer(str(uuid.uuid4()), "quality", place, place + 1, 2.5, clock() - 5)
        for place in range(len(task.order))
    ]
    clock.sleep(3)
    assert study_state.submit(someone, task.assignment, sent) == Receipt(tuple(g.id for g in sent), True)
    stored = sorted(rows(study_state, answer), key=lambda r: r.number)
    assert [r.system for r in stored] == [task.item.outputs[o].system for o in task.order]
    assert [r.value for r in stored] == ["1", "2", "3"]
    assert [r.shown_position for r in stored] == [0, 1, 2]
    assert {(r.seconds, r.given_at, r.received_at) for r in stored} == {(2.5, clock() - 8, clock())}
    assert [r.number for r in stored] == [1, 2, 3]


def test_part_by_part(open_study: Open) -> None:
    study_state = open_study(n_items=1, criteria=("a", "b"))
    someone = come(study_state)
    task = task_of(study_state, someone)
    sent = answers(task)
    for n, given in enumerate(sent):
        assert study_state.submit(someone, task.assignment, [given]).finished == (n == len(sent) - 1)
        if n < len(sent) - 1:
            seen = task_of(study_state, someone).answered
            assert seen == {(g.criterion, g.position, None): "3" for g in sent[: n + 1]}


def test_optional_questions_may_be_left_out(open_study: Open) -> None:
    likert = {"kind": "likert"}
    asked = [
        {"criterion": "a", "text": "?", "scale": likert},
        {"criterion": "b", "text": "?", "scale": likert, "required": False},
    ]
    study_state = open_study(questions=asked)
    someone = come(study_state)
    task = task_of(study_state, someone)
    sent = [g for g in answers(task) if g.criterion == "a"]
    assert study_state.submit(someone, task.assignment, sent).finished


def test_the_same_answer_twice_is_one_row(open_study: Open) -> None:
    study_state = open_study(n_items=1, comments=True)
    someone = come(study_state)
    task = task_of(study_state, someone)
    sent = answers(task)
    for _ in range(3):
        saved = study_state.submit(someone, task.assignment, sent, "well")
        assert saved == Receipt(tuple(g.id for g in sent), True)
    assert len(rows(study_state, answer)) == len(sent)
    assert [c.text for c in rows(study_state, comment)] == ["well"]


def test_comments_stand_beside_each_other(open_study: Open) -> None:
    study_state = open_study(n_items=1, n_outputs=2, comments=True)
    someone = come(study_state)
    task = task_of(study_state, someone)
    for place, remark in ((0, "the first"), (1, "the second"), (1, "the second"), (1, "and more")):
        on_page = [a for a in answers(task) if a.position == place]
        study_state.submit(someone, task.assignment, on_page, remark, place)
    study_state.submit(someone, task.assignment, [], "of both")
    systems = [task.item.outputs[o].system for o in task.order]
    assert [(c.system, c.text) for c in rows(study_state, comment)] == [
        (systems[0], "the first"),
        (systems[1], "the second"),
        (systems[1], "and more"),
        (None, "of both"),
    ]
    with pytest.raises(Refusal, match="place 2"):
        study_state.submit(someone, task.assignment, [], "of nothing", 2)


def test_a_changed_mind_is_a_later_row(open_study: Open) -> None:
    study_state = open_study(n_items=1, n_outputs=1)
    someone = come(study_state)
    task = task_of(study_state, someone)
    for value in (2, 5):
        study_state.submit(someone, task.assignment, answers(task, value))
    assert [r.value for r in sorted(rows(study_state, answer), key=lambda r: r.number)] == ["2", "5"]


def test_an_id_is_never_acknowledged_for_another_answer(open_study: Open) -> None:
    study_state = open_study(n_items=2)
    someone, other = come(study_state), come(study_state)
    task, theirs = task_of(study_state, someone), task_of(study_state, other)
    study_state.submit(someone, task.assignment, [RawAnswer("same-id", "quality", 0, 1)])
    cases = [
        (someone, task, [RawAnswer("same-id", "quality", 0, 2)]),
        (someone, task, [RawAnswer("same-id", "quality", 1, 1)]),
        (other, theirs, [RawAnswer("same-id", "quality", 0, 1)]),
        (someone, task, [RawAnswer("new-id", "quality", 0, 1), RawAnswer("new-id", "quality", 1, 1)]),
    ]
    for who, what, sent in cases:
        with pytest.raises(Refusal) as caught:
            study_state.submit(who, what.assignment, sent)
        assert caught.value.status == 409
    assert len(rows(study_state, answer)) == 1


def test_one_wrong_answer_stores_none_of_its_request(open_study: Open) -> None:
    study_state = open_study()
    someone = come(study_state)
    task = task_of(study_state, someone)
    with pytest.raises(Refusal):
        study_state.submit(
            someone, task.assignment, [RawAnswer("good", "quality", 0, 1), RawAnswer("bad", "quality", 1, 99)]
        )
    assert rows(study_state, answer) == []


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (RawAnswer("i", "nothing asked", 0, 1), 422),
        (RawAnswer("i", "quality", 2, 1), 422),
        (RawAnswer("i", "quality", -1, 1), 422),
        (RawAnswer("i", "quality", 10**30, 1), 422),
        (RawAnswer("i", "quality", 0, 0), 422),
        (RawAnswer("i", "quality", 0, 7), 422),
        (RawAnswer("i", "quality", 0, 2.5), 422),
        (RawAnswer("i", "quality", 0, True), 422),
        (RawAnswer("i", "quality", 0, None), 422),
        (RawAnswer("i", "quality", 0, [1]), 422),
        (RawAnswer("i", "quality", 0, {"a": 1}), 422),
        (RawAnswer("i", "quality", 0, math.nan), 422),
        (RawAnswer("i", "quality", 0, "1" * 10_000), 422),
        (RawAnswer("i", "quality", 0, 10**400), 422),
        (RawAnswer("x" * 37, "quality", 0, 1), 422),
        (RawAnswer("nul\0", "quality", 0, 1), 422),
        (RawAnswer("half \ud800", "quality", 0, 1), 422),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(open_study: Open, given: RawAnswer, status: int) -> None:
    study_state = open_study()
    someone = come(study_state)
    task = task_of(study_state, someone)
    with pytest.raises(Refusal) as caught:
        study_state.submit(someone, task.assignment, [given])
    assert caught.value.status == status
    assert rows(study_state, answer) == []


def test_an_empty_id_is_no_id(open_study: Open) -> None:
    study_state = open_study()
    someone = come(study_state)
    task = task_of(study_state, someone)
    with pytest.raises(Refusal):
        study_state.submit(someone, task.assignment, [RawAnswer("", "quality", 0, 1)])


@pytest.mark.parametrize("number", [0, -1, 2, 10**6, 2**31, 10**30])
def test_only_ones_own_screens(open_study: Open, number: int) -> None:
    study_state = open_study()
    someone, other = come(study_state), come(study_state)
    assert task_of(study_state, someone).assignment == 1
    assert task_of(study_state, other).assignment == 2
    with pytest.raises(Refusal) as caught:
        study_state.submit(someone, number, [RawAnswer("i", "quality", 0, 1)])
    assert caught.value.status == 404


@pytest.mark.parametrize(
    ("seconds", "given_at"),
    [(-1.0, None), (math.nan, math.nan), (math.inf, math.inf), (1e300, -1e300), (None, 0.0), (None, 1e18)],
)
def test_impossible_times_are_left_out(
    open_study: Open, clock: Any, seconds: float | None, given_at: float | None
) -> None:
    study_state = open_study()
    someone = come(study_state)
    task = task_of(study_state, someone)
    study_state.submit(someone, task.assignment, [RawAnswer("i", "quality", 0, 1, seconds, given_at)])
    [row] = rows(study_state, answer)
    assert row.seconds is None
    assert row.given_at == clock()


@pytest.mark.parametrize("order", ["counterbalanced", "random", "fixed"])
def test_a_comparison_is_stored_from_the_first_outputs_side(open_study: Open, order: str) -> None:
    """The page sends the place that was chosen; the stored value is the item's first output's."""
    study_state = open_study(n_items=6, scale={"kind": "pairwise"}, order=order, raters_per_item=1)
    someone = come(study_state)
    for _ in range(6):
        task = task_of(study_state, someone)
        study_state.submit(someone, task.assignment, [RawAnswer(str(uuid.uuid4()), "quality", 0, "0")])
        row = max(rows(study_state, answer), key=lambda r: r.number)
        assert (row.system, row.against) == ("system-0", "system-1")
        assert row.value == ("win" if task.order[0] == 0 else "loss")
        assert row.shown_position == task.order.index(0)


def test_the_other_values_of_a_comparison(open_study: Open) -> None:
    study_state = open_study(n_items=9, scale={"kind": "pairwise", "ties": False}, raters_per_item=1)
    someone = come(study_state)
    task = task_of(study_state, someone)
    for bad in ("tie", True, False, 2, "2", None, 0.5, "left", [0]):
        with pytest.raises(Refusal) as caught:
            study_state.submit(someone, task.assignment, [RawAnswer("i", "quality", 0, bad)])
        assert caught.value.status == 422
    assert study_state.submit(someone, task.assignment, [RawAnswer("i", "quality", 0, "loss")]).finished


# --- training and checks


@pytest.mark.parametrize("layout", ["joint", "separate"])
def test_training_is_passed_and_explained(open_study: Open, layout: str) -> None:
    expected = [
        {"criterion": c, "system": "x", "low": 4, "feedback": f"{c}: x was fine"} for c in ("quality", "ease")
    ]
    known = {"item": GOLD["item"], "expected": expected}
    study_state = open_study(
        criteria=("quality", "ease"), layout=layout, training={"items": [known], "pass_mark": 1.0}
    )
    someone = come(study_state)
    n_screens = 1 if layout == "joint" else 2
    assert study_state.visit(someone).state == "training"
    feedback: list[str] = []
    for _ in range(n_screens):
        held = task_of(study_state, someone).assignment
        assert work(study_state, someone, 1).has_feedback
        heard = study_state.feedback(someone, held)
        assert not heard.passed
        feedback += heard.hints
    assert feedback == ["quality: x was fine", "ease: x was fine"]
    for _ in range(n_screens):
        assert task_of(study_state, someone).kind == "training"  # the second attempt
        held = task_of(study_state, someone).assignment
        receipt = work(study_state, someone, 5)
        assert receipt == Receipt(saved_ids(study_state, someone), True, has_feedback=True)
        assert study_state.feedback(someone, held).passed
    assert task_of(study_state, someone).kind == "main"
    assert study_state.visit(someone).state == "working"


def saved_ids(study_state: StudyState, someone: str) -> tuple[str, ...]:
    """The ids of the latest submission."""
    mine = [r for r in rows(study_state, answer) if r.rater_id == someone]
    last = max(mine, key=lambda r: r.number).assignment_id
    return tuple(r.id for r in sorted(mine, key=lambda r: r.number) if r.assignment_id == last)


def test_failing_the_training_twice_is_the_end(open_study: Open) -> None:
    study_state = open_study(
        training={"items": [GOLD]},
        completion={"code": "IN", "screen_out_code": "OUT", "screen_out_url": "https://example.org/out"},
    )
    someone = come(study_state)
    for _ in range(2):
        work(study_state, someone, 1)
    found = study_state.visit(someone)
    assert (found.state, found.code, found.url) == ("screened", "OUT", "https://example.org/out")
    assert rows(study_state, rater)[0].excluded


def test_checks_come_at_their_rate_and_only_the_careless_leave(open_study: Open) -> None:
    checks = {
        "items": [{**GOLD, "item": {**GOLD["item"], "id": f"gold-{n}"}} for n in range(4)],
        "rate": 0.5,
        "allowed_failures": 1,
    }
    study_state = open_study(n_items=8, raters_per_item=3, checks=checks)
    careful, careless = come(study_state), come(study_state)
    kinds = []
    while (found := study_state.visit(careful)).task is not None:
        kinds.append(found.task.kind)
        work(study_state, careful, 5)
    assert found.state == "done"
    assert kinds.count("main") == 8
    assert 3 <= kinds.count("check") <= 4
    assert kinds[0] == "main"
    failed = 0
    while (found := study_state.visit(careless)).task is not None:
        failed += found.task.kind == "check"
        work(study_state, careless, 1)
    assert (found.state, failed) == ("screened", 2)
    with study_state.database.reading() as connection:
        taken = connection.execute(select(screen.c.taken).where(screen.c.kind == "main")).scalars()
        assert set(taken) == {1}, "the careless one's places are free again"
    kept = [r for r in rows(study_state, answer) if r.rater_id == careless]
    assert kept, "and the rows are kept"


def degraded(open_study: Open, **fields: Any) -> StudyState:
    checks = {"degraded": True, "rate": 0.5, "allowed_failures": 0}
    return open_study(n_items=6, raters_per_item=3, checks=checks, **fields)


def through(study_state: StudyState, someone: str, value: Callable[[Task], Any]) -> tuple[str, list[str]]:
    kinds = []
    while (found := study_state.visit(someone)).task is not None:
        kinds.append(found.task.kind)
        task = found.task
        study_state.submit(someone, task.assignment, answers(task, value(task)))
    return found.state, kinds


def test_who_rates_the_broken_output_lower_stays(open_study: Open) -> None:
    study_state = degraded(open_study)
    sound = {(i.id, o.system): o.text for i in study_state.study.items for o in i.outputs}

    def read(task: Task) -> Any:
        broken = {o.system for o in task.item.outputs if o.text != sound[task.item.id, o.system]}
        assert len(broken) == (task.kind == "degraded")
        return lambda system: 2 if system in broken else 5

    state, kinds = through(study_state, come(study_state), read)
    assert state == "done"
    assert kinds.count("degraded") >= 2
    state, kinds = through(study_state, come(study_state), lambda task: 4)
    assert (state, kinds.count("degraded")) == ("screened", 1)
    state, kinds = through(study_state, come(study_state), lambda task: 1)  # nothing is lower than the lowest
    assert state == "done"


def test_comparisons_alone_cannot_be_checked_by_breaking_outputs(open_study: Open) -> None:
    with pytest.raises(ValidationError, match="degraded"):
        degraded(open_study, scale={"kind": "pairwise"})


def test_late_answers_of_somebody_screened_out_take_no_place(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    out = come(study_state)
    held = task_of(study_state, out)
    clock.sleep(10_000)
    with study_state.database.writing() as connection:
        leases.reclaim(connection, clock())
        leases.set_excluded(connection, out, True)
    study_state.submit(out, held.assignment, answers(held))
    assert {s.taken for s in rows(study_state, screen)} == {0}
    assert len(rows(study_state, assignment)) == 1


# --- the survey


def test_the_survey_is_checked(open_study: Open) -> None:
    asked = [
        {"name": "native", "text": "Native speaker?", "options": ["yes", "no"], "required": True},
        {"name": "else", "text": "Anything else?"},
    ]
    study_state = open_study(n_items=1, survey=asked)
    someone = come(study_state)
    work(study_state, someone)
    assert study_state.visit(someone).state == "survey"
    for bad in ({}, {"native": ""}, {"native": "perhaps"}, {"native": "yes", "else": "\0"}):
        with pytest.raises(Refusal) as caught:
            study_state.answer_survey(someone, bad)
        assert caught.value.status == 422
        assert study_state.visit(someone).state == "survey"
    study_state.answer_survey(someone, {"native": "no"})
    study_state.answer_survey(someone, {"native": "yes"})  # twice is once: the first stays
    assert rows(study_state, rater)[0].survey == '{"native": "no"}'


# --- waiting, when others hold what is left


def test_a_newcomer_waits_while_others_hold_everything(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=1, raters_per_item=1, lease_minutes=2, wait_minutes=5)
    first = come(study_state)
    task = task_of(study_state, first)
    second = come(study_state)
    visit = study_state.visit(second)
    assert (visit.state, visit.task, visit.seconds_to_wait) == ("waiting", None, 300)
    clock.sleep(100)
    assert study_state.visit(second).seconds_to_wait == 200
    clock.sleep(30)  # now the first one's lease has run out
    assert study_state.visit(second).task is not None
    study_state.submit(first, task.assignment, answers(task))  # late, and kept
    assert work(study_state, second).finished
    assert study_state.visit(second).state == "done"
    assert {row.kind for row in rows(study_state, event)} >= {"waiting"}


def test_nobody_who_answered_nothing_gets_a_completion_code(open_study: Open, clock: Any) -> None:
    study_state = open_study(
        n_items=1, raters_per_item=1, lease_minutes=60, wait_minutes=5, completion={"code": "FULL"}
    )
    holder, newcomer = come(study_state), come(study_state)
    study_state.show_life(holder, task_of(study_state, holder).assignment)
    assert study_state.visit(newcomer).state == "waiting"
    clock.sleep(301)
    visit = study_state.visit(newcomer)
    assert (visit.state, visit.code, visit.url) == ("unneeded", None, None)
    work(study_state, holder)
    assert study_state.visit(holder).code == "FULL"
    late = study_state.enter()
    assert study_state.visit(late).state == "unneeded", "told before consent and training, not after"
    assert {row.state for row in rows(study_state, rater)} == {"done", "working", "instructions"}


def test_who_came_for_nothing_may_have_a_code_of_its_own(open_study: Open) -> None:
    end = {"code": "FULL", "no_work_code": "CAME", "no_work_url": "https://example.org/came"}
    study_state = open_study(n_items=1, raters_per_item=1, completion=end)
    work(study_state, come(study_state))
    visit = study_state.visit(come(study_state))
    assert (visit.code, visit.url) == ("CAME", "https://example.org/came")


def test_somebody_who_worked_leaves_paid_after_the_wait(open_study: Open, clock: Any) -> None:
    study_state = open_study(
        n_items=2, raters_per_item=1, lease_minutes=60, wait_minutes=5, completion={"code": "FULL"}
    )
    me, other = come(study_state), come(study_state)
    task_of(study_state, me)
    study_state.show_life(other, task_of(study_state, other).assignment)
    work(study_state, me)
    visit = study_state.visit(me)
    assert (visit.state, visit.has_worked) == ("waiting", True)
    clock.sleep(299)
    assert study_state.visit(me).state == "waiting"
    clock.sleep(2)
    assert (study_state.visit(me).state, study_state.visit(me).code) == ("done", "FULL")


def test_a_rater_with_enough_screens_does_not_wait(open_study: Open) -> None:
    study_state = open_study(n_items=2, raters_per_item=1, items_per_rater=1)
    me, other = come(study_state), come(study_state)
    task_of(study_state, me)
    task_of(study_state, other)
    work(study_state, me)
    assert study_state.visit(me).state == "done"


def test_the_wait_begins_anew_after_work(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1, lease_minutes=4, wait_minutes=5)
    me, other = come(study_state), come(study_state)
    task_of(study_state, other)
    work(study_state, me)
    assert study_state.visit(me).state == "waiting"
    clock.sleep(241)
    task = task_of(study_state, me)  # the other's lease ran out
    back = task_of(study_state, other) if study_state.visit(other).task else None
    assert back is None, "the place is taken, so the other one waits"
    assert study_state.visit(other).seconds_to_wait == 300
    study_state.submit(me, task.assignment, answers(task))
    assert study_state.visit(me).state == "done"


# --- leaving, going back, and what cannot be changed


def test_an_answer_to_finished_training_cannot_be_changed(open_study: Open) -> None:
    study_state = open_study(training={"items": [GOLD]})
    someone = come(study_state)
    task = task_of(study_state, someone)
    assert (task.kind, task.attempt) == ("training", 1)
    wrong = answers(task, 1)
    assert study_state.submit(someone, task.assignment, wrong).has_feedback
    with pytest.raises(Refusal, match="cannot be changed"):
        study_state.submit(someone, task.assignment, answers(task, 5))
    assert study_state.submit(someone, task.assignment, wrong).finished, "the same again is acknowledged"
    assert {row.value for row in rows(study_state, answer)} == {"1"}
    assert task_of(study_state, someone).attempt == 2
    shown = study_state.feedback(someone, task.assignment).task
    assert (shown.item, set(shown.answered.values())) == (task.item, {"1"})


def test_who_declines_is_recorded_and_gets_no_code(open_study: Open) -> None:
    study_state = open_study(consent="Do you agree?")
    someone = study_state.enter()
    study_state.decline(someone)
    visit = study_state.visit(someone)
    assert (visit.state, visit.code, visit.url) == ("declined", None, None)
    study_state.agree(someone)
    assert study_state.visit(someone).state == "declined"


def test_who_withdraws_frees_the_places(open_study: Open) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    someone, other = come(study_state), come(study_state)
    work(study_state, someone)
    held = task_of(study_state, someone)
    assert study_state.visit(other).state == "waiting"
    study_state.withdraw(someone)
    visit = study_state.visit(someone)
    assert (visit.state, visit.code) == ("withdrawn", None)
    with pytest.raises(Refusal, match="left this study"):
        study_state.submit(someone, held.assignment, answers(held))
    work(study_state, other)
    work(study_state, other)
    assert study_state.visit(other).state == "done"
    study_state.withdraw(other)
    assert study_state.visit(other).state == "done", "who is done has nothing left to leave"


def test_going_back_is_one_screen_and_a_later_row(open_study: Open) -> None:
    study_state = open_study(n_items=3)
    someone = come(study_state)
    assert study_state.look_back(someone, 0) is None
    first = task_of(study_state, someone)
    study_state.submit(someone, first.assignment, answers(first, 2))
    second = task_of(study_state, someone)
    earlier = study_state.look_back(someone, 0)
    assert earlier is not None
    task, place = earlier
    assert (task.assignment, place) == (first.assignment, len(first.order) - 1)
    assert set(task.answered.values()) == {"2"}
    inside = study_state.look_back(someone, 1)
    assert inside is not None
    assert (inside[0].assignment, inside[1]) == (second.assignment, 0)
    study_state.submit(someone, first.assignment, answers(first, 5))
    assert [row.value for row in rows(study_state, answer)] == ["2", "2", "5", "5"]
    assert task_of(study_state, someone).assignment == second.assignment


def test_checks_count_like_all_other_screens(open_study: Open) -> None:
    checks = {"items": [GOLD], "rate": 0.5, "allowed_failures": 9}
    study_state = open_study(n_items=4, raters_per_item=9, checks=checks)
    for _ in range(5):
        someone = come(study_state)
        counts, kinds = [], []
        while (task := study_state.visit(someone).task) is not None:
            counts.append((task.done, task.total))
            kinds.append(task.kind)
            study_state.submit(someone, task.assignment, answers(task))
        assert "check" in kinds
        assert counts == [(n, len(kinds)) for n in range(len(kinds))]


# --- amending


def test_a_study_is_amended_while_it_runs(
    open_study: Open, make_study: Callable[..., Study], clock: Any
) -> None:
    study_state = open_study(n_items=2, raters_per_item=1)
    another_process = StudyState(study_state.database, clock)
    early, held = come(study_state), come(study_state)
    work(study_state, early)
    in_hand = task_of(study_state, held)
    amendment = study_state.amend(
        make_study(n_items=4, raters_per_item=3, instructions="Anew."), "the changed file"
    )
    assert amendment.changes == ("instructions is changed", "raters_per_item: 1 becomes 3", "2 items more")
    assert task_of(another_process, held) == replace(in_hand, total=4), "in the same order, whoever serves it"
    assert another_process.study.instructions == "Anew."
    for someone in (early, held, come(another_process)):
        while another_process.visit(someone).task is not None:
            work(another_process, someone)
    stored = rows(study_state, answer)
    assert [row.version for row in stored[:2]] == [1, 1]
    assert {row.version for row in stored[2:]} == {2}
    counted = {(row.item, row.system): 0 for row in stored}
    for row in stored:
        counted[row.item, row.system] += 1
    assert set(counted.values()) == {3}
    assert len(counted) == 8
    assert {row.target for row in rows(study_state, screen)} == {3}
    assert open_study(n_items=4, raters_per_item=3, instructions="Anew.").version == 2


def test_an_amendment_that_makes_answers_incomparable_is_refused(
    open_study: Open, make_study: Callable[..., Study]
) -> None:
    study_state = open_study()
    with pytest.raises(UserError, match="incomparable") as caught:
        study_state.amend(make_study(scale={"kind": "likert", "high": 9}, title="New"), "")
    assert caught.value.problems == ("quality: another scale would make the answers incomparable",)
    assert (study_state.version, study_state.study.title) == (1, "")
    study_state.amend(make_study(), "")
    assert study_state.version == 1, "nothing has changed"
    with pytest.raises(UserError, match="NUL"):
        study_state.amend(make_study(instructions="a\0b"), "")
    assert study_state.version == 1


# --- signs of life


def test_a_lease_needs_a_sign_of_life(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=1, raters_per_item=1, lease_minutes=60)
    reader, other = come(study_state), come(study_state)
    held = task_of(study_state, reader)
    clock.sleep(leases.SIGN_OF_LIFE - 1)
    study_state.show_life(reader, held.assignment)
    clock.sleep(59 * 60)
    assert study_state.visit(other).state == "waiting", "a long text is not taken away from its reader"
    assert study_state.submit(reader, held.assignment, answers(held)).finished
    assert [row.status for row in rows(study_state, assignment)] == ["done"]
    with pytest.raises(Refusal):
        study_state.show_life(other, held.assignment)


def test_who_only_opens_pages_keeps_no_screen_from_others(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=2, raters_per_item=1, lease_minutes=60)
    for _ in range(2):
        task_of(study_state, come(study_state))
    honest = come(study_state)
    assert study_state.visit(honest).state == "waiting"
    clock.sleep(leases.SIGN_OF_LIFE)
    assert work(study_state, honest).finished


def test_a_part_of_an_answer_is_a_sign_of_life(open_study: Open, clock: Any) -> None:
    study_state = open_study(n_items=1, raters_per_item=1, lease_minutes=60)
    reader, other = come(study_state), come(study_state)
    held = task_of(study_state, reader)
    study_state.submit(reader, held.assignment, answers(held)[:1])
    clock.sleep(50 * 60)
    assert study_state.visit(other).task is None
