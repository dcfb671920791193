"""`palaver collect stats`, `split` and `export`: collected conversations as a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from palaver.artefacts import write_folder
from palaver.cli import options
from palaver.cli.conversations import Conversations, open_source
from palaver.cli.messages import print_json
from palaver.collection.dataset import number_participants, write_parquet
from palaver.collection.labels import text_label
from palaver.collection.release import Release, write_release
from palaver.collection.split import (
    LEAST_SEEN,
    TOGETHER,
    TRAIN,
    SplitReport,
    Together,
    describe_split,
    split_conversations,
)
from palaver.collection.stats import NO_CONFIGURATION, ConversationStats, Size, count_conversations
from palaver.errors import UsageError, UserError, count_of, nearest
from palaver.files import format_by_name
from palaver.readers import write_dialogues
from palaver.reports import lines, numbers
from palaver.tabular import few

FORMATS = ("topical-chat", "jsonl", "parquet")


def stats(
    conversations: Conversations,
    split: options.Split = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Count conversations by configuration and split, as papers do.

    The table is Topical-Chat's Table 2, with one measure more. Where there are splits beside train, a second
    table says how often training has the entities of the others, and what it shares with them.

    Example: palaver collect stats topical-chat

    Example: palaver collect stats conversations.jsonl --json
    """
    source = open_source(conversations, data, split)
    dialogues = source.dialogues()
    counted = count_conversations(dialogues)
    notes = [*source.notes, *counted.notes]
    if not counted.sizes:
        raise UserError(f"there are no turns in the conversations of {conversations}", problems=notes)
    has_training = TRAIN in counted.splits and len(counted.splits) > 1
    report = describe_split(dialogues) if has_training else None
    if as_json:
        leaks = report.rows if report is not None else ()
        print_json({"sizes": counted.sizes, "splits": leaks, "notes": notes})
        return
    console = Console()
    _print_stats(console, counted)
    if report is not None:
        _print_report(console, report)
    lines.notes(console, notes)


_MEASURES = {
    "conversations": ("conversations", numbers.count),
    "utterances": ("utterances", numbers.count),
    "turns per conversation": ("turns", lambda value: numbers.number(value, 1)),
    "words per utterance": ("length", lambda value: numbers.number(value, 1)),
    "distinct words": ("distinct_words", numbers.count),
}
"""What a row says -> the field of `Size`, and how it is written."""


def _print_stats(console: Console, counted: ConversationStats) -> None:
    table = lines.table(("measure", "configuration"), counted.splits, title="Conversations")
    names: list[str | None] = [*counted.configurations, None]
    if names == [NO_CONFIGURATION, None]:
        names = [None]
    for measure, (field, shown) in _MEASURES.items():
        for name in names:
            sizes = [counted.size(split, name) for split in counted.splits]
            cells = [_cell(size, field, shown) for size in sizes]
            table.add_row(Text(measure), lines.name_cell(name or "total"), *cells)
    lines.print_table(console, table)
    lines.line(console, "words per utterance: between spaces; distinct words: without case and punctuation")


def _cell(size: Size | None, field: str, shown: object) -> str:
    if size is None:
        return numbers.DASH
    assert callable(shown)
    return str(shown(getattr(size, field)))


def _print_report(console: Console, report: SplitReport) -> None:
    heads = (
        "conversations",
        "entities",
        "not in train",
        "seen in train",
        "article in train",
        "person in train",
    )
    table = lines.table(("split",), heads, title="Splits beside the training set")
    for row in report.rows:
        table.add_row(
            lines.name_cell(row.split),
            numbers.count(row.conversations),
            numbers.count(row.entities),
            numbers.count(row.unseen_entities),
            numbers.number(row.seen, 1),
            _known(row.shared_articles),
            _known(row.shared_people),
        )
    lines.print_table(console, table)
    lines.line(console, "seen in train: conversations of training that have an entity, on average")
    lines.line(console, "article, person in train: conversations that share one with training")
    for note in report.notes:
        lines.line(console, f"note: {note}")


def _known(number: int | None) -> str:
    return numbers.DASH if number is None else numbers.count(number)


def split(
    conversations: Conversations,
    out: options.Out,
    share: Annotated[
        float,
        typer.Option(
            "--set-share", min=0.001, max=0.2, help="Of each of the four smaller sets, of all conversations."
        ),
    ] = 0.05,
    together: Annotated[
        str,
        typer.Option(
            metavar="article,participant|none", help="Conversations that share one are never parted."
        ),
    ] = "article",
    least_seen: Annotated[
        int, typer.Option(min=0, help="Conversations of training that each frequent entity keeps.")
    ] = LEAST_SEEN,
    data: options.Data = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Split conversations into train, valid and test, frequent and rare.

    Rare sets have the conversations with the rarest entities; frequent sets are drawn from the others, and
    training keeps their entities. The table says what training shares with the other sets.

    Example: palaver collect split accepted.jsonl --seed 1 --out split.jsonl

    Example: palaver collect split accepted.jsonl --together article,participant --out split.parquet
    """
    format_by_name(out)
    kept_together = _parse_together(together)
    options.refuse_existing(out, force)
    source = open_source(conversations, data)
    dialogues = source.dialogues(only_complete=True)
    notes = source.notes
    parted = split_conversations(
        dialogues, share=share, together=kept_together, least_seen=least_seen, seed=seed
    )
    if len(parted) < len(dialogues):
        notes.append(f"left out, without turns: {len(dialogues) - len(parted):,}")
    write_dialogues(parted, out)
    report = describe_split(parted)
    if as_json:
        rule = {"share": share, "together": kept_together, "least_seen": least_seen, "seed": seed}
        print_json({"out": str(out), "rule": rule, "splits": report.rows, "notes": [*report.notes, *notes]})
        return
    console = Console()
    _print_report(console, report)
    parted_by = " and ".join(kept_together) or "nothing"
    lines.line(
        console, f"rule: groups by {parted_by}; the rarest entities to rare; at least {least_seen} left"
    )
    lines.line(console, f"seed {seed}; wrote {count_of(len(parted), 'conversation')} to {out}")
    lines.notes(console, notes)
    lines.line(console, f"next: palaver collect export {out} --out release")


def _parse_together(text: str) -> list[Together]:
    if text.strip() == "none":
        return []
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in TOGETHER:
            raise UsageError(
                f"--together: there is no {name!r}{nearest(name, [*TOGETHER, 'none'])}",
                "there are article, participant (with a comma between them) and none",
            )
    return [name for name in TOGETHER if name in names]


def export(
    conversations: Conversations,
    out: options.Out,
    format: Annotated[
        str,
        typer.Option(
            help="The release's folder, one file of dialogues, or a folder with a dataset card.",
            **options.choices(FORMATS),
        ),
    ] = "topical-chat",
    keep_participants: Annotated[
        bool, typer.Option("--keep-participants", help="Keep their ids. [default: p1, p2 and so on]")
    ] = False,
    title: Annotated[str, typer.Option(help="Of the dataset, for its card.")] = "Conversations",
    licence: Annotated[str, typer.Option(help="Of the dataset, for its card.")] = "",
    data: options.Data = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write conversations as a dataset that others can load.

    `topical-chat` is the layout of Topical-Chat's release (conversations/ and reading_sets/), `jsonl` a file
    of dialogues, `parquet` a folder with a file for each split and a README.md for Hugging Face.

    Example: palaver collect export split.jsonl --format topical-chat --out release

    Example: palaver collect export split.jsonl --format parquet --title Tea --licence cc-by-4.0 --out tea
    """
    if format == "jsonl" and format_by_name(out) != "jsonl":
        raise UsageError(f"--out: expected a name such as {out.stem}.jsonl, found {out}")
    options.refuse_existing(out, force)
    source = open_source(conversations, data)
    dialogues = source.dialogues(only_complete=True)
    notes = source.notes
    if not dialogues:
        raise UserError(f"there is no conversation to export in {conversations}", problems=notes)
    n_empty = sum(not dialogue.turns for dialogue in dialogues)
    if not keep_participants:
        dialogues = list(number_participants(dialogues))
    result: dict[str, object] = {"out": str(out), "format": format}
    if format == "topical-chat":
        with write_folder(out, replace=force) as folder:
            release = write_release(dialogues, folder)
        notes = [*_release_notes(release), *notes]
        result["conversations"] = release.conversations
    else:
        dialogues = [dialogue for dialogue in dialogues if dialogue.turns]
        if n_empty:
            notes.append(f"left out, without turns: {n_empty:,}")
        if not dialogues:
            raise UserError(f"there are no turns in the conversations of {conversations}", problems=notes)
        if format == "jsonl":
            write_dialogues(dialogues, out)
        else:
            with write_folder(out, replace=force) as folder:
                write_parquet(dialogues, folder, name=title, licence=licence)
        splits = [text_label(dialogue, "split") or "train" for dialogue in dialogues]
        result["conversations"] = {name: splits.count(name) for name in dict.fromkeys(splits)}
    if as_json:
        print_json({**result, "notes": notes})
        return
    console = Console()
    counts = result["conversations"]
    assert isinstance(counts, dict)
    shown = ", ".join(f"{name} {n:,}" for name, n in counts.items())
    lines.line(console, f"wrote {count_of(sum(counts.values()), 'conversation')} to {out}: {shown}")
    for note in notes:
        lines.line(console, f"note: {note}")
    if format == "topical-chat":
        lines.line(console, f"next: palaver corpus show topical-chat --data {out}")


def _release_notes(release: Release) -> list[str]:
    left_out = [f"left out: {reason}: {_some(ids)}" for reason, ids in release.left_out.items()]
    return left_out + [f"the layout has no place for: {what}: {n:,}" for what, n in release.lost.items()]


def _some(ids: Sequence[str]) -> str:
    return f"{len(ids):,} ({few(ids)})"
