"""BLEU as sacrebleu computes it, and self-BLEU.

`bleu` is sacrebleu's corpus BLEU with its defaults (13a, mixed case, exponential smoothing, no effective
order; Post 2018), from 0 to 100. A response's own score is sacrebleu's `sentence_bleu`, which has effective
order. Text in scripts without spaces is split into characters (see `tokens`); else both are equal to
sacrebleu's, whatever the number of references.

`self_bleu` (Zhu et al. 2018) is the mean of each response's sentence BLEU against all others of the system.
What limits a match is the largest count of an n-gram in any *other* response. The two largest counts of each
n-gram give that for all responses at once, so that nothing has to be sampled.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric
from palaver.metrics.pooling import ngram_parts
from palaver.metrics.tokens import Ids, Ints

ORDER = 4
_ROWS = 1 << 16
"""Responses whose self-BLEU is computed at a time."""
_SYSTEM, _REFERENCE = 2 * ORDER, 2 * ORDER + 1  # the columns of lengths, after matches and totals


def bleu_statistics(examples: Examples) -> Floats:
    """Matches of orders 1 to 4, totals of orders 1 to 4, length, and length of the closest reference."""
    own, others = examples.tokens("13a")
    matches = examples.matches("13a", ORDER, union=True)
    closest = _closest(own.lengths[examples.owners], others.lengths, examples.owners, len(examples))
    table = _statistics(matches, own.lengths, closest)
    table[~examples.has_reference] = np.nan
    return table


def _statistics(matches: Ints | Ids, lengths: Ints, reference_lengths: Ints) -> Floats:
    totals = np.maximum(lengths[:, None] - np.arange(ORDER), 0)
    return np.column_stack([matches, totals, lengths, reference_lengths]).astype(np.float64)


def _closest(own: Ints, others: Ints, owners: Ints, n: int) -> Ints:
    """The reference length closest to each response's, the shorter one of two."""
    order = np.lexsort((others, np.abs(own - others), owners))
    closest = np.zeros(n, dtype=np.int64)
    first, place = np.unique(owners[order], return_index=True)
    closest[first] = others[order[place]]
    return closest


def bleu(statistics: Floats, *, effective_order: bool = False) -> Floats:
    """BLEU of sums of statistics, (…, 10) -> (…)."""
    matches, totals = statistics[..., :ORDER], statistics[..., ORDER:_SYSTEM]
    own, reference = statistics[..., _SYSTEM], statistics[..., _REFERENCE]
    has_ngrams, has_matches = totals > 0, matches > 0
    # the first order without a match counts as half a match, the next as a quarter, and so on
    n_without = np.cumsum(has_ngrams & ~has_matches, axis=-1)
    smoothed = np.where(has_matches, matches, 0.5**n_without)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(has_ngrams, np.log(smoothed / totals), 0.0)
        penalty = np.where(own < reference, np.exp(1 - reference / own), 1.0)
    n_orders = has_ngrams.sum(axis=-1)
    mean = logs.sum(axis=-1) / np.maximum(n_orders, 1)
    defined = has_matches.any(axis=-1) & ((n_orders == ORDER) | effective_order)
    score = np.where(defined, 100 * penalty * np.exp(mean), 0.0)
    return np.where(np.isnan(own), np.nan, score)


def sentence_bleu(statistics: Floats) -> Floats:
    """BLEU of each response, over the orders that it has n-grams of."""
    return bleu(statistics, effective_order=True)


def self_bleu(blocks: Iterable[Examples]) -> float:
    """Mean sentence BLEU of each response against all others; nan for fewer than two."""
    lengths = np.concatenate([block.predictions.tokens("13a").lengths for block in blocks])
    n = len(lengths)
    if n < 2:
        return np.nan
    matches = np.zeros((n, ORDER), dtype=np.int32)
    for order in range(1, ORDER + 1):
        for grams, owners in ngram_parts(blocks, "13a", order):
            _add_matches_with_others(matches[:, order - 1], grams, owners)
    closest = _closest_other(lengths)
    scores = np.empty(n)
    for begin in range(0, n, _ROWS):
        rows = slice(begin, begin + _ROWS)
        scores[rows] = sentence_bleu(_statistics(matches[rows], lengths[rows], closest[rows]))
    return float(scores.mean())


def _add_matches_with_others(matches: Ids, grams: Ints, owners: Ints) -> None:
    """Add each response's matches, clipped by the largest count in any other response."""
    if not grams.size:
        return
    order = np.argsort(grams, kind="stable")  # of each n-gram the responses stay in order
    grams, owners = grams[order], owners[order]
    is_new = np.concatenate([[True], (grams[1:] != grams[:-1]) | (owners[1:] != owners[:-1])])
    pairs = np.flatnonzero(is_new)  # one an n-gram and response
    counts = np.diff(pairs, append=grams.size)
    owners, grams = owners[pairs], grams[pairs]
    starts = np.concatenate([[0], np.flatnonzero(grams[1:] != grams[:-1]) + 1])
    sizes = np.diff(starts, append=grams.size)  # responses that have the n-gram
    largest = np.maximum.reduceat(counts, starts)
    is_largest = counts == np.repeat(largest, sizes)
    n_largest = np.add.reduceat(is_largest, starts, dtype=np.int64)
    second = np.maximum.reduceat(np.where(is_largest, 0, counts), starts)
    # the only one that has the largest count is limited by the second largest
    alone = is_largest & np.repeat(n_largest == 1, sizes)
    limit = np.where(alone, np.repeat(second, sizes), np.repeat(largest, sizes))
    np.add.at(matches, owners, np.minimum(counts, limit).astype(np.int32))


def _closest_other(lengths: Ints) -> Ints:
    """The closest length among the other responses, the shorter one of two."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    below = np.concatenate([ordered[:1] - 2 * ordered[-1] - 1, ordered[:-1]])
    above = np.concatenate([ordered[1:], ordered[-1:] * 3 + 1])
    closest = np.empty_like(lengths)
    closest[order] = np.where(ordered - below <= above - ordered, below, above)
    return closest


_TOKENS = "case:mixed|tok:13a|no-spaces:characters|smooth:exp"
BLEU = Metric(
    name="bleu",
    title="BLEU",
    better="higher",
    needs=("references",),
    settings=f"{_TOKENS}|eff:no|references:all|corpus",
    scores=lambda examples: sentence_bleu(bleu_statistics(examples)),
    statistics=bleu_statistics,
    figure=bleu,
)
SELF_BLEU = Metric(
    name="self_bleu",
    title="Self-BLEU: each response against all others",
    better="lower",
    settings=f"{_TOKENS}|eff:yes|references:all-others|mean:responses",
    whole=self_bleu,
    no_interval="a response drawn twice would be compared with itself",
)
