"""The web site of one study: who may send what, in which session and which language.

SQLite lets one writer in at a time, so one thread per process makes the calls (`Workers`): requests queue
here, in order, instead of polling for the database's lock. PostgreSQL takes several steps at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, ParamSpec, TypeVar
from urllib.parse import urlsplit

from fastapi import Depends, Header
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment
from starlette.datastructures import FormData
from starlette.requests import HTTPConnection, Request
from starlette.websockets import WebSocket

from palaver.collection.settings import Collection
from palaver.errors import Sentence, UserError
from palaver.schema import Study
from palaver.server import prolific
from palaver.server.chat import ChatHub
from palaver.server.refusal import Refusal, clean
from palaver.server.security import (
    RateLimit,
    Signer,
    check_origin,
    check_socket_origin,
    client_address,
    cookie,
    own_origin,
)
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.words import (
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
