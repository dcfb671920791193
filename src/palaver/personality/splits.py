"""Who said what, as rows: pools of the characters, folds of whole groups, shuffled and resampled pools.

A group is what utterances have in common besides the speaker: an episode, or the context that was answered.
With folds of whole groups no utterance, and no scene, is on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palaver.personality.samples import Rows

_BALANCED_UP_TO = 5000
"""With more groups than this a random split is even enough, and much faster."""


def members(label: Rows, n_characters: int) -> list[Rows]:
    """The rows of each character, in order."""
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=n_characters))
    return [order[end - size : end] for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)]


def fold_groups(
    pools: Sequence[Rows], group: Rows, n_groups: int, n_folds: int, rng: np.random.Generator
) -> Rows:
    """A fold for each group, at random, so that each character has about as many utterances in each fold.

    In random order each group goes to the fold where those who speak in it have said least so far.
    """
    if n_groups > _BALANCED_UP_TO:
        return rng.permutation(np.arange(n_groups) % n_folds)
    share = np.stack([np.bincount(group[rows], minlength=n_groups) / rows.size for rows in pools], axis=1)
    filled = np.zeros((n_folds, len(pools)))
    fold = np.zeros(n_groups, dtype=np.int64)
    for g in rng.permutation(n_groups):
        least = filled @ share[g]
        fold[g] = rng.choice(np.flatnonzero(least == least.min()))
        filled[fold[g]] += share[g]
    return fold


def by_fold(pools: Sequence[Rows], group: Rows, fold: Rows, n_folds: int) -> list[list[Rows]]:
    """Rows of each character in each fold: [fold][character]."""
    folds: list[list[Rows]] = [[] for _ in range(n_folds)]
    for rows in pools:
        where = fold[group[rows]]
        for k in range(n_folds):
            folds[k].append(rows[where == k])
    return folds


def smallest_side(folds: Sequence[Sequence[Rows]]) -> int:
    """How many utterances the poorest character has in its poorest fold."""
    return min(rows.size for fold in folds for rows in fold)


def shuffle_pools(pools: Sequence[Rows], rng: np.random.Generator) -> list[Rows]:
    """Pseudo-characters: the same utterances dealt out anew, to pools of the same sizes."""
    dealt = rng.permutation(np.concatenate(pools))
    return np.split(dealt, np.cumsum([rows.size for rows in pools])[:-1])


def resample_groups(pools: Sequence[Rows], group: Rows, rng: np.random.Generator) -> list[Rows]:
    """The pools as they might have been: for each character its groups, drawn with replacement.

    A group drawn twice stands twice in the pool; it keeps its number, so its copies stay in one fold.
    """
    n_groups = int(group.max()) + 1
    resampled = []
    for rows in pools:
        own = group[rows]
        there = np.flatnonzero(np.bincount(own, minlength=n_groups))
        drawn = there[rng.integers(there.size, size=there.size)]
        resampled.append(np.repeat(rows, np.bincount(drawn, minlength=n_groups)[own]))
    return resampled
