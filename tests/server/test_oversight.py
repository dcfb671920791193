"""What the admin sees is what the database holds; what the admin decides changes marks and places only."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, get_args

import pytest
import sham
from sqlalchemy import func, select

from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.oversight import Action, arm_token, decide, rater_table, redeem_token, status
from palaver.server.refusal import Refusal
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, assignment, event, rater, screen
from palaver.server.tables import study as study_table

MakeStudy = Callable[..., Study]


def recounted(database: Database) -> dict[int, tuple[int, int]]:
    """screen -> (taken as stored, taken as the assignments say), for screens of the study's own items."""
    counts = (
        select(assignment.c.screen_id, func.count().label("n"))
        .join(rater, rater.c.id == assignment.c.rater_id)
        .where(assignment.c.status.in_(("open", "done")), rater.c.excluded.is_(False))
        .group_by(assignment.c.screen_id)
        .subquery()
    )
    with database.reading() as connection:
        rows = connection.execute(
            select(screen.c.id, screen.c.taken, counts.c.n).outerjoin(
                counts, counts.c.screen_id == screen.c.id
            )
        ).all()
    return {number: (taken, n or 0) for number, taken, n in rows}


def places_are_right(database: Database) -> bool:
    return all(stored == true for stored, true in recounted(database).values())


def n_answers(database: Database) -> int:
    with database.reading() as connection:
        return connection.execute(select(func.count()).select_from(answer)).scalar_one()


def test_status_counts(database: Database, make_study: MakeStudy, clock: Any) -> None:
    study = make_study(n_items=3, criteria=("quality", "ease"), layout="separate", raters_per_item=2)
    study_state = StudyState.create(database, study, "", clock)
    empty = status(database, clock())
    assert (empty.done, empty.target, empty.items_done, empty.items, empty.raters) == (0, 12, 0, 3, 0)
    rng = random.Random(1)
    first, second = sham.come_in(study_state), sham.come_in(study_state)
    sham.work(study_state, first, rng)
    sham.work(study_state, second, rng, screens=2)
    study_state.visit(second)
    study_state.enter()
    now = status(database, clock())
    assert (now.done, now.open, now.answers) == (8, 1, 16)
    assert (now.raters, now.at_work) == (3, 2)
    assert dict(now.states) == {"done": 1, "working": 1, "instructions": 1}
    assert [(g.criteria, g.target) for g in now.groups] == [(("quality",), 6), (("ease",), 6)]
    assert sum(g.done for g in now.groups) == 8
    clock.sleep(301)
    later = status(database, clock())
    assert (later.at_work, later.open) == (0, 0)
    sham.work(study_state, second, rng)
    full = status(database, clock())
    assert (full.done, full.items_done) == (12, 3)


def test_the_table_of_raters(database: Database, make_study: MakeStudy, clock: Any) -> None:
    study_state = StudyState.create(database, make_study(n_items=2), "", clock)
    early = sham.come_in(study_state, platform="prolific", external="p1")
    sham.work(study_state, early, random.Random(1))
    clock.sleep(10)
    late = study_state.enter()
    rows = rater_table(database, clock())
    assert [r.id for r in rows] == [late, early]
    assert (rows[1].external, rows[1].platform, rows[1].screens, rows[1].state) == (
        "p1",
        "prolific",
        2,
        "done",
    )
    assert [r.at_work for r in rows] == [True, False]


def test_excluding_frees_places_and_including_takes_them_again(
    database: Database, make_study: MakeStudy
) -> None:
    study_state = StudyState.create(database, make_study(n_items=3, raters_per_item=2), "")
    rng = random.Random(1)
    first, second = sham.come_in(study_state), sham.come_in(study_state)
    sham.work(study_state, first, rng)
    sham.work(study_state, second, rng, screens=1)
    study_state.visit(second)  # and one in hand
    before, answers = recounted(database), n_answers(database)
    for me in (first, second):
        decide(database, me, "exclude")
        decide(database, me, "exclude")  # twice is once
        assert places_are_right(database)
    assert status(database).done == 0
    assert {taken for taken, _ in recounted(database).values()} == {0}
    for me in (first, second):
        decide(database, me, "include")
        decide(database, me, "include")
        assert places_are_right(database)
    assert recounted(database) == before
    assert n_answers(database) == answers


def test_including_never_makes_a_surplus(database: Database, make_study: MakeStudy) -> None:
    """Somebody else has the places meanwhile: the answers are kept, and marked as late."""
    study_state = StudyState.create(database, make_study(n_items=3, raters_per_item=1), "")
    rng = random.Random(1)
    first, second = sham.come_in(study_state), sham.come_in(study_state)
    sham.work(study_state, first, rng, screens=2)
    study_state.visit(first)
    decide(database, first, "exclude")
    sham.work(study_state, second, rng, screens=1)
    decide(database, first, "include")
    assert places_are_right(database)
    assert all(taken <= 1 for taken, _ in recounted(database).values())
    now = status(database)
    assert now.late == 1
    assert n_answers(database) == 6
    sham.work(study_state, first, rng)
    sham.work(study_state, second, rng)
    assert places_are_right(database)
    assert status(database).done == 3


def test_excluded_raters_at_work_take_nobodys_place(
    database: Database, make_study: MakeStudy, clock: Any
) -> None:
    study_state = StudyState.create(database, make_study(n_items=2, raters_per_item=1), "", clock)
    rng = random.Random(1)
    out, other = sham.come_in(study_state), sham.come_in(study_state)
    study_state.visit(out)
    decide(database, out, "exclude", clock())
    clock.sleep(61)
    sham.work(study_state, out, rng)
    assert places_are_right(database)
    sham.work(study_state, other, rng)
    assert places_are_right(database)
    assert status(database, clock()).done == 2


def test_what_a_person_has_withdrawn_stays_out(database: Database, make_study: MakeStudy) -> None:
    study_state = StudyState.create(database, make_study(n_items=2, raters_per_item=1), "")
    rng = random.Random(1)
    me, other = sham.come_in(study_state), sham.come_in(study_state)
    sham.work(study_state, me, rng, screens=1)
    study_state.withdraw(me)
    for action in ("exclude", "include", "block", "unblock"):
        if action == "include":
            with pytest.raises(Refusal, match="has left the study") as refused:
                decide(database, me, action)
            assert refused.value.status == 409
        else:
            decide(database, me, action)
        assert status(database).done == 0
        assert places_are_right(database)
    assert next(row.excluded for row in rater_table(database) if row.id == me)
    assert len(sham.work(study_state, other, rng)) == 4, "others have the places"


def test_blocked_raters_get_nothing_and_their_screen_is_free_at_once(
    database: Database, make_study: MakeStudy
) -> None:
    study_state = StudyState.create(database, make_study(n_items=1, raters_per_item=1), "")
    me, other = sham.come_in(study_state), sham.come_in(study_state)
    task = study_state.visit(me).task
    assert task is not None
    decide(database, me, "block")
    decide(database, me, "block")
    assert places_are_right(database)
    assert study_state.visit(me).state == "blocked"
    with pytest.raises(Refusal):
        study_state.submit(me, task.assignment, sham.answers_to(task, random.Random(1)))
    assert study_state.visit(other).task is not None
    decide(database, me, "unblock")
    assert study_state.visit(me).state != "blocked"
    assert places_are_right(database)


def test_decisions_are_in_the_diary(database: Database, make_study: MakeStudy) -> None:
    study_state = StudyState.create(database, make_study(), "")
    me = study_state.enter()
    for action in get_args(Action):
        decide(database, me, action)
        decide(database, me, action)
    with database.reading() as connection:
        kinds = connection.execute(select(event.c.kind).order_by(event.c.id)).scalars().all()
    assert list(kinds) == ["entered", "blocked", "unblocked", "excluded", "included"]


@pytest.mark.parametrize("action", get_args(Action))
def test_unknown_raters(action: Action, sqlite: Database, make_study: MakeStudy) -> None:
    StudyState.create(sqlite, make_study(), "")
    with pytest.raises(Refusal) as refused:
        decide(sqlite, "nobody", action)
    assert refused.value.status == 404


def test_a_token_works_once_and_only_its_hash_is_kept(database: Database, make_study: MakeStudy) -> None:
    StudyState.create(database, make_study(), "")
    assert not redeem_token(database, "")
    token = arm_token(database)
    assert len(token) >= 32
    with database.reading() as connection:
        kept = connection.execute(select(study_table)).one()
    assert token not in repr(tuple(kept))
    for wrong in ("", token[:-1], token + "x", "\ud800", "ü" * 50, kept.admin_hash):
        assert not redeem_token(database, wrong)
    assert redeem_token(database, token)
    assert not redeem_token(database, token)
    older = arm_token(database)
    arm_token(database, "chosen by the owner")
    assert not redeem_token(database, older)
    assert redeem_token(database, "chosen by the owner")
