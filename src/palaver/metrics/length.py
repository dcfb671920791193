"""How long responses are: no quality in itself, but every other figure moves with it."""

from __future__ import annotations

import numpy as np

from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric


def _n_words(examples: Examples) -> Floats:
    return examples.predictions.tokens("words").lengths.astype(np.float64)


WORDS = Metric(
    name="words",
    title="Words per response",
    better="neither",
    settings="words:palaver|mean:responses",
    scores=_n_words,
)
EMPTY = Metric(
    name="empty",
    title="Responses without a word",
    better="lower",
    settings="words:palaver|mean:responses",
    scores=lambda examples: (_n_words(examples) == 0).astype(np.float64),
)
LONGEST = 500
"""Words of a response that is not marked. Most encoders read 512 tokens."""
OVER_LONG = Metric(
    name="over_long",
    title=f"Responses of more than {LONGEST} words",
    better="lower",
    settings=f"words:palaver|longest:{LONGEST}|mean:responses",
    scores=lambda examples: (_n_words(examples) > LONGEST).astype(np.float64),
)
