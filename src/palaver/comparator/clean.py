"""Which ratings to keep, to drop and to look at, with the reason for each.

A rater is judged by ratings alone: whether they go with what a model expects that has seen none of theirs
(correlation, and how far good and bad dialogues lie apart for them), and whether they vary at all. A dialogue
is looked at twice when its rating lies far from that expectation or when its turns are those of another. With
compared pairs, KNN-Shapley values (Liang et al. 2020, section 5.3) are summed for each rater: they say whose
ratings mislead a regressor on just those pairs.

No mark of quality control is read; where one exists it can measure what is found here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.data import Pairs, Ratings
from palaver.comparator.method import Fitted, MethodSettings, held_out_scores
from palaver.comparator.represent import NAMES, Represented
from palaver.errors import DataError

Floats = NDArray[np.float64]
Verdict = Literal["keep", "suspicious", "drop"]
Tell = Callable[[str, int, int], None]

_DROP, _DOUBT = 0.4, 0.7
"""Of the common rater's trust. Below the first a rating says less than half of what one usually says."""
_FEWEST = 4
"""With fewer ratings nobody is dropped for disagreeing."""
_SAME = 0.1
"""Who spreads ratings by less than this part of the usual gives everything the same."""
_FAR = 3.0
_TERSE = 0.5


@dataclass(frozen=True)
class CleanSettings:
    drop: float = _DROP
    doubt: float = _DOUBT
    far: float = _FAR

    def __post_init__(self) -> None:
        if not self.drop <= self.doubt:
            raise DataError(f"drop ({self.drop:g}) must not lie above doubt ({self.doubt:g})")


@dataclass(frozen=True)
class JudgedRater:
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
class JudgedRating:
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
class Cleaned:
    """Every rating with its verdict, in the order of the file, and every rater, least trusted first."""

    ratings: tuple[JudgedRating, ...]
    raters: tuple[JudgedRater, ...]
    counts: dict[str, int]
    reasons: dict[str, int]
    common_correlation: float
    accuracy: float
    """Of held-out scores on pairs within a sitting; how much there was to judge by."""
    notes: tuple[str, ...]

    @property
    def suspicion(self) -> Floats:
        """(N,)"""
        return np.array([row.suspicion for row in self.ratings])


def clean(
    ratings: Ratings,
    x: Represented,
    *,
    pairs: Pairs | None = None,
    pairs_x: Represented | None = None,
    settings: CleanSettings | None = None,
    method: MethodSettings | None = None,
    fitted: Fitted | None = None,
    tell: Tell | None = None,
) -> Cleaned:
    """Judge every rating. `pairs` over the dialogues of `pairs_x` add Shapley values."""
    s = settings or CleanSettings()
    found = fitted or held_out_scores(ratings, x, settings=method, tell=tell)
    values = _shapley(ratings, x, pairs, pairs_x)
    raters = _judge_raters(ratings, x, found, values, s)
    by_rater = {row.rater: row for row in raters}
    notes = [note for note in found.notes if "the unit comes" not in note]  # scores are not shown here
    if not raters:
        notes.append("no rating names its rater: only single dialogues can be judged")
    target, expected = found.effects.target, found.held_out / found.model.unit
    residual = _robust(target - expected)
    twins = _twins(ratings)
    rows = []
    for i, row in enumerate(ratings.rows):
        rater = by_rater.get(row.rater or "")
        verdict: Verdict = rater.verdict if rater is not None else "keep"
        reasons = list(rater.reasons) if rater is not None else []
        own = []
        if abs(residual[i]) > s.far:
            own.append("rated far above its turns" if residual[i] > 0 else "rated far below its turns")
        own += twins.get(i, [])
        if own and verdict == "keep":
            verdict = "suspicious"
        away = abs(float(residual[i]))
        rows.append(
            JudgedRating(
                row.dialogue.id,
                row.rater,
                float(ratings.values[i]),
                _on_scale(
                    float(found.effects.level[i] + found.effects.stretch[i] * expected[i]), ratings.scale
                ),
                verdict,
                (*own, *reasons),
                # a single rating says little about itself: a hundredth orders the ratings of one rater
                (1 - rater.trust if rater is not None else 0.0) + 0.01 * min(away, 10.0),
                None if values is None else float(values[i]),
            )
        )
    counted = Counter(reason for row in rows for reason in {_kind(r) for r in row.reasons})
    accuracy = found.on_ratings.accuracy if found.on_ratings is not None else float("nan")
    return Cleaned(
        tuple(rows),
        tuple(raters),
        {name: sum(row.verdict == name for row in rows) for name in ("keep", "suspicious", "drop")},
        dict(counted.most_common()),
        found.reliability.common,
        accuracy,
        tuple(notes),
    )


def _judge_raters(
    ratings: Ratings, x: Represented, found: Fitted, values: Floats | None, s: CleanSettings
) -> list[JudgedRater]:
    codes = ratings.codes("rater")
    known = codes >= 0
    if not known.any():
        return []
    n = len(found.reliability.raters)
    names = list(dict.fromkeys(row.rater for row in ratings.rows if row.rater is not None))
    counts = np.bincount(codes[known], minlength=n)

    def mean(column: Floats) -> Floats:
        return np.bincount(codes[known], column[known], n) / counts

    words = mean(x.features[:, NAMES.index("user_length")].astype(np.float64))
    level = mean(ratings.values)
    worth = None if values is None else np.bincount(codes[known], values[known], n)
    trusted, spread = found.reliability.trust, found.reliability.spread
    usual_spread, usual_words = float(np.median(spread)), float(np.median(words))
    rows = []
    for r in range(n):
        reasons, verdict = [], "keep"
        correlation = float(found.reliability.correlation[r])
        if counts[r] >= 3 and spread[r] < _SAME * usual_spread:
            reasons.append("the rater gives everything nearly the same rating")
            verdict = "drop"
        elif trusted[r] < s.doubt and counts[r] >= 2:
            drop = trusted[r] < s.drop and counts[r] >= _FEWEST
            verdict = "drop" if drop else "suspicious"
            if correlation < 0:
                reasons.append("the rater prefers what others find worse")
            elif found.reliability.shrunk[r] < s.doubt * found.reliability.common:
                reasons.append("the rater's ratings hardly go with the dialogues")
            else:
                reasons.append("good and bad dialogues lie close together for the rater")
        if worth is not None and worth[r] < 0 and verdict != "keep":
            reasons.append("the rater's ratings mislead on the compared pairs")
        if words[r] < _TERSE * usual_words and verdict != "keep":
            reasons.append(f"the rater types little: {words[r]:.1f} words a turn, usually {usual_words:.1f}")
        rows.append(
            JudgedRater(
                names[r],
                int(counts[r]),
                float(trusted[r]),
                correlation,
                float(spread[r]),
                float(level[r]),
                float(words[r]),
                verdict,  # type: ignore[arg-type]
                tuple(reasons),
                None if worth is None else float(worth[r]),
            )
        )
    return sorted(rows, key=lambda row: (row.trust, row.rater))


def _shapley(
    ratings: Ratings, x: Represented, pairs: Pairs | None, pairs_x: Represented | None
) -> Floats | None:
    if pairs is None or pairs_x is None or not len(pairs):
        return None
    from palaver.comparator.shapley import pair_values

    # Centred: else a value says most about how high the rater rates everything.
    values = ratings.values - ratings.values.mean()
    return pair_values(x.vectors, values, pairs_x.vectors, pairs)


def _robust(values: Floats) -> Floats:
    """In units of the usual deviation, so that a few wild ratings do not widen it."""
    middle = np.median(values)
    usual = 1.4826 * float(np.median(np.abs(values - middle)))
    return np.asarray((values - middle) / usual) if usual > 0 else np.zeros(len(values))


def _twins(ratings: Ratings) -> dict[int, list[str]]:
    """Dialogues with the turns of another, and those in which one rater typed all the same again."""
    found: dict[int, list[str]] = {}
    whole: dict[tuple[tuple[str, str], ...], int] = {}
    typed: dict[tuple[str | None, tuple[str, ...]], int] = {}
    for i, row in enumerate(ratings.rows):
        turns = tuple((t.speaker, " ".join(t.text.lower().split())) for t in row.dialogue.turns)
        said = tuple(text for speaker, text in turns if speaker == "user")
        first = whole.setdefault(turns, i)
        again = typed.setdefault((row.rater, said), i)
        if first != i:
            found.setdefault(i, []).append(f"the same turns as {ratings.rows[first].dialogue.id}")
        elif again != i and len(said) > 2 and row.rater is not None:
            found.setdefault(i, []).append(
                f"the rater typed the same as in {ratings.rows[again].dialogue.id}"
            )
    return found


def _kind(reason: str) -> str:
    """A reason without what is special to one row, for counting."""
    for start in ("the same turns as", "the rater typed the same as"):
        if reason.startswith(start):
            return f"{start} in another dialogue".replace("as in in", "as in")
    return reason.split(":")[0]


def _on_scale(value: float, scale: Sequence[float]) -> float:
    return float(min(max(value, scale[0]), scale[1]))
