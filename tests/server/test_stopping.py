"""`stop = "when-sure"`: no more screens once every two systems are decided, also after a restart."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sham
from pydantic import ValidationError

from palaver.schema import Study
from palaver.server.dashboard import Pages, as_data, forecast, look
from palaver.server.database import Database
from palaver.server.live import Live
from palaver.server.records import stop_reason
from palaver.server.stopping import Stopping, stop_if_sure, watch_study
from palaver.server.study_state import StudyState
from palaver.studies.design import preset_study
from palaver.studies.simulate import example_study


def a_study(**more: Any) -> Study:
    base = example_study(preset_study("likert", layout="joint"), 2, 24, raters_per_item=4)
    question = base.questions[0].model_copy(update={"beside": None})
    fields = {**base.model_dump(), "questions": [question.model_dump()], "stop": "when-sure", **more}
    return Study.model_validate(fields)


def rate(state: StudyState, n_raters: int, good: str, limit: int = 1000, seed: int = 4) -> int:
    """Everybody finds `good` better; returns how many screens were answered."""
    rng, done = random.Random(seed), 0
    for _ in range(n_raters):
        me = sham.come_in(state)
        while done < limit:
            task = state.visit(me).task
            if task is None:
                break
            given = []
            for answer in sham.answers_to(task, rng):
                system = task.item.outputs[task.order[answer.position]].system
                value = str((5 if system == good else 2) + rng.randrange(2))
                given.append(type(answer)(answer.id, answer.criterion, answer.position, value, 9.0))
            state.submit(me, task.assignment, given)
            done += 1
    return done


@pytest.fixture
def state(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> StudyState:
    """A study that looks only when a test says so: the background look has nothing to do with time here."""
    monkeypatch.setattr("palaver.server.stopping.Stopping.consider", lambda *_: None)
    return StudyState.create(sqlite, a_study(), "")


def test_it_goes_on_until_it_is_sure_and_stays_stopped_after_a_restart(state: StudyState) -> None:
    good = state.study.systems[0]
    rate(state, 3, good, limit=8)
    assert stop_if_sure(state.database, state.study, 0.0) is None  # too few dialogues for a first look
    rate(state, 3, good, limit=60, seed=5)
    why = stop_if_sure(state.database, state.study, 1.0)
    assert why == f"{good} is better than {state.study.systems[1]}"
    again = StudyState(state.database)
    assert again.visit(sham.come_in(again)).state == "unneeded"
    assert stop_if_sure(again.database, again.study, 2.0) == why  # written down once


def test_somebody_at_work_leaves_with_the_code(state: StudyState) -> None:
    good = state.study.systems[0]
    rate(state, 3, good)
    me = sham.come_in(state)
    task = state.visit(me).task
    assert task is not None
    assert stop_if_sure(state.database, state.study, 1.0)
    receipt = state.submit(me, task.assignment, sham.answers_to(task, random.Random(1)))
    assert receipt.finished  # a screen in hand may be finished
    after = state.visit(me)
    assert (after.state, after.task) == ("done", None)
    assert after.code


def test_equal_systems_go_on(state: StudyState) -> None:
    rate(state, 4, good="nobody")
    assert stop_if_sure(state.database, state.study, 1.0) is None
    [pair] = watch_study(state.database, state.study)
    assert pair.decision == "go on"
    assert (forecast(pair) or 99) > 24


def test_the_admin_sees_the_sequence_and_why_it_stopped(state: StudyState) -> None:
    rate(state, 3, state.study.systems[0])
    stop_if_sure(state.database, state.study, 1.0)
    board = look(state.database, Live(state.database), wait=True)
    data = as_data(board)["statistics"]
    assert data["stopped"]
    assert data["sequence"][0]["decision"] == "better"
    html = Pages("").sections(board, "x")["results"]
    assert "The study has stopped" in html
    assert "Is it enough?" in html


def test_a_look_in_the_background_stops_it(state: StudyState) -> None:
    rate(state, 3, state.study.systems[0])
    Stopping(state.database)._run(state.study, 1.0)  # what the thread does
    with state.database.reading() as connection:
        assert stop_reason(connection)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"stop_criterion": "beauty"}, "does not ask for 'beauty'"),
        ({"equivalent_within": 7.0}, "as large as the scale"),
        ({"equivalent_within": 0.0}, "greater than 0"),
    ],
)
def test_what_cannot_stop_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        a_study(**fields)
