"""Live statistics: the numbers of the analysis, computed seldom and in the background."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sham

from palaver.schema import Study
from palaver.server import live
from palaver.server.admin_sessions import AdminSession
from palaver.server.dashboard import Pages, ago, as_data, chart, look
from palaver.server.database import Database
from palaver.server.export import read_answers
from palaver.server.live import Findings, Live, Point, compute_findings
from palaver.server.oversight import decide
from palaver.server.study_state import StudyState
from palaver.studies import analyse, read_ratings
from palaver.studies.design import PRESETS, preset_study
from palaver.studies.simulate import example_study

MakeStudy = Callable[..., Study]


@pytest.fixture
def study_state(sqlite: Database) -> StudyState:
    study = example_study(preset_study("likert", layout="joint"), 3, 12, raters_per_item=4)
    made = StudyState.create(sqlite, study, "")
    rng = random.Random(2)
    for n in range(4):
        sham.work(made, sham.come_in(made), rng, seconds=0.8 if n == 3 else 9)
    return made


def test_the_numbers_are_those_of_the_analysis(study_state: StudyState) -> None:
    found = compute_findings(study_state.database, study_state.study)
    table = read_ratings(read_answers(study_state.database), study=study_state.study)
    whole = analyse(table, study=study_state.study)
    headline = {row.criterion: row for row in whole.agreement if row.headline}
    assert [c.criterion for c in found.criteria] == [c.criterion for c in whole.criteria]
    for c in found.criteria:
        assert c.agreement is not None
        assert c.agreement.value == pytest.approx(headline[c.criterion].value)
        assert c.course[-1].value == c.agreement.value
        assert [p.answers for p in c.course] == sorted({p.answers for p in c.course})
    best = {r.criterion: r.scores[0].system for r in whole.ranking if r.method == "bootstrap"}
    assert all(c.rankings[0].scores[0].system == best[c.rankings[0].criterion] for c in found.criteria)
    assert {r.rater: r.flags for r in whole.raters} == {r.rater: r.flags for r in found.raters.values()}
    assert [r.rater for r in whole.raters if "too fast" in r.flags]


def test_excluded_raters_have_flags_but_no_say(study_state: StudyState) -> None:
    before = compute_findings(study_state.database, study_state.study)
    fast = next(name for name, row in before.raters.items() if "too fast" in row.flags)
    decide(study_state.database, fast, "exclude")
    after = compute_findings(study_state.database, study_state.study)
    assert after.raters[fast].flags == before.raters[fast].flags
    raters = [c.agreement.n_raters for c in after.criteria if c.agreement]
    assert raters == [c.agreement.n_raters - 1 for c in before.criteria if c.agreement]


def test_time_per_screen_counts_every_page_once(sqlite: Database, make_study: MakeStudy, clock: Any) -> None:
    """Answers of one page carry the page's time; pages of one screen come one after the other."""
    study_state = StudyState.create(sqlite, make_study(n_items=1, criteria=("quality", "ease")), "", clock)
    me = sham.come_in(study_state)
    task = study_state.visit(me).task
    assert task is not None
    given = sham.answers_to(task, random.Random(1))
    for place, seconds in ((0, 10.0), (1, 4.0)):
        clock.sleep(20)
        page = [g for g in given if g.position == place]
        study_state.submit(
            me, task.assignment, [type(g)(g.id, g.criterion, g.position, g.value, seconds) for g in page]
        )
    assert compute_findings(sqlite, study_state.study).screen_seconds == 14.0


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "complete"])  # it has training
@pytest.mark.parametrize("screens", [0, 1, None])
def test_every_preset_at_every_stage_makes_a_page(preset: str, screens: int | None, sqlite: Database) -> None:
    study_state = StudyState.create(sqlite, preset_study(preset), "")
    rng = random.Random(1)
    for _ in range(2):
        sham.work(study_state, sham.come_in(study_state), rng, screens=screens)
    board = look(sqlite, Live(sqlite), wait=True)
    assert board.fresh
    pages = Pages("").sections(board, "token", AdminSession("s", 0, 0, ""))
    assert ("Nobody has answered yet" in pages["results"]) == (screens == 0)
    data = as_data(board)
    assert len(data["raters"]) == 2
    assert data["statistics"]["up_to_date"]


def test_nobody_waits_and_nothing_is_computed_twice(
    study_state: StudyState, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, calls = [0.0], []
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slowly(database: Database, study: Study, answers: int, *, out: bool) -> Findings:
        calls.append(answers)
        begun.set()
        assert go_on.wait(10)
        return Findings(answers=answers, took=2.0)

    monkeypatch.setattr(live, "compute_findings", slowly)
    watch = Live(study_state.database, lambda: now[0])
    original = watch._compute
    monkeypatch.setattr(watch, "_compute", lambda key: (original(key), ended.set()))
    assert watch.current() is None
    assert begun.wait(10)
    assert watch.current() is None  # still at it
    go_on.set()
    assert ended.wait(10)
    assert len(calls) == 1
    first = watch.current()
    assert first is not None
    worst = next(iter(look(study_state.database, watch).raters)).rater.id
    decide(study_state.database, worst, "exclude")
    now[0] = 9.9  # five times as long as it took has not passed yet
    assert watch.current() is first
    assert len(calls) == 1
    ended.clear()
    now[0] = 10.0
    assert watch.current() is first
    assert ended.wait(10)
    assert len(calls) == 2


def test_a_failure_is_said_and_not_repeated_at_once(
    study_state: StudyState, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*words: object, **options: object) -> Findings:
        raise RuntimeError("broken")

    monkeypatch.setattr(live, "compute_findings", fail)
    found = Live(study_state.database).wait()
    assert "could not be computed" in found.problem
    assert "broken" in caplog.text


def test_the_chart() -> None:
    assert chart(()) is None
    assert chart((Point(10, 0.5, 0.4, 0.6),)) is None
    drawn = chart((Point(10, 0.5, -3.0, np.nan), Point(20, 1.0, 0.9, 1.0)))
    assert drawn is not None
    assert drawn["line"] == "120.0,32.0 240.0,0.0"
    assert drawn["band"] == "120.0,32.0 240.0,0.0 240.0,6.4 120.0,64.0"


@pytest.mark.parametrize(
    ("passed", "said"),
    [(-5, "just now"), (59, "just now"), (60, "1 min ago"), (7200, "2 h ago"), (200_000, "2 days ago")],
)
def test_ago(passed: float, said: str) -> None:
    assert ago(1000.0, 1000.0 + passed) == said
