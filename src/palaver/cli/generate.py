"""`palaver generate`: replies of systems to a whole file of contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from palaver.cli import completion, options
from palaver.cli.decoding import Decoding
from palaver.cli.knowledge_file import KnowledgeFile
from palaver.cli.progress import progress
from palaver.cli.reading_knowledge import ReadingKnowledge
from palaver.corpora.personalities import read_ocean_table
from palaver.errors import UsageError, UserError, count_of
from palaver.generation import contexts as context_files
from palaver.generation.bulk import GenerationResult, generate_file
from palaver.generation.common import drop_common as drop_common_responses
from palaver.generation.contexts import Condition, conditions_of
from palaver.generation.options import DecodingOptions
from palaver.generation.system import takers_of, takes
from palaver.generation.systems_file import find_system
from palaver.schema import System


def generate(
    context: typer.Context,
    system: Annotated[
        list[str],
        typer.Option(
            help="A name from systems.toml, everyday, smollm2, default, or a checkpoint folder; repeat it.",
            autocompletion=completion.systems,
        ),
    ],
    contexts: options.Contexts,
    out: options.Out,
    speakers: Annotated[
        str | None, typer.Option(help="Answer every context as each of these: all, or names A,B.")
    ] = None,
    ocean_table: Annotated[
        Path | None, typer.Option(help="Answer as each personality of this table (CSV or JSON).")
    ] = None,
    split: options.Split = None,
    every_turn: Annotated[
        bool, typer.Option("--every-turn", help="Every turn but the first is a reference to its history.")
    ] = False,
    limit: options.Limit = None,
    history: Annotated[
        Literal["all", "last"],
        typer.Option("--context", help="Write the whole history in each row, or only its last turn."),
    ] = "all",
    knowledge: options.KnowledgeText = None,
    selector: options.Selector = None,
    drop_common: options.DropCommon = 0,
    systems_file: options.SystemsFile = None,
    columns: options.Columns = None,
    data: options.Data = None,
    batch_size: Annotated[int, typer.Option(min=0, help="Requests at once; 0: as suits each system.")] = 0,
    decoding: Decoding = DecodingOptions(),
    seed: options.Seed = 0,
    device: options.Device = "auto",
    engine: options.Engine = None,
    force: options.Force = False,
) -> None:
    """Write the replies of systems to a file of contexts.

    Run it again after a stop, and it goes on. With --drop-common it also writes OUT.cleaned.jsonl.

    Example: palaver generate --system default --contexts dialogues.jsonl --every-turn --out responses.jsonl

    The same contexts for another: palaver generate --system mine --contexts responses.jsonl --out mine.jsonl
    """
    if speakers is not None and ocean_table is not None:
        raise UsageError("--speakers and --ocean-table were both given", "give one of them")
    options.refuse_source(out, contexts, knowledge, ocean_table)
    chosen = decoding.given()
    source_of_seed = context.get_parameter_source("seed")
    if source_of_seed is not None and source_of_seed.name != "DEFAULT":  # else the systems file may name one
        chosen["seed"] = seed
    source = context_files.Contexts(
        contexts,
        split=split,
        every_turn=every_turn,
        limit=limit,
        root=data,
        columns=options.parse_columns(columns),
    )
    table = read_ocean_table(ocean_table) if ocean_table is not None else None
    if knowledge is not None and selector is not None:
        raise UsageError("--knowledge and --selector were both given", "give one of them")
    facts: KnowledgeFile | ReadingKnowledge | None = None
    if knowledge is not None:
        facts = KnowledgeFile(knowledge)
    elif selector is not None and selector != "none":
        facts = ReadingKnowledge(selector, source, options.torch_device(device))
    specs = [find_system(name, systems_file) for name in dict.fromkeys(system)]
    where = None if device == "auto" else device  # auto leaves the device to the systems file
    openers = {spec.name: partial(spec, device=where, decoding=chosen) for spec in specs}
    opened = [open_it() for open_it in openers.values()]
    conditions = _conditions(opened, speakers, table, drop_common)
    if facts is not None:
        _check_knowledge(opened, "--knowledge" if knowledge is not None else "--selector")
    try:
        with progress() as tell:
            done = generate_file(
                opened,
                source,
                out,
                conditions=conditions,
                batch_size=batch_size,
                context=history,
                knowledge=facts.choose_for if facts else None,
                knowledge_signature=facts.signature if facts else None,
                engine=engine or "local",
                openers=openers,
                fresh=force,
                progress=tell,
            )
    except KeyboardInterrupt:
        typer.echo(f"the rows so far are in {out}; the same command goes on", err=True)
        raise
    of_knowledge = facts.notes if isinstance(facts, ReadingKnowledge) else []
    of_decoding = [note for spec in specs if (note := spec.without_effect(decoding.given()))]
    for text in (*of_decoding, *done.notes, *of_knowledge):
        typer.echo(f"note: {text}", err=True)
    if source.n_repeated:
        typer.echo(
            f"note: {source.n_repeated:,} dialogues have the id of an earlier one; ~2, ~3 … tell them apart",
            err=True,
        )
    if source.of_responses:
        typer.echo(f"note: {contexts} holds responses; their contexts were answered, each once", err=True)
    _report(done, conditions)
    if drop_common:
        _drop(out, drop_common)
    typer.echo(f"next: palaver study new --from {out} --preset likert --out study.toml")


def _conditions(
    systems: Sequence[System],
    speakers: str | None,
    table: Mapping[str, tuple[float, ...]] | None,
    drop: int,
) -> dict[str, list[Condition]]:
    conditions = {system.name: conditions_of(system, speakers, table) for system in systems}
    if drop and sum(map(len, conditions.values())) < 2:
        raise UsageError(
            "--drop-common needs responses under two or more conditions",
            "give --speakers, --ocean-table or several --system",
        )
    return conditions


def _check_knowledge(systems: Sequence[System], option: str) -> None:
    without = [system.name for system in systems if "knowledge" not in takes(system)]
    if len(without) == len(systems):
        raise UserError(
            f"{option} was given, but no system takes knowledge: {', '.join(without)}", takers_of("knowledge")
        )
    for name in without:
        typer.echo(f"note: {name} takes no knowledge and goes on without", err=True)


def _report(done: GenerationResult, conditions: Mapping[str, Sequence[Any]]) -> None:
    per = sum(map(len, conditions.values()))
    each = "" if per == 1 else f", {per} conditions each"
    again = f", {done.n_rows - done.n_new:,} of them from before" if done.n_new < done.n_rows else ""
    typer.echo(f"{done.out}: {done.n_rows:,} rows{again} for {count_of(done.n_contexts, 'context')}{each}")
    for reason, count in done.left_out.items():
        typer.echo(f"  left out: {count_of(count, 'context')}: {reason}")
    for name, count in done.skipped.items():
        typer.echo(f"  {name} gave no reply to {count_of(count, 'context')}; their rows say why")
    for name, count in done.failed.items():
        typer.echo(f"  {name} failed on {count_of(count, 'context')}; their rows say why")


def _drop(out: Path, n: int) -> None:
    with progress() as tell:
        dropped = drop_common_responses(out, n, progress=tell)
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
