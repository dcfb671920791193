"""The admin's page of a collection: how far it is, every conversation, everybody's pay, and downloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel

from palaver.server.admin import Session, SiteHere
from palaver.server.chat_records import conversations_of, people_of, ratings_of

router = APIRouter(prefix="/admin", include_in_schema=False)
NEWEST = 200
"""Conversations and people that the page lists; the downloads have all."""


@router.get("/conversations", response_class=HTMLResponse)
def show_conversations(site: SiteHere, session: Session) -> Response:
    database = site.study_state.database
    held, people = list(conversations_of(database)), people_of(database)
    page = site.pages.page(
        "admin_conversations.html.j2",
        study=site.study_state.study,
        endings=_counts(conversation.ending for conversation in held),
        pay=_counts(person.pay for person in people),
        exits=_counts(person.exit for person in people),
        held=held[: -NEWEST - 1 : -1],
        people=people[: -NEWEST - 1 : -1],
    )
    return HTMLResponse(page)


@router.get("/conversations.jsonl")
def download_conversations(site: SiteHere, session: Session) -> Response:
    return _lines(conversations_of(site.study_state.database), "conversations.jsonl")


@router.get("/people.jsonl")
def download_people(site: SiteHere, session: Session) -> Response:
    return _lines(people_of(site.study_state.database), "people.jsonl")


@router.get("/ratings.jsonl")
def download_ratings(site: SiteHere, session: Session) -> Response:
    return _lines(ratings_of(site.study_state.database), "ratings.jsonl")


def _counts(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items()))


def _lines(rows: Iterable[BaseModel], name: str) -> Response:
    def encoded() -> Iterator[bytes]:
        for row in rows:
            yield row.model_dump_json(exclude_none=True).encode() + b"\n"

    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(encoded(), media_type="application/x-ndjson", headers=headers)
