"""Named admins: every route of the admin says what it needs, and each role gets that and no more."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sham
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import select

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.admin import Need
from palaver.server.admin_accounts import RIGHTS, ROLES, Role, add_admin, list_admins, new_link, remove_admin
from palaver.server.app import create_app
from palaver.server.database import Database
from palaver.server.export import pseudonym
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import event

FOR_ANYBODY = {("GET", "/admin"), ("GET", "/admin/login"), ("POST", "/admin/login")}
"""They ask who comes."""
PERSON = "5f3c-of-prolific"


@pytest.fixture
def study_state(sqlite: Database, make_study: Callable[..., Study]) -> StudyState:
    survey = [{"name": "age", "text": "How old are you?"}]
    study_state = StudyState.create(sqlite, make_study(n_items=2, comments=True, survey=survey), "")
    rater = study_state.enter("prolific", PERSON, {"PROLIFIC_PID": PERSON})
    study_state.begin(rater)
    sham.work(study_state, rater, random.Random(3))
    return study_state


def signed_in(study_state: StudyState, role: Role) -> TestClient:
    app = create_app(Settings(database=study_state.database.url))
    client = TestClient(
        app, base_url="http://localhost", follow_redirects=False, raise_server_exceptions=False
    )  # downloads of a collection begin, and a study has none
    token = add_admin(study_state.database, f"the {role}", role, 0.0)
    assert client.post("/admin/login", data={"token": token}).status_code == 303
    return client


def routes(client: TestClient) -> Iterator[tuple[str, str, list[Any]]]:
    """Method, path and declared needs of every route under /admin."""
    app: Any = client.app
    included = [getattr(route, "original_router", None) for route in app.routes]
    for route in [*app.routes, *(route for router in included if router for route in router.routes)]:
        if isinstance(route, APIRoute) and route.path.startswith("/admin"):
            needs = [part.call for part in route.dependant.dependencies if isinstance(part.call, Need)]
            for method in sorted(route.methods):
                yield method, route.path, needs


def test_every_route_says_what_it_needs(study_state: StudyState) -> None:
    declared = list(routes(signed_in(study_state, "owner")))
    assert len(declared) > 20
    for method, path, needs in declared:
        assert len(needs) == (0 if (method, path) in FOR_ANYBODY else 1), path


@pytest.mark.parametrize("role", ROLES)
def test_each_role_gets_what_its_rights_give(study_state: StudyState, role: Role) -> None:
    client = signed_in(study_state, role)
    n_refused = 0
    for method, path, needs in list(routes(client)):
        if not needs:
            continue
        filled = path.replace("{kind}", "csv").replace("{action}", "block").replace("{request_id}", "1")
        reply = client.request(method, re.sub(r"\{\w+(:path)?\}", "nobody", filled))
        is_refused = reply.status_code == 403 and "grown old" not in reply.text  # the form's token
        assert is_refused == (needs[0].right not in RIGHTS[role]), (path, reply.status_code)
        n_refused += is_refused
    with study_state.database.reading() as connection:
        details = connection.execute(select(event.c.detail).where(event.c.kind == "refused")).scalars().all()
    assert len(details) == n_refused
    assert all(detail.startswith(f"the {role} ({role}) asked for /admin/") for detail in details)


@pytest.mark.parametrize("role", ["helper", "viewer"])
def test_no_personal_data(study_state: StudyState, role: Role) -> None:
    """On no page, in no download."""
    client = signed_in(study_state, role)
    with study_state.database.reading() as connection:
        rater = connection.exec_driver_sql("SELECT id FROM rater").scalar_one()
    study_state.answer_survey(rater, {"age": "ninety-nine"})
    for path in ("", "/api/status?page=true", "/export/csv", f"/raters/{rater}", "/diary", "/items"):
        reply = client.get(f"/admin{path}")
        assert reply.status_code == 200, path
        assert PERSON not in reply.text
        assert "ninety-nine" not in reply.text
    assert pseudonym(rater) in client.get("/admin").text
    assert rater not in client.get("/admin/export/csv").text
    refused = client.get("/admin/raters.jsonl")
    assert (refused.status_code, f"personal data, which a {role} may not see" in refused.text) == (403, True)
    if role == "helper":  # by the code that somebody wrote in a message, and not by the platform's id
        with study_state.database.reading() as connection:
            code = connection.exec_driver_sql("SELECT code FROM rater").scalar_one()
        assert client.get("/admin/find", params={"text": code.lower()}).headers["location"].endswith(rater)
        assert "Nobody has this code" in client.get("/admin/find", params={"text": PERSON}).text


def test_links_work_once_and_end_with_the_person(study_state: StudyState) -> None:
    database = study_state.database
    client = signed_in(study_state, "viewer")
    assert client.get("/admin").status_code == 200
    first, second = new_link(database, "the viewer"), new_link(database, "the viewer")
    assert client.post("/admin/login", data={"token": first}).status_code == 403
    assert client.post("/admin/login", data={"token": second}).status_code == 303
    assert client.post("/admin/login", data={"token": second}).status_code == 403
    with pytest.raises(UserError, match="already"):
        add_admin(database, "the viewer", "owner", 0.0)
    with pytest.raises(UserError, match="did you mean 'the viewer'"):
        new_link(database, "the viewr")
    remove_admin(database, "the viewer", 0.0)
    assert client.get("/admin").status_code == 401
    assert list_admins(database) == []


def test_the_diary_says_who(study_state: StudyState) -> None:
    client = signed_in(study_state, "helper")
    page = client.get("/admin").text
    csrf = re.findall(r'name="csrf" value="(\w+)"', page)[0]
    rater = json.loads(client.get("/admin/api/status").text)["raters"][0]["id"]
    assert client.post(f"/admin/raters/{rater}/exclude", data={"csrf": csrf}).status_code == 303
    assert "by the helper (helper)" in client.get("/admin/diary").text
