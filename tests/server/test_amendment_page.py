"""Amending on the admin's page: the same rules as `palaver study amend`, shown first, then confirmed."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from visits import violations

from palaver.server.app import create_app
from palaver.server.database import Database
from palaver.server.oversight import arm_token
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.studies.design import load_study, parse_study, preset_text

TEXT = preset_text("likert")
MORE = TEXT.replace("raters_per_item = 3", "raters_per_item = 5")
OTHER_SCALE = MORE.replace("high = 6", "high = 7")
BUTTON = "Amend the study</button>"


class Admin:
    """Somebody who is signed in, at the page where a study is amended."""

    def __init__(self, database: Database, **settings: Any) -> None:
        self.database = database
        self.app = create_app(Settings(database=database.url, **settings))
        self.client = TestClient(self.app, base_url="http://localhost", follow_redirects=False)
        self.client.post("/admin/login", data={"token": arm_token(database)})

    def page(self) -> str:
        reply = self.client.get("/admin/amend")
        assert reply.status_code == 200
        return reply.text

    def send(self, text: str = "", file: bytes | None = None, confirmed: str = "", **fields: str) -> Any:
        data = {"csrf": field(self.page(), "csrf"), "text": text, "confirmed": confirmed, **fields}
        chosen = ("", b"") if file is None else ("study.toml", file)
        return self.client.post("/admin/amend", data=data, files={"file": chosen})

    def version(self) -> tuple[int, str]:
        state = StudyState(self.database)
        return state.version, state.source


def field(page: str, name: str) -> str:
    value = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert value is not None, page
    return value[1]


def draft(page: str) -> str:
    """What the browser has in the field: without the first line break of the page."""
    text = re.search(r"<textarea[^>]*>\n(.*)</textarea>", page, re.DOTALL)
    assert text is not None
    return unescape(text[1])


@pytest.fixture
def admin(sqlite: Database) -> Admin:
    StudyState.create(sqlite, parse_study(TEXT, "study"), TEXT)
    return Admin(sqlite)


def test_a_change_is_shown_and_then_made(admin: Admin) -> None:
    assert draft(admin.page()) == TEXT
    assert "Version 1 is being served" in admin.page()
    shown = admin.send(MORE)
    assert shown.status_code == 200
    assert "raters_per_item: 3 becomes 5" in shown.text
    assert draft(shown.text) == MORE
    assert admin.version() == (1, TEXT)
    made = admin.send(MORE, confirmed=field(shown.text, "confirmed"))
    assert (made.status_code, made.headers["location"]) == (303, "/admin/amend")
    assert admin.version() == (2, MORE)
    assert "Version 2 is being served" in admin.page()
    assert "Nothing: this is the study" in admin.send(MORE).text
    assert admin.client.get("/admin/study-file").text == MORE
    assert "Version 2." in admin.client.get("/admin").text


def test_a_file_comes_through_to_the_letter(admin: Admin) -> None:
    """Browsers drop the first line break of a field and send all others as two characters."""
    text = "\n\n" + MORE.replace('title = "', 'title = "\u200f\u202bא\u202c & <b> ', 1)
    shown = admin.send("this is left alone", file=b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert "title is changed" in shown.text
    assert "<b>" not in shown.text
    sent_back = draft(shown.text).replace("\n", "\r\n")
    assert admin.send(sent_back, confirmed=field(shown.text, "confirmed")).status_code == 303
    assert admin.version() == (2, text)


def test_what_makes_answers_incomparable_is_refused_with_the_reason(admin: Admin) -> None:
    shown = admin.send(OTHER_SCALE)
    assert shown.status_code == 422
    assert "another scale would make the answers incomparable" in shown.text
    assert "raters_per_item: 3 becomes 5" in shown.text
    assert BUTTON not in shown.text
    mark = admin.app.state.admin.mark_of_draft(1, OTHER_SCALE)
    forced = admin.send(OTHER_SCALE, confirmed=mark)
    assert forced.status_code == 422
    assert "another scale" in forced.text
    assert admin.version() == (1, TEXT)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is missing"),
        (b"name = ", "not valid TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a\0b", "NUL"),
        (TEXT.replace("layout =", "lay_out =").encode(), "did you mean &#39;layout&#39;"),
        (b'name = "x"\nitems_from = "/etc/passwd"', "line 2: items_from: a text alone cannot name a file"),
        (b'title = "' + b"x" * 985_000 + b'"', "too large for this page"),
    ],
    ids=["nothing", "no TOML", "no UTF-8", "NUL", "a mistake", "another file", "large"],
)
def test_a_file_that_is_no_study(content: bytes, says: str, admin: Admin) -> None:
    reply = admin.send(file=content)
    assert reply.status_code == 422
    assert says in reply.text
    assert "root:" not in reply.text
    assert BUTTON not in reply.text
    assert admin.version()[0] == 1


def test_items_of_a_file_stay_where_only_the_texts_change(sqlite: Database, tmp_path: Path) -> None:
    head, _, _ = TEXT.partition("[[items]]")
    study = parse_study(TEXT, "study")
    (tmp_path / "items.jsonl").write_text("".join(i.model_dump_json() + "\n" for i in study.items))
    text = 'items_from = "items.jsonl"\n' + head
    (tmp_path / "study.toml").write_text(text)
    StudyState.create(sqlite, load_study(tmp_path / "study.toml"), text)
    admin = Admin(sqlite)
    changed = text.replace("raters_per_item = 3", "raters_per_item = 5")
    shown = admin.send(changed)
    assert "raters_per_item: 3 becomes 5" in shown.text
    admin.send(changed, confirmed=field(shown.text, "confirmed"))
    assert admin.version() == (2, changed)
    assert StudyState(sqlite).study.items == study.items
    other = admin.send(changed.replace("items.jsonl", "others.jsonl"))
    assert "line 1: items_from: a text alone cannot name a file" in other.text


def test_a_request_that_is_too_large(admin: Admin) -> None:
    assert admin.send(file=b"x" * 1_000_001).status_code == 413


def test_only_what_was_shown_is_made(admin: Admin) -> None:
    mark = field(admin.send(MORE).text, "confirmed")
    edited = MORE.replace("raters_per_item = 5", "raters_per_item = 9")
    shown = admin.send(edited, confirmed=mark)
    assert "3 becomes 9" in shown.text
    assert admin.version()[0] == 1
    titled = TEXT.replace('title = "', 'title = "New: ', 1)
    StudyState(admin.database).amend(parse_study(titled, "study"), titled)  # somebody else, meanwhile
    shown = admin.send(MORE, confirmed=mark)
    assert (shown.status_code, BUTTON in shown.text) == (200, True)
    assert "title is changed" in shown.text, "it would take the other's change back"
    assert admin.version() == (2, titled)


def test_it_needs_the_form_and_the_session(admin: Admin) -> None:
    mark = field(admin.send(MORE).text, "confirmed")
    for wrong in ("", "0" * 64):
        assert admin.send(MORE, confirmed=mark, csrf=wrong).status_code == 403
    data = {"csrf": field(admin.page(), "csrf"), "text": MORE, "confirmed": mark}
    foreign = admin.client.post("/admin/amend", data=data, headers={"origin": "https://evil.example"})
    assert foreign.status_code == 403
    stranger = TestClient(admin.app, base_url="http://localhost")
    assert stranger.post("/admin/amend", data=data).status_code == 401
    assert stranger.get("/admin/amend").status_code == 401
    assert admin.version()[0] == 1


def test_the_server_starts_again_with_the_file_it_began_with(serve: Callable[..., Any]) -> None:
    """The file on the disk is the old version; what the page changed is what is served."""
    server = serve(TEXT)
    StudyState(server.database).amend(parse_study(MORE, "study"), MORE)
    server.stop()
    server.start()
    assert server.app.state.site.study_state.study.raters_per_item == 5


# --- in a browser -------------------------------------------------------------------------------------------


def test_amending_while_a_rater_is_in_mid_screen(
    serve: Callable[..., Any], browser: Any, tmp_path: Any
) -> None:
    server = serve(TEXT)
    rater, owner = browser.new_context(), browser.new_context(viewport={"width": 390, "height": 800})
    screen = rater.new_page()
    screen.goto(server.url)
    screen.locator(".go").click()
    shown = screen.locator(".judged").inner_text()
    screen.locator(".choice").nth(3).click()

    live, page = owner.new_page(), owner.new_page()
    problems: list[str] = []
    live.on("pageerror", lambda error: problems.append(str(error)))
    live.goto(f"{server.url}/admin/login?token={arm_token(server.database)}")
    live.get_by_role("button", name="Sign in").click()
    live.get_by_text("Up to date").wait_for()
    page.goto(f"{server.url}/admin")
    page.get_by_role("link", name="Amend the study").click()
    assert violations(page) == []
    amended = tmp_path / "amended.toml"
    amended.write_text(OTHER_SCALE, encoding="utf-8")
    page.get_by_label("A file").set_input_files(amended)
    page.get_by_role("button", name="See what would change").click()
    page.get_by_role("alert").get_by_text("another scale").first.wait_for()
    assert violations(page) == []
    page.get_by_label("or the text here").fill(MORE.replace('title = "', 'title = "Now: ', 1))
    page.get_by_role("button", name="See what would change").click()
    page.get_by_text("raters_per_item: 3 becomes 5").wait_for()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert violations(page) == []
    page.get_by_role("button", name="Amend the study").click()
    page.get_by_text("Version 2 is being served").wait_for()

    screen.locator("#go").click()
    screen.wait_for_function("old => document.querySelector('.judged')?.innerText !== old", arg=shown)
    assert screen.locator(".study").inner_text().startswith("Now: ")
    assert [row[2] for row in server.rows()] == ["4"]
    live.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it asks again at once
    live.get_by_text("of 45 screens done").wait_for()
    assert live.get_by_text("Up to date").is_visible()
    assert problems == []
    for context in (rater, owner):
        context.close()
