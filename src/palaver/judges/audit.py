"""What a judge notices: pairs of short dialogues that differ in one thing, such as a rude word or silence.

The pairs were written for this project (`audit_pairs.jsonl`): 12 kinds, 39 of each. In ten kinds one dialogue
is better; in two, translation and spelling, both are equally good. A third of each kind is open, a third is
held out: nobody looks at it while a judge is being built. The last third is a second held-out part, for a
judge that was changed after the first had been run.

A judge is right about a pair with a better dialogue where that one scores higher; equal scores are half
right. It is right about equal dialogues where it gives each of them between 40% and 60%. What it does not
rate it gets wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from palaver.artefacts import digest_files
from palaver.errors import UserError
from palaver.judges.catalogue import open_judge
from palaver.judges.panel import AnyJudge
from palaver.schema import Criterion, Dialogue, Judge, Response, RunRecord, Turn, record_run
from palaver.schema.response import SYSTEM
from palaver.statistics.power import wilson_interval
from palaver.tabular import Tabular, show_number

PAIRS = Path(__file__).with_name("audit_pairs.jsonl")
KINDS = {
    "politeness": "polite or rude",
    "truth": "right or wrong",
    "topic": "on or off the topic",
    "consistency": "consistent or contradicting itself",
    "memory": "heeds what the user said or does not",
    "answer": "answers the question or passes it by",
    "length": "short and good or long and empty",
    "repetition": "goes on or repeats itself",
    "praise": "sense, or nonsense that the user praises",
    "silence": "answers or says nothing",
    "language": "English or German: equal",
    "spelling": "spelled in two ways: equal",
}
"""What the two dialogues of a pair differ in."""
EQUAL = (0.4, 0.6)
"""The probabilities that are right for dialogues that are equally good."""

Better = Literal["a", "b", "equal"]
Part = Literal["open", "held out", "second"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AuditPair:
    """Two dialogues, and which of them is better."""

    id: str
    kind: str
    domain: str
    better: Better
    part: Part
    a: Dialogue
    b: Dialogue


@dataclass(frozen=True)
class KindResult:
    """How often a judge is right about one kind of pairs, with 95%; beside it what `baselines` reach."""

    kind: str
    differ: str
    accuracy: float
    low: float
    high: float
    n: int
    n_unrated: int
    baselines: Mapping[str, float]


@dataclass(frozen=True)
class PairVerdict:
    """What a judge says of one pair: P(a is better), nan where it rated only one of them or none."""

    id: str
    kind: str
    better: Better
    probability: float
    right: float


@dataclass(frozen=True, repr=False)
class AuditResult(Tabular):
    """Accuracy by kind; verdicts on single pairs for the open part only. Tables: kinds, pairs."""

    judge: str
    criterion: str
    signature: str
    part: Part
    overall: KindResult
    kinds: tuple[KindResult, ...]
    pairs: tuple[PairVerdict, ...]
    notes: tuple[str, ...]
    run: RunRecord

    def _headline(self) -> str:
        return f"{self.judge} is right about {show_number(self.overall.accuracy)} of {self.overall.n} pairs"

    def _tables(self) -> dict[str, Any]:
        rows = (*self.kinds, self.overall)
        of_kind = ("kind", "accuracy", "low", "high", "n", "n_unrated")
        kinds: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in of_kind}
        kinds |= {name: [row.baselines[name] for row in rows] for name in BASELINES}
        of_pair = ("id", "kind", "better", "probability", "right")
        pairs = {name: [getattr(row, name) for row in self.pairs] for name in of_pair}
        return {"kinds": kinds, "pairs": pairs}


def read_audit_pairs(part: Part = "open") -> tuple[AuditPair, ...]:
    """The open part of the audit set, or one that is held out."""
    return tuple(pair for pair in _all_pairs() if pair.part == part)


@cache
def _all_pairs() -> tuple[AuditPair, ...]:
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return tuple(
        AuditPair(
            id=row["id"],
            kind=row["kind"],
            domain=row["domain"],
            better=row["better"],
            part=row["part"],
            a=_dialogue(f"{row['id']}/a", "a", row["a"]),
            b=_dialogue(f"{row['id']}/b", "b", row["b"]),
        )
        for row in rows
    )


def _dialogue(name: str, side: str, turns: Sequence[dict[str, str]]) -> Dialogue:
    return Dialogue(id=name, turns=tuple(Turn(**turn) for turn in turns), labels={"system": side})


def audit(by: str | AnyJudge = "comparator", *, part: Part = "open", device: str = "auto") -> AuditResult:
    """Let a judge, named as for `judge` or a function from a `Response` to a number, decide every pair.

    A judge of responses is given the system's last turn with what was said before it.
    """
    judge = open_judge(by, device=device)
    criterion = _criterion(judge)
    pairs = read_audit_pairs(part)
    values = _values(judge, criterion, pairs)
    in_log_odds = bool(getattr(judge, "log_odds", False))
    difference = _difference(values, pairs)
    probability = _probability(difference, 1.0 if in_log_odds else _spread(values))
    has_opinion = getattr(judge, "has_opinion", None)
    if has_opinion is not None:
        silent = np.array([not has_opinion(pair.a, pair.b) for pair in pairs])
        probability[silent & np.isfinite(probability)] = 0.5
    right = _right(probability, pairs)
    baselines = {name: _baseline_right(measure, pairs) for name, measure in BASELINES.items()}
    verdicts = tuple(
        PairVerdict(pair.id, pair.kind, pair.better, float(p), float(r))
        for pair, p, r in zip(pairs, probability, right, strict=True)
    )
    unrated = np.isnan(difference)
    rows = []
    for kind in KINDS:
        mine = np.array([pair.kind == kind for pair in pairs])
        rows.append(_kind_result(kind, KINDS[kind], right, unrated, baselines, mine))
    everything = np.ones(len(pairs), bool)
    notes = []
    if not in_log_odds:
        notes.append(
            "its scores are no log-odds: less than 0.4 standard deviations apart is taken for 40% to 60%"
        )
    if has_opinion is not None and silent.any():
        notes.append(f"{int(silent.sum())} pairs that it cannot compare, such as a translation, count as 50%")
    if unrated.any():
        notes.append(f"{int(unrated.sum())} pairs with a dialogue that it did not rate count as wrong")
    return AuditResult(
        judge=judge.name,
        criterion=criterion.name,
        signature=judge.signature,
        part=part,
        overall=_kind_result("all", "all kinds", right, unrated, baselines, everything),
        kinds=tuple(rows),
        pairs=verdicts if part == "open" else (),
        notes=tuple(notes),
        run=record_run(
            "palaver compare audit",
            config={"judge": judge.name, "judge's signature": judge.signature, "part": part},
            data={PAIRS.name: digest_files([PAIRS])},
        ),
    )


def _criterion(judge: Judge) -> Criterion:
    """The first of a judge's criteria that has a better end."""
    if getattr(judge, "whole", False):
        raise UserError(f"{judge.name} rates systems, not single dialogues: there is nothing to audit")
    if judge.needs:
        raise UserError(
            f"{judge.name} needs {' and '.join(sorted(judge.needs))}, which the pairs do not have"
        )
    for criterion in judge.criteria:
        if criterion.better != "neither":
            return criterion
    raise UserError(f"{judge.name} does not say which of two dialogues is better: no end of its scales is")


def _values(judge: Judge, criterion: Criterion, pairs: Sequence[AuditPair]) -> dict[str, float]:
    """Dialogue -> score, turned so that higher is better."""
    dialogues = [dialogue for pair in pairs for dialogue in (pair.a, pair.b)]
    if "dialogues" in judge.looks_at:
        ratings = list(judge.judge(dialogues))
    else:
        ratings = list(judge.judge([_last_response(dialogue) for dialogue in dialogues]))
    sign = -1.0 if criterion.better == "lower" else 1.0
    values = {
        rating.item: sign * float(rating.value)
        for rating in ratings
        if rating.criterion == criterion.name and isinstance(rating.value, int | float)
    }
    if not values:
        raise UserError(f"{judge.name} rated none of the {len(dialogues)} dialogues of the audit set")
    return values


def _last_response(dialogue: Dialogue) -> Response:
    place = max(i for i, turn in enumerate(dialogue.turns) if turn.speaker == SYSTEM)
    return Response(
        id=dialogue.id,
        system=str(dialogue.labels["system"]),
        context=dialogue.turns[:place],
        response=dialogue.turns[place].text,
    )


def _difference(values: Mapping[str, float], pairs: Sequence[AuditPair]) -> Floats:
    """(n,) how much higher a scores than b; nan where one of them has no score."""
    nothing = math.nan
    return np.array([values.get(p.a.id, nothing) - values.get(p.b.id, nothing) for p in pairs])


def _spread(values: Mapping[str, float]) -> float:
    return float(np.std(list(values.values()))) or 1.0


def _probability(difference: Floats, unit: float) -> Floats:
    return 1 / (1 + np.exp(-np.clip(difference / unit, -500, 500)))


def _right(probability: Floats, pairs: Sequence[AuditPair]) -> Floats:
    """(n,) 1 right, 0 wrong, 1/2 where a choice had to be made and was not."""
    right = np.zeros(len(pairs))
    for i, (pair, p) in enumerate(zip(pairs, probability, strict=True)):
        if pair.better == "equal":
            right[i] = EQUAL[0] <= p <= EQUAL[1]
        elif p == 0.5:
            right[i] = 0.5
        else:
            right[i] = p > 0.5 if pair.better == "a" else p < 0.5
    return right


def _kind_result(
    kind: str,
    differ: str,
    right: Floats,
    unrated: NDArray[np.bool_],
    baselines: Mapping[str, Floats],
    rows: NDArray[np.bool_],
) -> KindResult:
    n = int(rows.sum())
    low, high = wilson_interval(float(right[rows].sum()), n)
    shares = {name: float(its_right[rows].mean()) for name, its_right in baselines.items()}
    return KindResult(kind, differ, float(right[rows].mean()), low, high, n, int(unrated[rows].sum()), shares)


def _said(dialogue: Dialogue) -> str:
    return "\n".join(turn.text for turn in dialogue.turns if turn.speaker == SYSTEM)


def _few_capitals(dialogue: Dialogue) -> float:
    text = _said(dialogue)
    return -sum(map(str.isupper, text)) / max(1, len(text))


NO_OPINION = "no opinion"
BASELINES: dict[str, Callable[[Dialogue], float]] = {
    "longer wins": lambda dialogue: float(len(_said(dialogue))),
    "fewer capitals win": _few_capitals,
    NO_OPINION: lambda dialogue: 0.0,
}
"""What needs no judge: a measure of what the system says, higher is better."""


def _baseline_right(measure: Callable[[Dialogue], float], pairs: Sequence[AuditPair]) -> Floats:
    values = {dialogue.id: measure(dialogue) for pair in pairs for dialogue in (pair.a, pair.b)}
    return _right(_probability(_difference(values, pairs), _spread(values)), pairs)
