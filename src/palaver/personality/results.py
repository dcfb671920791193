"""What the test of distinguishability finds, as rows: the terminal, the report and `results.json` show these.

Field names are a contract that people script against: fields may be added, not renamed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from palaver.corpora.personalities import TRAITS
from palaver.personality.samples import Floats
from palaver.schema import RunRecord
from palaver.schema.run import RunResult
from palaver.statistics.significance import MeanTest
from palaver.tabular import columns_of

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """Who was looked at, and the OCEAN estimate: mean and deviation over the samples."""

    name: str
    n_utterances: int
    n_groups: int
    ocean: Numbers
    ocean_sd: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterScore:
    """How well one character was recovered; deviations are over the repetitions."""

    character: str
    precision: float
    recall: float
    f1: float
    precision_sd: float
    recall_sd: float
    f1_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One way to ask the question, and the answer, averaged over characters and repetitions."""

    name: str
    labels: Literal["characters", "shuffled labels", "pseudo-characters"]
    features: Literal["traits", "words", "words without stop words"]
    split: Literal["samples", "groups"]
    """"samples" is the paper's: an utterance may be in samples on both sides. "groups": it may not."""
    scaled: bool
    n_samples: int
    """Of each character, training and test side together."""
    size: int
    """Utterances in a sample."""
    precision: float
    recall: float
    f1: float
    precision_sigma: float
    """Over the characters, which is the σ of the paper's tables."""
    recall_sigma: float
    f1_sigma: float
    f1_sd: float
    """Over the repetitions."""
    characters: tuple[CharacterScore, ...]
    repetitions: Numbers
    """F1 of each repetition, averaged over the characters."""
    confusion: tuple[Numbers, ...]
    """Shares of each true character's samples (rows) that were taken for each character (columns)."""
    chosen_c: Mapping[str, int]
    """How often each C was chosen; empty for a classifier that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionTest:
    """Levene, then Student's or Welch's t, on the F1 of the repetitions of two conditions."""

    a: str
    b: str
    test: MeanTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The reading in plain words, from the split by group against its pseudo-characters."""

    answer: Literal["yes", "no", "cannot say"]
    f1: float = math.nan
    control: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """Interval of the difference over resampled pools."""
    confidence: float
    n_replicates: int = 0
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Distinguishability(RunResult):
    """Whether the words tell who speaks. Tables: conditions, characters (with their traits), scores."""

    title: str
    recogniser: str
    group_noun: str
    characters: tuple[Character, ...]
    conditions: tuple[Condition, ...]
    tests: tuple[ConditionTest, ...]
    verdict: Verdict
    left_out: tuple[tuple[str, int], ...]
    """What was not used, and how many of it."""
    notes: tuple[str, ...]
    run: RunRecord
    classifier: str = "svm"
    resampled: tuple[tuple[float, float], ...] = ()
    """F1 of the characters and of the pseudo-characters, split by group, in each resampled pool."""

    def _headline(self) -> str:
        return f"{self.title!r}: {self.verdict.answer}. {self.verdict.text or self.verdict.reason}"

    def _tables(self) -> dict[str, Any]:
        lists = ("characters", "repetitions", "confusion", "chosen_c")
        about = columns_of(Character, self.characters, leave_out=("ocean", "ocean_sd"))
        traits = {trait: [c.ocean[i] for c in self.characters] for i, trait in enumerate(TRAITS)}
        scores = [(condition.name, score) for condition in self.conditions for score in condition.characters]
        by_character = columns_of(CharacterScore, [score for _, score in scores])
        return {
            "conditions": columns_of(Condition, self.conditions, leave_out=lists),
            "characters": about | traits,
            "scores": {"condition": [name for name, _ in scores], **by_character},
        }

    @property
    def chance(self) -> float:
        """Of guessing right, with as many samples of each character."""
        return 1 / len(self.characters)

    def condition(self, name: str) -> Condition | None:
        return next((c for c in self.conditions if c.name == name), None)


def prf(confusion: Any) -> Floats:
    """Precision, recall and F1 of each class, (3, classes), from true x predicted counts.

    What was never predicted has precision 0, and so has F1 where both are 0, as scikit-learn has it.
    """
    counts = np.asarray(confusion, dtype=np.float64)
    right = np.diagonal(counts)
    predicted, true = counts.sum(axis=0), counts.sum(axis=1)
    over = np.stack([predicted, true, (predicted + true) / 2])
    return np.asarray(np.divide(right, over, out=np.zeros_like(over), where=over > 0))
