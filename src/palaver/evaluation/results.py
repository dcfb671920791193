"""What an evaluation finds, as rows: terminal, `results.json` and report show these and compute nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from palaver.schema.judge import Direction
from palaver.schema.run import RunRecord, RunResult
from palaver.studies.results import AgreementRow, IntervalRow, RankingRow
from palaver.tabular import columns_of

PEOPLE = "people"
SIMULATED = "simulated people"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRow:
    """One system, and what became of its replies."""

    system: str
    kind: str
    n_contexts: int
    n_replies: int
    n_skipped: int
    mean_words: float
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRow:
    """One judge, and what became of its ratings."""

    judge: str
    kind: str
    signature: str
    n_ratings: int
    left_out: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""


Stance = Literal["agrees", "undecided", "disagrees", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one judge, or people, rank the systems on one criterion."""

    judge: str
    kind: str
    criterion: str
    direction: Direction
    ranking: RankingRow | None
    """None where neither end is better, or nothing could be ranked."""
    means: tuple[tuple[str, float], ...] = ()
    """System -> mean, where there is no ranking."""
    stance: Stance = ""
    """Whether it agrees with the answer."""
    reason: str = ""
    """Why there is no ranking."""

    @property
    def best(self) -> tuple[str, ...]:
        """The systems of the first group."""
        return self.ranking.groups[0] if self.ranking is not None and self.ranking.groups else ()

    @property
    def is_by_people(self) -> bool:
        return self.judge in (PEOPLE, SIMULATED)

    @property
    def title(self) -> str:
        """`people: quality`, `unigram_f1`, `comparator: quality`."""
        return self.judge if self.judge == self.criterion else f"{self.judge}: {self.criterion}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementWithPeople:
    """How far one judge agrees with people on one criterion."""

    judge: str
    criterion: str
    """People's."""
    spearman: float
    low: float
    high: float
    pairs_right: float
    """Of two systems on one item, how often it prefers the same."""
    n: int
    one_person: float
    """The same correlation of one person with the others; nan where it is not known."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedValue:
    """What one judge says about one response."""

    judge: str
    criterion: str
    value: float
    standard: float
    """In standard deviations from the mean; high is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One response to look at, and why."""

    id: str
    system: str
    why: str
    """"best", "worst" or "disputed"."""
    context: tuple[tuple[str, str], ...]
    """Speaker and text of the last turns."""
    n_turns: int
    response: str
    knowledge: str
    reference: str
    values: tuple[JudgedValue, ...]
    score: float
    spread: float
    worst_turn: int | None = None
    """The turn of the system that costs most, counted from 1; None where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExperimentResult(RunResult):
    """Which system is better, by whom, and how sure that is. Tables: verdicts, systems, judges, agreement."""

    title: str
    run: RunRecord
    answer: str
    """One sentence."""
    caveats: tuple[str, ...]
    """What stands beside the answer: what is missing, who disagrees, who was simulated."""
    confidence: float
    reference: str | None
    systems: tuple[SystemRow, ...]
    judges: tuple[JudgeRow, ...]
    verdicts: tuple[Verdict, ...]
    """People first."""
    people_agreement: tuple[AgreementRow, ...] = ()
    """How far people agree with each other: one row a criterion."""
    differences: tuple[IntervalRow, ...] = ()
    """People's differences of systems, with intervals for dialogues and raters."""
    agreement: tuple[AgreementWithPeople, ...] = ()
    worth: tuple[str, ...] = ()
    """What the judges' verdicts are worth beside people's, in sentences."""
    examples: tuple[Example, ...] = ()
    n_responses: int = 0
    n_raters: int = 0
    is_simulated: bool = False
    waiting: str = ""
    """What people still have to do."""
    next_commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """Which systems and judges failed, and why."""
        rows = [(row.system, row.error) for row in self.systems]
        rows += [(row.judge, row.error) for row in self.judges]
        return tuple(f"{name}: {error}" for name, error in rows if error)

    def _headline(self) -> str:
        return f"{self.title!r}: {self.answer}"

    def _tables(self) -> dict[str, Any]:
        names = ("judge", "criterion", "system", "score", "low", "high", "n", "group")
        verdicts: dict[str, list[Any]] = {name: [] for name in names}
        for verdict in self.verdicts:
            if verdict.ranking is None:
                continue
            group_of = {s: n for n, group in enumerate(verdict.ranking.groups, start=1) for s in group}
            for s in verdict.ranking.scores:
                cells = (verdict.judge, verdict.criterion, s.system, s.score, s.low, s.high, s.n)
                for name, cell in zip(names, (*cells, group_of.get(s.system)), strict=True):
                    verdicts[name].append(cell)
        return {
            "verdicts": verdicts,
            "systems": columns_of(SystemRow, self.systems),
            "judges": columns_of(JudgeRow, self.judges, leave_out=("left_out", "notes")),
            "agreement": columns_of(AgreementWithPeople, self.agreement),
        }
