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

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from palaver.errors import UserError
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import Floats, Metric, divide
from palaver.metrics.tokens import Ints, Tokens

Per = Literal["words", "ngrams"]


def number_ngrams(tokens: Tokens, order: int) -> Iterator[tuple[Ints, Ints]]:
    """For n from 1 to `order`: a number for each n-gram, equal for equal ones, and the text it stands in."""
    ids = tokens.ids.astype(np.int64)
    n_tokens = int(ids.max(initial=0)) + 1
    owners = np.repeat(np.arange(len(tokens.starts) - 1), tokens.lengths)
    grams = np.unique(ids, return_inverse=True)[1] if ids.size else ids
    yield grams, owners
    last = ids  # the last token of each n-gram
    for _ in range(1, order):
        same_text = owners[:-1] == owners[1:]
        longer = grams[:-1][same_text] * n_tokens + last[1:][same_text]
        grams = np.unique(longer, return_inverse=True)[1] if longer.size else longer
        last = last[1:][same_text]
        owners = owners[:-1][same_text]
        yield grams, owners


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
    return _distinct_share(_examples(texts), n)


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


def _pooled_counts(examples: Examples, n: int) -> Ints:
    """How often each distinct n-gram of all responses occurs."""
    from palaver.metrics._kernels import pack_ngrams

    tokens = examples.predictions.tokens("words")
    if n == 1:
        counts = np.bincount(tokens.ids)
        return counts[counts > 0]
    n_tokens = int(tokens.ids.max(initial=0)) + 1
    if n_tokens**n >= 2**63:
        *_, (grams, _) = number_ngrams(tokens, n)
        return np.bincount(grams)
    ordered = np.sort(pack_ngrams(*tokens, n, n_tokens))  # much faster than numbering them
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return np.diff(first, append=ordered.size)


def _distinct_share(examples: Examples, n: int) -> float:
    counts = _pooled_counts(examples, n)
    return counts.size / int(counts.sum()) if counts.size else np.nan


def _entropy(examples: Examples, n: int) -> float:
    counts = _pooled_counts(examples, n)
    if not counts.size:
        return np.nan
    share = counts / counts.sum()
    return float(-(share * np.log(share)).sum()) + 0.0  # never -0.0


def _top_share(examples: Examples, n: int) -> float:
    """Share of the responses that are one of the `n` most frequent ones."""
    tokens = examples.predictions.tokens("words")
    texts = (tokens.ids[a:b].tobytes() for a, b in zip(tokens.starts, tokens.starts[1:], strict=False))
    numbers: dict[bytes, int] = {}
    counts = np.bincount([numbers.setdefault(text, len(numbers)) for text in texts])
    return float(np.sort(counts)[::-1][:n].sum() / len(examples)) if len(examples) else np.nan


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
        whole=lambda examples: _distinct_share(examples, n),
        no_interval=_NO_INTERVAL,
    )


def _entropy_metric(n: int) -> Metric:
    return Metric(
        name=f"entropy_{n}",
        title=f"Entropy of the {n}-grams of all responses",
        better="higher",
        settings=f"words:palaver|n:{n}|unit:nats|pooled",
        whole=lambda examples: _entropy(examples, n),
        no_interval=_NO_INTERVAL,
    )


def _top_metric(n: int, which: str) -> Metric:
    return Metric(
        name=f"top_{n}_share",
        title=f"Share of the {which}",
        better="lower",
        settings=f"words:palaver|top:{n}|pooled",
        whole=lambda examples: _top_share(examples, n),
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
