"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) as rouge-score computes them: F measures, without stemming.

With several references the best one counts, as in its `score_multi`. Text of other scripts than Latin has
tokens here (see `tokens`), where rouge-score finds none. A reference without any token is left out.
"""

from __future__ import annotations

import numpy as np

from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric
from palaver.metrics.tokens import Ints


def _f_measure(examples: Examples, n_common: Ints, n: int) -> Floats:
    """The best F measure of each response; `n` is the order of what was compared."""
    own, others = examples.tokens("rouge")
    n_own = np.maximum(own.lengths[examples.owners] - n + 1, 0)
    n_others = np.maximum(others.lengths - n + 1, 0)
    precision = n_common / np.maximum(n_own, 1)
    recall = n_common / np.maximum(n_others, 1)
    both = precision + recall
    f_measure = np.divide(2 * precision * recall, both, out=np.zeros(len(both)), where=both > 0)
    return examples.best(np.where(others.lengths > 0, f_measure, np.nan))


def _rouge_n(examples: Examples, n: int) -> Floats:
    return _f_measure(examples, examples.matches("rouge", 2)[:, n - 1], n)


def _rouge_l(examples: Examples) -> Floats:
    from palaver.metrics._kernels import common_subsequences

    own, others = examples.tokens("rouge")
    return _f_measure(examples, common_subsequences(*own, *others, examples.reference_starts), 1)


_SETTINGS = "case:lower|tok:rouge-score|other-scripts:words|stem:no|f-measure|references:best|mean:responses"
ROUGE_1 = Metric(
    name="rouge_1",
    title="ROUGE-1",
    better="higher",
    needs=("references",),
    settings=_SETTINGS,
    scores=lambda examples: _rouge_n(examples, 1),
)
ROUGE_2 = Metric(
    name="rouge_2",
    title="ROUGE-2",
    better="higher",
    needs=("references",),
    settings=_SETTINGS,
    scores=lambda examples: _rouge_n(examples, 2),
)
ROUGE_L = Metric(
    name="rouge_l",
    title="ROUGE-L",
    better="higher",
    needs=("references",),
    settings=_SETTINGS,
    scores=_rouge_l,
)
