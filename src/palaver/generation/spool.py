"""Chunks of rows that are done before an earlier one is, on disk until their turn comes.

A killed run finds them again, so no worker's work is lost however far the others were. The first line says
which run they belong to: a run that was killed before its first row is known by nothing else. A block is a
line of JSON (its key, its size, a check sum) and the rows. A block that a kill has cut short ends the file.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import IO, Any


class Spool:
    """The file `OUT.ahead` beside `out`. It is there only while something lies in it.

    `run` is a digest of what the rows depend on; the chunks of another run, and with `fresh` of this one, are
    thrown away.
    """

    def __init__(self, out: Path, run: str, *, fresh: bool = False) -> None:
        self.path = out.with_name(f"{out.name}.ahead")
        self._run = json.dumps({"run": run}).encode() + b"\n"
        self._file: IO[bytes] | None = None
        self._places: dict[str, tuple[int, int]] = {}
        self._next: dict[str, bytes] = {}
        if fresh:
            self.remove()
        elif self.path.is_file():
            self._read(self._open())

    def __contains__(self, key: str) -> bool:
        return key in self._next or key in self._places

    def put(self, key: str, rows: bytes, *, in_memory: bool) -> None:
        """Keep a chunk; `in_memory` if it is taken at once."""
        if in_memory:
            self._next[key] = rows
            return
        file = self._open()
        if not file.seek(0, 2):
            file.write(self._run)
        head = json.dumps({"key": key, "size": len(rows), "sum": zlib.crc32(rows)})
        file.write(head.encode() + b"\n" + rows)
        file.flush()
        self._places[key] = (file.tell() - len(rows), len(rows))

    def take(self, key: str) -> bytes:
        """The rows of a chunk, which is then out."""
        if key in self._next:
            return self._next.pop(key)
        place, size = self._places.pop(key)
        file = self._open()
        file.seek(place)
        return file.read(size)

    def remove(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self.path.unlink(missing_ok=True)
        self._places.clear()

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._file = self.path.open("r+b" if self.path.is_file() else "w+b")
        return self._file

    def _read(self, file: IO[bytes]) -> None:
        is_ours = file.readline() == self._run
        whole = file.tell() if is_ours else 0
        while is_ours and (line := file.readline()):
            head = _head(line)
            rows = file.read(head["size"]) if head is not None else b""
            if head is None or len(rows) != head["size"] or zlib.crc32(rows) != head["sum"]:
                break
            self._places[head["key"]] = (file.tell() - len(rows), len(rows))
            whole = file.tell()
        file.truncate(whole)


def _head(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):  # it was cut
        return None
    try:
        head = json.loads(line)
    except ValueError:
        return None
    return head if isinstance(head, dict) and {"key", "size", "sum"} <= head.keys() else None
