"""How a rating file is to be understood, where the user says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from palaver.errors import UsageError, UserError, nearest

Shape = Literal["auto", "long", "screens", "criteria", "forms", "pairs"]
SHAPES: tuple[Shape, ...] = get_args(Shape)

Order = Sequence[str] | Mapping[str, float] | Literal["nominal"]
"""Words from the lowest to the highest, words with their numbers, or words that have no order."""
LabelsGiven = Sequence[str] | Mapping[str, float | Order]
"""An order for all criteria, or criterion -> its order."""

MISSING = frozenset(("na", "n/a", "#n/a", "nan", "null", "-", "–", "—"))  # three dashes
"""What people write where there is no value, in lower case. `None` counts only as Python writes it: a box
may well be called `none`."""


@dataclass(frozen=True)
class Labels:
    """The numbers that words stand for."""

    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Criterion -> word -> number, all in lower case; those of all criteria are under an empty name."""
    nominal: frozenset[str] = frozenset()
    """Criteria whose words have no order, in lower case."""

    def of(self, criterion: str) -> Mapping[str, float]:
        """The words of one criterion: its own, or those of all."""
        return self.numbers.get(criterion.lower(), self.numbers.get("", {}))

    def name(self, criterion: str) -> bool:
        """Whether something is said about this very criterion."""
        return criterion.lower() in self.nominal or criterion.lower() in self.numbers


def make_labels(given: LabelsGiven | None) -> Labels:
    """The labels as a user gives them in Python."""
    if given is None:
        return Labels()
    if not isinstance(given, Mapping):
        return Labels({"": _numbered(given)})
    numbers: dict[str, Mapping[str, float]] = {}
    nominal = set()
    everywhere: dict[str, float] = {}
    for name, value in given.items():
        if isinstance(value, int | float):
            everywhere[name] = value
        elif value == "nominal":
            nominal.add(name.lower())
        else:
            numbers[name.lower()] = _numbered(value)
    if everywhere:
        numbers[""] = _numbered(everywhere)
    return Labels(numbers, frozenset(nominal))


def parse_labels(texts: Sequence[str] | None) -> Labels:
    """The labels of the command line: `Poor,Good`, `Poor=1,Good=4`, or one of these after `CRITERION:`."""
    numbers: dict[str, dict[str, float]] = {}
    nominal = set()
    for text in texts or ():
        criterion, colon, words = text.partition(":")
        if not colon or ":" in words:  # `1: poor,2: good` are words, too
            criterion, words = "", text
        criterion = criterion.strip().lower()
        parts = [part.strip() for part in words.split(",")]
        if criterion and parts == ["nominal"]:
            nominal.add(criterion)
            continue
        if len(parts) < 2 or not all(parts):
            raise UsageError(
                f"--labels: expected at least two words, lowest first, found {text!r}",
                'such as --labels "Poor,Fair,Good", --labels "Poor=1,Good=4" or --labels "quality:Poor,Good"',
            )
        own = numbers.setdefault(criterion, {})
        for word, number in _numbered(_parse_numbers(parts)).items():
            if own.setdefault(word, number) != number:
                raise UsageError(f"--labels: {word!r} is given two numbers, {own[word]:g} and {number:g}")
    return Labels(numbers, frozenset(nominal))


def _parse_numbers(parts: Sequence[str]) -> Sequence[str] | dict[str, float]:
    if not all("=" in part for part in parts):
        return parts
    pairs = {}
    for part in parts:
        word, _, number = part.rpartition("=")
        try:
            pairs[word.strip()] = float(number)
        except ValueError:
            raise UsageError(f"--labels: expected a number after {word}=, found {number!r}") from None
    return pairs


def _numbered(order: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(order, str):
        raise UserError(f"labels: expected a list of words, lowest first, found {order!r}")
    pairs = order.items() if isinstance(order, Mapping) else ((word, n) for n, word in enumerate(order, 1))
    return {word.strip().lower(): float(number) for word, number in pairs}


@dataclass(frozen=True)
class RatingOptions:
    """What the user says about a rating file; nothing has to be said about most."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Field -> its column in the file."""
    shape: Shape = "auto"
    labels: Labels = field(default_factory=Labels)
    missing: Sequence[str] = ()
    """Further words that mean that there is no value."""
    words: frozenset[str] = frozenset()
    """Words that are answers, whatever they look like: those that a study's scales offer."""
    texts: frozenset[str] = frozenset()
    """Criteria whose values are free text, in lower case: nothing in them is a number or a missing value."""
    criteria: Sequence[str] | None = None
    """The criteria to read, and no others."""
    asked: Sequence[str] | None = None
    """The criteria of the study. Of a wide file only these are read, unless none of them is there."""
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            hint = f"there are {', '.join(SHAPES)}"
            raise UserError(f"there is no shape {self.shape!r}{nearest(self.shape, SHAPES)}", hint)
