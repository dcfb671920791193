"""`palaver personality fidelity`: does a model show the traits that it was asked for?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.files import write_atomically
from palaver.personality.fidelity import INDEPENDENT, measure_fidelity
from palaver.personality.pools import Choice
from palaver.personality.recogniser import load_recogniser
from palaver.reports.fidelity import print_fidelity


def fidelity(
    responses: Annotated[
        Path,
        typer.Argument(help=f"Responses under requested personalities: {options.ANY_SHAPE}."),
    ],
    table: Annotated[
        Path | None,
        typer.Option(help="Speaker and requested scores. [default: the column ocean of the responses]"),
    ] = None,
    columns: options.Columns = None,
    system: options.OneSystem = None,
    rename: options.Rename = None,
    drop_common: options.DropCommon = 0,
    measured_by: Annotated[
        str, typer.Option(help="The recogniser that measures; not the one that made the model's labels.")
    ] = INDEPENDENT,
    lexicon: options.Lexicon = None,
    confidence: options.Confidence = 0.95,
    deals: Annotated[int, typer.Option(min=100, help="Times that the requests are dealt out anew.")] = 2000,
    seed: options.Seed = 0,
    engine: options.Engine = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Correlate requested with measured traits: a matrix of 5 x 5 with intervals.

    The recogniser should not be the one that made the model's labels; self-report made none. As a control the
    requests are dealt out anew. With --out, the result is written as JSON.

    Example: palaver personality fidelity said.jsonl (of palaver generate --ocean-table requests.csv)
    """
    options.refuse_existing(out, force)
    choice = Choice(system=system, rename=options.parse_rename(rename), drop_common=drop_common)
    with progress() as tell:
        result = measure_fidelity(
            responses,
            measured_by=load_recogniser(measured_by, lexicon=lexicon),
            table=table,
            choice=choice,
            columns=options.parse_columns(columns),
            confidence=confidence,
            n_deals=deals,
            seed=seed,
            engine=engine or "processes",
            progress=tell,
        )
    if as_json:
        print_json(result)
    else:
        print_fidelity(result, Console())
    if out is not None:
        with write_atomically(out) as file:
            file.write(result.to_json())
        typer.echo(f"wrote {out}", err=as_json)
