"""From totals to features: rates per word and per sentence, made to stay within what was seen in training.

Samples of dialogue are far from the essays that the regression is fitted on. So every feature is a rate
(never a total), a few average words are added to each text so that a short one is drawn to the middle, and
standardised values beyond `LIMIT` grow only with their logarithm: one odd feature cannot carry a score away.
Single words are scaled down by `SINGLE`, so that ridge regression shrinks them more than categories: that
gave the best correlations held out, and less noise in small samples than equal terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palaver.personality.counts import MARKS

LIMIT = 6.0
SINGLE = 0.15
_PER_SENTENCE = ("questions", "exclamations")
_SKEWED = tuple(
    m for m in MARKS if m not in _PER_SENTENCE
)  # rare and bursty: their square root is nearer to a bell


def feature_names(columns: Sequence[str]) -> tuple[str, ...]:
    """What `rates` gives for these columns of counts, in order."""
    kept = [c for c in columns if c not in ("words", "sentences") and not c.startswith("count:")]
    return ("words_per_sentence", *(c.removeprefix("sum:") for c in kept))


def rates(totals: np.ndarray, columns: Sequence[str]) -> np.ndarray:
    """(k, columns) totals -> (k, features). Nothing is left undefined but a text without words."""
    totals = np.asarray(totals, dtype=np.float64)
    place = {name: i for i, name in enumerate(columns)}
    with np.errstate(divide="ignore", invalid="ignore"):
        words = totals[:, place["words"]]
        sentences = totals[:, place["sentences"]]
        rate_columns = [np.log(words / sentences)]
        for name, i in place.items():
            if name in ("words", "sentences") or name.startswith("count:"):
                continue
            if name.startswith("sum:"):
                rate_columns.append(totals[:, i] / totals[:, i + 1])
            elif name in _SKEWED:
                rate_columns.append(np.sqrt(100 * totals[:, i] / words))
            elif name in _PER_SENTENCE:
                rate_columns.append(100 * totals[:, i] / sentences)
            else:
                rate_columns.append((1 if name == "letters" else 100) * totals[:, i] / words)
    return np.stack(rate_columns, axis=1)


def soften(z: np.ndarray) -> np.ndarray:
    """Standardised values as they are up to the limit, their logarithm beyond it; rising everywhere."""
    size = np.abs(z)
    return np.where(size > LIMIT, np.sign(z) * (LIMIT + np.log1p(np.maximum(size - LIMIT, 0))), z)


@dataclass(frozen=True)
class Standard:
    """How totals become standardised features: learned on the texts of training."""

    columns: tuple[str, ...]
    average: np.ndarray
    """(columns,): what an average word of the training texts adds to each column."""
    prior: float
    """How many average words are added to each text."""
    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def learn(cls, totals: np.ndarray, columns: Sequence[str], *, prior: float = 50.0) -> Standard:
        """From the totals of the training texts. A feature that never varies gets no say."""
        totals = np.asarray(totals, dtype=np.float64)
        average = totals.sum(axis=0) / totals[:, list(columns).index("words")].sum()
        features = rates(totals + prior * average, columns)
        sd = features.std(axis=0)
        return cls(tuple(columns), average, prior, features.mean(axis=0), np.where(sd > 1e-9, sd, np.inf))

    def features(self, totals: np.ndarray) -> np.ndarray:
        """(k, features), standardised and softened."""
        raw = rates(np.asarray(totals, dtype=np.float64) + self.prior * self.average, self.columns)
        scale = [SINGLE if ":" in name else 1.0 for name in feature_names(self.columns)]
        return soften((raw - self.mean) / self.sd) * scale
