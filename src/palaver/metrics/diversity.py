"""How varied responses are: within each one, and over all of them.

Two figures go by the name of diversity. `distinct_n` (Li et al. 2016; Topical-Chat cites Ghazvininejad et al.
2018) pools all responses: distinct n-grams divided by all n-grams. It falls as more responses are pooled, so
that only sets of equal size can be compared. `diversity_n` is the mean over responses of distinct n-grams *of
that response* divided by its length.

Table 3 of Topical-Chat gives "Div." 0.85 (n=1) and 0.86 (n=2) on 12,463 responses. That can only be the
second: the human responses of test_freq have distinct_1 = 0.03 and distinct_2 = 0.26, but diversity_1 = 0.91.
Divided by its n-grams, diversity_2 would be far above diversity_1 (0.99 for people); divided by its words, as
Li et al. scale, the two are alike (0.93 and 0.91), as they are in the table. The paper does not say:
`per="words"` is our reading of it, and `per="ngrams"` is there for those who read otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal

from palaver.errors import UserError
from palaver.metrics.metric import Example, Metric
from palaver.text.words import words

Per = Literal["words", "ngrams"]


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """All runs of `n` tokens, in order."""
    if n < 1:
        raise UserError(f"n-grams need n of 1 or more, found {n}")
    return list(zip(*(tokens[i:] for i in range(n)), strict=False))


def diversity_of(text: str, n: int = 1, *, per: Per = "words") -> float:
    """Distinct n-grams of one response, divided by its words or by its n-grams; nan if it has none."""
    tokens = words(text)
    grams = ngrams(tokens, n)
    if not grams:
        return math.nan
    return len(set(grams)) / len(grams if per == "ngrams" else tokens)


def diversity_n(texts: Iterable[str], n: int = 1, *, per: Per = "words") -> float:
    """The mean of `diversity_of` over the responses that have n-grams; nan if none has."""
    scores = [d for text in texts if not math.isnan(d := diversity_of(text, n, per=per))]
    return sum(scores) / len(scores) if scores else math.nan


def distinct_n(texts: Iterable[str], n: int = 1) -> float:
    """Distinct n-grams of all responses together, divided by all their n-grams; nan if there are none."""
    grams = list(chain.from_iterable(ngrams(words(text), n) for text in texts))
    return len(set(grams)) / len(grams) if grams else math.nan


_NO_INTERVAL = (
    "drawing responses with replacement repeats n-grams, so every replicate lies below the figure itself"
)


def _diversity(n: int, per: Per, name: str, title: str) -> Metric:
    def per_example(example: Example) -> float:
        return diversity_of(example.prediction, n, per=per)

    settings = f"words:palaver|n:{n}|per:{per}|mean:responses"
    return Metric(name=name, title=title, better="higher", settings=settings, per_example=per_example)


def _distinct(n: int) -> Metric:
    def whole(examples: Sequence[Example]) -> float:
        return distinct_n((example.prediction for example in examples), n)

    return Metric(
        name=f"distinct_{n}",
        title=f"Distinct {n}-grams of all responses",
        better="higher",
        settings=f"words:palaver|n:{n}|per:ngrams|pooled",
        whole=whole,
        no_interval=_NO_INTERVAL,
    )


DIVERSITY_1 = _diversity(1, "words", "diversity_1", "Diversity within a response, n=1")
DIVERSITY_2 = _diversity(2, "words", "diversity_2", "Diversity within a response, n=2")
DIVERSITY_2_NGRAMS = _diversity(
    2, "ngrams", "diversity_2_ngrams", "Share of a response's 2-grams that differ"
)
DISTINCT_1 = _distinct(1)
DISTINCT_2 = _distinct(2)
