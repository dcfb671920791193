"""Compiled inner loops of the comparator. Imported only where one is called: numba takes 0.3 s to load."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

# Sums may be reordered, so that they run in vector registers; nan and infinity keep their meaning.
_REORDER = {"reassoc", "contract"}
_DIGIT = 12  # bits sorted by in one pass; 4096 counters still fit in the first-level cache


@numba.njit(cache=True, fastmath=_REORDER)
def squared_norms(x: Any, centre: Any) -> Any:
    """||x_n - centre||^2 of every row, without a centred copy of x."""
    out = np.empty(x.shape[0], np.float32)
    for n in range(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            gap = x[n, j] - centre[j]
            total += gap * gap
        out[n] = total
    return out


@numba.njit(cache=True)
def finish_distances(products: Any, norms: Any, constants: Any) -> None:
    """Turn -2 x.q into ||x - q||^2 in place; what rounding made negative becomes nought."""
    zero = np.float32(0)
    for q in range(products.shape[0]):
        row = products[q]
        constant = constants[q]
        for n in range(row.shape[0]):
            row[n] = max(row[n] + norms[n] + constant, zero)


@numba.njit(cache=True)
def argsort_bits(bits: Any, order: Any, spare: Any, counts: Any) -> None:
    """`order` = positions of `bits` from the least to the greatest, equal ones by position: a radix sort.

    `bits` are distances read as integers: floats that are not negative stand in the same order as their bits.
    Less the least of them they seldom have more than 24 bits, which makes two passes of three.
    """
    low, high = bits[0], bits[0]
    for n in range(bits.shape[0]):
        low = min(low, bits[n])
        high = max(high, bits[n])
    span, width = np.int64(high) - np.int64(low), 1
    while span >> width:
        width += 1
    passes = (width + _DIGIT - 1) // _DIGIT
    digit = (width + passes - 1) // passes
    mask = np.uint32((1 << digit) - 1)
    counts[:passes, : (1 << digit)] = 0
    for n in range(bits.shape[0]):
        key = bits[n] - low
        for p in range(passes):
            counts[p, (key >> np.uint32(p * digit)) & mask] += 1
    for p in range(passes):
        begin = 0
        for d in range(1 << digit):
            begin, counts[p, d] = begin + counts[p, d], begin
    here, there = spare[0], spare[1]
    for p in range(passes):
        shift, start = np.uint32(p * digit), counts[p]
        last = p == passes - 1
        for n in range(bits.shape[0]):
            key, position = bits[n] - low, np.uint64(n)
            if p:
                key, position = np.uint32(here[n] >> np.uint64(32)), here[n] & np.uint64(0xFFFFFFFF)
            d = (key >> shift) & mask
            to = start[d]
            start[d] = to + 1
            if last:
                order[to] = position
            else:
                there[to] = (np.uint64(key) << np.uint64(32)) | position
        here, there = there, here


@numba.njit(cache=True)
def add_shapley(bits: Any, weights: Any, table: Any, shares: Any, k: int) -> None:
    """table[:, 1] += sum_q weights[q] s^(q), where table[:, 0] holds the values y; one row of bits a query.

    Value and sum lie side by side, so that each neighbour costs one visit to memory, not two.
    """
    size = bits.shape[1]
    order = np.empty(size, np.uint32)
    spare = np.empty((2, size), np.uint64)
    counts = np.empty((3, 1 << _DIGIT), np.int64)
    for q in range(bits.shape[0]):
        weight = weights[q]
        if weight == 0:
            continue
        argsort_bits(bits[q], order, spare, counts)
        after = table[order[size - 1], 0]
        s = weight * after / max(size, k)
        table[order[size - 1], 1] += s
        for i in range(size - 1, 0, -1):  # i counts from 1, as in the theorem
            at = order[i - 1]
            y = table[at, 0]
            s += weight * (y - after) * shares[i]
            table[at, 1] += s
            after = y


@numba.njit(cache=True)
def predictions_after_removal(bits: Any, ratings: Any, ranks: Any, removed: Any, most: int, out: Any) -> None:
    """KNN ratings for K = 1 .. most of every query, sequence of removals and number of removed points.

    ranks[r, n]: when sequence r removes point n. out (B, R, S, most): cumulative means over the nearest
    points that are left; a K beyond what is left takes all of it. Each query is sorted once.
    """
    size = bits.shape[1]
    order = np.empty(size, np.uint32)
    spare = np.empty((2, size), np.uint64)
    counts = np.empty((3, 1 << _DIGIT), np.int64)
    for q in range(bits.shape[0]):
        argsort_bits(bits[q], order, spare, counts)
        for r in range(ranks.shape[0]):
            for s in range(removed.shape[0]):
                total, n_near = 0.0, 0
                for i in range(size):
                    at = order[i]
                    if ranks[r, at] < removed[s]:
                        continue
                    total += ratings[at]
                    n_near += 1
                    out[q, r, s, n_near - 1] = total / n_near
                    if n_near == most:
                        break
                out[q, r, s, n_near:] = total / n_near


@numba.njit(cache=True)
def pair_bounds(targets: Any, groups: Any, starts: Any, ends: Any) -> None:
    """j is worse than i where starts[i] <= j < ends[i]; sorted by group and, within one, by target."""
    start = end = 0
    for i in range(targets.shape[0]):
        if i and groups[i] != groups[i - 1]:
            start = end = i
        while targets[end] < targets[i]:
            end += 1
        starts[i], ends[i] = start, end


@numba.njit(cache=True, fastmath=_REORDER, error_model="numpy")  # Python's check of a divisor stops vectors
def add_pairs(o: Any, starts: Any, ends: Any, lambdas: Any) -> float:
    """Sum of log(1 + e^(o_j - o_i)) over starts[i] <= j < ends[i]; adds its derivatives to `lambdas`.

    Only for scores within 60 of each other: e^o is taken once a score, not once a pair, and 8 factors
    1 + e^(o_j - o_i) share a logarithm (8 * 60 is below the 709 where a double ends).
    """
    e = np.exp(o - o.max())
    back = 1.0 / e
    loss = 0.0
    for i in range(o.shape[0]):
        inverse = back[i]
        others, gains = e[starts[i] : ends[i]], lambdas[starts[i] : ends[i]]
        pull = 0.0
        for j in range(others.shape[0]):
            ratio = others[j] * inverse
            share = ratio / (1.0 + ratio)
            pull += share
            gains[j] += share
        lambdas[i] -= pull
        eighth = others.shape[0] // 8
        for j in range(eighth):
            product = 1.0
            for step in range(8):
                product *= 1.0 + others[j + step * eighth] * inverse
            loss += math.log(product)
        for j in range(8 * eighth, others.shape[0]):
            loss += math.log1p(others[j] * inverse)
    return loss


@numba.njit(cache=True, error_model="numpy")
def add_pairs_weighted(o: Any, w: Any, starts: Any, ends: Any, lambdas: Any) -> float:
    """The same with weights w_i w_j, and for scores as far apart as they like: an exponential a pair."""
    loss = 0.0
    for i in range(o.shape[0]):
        pull, part = 0.0, 0.0
        for j in range(starts[i], ends[i]):
            gap = o[j] - o[i]
            small = math.exp(-abs(gap))
            share = w[j] * (1.0 if gap > 0 else small) / (1.0 + small)
            part += w[j] * (max(gap, 0.0) + math.log1p(small))
            pull += share
            lambdas[j] += w[i] * share
        lambdas[i] -= w[i] * pull
        loss += w[i] * part
    return loss
