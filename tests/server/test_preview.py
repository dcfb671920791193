"""The owner walks a study as a rater: every part is reached, and nothing of it is kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from visits import accessible, click_go, no_sideways_scroll

from palaver.server.app import create_app
from palaver.server.database import Database
from palaver.server.oversight import arm_token
from palaver.server.preview import parts_of
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, assignment, event, rater
from palaver.studies.design import parse_study, preset_study, preset_text


@pytest.fixture
def study_state(sqlite: Database) -> StudyState:
    return StudyState.create(sqlite, preset_study("complete"), preset_text("complete"))


def admin_of(study_state: StudyState, **settings: Any) -> TestClient:
    app = create_app(Settings(database=study_state.database.url, **settings))
    client = TestClient(app, base_url="http://localhost", follow_redirects=True)
    client.post("/admin/login", data={"token": arm_token(study_state.database)})
    return client


def count_rows(database: Database) -> list[int]:
    with database.reading() as connection:
        tables = (rater, assignment, answer, event)
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


def test_only_for_admins(study_state: StudyState) -> None:
    client = admin_of(study_state)
    assert "Preview" in client.get("/admin").text
    assert "Preview:" in client.get("/admin/preview/").text
    client.cookies.clear()
    assert client.get("/admin/preview/").status_code == 401
    assert "Preview:" not in client.get("/").text


def test_every_part_is_reached_and_nothing_is_kept(study_state: StudyState) -> None:
    client = admin_of(study_state)
    client.get("/admin/preview/")
    headings = {
        "consent": "Before you begin",
        "instructions": "Read",
        "training": "Training",
        "rating": r"of \d+ done",
        "check": r"of \d+ done",
        "survey": "survey:english",
        "end": "You are done",
        "screened out": "it ends here for you",
    }
    assert parts_of(study_state.study) == list(headings)
    for part, heading in headings.items():
        reply = client.post("/admin/preview/preview/go", data={"part": part})
        assert reply.status_code == 200
        assert re.search(heading, reply.text), part
        assert "nothing you do here is kept" in reply.text
        assert 'href="/admin"' in reply.text
    assert client.post("/admin/preview/preview/go", data={"part": "nowhere"}).status_code == 404
    foreign = {"origin": "https://evil.example"}
    assert client.post("/admin/preview/preview/go", headers=foreign).status_code == 403
    assert count_rows(study_state.database) == [0, 0, 0, 0]


def test_screens_never_run_out(study_state: StudyState) -> None:
    """Also after more people than the study asks for."""
    client = admin_of(study_state)
    for _ in range(study_state.study.raters_per_item + 1):
        client.post("/admin/preview/preview/anew")
        page = client.post("/admin/preview/preview/go", data={"part": "rating"}).text
        for _ in range(20):
            if "survey:english" in page:
                break
            page = client.post("/admin/preview/preview/skip").text
        assert "survey:english" in page


def test_an_amended_study_is_shown_as_it_is(study_state: StudyState) -> None:
    client = admin_of(study_state)
    client.get("/admin/preview/")
    changed = preset_text("complete").replace("How good are these replies?", "Are these replies good?")
    study_state.amend(parse_study(changed, "changed"), changed)
    assert "Are these replies good?" in client.get("/admin/preview/").text


def test_a_preview_alone(serve: Callable[..., Any], browser: Any) -> None:
    """In Chromium, on a desk and in a hand."""
    server = serve(preset_text("complete"), is_preview=True)
    for width in (1280, 390):
        page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        page.goto(server.url)
        click_go(page)
        for part in ("Training", "Rating", "Survey", "Screened out", "End"):
            page.get_by_role("button", name=part, exact=True).click()
            page.get_by_text("nothing you do here is kept").wait_for()
            no_sideways_scroll(page)
            if part == "Rating":
                accessible(page)
        assert page.locator(".code").inner_text()
        page.goto(f"{server.url}/admin")
        assert "This page does not exist" in page.content()
        page.context.close()
