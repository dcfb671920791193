"""The admin's routes: sign in once with a token, watch, decide about raters, take the data away."""

# No `from __future__ import annotations`: FastAPI reads annotations that name what only `router` knows.

import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from sqlalchemy import select

from palaver import __version__
from palaver.errors import DataError
from palaver.server.dashboard import Pages, as_data, look
from palaver.server.export import Selection, rater_lines, read_answers, stream
from palaver.server.live import Live
from palaver.server.oversight import ACTIONS, arm_token, redeem_token
from palaver.server.security import RateLimit, Signer, check_origin, client_address, cookie
from palaver.server.service import Refused, Service
from palaver.server.settings import Settings
from palaver.server.tables import study as study_table

ADMIN_COOKIE = "palaver_admin"
SIGNED_IN = 7 * 24 * 3600
"""Seconds after which the admin has to sign in again."""
_MEDIA = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


class Admins:
    """Who is signed in. The cookie says so itself: no list of sessions is kept."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self._settings, self._service = settings, service
        self._signer = Signer(service.secret)
        self._limit = RateLimit(10, 60)

    def sign_in(self, request: Request, token: str) -> str:
        """The `Set-Cookie` header for somebody who has the token, which is then used up."""
        if self._settings.rate_limits:
            self._limit.check(client_address(request))
        if not redeem_token(self._service.database, token.strip()):
            raise Refused("this link is wrong, or was used already", 403)
        session = f"{int(self._service.clock())}-{secrets.token_hex(8)}"
        return self._cookie(self._signer.sign("admin", session), SIGNED_IN)

    def sign_out(self) -> str:
        return self._cookie("", 0)

    def _cookie(self, value: str, max_age: int) -> str:
        return cookie(
            ADMIN_COOKIE, value, self._settings, max_age=max_age, path=f"{self._settings.root_path}/admin"
        )

    def session(self, request: Request) -> str | None:
        """The session of a request, if there is a valid one."""
        session = self._signer.read("admin", request.cookies.get(ADMIN_COOKIE, ""))
        if session is None:
            return None
        began = int(session.partition("-")[0])
        return session if began + SIGNED_IN > self._service.clock() else None

    def __call__(self, request: Request) -> str:
        """A dependency: the session, or 401."""
        session = self.session(request)
        if session is None:
            raise Refused("please sign in with a new admin link first", 401)
        return session

    def csrf(self, session: str) -> str:
        return self._signer.csrf(f"admin {session}")

    def check_form(self, request: Request, session: str, token: str) -> None:
        check_origin(request, self._settings)
        self._signer.check_csrf(f"admin {session}", token)


def router(settings: Settings, service: Service) -> APIRouter:
    """The routes under `/admin`."""
    if settings.admin_token:
        arm_token(service.database, settings.admin_token)
    admins = Admins(settings, service)
    live = Live(service.database, service.study)
    pages = Pages(settings.root_path)
    home = f"{settings.root_path}/admin"
    routes = APIRouter(prefix="/admin")
    Session = Annotated[str, Depends(admins)]

    @routes.get("", response_class=HTMLResponse, include_in_schema=False)
    def show(request: Request) -> Response:
        session = admins.session(request)
        if session is None:
            return _sign_in_page(pages, "", 401)
        board = look(service.database, live)
        csrf = admins.csrf(session)
        scheme = "https" if settings.secure_cookies else request.url.scheme
        return HTMLResponse(
            pages.page(
                "admin.html.j2",
                study=service.study,
                board=board,
                sections=pages.sections(board, csrf),
                csrf=csrf,
                hash=service.hash,
                version=__version__,
                link=f"{scheme}://{request.headers.get('host', '')}{settings.root_path}/",
            )
        )

    @routes.get("/login", include_in_schema=False)
    def follow_link(request: Request, token: str = "") -> Response:
        return _sign_in(request, token)

    @routes.post("/login", include_in_schema=False)
    def type_token(request: Request, token: Annotated[str, Form(max_length=200)] = "") -> Response:
        check_origin(request, settings)
        return _sign_in(request, token)

    def _sign_in(request: Request, token: str) -> Response:
        try:
            made = admins.sign_in(request, token)
        except Refused as error:
            return _sign_in_page(pages, error.message, error.status)
        reply = RedirectResponse(home, 303)
        reply.headers["set-cookie"] = made
        return reply

    @routes.post("/logout", include_in_schema=False)
    def sign_out(request: Request, session: Session, csrf: Annotated[str, Form()] = "") -> Response:
        admins.check_form(request, session, csrf)
        reply = RedirectResponse(home, 303)
        reply.headers["set-cookie"] = admins.sign_out()
        return reply

    @routes.post("/raters/{rater_id}/{action}", include_in_schema=False)
    def decide(
        request: Request,
        session: Session,
        rater_id: str,
        action: Literal["block", "unblock", "exclude", "include"],
        csrf: Annotated[str, Form()] = "",
    ) -> Response:
        admins.check_form(request, session, csrf)
        ACTIONS[action](service.database, rater_id, service.clock())
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"done": action})
        return RedirectResponse(f"{home}#raters", 303)

    @routes.get("/api/status")
    def state(session: Session, page: bool = False) -> Response:
        """How far the study is, what the answers say so far, and who the raters are."""
        board = look(service.database, live)
        data = as_data(board)
        if page:
            data["page"] = pages.sections(board, admins.csrf(session))
        return JSONResponse(data)

    @routes.get("/export/{kind}", include_in_schema=False)
    def export(
        session: Session,
        kind: Literal["jsonl", "csv", "parquet"],
        all_screens: bool = False,
        excluded: bool = True,
    ) -> Response:
        chosen = Selection(all_screens=all_screens, excluded=excluded)
        pieces = _or_conflict(lambda: stream(service.database, kind, chosen))
        return _download(pieces, f"{_name(service)}.{kind}", _MEDIA[kind])

    @routes.get("/raters.jsonl", include_in_schema=False)
    def people(session: Session) -> Response:
        lines = rater_lines(service.database)
        first = _or_conflict(lambda: next(lines))

        def every() -> Iterator[bytes]:
            yield first
            yield from lines

        return _download(every(), f"{_name(service)}-raters.jsonl", _MEDIA["jsonl"])

    @routes.get("/study-file", include_in_schema=False)
    def study_file(session: Session) -> Response:
        return _download(iter([service.source.encode()]), f"{_name(service)}.toml", "application/toml")

    @routes.get("/record.json", include_in_schema=False)
    def record(session: Session) -> Response:
        text = json.dumps(pre_registration(service), indent=1, ensure_ascii=False)
        return _download(iter([text.encode()]), f"{_name(service)}-record.json", "application/json")

    @routes.get("/report.html", include_in_schema=False)
    def report(session: Session) -> Response:
        page = _or_conflict(lambda: report_page(service))
        return _download(iter([page]), f"{_name(service)}-report.html", "text/html; charset=utf-8")

    return routes


def _sign_in_page(pages: Pages, problem: str, code: int) -> Response:
    return HTMLResponse(pages.page("admin_login.html.j2", problem=problem), code)


def _or_conflict(call: Any) -> Any:
    """An export without rows is an error that says so."""
    try:
        return call()
    except DataError as error:
        raise Refused(error.message, 409) from None


def _name(service: Service) -> str:
    """The study's name as a file name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in service.study.name)
    return plain.strip("-")[:80] or "study"


def _download(pieces: Iterator[bytes], name: str, media: str) -> Response:
    head = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, media_type=media, headers=head)


def pre_registration(service: Service) -> dict[str, Any]:
    """What was fixed before the first answer: the study, its hash and seed, the software, the day."""
    with service.database.reading() as connection:
        row = connection.execute(select(study_table)).one()
    return {
        "study": row.name,
        "sha256_of_study": row.hash,
        "sha256_of_file": hashlib.sha256(row.source.encode()).hexdigest(),
        "seed": service.study.seed,
        "palaver": row.version,
        "began_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.created_at)),
        "file": row.source,
        "design": json.loads(row.document),
    }


def report_page(service: Service) -> bytes:
    """The HTML report on the answers so far, without excluded raters."""
    from palaver.reports import render_report
    from palaver.studies import analyse, read_ratings

    table = read_ratings(read_answers(service.database), study=service.study)
    return render_report(analyse(table, study=service.study, seed=service.study.seed)).encode()
