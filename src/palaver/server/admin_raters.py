"""The admin's pages about people: one rater, finding somebody, what raters wrote, the diary."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from palaver.server.admin import AdminSite, Decider, PersonalReader, Reader, SiteHere
from palaver.server.admin_sessions import AdminSession
from palaver.server.rater_record import (
    find_raters,
    raise_quota,
    read_comments,
    read_diary,
    read_rater,
    read_surveys,
    texts_of,
)

router = APIRouter(prefix="/admin", include_in_schema=False)


def page(site: AdminSite, session: AdminSession, template: str, **values: object) -> Response:
    """A page behind the first one."""
    shared = {
        "study": site.study_state.newest().study,
        "csrf": site.csrf(session),
        "now": site.study_state.clock(),
        "may": session.may,
    }
    return HTMLResponse(site.pages.page(template, **shared, **values))


@router.get("/raters/{rater_id}", response_class=HTMLResponse)
def show_rater(site: SiteHere, session: Reader, rater_id: str) -> Response:
    """One rater's answers, with the texts they are about."""
    edition = site.study_state.newest()
    record = read_rater(site.study_state.database, edition, rater_id)
    return page(site, session, "admin_rater.html.j2", record=record, texts_of=texts_of)


@router.post("/raters/{rater_id}/quota")
def change_quota(
    request: Request,
    site: SiteHere,
    session: Decider,
    rater_id: str,
    extra: Annotated[int, Form()] = 0,
    csrf: Annotated[str, Form()] = "",
) -> Response:
    """More screens for one rater."""
    site.check_form(request, session, csrf)
    raise_quota(site.study_state.database, rater_id, extra, site.study_state.clock(), session.name)
    return RedirectResponse(f"{site.home}/raters/{rater_id}", 303)


@router.get("/find", response_class=HTMLResponse)
def find(site: SiteHere, session: Decider, text: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Somebody by the completion code; a single one's page is opened at once."""
    raters = find_raters(site.study_state.database, text, personal=session.may("personal"))
    if len(raters) == 1:
        return RedirectResponse(f"{site.home}/raters/{raters[0].id}", 303)
    own_code = site.study_state.study.completion.code
    is_for_all = own_code is not None and text.strip() == own_code
    return page(site, session, "admin_find.html.j2", raters=raters, text=text, is_for_all=is_for_all)


@router.get("/texts", response_class=HTMLResponse)
def show_texts(site: SiteHere, session: PersonalReader) -> Response:
    """Comments and survey answers."""
    database = site.study_state.database
    return page(
        site,
        session,
        "admin_texts.html.j2",
        comments=read_comments(database),
        surveys=read_surveys(database),
    )


@router.get("/diary", response_class=HTMLResponse)
def show_diary(site: SiteHere, session: Reader) -> Response:
    """Who did what, and when."""
    return page(site, session, "admin_diary.html.j2", events=read_diary(site.study_state.database))
