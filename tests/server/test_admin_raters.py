"""The admin looks closer: one rater, what raters wrote, more screens for one, disputed items settled."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import sham
from fastapi.testclient import TestClient
from sqlalchemy import select
from visits import accessible, no_sideways_scroll

from palaver.schema import Study
from palaver.server.answers import RawAnswer
from palaver.server.app import create_app
from palaver.server.database import Database
from palaver.server.export import read_answers
from palaver.server.oversight import arm_token
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import rater
from palaver.studies.design import preset_text

SURVEY = [{"name": "age", "text": "How old are you?"}]


@pytest.fixture
def study_state(database: Database, make_study: Callable[..., Study]) -> StudyState:
    study = make_study(n_items=6, comments=True, survey=SURVEY, items_per_rater=2)
    return StudyState.create(database, study, "")


def owner_of(study_state: StudyState) -> TestClient:
    app = create_app(Settings(database=study_state.database.url))
    client = TestClient(app, base_url="http://localhost", follow_redirects=True)
    client.post("/admin/login", data={"token": arm_token(study_state.database)})
    return client


def csrf_of(client: TestClient) -> str:
    return str(re.findall(r'name="csrf" value="(\w+)"', client.get("/admin").text)[0])


def test_one_rater_with_texts_comments_and_survey(study_state: StudyState) -> None:
    client = owner_of(study_state)
    me = sham.come_in(study_state)
    task = study_state.visit(me).task
    assert task is not None
    given = [RawAnswer(id="00000000-0000-0000-0000-000000000001", criterion="quality", position=0, value="4")]
    study_state.submit(me, task.assignment, given, "too <b>long</b>", None)
    sham.work(study_state, me, random.Random(1))
    study_state.answer_survey(me, {"age": "41"})
    page = client.get(f"/admin/raters/{me}").text
    assert "How old are you?</dt><dd>41" in page
    assert "too &lt;b&gt;long&lt;/b&gt;" in page
    assert "the answer number 1 to question" in page
    assert page.count("<article") == 2
    texts = client.get("/admin/texts").text
    assert "too &lt;b&gt;long" in texts
    assert "41" in texts
    assert client.get("/admin/raters/nobody").status_code == 404


def test_somebody_by_the_completion_code(study_state: StudyState) -> None:
    client = owner_of(study_state)
    ids = [study_state.enter("prolific", f"person-{n}", {"PROLIFIC_PID": f"person-{n}"}) for n in range(2)]
    with study_state.database.reading() as connection:
        codes = {row.id: row.code for row in connection.execute(select(rater))}
    for text in (codes[ids[1]], f" {codes[ids[1]].lower()} ", "PERSON-1", ids[1]):
        assert client.get("/admin/find", params={"text": text}).url.path == f"/admin/raters/{ids[1]}"
    for text in ("%", "FFFFFFFFFF", ""):
        assert client.get("/admin/find", params={"text": text}).url.path == "/admin/find"


def test_more_screens_for_one(study_state: StudyState) -> None:
    client = owner_of(study_state)
    me = sham.come_in(study_state)
    sham.work(study_state, me, random.Random(1))
    study_state.answer_survey(me, {"age": "41"})
    assert study_state.visit(me).state == "done"
    csrf = csrf_of(client)
    quota = f"/admin/raters/{me}/quota"
    assert client.post(quota, data={"csrf": "x", "extra": 3}).status_code == 403
    assert client.post(quota, data={"csrf": csrf, "extra": -1}).status_code == 422
    assert client.post(quota, data={"csrf": csrf, "extra": 3}).status_code == 200
    assert len(sham.work(study_state, me, random.Random(2))) == 6  # three screens, two outputs each
    assert study_state.visit(me).state == "done"  # the survey is not asked again
    other = sham.come_in(study_state)
    study_state.withdraw(other)
    assert client.post(f"/admin/raters/{other}/quota", data={"csrf": csrf, "extra": 1}).status_code == 409


def test_a_disputed_item_is_settled(study_state: StudyState) -> None:
    client = owner_of(study_state)
    for seed in range(6):
        sham.work(study_state, sham.come_in(study_state), random.Random(seed))
    before = read_answers(study_state.database).frame
    page = client.get("/admin/items").text
    item = re.findall(r'href="/admin/items/([^"]+)"', page)[0]
    place = {"csrf": csrf_of(client), "criterion": "quality", "system": "system-0"}
    url = f"/admin/items/{item}"
    wrong = client.post(url, data={**place, "value": "11"})
    assert (wrong.status_code, "quality: expected" in wrong.text) == (422, True)
    assert client.post(url, data={**place, "system": "nobody", "value": "3"}).status_code == 404
    settled = client.post(url, data={**place, "value": "3", "reason": "read twice"}).text
    assert "Decided: 3" in settled
    assert "by the owner" in settled
    [line] = client.get("/admin/decisions.jsonl").text.splitlines()
    row = json.loads(line)
    assert (row["kind"], row["item"], row["value"], row["standing"]) == ("decision", item, "3", True)
    assert read_answers(study_state.database).frame.equals(before)  # it stands beside
    client.post(url, data={**place, "value": ""})
    rows = [json.loads(line) for line in client.get("/admin/decisions.jsonl").text.splitlines()]
    assert [row["standing"] for row in rows] == [False, False]
    assert client.get("/admin/items/nothing").status_code == 404


def test_the_pages_in_a_browser(serve: Callable[..., Any], browser: Any) -> None:
    server = serve(preset_text("likert"))
    study_state: StudyState = server.app.state.site.study_state
    for seed in range(2):
        sham.work(study_state, sham.come_in(study_state), random.Random(seed))
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(f"{server.url}/admin/login?token={arm_token(server.database)}")
    page.get_by_role("button", name="Sign in").click()
    page.locator("#raters tbody th a").first.click()
    addresses = [page.url, *(f"{server.url}/admin/{name}" for name in ("items", "texts", "diary", "find"))]
    page.goto(addresses[1])
    page.locator("tbody th a").first.click()
    page.locator("form.decision input[name=value]").first.fill("2")
    page.get_by_role("button", name="Settle").first.click()
    page.get_by_text("Decided: 2").wait_for()
    for number, address in enumerate((*addresses, page.url, f"{server.url}/admin")):
        page.set_viewport_size({"width": 390 if number % 2 else 1280, "height": 900})
        page.goto(address)
        accessible(page)
        page.set_viewport_size({"width": 390, "height": 900})
        no_sideways_scroll(page)
    page.context.close()
