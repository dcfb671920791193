"""`palaver personality table`: the personalities of characters as the file that training reads."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.corpora.personalities import TRAITS, check_table_name, write_ocean_table
from palaver.errors import UsageError, count_of
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice
from palaver.personality.recogniser import load_recogniser
from palaver.personality.table import PersonalityTable, estimate_table
from palaver.reports import lines, numbers


def table(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|CORPUS...",
            help=f"Corpora by name (friends), or dialogues or responses: {options.ANY_SHAPE}.",
        ),
    ],
    out: options.Out,
    columns: options.Columns = None,
    data: options.Data = None,
    character: options.Characters = None,
    min_utterances: options.MinUtterances = 2000,
    rename: options.Rename = None,
    relative: Annotated[
        bool,
        typer.Option(
            "--relative", help="Spread the scores: over the characters each trait has mean 4 and deviation 1."
        ),
    ] = False,
    size: options.SampleSize = None,
    recogniser: options.Recogniser = "default",
    lexicon: options.Lexicon = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write the characters' OCEAN scores, the table that training wants.

    Each character gets the mean over 50 samples of 500 utterances (Xing & Fernández 2018, section 3.1).

    Example: palaver personality table friends big-bang-theory --out ocean.csv
    """
    options.refuse_existing(out, force)
    check_table_name(out)
    if character and len(sources) > 1:
        raise UsageError(
            f"--character names characters of one source, found {len(sources)} sources",
            "write a table for each, or leave out --character",
        )
    choice = Choice(
        characters=tuple(character or ()),
        min_utterances=min_utterances,
        rename=options.parse_rename(rename),
    )
    with progress() as tell:
        estimates = estimate_table(
            sources,
            load_recogniser(recogniser, lexicon=lexicon),
            choice=choice,
            settings=Settings(size=size or Settings.size, seed=seed),
            root=data,
            columns=options.parse_columns(columns),
            progress=tell,
        )
    scores = estimates.scores(relative=relative)
    write_ocean_table(out, scores)
    if as_json:
        rows = [
            {
                "speaker": who.name,
                "utterances": who.n_utterances,
                **{trait: round(v, 3) for trait, v in zip(TRAITS, scores[who.name], strict=True)},
                "estimate": [round(v, 4) for v in who.ocean],
                "estimate_sd": [round(v, 4) for v in who.ocean_sd],
            }
            for who in estimates.characters
        ]
        facts = {"recogniser": estimates.recogniser, "samples": estimates.samples, "size": estimates.size}
        print_json(
            {**facts, "relative": relative, "characters": rows, "notes": estimates.notes, "out": str(out)}
        )
        return
    _print_estimates(estimates, Console())
    typer.echo(
        f"wrote {out}, {count_of(len(scores), 'character')}; name it in an experiment file as data.ocean"
    )


def _print_estimates(estimates: PersonalityTable, console: Console) -> None:
    """The mean of each trait, with its deviation over the samples."""
    facts = (
        numbers.some(len(estimates.characters), "character"),
        f"{estimates.samples} samples of {estimates.size} utterances",
        f"recogniser {estimates.recogniser}",
    )
    lines.title(console, "Estimated personalities", facts)
    table = lines.table(("character",), ("lines", *(trait[:5] for trait in TRAITS)))
    for who in estimates.characters:
        cells = [f"{mean:.2f} ±{sd:.2f}" for mean, sd in zip(who.ocean, who.ocean_sd, strict=True)]
        table.add_row(lines.name_cell(who.name), numbers.count(who.n_utterances), *cells)
    lines.print_table(console, table)
    lines.notes(console, estimates.notes)
