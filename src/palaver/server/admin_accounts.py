"""People who run a study together: named admins, their roles, and the links by which they sign in.

A helper decides about raters and items without personal data: no platform ids and addresses, none of what
raters wrote in comments and the survey; raters go by the pseudonyms of `export --share`. A viewer only reads.
Answers to the study's questions are the data of the study, which all of them see.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from sqlalchemy import Row, delete, insert, select, update

from palaver.errors import UserError, nearest
from palaver.server.database import Database
from palaver.server.records import log
from palaver.server.tables import admin, admin_session

Role = Literal["owner", "helper", "viewer"]
Right = Literal["read", "decide", "personal", "manage"]
ROLES: tuple[Role, ...] = get_args(Role)
RIGHTS: Mapping[Role, frozenset[Right]] = {
    "owner": frozenset(get_args(Right)),
    "helper": frozenset(("read", "decide")),
    "viewer": frozenset(("read",)),
}
REFUSALS: Mapping[Right, str] = {
    "read": "a {role} may not see this",
    "decide": "a {role} may look and not decide: ask the owner of the study",
    "personal": "this is personal data, which a {role} may not see: ask the owner of the study",
    "manage": "only the owner of the study may do this",
}


def add_admin(database: Database, name: str, role: Role, now: float) -> str:
    """Name an admin; the token of a link that signs in once."""
    name = name.strip()
    if not name or len(name) > 80 or not name.isprintable():
        raise UserError(f"an admin's name has 1 to 80 letters, found {name!r}")
    token = secrets.token_urlsafe(24)
    with database.writing() as connection:
        if connection.execute(select(admin.c.name).where(admin.c.name == name)).first():
            raise UserError(f"there is an admin {name!r} already", "a new link: palaver study admin link")
        row = {"name": name, "role": role, "token_hash": hash_token(token), "added_at": now}
        connection.execute(insert(admin).values(row))
        log(connection, now, None, "admin added", f"{name} ({role})")
    return token


def new_link(database: Database, name: str) -> str:
    """The token of a new link; an earlier one that was not used ends."""
    token = secrets.token_urlsafe(24)
    with database.writing() as connection:
        known = update(admin).where(admin.c.name == name).values(token_hash=hash_token(token))
        if not connection.execute(known).rowcount:
            raise _unknown(database, name)
    return token


def remove_admin(database: Database, name: str, now: float) -> None:
    """Take an admin away; their sessions end at once."""
    with database.writing() as connection:
        connection.execute(delete(admin_session).where(admin_session.c.admin == name))
        if not connection.execute(delete(admin).where(admin.c.name == name)).rowcount:
            raise _unknown(database, name)
        log(connection, now, None, "admin removed", name)


def list_admins(database: Database) -> Sequence[Row[Any]]:
    """Everybody who was named."""
    with database.reading() as connection:
        return connection.execute(select(admin).order_by(admin.c.added_at, admin.c.name)).all()


def redeem_link(database: Database, token: str) -> str | None:
    """Whose link this is; it is then used up."""
    used = update(admin).where(admin.c.token_hash == hash_token(token)).values(token_hash=None)
    with database.writing() as connection:
        return connection.execute(used.returning(admin.c.name)).scalar()


def _unknown(database: Database, name: str) -> UserError:
    names = [row.name for row in list_admins(database)]
    return UserError(
        f"there is no admin {name!r}{nearest(name, names)}", f"known: {', '.join(names) or 'nobody'}"
    )


def hash_token(token: str) -> str:
    """As the database holds the tokens of links and sessions."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
