"""`palaver corpus`: list, get, show and convert corpora of dialogues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.corpora.catalogue import (
    Copy,
    CorpusCard,
    CorpusReader,
    corpus,
    corpus_names,
    read_corpus,
    usual_roots,
)
from palaver.corpora.download import get as get_corpus
from palaver.errors import count_of
from palaver.files import format_by_name
from palaver.progress import Progress
from palaver.readers import write_dialogues
from palaver.reports import lines
from palaver.schema import Dialogue
from palaver.schema.run import plain


def list_corpora(data: options.Data = None, as_json: options.Json = False) -> None:
    """List the corpora we know: licence, size, and where a copy lies.

    "May ship" says whether the corpus, and a model trained on it, may be passed on by anybody.

    Example: palaver corpus list
    """
    roots = usual_roots() if data is None else (data,)
    places = {name: _place(name, roots) for name in corpus_names()}
    if as_json:
        cards = [{**plain(corpus(name).card), "present_in": place} for name, place in places.items()]
        print_json({"looked_in": [str(root) for root in roots], "corpora": cards})
        return
    table = lines.table(("name", "licence", "may ship"), ("dialogues", "turns"), rule=False)
    table.add_column("present in", overflow="fold")
    for name, place in places.items():
        card = corpus(name).card
        size = [f"{n:,}" if n else "–" for n in map(card.counts.get, ("dialogues", "turns"))]
        ship = "yes" if card.redistributable else "no"
        table.add_row(*map(Text, (name, card.licence, ship, *size, place or "–")))
    console = Console()
    lines.print_table(console, table)
    lines.line(console, f"looked in {', '.join(map(str, roots))}")
    lines.line(console, "Some counts are of a part: `palaver corpus show NAME` says which.")


def _place(name: str, roots: Sequence[Path]) -> str | None:
    """Where a copy of a corpus lies, if one does."""
    for root in roots:
        copy = corpus(name).locate(root)
        if copy is not None:
            return _folder(root, copy)
    return None


def _folder(root: Path, copy: Copy) -> str:
    """Where a copy lies, as short as can be."""
    folder = copy.base
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else str(folder)


def show(
    name: Annotated[
        str,
        typer.Argument(
            help=f"A corpus's name, or dialogues: {options.ANY_SHAPE}.", autocompletion=completion.corpora
        ),
    ],
    split: options.Split = None,
    n: Annotated[int, typer.Option("-n", min=0, help="How many dialogues to print.")] = 3,
    count: Annotated[bool, typer.Option(help="Read to the end to count.")] = True,
    merge_turns: options.MergeTurns = False,
    columns: options.Columns = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Show a corpus: its card, its first dialogues, its size.

    Example: palaver corpus show friends

    Example: palaver corpus show topical-chat --split valid_rare -n 1

    Example: palaver corpus show my-dialogues.jsonl --no-count
    """
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    card = corpus(name).card if name in corpus_names() else None
    if card is not None:
        _print_card(console, card)
        if data is None and corpus(name).find() is None:
            console.print(f"\nThere is no copy here. Get one with: palaver corpus get {name}", markup=False)
            if as_json:
                print_json({"card": card, "file": None, "dialogues": [], "counts": None, "notes": []})
            return
    reader = read_corpus(
        name, root=data, split=split, merge_turns=merge_turns, columns=options.parse_columns(columns)
    )
    console.print(f"\n{reader.path}", style="bold", markup=False)
    shown: list[Dialogue] = []
    with progress() as tell:
        counts = _Counts()
        for dialogue in _told(reader, tell):
            if counts.dialogues < n:
                _print_dialogue(console, dialogue)
                shown.append(dialogue)
            elif not count:
                break
            counts.add(dialogue)
    console.print(f"\n{'counted' if count else 'first dialogues'}: {counts}", markup=False)
    for note in reader.notes:
        console.print(f"note: {note}", markup=False)
    if as_json:
        content = {"card": card, "file": str(reader.path), "dialogues": shown}
        print_json({**content, "counts": counts.as_dict(), "whole": count, "notes": reader.notes})


class _Counts:
    """What `show` says at the end."""

    def __init__(self) -> None:
        self.dialogues = self.turns = self.words = 0
        self.speakers: set[str] = set()
        self.splits: dict[str, int] = {}

    def add(self, dialogue: Dialogue) -> None:
        self.dialogues += 1
        self.turns += len(dialogue.turns)
        self.words += sum(len(turn.text.split()) for turn in dialogue.turns)
        self.speakers.update(dialogue.speakers)
        split = str(dialogue.labels.get("split", ""))
        if split:
            self.splits[split] = self.splits.get(split, 0) + 1

    def as_dict(self) -> dict[str, object]:
        sizes = {"dialogues": self.dialogues, "turns": self.turns, "words": self.words}
        return {**sizes, "speakers": len(self.speakers), "splits": self.splits}

    def __str__(self) -> str:
        parts = f" ({', '.join(f'{name} {n:,}' for name, n in self.splits.items())})" if self.splits else ""
        return (
            f"{count_of(self.dialogues, 'dialogue')}{parts}, {count_of(self.turns, 'turn')}, "
            f"{count_of(self.words, 'word')} between spaces, {count_of(len(self.speakers), 'speaker')}"
        )


def _print_card(console: Console, card: CorpusCard) -> None:
    console.print(card.title, style="bold", markup=False)
    console.print(card.description, markup=False)
    ship = "may be passed on" if card.redistributable else "not to be passed on, nor a model trained on it"
    rows = [("name", card.name), ("licence", f"{card.licence} ({ship})"), ("source", card.source)]
    if card.splits:
        rows.append(("splits", ", ".join(card.splits)))
    if card.counts:
        counted = ", ".join(f"{what} {n:,}" for what, n in card.counts.items())
        rows.append(("size", f"{counted} (counted in the copy with these hashes)"))
    rows += [("sha256", f"{hash[:16]}… {file}") for file, hash in card.sha256.items()]
    if not card.sha256:
        rows.append(("sha256", "not pinned"))
    rows += [("note", note) for note in card.notes]
    if card.manual:
        rows.append(("by hand", card.manual))
    for key, value in rows:
        console.print(f"  {key + ':':9} {value}", markup=False)


def _print_dialogue(console: Console, dialogue: Dialogue) -> None:
    labels = ", ".join(f"{key} {value}" for key, value in dialogue.labels.items())
    console.print(f"\n{dialogue.id}" + (f"  ({labels})" if labels else ""), style="cyan", markup=False)
    for turn in dialogue.turns[:12]:
        console.print(f"  {turn.speaker}: {turn.text}", markup=False)
    if len(dialogue.turns) > 12:
        console.print(f"  … {len(dialogue.turns) - 12} more turns", markup=False)


def _told(reader: CorpusReader, tell: Progress) -> Iterator[Dialogue]:
    expected = reader.card.counts.get(reader.split or "dialogues", 0) if reader.card else 0
    for count, dialogue in enumerate(reader, start=1):
        tell("reading dialogues", count, max(count, expected))
        yield dialogue


def get(
    name: Annotated[
        str,
        typer.Argument(
            help="The corpus's name, as in `palaver corpus list`.", autocompletion=completion.corpora
        ),
    ],
    copy: Annotated[
        Path | None, typer.Option("--from", help="Take this local file or folder instead of downloading.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder to put it in; ~/.cache/palaver/corpora if not given.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Download from here instead of the usual address.")] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Refuse a file with another sha256 than the known one.")
    ] = True,
    force: options.Force = False,
) -> None:
    """Get a corpus from its makers, or take a copy you have.

    A download that breaks off goes on where it stopped when the command is run again.

    Example: palaver corpus get self-dialogue

    Example: palaver corpus get friends --from friends_turns.csv

    Example: palaver corpus get dailydialog --url https://example.org/mirror/ijcnlp_dailydialog.zip
    """
    card = corpus(name).card
    with progress() as tell:
        got = get_corpus(
            name,
            to,
            copy=copy,
            url=url,
            check=check,
            force=force,
            progress=lambda what, done, total: tell(what, done, max(done, total)),
        )
    typer.echo(f"{card.title} is in {got.folder}")
    typer.echo(f"licence: {card.licence}")
    for note in got.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"next: palaver corpus show {name}" + (f" --data {got.folder}" if to is not None else ""))


def convert(
    name: Annotated[
        str,
        typer.Argument(
            help=f"A corpus's name, or dialogues: {options.ANY_SHAPE}.", autocompletion=completion.corpora
        ),
    ],
    out: Annotated[Path, typer.Argument(help="What to write: .jsonl, .jsonl.gz, .csv or .parquet.")],
    split: options.Split = None,
    merge_turns: options.MergeTurns = False,
    columns: options.Columns = None,
    data: options.Data = None,
    force: options.Force = False,
) -> None:
    """Write a corpus, or a file of dialogues, in another format.

    Example: palaver corpus convert dailydialog valid.jsonl.gz --split valid

    Example: palaver corpus convert switchboard merged.parquet --merge-turns

    Example: palaver corpus convert dialogues.jsonl dialogues.csv
    """
    format_by_name(out)
    options.refuse_existing(out, force)
    reader = read_corpus(
        name, root=data, split=split, merge_turns=merge_turns, columns=options.parse_columns(columns)
    )
    options.refuse_source(out, reader.path)
    with progress() as tell:
        count = write_dialogues(_told(reader, tell), out)
    typer.echo(f"wrote {count:,} dialogues, {reader.n_turns:,} turns to {out}")
    for note in reader.notes:
        typer.echo(f"note: {note}")
