"""Files as they really come: other encodings, byte-order marks, gzip, zip, cut short, or not files at all.

`TextStream` gives any of them as clean UTF-8; `write_atomically` never leaves half a file. Both take a
name that ends in `.gz` at its word.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from palaver.errors import DataError, UserError, nearest

Format = Literal["jsonl", "csv", "parquet"]
_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_CHUNK = 1 << 22
_HEAD = 4096
_BINARY = {
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive, or an office document",
    b"\x1f\x8b": "packed with gzip; end its name in .gz",
    b"PAR1": "a Parquet table; end its name in .parquet",
    b"SQLite": "a database",
    b"\x7fELF": "a program",
    b"RIFF": "sound or film",
    b"ID3": "sound (MP3)",
}
_WORDS = (b"GIF8", b"PAR1", b"SQLite", b"RIFF", b"ID3")
"""Marks with which a text may begin as well."""
_CONTROLS = bytes((*range(9), *range(14, 27), *range(28, 32)))
"""Bytes that no text has: not the tab, the ends of lines and of pages, the escape of colours."""

MOST_UNPACKED = 8 * 1024**3
"""Bytes that may come out of one archive: a few kilobytes can be packed so that they fill any disk."""


def as_path(source: object) -> Path:
    """The path that was given; anything else is an error in a sentence."""
    if isinstance(source, str | os.PathLike):
        return Path(source)
    raise UserError(
        f"expected the path of a file, found {type(source).__name__}",
        "what is in memory needs no reading: make Dialogue, Response or Rating objects of it; "
        "ratings in a frame go to ratings_from_frame",
    )


def check_readable(path: Path) -> None:
    """Raise `DataError` unless `path` is a file with something in it."""
    try:
        if path.is_dir():
            inside = sorted(p.name for p in path.iterdir() if p.is_file())[:5]
            listed = f"it holds {', '.join(inside)}" if inside else "it is empty"
            raise DataError(f"{path} is a directory, not a file ({listed})", "name one file inside it")
        if not path.exists():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            others = [name for name in siblings if name != path.name]  # itself, if it is a broken link
            raise DataError(f"there is no file {path}{nearest(path.name, others)}")
        if not path.is_file():  # a pipe gives its bytes only once, and they are needed twice
            raise DataError(f"{path} is a pipe or a device", "save what comes out of it in a file first")
        with path.open("rb") as file:
            if not file.read(1):
                raise DataError(f"{path} is empty", _expected_in(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _expected_in(path: Path) -> str:
    """What a file with this ending should hold, for the error about an empty one."""
    if path.suffix == ".toml":
        return ""
    if path.suffix == ".txt":
        return "expected lines of text, JSON lines or a table"
    return "expected a table with a header, or JSON lines"


def check_text(head: bytes, name: str | Path) -> None:
    """Raise `DataError` if these first bytes of `name` are not those of a text."""
    has_controls = any(byte in _CONTROLS for byte in head)
    for mark, what in _BINARY.items():
        if head.startswith(mark) and (has_controls or mark not in _WORDS):
            hint = "expected a text: JSON lines, CSV or plain lines"
            if str(name).endswith(".eval"):
                hint = (
                    "a log of Inspect has to be JSON: inspect log convert --to json --output-dir FOLDER FILE"
                )
            raise DataError(f"{name} is {what}", hint)
    if _is_garbage(head):
        raise DataError(f"{name} is not a text", "expected a text: JSON lines, CSV or plain lines")


def _is_garbage(head: bytes) -> bool:
    """Whether they are neither UTF-8 nor Windows-1252. A stray zero byte or two are forgiven."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        controls = [byte for byte in head if byte in _CONTROLS]
        return len(set(controls)) > 3 and len(controls) > len(head) / 20
    return False


def detect_format(path: Path) -> Format:
    """JSON lines, CSV or Parquet, by the name's ending or, failing that, by the first bytes."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".zip"):
        with path.open("rb") as file:
            name = _zip_member(path, file)[1].lower()
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix):
            return kind
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    with TextStream(path) as stream:
        head = stream.read(4096)
    return "jsonl" if head.lstrip().startswith((b"{", b"[")) else "csv"


def format_by_name(path: Path) -> Format:
    """The format to write, by the name's ending."""
    name = path.name.lower().removesuffix(".gz")
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix) and suffix != ".txt":
            if kind == "parquet" and name != path.name.lower():
                raise UserError(f"cannot write {path.name!r}: Parquet is packed already", "leave out .gz")
            return kind
    raise UserError(f"cannot tell the format of {path.name!r}", "end the name in .jsonl, .csv or .parquet")


def check_unpacked(size: int, path: Path | str) -> None:
    """Raise `DataError` if more than `MOST_UNPACKED` bytes came out of an archive."""
    if size > MOST_UNPACKED:
        limit = f"{MOST_UNPACKED / 1024**3:,.3g} GiB"
        raise DataError(f"{path} holds more than {limit} when unpacked", "unpack it yourself if you trust it")


def copy_unpacked(source: IO[bytes], target: IO[bytes], path: Path | str, before: int = 0) -> int:
    """Copy a member of an archive out of which `before` bytes came already; how many came now."""
    size = before
    while chunk := source.read(_CHUNK):
        size += len(chunk)
        check_unpacked(size, path)
        target.write(chunk)
    return size - before


def _zip_member(path: Path, file: IO[bytes]) -> tuple[zipfile.ZipFile, str]:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise DataError(f"{path} is not a zip file, or is cut short") from None
    members = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
    if len(members) != 1:
        listed = ", ".join(members[:5]) or "none"
        raise DataError(f"{path} should hold exactly one file, found {len(members)} ({listed})")
    return archive, members[0]


@dataclass
class Encoding:
    """How the bytes had to be read; filled in while the stream is consumed."""

    name: str = "utf-8"
    recoded_lines: int = 0
    """Lines that were not UTF-8 and were read as Windows-1252."""


_DAMAGE = (EOFError, OSError, zipfile.BadZipFile, zlib.error)
_WIDE = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),  # first: its mark begins with that of UTF-16
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}


class _CleanUtf8(io.RawIOBase):
    """UTF-8 out, whatever comes in; lines that are not UTF-8 are taken as Windows-1252 and counted."""

    def __init__(self, raw: IO[bytes], encoding: Encoding, path: Path) -> None:
        self._raw = raw
        self._encoding = encoding
        self._path = path
        self._ready = memoryview(b"")
        self._done = False
        self._wide: io.TextIOWrapper | None = None
        self._is_packed = isinstance(raw, gzip.GzipFile | zipfile.ZipExtFile)
        self._size = 0
        head = self._take(_HEAD)
        for name, marks in _WIDE.items():
            if self._wide is None and head.startswith(marks):
                encoding.name = name
                raw.seek(0)
                self._wide = io.TextIOWrapper(raw, name, newline="")
                head = self._take(1).removeprefix(codecs.BOM_UTF8)  # some programs write the mark twice
        if self._wide is None:
            check_text(head, path)
        if head.startswith(codecs.BOM_UTF8):
            encoding.name = "utf-8 with byte-order mark"
            head = head[3:]
        self._rest = head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._ready and not self._done:
            self._fill()
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _take(self, size: int) -> bytes:
        """The next bytes, wide characters already as UTF-8; empty at the end."""
        try:
            taken = self._raw.read(size) if self._wide is None else self._wide.read(size).encode()
            self._size += len(taken)
            if self._is_packed:
                check_unpacked(self._size, self._path)
            return taken
        except UnicodeDecodeError as error:
            name = self._encoding.name.upper()
            raise DataError(f"{self._path} begins like {name} but is not: {error}") from None
        except _DAMAGE as error:
            raise DataError(
                f"{self._path} is damaged, cut short or not what its name says: {error}"
            ) from error

    def _fill(self) -> None:
        """Take bytes up to the last line break, so that no character is cut in two."""
        pieces = [self._rest]
        cut = 0
        while not cut and not self._done:
            chunk = self._take(_CHUNK)
            self._done = not chunk
            cut = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            pieces.append(chunk)
        last = pieces.pop()
        self._rest = last[cut:]
        self._ready = memoryview(self._clean(b"".join([*pieces, last[:cut]])))

    def _clean(self, block: bytes) -> bytes:
        try:
            block.decode("utf-8")
            return block
        except UnicodeDecodeError:
            return b"".join(map(self._clean_line, block.splitlines(keepends=True)))

    def _clean_line(self, line: bytes) -> bytes:
        try:
            line.decode("utf-8")
            return line
        except UnicodeDecodeError:
            self._encoding.recoded_lines += 1
            return line.decode("cp1252", errors="replace").encode()

    def close(self) -> None:
        self._raw.close()
        super().close()


class TextStream(io.BufferedReader):
    """Clean UTF-8 bytes of a file, knowing how they were encoded and how much of the file is used up."""

    def __init__(self, path: Path) -> None:
        check_readable(path)
        self.encoding = Encoding()
        self._disk = path.open("rb")
        try:
            super().__init__(_CleanUtf8(_unpacked(path, self._disk), self.encoding, path), _CHUNK)
        except BaseException:
            self._disk.close()
            raise

    def consumed(self) -> int:
        """Bytes of the file on disk that were read so far."""
        return self._disk.tell()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._disk.close()


def _unpacked(path: Path, file: IO[bytes]) -> IO[bytes]:
    if path.name.lower().endswith(".zip"):
        archive, member = _zip_member(path, file)
        try:
            return archive.open(member)
        except (RuntimeError, *_DAMAGE) as error:  # a password, an unknown compression, a broken directory
            raise DataError(f"{path}: {member} cannot be unpacked: {error}") from None
    if path.name.lower().endswith(".gz"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="rb"))
    return file


def cache_home() -> Path:
    """Where things are kept that can be made or got again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "palaver"


def sha256_of(path: Path) -> str:
    """The hash of the file as it lies on disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_writable(folder: Path) -> None:
    """Raise `UserError` unless files can be written into `folder`; it is made if it is missing."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder", "choose another folder with --out")
    probe = folder / ".palaver-probe"
    try:
        with write_atomically(probe) as file:
            file.write("")
    except UserError as error:
        raise UserError(error.message.replace(str(probe), f"into {folder}"), error.hint) from None
    probe.unlink(missing_ok=True)


@contextlib.contextmanager
def write_atomically(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A file to write into that takes its name only when all went well. Missing folders are made."""
    try:
        if path.is_dir():
            raise UserError(f"cannot write {path}: it is a directory", "give the name of a file")
        if path.exists() and not path.is_file():  # taking its name would do away with the device itself
            raise UserError(f"cannot write {path}: it is a pipe or a device", "give the name of a file")
        target = Path(os.path.realpath(path))  # a link stays a link
        for folder in target.parents:
            if folder.is_file():
                raise UserError(f"cannot write {path}: {folder} is a file, not a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".palaver-", dir=target.parent)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}", "choose another place with --out"
        ) from error
    temporary = Path(name)
    try:
        with contextlib.ExitStack() as stack:
            file: IO[Any] = stack.enter_context(open(handle, "wb"))
            if path.name.lower().endswith(".gz"):  # without name and time: same content, same bytes
                packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
                file = cast(IO[bytes], stack.enter_context(packed))
            if mode == "w":
                file = stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline=""))
            yield file
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as error:
        if error.filename not in (None, name):
            raise  # about some other file, which the caller was reading meanwhile
        raise UserError(f"cannot write {path}: {error.strerror or error}", "is the disk full?") from error
    finally:
        temporary.unlink(missing_ok=True)


def json_object(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; ValueError says what else it is."""
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError("brackets within brackets within brackets, too deep to follow") from None
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, found {type(row).__name__}")
    if b"\\u" in line:  # half of a surrogate pair is no text
        json.dumps(row, ensure_ascii=False).encode()
    return row
