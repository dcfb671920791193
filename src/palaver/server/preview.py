"""The owner walks a study as a rater: the same pages, on a database that is thrown away.

A preview has a file of its own in a temporary folder, so that nothing of it can get into the study. Its pages
have a bar from which every part of the study is reached at once.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, FastAPI, Form
from fastapi.responses import Response
from sqlalchemy import Connection, delete, select, update
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from palaver.schema import Study
from palaver.server import leases
from palaver.server.catalogue import UNLIMITED
from palaver.server.database import Database, sqlite_url
from palaver.server.media import copy_files
from palaver.server.migrations import migrate
from palaver.server.records import Rater, change_rater, rater_of
from palaver.server.refusal import Refusal
from palaver.server.security import check_origin
from palaver.server.settings import Settings
from palaver.server.site import SessionHere, SiteHere
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, assignment, comment, screen

if TYPE_CHECKING:
    from palaver.server.admin import AdminSite

PATH = "/admin/preview"
STATES = {
    "consent": "consent",
    "instructions": "instructions",
    "training": "training",
    "rating": "working",
    "check": "working",
    "survey": "survey",
    "end": "done",
    "screened out": "screened",
}
"""The parts of a study, in their order -> the state of a rater who is there."""


def parts_of(study: Study) -> list[str]:
    """The parts that this study has."""
    lacking = {
        "consent": not study.consent,
        "training": not study.training,
        "check": not (study.checks.items or study.checks.degraded),
        "survey": not study.survey,
        "screened out": not (study.training or study.checks.items or study.checks.degraded),
    }
    return [part for part in STATES if not lacking.get(part)]


# --- the throw-away database --------------------------------------------------------------------------------


@contextmanager
def preview_folder() -> Iterator[Path]:
    """A folder for previews, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="palaver-preview-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def create_preview(folder: Path, study: Study, source: str, name: str, files: Path | Database) -> str:
    """The URL of a database with this study, in which screens never run out. Twice is once.

    `files`: where its images and sounds are, the folder of the study file or the database that serves it.
    """
    url = sqlite_url(folder / f"{name}.db")
    database = Database(url)
    try:
        migrate(database)
        if isinstance(files, Database):
            copy_files(files, database)
        StudyState.create(database, study, source, folder=files if isinstance(files, Path) else None)
        with database.writing() as connection:
            connection.execute(update(screen).values(target=UNLIMITED))
    finally:
        database.close()
    return url


class PreviewGate:
    """The preview inside a study's own server: for people who are signed in as admins."""

    def __init__(self, admin: AdminSite, create_app: Callable[[Settings], FastAPI]) -> None:
        self._admin, self._create_app = admin, create_app
        self._folder = admin.settings.preview_folder  # the same one for all processes
        self._lock = threading.Lock()
        self._hash = ""
        self._app: FastAPI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        app = await run_in_threadpool(self._open, Request(scope))
        path = scope["path"].removeprefix(PATH) or "/"
        await app({**scope, "path": path, "root_path": "", "state": {}}, receive, send)

    def _open(self, request: Request) -> FastAPI:
        """The app of the study as it is now."""
        if self._admin.session(request) is None:
            raise Refusal("please sign in with a new admin link first", 401)
        if self._admin.is_collection:
            raise Refusal("a collection has no preview", 404)
        edition = self._admin.study_state.newest()
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="palaver-preview-"))
            if self._app is None or self._hash != edition.hash:
                self._close_app()
                served = self._admin.study_state.database
                url = create_preview(self._folder, edition.study, edition.source, edition.hash, served)
                settings = self._admin.settings
                changes = {
                    "database": url,
                    "study_file": None,
                    "study_path": f"{settings.study_path}{PATH}",
                    "prolific_keys": None,
                    "is_preview": True,
                }
                self._app, self._hash = self._create_app(settings.model_copy(update=changes)), edition.hash
            return self._app

    def _close_app(self) -> None:
        if self._app is not None:
            site = self._app.state.site
            site.work.close()
            site.study_state.database.close()
            self._app = None

    def close(self) -> None:
        """Throw it away."""
        with self._lock:
            self._close_app()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)


# --- from one part to another -------------------------------------------------------------------------------


def go_to(study_state: StudyState, rater_id: str, part: str) -> None:
    """Put a rater of a preview where this part begins."""
    study = study_state.study
    if part not in parts_of(study):
        raise Refusal("this study has no such part", 404)
    now = study_state.clock()
    with study_state.database.writing() as connection:
        me = rater_of(connection, rater_id)
        _forget(connection, me, assignment.c.status.in_(("open", "expired")))
        if part == "training":
            trained = select(screen.c.id).where(screen.c.kind == "training")
            _forget(connection, me, assignment.c.screen_id.in_(trained))
            change_rater(connection, me.id, attempts=0)
        if part == "check":
            _hand_out_check(connection, me, now, study.lease_minutes * 60)
        change_rater(connection, me.id, state=STATES[part], checks_failed=0, excluded=False)


def skip_screen(study_state: StudyState, rater_id: str) -> None:
    """Leave the screen in hand as it is and go on with the next one."""
    with study_state.database.writing() as connection:
        me = rater_of(connection, rater_id)
        if me.state == "working":
            held = (assignment.c.rater_id == me.id) & assignment.c.status.in_(("open", "expired"))
            connection.execute(update(assignment).where(held).values(status="done"))


def _forget(connection: Connection, me: Rater, which: object) -> None:
    """Take back screens that this rater had."""
    chosen = select(assignment.c.id).where(assignment.c.rater_id == me.id, which)  # type: ignore[arg-type]
    ids = connection.execute(chosen).scalars().all()
    for table in (answer, comment):
        connection.execute(delete(table).where(table.c.assignment_id.in_(ids)))
    connection.execute(delete(assignment).where(assignment.c.id.in_(ids)))


def _hand_out_check(connection: Connection, me: Rater, now: float, lease: float) -> None:
    """The next check of the study; broken copies come after those with known answers."""
    seen = select(assignment.c.screen_id).where(assignment.c.rater_id == me.id)
    checks = select(screen.c.id, screen.c.kind).where(screen.c.kind.in_(("check", "degraded")))
    order = (screen.c.kind, screen.c.id)
    row = connection.execute(checks.where(screen.c.id.not_in(seen)).order_by(*order)).first()
    if row is None:  # all were seen: begin again
        every = select(screen.c.id).where(screen.c.kind.in_(("check", "degraded")))
        _forget(connection, me, assignment.c.screen_id.in_(every))
        row = connection.execute(checks.order_by(*order)).first()
    if row is None:
        raise Refusal("no item of this study can be broken into a check", 404)
    leases.give(connection, me.id, row.id, row.kind, now, lease)


router = APIRouter(prefix="/preview", include_in_schema=False)


@router.post("/go")
async def go(
    request: Request, site: SiteHere, session: SessionHere, part: Annotated[str, Form(max_length=20)] = ""
) -> Response:
    check_origin(request, site.settings)
    await site.work(go_to, site.study_state, session.rater, part)
    return site.redirect("/study")


@router.post("/skip")
async def skip(request: Request, site: SiteHere, session: SessionHere) -> Response:
    check_origin(request, site.settings)
    await site.work(skip_screen, site.study_state, session.rater)
    return site.redirect("/study")


@router.post("/anew")
async def begin_anew(request: Request, site: SiteHere) -> Response:
    """As a new rater."""
    check_origin(request, site.settings)
    response = site.redirect("/")
    response.headers.append("set-cookie", site.cookie(None, framed=False))
    return response
