"""What an analysis finds, as rows. `results.json`, the terminal and the HTML report all show these.

The field names of `AgreementRow`, `CorrelationRow`, `RankingRow` and `RaterRow` are a contract that
people script against: fields may be added, not renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from palaver.schema.judge import Direction
from palaver.schema.rating import Kind
from palaver.schema.run import RunRecord, RunResult
from palaver.tabular import columns_of, few


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRow:
    """How far raters agree on one criterion, by one measure (ICC, Krippendorff's alpha, Fleiss' kappa)."""

    criterion: str
    measure: str
    form: str
    value: float
    low: float
    high: float
    p: float
    n_items: int
    n_raters: int
    dropped: int
    interval: str = ""
    """How low and high were found: "F distribution", "bootstrap over items" …"""
    headline: bool = False
    """The one row per criterion that a reader should see first."""
    headline_reason: str = ""
    """Why the design makes this the row to quote; empty for all other rows."""
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceRow:
    """What the quoted agreement of a criterion would be without one rater or one item."""

    criterion: str
    measure: str
    form: str
    left_out: str
    """"rater" or "item"."""
    name: str
    n_ratings: int
    value: float
    """With all ratings."""
    without: float
    change: float
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationRow:
    """How far two criteria go together."""

    a: str
    b: str
    method: str
    over: str
    """"item means" (one point per judged output) or "single ratings"."""
    value: float
    p: float
    low: float
    high: float
    n: int
    dropped: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemScore:
    """One system in a ranking, with its interval in the method's own unit."""

    system: str
    score: float
    low: float
    high: float
    n: int
    reason: str = ""
    """Why there is no interval, or why it says nothing (the system won every comparison); empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRow:
    """The order of the systems on one criterion by one method; systems of one group are not separated."""

    criterion: str
    method: str
    """"bootstrap", "trueskill" or "bradley-terry"."""
    confidence: float
    groups: tuple[tuple[str, ...], ...]
    label: str
    """The groups in words: "1.–2. Slug2Slug + TGen, 3. Sheffield"."""
    unit: str
    scores: tuple[SystemScore, ...]
    """Best first."""
    better: tuple[tuple[float, ...], ...]
    """better[i][j]: share of bootstrap replicates in which scores[i]'s system is ahead of scores[j]'s."""
    n_items: int
    n_replicates: int
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterRow:
    """One rater's habits over all criteria."""

    rater: str
    n_ratings: int
    n_items: int
    median_seconds: float
    spread: float
    """Standard deviation of the rater's scores, in units of that of all raters (1 = as everybody)."""
    straight_lining: float
    """Share of the rater's ratings that are the rater's most frequent value on that criterion."""
    agreement: float
    """Pearson correlation of the rater's scores with the mean of the other raters on the same outputs."""
    n_shared: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How often each value (or range of values) was given, by whom `name` says."""

    criterion: str
    name: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionSummary:
    """What is known of a criterion before any inference."""

    criterion: str
    treated_as: str
    """Scale and normalisation in words, with the reason when they were guessed."""
    unit: str
    n_ratings: int
    n_items: int
    n_outputs: int
    n_raters: int
    minimum: float
    maximum: float
    bins: tuple[str, ...]
    """Labels of the bins that the distributions count."""
    systems: tuple[Distribution, ...]
    raters: tuple[Distribution, ...]
    """The raters with most ratings, at most 30."""
    choices: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    """For nominal criteria: system -> share of each choice."""
    rated_by: Kind = "human"
    direction: Direction = "higher"
    """Which values are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterMatrix:
    """Agreement in pairs (Pearson over shared outputs) of the busiest raters; nan below 5 shared."""

    criterion: str
    raters: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    n_shared: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRow:
    """A test of a hypothesis about the ratings themselves."""

    criterion: str
    test: str
    question: str
    statistic: float
    df: float
    p: float
    effect: float
    """Cramér's V for a chi-square test."""
    n: int
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """A system's mean, or how far it is ahead of another, and how sure that is."""

    criterion: str
    system: str
    against: str
    """The other system; empty for a mean."""
    value: float
    """Of two compared systems the difference of means, or in a pairwise study the share of wins."""
    low: float
    high: float
    p: float
    """That there is no difference; nan for a mean."""
    adjusted_p: float
    """The same, corrected for all pairs of the criterion (Holm)."""
    se: float
    df: float
    n: int
    n_dialogues: int
    n_raters: int
    se_rows: float
    """The standard error that independent rows would have."""
    dialogue_share: float
    """The part of the variance that more dialogues would make smaller."""
    rater_share: float
    confidence: float
    is_share: bool = False
    """Whether `value` is a share of wins, where 0.5 is equality."""
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def excludes_equality(self) -> bool:
        """Whether the two systems differ, all pairs taken together."""
        return bool(self.adjusted_p < 1 - self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRow:
    """How often a question was asked that is asked only if another was answered so.

    What was not asked is not missing.
    """

    criterion: str
    shown_if: str
    n_asked: int
    n_answered: int
    n_missing: int
    """Asked, and not answered."""
    n_not_asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """One answer in words of the rater's own."""

    criterion: str
    item: str
    system: str
    turn: int | None
    rater: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read, what was left out and why. Nothing is dropped in silence."""

    files: tuple[str, ...]
    layout: str
    n_rows: int
    n_ratings: int
    dropped: tuple[tuple[str, int], ...] = ()
    """Reason -> number of ratings left out."""
    notes: tuple[str, ...] = ()
    conditions: tuple[ConditionRow, ...] = ()
    """How often questions were asked that are not asked always."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Analysis(RunResult):
    """Everything `palaver study analyse` finds.

    Tables: ranking (each system's mean, interval, place), methods (all ways to rank), agreement, correlation,
    criteria, raters, tests, influence (empty unless asked for), intervals (clustered by dialogue and rater,
    where raters cross dialogues), texts (what raters wrote), conditions (how often a question was asked).
    """

    title: str
    run: RunRecord
    reading: Reading
    confidence: float
    criteria: tuple[CriterionSummary, ...]
    agreement: tuple[AgreementRow, ...]
    correlation: tuple[CorrelationRow, ...]
    ranking: tuple[RankingRow, ...]
    raters: tuple[RaterRow, ...]
    rater_matrices: tuple[RaterMatrix, ...]
    tests: tuple[TestRow, ...] = ()
    influence: tuple[InfluenceRow, ...] = ()
    """The quoted agreement without each rater, and without the items that matter most; by size of change."""
    intervals: tuple[IntervalRow, ...] = ()
    """Means and differences with intervals clustered by dialogue and rater, where raters cross dialogues."""
    texts: tuple[TextRow, ...] = ()
    """Answers in free text. They are listed, never counted as numbers."""
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        names = few([c.criterion for c in self.criteria])
        n_ratings = f"{self.reading.n_ratings:,} ratings"
        return f"{self.title!r}: {names}; {n_ratings}; signature {self.run.signature}"

    def _tables(self) -> dict[str, Any]:
        shares = ("bins", "systems", "raters", "choices")
        by_first_method: dict[str, RankingRow] = {}
        for row in self.ranking:
            by_first_method.setdefault(row.criterion, row)
        return {
            "ranking": _ranking_table(list(by_first_method.values())),
            "methods": _ranking_table(self.ranking),
            "agreement": columns_of(AgreementRow, self.agreement),
            "correlation": columns_of(CorrelationRow, self.correlation),
            "criteria": columns_of(CriterionSummary, self.criteria, leave_out=shares),
            "raters": columns_of(RaterRow, self.raters),
            "tests": columns_of(TestRow, self.tests),
            "influence": columns_of(InfluenceRow, self.influence),
            "intervals": columns_of(IntervalRow, self.intervals),
            "texts": columns_of(TextRow, self.texts),
            "conditions": columns_of(ConditionRow, self.reading.conditions),
        }


def _ranking_table(rankings: Sequence[RankingRow]) -> dict[str, list[Any]]:
    names = ("criterion", "system", "place", "score", "low", "high", "n", "method", "unit")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for row in rankings:
        place: dict[str, str] = {}
        for group in row.groups:
            first, last = len(place) + 1, len(place) + len(group)
            place |= dict.fromkeys(group, f"{first}." if first == last else f"{first}.–{last}.")
        for s in row.scores:
            cells = (row.criterion, s.system, place.get(s.system, ""), s.score, s.low, s.high, s.n)
            for name, cell in zip(names, (*cells, row.method, row.unit), strict=True):
                table[name].append(cell)
    return table
