"""`palaver study analyse | describe | convert`: what to do with ratings once they are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palaver.cli.study import Correlation, Force, Normalisation, SeedOption, _refuse_overwrite, app

if TYPE_CHECKING:
    from palaver.schema import Study
    from palaver.studies import RatingTable
    from palaver.tables import TableSource

Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="Which column is which, FIELD=NAME (rater=worker); repeat it."),
]


Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help="Who rated a file, FILE=KIND: human, user, metric, model or llm; repeat it."),
]


def _pairs(option: str, example: str, words: list[str] | None) -> dict[str, Any]:
    """`A=B` as A -> B; a file's name may have a `=` itself."""
    from palaver.errors import UserError

    pairs = {}
    for word in words or []:
        left, equals, right = word.rpartition("=") if option == "--kind" else word.partition("=")
        if not (left and equals and right):
            raise UserError(f"{option}: expected {example}, found {word!r}")
        pairs[left] = right
    return pairs


def _columns(words: list[str] | None) -> dict[str, str]:
    return _pairs("--column", "FIELD=NAME, such as rater=worker_id", words)


def _kinds(words: list[str] | None) -> dict[str, Any]:
    return _pairs("--kind", "FILE=KIND, such as scores.csv=metric", words)


@app.command()
def analyse(
    ratings: Annotated[
        list[str],
        typer.Argument(
            help="Rating files (JSON lines, CSV or Parquet, long or wide), or a served study's database."
        ),
    ],
    study: Annotated[Path | None, typer.Option(help="The study file: scales, permitted values.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the files. [default: NAME-analysis]")] = None,
    normalise: Annotated[
        Normalisation,
        typer.Option(help="How ratings become scores; auto: log for magnitudes, raw otherwise."),
    ] = Normalisation.auto,
    correlation: Annotated[Correlation, typer.Option(help="Between criteria.")] = Correlation.spearman,
    confidence: Annotated[
        float, typer.Option(min=0.51, max=0.9999, help="Of intervals and rank groups.")
    ] = 0.95,
    replicates: Annotated[int, typer.Option(min=1, max=1_000_000, help="Bootstrap replicates.")] = 1000,
    seed: SeedOption = 0,
    column: Columns = None,
    kind: Kinds = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(help="Which end of a criterion is better, CRITERION=higher|lower|neither; repeat it."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used; bad-rows.csv lists them.")
    ] = False,
    include_excluded: Annotated[
        bool,
        typer.Option("--include-excluded", help="Of a served study: also the raters that were excluded."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Write the files, print only where they are.")
    ] = False,
) -> None:
    """Which system is better, do the raters agree, and how much of the answer is noise?

    Writes report.html, results.json and ratings.parquet, and prints the tables. Of a served study (study.db,
    a database URL, or study.toml) the answers so far are taken, without excluded raters.

    Example: palaver study analyse ratings.csv --study study.toml --out results
    """
    from palaver.cli.progress import progress
    from palaver.files import write_atomically
    from palaver.reports import print_analysis, write_report
    from palaver.studies import analyse as run_analysis
    from palaver.studies import load_study, read_ratings, write_long

    design = load_study(study) if study else None
    folder = out or Path(f"{Path(ratings[0]).name.strip('.').split('.')[0]}-analysis")
    sources, served = _sources(ratings, include_excluded)
    design = design or served
    with _writable(folder), progress() as tell:
        table = read_ratings(
            sources,
            study=design,
            columns=_columns(column),
            kinds=_kinds(kind),
            skip_bad=skip_bad,
            progress=tell,
        )
        analysis = run_analysis(
            table,
            study=design,
            normalise=normalise.value,
            correlation=correlation.value,
            confidence=confidence,
            n_replicates=replicates,
            seed=seed,
            directions=_pairs("--direction", "CRITERION=lower", direction),
            progress=tell,
        )
        tell("writing the report", 99, 100)
        with write_atomically(folder / "results.json") as file:
            file.write(analysis.to_json())
        write_long(table, folder / "ratings.parquet", normalise=normalise.value)
        report = write_report(analysis, folder / "report.html")
        n_bad = _write_bad(table, folder / "bad-rows.csv")
    if not quiet:
        from rich.console import Console

        print_analysis(analysis, Console())
    if n_bad:
        rows = "1 row" if n_bad == 1 else f"{n_bad:,} rows"
        typer.echo(f"left out {rows} that cannot be used: {folder / 'bad-rows.csv'}")
    typer.echo(f"report: {report}")


def _sources(named: list[str], include_excluded: bool) -> tuple[list[Path | TableSource], Study | None]:
    """What to read, and the study if one of them is a served study's database."""
    from palaver.cli.serve import database_url, opened
    from palaver.files import check_readable

    sources: list[Path | TableSource] = []
    study = None
    for name in named:
        if database_url(name) is None:
            check_readable(Path(name))
            sources.append(Path(name))
            continue
        from palaver.server.export import Selection, read_answers, study_of

        with opened(name) as database:
            study = study_of(database)
            sources.append(read_answers(database, Selection(excluded=include_excluded)))
    return sources, study


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Find out before the work that `folder` can be written; if the work fails, leave no empty folder."""
    from palaver.files import check_writable

    new = not folder.exists()
    check_writable(folder)
    try:
        yield
    finally:
        if new and not any(folder.iterdir()):
            folder.rmdir()


def _write_bad(table: RatingTable, path: Path) -> int:
    """List the bad rows, or remove the list of an earlier run; how many rows there are."""
    from palaver.files import write_atomically

    if table.bad.is_empty():
        path.unlink(missing_ok=True)
        return 0
    with write_atomically(path, "wb") as file:
        table.bad.write_csv(file)
    return table.bad.select("file", "row").n_unique()


@app.command()
def describe(
    ratings: Annotated[Path, typer.Argument(help="A rating file: JSON lines, CSV or Parquet, long or wide.")],
    column: Columns = None,
    kind: Kinds = None,
) -> None:
    """Count and average a rating file of any size, in constant memory.

    Example: palaver study describe ratings.csv
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from palaver.cli.progress import progress
    from palaver.readers.ratings import kinds_of
    from palaver.studies.describe import describe as run_description
    from palaver.tables import open_table

    source = open_table(ratings)
    (who,) = kinds_of([source], _kinds(kind))
    with progress() as tell:
        description = run_description(source, columns=_columns(column), kind=who, progress=tell)
    console = Console()
    counts = (
        f"{description.n_ratings:,} ratings, {len(description.items):,} items, "
        f"{len(description.raters):,} raters"
    )
    console.print(f"{counts} ({description.layout})", markup=False, highlight=False)
    if description.n_broken:
        console.print(f"rows that could not be read: {description.n_broken:,}", style="yellow")
    table = Table()
    for name in ("criterion", "rated by", "system"):
        table.add_column(name)
    for name in ("ratings", "mean", "sd", "lowest", "highest", "not numbers"):
        table.add_column(name, justify="right")
    for cell in sorted(description.cells.values(), key=lambda c: (c.criterion, c.kind, c.system)):
        numbers = [f"{v:.4g}" for v in (cell.mean, cell.sd, cell.low, cell.high)] if cell.n else ["–"] * 4
        table.add_row(
            escape(cell.criterion),
            cell.kind,
            escape(cell.system),
            f"{cell.n + cell.n_words:,}",
            *numbers,
            f"{cell.n_words:,}",
        )
    console.print(table)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="Ratings in any layout.")],
    target: Annotated[Path, typer.Argument(help="Where to: .csv, .jsonl or .parquet, long format.")],
    column: Columns = None,
    force: Force = False,
) -> None:
    """Write ratings in the long format, in constant memory.

    Example: palaver study convert screens.csv ratings.parquet
    """
    from palaver.readers.rating_files import iter_ratings, write_ratings

    _refuse_overwrite(target, force)
    count = write_ratings(iter_ratings(source, columns=_columns(column)), target)
    typer.echo(f"wrote {count:,} ratings to {target}")
