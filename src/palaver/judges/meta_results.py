"""What a meta-evaluation finds, as rows: terminal, JSON and page show these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from palaver.errors import count_of
from palaver.schema.run import RunRecord, RunResult
from palaver.studies.results import Reading
from palaver.tabular import columns_of, few, show_fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRow:
    """How far one judge agrees with people on one criterion, at one level, by one measure."""

    criterion: str
    """People's."""
    judge: str
    level: str
    """"outputs" (all of them together), "within items" (systems on one item) or "systems" (their means)."""
    measure: str
    value: float
    low: float
    high: float
    n: int
    """Outputs, pairs or systems."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTest:
    """Is judge `a` closer to people than judge `b`?"""

    criterion: str
    level: str
    test: str
    measure: str
    a: str
    b: str
    difference: float
    p: float
    p_holm: float
    """Corrected over all tests of the evaluation."""
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRow:
    """Agreement of people alone, and with the judge as one more of them."""

    criterion: str
    judge: str
    measure: str
    people: float
    with_judge: float
    change: float
    rescaled: bool
    """Whether the judge's scores were first brought to people's mean and spread."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One output that people and a judge see differently."""

    criterion: str
    judge: str
    item: str
    system: str
    people: float
    judged: float
    gap: float
    """Judge minus people, in standard deviations of each."""
    context: str = ""
    response: str = ""


@dataclass(frozen=True, repr=False)
class MetaEvaluation(RunResult):
    """How well judges agree with people. Tables: agreement, ceiling, tests, joined, disagreements."""

    run: RunRecord
    reading: Reading
    confidence: float
    rows: tuple[MetaRow, ...]
    ceiling: tuple[MetaRow, ...]
    """One person against the mean of the others: what a judge could reach as one more person."""
    tests: tuple[JudgeTest, ...]
    joined: tuple[JoinRow, ...]
    disagreements: tuple[Disagreement, ...]
    notes: tuple[str, ...]

    def _headline(self) -> str:
        best = [self.best(criterion) for criterion in self.criteria]
        told = [f"{row.criterion}: {row.judge} {show_fixed(row.value)}" for row in best if row is not None]
        return f"{count_of(len(self.judges), 'judge')} beside people; best by Spearman: {few(told)}"

    def _tables(self) -> dict[str, Any]:
        return {
            "agreement": columns_of(MetaRow, self.rows),
            "ceiling": columns_of(MetaRow, self.ceiling),
            "tests": columns_of(JudgeTest, self.tests),
            "joined": columns_of(JoinRow, self.joined),
            "disagreements": columns_of(Disagreement, self.disagreements),
        }

    @property
    def criteria(self) -> tuple[str, ...]:
        """People's criteria, in their order."""
        return tuple(dict.fromkeys(row.criterion for row in self.rows))

    @property
    def judges(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.judge for row in self.rows))

    def of(self, criterion: str, judge: str) -> dict[tuple[str, str], MetaRow]:
        """(level, measure) -> row."""
        wanted = [row for row in self.rows if (row.criterion, row.judge) == (criterion, judge)]
        return {(row.level, row.measure): row for row in wanted}

    def ceiling_of(self, criterion: str) -> dict[tuple[str, str], MetaRow]:
        """(level, measure) -> row."""
        return {(row.level, row.measure): row for row in self.ceiling if row.criterion == criterion}

    def ranked(self, criterion: str, level: str = "outputs") -> list[MetaRow]:
        """The rows of Spearman's correlation, closest to people first; undefined ones last."""
        rows = [r for r in self.rows if (r.criterion, r.level, r.measure) == (criterion, level, "spearman")]
        return sorted(rows, key=lambda row: (row.value != row.value, -row.value))

    def best(self, criterion: str) -> MetaRow | None:
        """The judge whose outputs' Spearman with people is highest."""
        rows: Sequence[MetaRow] = self.ranked(criterion)
        return rows[0] if rows else None
