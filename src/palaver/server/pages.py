"""The rater's pages: come in, agree, read, answer, leave. Each route is one call of the study's state."""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.datastructures import FormData
from starlette.requests import Request

from palaver.server import prolific
from palaver.server.answers import RawAnswer, Storable
from palaver.server.chat_page import Stay, chat_page
from palaver.server.entry import Browser, Elsewhere, Repetition, ask_to_resume
from palaver.server.rating_page import RatingPage, rating_page
from palaver.server.refusal import Refusal, clean
from palaver.server.security import mturk_submit
from palaver.server.site import FormHere, ScriptSession, Session, SessionHere, Site, SiteHere
from palaver.server.study_state import Receipt
from palaver.server.words import LANGUAGE, offered_languages

_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
_MTURK = ("workerId", "assignmentId", "hitId", "turkSubmitTo")


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


# --- pages --------------------------------------------------------------------------------------------------


async def standing_page(
    site: Site, session: Session, *, problem: str = "", filled_in: Mapping[str, str] | None = None
) -> HTMLResponse:
    """The page for where a rater stands."""
    stay = Stay()
    if site.chat is not None:
        page, stay = await chat_page(site, site.chat, session)
        if page is not None:
            return page
    visit = await site.work(site.study_state.visit, session.rater)
    csrf, words = site.signer.csrf(session.rater), session.words
    status = 422 if problem else 200
    if visit.task is not None:
        view = rating_page(site.study_state.study, visit.task, t=words)
        return screen_page(site, session, view, problem)
    if visit.state == "waiting":
        return site.page("waiting", words, visit=visit)
    if visit.state in ("consent", "instructions"):
        course = site.chat.log.collection.conversation if site.chat is not None else None
        away = f"{course.grace_seconds:g}" if course is not None else ""
        return site.page(visit.state, words, csrf=csrf, away=away)
    if visit.state == "survey":
        filled = filled_in or {}
        return site.page("survey", words, status, csrf=csrf, problem=problem, filled_in=filled)
    submit = mturk_submit(visit.parameters) if visit.platform == "mturk" and visit.code else None
    has_waited = stay.exit == "waited"
    return site.page("end", words, visit=visit, submit=submit, note=stay.reason, has_waited=has_waited)


def screen_page(site: Site, session: Session, view: RatingPage, problem: str = "") -> HTMLResponse:
    """The page of a screen."""
    return site.page(
        "rate",
        session.words,
        422 if problem else 200,
        csrf=site.signer.csrf(session.rater),
        page=uuid.uuid4().hex,
        rater=site.signer.mac("outbox", session.rater)[:16],
        view=view,
        problem=problem,
    )


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
    return await standing_page(site, session)


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
    return screen_page(site, session, rating_page(site.study_state.study, task, place, t=session.words))


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
        return await standing_page(
            site, form.session, problem=form.session.words(refusal.message), filled_in=filled_in
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
        return await standing_page(site, form.session, problem=form.session.words(refusal.message))
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
