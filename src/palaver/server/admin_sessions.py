"""Who is signed in as the admin: rows of the database, so that a session can be seen and ended.

The browser's cookie holds a random text; the database knows only its hash.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select, update

from palaver.server.admin_accounts import RIGHTS, Right, Role, hash_token
from palaver.server.database import Database
from palaver.server.tables import admin, admin_session

LASTS = 7 * 24 * 3600
"""Seconds after which the admin has to sign in again."""
_NEWS = 60.0
"""Seconds between two notes of when a session was seen."""


_ROLE = func.coalesce(admin.c.role, "owner").label("role")
_SESSIONS = select(admin_session, _ROLE).outerjoin(admin, admin.c.name == admin_session.c.admin)


@dataclass(frozen=True, slots=True)
class AdminSession:
    id: str
    began_at: float
    seen_at: float
    browser: str
    admin: str | None = None
    """The name of a named admin; None for whoever had the owner's own link."""
    role: Role = "owner"

    @property
    def name(self) -> str:
        return "the owner" if self.admin is None else f"{self.admin} ({self.role})"

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.role]


def begin_session(database: Database, browser: str, now: float, name: str | None = None) -> str:
    """A new session, of a named admin or the owner; the text that its cookie holds."""
    token = secrets.token_urlsafe(32)
    row = {"id": hash_token(token), "began_at": now, "seen_at": now, "browser": browser, "admin": name}
    with database.writing() as connection:
        connection.execute(delete(admin_session).where(admin_session.c.began_at <= now - LASTS))
        connection.execute(insert(admin_session).values(row))
    return token


def find_session(database: Database, token: str, now: float) -> AdminSession | None:
    """The session of a cookie, if it has not ended."""
    query = _SESSIONS.where(admin_session.c.id == hash_token(token), admin_session.c.began_at > now - LASTS)
    with database.reading() as connection:
        row = connection.execute(query).first()
    if row is None:
        return None
    if row.seen_at < now - _NEWS:
        seen = update(admin_session).where(admin_session.c.id == row.id).values(seen_at=now)
        with database.writing() as connection:
            connection.execute(seen)
    return AdminSession(**row._mapping)


def list_sessions(database: Database, now: float) -> Sequence[AdminSession]:
    """Everybody who is signed in, the latest seen first."""
    query = _SESSIONS.where(admin_session.c.began_at > now - LASTS)
    with database.reading() as connection:
        rows = connection.execute(query.order_by(admin_session.c.seen_at.desc())).all()
    return [AdminSession(**row._mapping) for row in rows]


def end_session(database: Database, session_id: str) -> None:
    with database.writing() as connection:
        connection.execute(delete(admin_session).where(admin_session.c.id == session_id))
