"""`palaver study serve | status | export | backup | restore`: studies that real people take part in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.serving import (
    Greeting,
    check_keys,
    checked_url,
    named_database,
    serve_preview,
    sign_in,
    start_serving,
    start_serving_several,
)
from palaver.cli.study_database import (
    ServedStudy,
    open_database,
    open_study,
    refuse_collection,
    url_beside,
)
from palaver.cli.study_folder import settings_of_several
from palaver.errors import DataError, UsageError
from palaver.files import write_atomically
from palaver.readers.rating_files import rating_format
from palaver.reports import lines, numbers, wording
from palaver.schema import Study
from palaver.server.backup import backup as write_backup
from palaver.server.backup import restore as read_backup
from palaver.server.dashboard import Dashboard, as_data, look
from palaver.server.decisions import count_decisions, decision_lines
from palaver.server.export import Selection, rater_lines, shared_rater_lines, write_export
from palaver.server.live import Live
from palaver.server.migrations import migrate
from palaver.server.oversight import arm_token, served_address
from palaver.server.oversight import status as progress_of
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.studies.design import load_study
from palaver.studies.media import media_notes


def serve(
    files: Annotated[
        list[Path],
        typer.Argument(help="A study file (TOML); or several, or a folder of them.", metavar="STUDY"),
    ],
    database: options.Database = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    processes: options.Processes = 1,
    public_url: options.PublicUrl = None,
    prolific_keys: options.ProlificKeys = None,
    admin_token: options.AdminToken = None,
    new_keys: options.NewKeys = False,
    qr: options.Qr = True,
    preview: Annotated[
        bool, typer.Option("--preview", help="Walk through it yourself: nothing is kept.")
    ] = False,
) -> None:
    """Serve a study to raters.

    Stop it and start it again, and everybody goes on where they were. Several studies share one address: each
    lives under its own name (/likert/) with a database of its own, and one page shows how far all of them
    are. A folder is all studies in it. For them --database holds {name}: postgresql+psycopg://lab@/study_{name}.

    Example: palaver study serve study.toml --port 8000

    Several: palaver study serve likert.toml pairwise.toml --port 8000
    """
    settings = Settings(
        database="",
        host=host,
        port=port,
        workers=processes,
        public_url=checked_url(public_url),
        prolific_keys=prolific_keys.resolve() if prolific_keys else None,
    )
    check_keys(settings)
    if preview:
        serve_preview(settings, files, qr=qr)
        return
    if len(files) == 1 and not files[0].is_dir():
        url = named_database(database) if database else url_beside(files[0])
        settings = settings.model_copy(update={"study_file": files[0].resolve(), "database": url})
        headline = _prepare(settings)
        greeting = Greeting(headline, "for raters", qr=qr)
        start_serving(settings, greeting, admin_token=admin_token, new_keys=new_keys)
        return
    studies = settings_of_several(settings, files, database)
    headlines = [_prepare(settings, study) for settings, study in studies]
    start_serving_several(
        [settings for settings, _ in studies], headlines, admin_token=admin_token, new_keys=new_keys
    )


def _prepare(settings: Settings, study: Study | None = None) -> str:
    """The study put into its database, or found there unchanged; how far it is."""
    assert settings.study_file is not None
    file = settings.study_file
    study = study or load_study(file)
    for note in media_notes(study):
        typer.echo(note, err=True)
    with open_database(settings.database, new=True) as database:
        migrate(database)
        state = StudyState.create(database, study, file.read_text(encoding="utf-8"), folder=file.parent)
        now = progress_of(database)
    if state.study != study:
        note = f"{file.name} is an earlier version: version {state.version} is served"
        typer.echo(note, err=True)
    return f"{state.study.title or study.name}: {now.done:,} of {now.target:,} screens done"


def status(
    study: ServedStudy,
    new_admin_link: Annotated[
        bool, typer.Option("--new-admin-link", help="Make a new one-time link for the admin page.")
    ] = False,
    public_url: options.PublicUrl = None,
    as_json: options.Json = False,
) -> None:
    """Say how far a served study is, while it is running or not.

    Example: palaver study status study.toml
    """
    with open_study(study) as database:
        if new_admin_link:
            address = checked_url(public_url) or served_address(database)
            if address is None:
                raise UsageError("--public-url is missing", "this study was not served yet by this version")
            typer.echo(f"{address}/{sign_in(arm_token(database))}")
            return
        refuse_collection(database, f"palaver collect status {study}")
        design = StudyState(database).study
        board = look(database, Live(database), wait=True)
        if as_json:
            print_json(as_data(board))
            return
        _print_status(board, design.title or design.name)


def _print_status(board: Dashboard, title: str) -> None:
    assert board.findings is not None
    now, findings, console = board.status, board.findings, Console()
    lines.line(console, title, "bold")
    facts = [
        f"{now.done:,} of {now.target:,} screens done, {now.open:,} in hand; "
        f"{now.items_done:,} of {now.items:,} items complete",
        f"{numbers.some(now.answers, 'answer')} by {numbers.some(now.raters, 'rater')}, "
        f"{now.at_work:,} at work, {now.excluded:,} excluded, {now.blocked:,} blocked",
        f"median time per screen: {numbers.seconds(findings.screen_seconds)}",
    ]
    for text in facts:
        lines.line(console, text)
    if findings.criteria:
        table = lines.table(("criterion", "agreement", "ranking so far"), ())
        for c in findings.criteria:
            agreement = wording.agreement_sentence(c.agreement) if c.agreement else numbers.DASH
            ranked = [wording.ranking_text(r) for r in c.rankings]
            if len(ranked) > 1:
                ranked = [f"{r.criterion}: {text}" for r, text in zip(c.rankings, ranked, strict=True)]
            ranking = "; ".join(ranked) or numbers.DASH
            table.add_row(lines.name_cell(c.criterion), Text(agreement), Text(ranking))
        lines.print_table(console, table)
    flagged = [line for line in board.raters if line.flags and not line.rater.excluded]
    for line in flagged:
        lines.line(console, f"look at {line.name}: {', '.join(line.flags)}")


def export(
    study: ServedStudy,
    out: options.Out,
    all_screens: Annotated[
        bool, typer.Option("--all-screens", help="Also checks, broken copies and training.")
    ] = False,
    without_excluded: Annotated[
        bool, typer.Option("--without-excluded", help="Leave out raters excluded from analysis.")
    ] = False,
    raters: Annotated[
        bool, typer.Option("--raters", help="The raters instead: survey, comments, platform ids (.jsonl).")
    ] = False,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="The admins' decisions about disputed items instead (.jsonl).")
    ] = False,
    share: Annotated[
        bool, typer.Option("--share", help="What may be published: pseudonyms, no platform ids, no codes.")
    ] = False,
    comments: Annotated[bool, typer.Option("--comments", help="With --share: also free text.")] = False,
    excel: Annotated[
        bool, typer.Option("--excel", help="CSV for spreadsheets: no cell is taken for a formula.")
    ] = False,
    force: options.Force = False,
) -> None:
    """Write the answers of a served study, while it is running or not.

    They are written in the long format: .csv, .jsonl, .parquet or .xlsx.

    Example: palaver study export study.toml --out ratings.csv
    """
    if comments and not share:
        raise UsageError("--comments goes with --share", "without it, all that raters wrote is there")
    if excel and (raters or rating_format(out) != "csv"):
        raise UsageError("--excel is for CSV", "end the name in .csv, or in .xlsx without --excel")
    if (raters or decisions) and rating_format(out) != "jsonl":
        what = "decisions" if decisions else "raters"
        raise UsageError(f"{what} can only be written as JSON lines", "end the name in .jsonl")
    if raters and decisions:
        raise UsageError("--raters and --decisions are two files", "write one after the other")
    options.claim_ratings(out, force)
    with open_study(study) as database:
        if raters or decisions:
            if decisions:
                if not count_decisions(database):
                    raise DataError("there is nothing to export: no decision stands")
                lines = decision_lines(database, names=not share)
            else:
                lines = shared_rater_lines(database, comments) if share else rater_lines(database)
            with write_atomically(out, "wb") as file:
                count = sum(bool(file.write(line)) for line in lines)
            typer.echo(f"wrote {count:,} {'decisions' if decisions else 'raters'} to {out}")
            return
        refuse_collection(database, f"palaver collect ratings {study} --out {out}")
        chosen = Selection(
            all_screens=all_screens,
            excluded=not without_excluded,
            share=share,
            excel=excel,
            texts=comments or not share,
        )
        count = write_export(database, out, chosen)
    typer.echo(f"wrote {count:,} ratings to {out}")
    design = f" --study {study}" if study.endswith(".toml") else ""
    typer.echo(f"next: palaver study analyse {out}{design}")


def backup(
    study: ServedStudy,
    out: options.Out,
    force: options.Force = False,
) -> None:
    """Save a served study in one file, while it is running or not.

    Example: palaver study backup study.toml --out study-backup.gz
    """
    options.refuse_existing(out, force)
    with open_study(study) as database:
        taken = write_backup(database, out)
    rows = taken.rows
    typer.echo(f"saved {taken.study}: {rows['answer']:,} answers by {rows['rater']:,} raters, in {out}")


def restore(
    saved: Annotated[Path, typer.Argument(help="A file that `palaver study backup` wrote.")],
    database: options.Database = None,
) -> None:
    """Put a saved study into an empty database.

    It may be a new one, and of the other kind.

    Example: palaver study restore study-backup.gz --database study.db
    """
    if database is None:
        raise UsageError("--database is missing", "name a new database, such as --database study.db")
    with open_database(named_database(database), new=True) as target:
        put = read_backup(saved, target)
    typer.echo(f"restored {put.study}: {put.rows['answer']:,} answers by {put.rows['rater']:,} raters")
