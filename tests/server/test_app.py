"""The rater's routes over HTTP, without a browser: every preset to the end, and what must not happen."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select

from palaver.errors import UserError
from palaver.server.app import DatabaseCheck, create_app
from palaver.server.entry import allow_resume, code_of, resume_requests
from palaver.server.overview import app_from_environment
from palaver.server.security import MAX_BODY
from palaver.server.settings import Settings, from_environment, to_environment
from palaver.server.tables import answer, comment, rater
from palaver.studies.design import PRESETS, preset_study, preset_text

FULL = """
name = "full"
title = "<b>Title</b>"
layout = "joint"
raters_per_item = 5
comments = true
consent = "<script>alert(1)</script> We ask for your consent."
instructions = "Read \\"everything\\"."

[training]
pass_mark = 1.0
[[training.items]]
item = { id = "t", outputs = [{ system = "zebra", text = "Hello!" }] }
expected = [{ criterion = "good", system = "zebra", low = 4, feedback = "It is <i>good</i>." }]

[[survey]]
name = "age"
text = "How old are you?"
options = ["young", "old"]
required = true
[[survey]]
name = "more"
text = "Anything else?"

[completion]
code = "C0DE"
url = "https://app.prolific.com/submissions/complete?cc=C0DE"

[[questions]]
criterion = "good"
text = "How good?"
scale = { kind = "likert", low = 1, high = 5 }

[[questions]]
criterion = "content: what"
text = "What about it?"
required = false
scale = { kind = "checkboxes" }

[[items]]
id = "one"
context = "</div><script>alert(2)</script>"
outputs = [
  { system = "zebra", text = "<img src=x onerror=alert(3)>" },
  { system = "quagga", text = "Fine & good" },
]
"""

Serve = Callable[..., TestClient]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A client of a new server for the study in a text."""
    clients: list[TestClient] = []

    def start(text: str, **settings: object) -> TestClient:
        file = tmp_path / "study.toml"
        file.write_text(text, encoding="utf-8")
        url = f"sqlite:///{tmp_path / 'study.db'}"
        app = create_app(Settings.model_validate({"study_file": file, "database": url, **settings}))
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        clients.append(client)
        client.__enter__()
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


def csrf(page: str) -> str:
    return re.search(r'name="csrf" (?:value|content)="(\w+)"', page)[1]  # type: ignore[index]


def press(client: TestClient, page: str, **fields: str) -> str:
    """Send the one form of a page of words."""
    action = re.search(r'<form method="post" action="([^"]+)"', page)[1]  # type: ignore[index]
    reply = client.post(action, data={"csrf": csrf(page), **fields})
    assert reply.status_code == 200, reply.text
    return reply.text


def fields(page: str) -> dict[str, list[str]]:
    """The first permitted value for every question of a rating page."""
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="(?:radio|checkbox)" name="([^"]+)" value="([^"]*)"', page):
        values.setdefault(unescape(name), [unescape(value)])
    for name in re.findall(r'<input id="[^"]+" name="([^"]+)" type="(?:text|number)"', page):
        values[unescape(name)] = ["80"]
    return values


def form(page: str, **more: str) -> dict[str, object]:
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {**hidden, **fields(page), **more}


def body(page: str) -> dict[str, object]:
    """What the page's script would send."""
    answers = []
    for name, values in fields(page).items():
        _, position, criterion = name.split(":", 2)
        boxes = f'type="checkbox" name="{name}"' in page
        value = values if boxes else values[0]
        answers.append(
            {"id": str(uuid.uuid4()), "criterion": criterion, "position": int(position), "value": value}
        )
    number = int(re.search(r'data-assignment="(\d+)"', page)[1])  # type: ignore[index]
    return {"assignment": number, "answers": answers, "comment": ""}


def count(client: TestClient, table: object = answer) -> int:
    with client.app.state.site.study_state.database.reading() as connection:  # type: ignore[attr-defined]
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def is_rating(page: str) -> bool:
    return '<form id="rate"' in page


# --- whole studies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "complete"])  # it begins with consent
@pytest.mark.parametrize("layout", ["joint", "separate"])
@pytest.mark.parametrize("scripts", [True, False])
def test_every_preset_runs_to_its_end_and_names_no_system(
    serve: Serve, name: str, layout: str, scripts: bool
) -> None:
    client = serve(preset_text(name, layout=layout))
    study = preset_study(name, layout=layout)
    entry = client.get("/")
    pages = [entry.text]
    page = press(client, entry.text)
    while is_rating(page):
        pages.append(page)
        assert len(pages) < 100
        if scripts:
            reply = client.post("/api/answers", json=body(page), headers={"x-csrf-token": csrf(page)})
            assert reply.status_code == 200, reply.text
            pages.append(reply.text)
            page = client.get("/study").text
        else:
            reply = client.post("/study/answers", data=form(page))
            assert reply.status_code == 200, reply.text
            page = reply.text
    pages.append(page)
    assert "Thank you!" in page
    assert "completion code" in page
    pairs = any(q.scale.kind == "pairwise" for q in study.questions)
    outputs = sum(1 if pairs else len(item.outputs) for item in study.items)
    assert count(client) == outputs * len(study.questions)
    for page in pages:
        for system in study.systems:
            assert system not in page
        for item in study.items:
            for output in item.outputs:
                assert output.dialogue is None or output.dialogue.id not in page


def test_the_whole_way_with_everything(serve: Serve) -> None:
    client = serve(FULL)
    page = client.get("/?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=x").text
    assert "We ask for your consent" in page
    page = press(client, page)
    assert "Read &#34;everything&#34;." in page
    page = press(client, page)
    assert "Training" in page
    wrong = client.post("/study/answers", data=form(page)).text
    assert "Not quite." in wrong
    assert "It is &lt;i&gt;good&lt;/i&gt;." in wrong
    page = client.get("/study").text
    assert "Training" in page, "the second attempt"
    right = client.post("/study/answers", data={**form(page), "answer:0:good": "5"}).text
    assert "That is right." in right
    page = client.get("/study").text
    assert "0 of 1 done" in page
    assert "1 of 2 for this item" in page
    page = client.post("/study/answers", data=form(page, comment="so so")).text
    assert "2 of 2 for this item" in page
    page = client.post("/study/answers", data=form(page)).text
    assert "How old are you?" in page
    action = {"csrf": csrf(page), "survey:more": "<b>no</b>"}
    refused = client.post("/study/survey", data=action)
    assert refused.status_code == 422
    assert "please answer: How old are you?" in refused.text
    assert "&lt;b&gt;no&lt;/b&gt;" in refused.text, "what was written is kept"
    page = press(client, page, **{"survey:age": "old"})
    assert "C0DE" in page
    assert 'href="https://app.prolific.com/submissions/complete?cc=C0DE"' in page
    assert "Return to Prolific" in page
    assert count(client, comment) == 1
    again = client.get("/study").text
    assert "C0DE" in again, "coming back shows the same end"


def test_training_is_explained_to_the_script(serve: Serve) -> None:
    client = serve(FULL)
    page = press(client, press(client, client.get("/").text))
    reply = client.post("/api/answers", json=body(page), headers={"x-csrf-token": csrf(page)}).json()
    assert (reply["finished"], reply["has_feedback"]) == (True, True)
    number = re.search(r'data-assignment="(\d+)"', page)
    assert number is not None
    explained = client.get(f"/study/feedback/{number[1]}").text
    assert "Not quite." in explained
    assert "It is &lt;i&gt;good&lt;/i&gt;." in explained
    assert "checked" in explained, "with the answer that was given"
    assert client.get("/study/feedback/999").status_code == 404


@pytest.mark.parametrize(("good", "is_asked"), [("1", True), ("5", False)])
def test_the_explanation_shows_what_was_asked(serve: Serve, good: str, is_asked: bool) -> None:
    question = """[[questions]]
criterion = "why"
text = "Why not?"
scale = { kind = "text" }
shown_if = { criterion = "good", at_most = 2 }

"""
    client = serve(FULL.replace("[[items]]", f"{question}[[items]]", 1))
    page = press(client, press(client, client.get("/").text))
    given = {**form(page), "answer:0:good": good, "answer:0:why": "It is rude."}
    assert ("Why not?" in client.post("/study/answers", data=given).text) == is_asked


def test_text_of_the_study_is_escaped(serve: Serve) -> None:
    client = serve(FULL)
    pages = [client.get("/").text]
    for _ in range(2):
        pages.append(press(client, pages[-1]))
    page = pages[-1]
    client.post("/study/answers", data={**form(page), "answer:0:good": "5"})
    for _ in range(2):
        pages.append(client.get("/study").text)
        client.post("/study/answers", data=form(pages[-1]))
    for page in pages:
        for text in ("<script>alert", "<b>Title", "<img"):
            assert text not in page
    assert any("&lt;img src=x onerror=alert(3)&gt;" in page for page in pages)


def test_an_open_study_shows_names(serve: Serve) -> None:
    client = serve(preset_text("rankme").replace("seed =", "blind = false\nseed =", 1))
    assert ">north<" in press(client, client.get("/").text)


def test_a_speaker_named_after_a_system_stays_hidden(serve: Serve) -> None:
    text = preset_text("pairwise").replace('speaker = "system"', 'speaker = "amber"')
    client = serve(text)
    page = press(client, client.get("/").text)
    assert "amber" not in page
    assert ">System<" in page


def test_optional_questions_alone_come_on_one_page(serve: Serve) -> None:
    """The first answer ends a screen that requires nothing."""
    text = FULL.replace('text = "How good?"', 'text = "How good?"\nrequired = false')
    client = serve(re.sub(r"\[training\].*?(?=\[\[survey)", "", text, count=1, flags=re.DOTALL))
    page = press(client, press(client, client.get("/").text))
    assert page.count('data-criterion="good"') == 2


# --- coming in ----------------------------------------------------------------------------------------------


def test_people_come_back_as_who_they_were(serve: Serve) -> None:
    client = serve(FULL)
    client.get("/?PROLIFIC_PID=p1")
    client.get("/?PROLIFIC_PID=p1")
    assert count(client, rater) == 1
    client.get("/?PROLIFIC_PID=p2")
    assert count(client, rater) == 2
    client.get("/")
    assert count(client, rater) == 2, "the cookie is enough"
    client.cookies.clear()
    client.get("/")
    assert count(client, rater) == 3


def test_a_platform_id_alone_opens_nobodys_session(serve: Serve) -> None:
    client = serve(FULL)
    client.get("/?PROLIFIC_PID=p1")
    mine = dict(client.cookies)
    client.cookies.clear()
    other = client.get("/?PROLIFIC_PID=p1")
    assert other.status_code == 403
    assert "You began in another browser" in other.text
    assert client.get("/study").status_code == 401
    code = re.search(r"<code>(\w+)</code>", other.text)[1]  # type: ignore[index]
    assert code in client.get("/?PROLIFIC_PID=p1").text, "the same browser has one code"

    database = client.app.state.site.study_state.database  # type: ignore[attr-defined]
    (wish,) = resume_requests(database)
    assert (wish.external, code_of(wish.device)) == ("p1", code)
    stranger = TestClient(client.app, base_url="http://localhost")
    assert stranger.get("/?PROLIFIC_PID=p1").status_code == 403
    allow_resume(database, wish.id, 1.0)
    assert stranger.get("/?PROLIFIC_PID=p1").status_code == 403, "another browser was meant"
    assert client.get("/?PROLIFIC_PID=p1").status_code == 200
    assert client.get("/study").status_code == 200
    assert count(client, rater) == 1
    client.cookies.clear()
    client.cookies.update(mine)
    assert client.get("/?PROLIFIC_PID=p1").status_code == 200, "the first browser has lost nothing"


def test_wishes_do_not_pile_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve(FULL, rate_limits=False)
    client.get("/?PROLIFIC_PID=p1")
    for _ in range(8):
        client.cookies.clear()
        client.get("/?PROLIFIC_PID=p1")
    database = client.app.state.site.study_state.database  # type: ignore[attr-defined]
    assert len(resume_requests(database)) == 5


def test_a_second_assignment_is_not_paid_without_work(serve: Serve) -> None:
    client = serve(preset_text("likert"), public_url="https://lab.example.org")
    client.base_url = "https://lab.example.org"
    link = "/?workerId=w&hitId=h&turkSubmitTo=https%3A%2F%2Fwww.mturk.com&assignmentId="
    text = press(client, client.get(f"{link}a1").text)
    assert is_rating(client.get(f"{link}a2").text), "an assignment that was returned, and another instead"
    while is_rating(text):
        text = client.post("/study/answers", data=form(text)).text
    assert 'name="assignmentId" value="a2"' in text
    assert 'name="assignmentId" value="a2"' in client.get(f"{link}a2").text
    again = client.get(f"{link}a3")
    assert again.status_code == 409
    assert "externalSubmit" not in again.text
    assert "code" not in again.text
    assert client.get("/study").status_code == 401, "nor by the way round"


def test_the_assignment_of_finished_work_cannot_be_exchanged(serve: Serve) -> None:
    """A return without an assignment must not make room for another one."""
    client = serve(preset_text("likert"), public_url="https://lab.example.org")
    client.base_url = "https://lab.example.org"
    link = "/?workerId=w&hitId=h&turkSubmitTo=https%3A%2F%2Fwww.mturk.com"
    text = press(client, client.get(f"{link}&assignmentId=a1").text)
    while is_rating(text):
        text = client.post("/study/answers", data=form(text)).text
    assert 'name="assignmentId" value="a1"' in client.get(link).text
    assert client.get(f"{link}&assignmentId=a2").status_code == 409
    unnamed = TestClient(client.app, base_url="https://lab.example.org")
    text = press(unnamed, unnamed.get("/?workerId=v").text)
    while is_rating(text):
        text = unnamed.post("/study/answers", data=form(text)).text
    assert unnamed.get("/?workerId=v&assignmentId=b1").status_code == 409, "it was done for no assignment"


@pytest.mark.parametrize("leave", ["decline", "leave"])
@pytest.mark.parametrize("link", ["/?PROLIFIC_PID=p&SESSION_ID=", "/?workerId=p&assignmentId="])
def test_who_has_left_and_returns_gets_no_code(serve: Serve, leave: str, link: str) -> None:
    client = serve(FULL)
    page = client.get(f"{link}1").text
    if leave == "leave":
        page = press(client, press(client, page))
        page = client.post("/study/answers", data=form(page)).text
        page = client.get("/study/leave").text
    pages = [client.post(f"/study/{leave}", data={"csrf": csrf(page)}).text]
    pages += [client.get(where).text for where in (f"{link}1", f"{link}2", "/", "/study")]
    for step in ("consent", "begin", "survey"):
        assert (
            client.post(f"/study/{step}", data={"csrf": csrf(page), "survey:age": "old"}).status_code == 200
        )
        pages.append(client.get("/study").text)
    for shown in pages:
        assert ("You have left" if leave == "leave" else "You are not taking part") in shown
        assert "C0DE" not in shown
        assert "externalSubmit" not in shown
    client.cookies.clear()
    elsewhere = client.get(f"{link}3")
    assert (elsewhere.status_code, "C0DE" in elsewhere.text) == (403, False)
    assert count(client, rater) == 1


def test_mturk_previews_frames_and_submits(serve: Serve) -> None:
    client = serve(preset_text("likert"), public_url="https://lab.example.org")
    client.base_url = "https://lab.example.org"
    preview = client.get("/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=h")
    assert "Accept the task to begin" in preview.text
    assert "frame-ancestors https://*.mturk.com" in preview.headers["content-security-policy"]
    assert count(client, rater) == 0
    link = "/?assignmentId=a1&hitId=h&workerId=w&turkSubmitTo=https%3A%2F%2Fworkersandbox.mturk.com"
    entry = client.get(link, follow_redirects=False)
    assert "SameSite=None; Secure; Partitioned" in entry.headers["set-cookie"]
    page = client.get("/study")
    assert "frame-ancestors https://*.mturk.com" in page.headers["content-security-policy"]
    text = press(client, page.text)
    while is_rating(text):
        text = client.post(
            "/study/answers", data=form(text), headers={"origin": "https://lab.example.org"}
        ).text
    assert 'action="https://workersandbox.mturk.com/mturk/externalSubmit"' in text
    assert 'name="assignmentId" value="a1"' in text


def test_floods_at_the_door_are_stopped(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.server.site.ENTRIES_PER_MINUTE", 3)
    client = serve(FULL)
    codes = []
    for _ in range(5):
        client.cookies.clear()
        codes.append(client.get("/").status_code)
    assert codes == [200, 200, 200, 429, 429]


def test_cookies_and_invented_ids_do_not_open_the_door(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.server.site.ENTRIES_PER_MINUTE", 3)
    client = serve(FULL)
    codes = [client.get(f"/?PROLIFIC_PID=p{n}").status_code for n in range(5)]
    assert codes == [200, 200, 200, 429, 429]


@pytest.mark.parametrize(
    ("limit", "links"),
    [
        ("ENTRIES_OF_ONE", ["/?PROLIFIC_PID=p"] * 5),
        ("ENTRIES_OF_ALL", [f"/?workerId=w{n}" for n in range(5)]),
    ],
)
def test_other_limits_at_the_door(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, limit: str, links: list[str]
) -> None:
    monkeypatch.setattr(f"palaver.server.site.{limit}", 3)
    client = serve(FULL)
    assert [client.get(link).status_code for link in links] == [200, 200, 200, 429, 429]


def test_nobody_sends_more_than_a_person_can(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.server.site.ANSWERS_PER_MINUTE", 3)
    client, page = rating(serve)  # one form was sent
    head = {"x-csrf-token": csrf(page)}
    codes = [client.post("/api/answers", json=body(page), headers=head).status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429]


def test_a_screen_has_so_many_rows(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.server.study_state.CHANGES", 2)
    client, page = rating(serve, rate_limits=False)
    slots = 3  # outputs of an item
    head = {"x-csrf-token": csrf(page)}
    codes = [
        client.post("/api/answers", json=body(page), headers=head).status_code for _ in range(2 * slots + 2)
    ]
    assert codes == [200] * 2 * slots + [409] * 2
    assert count(client) == 2 * slots


@pytest.mark.parametrize("link", ["/?PROLIFIC_PID=a%00b", "/?PROLIFIC_PID=" + "x" * 501])
def test_odd_parameters_are_refused(serve: Serve, link: str) -> None:
    client = serve(FULL)
    assert client.get(link).status_code == 422
    assert count(client, rater) == 0


# --- what must not happen -----------------------------------------------------------------------------------


def rating(serve: Serve, **settings: object) -> tuple[TestClient, str]:
    client = serve(preset_text("likert"), **settings)
    return client, press(client, client.get("/").text)


def test_the_same_answer_twice_is_one_row(serve: Serve) -> None:
    client, page = rating(serve)
    sent, head = body(page), {"x-csrf-token": csrf(page)}
    first = client.post("/api/answers", json=sent, headers=head).json()
    assert client.post("/api/answers", json=sent, headers=head).json()["saved"] == first["saved"]
    assert count(client) == 1
    posted = form(client.get("/study").text)
    for _ in range(2):
        client.post("/study/answers", data=posted)
    assert count(client) == 2


def test_posts_need_session_token_and_origin(serve: Serve) -> None:
    client, page = rating(serve)
    sent, head = body(page), {"x-csrf-token": csrf(page)}
    post, (name,) = client.post, client.cookies
    assert post("/api/answers", json=sent).status_code == 403
    assert post("/api/answers", json=sent, headers={"x-csrf-token": "0" * 64}).status_code == 403
    evil = {**head, "origin": "http://evil.example"}
    assert post("/api/answers", json=sent, headers=evil).status_code == 403
    assert post("/study/answers", data=form(page), headers=evil).status_code == 403
    assert post("/study/answers", data={**form(page), "csrf": ""}).status_code == 403
    for path in ("consent", "begin", "survey"):
        assert post(f"/study/{path}").status_code == 403
    client.cookies.clear()
    reply = post("/api/answers", json=sent, headers=head)
    assert reply.status_code == 401
    assert "cookie" in reply.json()["error"]
    assert client.get("/study").status_code == 401
    client.cookies.set(name, "f" * 32 + "." + "0" * 64)
    assert client.get("/study").status_code == 401
    assert count(client) == 0


def test_nobody_answers_for_another(serve: Serve) -> None:
    client, page = rating(serve)
    client.cookies.clear()
    other = press(client, client.get("/").text)
    reply = client.post("/api/answers", json=body(page), headers={"x-csrf-token": csrf(other)})
    assert reply.status_code == 404
    assert count(client) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"answers": [{"id": "x"}]},
        {"assignment": 0},
        {"assignment": 2**40},
        {"assignment": "1; drop table"},
        {"comment": "a\0b"},
        {"more": 1},
    ],
)
def test_malformed_answers_are_refused_in_json(serve: Serve, change: dict[str, object]) -> None:
    client, page = rating(serve)
    head = {"x-csrf-token": csrf(page)}
    reply = client.post("/api/answers", json={**body(page), **change}, headers=head)
    assert reply.status_code == 422
    assert set(reply.json()) == {"error"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("value", 7), ("value", "\ud800"), ("value", ["1"]), ("value", True), ("id", "../x"), ("position", 9),
     ("criterion", "other"), ("seconds", -1), ("given_at", 1e300), ("value", 10**400), ("value", None)],
)  # fmt: skip
def test_wrong_answers_are_refused_in_json(serve: Serve, field: str, value: object) -> None:
    client, page = rating(serve)
    sent = body(page)
    sent["answers"][0][field] = value  # type: ignore[index]
    head = {"x-csrf-token": csrf(page), "content-type": "application/json"}
    reply = client.post("/api/answers", content=json.dumps(sent), headers=head)
    assert reply.status_code in (400, 422), reply.text
    assert set(reply.json()) == {"error"}
    assert count(client) == 0


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "9" * 5000, "NaN", '"\\ud800"', ""])
def test_no_json_breaks_the_server(serve: Serve, text: str) -> None:
    client, page = rating(serve)
    head = {"x-csrf-token": csrf(page), "content-type": "application/json"}
    reply = client.post("/api/answers", content=text, headers=head)
    assert reply.status_code in (400, 422)
    assert set(reply.json()) == {"error"}


def test_large_requests_are_refused(serve: Serve) -> None:
    client, page = rating(serve)
    head = {"x-csrf-token": csrf(page), "content-type": "application/json"}
    assert client.post("/api/answers", content=b" " * (MAX_BODY + 1), headers=head).status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * (MAX_BODY // 10)

    assert client.post("/api/answers", content=chunks(), headers=head).status_code == 413
    form_head = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/study/answers", content=chunks(), headers=form_head).status_code == 413


def test_requests_have_to_arrive(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client, page = rating(serve)
    monkeypatch.setattr("palaver.server.security.BODY_SECONDS", 0.05)

    async def post() -> int:
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/answers",
            "query_string": b"",
            "headers": [
                (b"host", b"localhost"),
                (b"content-type", b"application/json"),
                (b"x-csrf-token", csrf(page).encode()),
                (b"cookie", "; ".join(f"{k}={v}" for k, v in client.cookies.items()).encode()),
            ],
        }
        sent: list[Any] = []

        async def receive() -> Any:
            await asyncio.sleep(30)

        async def send(message: Any) -> None:
            sent.append(message)

        await client.app(scope, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(post()) == 408


def test_a_wrong_form_comes_back_with_the_reason(serve: Serve) -> None:
    client, page = rating(serve)
    criterion = next(iter(fields(page)))
    reply = client.post("/study/answers", data={**form(page), criterion: "9"})
    assert reply.status_code == 422
    assert is_rating(reply.text)
    assert "expected a whole number from 1 to 6" in reply.text


def test_every_response_is_guarded(serve: Serve) -> None:
    client, page = rating(serve)
    paths = ["/", "/study", "/health", "/nothing", "/static/palaver.css", "/static/nothing", "/api/answers"]
    for path in paths:
        reply = client.get(path)
        assert "default-src 'none'" in reply.headers["content-security-policy"], path
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert "no-store" in client.get("/study").headers["cache-control"]
    inline = re.findall(r"<script(?! type=\"module\" src=)|<style|\son\w+=|style=", page)
    assert not inline


def test_another_name_is_refused(serve: Serve) -> None:
    client = serve(preset_text("likert"), public_url="https://lab.example.org")
    for name in ("lab.example.org", "localhost:8000", "127.0.0.1"):
        reply = client.get("/health", headers={"host": name})
        assert reply.status_code == 200
        assert "max-age" in reply.headers["strict-transport-security"]
    reply = client.get("/", headers={"host": "evil.example"})
    assert reply.status_code == 421
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert count(client, rater) == 0


def test_programs_are_told_about_by_the_admin_alone(serve: Serve) -> None:
    assert serve(FULL).get("/openapi.json").status_code == 404


def test_static_files_are_cached_by_their_hash_and_nothing_else_is_served(serve: Serve) -> None:
    client, page = rating(serve)
    for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
        assert "immutable" in client.get(path).headers["cache-control"]
    assert "immutable" not in client.get("/static/palaver.css?v=old").headers["cache-control"]
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py"):
        assert client.get(path).status_code == 404


def test_errors_are_pages_or_json_and_tell_nothing(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client, page = rating(serve)
    assert "This page does not exist" in client.get("/nothing").text
    assert client.get("/api/nothing").json() == {"error": "There is no such page."}
    assert client.get("/api/answers").status_code == 405

    def fail(*args: object) -> None:
        raise RuntimeError("the secret of the house")

    study_state = client.app.state.site.study_state  # type: ignore[attr-defined]
    monkeypatch.setattr(type(study_state), "visit", fail)
    monkeypatch.setattr(type(study_state), "submit", fail)
    for reply in (
        client.get("/study"),
        client.post("/api/answers", json=body(page), headers={"x-csrf-token": csrf(page)}),
    ):
        assert reply.status_code == 500
        assert "secret" not in reply.text
        assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_all_addresses_respect_the_root_path(serve: Serve) -> None:
    client = serve(preset_text("likert"), public_url="http://lab.example.org/study-1")
    entry = client.get("/", follow_redirects=False)
    assert entry.headers["location"] == "/study-1/study"
    assert "Path=/study-1;" in entry.headers["set-cookie"]
    client.cookies.update(dict(entry.cookies))
    for prefix in ("", "/study-1"):  # a proxy may take the prefix off, or leave it
        page = client.get(f"{prefix}/study")
        assert page.status_code == 200
        addresses = re.findall(r'(?:href|src|action|data-post|data-next)="(/[^"]*)"', page.text)
        assert addresses
        assert all(a.startswith("/study-1/") for a in addresses)
        assert client.get(f"{prefix}/static/palaver.css").status_code == 200


# --- starting -----------------------------------------------------------------------------------------------


def test_a_server_started_again_goes_on(serve: Serve) -> None:
    first, page = rating(serve)
    first.post("/api/answers", json=body(page), headers={"x-csrf-token": csrf(page)})
    second = serve(preset_text("likert"))
    second.cookies.update(first.cookies)
    assert "2 of 3 for this item" in second.get("/study").text
    with pytest.raises(UserError, match="the file has changed"):
        serve(preset_text("likert").replace("raters_per_item = 3", "raters_per_item = 4"))


def test_workers_read_their_settings_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(preset_text("likert"), encoding="utf-8")
    with pytest.raises(UserError, match="PALAVER_SERVER is not set"):
        app_from_environment()
    settings = Settings(study_file=file, database=f"sqlite:///{tmp_path / 'study.db'}", workers=2)
    for name, value in to_environment([settings]).items():
        monkeypatch.setenv(name, value)
    assert from_environment() == (settings,)
    with TestClient(app_from_environment(), base_url="http://localhost") as client:
        assert client.get("/health").json()["status"] == "ok"


# --- a database that cannot be written ----------------------------------------------------------------------


def forbid(connection: Any, record: object, proxy: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def allow(connection: Any, record: object, proxy: object) -> None:
    connection.execute("PRAGMA query_only = OFF")


def test_while_nothing_can_be_saved(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Monitors are told, raters' pages try again, and the log is not filled."""
    client, page = rating(serve)
    head = {"x-csrf-token": csrf(page)}
    engine = client.app.state.site.study_state.database.engine  # type: ignore[attr-defined]
    assert client.get("/health").status_code == 200
    monkeypatch.setattr(DatabaseCheck, "PAUSE", 0.0)
    event.listen(engine, "checkout", forbid)
    for _ in range(20):
        reply = client.post("/api/answers", json=body(page), headers=head)
        assert reply.status_code == 503
        assert "Nothing can be saved" in reply.json()["error"]
    assert client.get("/study").status_code == 503
    assert client.get("/health").status_code == 503
    lines = [r for r in caplog.records if r.name == "palaver.server"]
    assert len(lines) == 1
    assert "readonly database" in lines[0].getMessage()
    assert lines[0].exc_info is None
    event.remove(engine, "checkout", forbid)
    event.listen(engine, "checkout", allow)
    assert client.get("/health").status_code == 200
    assert client.post("/api/answers", json=body(page), headers=head).status_code == 200


def test_monitors_look_without_coming_in(serve: Serve) -> None:
    client = serve(FULL)
    for path in ("/", "/?PROLIFIC_PID=p", "/health", "/study", "/static/palaver.css", "/admin/login"):
        reply = client.head(path, follow_redirects=False)
        assert reply.status_code == 200, path
        assert reply.content == b""
    assert client.head("/nothing").status_code == 404
    assert count(client, rater) == 0


def test_mistakes_tell_nothing_of_the_inside(serve: Serve) -> None:
    client, page = rating(serve)
    sent = body(page)
    sent["answers"][0]["value"] = True  # type: ignore[index]
    reply = client.post("/api/answers", json=sent, headers={"x-csrf-token": csrf(page)})
    assert reply.status_code == 422
    assert "answers.0.value" in reply.json()["error"]
    assert "0x" not in reply.text
    assert "function" not in reply.text


@pytest.mark.parametrize(
    ("scale", "value", "stored"),
    [
        ({"kind": "binary"}, 0, "0"),
        ({"kind": "binary"}, 1, "1"),
        ({"kind": "likert", "low": 0, "high": 5}, 0, "0"),
        ({"kind": "slider", "low": 0, "high": 1}, 1, "1"),
        ({"kind": "binary"}, False, None),
        ({"kind": "likert", "low": 0, "high": 5}, True, None),
    ],
)
def test_numbers_may_come_as_numbers(
    serve: Serve, scale: dict[str, object], value: object, stored: str | None
) -> None:
    text = f"""
name = "numbers"
[[questions]]
criterion = "good"
text = "How good?"
scale = {{ {", ".join(f"{k} = {json.dumps(v)}" for k, v in scale.items())} }}
[[items]]
id = "one"
outputs = [{{ system = "a", text = "x" }}]
"""
    client = serve(text)
    page = press(client, client.get("/").text)
    sent = {**body(page), "answers": [{"id": "number-1", "criterion": "good", "position": 0, "value": value}]}
    reply = client.post("/api/answers", json=sent, headers={"x-csrf-token": csrf(page)})
    assert reply.status_code == (422 if stored is None else 200), reply.text
    with client.app.state.site.study_state.database.reading() as connection:  # type: ignore[attr-defined]
        assert list(connection.execute(select(answer.c.value)).scalars()) == ([stored] if stored else [])
