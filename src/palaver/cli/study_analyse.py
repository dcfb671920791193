"""`palaver study analyse | describe | convert`: what to do with ratings once they are there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.cli.study_database import database_url, open_study
from palaver.errors import count_of
from palaver.files import check_readable, check_writable, write_atomically
from palaver.judges import directions
from palaver.readers.rating_exports import open_ratings
from palaver.readers.rating_files import ratings_frame, ratings_of, write_ratings
from palaver.readers.rating_options import RatingOptions
from palaver.readers.ratings import RatingReader, kinds_of
from palaver.reports import lines, print_analysis, write_report
from palaver.reports.latex import render_latex
from palaver.schema import Study
from palaver.statistics.correlation import METHODS
from palaver.statistics.normalise import NORMALISATIONS
from palaver.studies import RatingTable, load_study, write_long
from palaver.studies import analyse as run_analysis
from palaver.studies.describe import describe as run_description
from palaver.studies.ratings import count_bad, read_rating_table
from palaver.tables import TableSource, open_frame
from palaver.tabular import DASH, MINUS


def analyse(
    ratings: Annotated[
        list[str],
        typer.Argument(
            help="Rating files (CSV, .xlsx, .ods, JSON, Parquet; long or wide), or a served study's database."
        ),
    ],
    study: Annotated[Path | None, typer.Option(help="The study file: scales, permitted values.")] = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
    normalise: Annotated[
        str,
        typer.Option(
            help="How ratings become scores; auto: log for magnitudes, raw otherwise.",
            **options.choices(("auto", *NORMALISATIONS)),
        ),
    ] = "auto",
    correlation: Annotated[
        str, typer.Option(help="Between criteria.", **options.choices(METHODS))
    ] = "spearman",
    confidence: options.Confidence = 0.95,
    replicates: options.Replicates = None,
    seed: options.Seed = 0,
    file_options: options.RatingFile = RatingOptions(),
    kind: options.Kinds = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(help="Which end of a criterion is better, CRITERION=higher|lower|neither; repeat it."),
    ] = None,
    influence: Annotated[
        bool,
        typer.Option("--influence", help="Also what agreement would be without each rater, each item."),
    ] = False,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out what cannot be used; bad-rows.csv lists it."),
    ] = False,
    include_excluded: Annotated[
        bool,
        typer.Option("--include-excluded", help="Of a served study: also the raters that were excluded."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Write the files, print only where they are.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Which system is better, do raters agree, and what is noise?

    Writes report.html, tables.tex (LaTeX), results.json and ratings.parquet into --out, or else
    NAME-analysis, and prints the tables. With --json it prints results.json, and writes files only where
    --out names a folder. Of a served study (study.db, a database URL, or study.toml) the answers so far are
    taken, without excluded raters; of a served collection what people said about their partners.

    Example: palaver study analyse ratings.csv --study study.toml --out results
    """
    design = load_study(study) if study else None
    folder = out
    if folder is None and not as_json:
        folder = Path(f"{Path(ratings[0]).name.strip('.').split('.')[0]}-analysis")
    options.refuse_existing(folder, force)
    sources, served = rating_sources(ratings, include_excluded)
    design = design or served
    with _writable(folder) if folder is not None else nullcontext(), progress() as tell:
        table = read_rating_table(
            sources,
            file_options,
            study=design,
            kinds=options.parse_kinds(kind),
            skip_bad=skip_bad,
            progress=tell,
        )
        analysis = run_analysis(
            table,
            study=design,
            normalise=normalise,
            correlation=correlation,  # type: ignore[arg-type]  # one of its names
            confidence=confidence,
            n_replicates=replicates or 1000,
            seed=seed,
            directions=directions(table.criteria) | _parse_directions(direction),
            influence=influence,
            progress=tell,
        )
        if folder is not None:
            tell("writing the report", 99, 100)
            with write_atomically(folder / "results.json") as file:
                file.write(analysis.to_json())
            write_long(table, folder / "ratings.parquet", normalise=normalise)
            with write_atomically(folder / "tables.tex") as file:
                file.write(render_latex(analysis))
            report = write_report(analysis, folder / "report.html")
            _write_bad(table, folder / "bad-rows.csv")
    if as_json:
        print_json(analysis)
    elif not quiet:
        print_analysis(analysis, Console())
    if folder is None:
        return
    if table.bad.height:
        left = count_bad(table.bad, table.is_wide)
        typer.echo(f"left out {left} that cannot be used: {folder / 'bad-rows.csv'}", err=as_json)
    typer.echo(f"report: {report}", err=as_json)


def _parse_directions(words: list[str] | None) -> dict[str, Any]:
    return options.parse_pairs("--direction", words, "CRITERION=higher|lower|neither", "perplexity=lower")


def rating_sources(named: list[str], include_excluded: bool) -> tuple[list[Path | TableSource], Study | None]:
    """The tables to read, and the study if one of them is a served study's database."""
    sources: list[Path | TableSource] = []
    study = None
    for name in named:
        if database_url(name) is None:
            sources.append(Path(name))
            check_readable(Path(name))
            continue
        from palaver.server.chat_records import ratings_of_collection
        from palaver.server.decisions import count_decisions
        from palaver.server.export import Selection, read_answers, study_of

        with open_study(name) as database:
            if collected := ratings_of_collection(database):
                sources.append(open_frame(ratings_frame(collected), Path(name).stem))
                continue
            if n_decisions := count_decisions(database):
                text = f"{count_of(n_decisions, 'decision')} of admins stand beside the raters' answers"
                typer.echo(f"{text} and are not counted: palaver study export --decisions", err=True)
            study = study_of(database)
            sources.append(read_answers(database, Selection(excluded=include_excluded)))
    return sources, study


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Find out before the work that `folder` can be written; if the work fails, leave no empty folder."""
    new = not folder.exists()
    check_writable(folder)
    try:
        yield
    finally:
        if new and not any(folder.iterdir()):
            folder.rmdir()


def _write_bad(table: RatingTable, path: Path) -> None:
    """List the bad rows, or remove the list of an earlier run."""
    if table.bad.is_empty():
        path.unlink(missing_ok=True)
        return
    with write_atomically(path, "wb") as file:
        table.bad.write_csv(file)


def describe(
    ratings: Annotated[Path, typer.Argument(help="A rating file of any shape, as `analyse` takes it.")],
    file_options: options.RatingFile = RatingOptions(),
    kind: options.Kinds = None,
    as_json: options.Json = False,
) -> None:
    """Count and average a rating file of any size, in constant memory.

    Example: palaver study describe ratings.csv
    """
    source = open_ratings(ratings, sheet=file_options.sheet)
    (rated_by,) = kinds_of([source], options.parse_kinds(kind))
    with progress() as tell:
        description = run_description(source, file_options, kind=rated_by, progress=tell)
    if as_json:
        print_json(
            {
                "layout": description.layout,
                "ratings": description.n_ratings,
                "items": len(description.items),
                "raters": len(description.raters),
                "broken_rows": description.n_broken,
                "missing": description.n_missing,
                "notes": description.notes,
                "cells": description.cells.to_dicts(),
            }
        )
        return
    console = Console()
    sizes = {
        "rating": description.n_ratings,
        "item": len(description.items),
        "rater": len(description.raters),
    }
    counts = ", ".join(count_of(n, noun) for noun, n in sizes.items())
    lines.line(console, f"{counts} ({description.layout})")
    if description.n_broken:
        lines.line(
            console,
            f"rows that could not be read: {description.n_broken:,} (`palaver study analyse` lists them)",
            "yellow",
        )
    if description.n_missing:
        lines.line(console, f"left out, no value given: {description.n_missing:,}")
    for note in description.notes:
        lines.line(console, note, "dim")
    table = lines.table(
        ("criterion", "rated by", "system"), ("ratings", "mean", "sd", "lowest", "highest", "not numbers")
    )
    for cell in description.cells.iter_rows(named=True):
        moments = ("mean", "sd", "low", "high")
        table.add_row(
            lines.name_cell(cell["criterion"]),
            cell["kind"],
            lines.name_cell(cell["system"]),
            f"{cell['n'] + cell['n_words']:,}",
            *(_moment(cell[name]) if cell["n"] else DASH for name in moments),
            f"{cell['n_words']:,}",
        )
    lines.print_table(console, table)


def _moment(value: float) -> str:
    """A dash where there are too few numbers for it."""
    return DASH if math.isnan(value) else f"{value:.4g}".replace("-", MINUS)


def convert(
    source: Annotated[Path, typer.Argument(help="A rating file of any shape, as `analyse` takes it.")],
    target: Annotated[Path, typer.Argument(help="Where to: .csv, .jsonl, .parquet or .xlsx, long format.")],
    file_options: options.RatingFile = RatingOptions(),
    kind: options.Kinds = None,
    force: options.Force = False,
) -> None:
    """Write ratings in the long format, in constant memory.

    Words that stand for numbers become numbers, and what is left out is said.

    Example: palaver study convert screens.csv ratings.parquet
    """
    options.claim_ratings(target, force)
    reader = RatingReader(source, file_options)
    (rated_by,) = kinds_of([reader.table], options.parse_kinds(kind))
    count = write_ratings(ratings_of(reader, kind=rated_by), target)
    typer.echo(f"wrote {count:,} ratings to {target}")
    if reader.n_missing:
        typer.echo(f"left out, no value given: {reader.n_missing:,}")
    for note in reader.notes():
        typer.echo(note)
