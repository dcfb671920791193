"""The admin's routes: sign in once with a token, watch, decide about raters, take the data away."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from sqlalchemy import select

from palaver import __version__
from palaver.collection.quality import Checker
from palaver.server.admin_accounts import REFUSALS, Right, redeem_link
from palaver.server.admin_sessions import (
    LASTS,
    AdminSession,
    begin_session,
    end_session,
    find_session,
    list_sessions,
)
from palaver.server.chat_log import ChatLog, read_collection
from palaver.server.dashboard import Pages, as_data, look
from palaver.server.entry import allow_resume
from palaver.server.export import Selection, rater_lines, read_answers, stream
from palaver.server.live import Live
from palaver.server.oversight import Action, arm_token, decide, redeem_token
from palaver.server.records import log
from palaver.server.refusal import Refusal
from palaver.server.security import RateLimit, Signer, check_origin, cookie, own_origin
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import study as study_table

WRONG_TOKEN = "this link is wrong, or was used already"
SIGN_IN_FIRST = "please sign in with a new admin link first"
TOO_MANY_TOKENS = "there were too many wrong tokens: wait a minute"
_MEDIA = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "toml": "application/toml",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}
"""What a download is, by the ending of its name."""


def sign_in_page(pages: Pages, problem: str, status: int, token: str = "") -> Response:
    return HTMLResponse(pages.page("admin_login.html.j2", problem=problem, token=token), status)


class AdminSite:
    """The admin's side of one study."""

    def __init__(self, settings: Settings, study_state: StudyState) -> None:
        self.settings, self.study_state = settings, study_state
        self.home = f"{settings.root_path}/admin"
        self.live = Live(study_state.database)
        self.checker = Checker()
        self._signer = Signer(study_state.secret)
        self._cookie_name = self._signer.cookie_name("admin")
        self._wrong_tokens = RateLimit(30, 60)
        with study_state.database.reading() as connection:
            self.is_collection = read_collection(connection) is not None
        self.pages = Pages(settings.root_path, is_collection=self.is_collection)
        if settings.admin_token:
            arm_token(study_state.database, settings.admin_token)

    def sign_in(self, request: Request, token: str) -> Response:
        """To the admin's page with a cookie, for somebody who has the token, which is then used up.

        Wrong tokens are limited whoever sends them, for addresses can be made up; the right one is let in
        even then, so that nobody can lock the owner out. Guessing is hopeless because tokens are long.
        """
        value = self.redeem(request, token)
        if value is not None:
            return self._go_home(value)
        if self.settings.rate_limits and not self._wrong_tokens.allow(""):
            return sign_in_page(self.pages, TOO_MANY_TOKENS, 429)
        return sign_in_page(self.pages, WRONG_TOKEN, 403)

    def redeem(self, request: Request, token: str) -> str | None:
        """The cookie of a new session for somebody who has the token, which is then used up."""
        database, token = self.study_state.database, token.strip()
        name = None
        if not redeem_token(database, token):
            name = redeem_link(database, token)
            if name is None:
                return None
        browser = request.headers.get("user-agent", "")[:200]
        return self.cookie(begin_session(database, browser, self.study_state.clock(), name), LASTS)

    def cookie(self, value: str, max_age: int) -> str:
        """Of several studies behind one address, all their cookies reach the page over all of them."""
        path = (self.settings.base_path or "/") if self.settings.study_path else self.home
        return cookie(self._cookie_name, value, self.settings, max_age=max_age, path=path)

    def sign_out(self, session: AdminSession) -> Response:
        end_session(self.study_state.database, session.id)
        return self._go_home(self.cookie("", 0))

    def _go_home(self, value: str) -> Response:
        reply = RedirectResponse(self.home, 303)
        reply.headers["set-cookie"] = value
        return reply

    def mark_of_draft(self, version: int, text: str) -> str:
        """What tells a draft that was shown as an amendment of this version from any other."""
        return self._signer.mac("draft", f"{version}\x1f{text}")

    def session(self, request: Request) -> AdminSession | None:
        """The session of a request, if there is one that has not ended."""
        token = request.cookies.get(self._cookie_name)
        if not token:
            return None
        return find_session(self.study_state.database, token, self.study_state.clock())

    def csrf(self, session: AdminSession) -> str:
        return self._signer.csrf(f"admin {session.id}")

    def check_form(self, request: Request, session: AdminSession, token: str) -> None:
        check_origin(request, self.settings)
        self._signer.check_csrf(f"admin {session.id}", token)


async def site_of(request: Request) -> AdminSite:
    site: AdminSite = request.app.state.admin
    return site


SiteHere = Annotated[AdminSite, Depends(site_of)]


class Need:
    """What a route needs: somebody who is signed in and has this right. Who has it not is written down."""

    def __init__(self, right: Right) -> None:
        self.right = right

    def __call__(self, request: Request, site: SiteHere) -> AdminSession:
        session = site.session(request)
        if session is None:
            raise Refusal(SIGN_IN_FIRST, 401)
        if not session.may(self.right):
            with site.study_state.database.writing() as connection:
                detail = f"{session.name} asked for {request.scope['path'][:200]}"
                log(connection, site.study_state.clock(), None, "refused", detail)
            raise Refusal(REFUSALS[self.right].format(role=session.role), 403)
        return session


Reader = Annotated[AdminSession, Depends(Need("read"))]
Decider = Annotated[AdminSession, Depends(Need("decide"))]
PersonalReader = Annotated[AdminSession, Depends(Need("personal"))]
Manager = Annotated[AdminSession, Depends(Need("manage"))]

router = APIRouter(prefix="/admin")


@router.get("", response_class=HTMLResponse, include_in_schema=False)
def show(request: Request, site: SiteHere) -> Response:
    session = site.session(request)
    if session is None:
        return sign_in_page(site.pages, "", 401)
    board = look(site.study_state.database, site.live, personal=session.may("personal"))
    csrf = site.csrf(session)
    edition = site.study_state.newest()
    return HTMLResponse(
        site.pages.page(
            "admin.html.j2",
            study=edition.study,
            board=board,
            sections=site.pages.sections(board, csrf, session),
            may=session.may,
            csrf=csrf,
            own_session=session,
            sessions=list_sessions(site.study_state.database, board.status.now),
            now=board.status.now,
            hash=edition.hash,
            study_version=edition.version,
            version=__version__,
            link=f"{own_origin(request, site.settings)}{site.settings.root_path}/",
        )
    )


@router.get("/login", include_in_schema=False)
def follow_link(site: SiteHere, token: str = "") -> Response:
    """A page with a button: a program that looks at every link (a chat's preview) uses nothing up."""
    return sign_in_page(site.pages, "", 200, token[:200])


@router.post("/login", include_in_schema=False)
def type_token(
    request: Request, site: SiteHere, token: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    check_origin(request, site.settings)
    return site.sign_in(request, token)


@router.post("/logout", include_in_schema=False)
def sign_out(
    request: Request, site: SiteHere, session: Reader, csrf: Annotated[str, Form()] = ""
) -> Response:
    site.check_form(request, session, csrf)
    return site.sign_out(session)


@router.post("/sessions/{session_id}/end", include_in_schema=False)
def end_other_session(
    request: Request, site: SiteHere, session: Manager, session_id: str, csrf: Annotated[str, Form()] = ""
) -> Response:
    site.check_form(request, session, csrf)
    end_session(site.study_state.database, session_id)
    return RedirectResponse(f"{site.home}#sessions", 303)


@router.post("/raters/{rater_id}/{action}", include_in_schema=False)
def decide_about_rater(
    request: Request,
    site: SiteHere,
    session: Decider,
    rater_id: str,
    action: Action,
    csrf: Annotated[str, Form()] = "",
) -> Response:
    site.check_form(request, session, csrf)
    decide(site.study_state.database, rater_id, action, site.study_state.clock(), by=session.name)
    if site.is_collection and action == "block":  # their page may be open, with a partner on the other side
        log = ChatLog(site.study_state.database, site.study_state.clock)
        log.run([lambda host, now: host.leave(rater_id, now)])
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"done": action})
    return RedirectResponse(f"{site.home}#raters", 303)


@router.post("/requests/{request_id}/allow", include_in_schema=False)
def allow_request(
    request: Request, site: SiteHere, session: Decider, request_id: int, csrf: Annotated[str, Form()] = ""
) -> Response:
    site.check_form(request, session, csrf)
    allow_resume(site.study_state.database, request_id, site.study_state.clock(), by=session.name)
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"done": "allow"})
    return RedirectResponse(f"{site.home}#raters", 303)


@router.get("/api/status")
def show_status(site: SiteHere, session: Reader, page: bool = False) -> Response:
    """How far the study is, what the answers say so far, and who the raters are."""
    board = look(site.study_state.database, site.live, personal=session.may("personal"))
    data = as_data(board)
    if page:
        data["page"] = site.pages.sections(board, site.csrf(session), session)
    return JSONResponse(data)


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request, session: Reader) -> Response:
    """What programs can ask of this server."""
    return JSONResponse(request.app.openapi())


@router.get("/export/{kind}", include_in_schema=False)
def export(
    site: SiteHere,
    session: Reader,
    kind: Literal["jsonl", "csv", "parquet"],
    all_screens: bool = False,
    excluded: bool = True,
) -> Response:
    """Raters by their pseudonyms for whoever may not know more."""
    chosen = Selection(all_screens=all_screens, excluded=excluded, share=not session.may("personal"))
    return _download(site, f".{kind}", stream(site.study_state.database, kind, chosen))


@router.get("/raters.jsonl", include_in_schema=False)
def raters(site: SiteHere, session: PersonalReader) -> Response:
    return _download(site, "-raters.jsonl", rater_lines(site.study_state.database))


@router.get("/study-file", include_in_schema=False)
def study_file(site: SiteHere, session: Reader) -> Response:
    return _download(site, ".toml", [site.study_state.newest().source.encode()])


@router.get("/record.json", include_in_schema=False)
def record(site: SiteHere, session: Reader) -> Response:
    """What was fixed before the first answer: the study, its hash and seed, the software, the day."""
    with site.study_state.database.reading() as connection:
        row = connection.execute(select(study_table)).one()
    fixed = {
        "study": row.name,
        "sha256_of_study": row.hash,
        "sha256_of_file": hashlib.sha256(row.source.encode()).hexdigest(),
        "seed": site.study_state.study.seed,
        "palaver": row.version,
        "began_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.created_at)),
        "file": row.source,
        "design": json.loads(row.document),
    }
    return _download(site, "-record.json", [json.dumps(fixed, indent=1, ensure_ascii=False).encode()])


@router.get("/report.html", include_in_schema=False)
def report(site: SiteHere, session: Reader) -> Response:
    """The HTML report on the answers so far, without excluded raters."""
    from palaver.reports import render_report
    from palaver.studies import analyse, read_ratings

    study = site.study_state.newest().study
    table = read_ratings(read_answers(site.study_state.database), study=study)
    page = render_report(analyse(table, study=study, seed=study.seed))
    return _download(site, "-report.html", [page.encode()])


def _download(site: AdminSite, ending: str, pieces: Iterable[bytes]) -> Response:
    """A file whose name is the study's with an ending."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", site.study_state.study.name).strip("-")[:80] or "study"
    head = {"content-disposition": f'attachment; filename="{plain}{ending}"'}
    return StreamingResponse(pieces, media_type=_MEDIA[ending.rpartition(".")[2]], headers=head)
