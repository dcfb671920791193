"""`palaver judge`: metrics, trained models and functions rate responses or dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError
from palaver.judges import judge as rate
from palaver.judges import judge_names
from palaver.readers.rating_files import write_frames
from palaver.reports.judges import print_judgements


def judge(
    file: Annotated[Path | None, typer.Argument(help=f"Responses or dialogues: {options.ANY_SHAPE}.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="A judge: NAME, NAME=WHICH, or MODULE:FUNCTION; repeat it."),
    ] = None,
    out: options.OptionalOut = None,
    list_judges: options.ListNames = False,
    columns: options.Columns = None,
    device: options.Device = "auto",
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Let metrics, models and functions rate responses or dialogues.

    The ratings are rows of the table that people's ratings are in, so `palaver study analyse` reads both
    together. `user` takes over the ratings that chatters left in the file.

    Example: palaver judge responses.jsonl --by unigram_f1 --by comparator --out judged.parquet
    """
    if list_judges:
        if as_json:
            print_json(list(judge_names()))
        else:
            typer.echo("\n".join(judge_names()))
        return
    if file is None:
        raise UsageError("name the file to judge", "palaver judge --help shows what it takes")
    options.refuse_existing(out, force)
    with progress() as tell:
        result = rate(file, by or [], columns=options.parse_columns(columns), device=device, progress=tell)
    if out is not None:
        write_frames([result.frame], out)
    if as_json:
        counts = {"ratings": result.frame.height, "left_out": result.left_out, "notes": result.notes}
        print_json({**counts, "means": result.summary().to_dicts()})
        return
    print_judgements(result, Console())
    if out is not None:
        typer.echo(f"wrote {out}: {result.frame.height:,} ratings")
        typer.echo(f"next: palaver study analyse {out}")
