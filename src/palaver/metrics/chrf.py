"""chrF as sacrebleu computes it (Popović 2015): character n-grams up to 6, β = 2, from 0 to 100.

White space is left out, and orders without n-grams on either side do not count. With several references the
best one counts.
"""

from __future__ import annotations

import numpy as np

from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric

ORDER = 6
BETA = 2


def chrf_statistics(examples: Examples) -> Floats:
    """For each order: n-grams of the response, n-grams of its best reference, and matches."""
    own, others = examples.tokens("characters")
    orders = np.arange(ORDER)
    n_others = np.maximum(others.lengths[:, None] - orders, 0)
    n_own = np.maximum(own.lengths[examples.owners][:, None] - orders, 0)
    n_own = np.where(n_others > 0, n_own, 0)  # as sacrebleu: no n-grams to be compared with
    of_references = np.stack([n_own, n_others, examples.matches("characters", ORDER)], axis=2)
    of_references = of_references.reshape(-1, 3 * ORDER).astype(np.float64)
    table = np.full((len(examples), 3 * ORDER), np.nan)
    if len(of_references):
        # the first one of the best: sorted by owner, then best first
        best = np.lexsort((-chrf(of_references), examples.owners))
        rows, place = np.unique(examples.owners[best], return_index=True)
        table[rows] = of_references[best[place]]
    return table


def chrf(statistics: Floats) -> Floats:
    """chrF of sums of statistics, (…, 18) -> (…)."""
    n_own, n_others, n_matches = (statistics[..., column::3] for column in range(3))
    counted = (n_own > 0) & (n_others > 0)
    n_orders = np.maximum(counted.sum(axis=-1), 1)
    zeros = np.zeros(n_own.shape)
    precision = np.divide(n_matches, n_own, out=zeros.copy(), where=counted).sum(axis=-1) / n_orders
    recall = np.divide(n_matches, n_others, out=zeros, where=counted).sum(axis=-1) / n_orders
    weighted = BETA**2 * precision + recall
    product = 100 * (1 + BETA**2) * precision * recall
    score = np.divide(product, weighted, out=np.zeros(np.shape(weighted)), where=weighted > 0)
    return np.where(np.isnan(statistics[..., 0]), np.nan, score)


CHRF = Metric(
    name="chrf",
    title="chrF",
    better="higher",
    needs=("references",),
    settings=f"case:mixed|chars:{ORDER}|words:0|space:no|eff:yes|beta:{BETA}|references:best|corpus",
    scores=lambda examples: chrf(chrf_statistics(examples)),
    statistics=chrf_statistics,
    figure=chrf,
)
