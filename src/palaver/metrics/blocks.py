"""The examples of a system block by block, so that a file may be larger than memory.

Chunk numbers and what adds up over responses lie in memory up to `HELD` bytes each, then in a temporary file
(TMPDIR says where). What is kept for each response beyond that is a few numbers.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.metrics.examples import Examples
from palaver.metrics.tokens import Texts, Tokens, Vocabulary

Floats = NDArray[np.float64]
HELD = 1 << 26
"""Bytes that are held before a temporary file is made."""
ROWS = 1 << 14
"""Rows of a table that are looked at together."""


def _open() -> IO[bytes]:
    return SpooledTemporaryFile(HELD)  # it lives as long as what it belongs to


class _Place(NamedTuple):
    """Where the arrays of a block stand in the file."""

    offset: int
    kinds: tuple[np.dtype, ...]
    sizes: tuple[int, ...]


class Blocks:
    """Examples of one vocabulary, in the order in which they were added. Each block is made when it is asked
    for, and its tokens go with it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._file = _open()
        self._end = 0
        self._places: list[_Place] = []

    def append(self, examples: Examples) -> None:
        texts = (examples.predictions, examples.references, examples.knowledge)
        arrays = [array for part in texts for array in part.chunks]
        arrays.append(examples.reference_starts)
        self._places.append(_Place(self._end, tuple(a.dtype for a in arrays), tuple(a.size for a in arrays)))
        self._file.seek(self._end)
        for numbers in arrays:
            self._end += self._file.write(np.ascontiguousarray(numbers).tobytes())

    def __iter__(self) -> Iterator[Examples]:
        for place in self._places:
            self._file.seek(place.offset)
            arrays = [
                np.frombuffer(self._file.read(kind.itemsize * size), kind)
                for kind, size in zip(place.kinds, place.sizes, strict=True)
            ]
            predictions, references, knowledge = (
                Texts(self._vocabulary, Tokens(arrays[i], arrays[i + 1])) for i in (0, 2, 4)
            )
            yield Examples(predictions, references, arrays[6], knowledge)


class Ids(Sequence[str]):
    """Texts that grow by one, as the bytes they have."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._ends = array("q")

    def append(self, text: str) -> None:
        self._content += text.encode(errors="surrogatepass")
        self._ends.append(len(self._content))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        end = self._ends[place]
        begin = self._ends[place - 1] if place % len(self) else 0
        return self._content[begin:end].decode(errors="surrogatepass")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ids):
            return self._ends == other._ends and self._content == other._content
        return list(self) == other

    __hash__ = None  # type: ignore[assignment]


class RowTable:
    """A table of numbers that grows by rows; slices of it are read when they are asked for."""

    def __init__(self) -> None:
        self.shape = (0, 0)
        self._file = _open()
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Begin anew, in the same file."""
        self.shape = (0, 0)

    def append(self, rows: Floats) -> None:
        n = self.shape[0]
        self.shape = (n + rows.shape[0], rows.shape[1])
        with self._lock:
            self._file.seek(n * 8 * rows.shape[1])
            self._file.write(np.ascontiguousarray(rows, dtype=np.float64).tobytes())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Floats:
        begin, end, _ = rows.indices(len(self))
        width = 8 * self.shape[1]
        with self._lock:  # one place in the file for all threads
            self._file.seek(begin * width)
            content = self._file.read(max(0, end - begin) * width)
        return np.frombuffer(content, np.float64).reshape(-1, self.shape[1])

    def parts(self) -> Iterator[Floats]:
        for begin in range(0, len(self), ROWS):
            yield self[begin : begin + ROWS]

    def take(self, rows: NDArray[np.int64]) -> Floats:
        """These rows, in this order."""
        taken = np.empty((len(rows), self.shape[1]))
        for begin in range(0, len(self), ROWS):
            here = (rows >= begin) & (rows < begin + ROWS)
            taken[here] = self[begin : begin + ROWS][rows[here] - begin]
        return taken


class SideBySide:
    """Columns of several tables of equal length as one table."""

    def __init__(self, tables: Sequence[RowTable | Floats], columns: NDArray[np.int64] | None = None) -> None:
        self._tables = tables
        self._columns = np.arange(sum(table.shape[1] for table in tables)) if columns is None else columns
        self.shape = (len(tables[0]), self._columns.size)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Floats:
        together = np.hstack([table[rows] for table in self._tables])
        return np.ascontiguousarray(together[:, self._columns])

    def varying(self) -> NDArray[np.bool_]:
        """Which columns are not the same in every row."""
        varies = np.zeros(self.shape[1], dtype=bool)
        first = self[:1]
        for begin in range(0, len(self), ROWS):
            varies |= (self[begin : begin + ROWS] != first).any(axis=0)
        return varies
