"""The web app of one served study."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import Request

from palaver import __version__
from palaver.collection.settings import load_collection
from palaver.errors import DataError, Sentence, UserError
from palaver.server import (
    admin,
    admin_conversations,
    admin_items,
    admin_raters,
    amendment_page,
    assets,
    chat,
    chat_page,
    media,
    pages,
    preview,
)
from palaver.server.chat_log import ChatLog, create_collection, read_collection
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.refusal import Refusal
from palaver.server.security import Guard, Signer, security_headers
from palaver.server.serving_mark import ServingMark
from palaver.server.settings import Settings
from palaver.server.site import Site
from palaver.server.study_state import StudyState
from palaver.server.words import ENGLISH, Words, words_of
from palaver.studies.design import load_study

_log = logging.getLogger("palaver.server")
NOT_SAVED = Sentence("Nothing can be saved at the moment. Wait a little and try again.")
_WORDS = {
    404: Sentence("There is no such page."),
    405: Sentence("This address does not take such requests."),
}


ErrorPage = Callable[[Request, Words, int, str], Response]
"""The page that shows a message, with this status."""


def create_app(settings: Settings) -> FastAPI:
    """The app for one study: opens the database, puts the study there if it is new, and joins the pages."""
    study_state = _open(settings)
    static = assets.static_files()
    templates = assets.environment(settings.root_path, static)
    templates.globals.update(
        is_preview=settings.is_preview,
        preview_parts=preview.parts_of,
        preview_home=settings.root_path.removesuffix("/preview") if settings.study_path else "",
    )
    site = Site(settings, study_state, templates, Signer(study_state.secret))

    def error_page(request: Request, words: Words, status: int, message: str) -> Response:
        home = "/admin" if request.scope["path"].startswith("/admin") else "/study"
        return site.page("error", words, status, message=message, missing=status == 404, home=home)

    with study_state.database.reading() as connection:
        is_collection = read_collection(connection) is not None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        mark = ServingMark(study_state.database)
        if is_collection:
            site.chat = chat.ChatHub(ChatLog(study_state.database))
            site.chat.start()
        yield
        if site.chat is not None:
            await site.chat.stop()
        site.work.close()
        mark.close()
        study_state.database.close()
        if previews is not None:
            previews.close()

    app = FastAPI(
        title="Palaver",
        version=__version__,
        openapi_url=None,  # the admin has it
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.site = site
    app.add_middleware(Guard, settings=settings)
    add_errors(app, settings, site.words_for, error_page)
    app.include_router(pages.router)
    app.include_router(media.router)
    previews: preview.PreviewGate | None = None
    if settings.is_preview:
        app.include_router(preview.router)
    else:
        app.state.admin = admin.AdminSite(settings, study_state)
        app.include_router(chat.router)
        app.include_router(chat_page.router)
        app.include_router(admin_conversations.router)
        app.include_router(admin_raters.router)
        app.include_router(admin_items.router)
        app.include_router(admin.router)
        app.include_router(amendment_page.router)
        previews = preview.PreviewGate(app.state.admin, create_app)
        app.mount(preview.PATH, previews)

    database_check = DatabaseCheck(study_state.database)

    @app.get("/health", tags=["server"], responses={503: {"model": pages.Problem}})
    async def health() -> dict[str, str]:
        """Whether answers can be saved."""
        await site.work(database_check)
        return {"status": "ok", "version": __version__}

    @app.get("/static/{name}", include_in_schema=False)
    async def asset(name: str, v: str = "") -> Response:
        return assets.static_reply(static, name, v)

    return app


class DatabaseCheck:
    """Whether the database can be written. Asked more often, the last result is told again."""

    PAUSE = 5.0

    def __init__(self, database: Database) -> None:
        self._database = database
        self._checked_at = -math.inf
        self._problem: DBAPIError | None = None

    def __call__(self) -> None:
        now = time.monotonic()
        if now >= self._checked_at + self.PAUSE:
            self._checked_at, self._problem = now, None
            try:
                self._database.check_writing()
            except DBAPIError as error:
                self._problem = error
        if self._problem is not None:
            raise self._problem


class ProblemLog:
    """One line a minute for what goes wrong with every request."""

    PAUSE = 60.0

    def __init__(self) -> None:
        self._logged_at = -math.inf
        self._n_unsaid = 0

    def __call__(self, problem: str) -> None:
        self._n_unsaid += 1
        now = time.monotonic()
        if now < self._logged_at + self.PAUSE:
            return
        _log.error("the database cannot be used: %s (requests that failed: %d)", problem, self._n_unsaid)
        self._logged_at, self._n_unsaid = now, 0


def _open(settings: Settings) -> StudyState:
    database = Database(settings.database)
    migrate(database)
    if settings.collection_file is not None:
        file = settings.collection_file
        create_collection(database, load_collection(file), file.read_text(encoding="utf-8"), file.parent)
        return StudyState(database)
    if settings.study_file is None:
        return StudyState(database)
    file = settings.study_file
    return StudyState.create(database, load_study(file), file.read_text(encoding="utf-8"), folder=file.parent)


def _place(loc: tuple[str | int, ...]) -> str:
    """Where in a request a mistake is. What pydantic calls the members of a union has brackets in it."""
    return ".".join(str(part) for part in loc[1:] if re.fullmatch(r"\w+", str(part)))


# --- errors, rendered once ----------------------------------------------------------------------------------


def add_errors(
    app: FastAPI, settings: Settings, words_for: Callable[[Request], Words], page: ErrorPage
) -> None:
    """Let an app answer with a page of its own, or with JSON where programs ask."""

    def answer(
        request: Request, status: int, message: str, headers: dict[str, str] | None = None
    ) -> Response:
        path = request.scope["path"]
        is_for_admin = path.startswith("/admin")
        words = words_of(ENGLISH) if is_for_admin else words_for(request)
        message = words(message)
        if path.startswith(("/api/", "/admin/api/", "/health")):
            return JSONResponse({"error": message}, status, headers)
        reply = page(request, words, status, message)
        reply.headers.update(headers or {})
        return reply

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, UserError)
        status = 409 if isinstance(error, DataError) else 400  # 409: there is nothing to export yet
        return answer(request, error.status if isinstance(error, Refusal) else status, error.message)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, Refusal):  # the size limit, met while the body was being read
            return await refused(request, error.__cause__)
        message = _WORDS.get(error.status_code) or str(error.detail)
        return answer(request, error.status_code, message, dict(error.headers or {}))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        # What was found stays out: it may be long, hostile, or no text at all.
        problems = {f"{_place(e['loc'])}: {e['msg']}" for e in error.errors()[:5]}
        return answer(request, 422, "; ".join(sorted(problems)).encode(errors="replace").decode())

    log_database = ProblemLog()

    async def unwritten(request: Request, error: Exception) -> Response:
        assert isinstance(error, SQLAlchemyError)
        log_database(str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0])
        return answer(request, 503, NOT_SAVED, {"retry-after": "30"})

    async def broken(request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        # This handler runs outside the guard, so the headers are put on by hand.
        return answer(
            request,
            500,
            Sentence("Something went wrong on our side. Try again."),
            security_headers(secure=settings.is_secure),
        )

    for kind in (OperationalError, InterfaceError, PoolTimeout):  # a full disk, a database that is away
        app.add_exception_handler(kind, unwritten)
    app.add_exception_handler(UserError, refused)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, broken)
