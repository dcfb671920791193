"""The admin's side of the web: signing in once, deciding, downloading; and the page in a real browser."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import threading
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
import sham
from fastapi.testclient import TestClient
from visits import show_in_time, violations

from palaver import __version__
from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.app import create_app
from palaver.server.database import Database
from palaver.server.oversight import arm_token, rater_table
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.studies.design import study_toml

MakeStudy = Callable[..., Study]
SOURCE = "# as it was written\nname = 'small'\n"
PATHS = (
    "/admin/api/status",
    "/admin/export/csv",
    "/admin/export/jsonl",
    "/admin/export/parquet",
    "/admin/raters.jsonl",
    "/admin/study-file",
    "/admin/record.json",
    "/admin/openapi.json",
    "/admin/report.html",
)


class Site:
    """An app with a study in it, and browsers to visit it."""

    def __init__(self, study_state: StudyState, **settings: Any) -> None:
        self.study_state = study_state
        self.database = study_state.database
        self.app = create_app(Settings(database=study_state.database.url, **settings))
        settings = self.app.state.site.settings
        self.base, self.root = settings.origin or "http://localhost", settings.root_path

    def visitor(self) -> TestClient:
        return TestClient(self.app, base_url=self.base, follow_redirects=False)

    def admin(self) -> TestClient:
        client = self.visitor()
        reply = client.post(f"{self.root}/admin/login", data={"token": arm_token(self.database)})
        assert (reply.status_code, reply.headers["location"]) == (303, f"{self.root}/admin")
        return client


@pytest.fixture
def study_state(sqlite: Database, make_study: MakeStudy) -> StudyState:
    return StudyState.create(sqlite, make_study(n_items=4, comments=True), SOURCE)


@pytest.fixture
def site(study_state: StudyState) -> Site:
    return Site(study_state)


@pytest.fixture
def answered(study_state: StudyState) -> list[str]:
    """The answers of two raters, by their ids."""
    rng = random.Random(4)
    return [i for _ in range(2) for i in sham.work(study_state, sham.come_in(study_state), rng)]


def csrf_in(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


# --- signing in ---------------------------------------------------------------------------------------------


def test_the_link_signs_in_once(site: Site) -> None:
    token = arm_token(site.database)
    first, second = site.visitor(), site.visitor()
    for _ in range(3):  # a program that looks at links
        shown = second.get("/admin/login", params={"token": token})
        assert shown.status_code == 200
        assert f'name="token" value="{token}"' in shown.text
        assert "set-cookie" not in shown.headers
    reply = first.post("/admin/login", data={"token": token})
    assert reply.status_code == 303
    said = reply.headers["set-cookie"]
    assert "HttpOnly" in said
    assert "SameSite=Lax" in said
    assert "Path=/admin" in said
    assert token not in said
    assert first.get("/admin").status_code == 200
    again = second.post("/admin/login", data={"token": token})
    assert again.status_code == 403
    assert "used already" in again.text
    assert "set-cookie" not in again.headers


def test_the_token_can_be_typed(site: Site) -> None:
    token = arm_token(site.database)
    client = site.visitor()
    assert client.get("/admin").status_code == 401
    foreign = client.post("/admin/login", data={"token": token}, headers={"origin": "https://evil.example"})
    assert foreign.status_code == 403
    reply = client.post("/admin/login", data={"token": f" {token} "}, headers={"origin": site.base})
    assert reply.status_code == 303
    assert client.get("/admin").status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_strangers_see_nothing(site: Site, answered: list[str], path: str) -> None:
    rater = site.visitor()
    rater.get("/")
    for client in (site.visitor(), rater):
        reply = client.get(path)
        assert reply.status_code == 401
        assert "item-0" not in reply.text


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c[:-1] + ("1" if c.endswith("0") else "0"),
        lambda c: "9" + c,
        lambda c: c[: len(c) // 2],
        lambda c: "",
    ],
)
def test_forged_cookies(site: Site, spoil: Callable[[str], str]) -> None:
    cookie = next(iter(site.admin().cookies.jar))
    client = site.visitor()
    client.cookies.set(cookie.name, spoil(cookie.value or ""))
    assert client.get("/admin/api/status").status_code == 401


def test_a_raters_cookie_is_no_admins(site: Site) -> None:
    client = site.visitor()
    client.get("/")
    (rater,), (admin,) = client.cookies.jar, site.admin().cookies
    client.cookies.set(admin, rater.value or "")
    assert client.get("/admin/api/status").status_code == 401


def test_sessions_end(
    sqlite: Database, study_state: StudyState, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = site.admin()
    now = site.app.state.site.study_state.clock()
    monkeypatch.setattr(site.app.state.site.study_state, "clock", lambda: now + 7 * 24 * 3600 + 1)
    assert client.get("/admin/api/status").status_code == 401


def test_signing_out_ends_the_session_on_the_server(site: Site) -> None:
    client = site.admin()
    csrf = csrf_in(client.get("/admin").text)
    stolen = site.visitor()
    stolen.cookies.update(client.cookies)
    assert stolen.get("/admin").status_code == 200
    assert client.post("/admin/logout", data={"csrf": "wrong"}).status_code == 403
    assert client.post("/admin/logout", data={"csrf": csrf}).status_code == 303
    assert client.get("/admin").status_code == 401
    assert stolen.get("/admin").status_code == 401


def test_sessions_are_listed_and_can_be_ended(site: Site) -> None:
    here, there = site.admin(), site.visitor()
    there.headers["user-agent"] = "Elsewhere/1.0"
    there.post("/admin/login", data={"token": arm_token(site.database)})
    page = here.get("/admin").text
    assert "Elsewhere/1.0" in page
    (end,) = re.findall(r'action="(/admin/sessions/[^"]+)"', page)
    assert here.post(end, data={"csrf": "wrong"}).status_code == 403
    assert here.post(end, data={"csrf": csrf_in(page)}).status_code == 303
    assert there.get("/admin").status_code == 401
    assert here.get("/admin").status_code == 200


def test_guessing_is_limited_and_locks_nobody_out(site: Site, study_state: StudyState) -> None:
    client = site.visitor()

    def guess(n: int) -> int:
        made_up = {"x-forwarded-for": f"10.0.0.{n}"}
        return client.post("/admin/login", data={"token": f"guess {n}"}, headers=made_up).status_code

    codes = [guess(n) for n in range(32)]
    assert codes == [403] * 30 + [429] * 2
    assert site.admin().get("/admin").status_code == 200, "the owner has the token"
    unlimited = Site(study_state, rate_limits=False).visitor()
    assert {unlimited.post("/admin/login", data={"token": "x"}).status_code for _ in range(32)} == {403}


def test_a_token_of_ones_own(study_state: StudyState) -> None:
    client = Site(study_state, admin_token="my own long token").visitor()
    assert client.post("/admin/login", data={"token": "my own long token"}).status_code == 303
    for short in ("", "my own", " fifteen letters "):
        with pytest.raises(UserError, match="can be guessed"):
            arm_token(study_state.database, short)


def test_behind_tls_and_a_proxy(study_state: StudyState, answered: list[str]) -> None:
    site = Site(study_state, public_url="https://lab.example.org/study-1")
    client = site.visitor()
    reply = client.post("/study-1/admin/login", data={"token": arm_token(site.database)})
    assert reply.headers["location"] == "/study-1/admin"
    assert "Secure" in reply.headers["set-cookie"]
    assert "Path=/study-1/admin" in reply.headers["set-cookie"]
    page = client.get("/study-1/admin").text
    links = set(re.findall(r'(?:href|src|action|data-url)="(/[^"]*)"', page))
    assert links
    assert all(link.startswith("/study-1/") for link in links)
    for link in links:
        if "/raters/" not in link and "logout" not in link:
            assert client.get(link).status_code in (200, 303), link  # the preview leads to its first page


# --- deciding -----------------------------------------------------------------------------------------------


def test_decisions(site: Site, study_state: StudyState, answered: list[str]) -> None:
    client = site.admin()
    csrf = csrf_in(client.get("/admin").text)
    me = rater_table(site.database)[0].id

    def marks() -> tuple[bool, bool]:
        row = next(r for r in rater_table(site.database) if r.id == me)
        return row.blocked, row.excluded

    for action, after in (
        ("exclude", (False, True)),
        ("block", (True, True)),
        ("include", (True, False)),
        ("unblock", (False, False)),
    ):
        reply = client.post(
            f"/admin/raters/{me}/{action}", data={"csrf": csrf}, headers={"origin": site.base}
        )
        assert (reply.status_code, reply.headers["location"]) == (303, "/admin#raters")
        assert marks() == after
    assert len(client.get("/admin/export/jsonl").text.splitlines()) == len(answered)


def test_a_withdrawn_rater_cannot_be_included(site: Site, study_state: StudyState) -> None:
    me = sham.come_in(study_state)
    sham.work(study_state, me, random.Random(1), screens=1)
    study_state.withdraw(me)
    client = site.admin()
    page = client.get("/admin").text
    assert f"/admin/raters/{me}/include" not in page
    assert "left before the end" in page
    refused = client.post(f"/admin/raters/{me}/include", data={"csrf": csrf_in(page)})
    assert refused.status_code == 409
    assert "has left the study" in refused.text


def test_decisions_need_the_form(site: Site, answered: list[str]) -> None:
    client, me = site.admin(), rater_table(site.database)[0].id
    csrf = csrf_in(client.get("/admin").text)
    other = csrf_in(site.admin().get("/admin").text)
    address = f"/admin/raters/{me}/exclude"
    assert client.post(address).status_code == 403
    assert client.post(address, data={"csrf": other}).status_code == 403
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "http://localhost:81"):
        assert client.post(address, data={"csrf": csrf}, headers={"origin": origin}).status_code == 403
    assert site.visitor().post(address, data={"csrf": csrf}).status_code == 401
    assert client.get(address).status_code == 405
    assert client.post(f"/admin/raters/{me}/delete", data={"csrf": csrf}).status_code == 422
    assert client.post("/admin/raters/nobody/block", data={"csrf": csrf}).status_code == 404
    assert not any(r.excluded or r.blocked for r in rater_table(site.database))


def test_letting_somebody_go_on_elsewhere(site: Site) -> None:
    for browser in (site.visitor(), other := site.visitor()):
        entry = browser.get("/?PROLIFIC_PID=p1")
    code = re.search(r"<code>(\w+)</code>", entry.text)
    assert code is not None
    client = site.admin()
    page = client.get("/admin").text
    assert code[1] in page
    (allow,) = re.findall(r'action="(/admin/requests/[^"]+)"', page)
    assert other.post(allow, data={"csrf": csrf_in(page)}).status_code == 401
    assert client.post(allow, data={"csrf": "wrong"}).status_code == 403
    assert other.get("/?PROLIFIC_PID=p1").status_code == 403
    assert client.post(allow, data={"csrf": csrf_in(page)}).status_code == 303
    assert "/admin/requests/" not in client.get("/admin").text
    assert other.get("/?PROLIFIC_PID=p1").status_code == 303
    assert other.get("/study").status_code == 200
    assert client.post("/admin/requests/99/allow", data={"csrf": csrf_in(page)}).status_code == 404


# --- what is seen and taken away ----------------------------------------------------------------------------


def test_status_as_data(site: Site, study_state: StudyState, answered: list[str]) -> None:
    client = site.admin()
    data = client.get("/admin/api/status").json()
    assert data["status"]["done"] == data["status"]["target"] == 8
    assert data["status"]["answers"] == len(answered)
    assert {r["state"] for r in data["raters"]} <= {"done", "working"}
    assert "page" not in data
    if data["statistics"] is None:
        for thread in threading.enumerate():
            if thread.name == "live statistics":
                thread.join(60)
    data = client.get("/admin/api/status?page=true").json()
    assert [c["criterion"] for c in data["statistics"]["criteria"]] == ["quality"]
    assert set(data["page"]) == {"progress", "results", "raters"}


def test_downloads(site: Site, answered: list[str]) -> None:
    client = site.admin()
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}
    for kind, reader in read.items():
        reply = client.get(f"/admin/export/{kind}")
        assert reply.headers["content-disposition"] == f'attachment; filename="small.{kind}"'
        assert reader(io.BytesIO(reply.content)).height == len(answered)
    assert len(client.get("/admin/raters.jsonl").text.splitlines()) == 2
    assert client.get("/admin/study-file").text == SOURCE
    record = client.get("/admin/record.json").json()
    assert record["sha256_of_file"] == hashlib.sha256(SOURCE.encode()).hexdigest()
    assert record["sha256_of_study"] == site.study_state.hash
    assert (record["seed"], record["palaver"]) == (site.study_state.study.seed, __version__)
    assert Study.model_validate_json(json.dumps(record["design"])) == site.study_state.study
    report = client.get("/admin/report.html")
    assert report.headers["content-disposition"].startswith("attachment")
    assert "<!doctype html>" in report.text.lower()


@pytest.mark.parametrize("path", [p for p in PATHS if "export" in p or "report" in p or "raters" in p])
def test_nothing_to_export_is_an_error_that_says_so(site: Site, path: str) -> None:
    reply = site.admin().get(path)
    assert reply.status_code == 409
    assert "there is nothing to export" in reply.text
    assert "content-disposition" not in reply.headers


def test_paths_are_not_taken_from_requests(site: Site, answered: list[str]) -> None:
    client = site.admin()
    for path in ("/admin/export/..%2f..%2fetc%2fpasswd", "/admin/export/toml", "/admin/study-file/../x"):
        assert client.get(path).status_code in (404, 422)


def test_a_hostile_name_stays_text(sqlite: Database, make_study: MakeStudy) -> None:
    evil = '"><script>alert(1)</script>'
    study = make_study(n_items=3, title=evil, criteria=(f"q{evil}",), name=f"n{evil}")
    study_state = StudyState.create(sqlite, study, "")
    sham.work(study_state, sham.come_in(study_state, platform="prolific", external=evil), random.Random(1))
    client = Site(study_state).admin()
    page = client.get("/admin")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;" in page.text
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page.text)
    assert client.get("/admin/export/csv").headers["content-disposition"] == (
        'attachment; filename="n---script-alert-1---script.csv"'
    )


# --- the page in a browser ----------------------------------------------------------------------------------


def test_the_page_updates_by_itself(
    browser: Any, serve: Callable[..., Any], make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.live.PAUSE", 0.0)
    server = serve(study_toml(make_study(n_items=6)))
    study_state = StudyState(server.database)
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.clock.install()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    try:
        page.goto(f"{server.url}/admin/login?token={arm_token(server.database)}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Nobody has come in yet").wait_for()
        page.get_by_text("Up to date").wait_for()
        rng = random.Random(1)
        first = sham.come_in(study_state)
        for me in (first, sham.come_in(study_state), sham.come_in(study_state)):
            sham.work(study_state, me, rng)
        show_in_time(page, page.get_by_text("12 of 12 screens done"))
        show_in_time(page, page.locator("#results .value").first)
        page.get_by_role("button", name=f"Exclude {first[:8]}").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name=f"Include {first[:8]}").wait_for()
        page.get_by_text("6 of 12 screens done").wait_for()
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"Include {first[:8]}"
        for width in (1200, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert violations(page) == []
        server.stop()
        show_in_time(page, page.get_by_text("No connection"))
        server.start()
        show_in_time(page, page.get_by_text("Up to date"))
        assert [p for p in problems if "ERR_CONNECTION" not in p and "Failed to fetch" not in p] == []
    finally:
        page.close()
