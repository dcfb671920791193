"""Responses beside what they are compared with, as token numbers that all metrics share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from palaver.metrics.tokens import Ints, Rule, Texts, Tokens, Vocabulary
from palaver.schema.dialogue import Turn


class Example(NamedTuple):
    """One response to be judged, the true response (or several), the knowledge and the turns before it."""

    prediction: str
    references: tuple[str, ...] = ()
    knowledge: str = ""
    context: tuple[Turn, ...] = ()


@dataclass(eq=False)
class Examples:
    """Many examples. What one metric counts, the next one finds counted."""

    predictions: Texts
    references: Texts
    """Of all responses, one after the other."""
    reference_starts: Ints
    """Those of response i are reference_starts[i]:reference_starts[i + 1]."""
    knowledge: Texts
    rows: Sequence[Example] | None = None
    """The texts themselves, where a plug-in needs them."""
    _matches: dict[tuple[Rule, int, bool], Ints] = field(default_factory=dict, repr=False)
    _distinct: Ints | None = None
    by_models: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict, repr=False)
    """What models said, by what was asked: metrics of one model share it."""

    @classmethod
    def of(cls, rows: Sequence[Example], vocabulary: Vocabulary | None = None) -> Examples:
        """The examples that these texts are."""
        predictions, references, knowledge, _ = zip(*rows, strict=True) if rows else ((), (), (), ())
        examples = cls.of_columns(predictions, references, knowledge, vocabulary)
        examples.rows = rows
        return examples

    @classmethod
    def of_columns(
        cls,
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        knowledge: Sequence[str] | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> Examples:
        """The same from a column each; a response may have one reference or several."""
        vocabulary = vocabulary or Vocabulary()
        counts = [1 if isinstance(of_one, str) else len(of_one) for of_one in references]
        several = ([of_one] if isinstance(of_one, str) else of_one for of_one in references)
        return cls(
            vocabulary.add(predictions),
            vocabulary.add(chain.from_iterable(several)),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)]),
            vocabulary.add_empty(len(predictions)) if knowledge is None else vocabulary.add(knowledge),
        )

    @classmethod
    def join(cls, vocabulary: Vocabulary, parts: Sequence[Examples]) -> Examples:
        """Examples of one vocabulary, one after the other; the texts only where all parts hold them."""
        counts = [np.diff(part.reference_starts) for part in parts]
        rows = [part.rows for part in parts]
        return cls(
            Texts.join(vocabulary, [part.predictions for part in parts]),
            Texts.join(vocabulary, [part.references for part in parts]),
            np.concatenate([np.zeros(1, np.int64), *counts]).cumsum(),
            Texts.join(vocabulary, [part.knowledge for part in parts]),
            None if None in rows else [row for some in rows for row in some or ()],
        )

    def __len__(self) -> int:
        return len(self.predictions)

    @cached_property
    def owners(self) -> Ints:
        """The response that each reference belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.reference_starts))

    @property
    def has_reference(self) -> np.ndarray:
        return np.diff(self.reference_starts) > 0

    def tokens(self, rule: Rule) -> tuple[Tokens, Tokens]:
        """Of the responses and of the references."""
        return self.predictions.tokens(rule), self.references.tokens(rule)

    def matches(self, rule: Rule, order: int, *, union: bool = False) -> Ints:
        """Clipped n-gram matches up to `order`: a row a reference, or with `union` a row a response."""
        key = (rule, order, union)
        if key not in self._matches:
            from palaver.metrics._kernels import count_matches

            own, others = self.tokens(rule)
            self._matches[key] = count_matches(*own, *others, self.reference_starts, order, union)
        return self._matches[key]

    def distinct(self, order: int) -> Ints:
        """How many distinct n-grams of words each response has, up to `order`."""
        if self._distinct is None or self._distinct.shape[1] < order:
            from palaver.metrics._kernels import distinct_within

            self._distinct = distinct_within(*self.predictions.tokens("words"), max(order, 2))
        return self._distinct

    def best(self, of_references: np.ndarray) -> np.ndarray:
        """The best of each response's references; nan where there is none."""
        best = np.full(len(self), np.nan)
        np.fmax.at(best, self.owners, of_references)
        return best
