"""Files as they really come: other encodings, byte-order marks, gzip, zip, cut short, or not files at all.

`TextStream` gives any of them as clean UTF-8; `write_atomically` never leaves half a file.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import tempfile
import zipfile
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


def check_readable(path: Path) -> None:
    """Raise `DataError` unless `path` is a file with something in it."""
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.is_file())[:5]
        listed = f"it holds {', '.join(inside)}" if inside else "it is empty"
        raise DataError(f"{path} is a directory, not a file ({listed})", "name one file inside it")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"there is no file {path}{nearest(path.name, siblings)}")
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise DataError(f"{path} is empty", "expected a table with a header, or JSON lines")
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied") from None


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
    return "jsonl" if head.lstrip().startswith(b"{") else "csv"


def format_by_name(path: Path) -> Format:
    """The format to write, by the name's ending."""
    for suffix, kind in _SUFFIXES.items():
        if path.name.lower().endswith(suffix) and suffix != ".txt":
            return kind
    raise UserError(f"cannot tell the format of {path.name!r}", "end the name in .jsonl, .csv or .parquet")


def _zip_member(path: Path, file: IO[bytes]) -> tuple[zipfile.ZipFile, str]:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise DataError(f"{path} is not a zip file, or is cut short") from None
    members = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
    if len(members) != 1:
        found = ", ".join(members[:5]) or "none"
        raise DataError(f"{path} should hold exactly one file, found {len(members)} ({found})")
    return archive, members[0]


@dataclass
class Encoding:
    """How the bytes had to be read; filled in while the stream is consumed."""

    name: str = "utf-8"
    recoded_lines: int = 0
    """Lines that were not UTF-8 and were read as Windows-1252."""


class _CleanUtf8(io.RawIOBase):
    """UTF-8 out, whatever comes in; lines that are not UTF-8 are taken as Windows-1252 and counted."""

    def __init__(self, raw: IO[bytes], encoding: Encoding, path: Path) -> None:
        self._raw = raw
        self._encoding = encoding
        self._path = path
        self._ready = b""
        self._rest = b""
        self._done = False
        try:
            head = raw.read(4)
        except (EOFError, OSError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} is damaged or not what its name says: {error}") from error
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            encoding.name = "utf-16"
            self._raw = io.BytesIO(_recode_utf16(head + raw.read(), path))
            head = b""
        elif head.startswith(b"\xef\xbb\xbf"):
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

    def _fill(self) -> None:
        """Take bytes up to the last line break, so that no character is cut in two."""
        while True:
            try:
                chunk = self._raw.read(_CHUNK)
            except (EOFError, OSError, zipfile.BadZipFile) as error:
                raise DataError(f"{self._path} is damaged or cut short: {error}") from error
            self._done = not chunk
            block = self._rest + chunk
            cut = len(block) if self._done else block.rfind(b"\n") + 1
            if cut or self._done:
                break
            self._rest = block
        self._rest = block[cut:]
        self._ready = self._clean(block[:cut])

    def _clean(self, block: bytes) -> bytes:
        try:
            block.decode("utf-8")
        except UnicodeDecodeError:
            lines = []
            for line in block.splitlines(keepends=True):
                try:
                    line.decode("utf-8")
                    lines.append(line)
                except UnicodeDecodeError:
                    self._encoding.recoded_lines += 1
                    lines.append(line.decode("cp1252", errors="replace").encode())
            block = b"".join(lines)
        return block

    def close(self) -> None:
        self._raw.close()
        super().close()


def _recode_utf16(raw: bytes, path: Path) -> bytes:
    try:
        return raw.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} begins like UTF-16 but is not: {error}") from None


class TextStream(io.BufferedReader):
    """Clean UTF-8 bytes of a file, knowing how they were encoded and how much of the file is used up."""

    def __init__(self, path: Path) -> None:
        check_readable(path)
        self.encoding = Encoding()
        self._disk = path.open("rb")
        raw: IO[bytes] = self._disk
        if path.name.lower().endswith(".zip"):
            archive, member = _zip_member(path, self._disk)
            raw = archive.open(member)
        elif path.name.lower().endswith(".gz"):
            raw = cast(IO[bytes], gzip.GzipFile(fileobj=self._disk, mode="rb"))
        super().__init__(_CleanUtf8(raw, self.encoding, path), _CHUNK)

    def consumed(self) -> int:
        """Bytes of the file on disk that were read so far."""
        return self._disk.tell()

    def close(self) -> None:
        super().close()
        self._disk.close()


def sha256_of(path: Path) -> str:
    """The hash of the file as it lies on disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_writable(folder: Path) -> None:
    """Raise `UserError` unless files can be written into `folder`; it is made if it is missing."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder", "choose another folder with --out")
    with write_atomically(folder / ".palaver-probe") as file:
        file.write("")
    (folder / ".palaver-probe").unlink(missing_ok=True)


@contextlib.contextmanager
def write_atomically(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A file to write into that takes its name only when all went well. Missing folders are made."""
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a directory", "give the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}", "choose another place with --out"
        ) from error
    temporary = Path(name)
    try:
        text = mode == "w"
        with open(handle, mode, encoding="utf-8" if text else None, newline="" if text else None) as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}", "is the disk full?") from error
    finally:
        temporary.unlink(missing_ok=True)
