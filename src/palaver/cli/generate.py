"""`palaver generate`: replies of systems to a whole file of contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palaver.cli import decoding as d

if TYPE_CHECKING:
    from palaver.generation.bulk import GenerationResult
    from palaver.generation.contexts import Condition
    from palaver.generation.system import System


def generate(
    system: Annotated[
        list[str], typer.Option(help="A name from systems.toml, default…, or a checkpoint folder; repeat it.")
    ],
    contexts: Annotated[
        str, typer.Option(help="A dialogue file, a corpus by name, or a .txt with one utterance a line.")
    ],
    out: Annotated[Path, typer.Option(help="Where the responses go (.jsonl); a stopped run goes on here.")],
    speakers: Annotated[
        str | None, typer.Option(help="Answer every context as each of these: all, or names A,B.")
    ] = None,
    ocean_table: Annotated[
        Path | None, typer.Option(help="Answer as each personality of this table (CSV or JSON).")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only dialogues of this split.")] = None,
    every_turn: Annotated[
        bool, typer.Option("--every-turn", help="Every turn but the first is a reference to its history.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N contexts.")] = None,
    knowledge: Annotated[
        Path | None, typer.Option(help="A text file; the sentence that fits best goes with each context.")
    ] = None,
    drop_common: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Also write OUT.cleaned.jsonl without the N most frequent responses common to all.",
        ),
    ] = None,
    systems_file: d.Systems = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the corpora, for a corpus by name.")] = None,
    batch_size: Annotated[int, typer.Option(min=0, help="Requests at once. [default: by system]")] = 0,
    method: d.MethodOption = None,
    temperature: d.Temperature = None,
    top_k: d.TopK = None,
    top_p: d.TopP = None,
    k: d.K = None,
    beam: d.Beam = None,
    length_penalty: d.LengthPenalty = None,
    no_repeat_ngram: d.NoRepeat = None,
    max_length: d.MaxLength = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Another seed gives other replies. [default: 0]")
    ] = None,
    device: d.Device = None,
    force: Annotated[bool, typer.Option("--force", help="Begin anew if the file is there.")] = False,
) -> None:
    """Write the replies of systems to a file of contexts. Run it again after a stop, and it goes on.

    Example: palaver generate --system default --contexts dialogues.jsonl --every-turn --out responses.jsonl
    """
    from palaver.cli.knowledge_file import KnowledgeFile
    from palaver.cli.progress import progress
    from palaver.corpora.personalities import read_ocean_table
    from palaver.errors import UserError
    from palaver.generation.bulk import generate_file
    from palaver.generation.contexts import Contexts
    from palaver.generation.system import notes
    from palaver.generation.systems_file import find_system

    if speakers is not None and ocean_table is not None:
        raise UserError("--speakers and --ocean-table were both given", "give one of them")
    options = d.chosen(
        method, temperature, top_k, top_p, k, beam, length_penalty, no_repeat_ngram, max_length, seed
    )
    source = Contexts(contexts, split=split, every_turn=every_turn, limit=limit, root=data)
    table = read_ocean_table(ocean_table) if ocean_table is not None else None
    facts = KnowledgeFile(knowledge) if knowledge is not None else None
    specs = [find_system(name, systems_file) for name in dict.fromkeys(system)]
    opened = [spec(device=device, decoding=options) for spec in specs]
    conditions = _conditions(opened, speakers, table, drop_common)
    if facts is not None:
        _check_knowledge(opened)
    try:
        with progress() as tell:
            done = generate_file(
                opened,
                source,
                out,
                conditions=conditions,
                batch_size=batch_size,
                knowledge=facts.choose_for if facts else None,
                knowledge_signature=facts.signature if facts else None,
                fresh=force,
                tell=tell,
            )
    except KeyboardInterrupt:
        typer.echo(f"the rows so far are in {out}; the same command goes on", err=True)
        raise
    for text in (note for one in opened for note in notes(one)):
        typer.echo(f"note: {text}", err=True)
    _report(done, conditions)
    if drop_common is not None:
        _drop(out, drop_common)


def _conditions(
    systems: Sequence[System],
    speakers: str | None,
    table: Mapping[str, tuple[float, ...]] | None,
    drop: int | None,
) -> dict[str, list[Condition]]:
    from palaver.errors import UserError
    from palaver.generation.contexts import conditions_of

    found = {system.name: conditions_of(system, speakers, table) for system in systems}
    if drop is not None and sum(map(len, found.values())) < 2:
        raise UserError(
            "--drop-common needs responses under two or more conditions",
            "give --speakers, --ocean-table or several --system",
        )
    return found


def _check_knowledge(systems: Sequence[System]) -> None:
    from palaver.errors import UserError
    from palaver.generation.system import takes

    without = [system.name for system in systems if "knowledge" not in takes(system)]
    if len(without) == len(systems):
        raise UserError(
            "--knowledge was given, but no system takes knowledge", f"systems: {', '.join(without)}"
        )
    for name in without:
        typer.echo(f"note: {name} takes no knowledge and goes on without", err=True)


def _report(done: GenerationResult, conditions: Mapping[str, Sequence[Any]]) -> None:
    per = sum(map(len, conditions.values()))
    each = "" if per == 1 else f", {per} conditions each"
    again = f", {done.n_rows - done.n_new:,} of them from before" if done.n_new < done.n_rows else ""
    typer.echo(f"{done.out}: {done.n_rows:,} rows{again} for {done.n_contexts:,} contexts{each}")
    for reason, count in done.left_out.items():
        typer.echo(f"  left out: {count:,} contexts: {reason}")
    for name, count in done.skipped.items():
        typer.echo(f"  {name} gave no reply to {count:,} contexts; their rows say why")


def _drop(out: Path, n: int) -> None:
    from palaver.cli.progress import progress
    from palaver.generation.common import drop_common

    with progress() as tell:
        dropped = drop_common(out, n, tell=lambda done, total: tell("common responses", done, total))
    rows = sum(gone for gone, _ in dropped.by_condition.values())
    asked = "" if len(dropped.responses) == n else f" (of {n} asked for)"
    typer.echo(
        f"{dropped.out}: without {rows:,} rows of {len(dropped.responses)} responses{asked} "
        "that occur under every condition"
    )
    for name, (gone, kept) in dropped.by_condition.items():
        typer.echo(f"  {name}: {gone:,} dropped, {kept:,} kept")
    for text, total in dropped.responses[:10]:
        typer.echo(f"  {total:,} × {text}")
    if len(dropped.responses) > 10:
        typer.echo(f"  … and {len(dropped.responses) - 10} more")
