"""What every command that serves does: an address, a port, the links that are printed, and the server."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlsplit

import segno
import typer
from pydantic import ValidationError

from palaver.cli.study_database import database_url, open_database, shown_url, sqlite_file
from palaver.errors import UsageError, UserError
from palaver.server.oversight import arm_token, note_address, renew_keys
from palaver.server.preview import create_preview, preview_folder
from palaver.server.prolific import ProlificKeys
from palaver.server.settings import Settings
from palaver.studies.design import load_study


@dataclass(frozen=True)
class Greeting:
    """What is said when the server begins."""

    headline: str
    whom: str
    """For whom the link is: `for raters`."""
    qr: bool = True


def start_serving(
    settings: Settings, greeting: Greeting, *, admin_token: str | None = None, new_keys: bool = False
) -> None:
    """Print the links, then serve until the process is stopped. What is served is in the database already."""
    settings = settings.model_copy(update={"port": free_port(settings.host, settings.port)})
    token = _make_ready(settings, admin_token, new_keys=new_keys)
    link = f"{address_of(settings)}/"
    typer.echo(greeting.headline)
    typer.echo(f"  {greeting.whom}  {link}")
    typer.echo(f"  for you     {link}{sign_in(token)}  (works once)")
    typer.echo(f"  database    {shown_url(settings.database)}")
    if greeting.qr:
        _print_qr(link)
    _serve([settings])


def start_serving_several(
    studies: Sequence[Settings],
    headlines: Sequence[str],
    *,
    admin_token: str | None = None,
    new_keys: bool = False,
) -> None:
    """The same for several studies behind one address."""
    port = free_port(studies[0].host, studies[0].port)
    studies = [settings.model_copy(update={"port": port}) for settings in studies]
    token: str | None = admin_token
    for settings in studies:  # the same token for all
        token = _make_ready(settings, token, new_keys=new_keys)
    assert token is not None
    for settings, headline in zip(studies, headlines, strict=True):
        typer.echo(headline)
        typer.echo(f"  for raters  {address_of(settings)}/")
        typer.echo(f"  database    {shown_url(settings.database)}")
    base = address_of(studies[0].model_copy(update={"study_path": ""}))
    typer.echo(f"for you       {base}/{sign_in(token)}  (works once, for all)")
    _serve(studies)


def serve_preview(settings: Settings, files: Sequence[Path], *, qr: bool = True) -> None:
    """Serve a study for its owner to look at, from a database that is thrown away."""
    if len(files) != 1 or files[0].is_dir():
        raise UsageError("--preview is for one study", "name its file")
    study = load_study(files[0])
    with preview_folder() as folder:
        source = files[0].read_text(encoding="utf-8")
        url = create_preview(folder, study, source, "preview", files[0].parent)
        port = free_port(settings.host, settings.port)
        changes = {"database": url, "port": port, "is_preview": True, "prolific_keys": None}
        settings = settings.model_copy(update=changes)
        typer.echo(f"{study.title or study.name}: a preview, of which nothing is kept")
        typer.echo(f"  for raters  {address_of(settings)}/")
        if qr:
            _print_qr(f"{address_of(settings)}/")
        _serve([settings], "Ctrl+C ends the preview.")


def _make_ready(settings: Settings, admin_token: str | None, *, new_keys: bool) -> str:
    """The admin's token, which the database knows now, as it knows the address."""
    with open_database(settings.database) as base:
        if new_keys:
            renew_keys(base)
        token = arm_token(base, admin_token)
        note_address(base, address_of(settings))
    return token


def _serve(studies: Sequence[Settings], ending: str = "Ctrl+C stops the server; nothing is lost.") -> None:
    for problem in dict.fromkeys(problem for settings in studies for problem in _dangers(settings)):
        typer.echo(f"warning: {problem}", err=True)
    typer.echo(ending)
    sys.stdout.flush()

    from palaver.server.processes import serve  # the other verbs need no server

    with preview_folder() as folder:  # all processes share it
        serve([settings.model_copy(update={"preview_folder": folder}) for settings in studies])


def _dangers(settings: Settings) -> Iterator[str]:
    """What the owner should know before people come."""
    name = urlsplit(address_of(settings)).hostname or ""
    if not settings.is_secure and not _is_loopback(name):
        yield (
            f"{name} is served over plain http: answers and your sign-in can be read and changed on the way. "
            "Put TLS in front and say --public-url https://… (docs/how-to/go-public.md)"
        )
    file = sqlite_file(settings.database)
    if file is not None and os.name == "posix" and file.stat().st_mode & 0o077:
        yield f"other users of this machine can read {file} and the keys in it: chmod 600 it, then --new-keys"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_keys(settings: Settings) -> None:
    """Say now what is wrong with the file of Prolific's keys."""
    if settings.prolific_keys is not None:
        ProlificKeys(settings.prolific_keys)


def free_port(host: str, port: int) -> int:
    """The port to listen on; one that is in use is found out before anything is promised."""
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


def address_of(settings: Settings) -> str:
    """Where people find the study."""
    if settings.public_url:
        return f"{settings.public_url}{settings.study_path}"
    host = _own_address() if settings.host in ("0.0.0.0", "::") else settings.host
    shown = f"[{host}]" if ":" in host else host
    port = "" if settings.port == 80 else f":{settings.port}"
    return f"http://{shown}{port}{settings.study_path}"


def checked_url(public_url: str | None) -> str:
    """An address as `Settings` takes it."""
    try:
        return Settings(database="", public_url=public_url or "").public_url
    except ValidationError as error:
        raise UsageError(f"--public-url: {error.errors()[0]['ctx']['error']}") from None


def sign_in(token: str) -> str:
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
    try:
        "▀▄█".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return  # a terminal that cannot draw it
    segno.make(link, error="m", micro=False).terminal(compact=True)


def named_database(named: str) -> str:
    """The URL of what `--database` names."""
    url = None if named.endswith(".toml") else database_url(named)
    if url is None:
        raise UsageError(f"--database: expected study.db or a database URL, found {named!r}")
    return url
