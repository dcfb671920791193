"""`palaver study admin`: who may run a study, beside its owner."""

from __future__ import annotations

import time
from typing import Annotated, cast

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.serving import checked_url, sign_in
from palaver.cli.study_database import ServedStudy, open_study
from palaver.errors import UsageError
from palaver.reports import lines
from palaver.server.admin_accounts import ROLES, Role, add_admin, list_admins, new_link, remove_admin
from palaver.server.database import Database
from palaver.server.oversight import served_address

ACTIONS = ("list", "add", "link", "remove")


def admin(
    action: Annotated[str, typer.Argument(help="What to do.", **options.choices(ACTIONS))],
    study: ServedStudy,
    name: Annotated[str | None, typer.Argument(help="Of the person.", metavar="[NAME]")] = None,
    role: Annotated[
        str, typer.Option("--role", help="What they may do.", **options.choices(ROLES))
    ] = "helper",
    public_url: options.PublicUrl = None,
    as_json: options.Json = False,
) -> None:
    """Name people who run a study with you: list, add, link, remove.

    A helper decides about raters and items and sees no personal data: no platform ids, no comments, no survey
    answers. A viewer only reads. An owner may do everything. `add` prints a link that signs in once, `link`
    another one; `remove` ends their sessions at once.

    Example: palaver study admin add study.toml Ana --role helper
    """
    if (name is None) != (action == "list"):
        raise UsageError(f"palaver study admin {action}: {'NAME is missing' if name is None else 'no NAME'}")
    with open_study(study) as database:
        if name is None:
            _list(database, as_json=as_json)
            return
        if action == "remove":
            remove_admin(database, name, time.time())
            typer.echo(f"{name} is no longer an admin")
            return
        address = checked_url(public_url) or served_address(database)
        if address is None:
            raise UsageError("--public-url is missing", "this study was not served yet")
        chosen = cast(Role, role)
        token = (
            add_admin(database, name, chosen, time.time()) if action == "add" else new_link(database, name)
        )
    link = f"{address}/{sign_in(token)}"
    if as_json:
        print_json({"name": name, "link": link})
        return
    typer.echo(link)


def _list(database: Database, *, as_json: bool) -> None:
    admins = list_admins(database)
    if as_json:
        print_json([{"name": row.name, "role": row.role, "added_at": row.added_at} for row in admins])
        return
    table = lines.table(("name", "role", "link"), ())
    for row in admins:
        table.add_row(lines.name_cell(row.name), row.role, "not used yet" if row.token_hash else "used")
    lines.print_table(Console(), table)
