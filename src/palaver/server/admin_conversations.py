"""The admin's pages of a collection: how far it is, verdicts to decide about, everybody's pay, downloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from pydantic import BaseModel

from palaver.collection.payout import Account, Payout, pay_out
from palaver.collection.quality import Quality, decide
from palaver.collection.records import Conversation, Decision, Key, Person
from palaver.collection.review import DECISIONS, keys_of
from palaver.collection.standards import Standards, read_standards
from palaver.server.admin import AdminSite, PersonalReader, SiteHere
from palaver.server.chat_log import ChatLog
from palaver.server.chat_records import answers_about, conversations_of, people_of, ratings_of, read_records
from palaver.server.refusal import Refusal, clean

router = APIRouter(prefix="/admin", include_in_schema=False)
NEWEST = 200
"""Conversations and people that the page lists; the downloads have all."""


@dataclass(frozen=True)
class Review:
    """Everything that the pages show."""

    held: list[Conversation]
    people: list[Person]
    quality: Quality
    payout: Payout
    decisions: dict[Key, Decision]

    @property
    def verdicts(self) -> dict[str, str]:
        return {result.conversation: result.verdict for result in self.quality.results}

    @property
    def accounts(self) -> dict[str, Account]:
        return {account.participant: account for account in self.payout.accounts}


def _review(site: AdminSite) -> Review:
    """By the standards of the file as it is now: they may change at any time."""
    file = site.settings.collection_file
    standards = read_standards(file) if file is not None else Standards()
    held, people, decisions = read_records(site.study_state.database)
    quality = decide(site.checker.check(held, standards, people), decisions)
    return Review(held, people, quality, pay_out(held, quality, standards, people), decisions)


@router.get("/conversations", response_class=HTMLResponse)
def show_conversations(site: SiteHere, session: PersonalReader) -> Response:
    review = _review(site)
    page = site.pages.page(
        "admin_conversations.html.j2",
        study=site.study_state.study,
        review=review,
        endings=_counts(conversation.ending for conversation in review.held),
        exits=_counts(person.exit for person in review.people),
        held=review.held[: -NEWEST - 1 : -1],
        people=review.people[: -NEWEST - 1 : -1],
    )
    return HTMLResponse(page)


@router.get("/conversations/{conversation_id:path}", response_class=HTMLResponse)
def show_conversation(site: SiteHere, session: PersonalReader, conversation_id: str) -> Response:
    review = _review(site)
    conversation = next((c for c in review.held if c.id == conversation_id), None)
    if conversation is None:
        raise Refusal("there is no such conversation", 404)
    result = next((r for r in review.quality.results if r.conversation == conversation_id), None)
    page = site.pages.page(
        "admin_conversation.html.j2",
        study=site.study_state.study,
        conversation=conversation,
        result=result,
        decisions=review.decisions,
        answers=answers_about(site.study_state.database, conversation),
        csrf=site.csrf(session),
    )
    return HTMLResponse(page)


@router.post("/conversations/{conversation_id:path}")
def decide_about_conversation(
    request: Request,
    site: SiteHere,
    session: PersonalReader,
    conversation_id: str,
    decision: Annotated[str, Form(max_length=10)] = "",
    participant: Annotated[str, Form(max_length=200)] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
    csrf: Annotated[str, Form()] = "",
) -> Response:
    """Accept or reject a conversation, or one side of it."""
    site.check_form(request, session, csrf)
    key = (conversation_id, participant)
    if decision not in DECISIONS or key not in keys_of(_review(site).quality):
        raise Refusal("there is nothing such to decide", 422)
    made = Decision(DECISIONS[decision], clean(reason.strip(), "the reason"))
    ChatLog(site.study_state.database, site.study_state.clock).run(
        [lambda host, now: host.decide(key, made, now)]
    )
    return RedirectResponse(f"{site.home}/conversations/{conversation_id}", 303)


@router.get("/conversations.jsonl")
def download_conversations(site: SiteHere, session: PersonalReader) -> Response:
    return _lines(conversations_of(site.study_state.database), "conversations.jsonl")


@router.get("/people.jsonl")
def download_people(site: SiteHere, session: PersonalReader) -> Response:
    return _lines(people_of(site.study_state.database), "people.jsonl")


@router.get("/ratings.jsonl")
def download_ratings(site: SiteHere, session: PersonalReader) -> Response:
    return _lines(ratings_of(site.study_state.database), "ratings.jsonl")


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _lines(rows: Iterable[BaseModel], name: str) -> Response:
    def encoded() -> Iterator[bytes]:
        for row in rows:
            yield row.model_dump_json(exclude_none=True).encode() + b"\n"

    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(encoded(), media_type="application/x-ndjson", headers=headers)
