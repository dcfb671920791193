"""Which ratings to keep, to drop and to look at, with the reason for each.

A rater is judged by ratings alone: whether they go with what a model expects that has seen none of theirs
(correlation, and how far good and bad dialogues lie apart for them), and whether they vary at all. A dialogue
is suspicious when its rating lies far from that expectation or when its turns are those of another. With
compared pairs, KNN-Shapley values (Liang et al. 2020, section 5.3) are summed for each rater: they say whose
ratings mislead a regressor on just those pairs.

No mark of quality control is read. Where one exists it can measure these verdicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.cmade.shapley import pair_values
from palaver.comparator.evaluation import PairResult
from palaver.comparator.method import Fit, MethodSettings, fit
from palaver.comparator.representation import NAMES, Representation
from palaver.comparator.training_data import Pairs, RatedDialogues
from palaver.errors import DataError
from palaver.progress import Progress, no_progress

Floats = NDArray[np.float64]
Verdict = Literal["keep", "suspicious", "drop"]

_FEWEST = 4
"""With fewer ratings nobody is dropped for disagreeing."""
_SAME = 0.1
"""Who spreads ratings by less than this part of the usual gives everything the same."""
_TERSE = 0.5


@dataclass(frozen=True)
class CleanSettings:
    """Limits of trust (1: the common rater), and of how many usual deviations are far."""

    drop: float = 0.4
    """Below it a rating says less than half of what one usually says."""
    doubt: float = 0.7
    far: float = 3.0

    def __post_init__(self) -> None:
        if not self.drop <= self.doubt:
            raise DataError(f"drop ({self.drop:g}) must not lie above doubt ({self.doubt:g})")


@dataclass(frozen=True)
class RaterVerdict:
    """A rater, how far they can be trusted (1: as the common rater) and why."""

    rater: str
    n: int
    trust: float
    correlation: float
    spread: float
    mean: float
    words: float
    """Typed in a turn, on average."""
    verdict: Verdict
    reasons: tuple[str, ...]
    shapley: float | None = None


@dataclass(frozen=True)
class RatingVerdict:
    """One rated dialogue. `expected` is the rating its rater would have given by the model."""

    id: str
    rater: str | None
    rating: float
    expected: float
    verdict: Verdict
    reasons: tuple[str, ...]
    suspicion: float
    """Higher: rather drop. Orders all ratings, whatever the verdict."""
    shapley: float | None = None


@dataclass(frozen=True)
class Cleaning:
    """Every rating with its verdict, in the order of the file, and every rater, least trusted first."""

    ratings: tuple[RatingVerdict, ...]
    raters: tuple[RaterVerdict, ...]
    counts: dict[str, int]
    reasons: dict[str, int]
    agreement: PairResult | None
    """Of held-out scores on pairs within a sitting; how much there was to judge by."""
    notes: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        """The share of such pairs that the model gets right; a coin gets half."""
        return float("nan") if self.agreement is None else self.agreement.accuracy

    @property
    def knows_nothing(self) -> bool:
        """Whether the model that judges may be no better than a coin."""
        return self.agreement is None or self.agreement.low <= 0.5

    @property
    def suspicion(self) -> Floats:
        """(N,)"""
        return np.array([row.suspicion for row in self.ratings])


def clean(
    ratings: RatedDialogues,
    x: Representation,
    *,
    pairs: Pairs | None = None,
    pairs_x: Representation | None = None,
    settings: CleanSettings | None = None,
    method: MethodSettings | None = None,
    fitted: Fit | None = None,
    progress: Progress = no_progress,
) -> Cleaning:
    """Judge every rating. `pairs` over the dialogues of `pairs_x` add Shapley values."""
    s = settings or CleanSettings()
    if fitted is None:  # for its held-out scores: one head is enough
        fitted = fit(ratings, x, settings=method or MethodSettings(heads=1), progress=progress)
    values = None
    if pairs is not None and pairs_x is not None and len(pairs):
        # Centred: else a value says most about how high the rater rates everything.
        values = pair_values(x.vectors, ratings.values - ratings.values.mean(), pairs_x.vectors, pairs)
    raters = _judge_raters(ratings, x, fitted, values, s)
    by_rater = {row.rater: row for row in raters}
    notes = [note for note in fitted.notes if "the unit comes" not in note]  # scores are not shown here
    if not raters:
        notes.append("no rating names its rater: only single dialogues can be judged")
    expected = fitted.held_out / fitted.model.unit
    deviation = _robust(fitted.effects.target - expected)
    expected_rating = np.clip(fitted.effects.level + fitted.effects.stretch * expected, *ratings.scale)
    repeats = _repeats(ratings)
    trust = fitted.reliability
    distrust = 1 - trust.of_rows(ratings.codes("rater"), trust.care)
    rows = []
    for i, row in enumerate(ratings.rows):
        rater = by_rater.get(row.rater or "")
        verdict: Verdict = "keep" if rater is None else rater.verdict
        own_reasons = list(repeats.get(i, []))
        if abs(deviation[i]) > s.far:
            side = "above" if deviation[i] > 0 else "below"
            own_reasons.insert(0, f"rated far {side} its turns")
        if own_reasons and verdict == "keep":
            verdict = "suspicious"
        rows.append(
            RatingVerdict(
                id=row.dialogue.id,
                rater=row.rater,
                rating=float(ratings.values[i]),
                expected=float(expected_rating[i]),
                verdict=verdict,
                reasons=(*own_reasons, *(() if rater is None else rater.reasons)),
                # a single rating says little about itself: a hundredth orders the ratings of one rater
                suspicion=float(distrust[i]) + 0.01 * min(abs(float(deviation[i])), 10.0),
                shapley=None if values is None else float(values[i]),
            )
        )
    reasons = Counter(reason for row in rows for reason in {_kind(r) for r in row.reasons})
    return Cleaning(
        ratings=tuple(rows),
        raters=tuple(raters),
        counts={name: sum(row.verdict == name for row in rows) for name in ("keep", "suspicious", "drop")},
        reasons=dict(reasons.most_common()),
        agreement=fitted.on_ratings,
        notes=tuple(notes),
    )


def _judge_raters(
    ratings: RatedDialogues, x: Representation, fitted: Fit, values: Floats | None, s: CleanSettings
) -> list[RaterVerdict]:
    codes = ratings.codes("rater")
    known = codes >= 0
    if not known.any():
        return []
    trust = fitted.reliability
    n = len(trust.raters)
    names = list(dict.fromkeys(row.rater for row in ratings.rows if row.rater is not None))
    counts = np.bincount(codes[known], minlength=n)

    def mean(column: Floats) -> Floats:
        return np.bincount(codes[known], column[known], n) / counts

    words = mean(x.features[:, NAMES.index("user_length")].astype(np.float64))
    level = mean(ratings.values)
    worth = None if values is None else np.bincount(codes[known], values[known], n)
    usual_spread, usual_words = float(np.median(trust.spread)), float(np.median(words))
    rows = []
    for r in range(n):
        reasons = []
        verdict: Verdict = "keep"
        if counts[r] >= 3 and trust.spread[r] < _SAME * usual_spread:
            reasons.append("the rater gives everything nearly the same rating")
            verdict = "drop"
        elif trust.trust[r] < s.doubt and counts[r] >= 2:
            verdict = "drop" if trust.trust[r] < s.drop and counts[r] >= _FEWEST else "suspicious"
            if trust.correlation[r] < 0:
                reasons.append("the rater prefers what others find worse")
            elif trust.shrunk[r] < s.doubt * trust.common:
                reasons.append("the rater's ratings hardly go with the dialogues")
            else:
                reasons.append("good and bad dialogues lie close together for the rater")
        if worth is not None and worth[r] < 0 and verdict != "keep":
            reasons.append("the rater's ratings mislead on the compared pairs")
        if words[r] < _TERSE * usual_words and verdict != "keep":
            reasons.append(f"the rater types little: {words[r]:.1f} words a turn, usually {usual_words:.1f}")
        rows.append(
            RaterVerdict(
                rater=names[r],
                n=int(counts[r]),
                trust=float(trust.trust[r]),
                correlation=float(trust.correlation[r]),
                spread=float(trust.spread[r]),
                mean=float(level[r]),
                words=float(words[r]),
                verdict=verdict,
                reasons=tuple(reasons),
                shapley=None if worth is None else float(worth[r]),
            )
        )
    return sorted(rows, key=lambda row: (row.trust, row.rater))


def _robust(values: Floats) -> Floats:
    """In units of the usual deviation, so that a few wild ratings do not widen it."""
    middle = np.median(values)
    usual = 1.4826 * float(np.median(np.abs(values - middle)))
    return np.asarray((values - middle) / usual) if usual > 0 else np.zeros(len(values))


def _repeats(ratings: RatedDialogues) -> dict[int, list[str]]:
    """Dialogues with the turns of another, and those in which one rater typed all the same again."""
    reasons: dict[int, list[str]] = {}
    first_with_turns: dict[tuple[tuple[str, str], ...], int] = {}
    first_typed: dict[tuple[str | None, tuple[str, ...]], int] = {}
    for i, row in enumerate(ratings.rows):
        turns = tuple((t.speaker, " ".join(t.text.lower().split())) for t in row.dialogue.turns)
        typed = tuple(text for speaker, text in turns if speaker == "user")
        whole = first_with_turns.setdefault(turns, i)
        again = first_typed.setdefault((row.rater, typed), i)
        if whole != i:
            reasons[i] = [f"the same turns as {ratings.ids[whole]}"]
        elif again != i and len(typed) > 2 and row.rater is not None:
            reasons[i] = [f"the rater typed the same as in {ratings.ids[again]}"]
    return reasons


def _kind(reason: str) -> str:
    """A reason without what is special to one row, for counting."""
    if reason.startswith("the same turns as"):
        return "the same turns as in another dialogue"
    if reason.startswith("the rater typed the same as"):
        return "the rater typed the same as in another dialogue"
    return reason.split(":")[0]
