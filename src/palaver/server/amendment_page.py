"""The admin's page on which a study is changed while it runs: first what would change, then the change.

The rules are those of `palaver study amend`: `compare_studies` says what may change, `StudyState.amend`
changes it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import escape
from sqlalchemy import select

from palaver.errors import UserError
from palaver.server.admin import AdminSite, Manager, SiteHere
from palaver.server.admin_sessions import AdminSession
from palaver.server.editions import Edition
from palaver.server.refusal import Refusal, clean
from palaver.server.security import MAX_BODY
from palaver.server.tables import study_version
from palaver.studies.amendment import Amendment, compare_studies
from palaver.studies.design import Served, parse_study

_REST = 20_000
"""Bytes of a request that are not the study."""

router = APIRouter(prefix="/admin/amend")


@router.get("", response_class=HTMLResponse, include_in_schema=False)
def show(site: SiteHere, session: Manager) -> Response:
    if site.is_collection:
        raise Refusal("a collection is changed with palaver collect amend", 404)
    edition = site.study_state.newest()
    return _page(site, session, edition, edition.source)


@router.post("", include_in_schema=False)
def amend(
    request: Request,
    site: SiteHere,
    session: Manager,
    file: UploadFile | None = None,
    text: Annotated[str, Form()] = "",
    confirmed: Annotated[str, Form()] = "",
    csrf: Annotated[str, Form()] = "",
) -> Response:
    """Say what a study file would change. `confirmed`: make the change, if it is the one that was shown."""
    site.check_form(request, session, csrf)
    edition = site.study_state.newest()
    try:
        text = _read(file, text)
        study = parse_study(
            text, "the study file", edition.study.media, served=Served(edition.study, edition.source)
        )
        amendment = compare_studies(edition.study, study)
        if confirmed and confirmed == site.mark_of_draft(edition.version, text):
            site.study_state.amend(study, text, by=session.name)
            return RedirectResponse(f"{site.home}/amend", 303)
    except UserError as error:
        return _page(site, session, edition, text, problem=error)
    return _page(site, session, edition, text, amendment=amendment)


def _read(file: UploadFile | None, text: str) -> str:
    """The study as text: the file where one was chosen, or else what the page's field holds."""
    content = file.file.read() if file is not None else b""
    if content:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refusal("the study file is not UTF-8", 422) from None
    text = clean(text.replace("\r\n", "\n"), "the study file")  # browsers send the lines of a field so
    if len(text.encode()) + text.count("\n") > MAX_BODY - _REST:
        raise Refusal("the study file is too large for this page: use palaver study amend", 413)
    return text


def _page(
    site: AdminSite,
    session: AdminSession,
    edition: Edition,
    text: str,
    *,
    amendment: Amendment | None = None,
    problem: UserError | None = None,
) -> Response:
    with site.study_state.database.reading() as connection:
        since = connection.execute(
            select(study_version.c.at).where(study_version.c.number == edition.version)
        ).scalar_one()
    page = site.pages.page(
        "admin_amend.html.j2",
        study=edition.study,
        version=edition.version,
        since=since,
        now=site.study_state.clock(),
        text=escape(text),  # as it is: data from elsewhere is scrubbed, and this comes back to be stored
        amendment=amendment,
        problem=problem,
        mark=site.mark_of_draft(edition.version, text),
        csrf=site.csrf(session),
    )
    is_refused = problem is not None or (amendment is not None and amendment.refusals)
    return HTMLResponse(page, 422 if is_refused else 200)
