"""`palaver collect amend | decide`: what the owner of a collection says while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import options
from palaver.cli.collect import Served
from palaver.cli.conversations import open_source
from palaver.cli.messages import tell_changes
from palaver.cli.study_database import open_study
from palaver.collection.amendment import compare_collections
from palaver.collection.quality import check_quality
from palaver.collection.records import Decision
from palaver.collection.review import DECISIONS, keys_of
from palaver.collection.settings import load_collection
from palaver.collection.standards import read_standards
from palaver.errors import UserError, nearest
from palaver.server.chat_log import ChatLog, amend_collection


def amend(
    file: Annotated[Path, typer.Argument(help="The collection file, changed.")],
    database: options.Database = None,
    dry_run: options.DryRun = False,
) -> None:
    """Take changes of the file over into a collection that is being served.

    Texts, times, how many conversations a person may hold, the wording of questions: servers that run go by
    them at once. What would make conversations incomparable, such as other bots, is refused with the reason.

    Example: palaver collect amend collection.toml --dry-run
    """
    after = load_collection(file)
    read_standards(file)
    with open_study(database or str(file)) as served:
        amendment = compare_collections(ChatLog(served).collection, after)
        if not amendment.changes and not amendment.refusals:
            typer.echo(f"nothing has changed: {file} is what is being served")
            return
        tell_changes(amendment.changes, amendment.refusals, dry_run=dry_run, incomparable="conversations")
        if dry_run:
            return
        amend_collection(served, after, file.read_text(encoding="utf-8"))
        typer.echo(f"{after.title or after.name} is changed")


def decide(
    collection: Served,
    conversation: Annotated[str, typer.Argument(help="The conversation's id, as `collect check` shows it.")],
    decision: Annotated[str, typer.Argument(help="accept or reject.", metavar="accept|reject")],
    participant: Annotated[
        str, typer.Option(help="One side alone: the participant's id. [default: the whole conversation]")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why; it stands in the list of payments.")] = "",
) -> None:
    """Accept or reject a conversation, or one side of it, whatever the checks say.

    The admin's page does the same. `palaver collect check` goes by it from now on; the last decision counts.

    Example: palaver collect decide collection.toml 12 reject --reason "copied from the article"
    """
    if decision not in DECISIONS:
        raise UserError(f"expected accept or reject, found {decision!r}")
    known = keys_of(check_quality(open_source(collection, None).conversations))
    if (conversation, participant) not in known:
        ids = sorted({id for id, _ in known})
        if conversation in ids:
            sides = ", ".join(sorted(side for id, side in known if id == conversation and side))
            raise UserError(f"{participant!r} took no part in {conversation!r}", f"those who did: {sides}")
        raise UserError(f"there is no conversation {conversation!r} that is over{nearest(conversation, ids)}")
    made = Decision(DECISIONS[decision], reason.strip())
    with open_study(collection) as database:
        ChatLog(database).run([lambda host, now: host.decide((conversation, participant), made, now)])
    who = f"{participant} in {conversation}" if participant else conversation
    typer.echo(f"{who}: {made.verdict}")
