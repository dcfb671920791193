"""Requests nobody would make, and texts nobody would write, through every field to the database and back."""

from __future__ import annotations

import csv
import html
import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from palaver.schema import Study
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.export import write_export
from palaver.server.refusal import Refusal
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, comment, rater

pytest.importorskip("palaver.server.app", reason="the web app is not there")

from starlette.testclient import TestClient

from palaver.server.app import create_app
from palaver.server.settings import Settings

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": "\" onmouseover='alert(1)' x=\"",
    "closing": "</textarea></script></style></title><img src=x onerror=alert(1)>",
    "comment": "--><!-- ]]> <![CDATA[",
    "template": "{{ 7 * 7 }} {% raw %} ${7*7} #{7*7} %(x)s %s {0}",
    "sql": "'; DROP TABLE answer; -- \\' \" ` ;",
    "rtl": "abc \u202e dlrow \u202d olleh \u2066 \u2069 \u200f شالوم",
    "invisible": "a\u200bb\u200dc\ufeffd\u2060e\u00ad",
    "lines": "one\r\ntwo\rthree\nfour\u2028five\u2029six\x85seven\x0b\x0c",
    "control": "bell\x07 escape\x1b[31m delete\x7f \x01\x02",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 😀" + "\U0010ffff",
    "zalgo": "Z" + "\u0301\u0316\u0352" * 100,
    "formula": "=cmd|' /C calc'!A0",
    "path": "../../../../etc/passwd%00.html",
    "json": '{"a": [1, "\\u0000", null]}',
    "backslash": "\\u0000 \\n \\x00 \\",
    "spaces": " \t leading and trailing \t ",
    "long word": "w" * 50_000,
    "one megabyte": "lang und länger " * 65_000,
}
texts = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
BAD = {"NUL": "a\0b", "half a character": "a\ud800b"}


def hostile_study(text: str) -> Study:
    """The text in every field that takes text."""
    name = text[:900]
    box = re.sub(r"[|\n]", " ", text)[:200].strip() or "box"
    talk = {
        "id": name,
        "turns": [
            {"speaker": name, "text": text, "knowledge": [text]},
            {"speaker": f"{name[:800]} two", "text": text, "labels": {text[:50]: text}},
        ],
        "source": text,
    }
    outputs = [
        {"system": f"{name[:800]}-1", "text": text, "id": text},
        {"system": f"{name[:800]}-2", "dialogue": talk, "id": text},
    ]
    known = {
        "item": {"id": f"{name[:800]} known", "outputs": outputs},
        "expected": [
            {"criterion": name, "system": outputs[0]["system"], "low": 1, "feedback": text},
        ],
    }
    return Study.model_validate(
        {
            "name": name,
            "title": text,
            "instructions": text,
            "consent": text,
            "layout": "joint",
            "comments": True,
            "raters_per_item": 50,
            "training": {"items": [known]},
            "survey": [{"name": name, "text": text, "options": [box, "other"]}],
            "completion": {"code": text, "screen_out_code": text},
            "questions": [
                {
                    "criterion": name,
                    "text": text,
                    "help": text,
                    "scale": {"kind": "likert", "labels": [text, text]},
                },
                {
                    "criterion": f"{name[:800]} boxes",
                    "text": text,
                    "scale": {"kind": "checkboxes", "options": [box, f"{box} two"], "exclusive": []},
                },
                {
                    "criterion": f"{name[:800]} pair",
                    "text": text,
                    "scale": {"kind": "pairwise", "tie_label": name},
                },
            ],
            "items": [
                {"id": name, "context": talk, "knowledge": text, "reference": text, "outputs": outputs},
            ],
        }
    )


def box_of(study: Study) -> str:
    return str(study.questions[1].scale.options[0])  # type: ignore[union-attr]


def answers_to(task: Any, study: Study) -> list[RawAnswer]:
    values: dict[str, Any] = {"likert": 3, "checkboxes": [box_of(study)], "pairwise": "tie"}
    return [
        RawAnswer(str(uuid.uuid4()), q.criterion, place, values[q.scale.kind])
        for q in task.questions
        for place in range(1 if q.scale.kind == "pairwise" else 2)
    ]


@texts
def test_through_the_service_and_back(database: Database, text: str, tmp_path: Path) -> None:
    study = hostile_study(text)
    StudyState.create(database, study, text)
    study_state = StudyState(database)
    assert study_state.study == study
    assert study_state.source == text
    someone = study_state.enter("prolific", text[:200], {"STUDY_ID": text[:500]})
    assert study_state.enter("prolific", text[:200], {"STUDY_ID": text[:500]}) == someone
    study_state.agree(someone)
    study_state.begin(someone)
    for _ in range(2):  # the training item, then the real one
        task = study_state.visit(someone).task
        assert task is not None
        saved = study_state.submit(someone, task.assignment, answers_to(task, study), text[:5000])
        assert saved.finished
    assert study_state.visit(someone).state == "survey"
    study_state.answer_survey(someone, {study.survey[0].name: study.survey[0].options[0]})
    assert study_state.visit(someone).code == text
    with database.reading() as connection:
        stored = connection.execute(select(answer).order_by(answer.c.number)).all()
        remarks = connection.execute(select(comment.c.text)).scalars().all()
        person = connection.execute(select(rater)).one()
    assert {row.criterion for row in stored} == {q.criterion for q in study.questions}
    assert {row.system for row in stored} == set(study.systems)
    assert {row.output for row in stored} == {text}
    assert box_of(study) in {row.value for row in stored}
    assert remarks == [text[:5000].strip()] * 2
    assert person.external == text[:200]
    assert json.loads(person.survey) == {study.survey[0].name: study.survey[0].options[0]}
    wanted = {(row.item, row.system, row.criterion) for row in stored if row.item == study.items[0].id}
    for ending, read in READERS.items():
        write_export(database, tmp_path / f"answers.{ending}")
        assert {
            (r["item"], r["system"], r["criterion"]) for r in read(tmp_path / f"answers.{ending}")
        } == wanted


def read_csv(path: Path) -> list[dict[str, Any]]:
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "jsonl": lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line],
    "csv": read_csv,
    "parquet": lambda path: pl.read_parquet(path).to_dicts(),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_no_database_takes_is_refused_everywhere(
    database: Database, make_study: Callable[..., Study], text: str
) -> None:
    asked = [{"name": "free", "text": "?"}]
    study_state = StudyState.create(database, make_study(n_items=1, comments=True, survey=asked), "")
    someone = study_state.enter()
    study_state.begin(someone)
    task = study_state.visit(someone).task
    assert task is not None
    for call in (
        lambda: study_state.enter("prolific", text),
        lambda: study_state.enter("prolific", "somebody", {"SESSION_ID": text}),
        lambda: study_state.submit(someone, task.assignment, [], text),
        lambda: study_state.submit(someone, task.assignment, [RawAnswer(text, "quality", 0, 1)]),
        lambda: study_state.submit(someone, task.assignment, [RawAnswer("id", text, 0, 1)]),
        lambda: study_state.submit(someone, task.assignment, [RawAnswer("id", "quality", 0, text)]),
        lambda: study_state.answer_survey(someone, {"free": text}),
    ):
        with pytest.raises(Refusal) as caught:
            call()
        assert caught.value.status == 422
        str(caught.value).encode()  # the refusal itself can be sent


class Browser:
    """A rater's browser without scripts."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.client.get("/")
        self.csrf = ""

    def page(self) -> str:
        reply = self.client.get("/study")
        assert reply.status_code == 200, reply.text[:500]
        found = re.findall(r'name="csrf" value="([^"]+)"', reply.text)
        self.csrf = found[0] if found else self.csrf
        return reply.text

    def post(self, path: str, **fields: str) -> Any:
        return self.client.post(path, data={"csrf": self.csrf, **fields})

    def send(self, body: Any) -> Any:
        return self.client.post("/api/answers", json=body, headers={"x-csrf-token": self.csrf})


@pytest.fixture
def browse(sqlite: Database) -> Iterator[Callable[[Study], Browser]]:
    clients: list[TestClient] = []

    def open_browser(study: Study) -> Browser:
        StudyState.create(sqlite, study, "")
        app = create_app(Settings(database=sqlite.url, rate_limits=False))
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        client.__enter__()
        clients.append(client)
        return Browser(client)

    yield open_browser
    for client in clients:
        client.__exit__(None, None, None)


def plain(page: str) -> str:
    """What a page says, tags left out."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@texts
def test_through_the_pages(browse: Callable[[Study], Browser], text: str) -> None:
    """Every page of a hostile study: shown as text, never as markup."""
    study = hostile_study(text)
    browser = browse(study)
    pages = [browser.page()]
    assert browser.post("/study/consent").status_code == 200
    pages.append(browser.page())
    assert browser.post("/study/begin").status_code == 200
    for _ in range(8):
        page = browser.page()
        held = re.search(r'data-assignment="(\d+)"', page)
        if held is None:
            break
        pages.append(page)
        values: dict[str, Any] = {"likert": 3, "checkboxes": [box_of(study)], "pairwise": "0"}
        sent = [
            {"id": str(uuid.uuid4()), "criterion": q.criterion, "position": p, "value": values[q.scale.kind]}
            for q in study.questions
            for p in range(1 if q.scale.kind == "pairwise" else 2)
        ]
        reply = browser.send({"assignment": int(held[1]), "answers": sent, "comment": text[:5000]})
        assert reply.status_code == 200, reply.text[:500]
        assert reply.json()["saved"] == [a["id"] for a in sent]
    pages.append(browser.page())
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert not re.search(r"<[^>]* onmouseover='alert", page)
    assert squeeze(text)[:2000] in squeeze(plain(pages[0]))


@pytest.mark.parametrize("text", [*HOSTILE.values(), *BAD.values()], ids=[*HOSTILE, *BAD])
def test_as_values_comments_and_names_of_requests(
    browse: Callable[[Study], Browser], make_study: Callable[..., Study], text: str
) -> None:
    browser = browse(make_study(n_items=2, comments=True, survey=[{"name": "free", "text": "?"}]))
    browser.page()
    browser.post("/study/begin")
    held = re.search(r'data-assignment="(\d+)"', browser.page())
    assert held
    number = int(held[1])
    good = {"id": str(uuid.uuid4()), "criterion": "quality", "position": 0, "value": 3}
    for change in ({"id": text}, {"criterion": text}, {"value": text}, {"value": [text]}, {text: 1}):
        body = json.dumps({"assignment": number, "answers": [{**good, **change}]})
        reply = browser.client.post(
            "/api/answers",
            content=body,
            headers={"x-csrf-token": browser.csrf, "content-type": "application/json"},
        )
        assert reply.status_code in (400, 409, 413, 422), (change, reply.status_code)
        assert reply.json()["error"]
    body = json.dumps({"assignment": number, "answers": [good], "comment": text})
    reply = browser.client.post(
        "/api/answers",
        content=body,
        headers={"x-csrf-token": browser.csrf, "content-type": "application/json"},
    )
    assert reply.status_code in (200, 413, 422)
    if text not in BAD.values():
        for path in ("/study/survey", "/study/consent", "/study/answers"):
            assert browser.post(path, **{"survey:free": text, "comment": text}).status_code < 500
        shown = browser.client.get("/", params={"PROLIFIC_PID": text[:2000]}, follow_redirects=False)
        assert shown.status_code in (303, 422)
    for header in ("cookie", "x-csrf-token", "origin", "host", "content-type"):
        value = text[:500].encode("utf-8", "surrogatepass")
        if re.search(rb"[\0\r\n]", value):
            continue  # a server would not take it for a header
        reply = browser.client.post("/api/answers", json={}, headers={header: value})  # type: ignore[dict-item]
        assert 400 <= reply.status_code < 500, (header, reply.status_code)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_no_body_makes_the_server_stumble(
    browse: Callable[[Study], Browser], make_study: Callable[..., Study]
) -> None:
    browser = browse(make_study(n_items=2))
    browser.page()
    browser.post("/study/begin")
    browser.page()
    one = st.fixed_dictionaries(
        {},
        optional={
            "id": JUNK | st.uuids().map(str),
            "criterion": JUNK | st.just("quality"),
            "position": JUNK | st.integers(-1, 3),
            "value": JUNK | st.integers(0, 7),
            "seconds": JUNK,
            "given_at": JUNK,
        },
    )
    bodies = st.fixed_dictionaries(
        {}, optional={"assignment": JUNK | st.just(1), "answers": JUNK | st.lists(one, max_size=3)}
    )

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(body=bodies | JUNK)
    def check(body: Any) -> None:
        reply = browser.client.post(
            "/api/answers",
            content=json.dumps(body).encode("utf-8", "surrogatepass"),
            headers={"x-csrf-token": browser.csrf, "content-type": "application/json"},
        )
        assert reply.status_code < 500, (body, reply.text)
        if reply.status_code != 200:
            assert reply.json()["error"]

    check()
    for raw in (b"", b"{", b"\xff\xfe", b"[" * 20_000, b"1" * 5000, b'{"assignment": 1e999}', b"\0"):
        reply = browser.client.post(
            "/api/answers",
            content=raw,
            headers={"x-csrf-token": browser.csrf, "content-type": "application/json"},
        )
        assert 400 <= reply.status_code < 500, raw[:20]


def test_schemathesis_finds_no_server_error(
    browse: Callable[[Study], Browser], make_study: Callable[..., Study]
) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    browser = browse(make_study(n_items=20, raters_per_item=50))
    browser.page()
    browser.post("/study/begin")
    browser.page()
    app: Any = browser.client.app
    schema = schemathesis.openapi.from_dict(app.openapi())
    schema.app = app
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {o.path for o in operations} >= {"/api/answers", "/health"}
    cookies = dict(browser.client.cookies)
    for operation in operations:

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            for headers in ({}, {"x-csrf-token": browser.csrf}):
                reply = case.call(base_url="http://localhost", headers=headers, cookies=cookies)
                assert reply.status_code < 500, (case.path, reply.text)

        check()
