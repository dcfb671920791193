"""Cells that are made in batches: one bad row costs one row, and what fails is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from palaver.errors import UserError

Thing = TypeVar("Thing")
Made = TypeVar("Made")

GIVE_UP = 5
"""So many failures in a row mean that a system or a judge is not there, rather than one bad row."""


@dataclass
class Failures:
    """What could not be made, and why."""

    rows: dict[str, str] = field(default_factory=dict)
    """Name of the cell -> reason."""
    given_up: str = ""
    """Why nothing more was asked; empty where everything was."""
    in_a_row: int = 0

    @property
    def count(self) -> int:
        return len(self.rows)

    def note(self, name: str, error: UserError) -> None:
        self.rows[name] = error.message
        self.in_a_row += 1
        if self.in_a_row >= GIVE_UP:
            self.given_up = error.message


def make_cells(
    things: Sequence[Thing],
    name: Callable[[Thing], str],
    make: Callable[[Sequence[Thing]], Mapping[bytes, Made]],
    failures: Failures,
) -> dict[bytes, Made]:
    """Make cells together; where that fails, one by one, so that one bad row costs one row."""
    try:
        made = dict(make(things))
        failures.in_a_row = 0
        return made
    except UserError as error:
        if len(things) == 1:
            failures.note(name(things[0]), error)
            return {}
    made = {}
    for thing in things:
        if failures.given_up:
            break
        made |= make_cells([thing], name, make, failures)
    return made


def batches(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    iterator = iter(things)
    while batch := list(islice(iterator, size)):
        yield batch
