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

from collections.abc import Iterable
from typing import Literal

import numpy as np

from palaver.errors import UserError
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import Floats, Metric, divide
from palaver.metrics.pooling import ngram_counts, response_counts

Per = Literal["words", "ngrams"]


def diversity_of(text: str, n: int = 1, *, per: Per = "words") -> float:
    """Distinct n-grams of one response, divided by its words or by its n-grams; nan if it has none."""
    return float(_diversities(_examples([text]), n, per)[0])


def diversity_n(texts: Iterable[str], n: int = 1, *, per: Per = "words") -> float:
    """The mean of `diversity_of` over the responses that have n-grams; nan if none has."""
    scores = _diversities(_examples(texts), n, per)
    defined = scores[~np.isnan(scores)]
    return float(defined.mean()) if defined.size else np.nan


def distinct_n(texts: Iterable[str], n: int = 1) -> float:
    """Distinct n-grams of all responses together, divided by all their n-grams; nan if there are none."""
    return _distinct_share([_examples(texts)], n)


def _examples(texts: Iterable[str]) -> Examples:
    return Examples.of([Example(text) for text in texts])


def _diversities(examples: Examples, n: int, per: Per) -> Floats:
    if n < 1:
        raise UserError(f"n-grams need n of 1 or more, found {n}")
    tokens = examples.predictions.tokens("words")
    n_grams = np.maximum(tokens.lengths - n + 1, 0)
    n_distinct = examples.distinct(n)[:, n - 1]
    size = n_grams if per == "ngrams" else tokens.lengths
    return divide(n_distinct, size, n_grams > 0)


def _distinct_share(blocks: Iterable[Examples], n: int) -> float:
    n_distinct = n_grams = 0
    for counts in ngram_counts(blocks, n):
        n_distinct += counts.size
        n_grams += int(counts.sum())
    return n_distinct / n_grams if n_grams else np.nan


def _entropy(blocks: Iterable[Examples], n: int) -> float:
    """ln N - (sum of c ln c) / N, for counts c that add up to N."""
    n_grams, weighted = 0, 0.0
    for counts in ngram_counts(blocks, n):
        n_grams += int(counts.sum())
        weighted += float((counts * np.log(counts)).sum())
    return max(0.0, np.log(n_grams) - weighted / n_grams) if n_grams else np.nan


def _top_share(blocks: Iterable[Examples], n: int) -> float:
    """Share of the responses that are one of the `n` most frequent ones."""
    counts = response_counts(blocks)
    return float(np.sort(counts)[::-1][:n].sum() / counts.sum()) if counts.size else np.nan


_REPEATS = "drawing responses with replacement repeats {}, so every replicate lies {} the figure itself"
_NO_INTERVAL = _REPEATS.format("n-grams", "below")


def _diversity(n: int, per: Per, name: str, title: str) -> Metric:
    settings = f"words:palaver|n:{n}|per:{per}|mean:responses"
    return Metric(
        name=name,
        title=title,
        better="higher",
        settings=settings,
        scores=lambda examples: _diversities(examples, n, per),
    )


def _distinct(n: int) -> Metric:
    return Metric(
        name=f"distinct_{n}",
        title=f"Distinct {n}-grams of all responses",
        better="higher",
        settings=f"words:palaver|n:{n}|per:ngrams|pooled",
        whole=lambda blocks: _distinct_share(blocks, n),
        no_interval=_NO_INTERVAL,
    )


def _entropy_metric(n: int) -> Metric:
    return Metric(
        name=f"entropy_{n}",
        title=f"Entropy of the {n}-grams of all responses",
        better="higher",
        settings=f"words:palaver|n:{n}|unit:nats|pooled",
        whole=lambda blocks: _entropy(blocks, n),
        no_interval=_NO_INTERVAL,
    )


def _top_metric(n: int, which: str) -> Metric:
    return Metric(
        name=f"top_{n}_share",
        title=f"Share of the {which}",
        better="lower",
        settings=f"words:palaver|top:{n}|pooled",
        whole=lambda blocks: _top_share(blocks, n),
        no_interval=_REPEATS.format("responses", "above"),
    )


DIVERSITY_1 = _diversity(1, "words", "diversity_1", "Diversity within a response, n=1")
DIVERSITY_2 = _diversity(2, "words", "diversity_2", "Diversity within a response, n=2")
DIVERSITY_2_NGRAMS = _diversity(
    2, "ngrams", "diversity_2_ngrams", "Share of a response's 2-grams that differ"
)
DISTINCT_1 = _distinct(1)
DISTINCT_2 = _distinct(2)
ENTROPY_1 = _entropy_metric(1)
ENTROPY_2 = _entropy_metric(2)
ENTROPY_4 = _entropy_metric(4)
TOP_1_SHARE = _top_metric(1, "most frequent response")
TOP_10_SHARE = _top_metric(10, "ten most frequent responses")
