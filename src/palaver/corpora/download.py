"""`get`: a corpus into a folder of its name, from its makers' address or from a copy at hand.

What comes is unpacked and looked at beside the place where it will lie, and moved there only when its first
dialogue can be read. So there is never half a corpus under its name.
"""

from __future__ import annotations

import fnmatch
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from palaver.corpora.catalogue import Corpus, CorpusCard, cache_root, corpus
from palaver.corpora.transfer import Patience, fetch, name_of
from palaver.errors import DataError, UserError
from palaver.files import copy_unpacked, sha256_of
from palaver.progress import Progress, no_progress

_ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class Download:
    """Where a corpus lies now, and what is to be said about it."""

    folder: Path
    notes: tuple[str, ...]


def get(
    name: str,
    to: Path | None = None,
    *,
    copy: Path | None = None,
    url: str | None = None,
    check: bool = True,
    force: bool = False,
    progress: Progress = no_progress,
    patience: Patience | None = None,
) -> Download:
    """Put the corpus `name` into `to/name`, from `copy` (a file or folder), `url`, or the makers' address."""
    known = corpus(name)
    card = known.card
    root = to if to is not None else cache_root()
    folder = root / name
    if copy is not None and url is not None:
        raise UserError("a copy and an address were given", "give one of them")
    if folder.exists() and not force:
        raise UserError(f"{folder} is there already", "add --force to replace it")
    if copy is None and url is None and not card.urls:
        raise UserError(
            f"{card.title} cannot be downloaded just so. {card.manual}",
            f"visit {card.source}, then: palaver corpus get {name} --from PATH",
        )
    if copy is not None and not copy.exists():
        raise UserError(f"there is no {copy}", "--from takes a file or a folder")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write into {root}: {error.strerror}", "choose another with --to") from None
    notes: list[str] = []
    with _beside(folder) as fresh:
        if copy is not None:
            _take(copy, fresh, known, check, notes)
        else:
            for address in (url,) if url is not None else card.urls:
                # a name of its own, beside the folder, so that the next run finds what this one began
                file = root / f"{name}-{name_of(address)}"
                pinned = card.sha256.get(name_of(address))
                fetch(address, file, sha256=pinned if check else None, progress=progress, patience=patience)
                if not pinned:
                    notes.append(f"{name_of(address)}: not pinned, its sha256 is {sha256_of(file)}")
                _put(file, fresh, name_of(address), known)
                file.unlink()
        _look(known, fresh)
    return Download(folder, tuple(notes))


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `folder` when all went well."""
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True
    ) as around:
        fresh = Path(around) / "content"
        try:
            fresh.mkdir()
            yield fresh
            if folder.is_dir():
                shutil.rmtree(folder)
            fresh.replace(folder)
        except OSError as error:
            raise UserError(
                f"cannot write {folder}: {error.strerror or error}", "is the disk full?"
            ) from error


def _take(copy: Path, fresh: Path, known: Corpus, check: bool, notes: list[str]) -> None:
    """Copy a file, or what belongs to the corpus in a folder, with a look at the hashes that are known."""
    source, inside = copy, fresh
    if copy.is_dir():
        located = known.locate(copy)
        if located is None:
            expected = ", ".join(layout.file for layout in known.layouts)
            raise DataError(f"{copy} does not look like {known.card.title}", f"expected one of: {expected}")
        # other corpora may lie beside a file, or beside a folder of the corpus's own name
        own_name = located.path.is_file() or located.path.name == known.card.name
        is_alone = "/" not in located.layout.file and own_name
        if is_alone or located.path == copy:
            source, inside = located.path, fresh / located.layout.file
        else:
            source = located.base
    files = sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]
    home = source if source.is_dir() else source.parent
    _check_hashes(known.card, {file.relative_to(home).as_posix(): file for file in files}, check, notes)
    if source.is_file():
        _put(source, fresh, source.name, known)
    else:
        shutil.copytree(source, inside, dirs_exist_ok=True)
        _unpack_inner(fresh)


def _check_hashes(card: CorpusCard, files: dict[str, Path], check: bool, notes: list[str]) -> None:
    n_pinned = 0
    for name, file in files.items():
        pinned = next((h for known, h in card.sha256.items() if f"/{known}".endswith(f"/{name}")), None)
        if pinned is None:
            continue
        n_pinned += 1
        if (sha256 := sha256_of(file)) != pinned:
            message = f"{file} is another version than the one we know: its sha256 is {sha256}, not {pinned}"
            if check:
                raise DataError(message, "is it damaged? add --no-check to take it all the same")
            notes.append(message)
    if n_pinned < len(files):
        notes.append(f"{len(files) - n_pinned:,} of {len(files):,} files are not pinned: taken as they are")


def _put(file: Path, fresh: Path, name: str, known: Corpus) -> None:
    """Copy or unpack one file, under the name that the loader looks for."""
    if name.lower().endswith(_ARCHIVES) or zipfile.is_zipfile(file):
        _unpack(file, fresh, known.card.keep)
        _unpack_inner(fresh)
        _lift(fresh, known)
        return
    suffix = ".gz" if name.endswith(".gz") else ""
    plain = name.removesuffix(".gz")
    names = [Path(layout.file).name for layout in known.layouts]
    alike = [n for n in names if Path(n).suffix == Path(plain).suffix != ""]
    shutil.copyfile(file, fresh / (f"{alike[0]}{suffix}" if plain not in names and alike else name))


def _lift(fresh: Path, known: Corpus) -> None:
    """Do away with a folder around everything that is in the way, as in the archives of GitHub."""
    inside = list(fresh.iterdir())
    if known.locate(fresh) is None and len(inside) == 1 and inside[0].is_dir():
        around = inside[0].rename(fresh / ".around")
        for entry in around.iterdir():
            entry.rename(fresh / entry.name)
        around.rmdir()


def _unpack_inner(fresh: Path) -> None:
    """DailyDialog packs its splits once more."""
    for inner in [p for p in fresh.rglob("*.zip") if p.is_file()]:
        _unpack(inner, inner.parent)


def _unpack(archive: Path, folder: Path, keep: tuple[str, ...] = ()) -> None:
    """Unpack what fits one of the patterns, which do not count a folder around everything."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                names = [info.filename for info in packed.infolist() if not info.is_dir()]
                count = _extract(archive.name, names, packed.open, folder, keep)
        else:
            with tarfile.open(archive) as packed_tar:
                names = [member.name for member in packed_tar if member.isfile()]  # no links, no devices
                count = _extract(archive.name, names, packed_tar.extractfile, folder, keep)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, RuntimeError) as error:
        raise DataError(f"{archive.name} is damaged or not an archive: {error}") from None
    if not count:
        wanted = f"expected {', '.join(keep)}" if keep else ""
        raise DataError(f"{archive.name} holds none of the files that were expected", wanted)


def _extract(
    archive: str,
    names: Iterable[str],
    read: Callable[[str], IO[bytes] | None],
    folder: Path,
    keep: tuple[str, ...],
) -> int:
    paths = {name: PurePosixPath(name.replace("\\", "/")) for name in names if "__MACOSX" not in name}
    for name, path in paths.items():
        if path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0]:
            raise DataError(f"the archive holds a file that would lie outside its folder: {name!r}")
    count = size = 0
    for name, path in paths.items():
        ways = (str(path), str(PurePosixPath(*path.parts[1:])))
        if keep and not any(fnmatch.fnmatch(way, pattern) for way in ways for pattern in keep):
            continue
        source = read(name)
        if source is None:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with source, target.open("wb") as file:
            size += copy_unpacked(source, file, archive, size)
        count += 1
    return count


def _look(known: Corpus, fresh: Path) -> None:
    """Read the first dialogue, so that a wrong file is found now and not in the middle of a training."""
    try:
        next(known.read(fresh))
    except UserError as error:
        message = error.message.replace(str(fresh), "what was given")
        raise DataError(
            f"{known.card.title} cannot be read from it: {message}", error.hint, error.problems
        ) from None
