"""How long responses are: no quality in itself, but every other figure moves with it."""

from __future__ import annotations

from palaver.metrics.metric import Example, Metric
from palaver.text.words import count_words


def _words_of(example: Example) -> float:
    return float(count_words(example.prediction))


WORDS = Metric(
    name="words",
    title="Words per response",
    better="neither",
    settings="words:palaver|mean:responses",
    per_example=_words_of,
)
