"""The admin's pages about items: which are disputed, and what was decided about them."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from palaver.server.admin import Decider, Reader, SiteHere
from palaver.server.admin_raters import page
from palaver.server.decisions import decision_lines, judged_items, settle
from palaver.server.rater_record import texts_of
from palaver.server.refusal import Refusal

router = APIRouter(prefix="/admin", include_in_schema=False)


@router.get("/items", response_class=HTMLResponse)
def show_items(site: SiteHere, session: Reader) -> Response:
    """The most disputed first."""
    judged = judged_items(site.study_state.database, site.study_state.newest())
    return page(site, session, "admin_items.html.j2", judged=judged)


@router.get("/decisions.jsonl")
def download_decisions(site: SiteHere, session: Reader) -> Response:
    headers = {"content-disposition": 'attachment; filename="decisions.jsonl"'}
    lines = decision_lines(site.study_state.database)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


@router.get("/items/{item_id:path}", response_class=HTMLResponse)
def show_item(site: SiteHere, session: Reader, item_id: str) -> Response:
    """An item with its texts, what raters said of it, and a form for each thing to decide."""
    edition = site.study_state.newest()
    item = next((item for item in edition.study.items if item.id == item_id), None)
    if item is None:
        raise Refusal("there is no such item", 404)
    judged = judged_items(site.study_state.database, edition, item_id)
    return page(site, session, "admin_item.html.j2", item=item, judged=judged, texts=texts_of(item))


@router.post("/items/{item_id:path}")
def decide_about_item(
    request: Request,
    site: SiteHere,
    session: Decider,
    item_id: str,
    criterion: Annotated[str, Form(max_length=1000)] = "",
    system: Annotated[str, Form(max_length=1000)] = "",
    value: Annotated[str, Form(max_length=1000)] = "",
    reason: Annotated[str, Form(max_length=5000)] = "",
    csrf: Annotated[str, Form()] = "",
) -> Response:
    """Settle what raters disagree on; an empty value takes a decision back."""
    site.check_form(request, session, csrf)
    edition, database = site.study_state.newest(), site.study_state.database
    chosen = [
        one
        for one in judged_items(database, edition, item_id)
        if (one.criterion, one.system) == (criterion, system)
    ]
    if not chosen:
        raise Refusal("nobody has judged this yet", 404)
    settle(database, edition, chosen[0], value, reason, by=session.name, now=site.study_state.clock())
    return RedirectResponse(f"{site.home}/items/{quote(item_id)}", 303)
