"""Several studies behind one address: each under its own path, and one page over all of them.

Each study keeps its own app, database and sessions. The page over all shows the studies that a browser is
signed in to, so that it needs no accounts of its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Form
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from palaver import __version__
from palaver.errors import Sentence, UserError
from palaver.schema import Study
from palaver.schema.run import plain
from palaver.server.admin import SIGN_IN_FIRST, TOO_MANY_TOKENS, WRONG_TOKEN, AdminSite, sign_in_page
from palaver.server.admin_sessions import AdminSession, end_session
from palaver.server.app import DatabaseCheck, add_errors, create_app
from palaver.server.assets import static_files, static_reply
from palaver.server.dashboard import Pages
from palaver.server.live import Findings
from palaver.server.oversight import Status, status
from palaver.server.refusal import Refusal
from palaver.server.security import Guard, RateLimit, check_origin, own_origin
from palaver.server.settings import OWN_PATHS, Settings, from_environment
from palaver.server.words import Words, choose_language, languages, words_of

WHOLE_LINK = Sentence("There is no study at this address. Please use the whole link that you were given.")


def path_of(study: Study, file: Path) -> str:
    """Where a study lives beside others: `/` and its name, or the file's if the name has no plain letters."""
    for name in (study.name, file.stem, "study-1"):
        plain_name = re.sub(r"[^A-Za-z0-9_~-]+", "-", name).strip("-")[:80]
        if plain_name:
            return f"/{plain_name}"
    raise AssertionError


def check_paths(studies: Sequence[Settings]) -> None:
    """Raise `UserError` if two studies would live in one place, or one in ours."""
    problems, files_by_path = [], dict[str, Path | None]()
    for settings in studies:
        path, file = settings.study_path, settings.study_file
        if path.lower() in files_by_path:
            problems.append(f"{files_by_path[path.lower()]} and {file} would both be {path}/")
        elif path in (*OWN_PATHS, settings.base_path):
            problems.append(f"{file}: {path}/ is taken by Palaver's own pages")
        files_by_path.setdefault(path.lower(), file)
    if problems:
        raise UserError(
            "the studies cannot be told apart by their names", "give each a name of its own", problems
        )


def app_from_environment() -> ASGIApp:
    """For worker processes: `uvicorn palaver.server.overview:app_from_environment --factory`."""
    return app_of(from_environment())


def app_of(studies: Sequence[Settings]) -> ASGIApp:
    """One study's app, or that of several."""
    if len(studies) == 1 and not studies[0].study_path:
        return create_app(studies[0])
    check_paths(studies)
    return Studies({settings.study_path: create_app(settings) for settings in studies}, studies[0])


class Studies:
    """Sends each request to its study; all others to the pages over all."""

    def __init__(self, apps: Mapping[str, FastAPI], settings: Settings) -> None:
        settings = settings.model_copy(update={"study_path": ""})
        self.apps, self._base = apps, settings.base_path
        self.overview = create_overview(apps, settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.overview(scope, receive, send)
            return
        path = scope["path"]
        if self._base and f"{path}/".startswith(f"{self._base}/"):  # a proxy may take it off, or not
            path = path[len(self._base) :] or "/"
        name, _, rest = path[1:].partition("/")
        app = self.apps.get(f"/{name}")
        if app is None:
            await self.overview(scope, receive, send)
        else:
            await app({**scope, "path": f"/{rest}", "root_path": ""}, receive, send)


def create_overview(apps: Mapping[str, FastAPI], settings: Settings) -> FastAPI:
    """The pages over several studies. Their apps live as long as this one."""
    site = OverviewSite({path: app.state.admin for path, app in apps.items()}, settings)
    checks = [DatabaseCheck(admin.study_state.database) for admin in site.studies.values()]
    static = static_files()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for study_app in apps.values():
                await stack.enter_async_context(study_app.router.lifespan_context(study_app))
            yield

    app = FastAPI(
        title="Palaver",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.overview = site
    app.add_middleware(Guard, settings=settings)
    add_errors(app, settings, site.words_for, site.error_page)
    app.include_router(router)

    @app.get("/health")
    def health() -> dict[str, str]:
        """Whether answers to all studies can be saved."""
        for check in checks:
            check()
        return {"status": "ok", "version": __version__}

    @app.get("/static/{name}")
    async def asset(name: str, v: str = "") -> Response:
        return static_reply(static, name, v)

    return app


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCard:
    """One study on the page over all."""

    path: str
    title: str
    link: str
    """For raters."""
    status: Status
    findings: Findings | None


class OverviewSite:
    """What the pages over several studies need."""

    def __init__(self, studies: Mapping[str, AdminSite], settings: Settings) -> None:
        self.studies, self.settings = studies, settings
        self.pages = Pages(settings.base_path)
        self.wrong_tokens = RateLimit(30, 60)

    def sessions(self, request: Request) -> dict[str, AdminSession]:
        """The studies that this browser is signed in to, and its session there."""
        by_path = {path: study.session(request) for path, study in self.studies.items()}
        return {path: session for path, session in by_path.items() if session is not None}

    def csrf(self, sessions: Mapping[str, AdminSession]) -> str:
        """The form token of the first session."""
        path, session = next(iter(sessions.items()))
        return self.studies[path].csrf(session)

    def cards(self, request: Request, paths: Sequence[str]) -> list[StudyCard]:
        origin = own_origin(request, self.settings)
        return [self._card(path, f"{origin}{self.settings.base_path}{path}/") for path in paths]

    def _card(self, path: str, link: str) -> StudyCard:
        study_state = self.studies[path].study_state
        study = study_state.newest().study
        return StudyCard(
            path=path,
            title=study.title or study.name,
            link=link,
            status=status(study_state.database),
            findings=self.studies[path].live.current(),
        )

    def section(self, cards: Sequence[StudyCard]) -> str:
        return self.pages.page("admin_overview_studies.html.j2", cards=cards)

    def error_page(self, request: Request, words: Words, status: int, message: str) -> Response:
        if status == 404:  # raters come here who cut their link short
            message = words(WHOLE_LINK)
        return HTMLResponse(self.pages.page("lost.html.j2", message=message, t=words), status)

    def words_for(self, request: Request) -> Words:
        """By the browser: no study is known."""
        return words_of(choose_language(request.headers.get("accept-language", ""), languages()))


def as_data(card: StudyCard) -> dict[str, Any]:
    """A study for programs; undefined numbers are null."""
    findings = card.findings
    data = {
        "path": card.path,
        "title": card.title,
        "link": card.link,
        "status": card.status,
        "agreement": {c.criterion: c.agreement for c in findings.criteria} if findings is not None else None,
    }
    return {key: plain(value) for key, value in data.items()}


async def site_of(request: Request) -> OverviewSite:
    site: OverviewSite = request.app.state.overview
    return site


SiteHere = Annotated[OverviewSite, Depends(site_of)]


def sessions_of(request: Request, site: SiteHere) -> dict[str, AdminSession]:
    sessions = site.sessions(request)
    if not sessions:
        raise Refusal(SIGN_IN_FIRST, 401)
    return sessions


Sessions = Annotated[dict[str, AdminSession], Depends(sessions_of)]

router = APIRouter(include_in_schema=False)


@router.get("/admin", response_class=HTMLResponse)
def show(request: Request, site: SiteHere) -> Response:
    sessions = site.sessions(request)
    if not sessions:
        return sign_in_page(site.pages, "", 401)
    page = site.pages.page(
        "admin_overview.html.j2",
        studies=site.section(site.cards(request, list(sessions))),
        csrf=site.csrf(sessions),
        n_hidden=len(site.studies) - len(sessions),
        version=__version__,
    )
    return HTMLResponse(page)


@router.get("/admin/api/status")
def show_status(request: Request, site: SiteHere, sessions: Sessions, page: bool = False) -> Response:
    """How far the studies are that this browser is signed in to."""
    cards = site.cards(request, list(sessions))
    data: dict[str, object] = {"studies": [as_data(card) for card in cards]}
    if page:
        data["page"] = {"studies": site.section(cards)}
    return JSONResponse(data)


@router.get("/admin/login")
def follow_link(site: SiteHere, token: str = "") -> Response:
    return sign_in_page(site.pages, "", 200, token[:200])


@router.post("/admin/login")
def type_token(
    request: Request, site: SiteHere, token: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Sign in to every study whose token this is."""
    check_origin(request, site.settings)
    cookies = [study.redeem(request, token) for study in site.studies.values()]
    reply = RedirectResponse(f"{site.settings.base_path}/admin", 303)
    for value in cookies:
        if value is not None:
            reply.headers.append("set-cookie", value)
    if any(cookies):
        return reply
    if site.settings.rate_limits and not site.wrong_tokens.allow(""):
        return sign_in_page(site.pages, TOO_MANY_TOKENS, 429)
    return sign_in_page(site.pages, WRONG_TOKEN, 403)


@router.post("/admin/logout")
def sign_out(
    request: Request, site: SiteHere, sessions: Sessions, csrf: Annotated[str, Form()] = ""
) -> Response:
    """Sign out of all."""
    path, session = next(iter(sessions.items()))
    site.studies[path].check_form(request, session, csrf)
    reply = RedirectResponse(f"{site.settings.base_path}/admin", 303)
    for path, session in sessions.items():
        study = site.studies[path]
        end_session(study.study_state.database, session.id)
        reply.headers.append("set-cookie", study.cookie("", 0))
    return reply
