"""Which conversations are accepted, which a person should look at, which are refused, and why.

Each check of `quality.toml` gives a score between 0 and 1; the worst one counts. A side has a verdict of its
own, because people are paid for what they did themselves; a conversation is as good as its worse side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, TypeVar

from palaver.collection.labels import grade_number
from palaver.collection.measures import FEWEST_TURNS, MEASURES, OF_ANNOTATIONS, WHOLE, Side, sides_of
from palaver.collection.records import Conversation, Decision, Key, Person, Verdict
from palaver.collection.standards import Check, Standards
from palaver.errors import UserError, count_of
from palaver.tabular import Tabular, columns_of, show_number

VERDICTS: tuple[Verdict, ...] = ("accepted", "review", "rejected")
"""From the best to the worst."""


@dataclass(frozen=True)
class SideResult:
    """What one participant did."""

    conversation: str
    participant: str
    """A person's id; where nobody is known, the seat."""
    seat: str
    verdict: Verdict
    score: float
    reasons: tuple[str, ...]
    n_turns: int
    partner_grade: float | None
    """The partner's ratings of the messages, on average."""
    is_known: bool = True
    """Whether the participant is a person's id."""


@dataclass(frozen=True)
class ConversationResult:
    """What comes of a conversation."""

    conversation: str
    verdict: Verdict
    score: float
    reasons: tuple[str, ...]
    whole_verdict: Verdict = "accepted"
    """On the conversation as such, whatever the sides did."""
    sides: tuple[SideResult, ...] = ()


_Result = TypeVar("_Result", SideResult, ConversationResult)


@dataclass(frozen=True)
class CheckResult:
    """What a check found over all sides, or over all conversations."""

    check: str
    says: str
    bad: str
    review: float
    reject: float | None
    measured: int
    median: float | None
    n_review: int
    n_rejected: int


@dataclass(frozen=True, repr=False)
class Quality(Tabular):
    """The verdicts, and what each check found."""

    results: tuple[ConversationResult, ...]
    checks: tuple[CheckResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(result.verdict for result in self.results)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    @property
    def sides(self) -> tuple[SideResult, ...]:
        return tuple(side for result in self.results for side in result.sides)

    def _headline(self) -> str:
        return ", ".join(f"{n:,} {verdict}" for verdict, n in self.counts.items())

    def _tables(self) -> Mapping[str, Any]:
        return {
            "conversations": columns_of(ConversationResult, self.results, leave_out=("sides",)),
            "sides": columns_of(SideResult, self.sides),
            "checks": columns_of(CheckResult, self.checks),
        }


@dataclass
class _Finding:
    """What the checks say of a side or of a conversation."""

    verdict: Verdict = "accepted"
    scores: list[float] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, verdict: Verdict, score: float, reason: str) -> None:
        self.verdict = worst((self.verdict, verdict))
        self.scores.append(score)
        if verdict != "accepted":
            self.reasons.append(reason)

    @property
    def score(self) -> float:
        return min(self.scores, default=1.0)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of some verdicts."""
    return max(verdicts, key=VERDICTS.index)


def check_quality(
    conversations: Sequence[Conversation],
    standards: Standards | None = None,
    people: Sequence[Person] = (),
) -> Quality:
    """The verdicts on conversations that are over; `people` are asked for their qualification."""
    standards = standards or Standards()
    over = [conversation for conversation in conversations if conversation.ending != "open"]
    notes = (
        [f"not looked at, still open: {len(conversations) - len(over):,}"]
        if len(over) < len(conversations)
        else []
    )
    repeated = [id for id, n in Counter(conversation.id for conversation in over).items() if n > 1]
    if repeated:
        raise UserError("conversations have the same id", "give each its own", repeated[:10])
    checks = {name: check for name, check in standards.quality.items() if check.on}
    all_sides = sides_of(over)
    if not any(turn.knowledge or turn.labels.get("sentiment") for c in over for turn in c.dialogue.turns):
        asked = [name for name in OF_ANNOTATIONS if name in checks]
        if asked and over:
            notes.append(f"nobody annotated anything, so these were not checked: {', '.join(asked)}")
        checks = {name: check for name, check in checks.items() if name not in asked}
    faults = {person.id: standards.qualification.fault(person.qualifications) for person in people}
    tally = _Tally(checks)
    results = []
    for conversation, sides in zip(over, all_sides, strict=True):
        side_results = [_judge_side(side, checks, faults.get(side.name, ""), tally) for side in sides]
        results.append(_judge_conversation(conversation, sides, side_results, checks, tally))
    unmeasured = [name for name in checks if not tally.values[name]]
    if unmeasured and over:
        notes.append(f"there was nothing to measure: {', '.join(unmeasured)}")
    short = sum(len(side.turns) < FEWEST_TURNS for sides in all_sides for side in sides)
    if short:
        notes.append(
            f"not judged by most checks, fewer than {FEWEST_TURNS} messages: {count_of(short, 'side')}"
        )
    return Quality(tuple(results), tally.results(), tuple(notes))


class Checker:
    """Checks conversations that are over, each of them once: people talk while the owner looks."""

    def __init__(self) -> None:
        self._standards = Standards()
        self._known: dict[str, ConversationResult] = {}

    def check(
        self, conversations: Sequence[Conversation], standards: Standards, people: Sequence[Person] = ()
    ) -> Quality:
        """As `check_quality`, without what each check found over all."""
        if standards != self._standards:
            self._standards, self._known = standards, {}
        over = [conversation for conversation in conversations if conversation.ending != "open"]
        new = {conversation.id for conversation in over if conversation.id not in self._known}
        if new:  # with whatever else the same people said: who says it again is found by that
            who = {person.id for c in over if c.id in new for person in c.people}
            related = [c for c in over if c.id in new or who & {person.id for person in c.people}]
            results = check_quality(related, standards, people).results
            self._known |= {result.conversation: result for result in results if result.conversation in new}
        return Quality(tuple(self._known[conversation.id] for conversation in over), ())


class _Tally:
    """The values of each check."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self.checks = checks
        self.values: dict[str, list[float]] = {name: [] for name in checks}

    def results(self) -> tuple[CheckResult, ...]:
        rows = []
        for name, check in self.checks.items():
            values = self.values[name]
            n_rejected = sum(check.is_beyond(value, check.reject) for value in values)
            n_review = sum(check.is_beyond(value, check.review) for value in values) - n_rejected
            middle = median(values) if values else None
            limits = (check.review, check.reject)
            rows.append(
                CheckResult(name, check.says, check.bad, *limits, len(values), middle, n_review, n_rejected)
            )
        return tuple(rows)


def _apply(name: str, check: Check, side: Side, finding: _Finding, tally: _Tally) -> None:
    value = MEASURES[name](side)
    if value is None:
        return
    tally.values[name].append(value)
    verdict: Verdict = "accepted"
    if check.is_beyond(value, check.reject):
        verdict = "rejected"
    elif check.is_beyond(value, check.review):
        verdict = "review"
    shown = f"{value:.0f}" if name == "turns" else show_number(value)
    finding.add(verdict, check.score(value), f"{name.replace('_', ' ')} {shown}")


def _judge_side(side: Side, checks: Mapping[str, Check], fault: str, tally: _Tally) -> SideResult:
    finding = _Finding()
    for name, check in checks.items():
        if name not in WHOLE:
            _apply(name, check, side, finding, tally)
    if fault:
        finding.add("review", 0.5, fault)
    return SideResult(
        conversation=side.conversation.id,
        participant=side.name,
        seat=side.seat,
        verdict=finding.verdict,
        score=finding.score,
        reasons=tuple(finding.reasons),
        n_turns=len(side.turns),
        partner_grade=MEASURES["partner"](side),
        is_known=side.participant is not None,
    )


def _judge_conversation(
    conversation: Conversation,
    sides: Sequence[Side],
    results: Sequence[SideResult],
    checks: Mapping[str, Check],
    tally: _Tally,
) -> ConversationResult:
    finding = _Finding()
    if conversation.ending != "complete":
        reason = "the bot failed" if conversation.ending == "failed" else "not completed"
        finding.add("rejected", 0.0, reason)
    speakers = {turn.speaker for turn in conversation.dialogue.turns}
    if len(speakers) < 2:
        finding.add("rejected", 0.0, "one side alone speaks" if speakers else "nothing was said")
    for name in WHOLE:
        if name in checks and sides:
            _apply(name, checks[name], sides[0], finding, tally)
    whole_verdict = finding.verdict
    for result in results:
        finding.add(result.verdict, result.score, f"{result.participant}: {', '.join(result.reasons)}")
    return ConversationResult(
        conversation=conversation.id,
        verdict=finding.verdict,
        score=finding.score,
        reasons=tuple(finding.reasons),
        whole_verdict=whole_verdict,
        sides=tuple(results),
    )


def conversation_grade(conversation: Conversation, seat: str) -> int | None:
    """What the others say of the whole conversation: the lowest of their ratings, from 1 to 5."""
    labels = conversation.dialogue.labels
    grades = [
        grade_number(labels.get(f"rating_{other}"))
        for other in conversation.dialogue.speakers
        if other != seat
    ]
    known = [grade for grade in grades if grade is not None]
    return min(known) if known else None


def decide(quality: Quality, decisions: Mapping[Key, Decision]) -> Quality:
    """The verdicts after a person decided, about one side or about the whole.

    A conversation on which nobody decided is as good as its sides are now, and what was wrong with the whole.
    """
    results = []
    for result in quality.results:
        sides = [
            _decided(side, decisions.get((side.conversation, side.participant))) for side in result.sides
        ]
        whole = decisions.get((result.conversation, ""))
        if whole is None:
            verdict = worst([result.whole_verdict, *(side.verdict for side in sides)])
            results.append(replace(result, verdict=verdict, sides=tuple(sides)))
        else:
            results.append(_decided(replace(result, sides=tuple(sides)), whole))
    return replace(quality, results=tuple(results))


def _decided(result: _Result, decision: Decision | None) -> _Result:
    if decision is None:
        return result
    reasons = (decision.reason,) if decision.reason else result.reasons
    return replace(result, verdict=decision.verdict, reasons=reasons)
