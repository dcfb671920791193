"""Rows that fail cost one row: a batch that fails is halved until the row is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from palaver.errors import UserError

Row = TypeVar("Row")
Made = TypeVar("Made")

GIVE_UP = 5
"""So many failures in a row mean that a system or a judge is not there, rather than one bad row."""


@dataclass(frozen=True)
class RowError:
    """Why nothing was made of a row."""

    reason: str
    hint: str = ""

    @classmethod
    def of(cls, error: Exception) -> RowError:
        if isinstance(error, UserError):
            return cls("; ".join((error.message, *error.problems)), error.hint)
        return cls(f"{type(error).__name__}: {error}")

    def to_error(self) -> UserError:
        return UserError(self.reason, self.hint)


@dataclass
class Failures:
    """What could not be made, and why."""

    rows: dict[str, str] = field(default_factory=dict)
    """Name of the row -> reason."""
    given_up: str = ""
    """Why nothing more was asked; empty where everything was."""
    error: RowError | None = None
    """The first of the latest ones in a row."""
    in_a_row: int = 0

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def last(self) -> str:
        """Why the latest row failed; empty where none did."""
        return next(reversed(self.rows.values()), "")

    def note(self, name: str, error: RowError) -> None:
        if self.given_up:
            return  # it was not tried
        self.rows[name] = error.reason
        if not self.in_a_row:
            self.error = error
        self.in_a_row += 1
        if self.in_a_row >= GIVE_UP:
            self.given_up = error.reason

    def check(self, *, at_end: bool = False) -> None:
        """Raise the error if it was given up, or if the last rows of all failed, and not one alone."""
        if self.error is not None and (self.given_up or (at_end and self.in_a_row > 1)):
            raise self.error.to_error()


def in_parts(
    function: Callable[[Sequence[Row]], Made], rows: Sequence[Row]
) -> list[tuple[Sequence[Row], Made | RowError]]:
    """What `function` makes of the rows, in their order, in as few calls as it takes to find those that fail.

    Where one fails alone, its error stands instead. After `GIVE_UP` failures in a row the others are not
    tried: they have the last error, too.
    """
    parts: list[tuple[Sequence[Row], Made | RowError]] = []
    in_a_row = 0

    def make(some: Sequence[Row]) -> None:
        nonlocal in_a_row
        if in_a_row >= GIVE_UP:
            parts.extend(([row], parts[-1][1]) for row in some)
            return
        try:
            made = function(some)
        except Exception as error:  # somebody else's system or judge may raise anything
            if len(some) == 1:
                parts.append((some, RowError.of(error)))
                in_a_row += 1
                return
        else:
            parts.append((some, made))
            in_a_row = 0
            return
        middle = len(some) // 2
        make(some[:middle])
        make(some[middle:])

    if rows:
        make(rows)
    return parts


def batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Lists of `size` rows; the last one may be shorter."""
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch
