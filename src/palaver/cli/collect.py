"""`palaver collect new | serve | status | conversations | ratings`: people who talk, while it happens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.collect_bots import bots_beside, find_bot
from palaver.cli.messages import print_json
from palaver.cli.serving import Greeting, check_keys, checked_url, named_database, start_serving
from palaver.cli.study_database import open_database, open_study, url_beside
from palaver.collection.records import Person, write_conversations
from palaver.collection.settings import PRESETS, Collection, load_collection, preset_text
from palaver.collection.standards import read_standards
from palaver.errors import UserError, count_of
from palaver.files import write_atomically
from palaver.readers import write_dialogues
from palaver.readers.rating_files import write_ratings
from palaver.reports import lines
from palaver.server.chat_records import conversations_of, people_of, ratings_of
from palaver.server.settings import Settings

Served = Annotated[
    str,
    typer.Argument(
        help="The collection file, its database (collection.db), or the database's URL.",
        metavar="COLLECTION",
    ),
]


def new(
    out: options.Out,
    preset: Annotated[
        str, typer.Option(help="What kind of collection.", **options.choices(PRESETS))
    ] = "topical-chat",
    force: options.Force = False,
) -> None:
    """Write a collection file to start from.

    Presets: topical-chat (two people who have read something), talk-and-rate (people and your bot), arena
    (two bots side by side).

    Example: palaver collect new --preset talk-and-rate --out collection.toml
    """
    options.refuse_existing(out, force)
    with write_atomically(out) as file:
        file.write(preset_text(preset))
    typer.echo(f"wrote {out}")
    typer.echo(f"next: change it as you like, then: palaver collect serve {out}")


def serve(
    file: Annotated[Path, typer.Argument(help="A collection file (TOML).")],
    systems_file: options.SystemsFile = None,
    database: options.Database = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    processes: options.Processes = 1,
    public_url: options.PublicUrl = None,
    prolific_keys: options.ProlificKeys = None,
    admin_token: options.AdminToken = None,
    new_keys: options.NewKeys = False,
    qr: options.Qr = True,
) -> None:
    """Let people talk, with each other or with bots.

    Stop it and start it again, and everybody goes on where they were. Bots run in a process of their own.

    Example: palaver collect serve collection.toml --port 8000
    """
    settings = Settings(
        collection_file=file.resolve(),
        database=named_database(database) if database else url_beside(file),
        host=host,
        port=port,
        workers=processes,
        public_url=checked_url(public_url),
        prolific_keys=prolific_keys.resolve() if prolific_keys else None,
    )
    check_keys(settings)
    collection = load_collection(file)
    read_standards(file)
    for name in _bots(collection):
        find_bot(name, systems_file)  # says now what is wrong
    n_complete = _prepare(settings, collection)
    title = collection.title or collection.name
    headline = f"{title}: {count_of(n_complete, 'conversation')} complete"
    with bots_beside(settings.database, _bots(collection), systems_file):
        start_serving(
            settings, Greeting(headline, "for people", qr=qr), admin_token=admin_token, new_keys=new_keys
        )


def _bots(collection: Collection) -> list[str]:
    names = [*collection.partners.bots]
    return names if collection.partners.substitute is None else [*names, collection.partners.substitute]


def _prepare(settings: Settings, collection: Collection) -> int:
    """The collection put into its database, or found there unchanged; how many conversations are complete."""
    from palaver.server.chat_log import ChatLog, create_collection
    from palaver.server.migrations import migrate

    assert settings.collection_file is not None
    file = settings.collection_file
    with open_database(settings.database, new=True) as database:
        migrate(database)
        create_collection(database, collection, file.read_text(encoding="utf-8"), file.parent)
        return ChatLog(database).host.lobby.n_complete


def status(collection: Served, as_json: options.Json = False) -> None:
    """Say how far a collection is, while it is served or not.

    Example: palaver collect status collection.toml
    """
    with open_study(collection) as database:
        held, people = list(conversations_of(database)), people_of(database)
    endings = _counts([conversation.ending for conversation in held])
    pay = _counts([person.pay for person in people])
    exits = _counts([person.exit for person in people])
    configurations = _counts([c.configuration for c in held if c.configuration and c.ending == "complete"])
    n_turns = sum(len(conversation.dialogue.turns) for conversation in held)
    if as_json:
        print_json(
            {
                "conversations": endings,
                "configurations": configurations,
                "turns": n_turns,
                "people": len(people),
                "exits": exits,
                "pay": pay,
            }
        )
        return
    console = Console()
    lines.line(console, f"{count_of(len(held), 'conversation')}: {_listed(endings)}", "bold")
    if configurations:
        lines.line(console, f"complete by configuration: {_listed(configurations)}")
    lines.line(console, f"{n_turns:,} messages by {count_of(len(people), 'person')}")
    lines.line(console, f"people: {_listed(exits)}")
    lines.line(console, f"pay: {_listed(pay)}")


def _counts(values: list[str]) -> dict[str, int]:
    return {value: values.count(value) for value in sorted(set(values))}


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{value} {count:,}" for value, count in counts.items()) or "none"


def conversations(
    collection: Served,
    out: options.Out,
    people: Annotated[
        bool, typer.Option("--people", help="The people instead: how they left, and their pay (.jsonl).")
    ] = False,
    dialogues: Annotated[
        bool, typer.Option("--only-dialogues", help="The dialogues alone, without who took part and when.")
    ] = False,
    all_endings: Annotated[
        bool, typer.Option("--all", help="Also conversations that are incomplete or go on.")
    ] = False,
    force: options.Force = False,
) -> None:
    """Write the conversations of a collection, one a line, while it is served or not.

    Example: palaver collect conversations collection.toml --only-dialogues --out dialogues.jsonl
    """
    options.refuse_existing(out, force)
    with open_study(collection) as database:
        if people:
            _write_people(people_of(database), out)
            return
        held = [c for c in conversations_of(database) if all_endings or c.ending == "complete"]
    if not held:
        raise UserError("there is no complete conversation yet", "--all also takes those that are not")
    if dialogues:
        write_dialogues([conversation.dialogue for conversation in held], out)
    else:
        write_conversations(held, out)
    left_out = "" if all_endings else " (incomplete ones are left out: --all takes them)"
    typer.echo(f"wrote {count_of(len(held), 'conversation')} to {out}{left_out}")
    typer.echo(f"next: palaver compare score {out} --out scores.jsonl")


def _write_people(people: list[Person], out: Path) -> None:
    if not people:
        raise UserError("nobody has come in yet")
    with write_atomically(out) as file:
        for person in people:
            file.write(person.model_dump_json() + "\n")
    typer.echo(f"wrote {count_of(len(people), 'person')} to {out}")


def ratings(collection: Served, out: options.Out, force: options.Force = False) -> None:
    """Write what people said about their partners, as a table of ratings.

    It is the long format that every other command reads: one row for each turn, conversation or pair that was
    rated. What people said about their own messages stands in the dialogues.

    Example: palaver collect ratings collection.toml --out ratings.csv
    """
    options.claim_ratings(out, force)
    with open_study(collection) as database:
        rows = list(ratings_of(database))
    if not rows:
        raise UserError("nobody has rated anything yet")
    n = write_ratings(rows, out)
    typer.echo(f"wrote {count_of(n, 'rating')} to {out}")
    typer.echo(f"next: palaver study analyse {out}")
