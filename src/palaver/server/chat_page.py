"""The page on which people talk: the questions it asks, and what its reader has been given to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, JSONResponse, Response

from palaver.collection.host import Host
from palaver.collection.records import Exit
from palaver.collection.settings import Collection
from palaver.schema import Question
from palaver.server.chat import ChatHub
from palaver.server.chat_log import read_plan
from palaver.server.chat_view import reading
from palaver.server.rating_page import Widget
from palaver.server.refusal import Refusal
from palaver.server.site import Session, SessionHere, Site, SiteHere
from palaver.server.words import Words


@dataclass(frozen=True, slots=True)
class Form:
    """The questions about one kind of thing; the page makes a copy of it for each."""

    name: str
    title: str
    button: str
    widgets: tuple[Widget, ...]


def forms(collection: Collection, t: Words) -> list[Form]:
    """What is asked, and when."""
    is_beside = collection.partners.compare == "side by side"
    columns = (t("Left"), t("Right")) if is_beside else (t("First"), t("Second"))
    replies = _widgets(t, collection.about_replies, columns)
    asked = [
        Form("own", t("About your message"), t("Save"), _widgets(t, collection.about_own)),
        Form("partner", t("About this message"), t("Save"), _widgets(t, collection.about_partner)),
        Form("replies", t("The two replies compared"), t("Vote"), replies),
        Form("whole", t("About the conversation"), t("Send"), _widgets(t, collection.about_whole)),
        Form("pair", t("The two compared"), t("Send"), _widgets(t, collection.about_pair, columns)),
    ]
    return [form for form in asked if form.widgets]


def _widgets(t: Words, questions: tuple[Question, ...], columns: tuple[str, ...] = ()) -> tuple[Widget, ...]:
    return tuple(
        Widget(t.question(question), 0, "", t.choices(question, columns), "") for question in questions
    )


@dataclass(frozen=True, slots=True)
class Stay:
    """How somebody's stay ended."""

    reason: str = ""
    exit: Exit = "here"


async def chat_page(site: Site, chat: ChatHub, session: Session) -> tuple[HTMLResponse | None, Stay]:
    """The page of the conversations for somebody who may take part; for others, how they left."""

    def look(host: Host, now: float) -> Stay:
        me = host.lobby.visitors.get(session.rater)
        return Stay(me.reason, me.exit) if me is not None else Stay()

    state = await site.work(site.study_state.state_of, session.rater)
    stay: Stay = await chat.do(look)
    if state != "working":
        return None, stay
    csrf = site.signer.csrf(session.rater)
    collection, t = chat.log.collection, session.words
    instructions = t.study(collection.frame()).instructions  # as amended: the site's own study is older
    page = site.page(
        "chat", t, csrf=csrf, collection=collection, instructions=instructions, forms=forms(collection, t)
    )
    return page, stay


router = APIRouter()


@router.get("/api/chat/reading", include_in_schema=False)
async def read(site: SiteHere, session: SessionHere) -> Response:
    """What the reader's side of the conversation has been given to read; nothing where nothing is read."""
    if site.chat is None:
        raise Refusal("there are no conversations here", 404)

    def find(host: Host, now: float) -> tuple[int | None, str] | None:
        room = host.lobby.room_of(session.rater)
        seat = room.seat_of(session.rater) if room is not None else None
        return (room.plan, seat.name) if room is not None and seat is not None else None

    place = await site.chat.do(find)
    shelf: dict[str, Any] | None = None
    if place is not None and place[0] is not None and site.chat.log.collection.knowledge is not None:
        plan = await site.work(read_plan, site.study_state.database, place[0])
        shelf = reading(plan, place[1])
    return JSONResponse(shelf)
