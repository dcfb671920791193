"""The web app of one served study."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy import text
from starlette.exceptions import HTTPException
from starlette.requests import Request

from palaver import __version__
from palaver.errors import DataError, UserError
from palaver.server import admin, assets, pages
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.refusal import Refusal
from palaver.server.security import Guard, Signer, security_headers
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.studies.design import load_study

_log = logging.getLogger("palaver.server")
_WORDS = {404: "There is no such page.", 405: "This address does not take such requests."}


def create_app(settings: Settings) -> FastAPI:
    """The app for one study: opens the database, puts the study there if it is new, and joins the pages."""
    study_state = _open(settings)
    static = assets.static_files()
    templates = assets.environment(settings.root_path, static)
    site = pages.Site(settings, study_state, templates, Signer(study_state.secret))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.work.close()
        study_state.database.close()

    app = FastAPI(
        title="Palaver",
        version=__version__,
        openapi_url=None,  # the admin has it
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.site = site
    app.state.admin = admin.AdminSite(settings, study_state)
    app.add_middleware(Guard, settings=settings)
    _add_errors(app, site)
    app.include_router(pages.router)
    app.include_router(admin.router)

    def alive() -> None:
        with study_state.database.reading() as connection:
            connection.execute(text("SELECT 1"))

    @app.get("/health", tags=["server"])
    async def health() -> dict[str, str]:
        """Whether the server and its database answer."""
        await site.work(alive)
        return {"status": "ok", "version": __version__}

    @app.get("/static/{name}", include_in_schema=False)
    async def asset(name: str, v: str = "") -> Response:
        if name not in static:
            raise Refusal("there is no such file", 404)
        file = static[name]
        caching = "public, max-age=31536000, immutable" if v == file.version else "no-cache"
        return Response(file.content, media_type=file.media_type, headers={"cache-control": caching})

    return app


def app_from_environment() -> FastAPI:
    """For worker processes: `uvicorn palaver.server.app:app_from_environment --factory`."""
    return create_app(Settings.from_environment())


def _open(settings: Settings) -> StudyState:
    database = Database(settings.database)
    migrate(database)
    if settings.study_file is None:
        return StudyState(database)
    study = load_study(settings.study_file)
    return StudyState.create(database, study, settings.study_file.read_text(encoding="utf-8"))


# --- errors, rendered once ----------------------------------------------------------------------------------


def _add_errors(app: FastAPI, site: pages.Site) -> None:
    def answer(
        request: Request, status: int, message: str, headers: dict[str, str] | None = None
    ) -> Response:
        if request.scope["path"].startswith(("/api/", "/admin/api/", "/health")):
            return JSONResponse({"error": message}, status, headers)
        home = "/admin" if request.scope["path"].startswith("/admin") else "/study"
        page = site.page("error", status, message=message, missing=status == 404, home=home)
        page.headers.update(headers or {})
        return page

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
        problems = {f"{'.'.join(str(p) for p in e['loc'][1:])}: {e['msg']}" for e in error.errors()[:5]}
        return answer(request, 422, "; ".join(sorted(problems)).encode(errors="replace").decode())

    async def broken(request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        # This handler runs outside the guard, so the headers are put on by hand.
        return answer(
            request,
            500,
            "Something went wrong on our side. Try again.",
            security_headers(secure=site.settings.is_secure),
        )

    app.add_exception_handler(UserError, refused)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, broken)
