"""`palaver study serve | status | export | backup | restore`: studies that real people take part in."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.study import Force, _refuse_overwrite, app

if TYPE_CHECKING:
    from palaver.server.dashboard import Dashboard
    from palaver.server.database import Database
    from palaver.server.settings import Settings

Held = Annotated[
    str,
    typer.Argument(help="The study file, its database (study.db), or the database's URL.", metavar="STUDY"),
]


@app.command()
def serve(
    file: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    database: Annotated[
        str | None, typer.Option(help="Database URL. [default: SQLite beside the study file]")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 for all networks.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy shows the study.")] = "",
    secure: Annotated[
        bool, typer.Option("--secure", help="TLS stands in front: links and cookies are for https.")
    ] = False,
    public_url: Annotated[
        str | None, typer.Option(help="The address people use, for the printed links and the QR code.")
    ] = None,
    admin_token: Annotated[
        str | None,
        typer.Option(envvar="PALAVER_ADMIN_TOKEN", help="Token of the admin link. [default: a new one]"),
    ] = None,
    qr: Annotated[bool, typer.Option(help="Print the rater link as a QR code.")] = True,
) -> None:
    """Serve a study to raters; stop it and start it again, and everybody goes on where they were.

    Example: palaver study serve study.toml --port 8000
    """
    from palaver.server.oversight import arm_token
    from palaver.server.settings import Settings

    settings = Settings(
        study_file=file.resolve(),
        database=database or _beside(file),
        host=host,
        port=port,
        workers=workers,
        root_path=root_path,
        secure_cookies=secure,
    )
    title, done, target = _prepare(settings)
    settings = settings.model_copy(update={"port": _free_port(host, port)})
    with _opened(settings.database) as base:
        token = arm_token(base, admin_token)
    link = f"{(public_url or _address(settings)).rstrip('/')}/"
    typer.echo(f"{title}: {done:,} of {target:,} screens done")
    typer.echo(f"  for raters  {link}")
    typer.echo(f"  for you     {link}{_sign_in(token)}  (works once)")
    typer.echo(f"  database    {_shown(settings.database)}")
    if qr:
        _print_qr(link)
    typer.echo("Ctrl+C stops the server; nothing is lost.")
    sys.stdout.flush()
    _run(settings)


def _prepare(settings: Settings) -> tuple[str, int, int]:
    """The study put into its database, or found there unchanged; how far it is."""
    from palaver.server.migrations import migrate
    from palaver.server.oversight import status
    from palaver.server.study_state import StudyState
    from palaver.studies.design import load_study

    assert settings.study_file is not None
    study = load_study(settings.study_file)
    with _opened(settings.database, new=True) as database:
        migrate(database)
        StudyState.create(database, study, settings.study_file.read_text(encoding="utf-8"))
        now = status(database)
    return study.title or study.name, now.done, now.target


def _free_port(host: str, port: int) -> int:
    """The port to listen on; one that is in use is found out before anything is promised."""
    from palaver.errors import UserError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise UserError(
                f"cannot listen on {host}, port {port}: {why}",
                "choose another with --port (0 takes any that is free), or see --host",
            ) from None
        return int(probe.getsockname()[1])


def _run(settings: Settings) -> None:
    import uvicorn

    os.environ.update(settings.to_environment())  # server processes read it there
    uvicorn.run(
        "palaver.server.app:app_from_environment",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        log_level="warning",
        access_log=False,  # it would keep raters' platform ids and the admin's token
        server_header=False,
        timeout_graceful_shutdown=5,
    )


def _address(settings: Settings) -> str:
    host = _own_address() if settings.host in ("0.0.0.0", "::") else settings.host
    scheme, usual = ("https", 443) if settings.secure_cookies else ("http", 80)
    shown = f"[{host}]" if ":" in host else host
    port = "" if settings.port == usual else f":{settings.port}"
    return f"{scheme}://{shown}{port}{settings.root_path}"


def _sign_in(token: str) -> str:
    from urllib.parse import quote

    return f"admin/login?token={quote(token, safe='')}"


def _own_address() -> str:
    """The address others on the network see. Nothing is sent: connecting UDP only picks an interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def _print_qr(link: str) -> None:
    import segno

    try:
        "▀▄█".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return  # a terminal that cannot draw it
    segno.make(link, error="m", micro=False).terminal(compact=True)


# --- databases by name --------------------------------------------------------------------------------------


def _beside(file: Path) -> str:
    """The URL of the SQLite file that belongs to a study file."""
    from palaver.server.database import sqlite_url

    return sqlite_url(file.resolve().with_suffix(".db"))


def database_url(named: str) -> str | None:
    """The URL of a study's database, however it is named; None if it is no database."""
    if "://" in named:
        return named
    path = Path(named)
    if path.suffix == ".toml":
        return _beside(path)
    if path.suffix in (".db", ".sqlite", ".sqlite3"):
        from palaver.server.database import sqlite_url

        return sqlite_url(path.resolve())
    return None


@contextmanager
def _opened(url: str, *, new: bool = False) -> Iterator[Database]:
    """A database; `new` if it may have to be made."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import DatabaseError, OperationalError

    from palaver.errors import UserError
    from palaver.files import check_writable
    from palaver.server.database import Database

    if url.startswith("sqlite"):
        name = make_url(url).database
        if not name or name == ":memory:":
            raise UserError(f"{url} is kept in memory, where answers would be lost", "use sqlite:///study.db")
        path = Path(name)
        if new:
            try:
                check_writable(path.parent)
            except UserError as error:
                raise UserError(error.message, "choose another place with --database sqlite:///…") from None
        elif not path.is_file():
            raise UserError(f"there is no database {path}", "a study gets one when it is served")
    try:
        database = Database(url)
        try:
            yield database
        finally:
            database.close()
    except OperationalError as error:
        raise UserError(f"the database {_shown(url)} cannot be used: {error.orig}") from None
    except DatabaseError as error:
        raise UserError(f"{_shown(url)} is not a study's database: {error.orig}") from None


@contextmanager
def opened(named: str) -> Iterator[Database]:
    """The database of a study that was served, brought to the newest schema."""
    from palaver.errors import UserError
    from palaver.server.migrations import migrate
    from palaver.server.study_state import StudyState

    url = database_url(named)
    if url is None:
        raise UserError(
            f"{named} is neither a study file nor a database",
            "expected study.toml, study.db, or a URL such as postgresql+psycopg://user@host/name",
        )
    with _opened(url) as database:
        migrate(database)
        StudyState(database)  # says so if there is no study in it
        yield database


def _shown(url: str) -> str:
    from sqlalchemy.engine import make_url

    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return str(parsed.database)
    return parsed.render_as_string(hide_password=True)


# --- looking and taking away --------------------------------------------------------------------------------


@app.command()
def status(
    study: Held,
    new_admin_link: Annotated[
        bool, typer.Option("--new-admin-link", help="Make a new one-time link for the admin page.")
    ] = False,
    url: Annotated[
        str, typer.Option(help="The address of the server, for that link.")
    ] = "http://127.0.0.1:8000/",
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Say how far a served study is, while it is running or not.

    Example: palaver study status study.toml
    """
    import json

    from palaver.server.dashboard import as_data, look
    from palaver.server.live import Live
    from palaver.server.oversight import arm_token
    from palaver.server.study_state import StudyState

    with opened(study) as database:
        if new_admin_link:
            typer.echo(f"{url.rstrip('/')}/{_sign_in(arm_token(database))}")
            return
        design = StudyState(database).study
        board = look(database, Live(database, design), wait=True)
        if as_json:
            typer.echo(json.dumps(as_data(board), indent=1, ensure_ascii=False))
            return
        _print_status(board, design.title or design.name)


def _print_status(board: Dashboard, title: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from palaver.reports import numbers, wording

    assert board.findings is not None
    now, found, console = board.status, board.findings, Console()
    console.print(title, style="bold", markup=False, highlight=False)
    lines = [
        f"{now.done:,} of {now.target:,} screens done, {now.open:,} in hand; "
        f"{now.items_done:,} of {now.items:,} items complete",
        f"{numbers.some(now.answers, 'answer')} by {numbers.some(now.raters, 'rater')}, "
        f"{now.at_work:,} at work, {now.excluded:,} excluded, {now.blocked:,} blocked",
        f"median time per screen: {numbers.seconds(found.screen_seconds)}",
    ]
    for text in lines:
        console.print(text, markup=False, highlight=False)
    if found.criteria:
        table = Table()
        for column in ("criterion", "agreement", "ranking so far"):
            table.add_column(column, overflow="fold")
        for c in found.criteria:
            agreement = wording.agreement_sentence(c.agreement) if c.agreement else numbers.DASH
            several = len(c.rankings) > 1
            ranked = [f"{r.criterion}: " * several + wording.ranking_text(r) for r in c.rankings]
            ranking = "\n".join(ranked) or numbers.DASH
            table.add_row(escape(c.criterion), escape(agreement), escape(ranking))
        console.print(table)
    flagged = [line for line in board.raters if line.flags and not line.rater.excluded]
    for line in flagged:
        console.print(f"look at {line.name}: {', '.join(line.flags)}", markup=False, highlight=False)


@app.command()
def export(
    study: Held,
    out: Annotated[Path, typer.Option(help="Where to: .csv, .jsonl or .parquet, long format.")],
    all_screens: Annotated[
        bool, typer.Option("--all-screens", help="Also checks, broken copies and training.")
    ] = False,
    without_excluded: Annotated[
        bool, typer.Option("--without-excluded", help="Leave out raters excluded from analysis.")
    ] = False,
    raters: Annotated[
        bool, typer.Option("--raters", help="The raters instead: survey, comments, platform ids (.jsonl).")
    ] = False,
    force: Force = False,
) -> None:
    """Write the answers of a served study, while it is running or not.

    Example: palaver study export study.toml --out ratings.csv
    """
    from palaver.errors import UserError
    from palaver.files import format_by_name, write_atomically
    from palaver.server.export import Selection, rater_lines, write_export

    _refuse_overwrite(out, force)
    with opened(study) as database:
        if raters:
            if format_by_name(out) != "jsonl":
                raise UserError("raters can only be written as JSON lines", "end the name in .jsonl")
            with write_atomically(out, "wb") as file:
                count = sum(bool(file.write(line)) for line in rater_lines(database))
            typer.echo(f"wrote {count:,} raters to {out}")
            return
        chosen = Selection(all_screens=all_screens, excluded=not without_excluded)
        count = write_export(database, out, chosen)
    typer.echo(f"wrote {count:,} ratings to {out}")


@app.command()
def backup(
    study: Held,
    out: Annotated[Path, typer.Option(help="The file to write (gzipped; such as study-backup.gz).")],
    force: Force = False,
) -> None:
    """Save a whole served study in one file, while it is running or not.

    Example: palaver study backup study.toml --out study-backup.gz
    """
    from palaver.server.backup import backup as take

    _refuse_overwrite(out, force)
    with opened(study) as database:
        taken = take(database, out)
    rows = taken.rows
    typer.echo(f"saved {taken.study}: {rows['answer']:,} answers by {rows['rater']:,} raters, in {out}")


@app.command()
def restore(
    saved: Annotated[Path, typer.Argument(help="A file that `palaver study backup` wrote.")],
    database: Annotated[
        str, typer.Option(help="An empty or new database: study.db, or a URL (also of the other kind).")
    ],
) -> None:
    """Put a saved study into an empty database.

    Example: palaver study restore study-backup.gz --database study.db
    """
    from palaver.errors import UserError
    from palaver.server.backup import restore as put_back

    url = None if database.endswith(".toml") else database_url(database)
    if url is None:
        raise UserError(f"--database: expected study.db or a database URL, found {database!r}")
    with _opened(url, new=True) as target:
        put = put_back(saved, target)
    typer.echo(f"restored {put.study}: {put.rows['answer']:,} answers by {put.rows['rater']:,} raters")
