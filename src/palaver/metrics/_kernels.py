"""Compiled loops over token numbers. Imported where one is called: numba takes a third of a second to load.

Responses are short, so n-grams are compared position by position. Going backwards through a response, the
length of the common run that starts at (i, j) is one more than that at (i + 1, j + 1). Every order is read
off it, and nothing has to be hashed or sorted. Equal n-grams are interchangeable, so taking any free partner
gives the clipped count.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from palaver.metrics.tokens import Ids, Ints
from palaver.statistics._random_kernels import STEP, mix

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]


SHORT = 7
"""Bytes of a chunk that fit into its hash."""
MARK = np.uint8(0x1E)  # stands behind each chunk; it is white space, so no chunk holds it


@numba.njit(cache=True, nogil=True, inline="always")
def _is_same(text: Bytes, begin: int, end: int, known: Bytes, known_begin: int, known_end: int) -> bool:
    if end - begin != known_end - known_begin:
        return False
    for k in range(end - begin):  # noqa: SIM110  # numba compiles no all()
        if text[begin + k] != known[known_begin + k]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def number_chunks(
    text: Bytes, starts: Ints, n: int, slots: Ids, hashes: Hashes, known: Bytes, ends: Ints
) -> tuple[Ids, Ints, int, Ids, Hashes, Bytes, Ints]:
    """The chunk numbers of each text, and the table with the new chunks in it: open addressing.

    Text i is text[starts[i] : starts[i + 1]]. Chunk c is known[ends[c - 1] : ends[c] - 1], its hash is
    hashes[c]. A slot holds a chunk's number or -1. Most chunks have seven bytes or fewer. Their hash is made
    of these and their number by steps that can be undone, so equal hashes are equal chunks and nothing has to
    be compared; longer ones go on as FNV-1a and never have the hash of a short one.
    """
    is_space = np.zeros(256, dtype=np.bool_)
    is_space[9:14] = True
    is_space[28:33] = True
    ids = np.empty(text.size // 2 + starts.size, dtype=np.int32)
    of_texts = np.zeros(starts.size, dtype=np.int64)
    count = 0
    for i in range(starts.size - 1):
        place, stop = starts[i], starts[i + 1]
        while place < stop:
            begin = place
            code = shift = np.uint64(0)
            while place < stop:
                byte = text[place]
                # a hyphen at the end of a line does not end a chunk
                if is_space[byte] and not (byte == 10 and place > starts[i] and text[place - 1] == 45):
                    break
                if place - begin < SHORT:
                    code |= np.uint64(byte) << shift
                    shift += np.uint64(8)
                else:
                    code = (code ^ np.uint64(byte)) * np.uint64(0x100000001B3)
                place += 1
            end = place
            place += 1
            if end == begin:
                continue
            is_short = end - begin <= SHORT
            kind = np.uint64(end - begin if is_short else 0xFF) << np.uint64(56)
            code = ((code & np.uint64(0x00FFFFFFFFFFFFFF)) | kind) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(32)
            slot = np.int64(code & np.uint64(slots.size - 1))
            chunk = slots[slot]
            while chunk >= 0:
                if hashes[chunk] == code:
                    if is_short:
                        break
                    known_begin = ends[chunk - 1] if chunk else 0
                    if _is_same(text, begin, end, known, known_begin, ends[chunk] - 1):
                        break
                slot = (slot + 1) & (slots.size - 1)
                chunk = slots[slot]
            if chunk < 0:
                chunk = np.int32(n)
                slots[slot] = chunk
                first = ends[n - 1] if n else 0
                if n + 1 > hashes.size:
                    hashes = np.concatenate((hashes, np.empty_like(hashes)))
                    ends = np.concatenate((ends, np.zeros_like(ends)))
                while first + end - begin + 1 > known.size:
                    known = np.concatenate((known, np.empty_like(known)))
                for k in range(end - begin):
                    known[first + k] = text[begin + k]
                known[first + end - begin] = MARK
                ends[n] = first + end - begin + 1
                hashes[n] = code
                n += 1
                if 2 * n > slots.size:
                    slots = np.full(4 * slots.size, -1, dtype=np.int32)
                    for c in range(n):
                        slot = np.int64(hashes[c] & np.uint64(slots.size - 1))
                        while slots[slot] >= 0:
                            slot = (slot + 1) & (slots.size - 1)
                        slots[slot] = c
            ids[count] = chunk
            count += 1
        of_texts[i + 1] = count
    return ids[:count].copy(), of_texts, n, slots, hashes, known, ends


@numba.njit(cache=True, inline="always")
def _mix(key: Any, token: int) -> Any:
    """The key of a text that goes on with `token`: splitmix64's finaliser after each token."""
    return mix((key ^ np.uint64(token + 1)) * STEP)


@numba.njit(cache=True, nogil=True)
def ngram_keys(ids: Ids, starts: Ints, n: int, bits: int, part: int, n_parts: int) -> tuple[Ints, Ids]:
    """The keys of the n-grams that belong to `part`, and the text of each.

    With `bits` a key is the n-gram's numbers side by side, without it is a hash.
    """
    size = ids.size // n_parts + ids.size // 4 + 16
    keys = np.empty(min(size, ids.size) if n_parts > 1 else ids.size, dtype=np.int64)
    owners = np.empty(keys.size, dtype=np.int32)
    count = 0
    for i in range(starts.size - 1):
        for place in range(starts[i], starts[i + 1] - n + 1):
            key = np.uint64(0)
            for k in range(n):
                if bits:
                    key = (key << np.uint64(bits)) | np.uint64(ids[place + k])
                else:
                    key = _mix(key, ids[place + k])
            if n_parts > 1 and np.int64(_mix(key, 0) >> np.uint64(1)) % n_parts != part:
                continue
            if count == keys.size:
                keys = np.concatenate((keys, np.empty_like(keys)))
                owners = np.concatenate((owners, np.empty_like(owners)))
            keys[count] = np.int64(key)
            owners[count] = i
            count += 1
    return keys[:count].copy(), owners[:count].copy()


@numba.njit(cache=True, nogil=True)
def key_counts(keys: Ints) -> Ints:
    """How often each different key occurs, in an order that means nothing.

    A table with open addressing, which is doubled when half of it is used: most keys occur again and again,
    so it stays small beside them, and sorting them takes half as long again.
    """
    known = np.empty(1 << 12, dtype=np.int64)
    counts = np.zeros(known.size, dtype=np.int64)
    n_known = 0
    for key in keys:
        if 2 * n_known == known.size:
            old, old_counts = known, counts
            known = np.empty(2 * old.size, dtype=np.int64)
            counts = np.zeros(known.size, dtype=np.int64)
            for i in range(old.size):
                if old_counts[i]:
                    place = _place(old[i], counts.size)
                    while counts[place]:
                        place = (place + 1) & (counts.size - 1)
                    known[place], counts[place] = old[i], old_counts[i]
        place = _place(key, counts.size)
        while counts[place] and known[place] != key:
            place = (place + 1) & (counts.size - 1)
        if not counts[place]:
            known[place] = key
            n_known += 1
        counts[place] += 1
    return counts[counts > 0]


@numba.njit(cache=True, nogil=True, inline="always")
def _place(key: int, size: int) -> np.int64:
    """Where a key is looked for first among `size` places, a power of two."""
    return np.int64(_mix(np.uint64(key), 0) & np.uint64(size - 1))


@numba.njit(cache=True, nogil=True)
def text_keys(ids: Ids, starts: Ints) -> Ints:
    """A hash of each text."""
    keys = np.empty(starts.size - 1, dtype=np.int64)
    for i in range(starts.size - 1):
        key = np.uint64(0)
        for place in range(starts[i], starts[i + 1]):
            key = _mix(key, ids[place])
        keys[i] = np.int64(key)
    return keys


@numba.njit(cache=True, nogil=True)
def expand(chunks: Ids, starts: Ints, token_ids: Ids, token_starts: Ints) -> tuple[Ids, Ints]:
    """The tokens of texts of chunks, given those of each chunk."""
    n_texts = starts.size - 1
    of_texts = np.zeros(n_texts + 1, dtype=np.int64)
    for text in range(n_texts):
        length = 0
        for place in range(starts[text], starts[text + 1]):
            chunk = chunks[place]
            length += token_starts[chunk + 1] - token_starts[chunk]
        of_texts[text + 1] = of_texts[text] + length
    ids = np.empty(of_texts[n_texts], dtype=np.int32)
    at = 0
    for place in range(chunks.size):
        chunk = chunks[place]
        for token in range(token_starts[chunk], token_starts[chunk + 1]):
            ids[at] = token_ids[token]
            at += 1
    return ids, of_texts


@numba.njit(cache=True, nogil=True, inline="always")
def _match(a: Ids, b: Ids, order: int, run: Ids, used: Ids, stamp: int, matched: Ids) -> None:
    """Set matched[k, i] where the (k+1)-gram of `a` at i has a partner of its own in `b`.

    `used[k, j]` is `stamp` where the (k+1)-gram of `b` at j is taken.
    """
    m = b.size
    for j in range(m + 1):
        run[j] = 0
    for i in range(a.size - 1, -1, -1):
        token = a[i]
        left = order  # orders without a partner yet
        for j in range(m):
            if b[j] != token:
                run[j] = 0
                continue
            length = run[j + 1] + 1
            run[j] = length
            if left == 0:
                continue
            for k in range(min(length, order)):
                if used[k, j] != stamp and used[k, m] != -i - 1:
                    used[k, j] = stamp
                    used[k, m] = -i - 1  # this order of this i has its partner
                    matched[k, i] = 1
                    left -= 1


@numba.njit(cache=True, nogil=True)
def count_matches(
    ids: Ids, starts: Ints, other_ids: Ids, other_starts: Ints, owner_starts: Ints, order: int, union: bool
) -> Ints:
    """Clipped n-gram matches of orders 1 to `order` with the texts owner_starts[i]:owner_starts[i + 1].

    With `union` one row a response: an n-gram counts as often as the text that has most of it allows (BLEU).
    Otherwise one row for each of the other texts.
    """
    n = starts.size - 1
    counts = np.zeros((n if union else other_starts.size - 1, order), dtype=np.int64)
    longest = longest_other = 0
    for i in range(n):
        longest = max(longest, starts[i + 1] - starts[i])
    for r in range(other_starts.size - 1):
        longest_other = max(longest_other, other_starts[r + 1] - other_starts[r])
    run = np.zeros(longest_other + 1, dtype=np.int32)
    used = np.zeros((order, longest_other + 1), dtype=np.int32)
    matched = np.zeros((order, longest), dtype=np.int32)
    stamp = 0
    for i in range(n):
        a = ids[starts[i] : starts[i + 1]]
        for r in range(owner_starts[i], owner_starts[i + 1]):
            if not union or r == owner_starts[i]:
                matched[:, : a.size] = 0
            b = other_ids[other_starts[r] : other_starts[r + 1]]
            stamp += 1
            used[:, b.size] = 0
            _match(a, b, order, run, used, stamp, matched)
            if not union or r == owner_starts[i + 1] - 1:
                row = i if union else r
                for k in range(order):
                    total = 0
                    for place in range(a.size):
                        total += matched[k, place]
                    counts[row, k] = total
    return counts


@numba.njit(cache=True, nogil=True)
def longest_runs(ids: Ids, starts: Ints, other_ids: Ids, other_starts: Ints) -> Ids:
    """For each token of each text, how long the longest run from it on is that the other text i holds."""
    out = np.zeros(ids.size, dtype=np.int32)
    for i in range(starts.size - 1):
        b = other_ids[other_starts[i] : other_starts[i + 1]]
        run = np.zeros(b.size + 1, dtype=np.int32)
        for place in range(starts[i + 1] - 1, starts[i] - 1, -1):
            token = ids[place]
            longest = 0
            for j in range(b.size):
                run[j] = run[j + 1] + 1 if b[j] == token else 0
                longest = max(longest, run[j])
            out[place] = longest
    return out


@numba.njit(cache=True, nogil=True)
def copied_tokens(runs: Ids, starts: Ints, shortest: int) -> Ints:
    """How many tokens of each text lie in a run of `shortest` or more, or in one that is the whole text."""
    out = np.zeros(starts.size - 1, dtype=np.int64)
    for i in range(starts.size - 1):
        end = 0
        needed = min(shortest, starts[i + 1] - starts[i])
        for place in range(starts[i], starts[i + 1]):
            if runs[place] >= needed:
                end = max(end, place + runs[place])
            if place < end:
                out[i] += 1
    return out


@numba.njit(cache=True, nogil=True)
def common_subsequences(
    ids: Ids, starts: Ints, other_ids: Ids, other_starts: Ints, owner_starts: Ints
) -> Ints:
    """The length of the longest common subsequence with each of the other texts."""
    lengths = np.zeros(other_starts.size - 1, dtype=np.int64)
    longest = 0
    for r in range(other_starts.size - 1):
        longest = max(longest, other_starts[r + 1] - other_starts[r])
    row = np.zeros(longest + 1, dtype=np.int32)
    for i in range(starts.size - 1):
        a = ids[starts[i] : starts[i + 1]]
        for r in range(owner_starts[i], owner_starts[i + 1]):
            b = other_ids[other_starts[r] : other_starts[r + 1]]
            row[: b.size + 1] = 0
            for token in a:
                before = 0  # row[j - 1] of the row above
                here = 0
                for j in range(b.size):
                    above = row[j + 1]
                    here = before + 1 if b[j] == token else max(above, here)
                    row[j + 1] = here
                    before = above
            lengths[r] = row[b.size]
    return lengths


@numba.njit(cache=True, nogil=True)
def distinct_within(ids: Ids, starts: Ints, order: int) -> Ints:
    """How many distinct n-grams of orders 1 to `order` each text has."""
    counts = np.zeros((starts.size - 1, order), dtype=np.int64)
    for i in range(starts.size - 1):
        a = ids[starts[i] : starts[i + 1]]
        for k in range(order):
            counts[i, k] = max(0, a.size - k)
        run = np.zeros(a.size + 1, dtype=np.int32)  # run[j]: common run from (place, j) on
        for place in range(a.size - 1, -1, -1):
            token = a[place]
            longest = 0
            for j in range(place + 1, a.size):
                run[j] = run[j + 1] + 1 if a[j] == token else 0
                longest = max(longest, run[j])
            # an n-gram that comes again later is not counted here
            for k in range(min(longest, order)):
                counts[i, k] -= 1
            run[place] = 0
    return counts
