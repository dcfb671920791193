"""Words a response shares with the true response, or with the knowledge it was given.

`unigram_f1` is ParlAI's, which Topical-Chat reports (Gopalakrishnan et al. 2019, section 6): both texts are
lower-cased, every ASCII punctuation mark becomes a space, the articles *a, an, the* are taken out, and the
words left are compared as bags. Curly quotes count as straight ones, which ParlAI does not do.
`knowledge_f1` is the same against the knowledge (Shuster et al. 2021).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import Floats, Metric, divide
from palaver.metrics.tokens import Ids, Ints

SHORTEST_COPY = 3
"""Words in a row that count as copied."""


def unigram_f1(prediction: str, reference: str | Sequence[str]) -> float:
    """Harmonic mean of precision and recall of words; the best one if there are several references.

    Nothing in common is 0, also for an empty prediction; without any word in a reference it is nan.
    """
    references = (reference,) if isinstance(reference, str) else tuple(reference)
    return float(_reference_f1(Examples.of([Example(prediction, references)]))[0])


def _f1(n_common: Ints, own: Ints, others: Ints) -> Floats:
    """2PR/(P + R); undefined where there is nothing to compare with."""
    return divide(2 * n_common, own + others, others > 0)


def _reference_f1(examples: Examples) -> Floats:
    own, others = examples.tokens("f1")
    f1 = _f1(examples.matches("f1", 1)[:, 0], own.lengths[examples.owners], others.lengths)
    return examples.best(f1)


def _knowledge_f1(examples: Examples) -> Floats:
    from palaver.metrics._kernels import count_matches

    own, known = examples.predictions.tokens("f1"), examples.knowledge.tokens("f1")
    n_common = count_matches(*own, *known, np.arange(len(examples) + 1), 1, False)[:, 0]
    return _f1(n_common, own.lengths, known.lengths)


def _longest_runs(examples: Examples) -> Ids:
    from palaver.metrics._kernels import longest_runs

    runs: Ids = longest_runs(*examples.predictions.tokens("terms"), *examples.knowledge.tokens("terms"))
    return runs


def _overlap(examples: Examples, n: int) -> Floats:
    """Share of each response's word n-grams that its knowledge sentence holds, punctuation left out.

    1 is a copy, or a part of one; nan if the response has fewer than `n` words or there is no knowledge.
    """
    own, known = examples.predictions.tokens("terms"), examples.knowledge.tokens("terms")
    is_known = np.concatenate([np.zeros(1, np.int64), (_longest_runs(examples) >= n).cumsum()])
    n_known = np.diff(is_known[own.starts])
    n_grams = own.lengths - n + 1
    defined = (n_grams > 0) & (known.lengths >= n)
    return divide(n_known, n_grams, defined)


def _copy_rate(examples: Examples) -> Floats:
    from palaver.metrics._kernels import copied_tokens

    own, known = examples.predictions.tokens("terms"), examples.knowledge.tokens("terms")
    n_copied = copied_tokens(_longest_runs(examples), own.starts, SHORTEST_COPY)
    defined = (own.lengths > 0) & (known.lengths > 0)
    return divide(n_copied, own.lengths, defined)


UNIGRAM_F1 = Metric(
    name="unigram_f1",
    title="Unigram F1",
    better="higher",
    needs=("references",),
    settings="case:lower|punctuation:removed|articles:removed|references:best|mean:responses",
    scores=_reference_f1,
)
KNOWLEDGE_F1 = Metric(
    name="knowledge_f1",
    title="Unigram F1 with the knowledge",
    better="neither",
    needs=("knowledge",),
    settings="case:lower|punctuation:removed|articles:removed|mean:responses",
    scores=_knowledge_f1,
)
KNOWLEDGE_OVERLAP_1 = Metric(
    name="knowledge_overlap_1",
    title="Words from the knowledge",
    better="neither",
    needs=("knowledge",),
    settings="words:palaver|punctuation:removed|n:1|mean:responses",
    scores=lambda examples: _overlap(examples, 1),
)
KNOWLEDGE_OVERLAP_2 = Metric(
    name="knowledge_overlap_2",
    title="Word pairs from the knowledge",
    better="neither",
    needs=("knowledge",),
    settings="words:palaver|punctuation:removed|n:2|mean:responses",
    scores=lambda examples: _overlap(examples, 2),
)
COPY_RATE = Metric(
    name="copy_rate",
    title="Words copied from the knowledge in runs of three or more",
    better="neither",
    needs=("knowledge",),
    settings=f"words:palaver|punctuation:removed|run:{SHORTEST_COPY}|mean:responses",
    scores=_copy_rate,
)
