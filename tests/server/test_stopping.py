"""`stop = "when-sure"`: no more screens once every two systems are decided, also after a restart."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import polars as pl
import pytest
import sham
from pydantic import ValidationError

from palaver.schema import Study
from palaver.schema.delivery import StopJudge, Verdict
from palaver.server.admin_sessions import AdminSession
from palaver.server.dashboard import Pages, as_data, look
from palaver.server.database import Database
from palaver.server.export import frames, read_answers, study_of
from palaver.server.live import Live
from palaver.server.records import stop_reason
from palaver.server.sequence_view import describe_stop, forecast, sequence_chart
from palaver.server.stopping import Stopping, stop_if_sure, watch_study
from palaver.server.study_state import StudyState
from palaver.studies.design import preset_study
from palaver.studies.ratings import ratings_from_frame, read_ratings
from palaver.studies.simulate import example_study
from palaver.studies.trust import trust_interval

OWNER = AdminSession("s", 0, 0, "")


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


def test_before_the_question_that_decides_was_answered_it_goes_on(sqlite: Database) -> None:
    base = example_study(preset_study("likert", layout="separate"), 2, 6)
    fields = {**base.model_dump(), "stop": "when-sure", "stop_criterion": "quality"}
    state = StudyState.create(sqlite, Study.model_validate(fields), "")
    sham.work(state, sham.come_in(state), random.Random(1), screens=1)  # of another question
    assert stop_if_sure(sqlite, state.study, 1.0) is None
    assert not Live(sqlite).wait().problem


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


def judged(study: Study, *, more: int = 60) -> StopJudge:
    """A judge that knows each item's difference in `rate_by_item`, and rated `more` dialogues besides."""
    names = [item.id for item in study.items] + [f"other-{n}" for n in range(more)]
    first, second = study.systems
    verdicts = []
    for n, name in enumerate(names):
        verdicts += [
            Verdict(dialogue=name, systems=(first,), score=leaning(n)),
            Verdict(dialogue=name, systems=(second,), score=0.0),
        ]
    return StopJudge(judge="scorer", criterion="score", verdicts=tuple(verdicts))


def leaning(n: int) -> float:
    """Differences of items: large and small in turn, 0.8 on average."""
    return (-1.2, 2.8, 0.3, 1.3)[n % 4]


def rate_by_item(state: StudyState, n_raters: int) -> None:
    rng = random.Random(7)
    places = {item.id: n for n, item in enumerate(state.study.items)}
    for _ in range(n_raters):
        me = sham.come_in(state)
        while (task := state.visit(me).task) is not None:
            given = []
            for answer in sham.answers_to(task, rng):
                is_first = task.item.outputs[task.order[answer.position]].system == state.study.systems[0]
                shift = leaning(places[task.item.id]) if is_first else 0.0
                value = str(round(min(6, max(1, 3 + shift + rng.gauss(0, 0.3)))))
                given.append(type(answer)(answer.id, answer.criterion, answer.position, value, 9.0))
            state.submit(me, task.assignment, given)


def test_a_judge_makes_the_served_sequence_sure_earlier(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.stopping.Stopping.consider", lambda *_: None)
    study = a_study()
    study = a_study(stop_judge=judged(study).model_dump())
    state = StudyState.create(sqlite, study, "")
    rate_by_item(state, 4)
    without = watch_study(sqlite, study.model_copy(update={"stop_judge": None}))
    helped = watch_study(sqlite, study_of(sqlite))  # as after a restart: all of it is in the database
    ends = [(pair[0].looks[-1].high - pair[0].looks[-1].low) for pair in (without, helped)]
    assert helped[0].looks[0].n_dialogues == without[0].looks[0].n_dialogues
    assert ends[1] < 0.7 * ends[0] or (helped[0].decided and not without[0].decided)
    board = look(sqlite, Live(sqlite), wait=True)
    html = Pages("").sections(board, "x", OWNER)["results"]
    assert "helped by the scores of" in html
    assert "scorer" in html


def test_items_carry_their_probability_into_every_judgement(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.stopping.Stopping.consider", lambda *_: None)
    study = a_study()
    chances = {item.id: 0.25 if n % 2 else 0.75 for n, item in enumerate(study.items)}
    items = [{**item.model_dump(), "sampling_probability": chances[item.id]} for item in study.items]
    state = StudyState.create(sqlite, a_study(items=items), "")
    rate_by_item(state, 3)
    frame = pl.concat(frames(sqlite))
    assert {(row["item"], row["sampling_probability"]) for row in frame.to_dicts()} <= set(chances.items())
    [pair] = watch_study(sqlite, state.study)
    [equal] = watch_study(sqlite, state.study.model_copy(update={"stop_judge": None}))
    table = read_ratings(read_answers(sqlite), study=state.study)
    [row] = [row for row in trust_interval(table).rows if row.against]
    assert row.value == pytest.approx(pair.looks[-1].value if not pair.decided else row.value)
    plain = trust_interval(ratings_from_frame(frame.drop("sampling_probability"), study=state.study))
    assert [r.value for r in plain.rows if r.against] != [row.value]  # it is corrected
    assert equal.n_ratings == pair.n_ratings


def test_the_admin_page_draws_the_sequence_and_says_when_it_will_stop(state: StudyState) -> None:
    rate(state, 3, "nobody", limit=60, seed=11)
    [pair] = watch_study(state.database, state.study)
    drawn = sequence_chart(pair, 24)
    assert drawn is not None
    assert drawn["label"].startswith(f"{pair.system} minus {pair.against}")
    assert "it goes on to its end (24 dialogues)" in describe_stop([pair], 24)
    html = Pages("").sections(look(state.database, Live(state.database), wait=True), "x", OWNER)["results"]
    assert 'class="course sequence"' in html
    assert 'id="forecast"' in html
    assert sequence_chart(dataclasses.replace(pair, looks=pair.looks[:1]), 24) is None
    assert "cannot be said yet" in describe_stop([dataclasses.replace(pair, looks=pair.looks[:1])], 24)


def test_a_study_that_does_not_stop_is_watched_too(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StudyState.create(sqlite, a_study(stop="when-full"), "")
    rate(state, 3, state.study.systems[0])
    findings = Live(sqlite).wait()
    assert findings.watches[0].decision == "better"
    assert not findings.stops
    assert stop_if_sure(sqlite, state.study, 1.0) is None


def test_the_admin_sees_the_sequence_and_why_it_stopped(state: StudyState) -> None:
    rate(state, 3, state.study.systems[0])
    stop_if_sure(state.database, state.study, 1.0)
    board = look(state.database, Live(state.database), wait=True)
    data = as_data(board)["statistics"]
    assert data["stopped"]
    assert data["sequence"][0]["decision"] == "better"
    html = Pages("").sections(board, "x", OWNER)["results"]
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
        ({"stop": "when-full", "stop_judge": {"file": "j.csv"}}, "helps a study that stops by itself"),
        ({"stop_judge": {"judge": "scorer"}}, "say where the judge's ratings are"),
    ],
)
def test_what_cannot_stop_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        a_study(**fields)
