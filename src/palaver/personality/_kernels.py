"""Compiled inner loops of counting. Imported only where one is called: numba takes 0.3 s to load."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from palaver.statistics._random_kernels import mix

# Kinds of characters. From FIRST_MARK on a kind is also the number, less FIRST_MARK, of the column for that
# mark in the order of `counts.MARKS`.
SPACE, WORD, SEPARATOR, FIRST_MARK = 0, 1, 2, 3
PERIOD, APOSTROPHE, ELLIPSIS, QUESTION, EXCLAMATION = 3, 4, 5, 6, 7
# What a question and an exclamation count as, behind the marks.
ASKED, EXCLAIMED = 12, 13
# Statistics that every utterance has, in the order of `counts.SURFACE`.
WORDS, LETTERS, SENTENCES, LONG, REPEATS = range(5)
_LONGER_THAN = 6
_FULL_STOP = 46

_PRIME = np.uint64(0x100000001B3)
_SEED = np.uint64(0xCBF29CE484222325)


@numba.njit(cache=True, inline="always")
def _finish(z: Any) -> Any:
    """The finaliser of splitmix64: FNV alone leaves the low bits, which pick the slot, poorly mixed."""
    return mix(z) | np.uint64(1)  # nought marks an empty slot


@numba.njit(cache=True, inline="always")
def _code_point(data: Any, i: int) -> Any:
    """The character at `i` of valid UTF-8 and how many bytes it has."""
    b = np.int64(data[i])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return ((b & 0x1F) << 6) | (np.int64(data[i + 1]) & 0x3F), 2
    if b < 0xF0:
        low = ((np.int64(data[i + 1]) & 0x3F) << 6) | (np.int64(data[i + 2]) & 0x3F)
        return ((b & 0x0F) << 12) | low, 3
    return 0x10000, 4  # beyond the first plane everything is an "other" mark


@numba.njit(cache=True)
def enlarged(keys: Any, ids: Any) -> Any:
    """The table of words with four times the slots."""
    size = 4 * len(keys)
    mask = np.uint64(size - 1)
    new_keys = np.zeros(size, np.uint64)
    new_ids = np.zeros(size, np.int32)
    for slot in range(len(keys)):
        if keys[slot]:
            at = keys[slot] & mask
            while new_keys[at]:
                at = (at + np.uint64(1)) & mask
            new_keys[at] = keys[slot]
            new_ids[at] = ids[slot]
    return new_keys, new_ids


@numba.njit(cache=True)
def tokenise(
    data: Any,  # (bytes,) uint8: utterances in UTF-8, a nought after each
    n_utterances: int,
    kinds: Any,  # (65537,) uint8
    lower: Any,  # (65537,) uint32
    keys: Any,  # (slots,) uint64: hash of the word in this slot; the table of words seen so far
    ids: Any,  # (slots,) int32
    n_types: int,
) -> Any:
    """One pass over the bytes: numbers of words and marks, surface statistics, where new words stand.

    New words go into the table. When it is half full the pass ends there and the first value returned is
    False: the table must be enlarged and the pass begun again. (Growing it in the loop makes the loop twice
    as slow.) Words are told apart by a 64-bit hash alone: among a million of them two are mistaken for each
    other with a chance of 3 in 10**8.
    """
    tokens = np.empty(2 * len(data), np.int32)  # at most two a byte: a mark, and the end of a question
    ends = np.empty(n_utterances, np.int64)
    surface = np.empty((n_utterances, 5), np.float32)
    most_types = len(keys) // 2
    last = np.full(most_types, -1, np.int32)  # the sentence a word was last seen in
    new_at = np.empty(most_types - n_types, np.int64)
    new_size = np.empty(most_types - n_types, np.int64)
    whole = True
    n_new = 0
    n_tokens = 0
    mask = np.uint64(len(keys) - 1)
    utterance = 0
    sentence = np.int32(0)
    in_sentence = 0  # words of this sentence so far
    stop = False  # a full stop came since the last word
    asked = False
    exclaimed = False
    after_word = False
    n_words = all_letters = n_sentences = n_long = n_repeats = 0  # of this utterance
    i = 0
    while i < len(data):
        point, size = _code_point(data, i)
        kind = kinds[point]
        if kind == SPACE:
            after_word = False
            i += size
            continue
        if kind >= FIRST_MARK:
            tokens[n_tokens] = kind - FIRST_MARK
            n_tokens += 1
            if kind == PERIOD:
                following, _ = _code_point(data, i + size)
                if point == _FULL_STOP and following == _FULL_STOP:  # "..." is three and one ellipsis
                    while data[i + 1] == _FULL_STOP:
                        tokens[n_tokens] = PERIOD - FIRST_MARK
                        n_tokens += 1
                        i += 1
                    tokens[n_tokens] = ELLIPSIS - FIRST_MARK
                    n_tokens += 1
                    stop = True
                elif not (after_word and kinds[following] == WORD):  # 3.5, u.s.
                    stop = True
            elif kind == QUESTION:
                stop = asked = True
            elif kind == EXCLAMATION:
                stop = exclaimed = True
            elif kind == ELLIPSIS:
                stop = True
            after_word = False
            i += size
            continue
        if stop or kind == SEPARATOR:
            if in_sentence:
                n_sentences += 1
                if asked:
                    tokens[n_tokens] = ASKED
                    n_tokens += 1
                elif exclaimed:
                    tokens[n_tokens] = EXCLAIMED
                    n_tokens += 1
                sentence += np.int32(1)
                in_sentence = 0
            stop = asked = exclaimed = False
        if kind == SEPARATOR:
            row = surface[utterance]
            row[WORDS] = n_words
            row[LETTERS] = all_letters
            row[SENTENCES] = n_sentences
            row[LONG] = n_long
            row[REPEATS] = n_repeats
            n_words = all_letters = n_sentences = n_long = n_repeats = 0
            ends[utterance] = n_tokens
            utterance += 1
            after_word = False
            i += size
            continue
        begin = i
        letters = 0
        value = _SEED
        while True:
            value = (value ^ np.uint64(lower[point])) * _PRIME
            letters += 1
            i += size
            point, size = _code_point(data, i)  # there is always a separator to come
            kind = kinds[point]
            if kind == WORD:
                continue
            if kind == APOSTROPHE:  # inside a word it belongs to it
                following, width = _code_point(data, i + size)
                if kinds[following] == WORD:
                    tokens[n_tokens] = APOSTROPHE - FIRST_MARK
                    n_tokens += 1
                    value = (value ^ np.uint64(39)) * _PRIME
                    i += size
                    point, size = following, width
                    continue
            break
        value = _finish(value)
        at = value & mask
        while keys[at] and keys[at] != value:
            at = (at + np.uint64(1)) & mask
        if keys[at]:
            word = ids[at]
        else:
            if n_types == most_types:
                whole = False
                break
            word = np.int32(n_types)
            keys[at] = value
            ids[at] = word
            new_at[n_new] = begin
            new_size[n_new] = i - begin
            n_types += 1
            n_new += 1
        tokens[n_tokens] = word
        n_tokens += 1
        n_words += 1
        in_sentence += 1
        all_letters += letters
        n_long += letters > _LONGER_THAN
        n_repeats += last[word] == sentence
        last[word] = sentence
        after_word = True
    return whole, tokens[:n_tokens], ends, surface, new_at[:n_new], new_size[:n_new]


@numba.njit(cache=True)
def accumulate(
    tokens: Any,  # (tokens,) int32
    ends: Any,  # (n,) int64: where the tokens of an utterance end
    surface: Any,  # (n, s) float32
    starts: Any,  # (types + 1,) int64: where the columns of a token begin
    columns: Any,  # int32: columns a token adds to
    values: Any,  # float32: and what it adds
    place: Any,  # (columns,) int64: where a column was last written; less than `filled`
    first_row: int,
    pointers: Any,  # (n + 1,) int64, written: where rows end
    indices: Any,  # (capacity,) int32, written
    data: Any,  # (capacity,) float32, written
) -> int:
    """Rows of a sparse matrix: the surface statistics, then what the tokens of an utterance add up to.

    `pointers[first_row]` says how far `indices` and `data` are filled. Returns the row that no longer fits,
    or n.
    """
    n, n_surface = surface.shape
    filled = pointers[first_row]
    first = ends[first_row - 1] if first_row else 0
    for r in range(first_row, n):
        if filled + len(place) > len(indices):
            return r
        row = filled
        for c in range(n_surface):
            if surface[r, c]:
                indices[filled] = c
                data[filled] = surface[r, c]
                filled += 1
        for t in range(first, ends[r]):
            token = tokens[t]
            for k in range(starts[token], starts[token + 1]):
                c = columns[k]
                if place[c] >= row:
                    data[place[c]] += values[k]
                else:
                    place[c] = filled
                    indices[filled] = c
                    data[filled] = values[k]
                    filled += 1
        first = ends[r]
        pointers[r + 1] = filled
    return n


@numba.njit(cache=True, nogil=True)
def sum_rows(pointers: Any, indices: Any, data: Any, samples: Any, out: Any) -> int:
    """out[k] = the sum of the rows samples[k]; samples (k, size) int64, out (k, columns) float64.

    The rows of a large pool lie anywhere in memory. Each is touched a while before it is used, so that many
    of them are on their way into the cache at once; what is read there is returned, or it would not be read.
    """
    ahead = 64
    line = 16  # numbers in a line of the cache
    unused = 0
    for k in range(samples.shape[0]):
        row = out[k]
        sample = samples[k]
        for begin in range(0, len(sample), ahead):
            some = sample[begin : begin + ahead]
            for r in some:
                unused += pointers[r]
            for r in some:
                for j in range(pointers[r], pointers[r + 1], line):
                    unused += indices[j] + int(data[j])
            for r in some:
                for j in range(pointers[r], pointers[r + 1]):
                    row[indices[j]] += data[j]
    return unused
