"""What a running study remembers. Rows of `answer` are only ever added; states change elsewhere.

Times are seconds since 1970 (UTC) in double precision: one type on both databases, and a lease is a
comparison.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ColumnElement

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1: a database holds one study
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),  # the study as JSON
    Column("source", Text, nullable=False),  # the file as it was written
    Column("hash", String(64), nullable=False),
    Column("version", Text, nullable=False),
    Column("secret", String(64), nullable=False),  # signs cookies and form tokens
    Column("admin_hash", String(64)),  # sha256 of the admin's token
    Column("created_at", Double, nullable=False),
    Column("address", Text),  # where people find it
)

study_version = Table(
    "study_version",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 1, as the study began
    Column("document", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at", Double, nullable=False),
)

screen = Table(
    "screen",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(10), nullable=False),  # main, check, degraded, training
    Column("item", Text, nullable=False),
    Column("criteria", Text, nullable=False),  # JSON list
    Column("group_no", Integer, nullable=False),
    Column("place", Integer, nullable=False),  # among the screens of its group; training: the attempt
    Column("block_no", Integer, nullable=False),
    Column("target", Integer, nullable=False),
    Column("taken", Integer, nullable=False),  # assignments that count: done, or open and not expired
    Index("ix_screen_order", "kind", "group_no", "block_no", "id"),
    Index(  # those that have room, as they are handed out
        "ix_screen_free",
        *("kind", "group_no", "block_no", "taken", "id"),
        sqlite_where=text("taken < target"),
        postgresql_where=text("taken < target"),
    ),
)

rater = Table(
    "rater",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("external", Text),  # the platform's name for the person
    Column("platform", String(12), nullable=False),  # link, prolific, mturk
    Column("parameters", Text, nullable=False),  # JSON: STUDY_ID, SESSION_ID, assignmentId …
    Column(
        "state", String(14), nullable=False
    ),  # consent, instructions, training, working, survey, done, screened
    Column("entered_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("group_no", Integer),
    Column("attempts", Integer, nullable=False),  # at the training
    Column("checks_failed", Integer, nullable=False),
    Column("blocked", Boolean, nullable=False),
    Column("excluded", Boolean, nullable=False),
    Column("code", String(16), nullable=False),
    Column("survey", Text),  # JSON
    Column("waiting_since", Double),  # others hold all screens that are left
    Column("extra", Integer),  # screens on top of what the study gives everybody
    UniqueConstraint("platform", "external"),
)

assignment = Table(
    "assignment",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("screen_id", Integer, ForeignKey("screen.id"), nullable=False),
    Column("rater_id", String(32), ForeignKey("rater.id"), nullable=False),
    Column("status", String(8), nullable=False),  # open, done, expired, late
    Column("turn", Integer, nullable=False),  # how many raters had this screen before
    Column("given_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("done_at", Double),
    UniqueConstraint("screen_id", "rater_id"),
    Index("ix_assignment_status", "status", "expires_at"),
    Index("ix_assignment_rater_id", "rater_id", "status"),
)


class NextNumber(ColumnElement[int]):
    """The number of a new answer. On PostgreSQL, where several count at once, a sequence gives it."""

    type = Integer()
    inherit_cache = True


@compiles(NextNumber)
def _count_on(element: NextNumber, compiler: Any, **_: Any) -> str:
    return "(SELECT coalesce(max(number), 0) + 1 FROM answer)"


@compiles(NextNumber, "postgresql")
def _draw(element: NextNumber, compiler: Any, **_: Any) -> str:
    return "nextval('answer_number')"


answer = Table(
    "answer",
    metadata,
    Column("id", String(36), primary_key=True),  # made by the rater's page, so that sending twice is one row
    Column("number", Integer, nullable=False, default=NextNumber()),  # the order of arrival
    Column("assignment_id", Integer, ForeignKey("assignment.id"), nullable=False),
    Column("rater_id", String(32), ForeignKey("rater.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("system", Text, nullable=False),
    Column("against", Text),
    Column("output", Text),
    Column("criterion", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("given_at", Double, nullable=False),
    Column("received_at", Double, nullable=False),
    Column("seconds", Double),
    Column("shown_position", Integer),
    Column("version", Integer),  # of the study, as it was when this was answered
    Column("turn", Integer),  # of the dialogue, from 0, where it is about one
    Index("ix_answer_assignment_id", "assignment_id"),
    Index("ix_answer_number", "number", unique=True),
)

comment = Table(
    "comment",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Integer, ForeignKey("assignment.id"), nullable=False),
    Column("rater_id", String(32), ForeignKey("rater.id"), nullable=False),
    Column("system", Text),  # whose output it is about, where the page showed one alone
    Column("text", Text, nullable=False),
    Column("received_at", Double, nullable=False),
    Index("ix_comment_assignment_id", "assignment_id"),
)

media_file = Table(  # images and sounds that some version of the study shows, by content
    "media_file",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("type", String(20), nullable=False),
    Column("size", Integer, nullable=False),
)

media_piece = Table(  # part of a file can be read without the rest
    "media_piece",
    metadata,
    Column("hash", String(64), ForeignKey("media_file.hash"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 0
    Column("content", LargeBinary, nullable=False),
)

admin_session = Table(
    "admin_session",
    metadata,
    Column("id", String(64), primary_key=True),  # sha256 of what the cookie holds
    Column("began_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("browser", Text, nullable=False),
    Column("admin", String(80)),  # nothing for whoever had the owner's own link
)

admin = Table(
    "admin",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("role", String(8), nullable=False),  # owner, helper, viewer
    Column("token_hash", String(64)),  # sha256 of a link that was not used yet
    Column("added_at", Double, nullable=False),
)

decision = Table(  # of an admin about a disputed item; rows are only ever added, the latest counts
    "decision",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", Text, nullable=False),
    Column("system", Text, nullable=False),
    Column("against", Text),
    Column("criterion", Text, nullable=False),
    Column("value", Text),  # nothing takes an earlier decision back
    Column("reason", Text, nullable=False),
    Column("admin", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("version", Integer, nullable=False),  # of the study
)

resume_request = Table(
    "resume_request",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("rater_id", String(32), ForeignKey("rater.id"), nullable=False),
    Column("device", String(32), nullable=False),  # the browser that wants to go on as this rater
    Column("asked_at", Double, nullable=False),
    Column("is_allowed", Boolean, nullable=False),
    UniqueConstraint("rater_id", "device"),
)

event = Table(
    "event",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("rater_id", String(32)),
    Column("kind", String(20), nullable=False),  # entered, trained, screened, blocked, excluded, …
    Column("detail", Text, nullable=False),
)

collection = Table(  # has a row where people are collected who talk, not raters who judge
    "collection",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("document", Text, nullable=False),  # the collection as JSON
    Column("source", Text, nullable=False),  # the file as it was written
    Column("n_plans", Integer),  # conversations that may be held; nothing for any number
)

plan = Table(
    "plan",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 0
    Column("document", Text, nullable=False),  # a dialogue without turns, with what each side reads
)

chat_event = Table(  # the log: rows are only ever added, by whoever holds the lock of `writing`
    "chat_event",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 1, without a gap
    Column("at", Double, nullable=False),
    Column("kind", String(12), nullable=False),
    Column("room", Integer),
    Column("person", String(32)),
    Column("body", Text, nullable=False),  # JSON
)

presence = Table(
    "presence",
    metadata,
    Column("person", String(32), primary_key=True),
    Column("seen_at", Double, nullable=False),
    Index("ix_presence_seen_at", "seen_at"),
)

chat_signal = Table(  # told, not kept: who types, what arrived, what a bot has said so far
    "chat_signal",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("room", Integer, nullable=False),
    Column("sender", String(32), nullable=False),  # a person, or nothing for a bot
    Column("frame", Text, nullable=False),  # JSON, as pages get it
    sqlite_autoincrement=True,  # numbers of rows that were deleted do not come again
)
