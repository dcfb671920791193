"""The rater's pages: come in, agree, read, answer, leave. Each route is one call of the study's state.

SQLite lets one writer in at a time, so one thread per process makes the calls (`Workers`): requests queue
here, in order, instead of polling for the database's lock. PostgreSQL takes several steps at once.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Annotated, ParamSpec, TypeVar
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.datastructures import FormData
from starlette.requests import HTTPConnection, Request
from starlette.websockets import WebSocket

from palaver.collection.settings import Collection
from palaver.errors import Sentence, UserError
from palaver.schema import Study
from palaver.server import prolific
from palaver.server.answers import RawAnswer, Storable
from palaver.server.chat import ChatHub
from palaver.server.chat_page import chat_page
from palaver.server.entry import Browser, Elsewhere, Repetition, ask_to_resume
from palaver.server.rating_page import RatingPage, rating_page
from palaver.server.refusal import Refusal, clean
from palaver.server.security import (
    RateLimit,
    Signer,
    check_origin,
    check_socket_origin,
    client_address,
    cookie,
    mturk_submit,
    own_origin,
)
from palaver.server.settings import Settings
from palaver.server.study_state import Receipt, StudyState
from palaver.server.words import (
    LANGUAGE,
    NONE,
    Words,
    choose_language,
    language_notes,
    offered_languages,
    words_of,
)

P = ParamSpec("P")
R = TypeVar("R")

ENTRIES_PER_MINUTE = 120
"""From one address; a classroom behind one router must get in."""
ENTRIES_OF_ALL = 600
"""From all addresses together, which can be made up."""
ENTRIES_OF_ONE = 20
"""Of one person of a platform."""
ANSWERS_PER_MINUTE = 300
"""And other forms, of one rater."""
ANSWERS_PER_ADDRESS = 6000
NOT_IN = Sentence(
    "You have not entered this study, or your browser did not keep its cookie. "
    "Open the link you were given again; if this page comes back, allow cookies for this site."
)
_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
_MTURK = ("workerId", "assignmentId", "hitId", "turkSubmitTo")


STEPS_AT_ONCE = 4
"""Of one process, where the database takes several."""


class Workers:
    """The threads of this process that talk to the database for raters."""

    def __init__(self, n: int) -> None:
        self._pool = ThreadPoolExecutor(n, thread_name_prefix="palaver-raters")

    async def __call__(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: call(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown()


# --- what comes in ------------------------------------------------------------------------------------------


class Answers(BaseModel):
    """What a page sends."""

    model_config = ConfigDict(extra="forbid")

    assignment: int = Field(ge=1, le=2**31 - 1)
    answers: list[RawAnswer] = Field(max_length=1000)
    comment: Annotated[Storable, StringConstraints(max_length=100_000)] = ""
    comment_on: int | None = Field(default=None, ge=0, le=1000)
    """The position of the output that the comment is about; nothing for the whole page."""


class Problem(BaseModel):
    error: str


PROBLEMS: dict[int | str, dict[str, object]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 413, 422, 429)
}


def arrival(query: Mapping[str, str]) -> tuple[str, str | None, dict[str, str]]:
    """Platform, the person's name there, and what must be given back at the end."""
    for platform, names in (("prolific", prolific.PARAMETERS), ("mturk", _MTURK)):
        if query.get(names[0]):
            known = {name: query[name] for name in names if query.get(name)}
            return platform, known[names[0]], known
    return "link", None, {}


def form_answers(form: FormData) -> list[RawAnswer]:
    """The answers of a page that was sent without scripts.

    Their ids come from the page and the value: sending the page twice is one row, a changed mind another.
    """
    page = str(form.get("page", ""))
    values: dict[tuple[int, int | None, str], list[str]] = {}
    for name, text in form.multi_items():
        question = re.fullmatch(r"answer:(\d{1,4})(?:\.(\d{1,6}))?:(.+)", name, re.DOTALL)
        if question and isinstance(text, str) and text.strip():
            turn = int(question[2]) if question[2] else None
            place = (int(question[1]), turn, clean(question[3]))
            values.setdefault(place, []).append(clean(text.strip()))
    return [
        RawAnswer(
            id=_form_id(page, position, turn, criterion, *texts),
            criterion=criterion,
            position=position,
            value="|".join(texts),
            turn=turn,
        )
        for (position, turn, criterion), texts in values.items()
    ]


def _form_id(page: str, position: int, turn: int | None, *words: str) -> str:
    place = str(position) if turn is None else f"{position}.{turn}"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "\x1f".join((page, place, *words))))


# --- what routes need ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    """A rater's browser. `framed`: it shows the study in MTurk's frame."""

    rater: str
    framed: bool
    words: Words
    """Of the language in which it reads the study."""


class Site:
    """The web site of one study: its state, its templates and its keys."""

    def __init__(
        self, settings: Settings, study_state: StudyState, templates: Environment, signer: Signer
    ) -> None:
        self.settings, self.study_state = settings, study_state
        self.templates, self.signer = templates, signer
        self._environments: dict[str, Environment] = {}
        self.chat: ChatHub | None = None
        """Where people talk, if this is a collection."""
        self.work = Workers(1 if study_state.database.is_sqlite else STEPS_AT_ONCE)
        self._cookie_name = signer.cookie_name("rater")
        self._device_name = signer.cookie_name("device")
        self._entries = RateLimit(ENTRIES_PER_MINUTE, 60)
        self._all_entries = RateLimit(ENTRIES_OF_ALL, 60)
        self._entries_of_one = RateLimit(ENTRIES_OF_ONE, 60)
        self._answers = RateLimit(ANSWERS_PER_MINUTE, 60)
        self._answers_of_address = RateLimit(ANSWERS_PER_ADDRESS, 60)
        self._prolific_keys = (
            prolific.ProlificKeys(settings.prolific_keys) if settings.prolific_keys is not None else None
        )
        _check_widgets(study_state.study, templates)
        language_notes(study_state.study)  # a language without a catalogue is said before anybody comes

    def check_socket(self, socket: WebSocket) -> None:
        """Not too many connections, and from our own pages only."""
        check_socket_origin(socket, self.settings)
        address = client_address(socket, self.settings)
        if self.settings.rate_limits and address:
            self._answers_of_address.check(address)

    def session(self, request: HTTPConnection) -> Session | None:
        token = request.cookies.get(self._cookie_name)
        text = self.signer.read("rater", token) if token else None
        if text is None:
            return None
        rater, kind, language, *_ = (*text.split("~"), "", "")
        request.state.framed = kind == "framed"
        return Session(rater, kind == "framed", self.words(request, language))

    def check_entry(self, request: Request, person: str | None) -> None:
        """Not too many come in, whatever cookie they bring."""
        if not self.settings.rate_limits:
            return
        address = client_address(request, self.settings)
        if address:
            self._entries.check(address)
        if person is not None:
            self._entries_of_one.check(person)
        self._all_entries.check("")

    def read_signature(self, request: Request) -> dict[str, str] | None:
        """What Prolific has signed about who comes in; None where no signature is asked for."""
        if self._prolific_keys is None:
            return None
        host = urlsplit(own_origin(request, self.settings)).hostname or ""
        return self._prolific_keys.identify(request.query_params, host, self.study_state.clock())

    def check_answering(self, request: Request, session: Session) -> None:
        """Nobody sends more than a person can."""
        if not self.settings.rate_limits:
            return
        self._answers.check(session.rater)
        address = client_address(request, self.settings)
        if address:
            self._answers_of_address.check(address)

    def require(self, request: Request) -> Session:
        session = self.session(request)
        if session is None:
            raise Refusal(NOT_IN, 401)
        return session

    def cookie(self, session: Session | None, framed: bool) -> str:
        """The cookie of a session; of none, one that ends it in the browser."""
        if session is None:
            return cookie(self._cookie_name, "", self.settings, framed=framed, max_age=0)
        kind = "framed" if session.framed else ""
        text = f"{session.rater}~{kind}~{session.words.language}"
        return cookie(self._cookie_name, self.signer.sign("rater", text), self.settings, framed=framed)

    def device(self, request: Request) -> str | None:
        """What we have called this browser, if it once asked to go on as somebody."""
        return self.signer.read("device", request.cookies.get(self._device_name, ""))

    def device_cookie(self, device: str, framed: bool) -> str:
        return cookie(self._device_name, self.signer.sign("device", device), self.settings, framed=framed)

    def words(self, request: HTTPConnection, wish: str = "") -> Words:
        """Of the language that is wished for, or else what the browser asks for, where there is a choice."""
        offered = offered_languages(self._texts)
        if wish not in offered:
            wish = choose_language(request.headers.get("accept-language", ""), offered)
        return words_of(wish, self._texts.translations.get(wish, NONE))

    @property
    def _texts(self) -> Study | Collection:
        """What the owner wrote. It may have been amended."""
        return self.study_state.study if self.chat is None else self.chat.log.collection

    def words_for(self, request: HTTPConnection) -> Words:
        """Of whoever sent a request, whether or not they have entered."""
        session = self.session(request)
        return session.words if session is not None else self.words(request)

    def page(self, name: str, words: Words, status: int = 200, **values: object) -> HTMLResponse:
        template = self._templates_in(words).get_template(f"{name}.html.j2")
        study = words.study(self.study_state.study)  # it may have been amended
        shared = {"title": study.title or study.name, "study": study}
        return HTMLResponse(template.render(**shared, **values), status)

    def _templates_in(self, words: Words) -> Environment:
        """The templates in a language; each keeps its own, compiled."""
        environment = self._environments.get(words.language)
        if environment is None or environment.globals["t"] is not words:
            environment = self.templates.overlay()
            environment.globals = {**self.templates.globals, "t": words}
            self._environments[words.language] = environment
        return environment

    def redirect(self, path: str) -> RedirectResponse:
        return RedirectResponse(f"{self.settings.root_path}{path}", 303)

    async def standing(
        self, session: Session, *, problem: str = "", filled_in: Mapping[str, str] | None = None
    ) -> HTMLResponse:
        """The page for where a rater stands."""
        note = ""
        if self.chat is not None:
            page, note = await chat_page(self, self.chat, session)
            if page is not None:
                return page
        visit = await self.work(self.study_state.visit, session.rater)
        csrf, words = self.signer.csrf(session.rater), session.words
        status = 422 if problem else 200
        if visit.task is not None:
            view = rating_page(self.study_state.study, visit.task, t=words)
            return self.rating(session, view, problem)
        if visit.state == "waiting":
            return self.page("waiting", words, visit=visit)
        if visit.state in ("consent", "instructions"):
            return self.page(visit.state, words, csrf=csrf)
        if visit.state == "survey":
            filled = filled_in or {}
            return self.page("survey", words, status, csrf=csrf, problem=problem, filled_in=filled)
        submit = mturk_submit(visit.parameters) if visit.platform == "mturk" and visit.code else None
        return self.page("end", words, visit=visit, submit=submit, note=note)

    def rating(self, session: Session, view: RatingPage, problem: str = "") -> HTMLResponse:
        """The page of a screen."""
        return self.page(
            "rate",
            session.words,
            422 if problem else 200,
            csrf=self.signer.csrf(session.rater),
            page=uuid.uuid4().hex,
            rater=self.signer.mac("outbox", session.rater)[:16],
            view=view,
            problem=problem,
        )


def _check_widgets(study: Study, templates: Environment) -> None:
    """A scale of another package may name a widget that is not there: say so before a rater sees it."""
    widgets = vars(templates.get_template("widgets.html.j2").module)
    for question in study.questions:
        if question.scale.widget not in widgets:
            raise UserError(
                f"{question.criterion}: there is no widget {question.scale.widget!r} "
                f"for the scale {question.scale.kind!r}"
            )


# Dependencies are coroutines: FastAPI would send plain functions to a thread each.


async def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


SiteHere = Annotated[Site, Depends(site_of)]


async def session_of(request: Request, site: SiteHere) -> Session:
    return site.require(request)


@dataclass(frozen=True, slots=True)
class Form:
    """A form that one of our own pages sent for this very session."""

    session: Session
    data: FormData

    def text(self, name: str) -> str:
        value = self.data.get(name, "")
        return clean(value) if isinstance(value, str) else ""


async def form_of(request: Request, site: SiteHere) -> Form:
    check_origin(request, site.settings)
    session = site.require(request)
    site.check_answering(request, session)
    form = Form(session, await request.form())
    site.signer.check_csrf(form.session.rater, form.text("csrf"))
    return form


async def script_session(
    request: Request, site: SiteHere, x_csrf_token: Annotated[str | None, Header()] = None
) -> Session:
    """The session of a request that a script of one of our own pages sent."""
    check_origin(request, site.settings)
    session = site.require(request)
    site.check_answering(request, session)
    site.signer.check_csrf(session.rater, x_csrf_token)
    return session


SessionHere = Annotated[Session, Depends(session_of)]
ScriptSession = Annotated[Session, Depends(script_session)]
FormHere = Annotated[Form, Depends(form_of)]


# --- routes -------------------------------------------------------------------------------------------------

router = APIRouter()


@router.get("/", include_in_schema=False)
async def enter(request: Request, site: SiteHere) -> Response:
    platform, external, parameters = arrival(request.query_params)
    session = site.session(request)
    words = site.words(request, request.query_params.get(LANGUAGE, ""))
    if request.query_params.get("assignmentId") == _PREVIEW:
        request.state.framed = True
        return site.page("preview", words)
    if platform == "link" and session is not None and prolific.TOKEN not in request.query_params:
        return site.redirect("/study")
    site.check_entry(request, external)
    signed = site.read_signature(request)
    if signed is not None:
        platform, external, parameters = arrival(signed)
    if site.chat is not None:
        parameters |= site.chat.group_of(request.query_params)
    if len(offered_languages(site.study_state.study)) > 1:
        parameters |= {LANGUAGE: words.language}
    framed = request.state.framed = platform == "mturk"
    device = site.device(request)
    browser = Browser(session.rater if session else None, device) if signed is None else None
    study_state = site.study_state
    response: Response
    try:
        rater = await site.work(study_state.enter, platform, external, parameters, browser)
    except Elsewhere as refusal:
        device = device or secrets.token_hex(16)
        code = await site.work(
            ask_to_resume, study_state.database, refusal.rater, device, study_state.clock()
        )
        response = site.page("elsewhere", words, refusal.status, code=code)
        response.headers.append("set-cookie", site.device_cookie(device, framed))
        return response
    except Repetition as refusal:  # the page at the end, with its code, is not for this assignment
        response = site.page("repetition", words, refusal.status, platform=platform)
        response.headers.append("set-cookie", site.cookie(None, framed))
        return response
    response = site.redirect("/study")
    response.headers.append("set-cookie", site.cookie(Session(rater, framed, words), framed))
    return response


@router.head("/", include_in_schema=False)
@router.head("/study", include_in_schema=False)
async def look_from_outside() -> Response:
    """For monitors and previews: nobody comes in, and no screen is handed out."""
    return HTMLResponse("")


@router.get("/study", include_in_schema=False)
async def show_standing(site: SiteHere, session: SessionHere) -> Response:
    return await site.standing(session)


@router.post("/study/consent", include_in_schema=False)
async def consent(site: SiteHere, form: FormHere) -> Response:
    await site.work(site.study_state.agree, form.session.rater)
    return site.redirect("/study")


@router.post("/study/decline", include_in_schema=False)
async def decline(site: SiteHere, form: FormHere) -> Response:
    await site.work(site.study_state.decline, form.session.rater)
    return site.redirect("/study")


@router.get("/study/leave", include_in_schema=False)
async def ask_whether_to_leave(site: SiteHere, session: SessionHere) -> Response:
    csrf, is_collection = site.signer.csrf(session.rater), site.chat is not None
    return site.page("leave", session.words, csrf=csrf, is_collection=is_collection)


@router.post("/study/leave", include_in_schema=False)
async def leave(site: SiteHere, form: FormHere) -> Response:
    rater = form.session.rater
    if site.chat is not None:
        await site.chat.do(lambda host, now: host.leave(rater, now))
        state = await site.work(site.study_state.state_of, rater)
        if state not in ("consent", "instructions", "working"):  # whoever has talked is paid for it
            return site.redirect("/study")
    await site.work(site.study_state.withdraw, rater)
    return site.redirect("/study")


@router.get("/study/back", include_in_schema=False)
async def go_back(
    site: SiteHere, session: SessionHere, at: Annotated[int, Query(ge=0, le=1000)] = 0
) -> Response:
    """The page before the one at output `at` of the screen in hand, to be corrected."""
    earlier = await site.work(site.study_state.look_back, session.rater, at)
    if earlier is None:
        return site.redirect("/study")
    task, place = earlier
    return site.rating(session, rating_page(site.study_state.study, task, place, t=session.words))


@router.get("/study/feedback/{assignment}", include_in_schema=False)
async def explain(site: SiteHere, session: SessionHere, assignment: int) -> Response:
    """How a training screen went, with what was shown and answered."""
    feedback = await site.work(site.study_state.feedback, session.rater, assignment)
    view = rating_page(site.study_state.study, feedback.task, together=True, t=session.words)
    return site.page("feedback", session.words, feedback=feedback, view=view)


@router.post("/study/begin", include_in_schema=False)
async def begin(site: SiteHere, form: FormHere) -> Response:
    await site.work(site.study_state.begin, form.session.rater)
    return site.redirect("/study")


@router.post("/study/survey", include_in_schema=False)
async def answer_survey(site: SiteHere, form: FormHere) -> Response:
    filled_in = {q.name: form.text(f"survey:{q.name}") for q in site.study_state.study.survey}
    try:
        shown = form.session.words.study(site.study_state.study).survey
        await site.work(site.study_state.answer_survey, form.session.rater, filled_in, shown)
    except Refusal as refusal:
        if refusal.status != 422:
            raise
        return await site.standing(
            form.session, problem=form.session.words(refusal.message), filled_in=filled_in
        )
    return site.redirect("/study")


@router.post("/study/answers", include_in_schema=False)
async def answer_without_scripts(site: SiteHere, form: FormHere) -> Response:
    number, position = form.text("assignment"), form.text("comment_on")
    if not re.fullmatch(r"[0-9]{1,9}", number) or not re.fullmatch(r"[0-9]{0,3}", position):
        raise Refusal("this page is not complete: reload it", 422)
    comment_on = int(position) if position else None
    answers = form_answers(form.data)
    submit = site.study_state.submit
    try:
        receipt = await site.work(
            submit, form.session.rater, int(number), answers, form.text("comment"), comment_on
        )
    except Refusal as refusal:
        if refusal.status != 422:
            raise
        return await site.standing(form.session, problem=form.session.words(refusal.message))
    return site.redirect(f"/study/feedback/{number}" if receipt.has_feedback else "/study")


@router.post("/api/answers", response_model=Receipt, responses=PROBLEMS, tags=["rater"])
async def answer(site: SiteHere, session: ScriptSession, body: Answers) -> Response:
    """Store answers. An answer that was sent before is acknowledged again and stays one row."""
    submit = site.study_state.submit
    receipt = await site.work(
        submit, session.rater, body.assignment, body.answers, body.comment, body.comment_on
    )
    return JSONResponse(asdict(receipt))


class SignOfLife(BaseModel):
    """Which screen somebody is at."""

    model_config = ConfigDict(extra="forbid")

    assignment: int = Field(ge=1, le=2**31 - 1)


@router.post("/api/alive", status_code=204, responses=PROBLEMS, tags=["rater"])
async def show_life(site: SiteHere, session: ScriptSession, body: SignOfLife) -> None:
    """Keep the screen for somebody who is reading."""
    await site.work(site.study_state.show_life, session.rater, body.assignment)
