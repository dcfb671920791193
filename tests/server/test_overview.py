"""Several studies behind one address, each under its own path, and the page over all of them."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sham
import uvicorn
from fastapi.testclient import TestClient
from visits import accessible, no_sideways_scroll

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.oversight import arm_token
from palaver.server.overview import Studies, app_of, path_of
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.studies.design import preset_text

TOKEN = "a token that is long enough"


def put(folder: Path, preset: str, name: str) -> Settings:
    """A study file with this name, and how it is served beside others."""
    text = re.sub(r"^name = .*$", f'name = "{name}"', preset_text(preset), count=1, flags=re.MULTILINE)
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return Settings(study_file=file, study_path=f"/{name}", database=f"sqlite:///{folder / name}.db")


@pytest.fixture
def studies(tmp_path: Path) -> list[Settings]:
    return [put(tmp_path, "likert", "first"), put(tmp_path, "complete", "second")]


def app_with(studies: list[Settings], **changes: Any) -> Studies:
    app = app_of([settings.model_copy(update=changes) for settings in studies])
    assert isinstance(app, Studies)
    for study in app.apps.values():
        arm_token(study.state.site.study_state.database, TOKEN)
    return app


def visitor(app: Studies, base: str = "http://localhost") -> TestClient:
    return TestClient(app, base_url=base, follow_redirects=False)


def test_each_study_under_its_own_path(studies: list[Settings]) -> None:
    app = app_with(studies)
    client = visitor(app)
    for name in ("first", "second"):
        came = client.get(f"/{name}/")
        assert came.headers["location"] == f"/{name}/study"
        assert f"Path=/{name};" in came.headers["set-cookie"]
        page = client.get(f"/{name}/study").text
        assert f'action="/{name}/study/' in page
        assert client.get(re.findall(r'href="(/[^"]+\.css[^"]*)"', page)[0]).status_code == 200
    assert client.get("/first", headers={"cookie": ""}).status_code == 303  # without the last slash
    assert client.get("/health").json()["status"] == "ok"
    lost = client.get("/third/study")
    assert (lost.status_code, "use the whole link" in lost.text) == (404, True)
    assert "first" not in lost.text  # raters do not learn of other studies
    assert client.get("/").status_code == 404
    assert client.get("/first/", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("stripped", [False, True])
def test_behind_a_proxy(studies: list[Settings], stripped: bool) -> None:
    """The path of the public address comes first, whether the proxy takes it off or not."""
    client = visitor(app_with(studies, public_url="https://lab.example.org/all"), "https://lab.example.org")
    prefix = "" if stripped else "/all"
    came = client.get(f"{prefix}/first/")
    assert came.headers["location"] == "/all/first/study"
    assert "Path=/all/first;" in came.headers["set-cookie"]
    signed = client.post(f"{prefix}/admin/login", data={"token": TOKEN})
    assert signed.headers["location"] == "/all/admin"
    assert {value.count("Path=/all;") for value in signed.headers.get_list("set-cookie")} == {1}


def test_one_sign_in_for_all(studies: list[Settings]) -> None:
    app = app_with(studies)
    client = visitor(app)
    assert client.get("/admin").status_code == 401
    assert client.get("/admin/api/status").status_code == 401
    assert client.post("/admin/login", data={"token": "wrong"}).status_code == 403
    assert client.get("/admin/login", params={"token": TOKEN}).status_code == 200
    assert len(client.post("/admin/login", data={"token": TOKEN}).headers.get_list("set-cookie")) == 2
    page = client.get("/admin").text
    assert 'href="/first/admin"' in page
    assert 'href="http://localhost/second/"' in page
    assert client.get("/first/admin").status_code == client.get("/second/admin").status_code == 200
    data = client.get("/admin/api/status", params={"page": True}).json()
    assert [study["path"] for study in data["studies"]] == ["/first", "/second"]
    assert data["studies"][0]["status"]["target"] == 27
    assert "restaurant" in data["page"]["studies"]
    assert visitor(app).post("/admin/login", data={"token": TOKEN}).status_code == 403  # used up
    csrf = re.findall(r'name="csrf" value="(\w+)"', page)[0]
    assert client.post("/admin/logout", data={"csrf": "no"}).status_code == 403
    assert client.post("/admin/logout", data={"csrf": csrf}).status_code == 303
    assert client.get("/first/admin").status_code == client.get("/admin").status_code == 401


def test_only_studies_somebody_is_signed_in_to(studies: list[Settings]) -> None:
    client = visitor(app_with(studies))
    assert client.post("/second/admin/login", data={"token": TOKEN}).headers["location"] == "/second/admin"
    page = client.get("/admin").text
    assert ("/second/admin" in page, "/first" in page, "1 more study" in page) == (True, False, True)


def test_all_must_be_savable(studies: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_with(studies)
    database: Database = app.apps["/second"].state.site.study_state.database
    with database.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE study RENAME TO gone")
    assert visitor(app).get("/health").status_code == 503
    assert visitor(app).get("/first/health").status_code == 200


def test_studies_that_cannot_be_told_apart(tmp_path: Path) -> None:
    first, other = put(tmp_path, "likert", "first"), put(tmp_path, "pairwise", "First")
    with pytest.raises(UserError, match=r"first\.toml and .*First\.toml would both be /First/"):
        app_of([first, other])
    with pytest.raises(UserError, match="/study/ is taken by Palaver's own pages"):
        app_of([first, put(tmp_path, "likert", "study")])
    with pytest.raises(UserError, match="/all/ is taken"):
        public = {"public_url": "https://lab.example.org/all"}
        app_of([put(tmp_path, "likert", "all").model_copy(update=public), first])


def test_names_become_paths(make_study: Callable[..., Study]) -> None:
    file = Path("pilot 2.toml")
    assert path_of(make_study(name="Which bot? (v2)"), file) == "/Which-bot-v2"
    assert path_of(make_study(name="哪个更好"), file) == "/pilot-2"
    assert path_of(make_study(name="哪个更好"), Path("哪.toml")) == "/study-1"


@contextmanager
def running(app: Studies, port: int) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def test_the_page_in_a_browser(studies: list[Settings], unused_port: int, browser: Any) -> None:
    app = app_with(studies)
    study_state: StudyState = app.apps["/first"].state.site.study_state
    for seed in range(2):
        sham.work(study_state, sham.come_in(study_state), random.Random(seed))
    with running(app, unused_port) as url:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{url}/admin/login?token={TOKEN}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Up to date").wait_for()
        first = page.locator("article", has_text="restaurant")
        first.locator(".interval").first.wait_for()  # the agreement is computed beside
        assert "2 raters" in first.inner_text()
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            no_sideways_scroll(page)
            accessible(page)
        page.get_by_role("link", name="How good are these replies?").click()
        page.get_by_role("heading", name="How good are these replies?").wait_for()
        assert page.url == f"{url}/second/admin"
        page.close()
