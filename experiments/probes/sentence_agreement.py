"""How often the rules agree with what sentences of our own should become (tests/data/probes).

python experiments/probes/sentence_agreement.py --out docs/results/probes/sentences.json

prints every disagreement and writes the figures under --label beside those the file has already: the first
look was taken with the rules and the answers as they were then.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palaver.probes.transform import RULES, transform

DATA = Path(__file__).parents[2] / "tests" / "data" / "probes"
PARTS = ("sentences_a.txt", "sentences_b.txt", "sentences_c.txt")


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


def figures(results: Sequence[Cell]) -> dict[str, dict[str, int]]:
    """How many cells there are and are right: all, with an answer, to be refused, and by rule."""
    n: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for cell in results:
        for name in ("all", "answer" if cell.expected else "refusal", cell.rule):
            n[name] += 1
            right[name] += cell.is_right
    return {name: {"right": right[name], "n": n[name]} for name in ("all", "answer", "refusal", *RULES)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--label", default="now")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    by_part = {
        name: cells(read_examples(options.data / name)) for name in PARTS if (options.data / name).is_file()
    }
    for cell in (cell for part in by_part.values() for cell in part):
        if not cell.is_right:
            print(
                f"{cell.rule}: {cell.example.sentence} -> {cell.outcome}, not {cell.expected or 'a refusal'}"
            )
    written = json.loads(options.out.read_text()) if options.out.is_file() else {}
    written[options.label] = {
        "command": "python experiments/probes/sentence_agreement.py --out docs/results/probes/sentences.json",
        "hardware": platform.machine(),
        **{name: figures(part) for name, part in by_part.items()},
    }
    options.out.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
