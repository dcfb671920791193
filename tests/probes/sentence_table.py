"""Sentences with what each rule should make of them, read from tests/data/probes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palaver.probes.transform import RULES, transform

DATA = Path(__file__).parents[1] / "data" / "probes"


@dataclass
class Example:
    genre: str
    sentence: str
    answers: dict[str, list[str]] = field(default_factory=dict)
    """Rule -> right answers; a rule that is not here should refuse."""


@dataclass(frozen=True)
class Cell:
    """One sentence under one rule."""

    example: Example
    rule: str
    outcome: str
    """The output, or the reason in brackets."""

    @property
    def expected(self) -> list[str]:
        return self.example.answers.get(self.rule, [])

    @property
    def is_right(self) -> bool:
        refused = self.outcome.startswith("(")
        if refused or not self.expected:
            return refused and not self.expected
        if self.rule == "inversion":
            return is_reordered(self.example.sentence, self.outcome)
        return plain(self.outcome) in map(plain, self.expected)


def read_examples(path: Path) -> list[Example]:
    examples: list[Example] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if start := re.match(r"\[(\w+)\] (.+)", line):
            examples.append(Example(start[1], start[2]))
        elif line and not line.startswith("#"):
            rule, _, answers = line.partition(": ")
            assert rule in RULES, line
            examples[-1].answers[rule] = [answer.strip() for answer in answers.split("|")]
    return examples


def plain(text: str) -> str:
    """n't and not are the same answer."""
    text = text.replace("can't", "can not").replace("won't", "will not").replace("cannot", "can not")
    return text.replace("n't", " not")


def is_reordered(sentence: str, output: str) -> bool:
    before, after = ([word.strip(".,?!").lower() for word in t.split()] for t in (sentence, output))
    return before != after and sorted(before) == sorted(after)


def cells(examples: Sequence[Example]) -> list[Cell]:
    """Every sentence under every rule, parsed in one go."""
    results = transform([example.sentence for example in examples])
    outcomes = [result.output or f"({result.reason})" for result in results]
    places = [(example, rule) for example in examples for rule in RULES]
    return [Cell(*place, outcome) for place, outcome in zip(places, outcomes, strict=True)]
