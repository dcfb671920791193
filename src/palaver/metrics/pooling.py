"""What is counted over all responses of a system together: n-grams, and responses that are the same.

Many n-grams are counted part by part. An n-gram belongs to the part that its key says, and every part goes
through all blocks again, so that about `AT_ONCE` of them are held at a time, more only where a single n-gram
is more frequent than that. A key is the n-gram itself where its numbers fit into 63 bits, and a hash of it
otherwise: among 100 million different n-grams, the chance that any two share one is 3 in 10,000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from palaver.metrics.examples import Examples
from palaver.metrics.tokens import Ints, Rule

AT_ONCE = 1 << 22
"""N-grams that are counted together."""


def ngram_parts(blocks: Iterable[Examples], rule: Rule, n: int) -> Iterator[tuple[Ints, Ints]]:
    """Of each part: the keys of its n-grams, equal for equal ones, and the number of each one's response."""
    from palaver.metrics._kernels import ngram_keys

    n_tokens = largest = 0
    for block in blocks:
        ids = block.predictions.tokens(rule).ids
        n_tokens += ids.size
        largest = max(largest, int(ids.max(initial=0)))
    bits = largest.bit_length() if largest.bit_length() * n <= 63 else 0
    n_parts = max(1, -(-n_tokens // AT_ONCE))
    for part in range(n_parts):
        keys, owners = [], []
        n_before = 0
        for block in blocks:
            of_block = ngram_keys(*block.predictions.tokens(rule), n, bits, part, n_parts)
            keys.append(of_block[0])
            owners.append(of_block[1] + n_before)
            n_before += len(block)
        yield np.concatenate(keys), np.concatenate(owners)


def ngram_counts(blocks: Iterable[Examples], n: int) -> Iterator[Ints]:
    """Of each part: how often each of its different n-grams of words occurs."""
    if n == 1:
        counts = np.zeros(0, np.int64)
        for block in blocks:
            of_block = np.bincount(block.predictions.tokens("words").ids, minlength=counts.size)
            of_block[: counts.size] += counts
            counts = of_block
        yield counts[counts > 0]
        return
    from palaver.metrics._kernels import key_counts

    for keys, _ in ngram_parts(blocks, "words", n):
        yield key_counts(keys)


def response_counts(blocks: Iterable[Examples]) -> Ints:
    """How often each different response occurs, told by a hash of its words."""
    from palaver.metrics._kernels import key_counts, text_keys

    keys = [text_keys(*block.predictions.tokens("words")) for block in blocks]
    counts: Ints = key_counts(np.concatenate(keys))
    return counts
