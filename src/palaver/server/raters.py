"""The rater's pages: come in, agree, read, answer, leave. Each handler is one call of the service.

The database lets one writer in at a time, so one thread per process makes the calls (`Worker`): requests
queue here, in order, instead of polling for the database's lock.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, ParamSpec, TypeVar

from fastapi import APIRouter, Header
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from starlette.datastructures import FormData
from starlette.requests import Request

from palaver.server import render
from palaver.server.security import (
    RATER_COOKIE,
    RateLimit,
    Signer,
    check_origin,
    client_address,
    cookie,
    mturk_submit,
)
from palaver.server.served import clean
from palaver.server.service import Given, Refused, Saved, Service, Visit
from palaver.server.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

ENTRIES_PER_MINUTE = 120
"""New people from one address; a classroom behind one router must get in."""
NOT_IN = (
    "You have not entered this study, or your browser did not keep its cookie. "
    "Open the link you were given again; if this page comes back, allow cookies for this site."
)
_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
_PROLIFIC = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
_MTURK = ("workerId", "assignmentId", "hitId", "turkSubmitTo")
_MAX_PARAMETER = 500


class Worker:
    """The one thread of this process that talks to the database for raters."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="palaver-raters")

    async def __call__(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: call(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown()


# --- what comes in ------------------------------------------------------------------------------------------


def _storable(text: str) -> str:
    try:
        return clean(text)
    except Refused as refused:
        raise ValueError(refused.message) from None


Sound = Annotated[str, AfterValidator(_storable)]


class Answer(BaseModel):
    """One answer. `position` is where the output stood; a pairwise `value` is the place chosen."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_-]{8,36}$")]
    criterion: Annotated[Sound, StringConstraints(min_length=1, max_length=1000)]
    position: int = Field(ge=0, le=1000)
    value: (
        Annotated[float, Field(strict=True)]  # a truth value is no number
        | Annotated[Sound, StringConstraints(max_length=10_000)]
        | Annotated[list[Sound], Field(max_length=1000)]
    )
    seconds: float | None = Field(default=None, ge=0, le=1e7)
    given_at: float | None = Field(default=None, ge=0, le=1e11)


class Answers(BaseModel):
    """What a page sends."""

    model_config = ConfigDict(extra="forbid")

    assignment: int = Field(ge=1, le=2**31 - 1)
    answers: list[Answer] = Field(max_length=1000)
    comment: Annotated[Sound, StringConstraints(max_length=100_000)] = ""


class Reply(BaseModel):
    """The ids that are in the database now, and what a trainee should hear."""

    saved: list[str]
    finished: bool
    feedback: list[str]
    passed: bool | None


class Problem(BaseModel):
    error: str


PROBLEMS: dict[int | str, dict[str, object]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 413, 422, 429)
}


def arrival(query: Mapping[str, str]) -> tuple[str, str | None, dict[str, str]]:
    """Platform, the person's name there, and what must be given back at the end."""
    for platform, names in (("prolific", _PROLIFIC), ("mturk", _MTURK)):
        if query.get(names[0]):
            known = {name: clean(query[name]) for name in names if query.get(name)}
            if any(len(text) > _MAX_PARAMETER for text in known.values()):
                raise Refused("a parameter of the address is too long", 422)
            return platform, known[names[0]], known
    return "link", None, {}


def form_answers(form: FormData) -> list[Given]:
    """The answers of a page that was sent without scripts.

    Their ids come from the page and the value: sending the page twice is one row, a changed mind another.
    """
    page = str(form.get("page", ""))
    values: dict[tuple[int, str], list[str]] = {}
    for name, text in form.multi_items():
        found = re.fullmatch(r"answer:(\d{1,4}):(.+)", name, re.DOTALL)
        if found and isinstance(text, str) and text.strip():
            place = (int(found[1]), clean(found[2]))
            values.setdefault(place, []).append(clean(text.strip()))
    return [
        Given(
            id=str(uuid.uuid5(uuid.NAMESPACE_URL, "\x1f".join((page, str(position), criterion, *texts)))),
            criterion=criterion,
            position=position,
            value="|".join(texts),
        )
        for (position, criterion), texts in values.items()
    ]


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return clean(value) if isinstance(value, str) else ""


# --- who it is ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    rater: str
    framed: bool


class Pages:
    """Sessions and pages of one served study."""

    def __init__(self, settings: Settings, service: Service, jinja: Environment, signer: Signer) -> None:
        self.settings, self.service, self.jinja, self.signer = settings, service, jinja, signer
        study = service.study
        self._shared = {"title": study.title or study.name, "study": study}

    def session(self, request: Request) -> Session | None:
        token = request.cookies.get(RATER_COOKIE)
        text = self.signer.read("rater", token) if token else None
        if text is None:
            return None
        rater, _, kind = text.partition("~")
        request.state.framed = kind == "framed"
        return Session(rater, kind == "framed")

    def require(self, request: Request) -> Session:
        session = self.session(request)
        if session is None:
            raise Refused(NOT_IN, 401)
        return session

    def cookie(self, session: Session) -> str:
        text = f"{session.rater}~framed" if session.framed else session.rater
        return cookie(RATER_COOKIE, self.signer.sign("rater", text), self.settings, framed=session.framed)

    def page(self, name: str, status: int = 200, **values: object) -> HTMLResponse:
        template = self.jinja.get_template(f"{name}.html.j2")
        return HTMLResponse(template.render(**self._shared, **values), status)

    def redirect(self, path: str) -> RedirectResponse:
        return RedirectResponse(f"{self.settings.root_path}{path}", 303)

    def standing(
        self, session: Session, visit: Visit, *, problem: str = "", given: Mapping[str, str] | None = None
    ) -> HTMLResponse:
        """The page for where a rater stands."""
        csrf = self.signer.csrf(session.rater)
        status = 422 if problem else 200
        if visit.task is not None:
            return self.page(
                "rate",
                status,
                csrf=csrf,
                page=uuid.uuid4().hex,
                rater=self.signer.mac("outbox", session.rater)[:16],
                view=render.rate(self.service.study, visit.task),
                problem=problem,
            )
        if visit.state in ("consent", "instructions"):
            return self.page(visit.state, csrf=csrf)
        if visit.state == "survey":
            return self.page("survey", status, csrf=csrf, problem=problem, given=given or {})
        parameters = visit.parameters or {}
        submit = mturk_submit(parameters) if visit.platform == "mturk" else None
        return self.page(
            "end",
            state=visit.state,
            code=visit.code,
            leave=visit.url,
            platform=visit.platform,
            submit=submit,
            assignment=parameters.get("assignmentId", ""),
        )


# --- routes -------------------------------------------------------------------------------------------------


def router(settings: Settings, service: Service, pages: Pages, work: Worker) -> APIRouter:
    """Everything a rater's browser asks for."""
    routes = APIRouter()
    entries = RateLimit(ENTRIES_PER_MINUTE, 60)

    async def form_of(request: Request) -> tuple[Session, FormData]:
        """A form that one of our own pages sent for this very session."""
        check_origin(request, settings)
        session = pages.require(request)
        form = await request.form()
        pages.signer.check_csrf(session.rater, _text(form, "csrf"))
        return session, form

    @routes.get("/", include_in_schema=False)
    async def enter(request: Request) -> Response:
        platform, external, parameters = arrival(request.query_params)
        framed = platform == "mturk"
        session = pages.session(request)
        if request.query_params.get("assignmentId") == _PREVIEW:
            request.state.framed = True
            return pages.page("preview")
        if platform == "link" and session is not None:
            return pages.redirect("/study")
        if settings.rate_limits and session is None:
            entries.check(client_address(request))
        rater = await work(service.enter, platform, external, parameters)
        request.state.framed = framed
        response = pages.redirect("/study")
        response.headers.append("set-cookie", pages.cookie(Session(rater, framed)))
        return response

    @routes.get("/study", include_in_schema=False)
    async def standing(request: Request) -> Response:
        session = pages.require(request)
        return pages.standing(session, await work(service.visit, session.rater))

    @routes.post("/study/consent", include_in_schema=False)
    async def consent(request: Request) -> Response:
        session, _ = await form_of(request)
        await work(service.agree, session.rater)
        return pages.redirect("/study")

    @routes.post("/study/begin", include_in_schema=False)
    async def begin(request: Request) -> Response:
        session, _ = await form_of(request)
        await work(service.begin, session.rater)
        return pages.redirect("/study")

    @routes.post("/study/survey", include_in_schema=False)
    async def survey(request: Request) -> Response:
        session, form = await form_of(request)
        given = {q.name: _text(form, f"survey:{q.name}") for q in service.study.survey}
        try:
            await work(service.answer_survey, session.rater, given)
        except Refused as refused:
            if refused.status != 422:
                raise
            visit = await work(service.visit, session.rater)
            return pages.standing(session, visit, problem=refused.message, given=given)
        return pages.redirect("/study")

    @routes.post("/study/answers", include_in_schema=False)
    async def answers_without_scripts(request: Request) -> Response:
        session, form = await form_of(request)
        number = _text(form, "assignment")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise Refused("this page is not complete: reload it", 422)
        given = form_answers(form)
        try:
            saved = await work(service.submit, session.rater, int(number), given, _text(form, "comment"))
        except Refused as refused:
            if refused.status != 422:
                raise
            visit = await work(service.visit, session.rater)
            return pages.standing(session, visit, problem=refused.message)
        if saved.passed is not None:
            return pages.page("feedback", passed=saved.passed, feedback=saved.feedback)
        return pages.redirect("/study")

    @routes.post("/api/answers", response_model=Reply, responses=PROBLEMS, tags=["rater"])
    async def answers(
        request: Request, body: Answers, x_csrf_token: Annotated[str | None, Header()] = None
    ) -> Response:
        """Store answers. An answer that was sent before is acknowledged again and stays one row."""
        check_origin(request, settings)
        session = pages.require(request)
        pages.signer.check_csrf(session.rater, x_csrf_token)
        given = list(_given(body.answers))
        saved: Saved = await work(service.submit, session.rater, body.assignment, given, body.comment)
        reply = Reply(
            saved=list(saved.ids),
            finished=saved.finished,
            feedback=list(saved.feedback),
            passed=saved.passed,
        )
        return Response(reply.model_dump_json(), media_type="application/json")

    return routes


def _given(answers: Iterable[Answer]) -> Iterable[Given]:
    for a in answers:
        yield Given(a.id, a.criterion, a.position, a.value, a.seconds, a.given_at)
