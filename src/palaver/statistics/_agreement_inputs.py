"""What the agreement statistics accept: a table of (items, raters), or one row per rating with codes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import check_confidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator | int | None


def check_options(confidence: float, n_replicates: int, rng: Rng) -> None:
    """Refuse a confidence outside (0, 1), a negative number of replicates, a bootstrap without a seed."""
    check_confidence(confidence)
    if n_replicates < 0:
        raise ValueError(f"n_replicates must be 0 or more, not {n_replicates}")
    if n_replicates and rng is None:
        raise ValueError("a bootstrap needs rng: a numpy Generator or an integer seed")


def wide_table(ratings: ArrayLike) -> Floats:
    """`ratings` as a float table of (items, raters), nan where there is none."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings must be a table of (items, raters), not of shape {table.shape}")
    return table


def long_columns(**columns: ArrayLike) -> list[NDArray[np.generic]]:
    """One-dimensional columns of equal length, in the order given."""
    arrays = [np.asarray(column) for column in columns.values()]
    if any(a.ndim != 1 for a in arrays) or len({a.size for a in arrays}) > 1:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in zip(columns, arrays, strict=True))
        raise ValueError(f"expected 1-D columns of one length, found {shapes}")
    return arrays


def dense_codes(name: str, codes: NDArray[np.generic]) -> tuple[Ints, int]:
    """Integer codes renumbered 0 .. n-1 in their order without gaps, and n."""
    if codes.size == 0:
        return np.empty(0, dtype=np.int64), 0
    if codes.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integer codes, not {codes.dtype}")
    lowest, highest = int(codes.min()), int(codes.max())
    if highest - lowest > 4 * codes.size + 1000:  # a table of flags would be mostly empty
        distinct, dense = np.unique(codes, return_inverse=True)
        return dense.astype(np.int64, copy=False), distinct.size
    shifted = codes.astype(np.int64, copy=False) - lowest
    used = np.bincount(shifted) > 0
    if used.all():
        return shifted, used.size
    return (np.cumsum(used) - 1)[shifted], int(used.sum())


def notes_of(counts: Mapping[str, int]) -> tuple[str, ...]:
    """A note for every count that is not zero; the texts start with a plural.

    >>> notes_of({"items without a rating": 1, "ratings missing": 3, "raters without a rating": 0})
    ('1 item without a rating', '3 ratings missing')
    """
    notes = []
    for text, count in counts.items():
        noun, _, rest = text.partition(" ")
        if count:
            notes.append(f"{count} {noun.removesuffix('s') if count == 1 else noun} {rest}")
    return tuple(notes)
