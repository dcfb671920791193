"""What is known of one rater, for the admin: answers with their texts, comments, survey, diary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select

from palaver.schema import Item
from palaver.schema.study import plain_text
from palaver.server.database import Database
from palaver.server.editions import Edition
from palaver.server.records import LEFT, Rater, change_rater, log
from palaver.server.refusal import Refusal
from palaver.server.tables import answer, assignment, comment, event, rater, screen

MOST = 500
"""Screens, comments or people on one page; the downloads have all."""
MOST_EXTRA = 10_000


@dataclass(frozen=True, slots=True)
class AnsweredScreen:
    """A screen that a rater had."""

    assignment: Row[Any]
    item: Item
    answers: tuple[Row[Any], ...]
    """In the order in which they came: of several about one thing the latest counts."""
    comments: tuple[Row[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterRecord:
    """Everything about one rater."""

    rater: Row[Any]
    screens: tuple[AnsweredScreen, ...]
    survey: Mapping[str, str]
    diary: tuple[Row[Any], ...]


def read_rater(database: Database, edition: Edition, rater_id: str) -> RaterRecord:
    """A rater with the newest screens."""
    with database.reading() as connection:
        me = connection.execute(select(rater).where(rater.c.id == rater_id)).first()
        if me is None:
            raise Refusal("there is no such rater", 404)
        held = connection.execute(
            select(assignment, screen.c.kind, screen.c.item)
            .join(screen, screen.c.id == assignment.c.screen_id)
            .where(assignment.c.rater_id == rater_id)
            .order_by(assignment.c.id.desc())
            .limit(MOST)
        ).all()
        answers = _by_assignment(connection.execute(_of(answer, rater_id).order_by(answer.c.number)).all())
        comments = _by_assignment(connection.execute(_of(comment, rater_id).order_by(comment.c.id)).all())
        diary = connection.execute(select(event).where(event.c.rater_id == rater_id).order_by(event.c.id))
        screens = [
            AnsweredScreen(
                row,
                edition.catalogue.content(row.screen_id).item,
                tuple(answers.get(row.id, ())),
                tuple(comments.get(row.id, ())),
            )
            for row in held
        ]
        return RaterRecord(
            rater=me,
            screens=tuple(screens),
            survey=json.loads(me.survey) if me.survey else {},
            diary=tuple(diary),
        )


def _of(table: Any, rater_id: str) -> Any:
    return select(table).where(table.c.rater_id == rater_id)


def _by_assignment(rows: Sequence[Row[Any]]) -> dict[int, list[Row[Any]]]:
    by_assignment: dict[int, list[Row[Any]]] = {}
    for row in rows:
        by_assignment.setdefault(row.assignment_id, []).append(row)
    return by_assignment


def texts_of(item: Item) -> list[tuple[str, str]]:
    """What an item shows, as plain text: (what it is, the text)."""
    texts = [
        ("context", plain_text(item.context)),
        ("knowledge", item.knowledge),
        ("reference", item.reference),
    ]
    texts += [(output.system, plain_text(output.text or output.dialogue)) for output in item.outputs]
    return [(what, text) for what, text in texts if text]


# --- everybody ----------------------------------------------------------------------------------------------


def find_raters(database: Database, text: str, *, personal: bool) -> Sequence[Row[Any]]:
    """Raters by their completion code or id; with `personal` also by the platform's name for them."""
    text = text.strip()
    if not text:
        return []
    wanted: list[ColumnElement[bool]] = [rater.c.code == text.upper()]
    if len(text) >= 6 and text.isalnum():
        wanted.append(rater.c.id.startswith(text.lower(), autoescape=True))
    if personal:
        wanted.append(func.lower(rater.c.external) == text.lower())
    query = select(rater).where(or_(*wanted)).order_by(rater.c.entered_at).limit(MOST)
    with database.reading() as connection:
        return connection.execute(query).all()


def read_comments(database: Database) -> Sequence[Row[Any]]:
    """What raters wrote beside their answers, the newest first."""
    query = (
        select(comment, screen.c.item, screen.c.kind, rater.c.external, rater.c.excluded)
        .join(assignment, assignment.c.id == comment.c.assignment_id)
        .join(screen, screen.c.id == assignment.c.screen_id)
        .join(rater, rater.c.id == comment.c.rater_id)
        .order_by(comment.c.id.desc())
        .limit(MOST)
    )
    with database.reading() as connection:
        return connection.execute(query).all()


def read_surveys(database: Database) -> list[tuple[Row[Any], dict[str, str]]]:
    """Who answered the questions at the end, and what; those who finished last come first."""
    query = select(rater).where(rater.c.survey.is_not(None)).order_by(rater.c.seen_at.desc()).limit(MOST)
    with database.reading() as connection:
        return [(row, json.loads(row.survey)) for row in connection.execute(query)]


def read_diary(database: Database) -> Sequence[Row[Any]]:
    """What happened, the newest first."""
    query = (
        select(event, rater.c.external)
        .outerjoin(rater, rater.c.id == event.c.rater_id)
        .order_by(event.c.id.desc())
        .limit(MOST)
    )
    with database.reading() as connection:
        return connection.execute(query).all()


# --- more work for one --------------------------------------------------------------------------------------


def raise_quota(database: Database, rater_id: str, extra: int, now: float, by: str) -> None:
    """Let a rater answer so many screens on top of what the study gives everybody; 0 takes it back.

    Somebody who has finished goes on; the survey is not asked a second time.
    """
    if not 0 <= extra <= MOST_EXTRA:
        raise Refusal(f"expected 0 to {MOST_EXTRA:,} more screens, found {extra:,}", 422)
    with database.writing() as connection:
        me: Rater | None = connection.execute(select(rater).where(rater.c.id == rater_id)).first()
        if me is None:
            raise Refusal("there is no such rater", 404)
        if me.blocked or me.state in ("screened", "declined", "withdrawn"):
            raise Refusal("this person is no longer in the study", 409)
        change_rater(connection, rater_id, extra=extra)
        if extra > (me.extra or 0) and me.state in (*LEFT, "survey"):
            change_rater(connection, rater_id, state="working")
        log(connection, now, rater_id, "quota", f"{extra} more screens, by {by}")
