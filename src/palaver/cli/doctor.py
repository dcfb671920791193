"""`palaver doctor`: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from palaver import __version__
from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.engine.cores import n_cores
from palaver.errors import count_of, pip_line
from palaver.files import cache_home

PURPOSES = {
    "models": "palaver chat, response models, the comparator, sentence encoders",
    "llm": "language models as systems and judges, the comparator's second opinion",
    "probes": "making and measuring probes",
    "data": "trained models that few need: the checkpoint default-personality, older sentence encoders",
    "cluster": "--engine ray",
    "sheets": "Excel files",
    "postgres": "studies in PostgreSQL",
    "pandas": "frames of pandas in and out",
}
"""Extra -> what it is for. `dev` is for those who work on Palaver, `all` is the sum."""

_LOW_DISK = 2_000_000_000


@dataclass(frozen=True)
class Extra:
    """An optional part and the packages it still lacks."""

    name: str
    purpose: str
    missing: tuple[str, ...]
    install: str


@dataclass(frozen=True)
class DataPackage:
    """A model or dictionary of `palaver get`."""

    name: str
    title: str
    wanted: str
    installed: str | None


@dataclass(frozen=True)
class Folder:
    """A place on the disk and the bytes in it."""

    use: str
    path: str
    size: int


@dataclass(frozen=True)
class Checkup:
    """All that `palaver doctor` found."""

    palaver: str
    python: str
    machine: str
    cores: int
    memory: int
    """Bytes; 0 where nobody knows."""
    device: str
    """What models run on."""
    extras: tuple[Extra, ...]
    kept: tuple[DataPackage, ...]
    cache: tuple[Folder, ...]
    free: int
    """Bytes left on the cache's disk."""
    corpora: tuple[str, ...]
    """Where corpora are looked for."""
    advice: tuple[str, ...]


def doctor(as_json: options.Json = False) -> None:
    """Show what is installed and what to do about the rest.

    Extras with the packages they lack, models and dictionaries, where caches lie and how large they are.
    Nothing is changed and nothing is sent anywhere.

    Example: palaver doctor
    """
    checkup = check_up()
    if as_json:
        print_json(checkup)
    else:
        _show(checkup)


def check_up() -> Checkup:
    """Look at everything once."""
    from palaver.corpora.catalogue import usual_roots
    from palaver.models.packages import PACKAGES, installed_version

    extras = tuple(
        Extra(name, purpose, tuple(_missing_of(name)), pip_line(name)) for name, purpose in PURPOSES.items()
    )
    kept = tuple(
        DataPackage(package.name, package.title, package.version, installed_version(package))
        for package in PACKAGES.values()
    )
    home = cache_home()
    folders = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    cache = tuple(Folder(path.name, str(path), _size_of(path)) for path in folders)
    free = shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free
    return Checkup(
        palaver=__version__,
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}",
        cores=n_cores(),
        memory=_memory(),
        device=_device(),
        extras=extras,
        kept=kept,
        cache=cache,
        free=free,
        corpora=tuple(map(str, usual_roots())),
        advice=tuple(_advice(extras, kept, free, home)),
    )


def _missing_of(extra: str) -> Iterator[str]:
    """The requirements of an extra that are not there, or too old."""
    from packaging.requirements import Requirement

    from palaver.models.catalogue import SHELVES, not_installed

    if extra == "data" and not any(map(not_installed, SHELVES)):
        return  # a checkout has what palaver-data holds
    for line in importlib.metadata.requires("palaver") or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "palaver":
            for inner in sorted(requirement.extras):
                yield from _missing_of(inner)
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield requirement.name
        else:
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"{requirement.name}{requirement.specifier} (found {version})"


def _size_of(folder: Path) -> int:
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(root, name)).st_size
            except OSError:  # gone meanwhile
                continue
    return size


def _memory() -> int:
    try:
        total = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:  # not Linux
        return 0
    return int(total[1]) * 1024 if total else 0


def _device() -> str:
    try:
        import torch
    except ImportError:
        return "no models without the extra models"
    if torch.cuda.is_available():
        return f"torch {torch.__version__} on {torch.cuda.get_device_name()}"
    return f"torch {torch.__version__} on the processor: no GPU was found"


def _advice(extras: tuple[Extra, ...], kept: tuple[DataPackage, ...], free: int, home: Path) -> Iterator[str]:
    lacking = {extra.name: extra for extra in extras if extra.missing}
    if "models" in lacking:
        yield f"for models and the comparator: {lacking['models'].install}"
    elif "llm" in lacking:
        yield f"for a chat worth having and language models as judges: {lacking['llm'].install}"
    absent = {package.name for package in kept if package.installed is None}
    if "llm" not in lacking and "smollm2" in absent:
        yield "for a chat worth having: palaver get smollm2"
    for package in kept:
        if package.installed not in (None, package.wanted):
            yield f"{package.name} is {package.installed}: palaver get {package.name} --force"
    if free < _LOW_DISK:
        yield f"little room is left on the disk ({_amount(free)}); what is in {home} can be made again"
    if sys.prefix == sys.base_prefix:
        yield "this Python is not a virtual environment; one of its own keeps Palaver's packages apart"


def _show(checkup: Checkup) -> None:
    memory = f", {_amount(checkup.memory)} of memory" if checkup.memory else ""
    cores = count_of(checkup.cores, "core")
    typer.echo(f"Palaver {checkup.palaver}, Python {checkup.python}, {checkup.machine}, {cores}{memory}")
    typer.echo(f"Models: {checkup.device}")
    typer.echo("\nOptional parts")
    for extra in checkup.extras:
        typer.echo(f"  {extra.name:<10}{'missing' if extra.missing else 'here':<10}{extra.purpose}")
        if extra.missing:
            typer.echo(f"{'':22}lacks {', '.join(extra.missing)}: {extra.install}")
    typer.echo("\nModels and dictionaries (palaver get)")
    for package in checkup.kept:
        typer.echo(f"  {package.name:<12}{_state(package):<10}{package.title}")
    typer.echo(f"\nCaches ({_amount(checkup.free)} free on that disk; all of it can be made or got again)")
    for folder in checkup.cache:
        typer.echo(f"  {folder.use:<12}{_amount(folder.size):<10}{folder.path}")
    if not checkup.cache:
        typer.echo(f"  nothing yet in {cache_home()}")
    typer.echo(f"\nCorpora are looked for in {' and '.join(checkup.corpora)} (PALAVER_DATA names another)")
    typer.echo("\nWhat to do")
    for advice in checkup.advice:
        typer.echo(f"  {advice}")
    if not checkup.advice:
        typer.echo("  nothing: all is well")


def _state(package: DataPackage) -> str:
    if package.installed is None:
        return "not here"
    return "here" if package.installed == package.wanted else package.installed


def _amount(size: int) -> str:
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
