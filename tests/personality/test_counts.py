"""Counting against a slow reading of the same rules, one character after the other."""

from __future__ import annotations

import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError
from palaver.personality import counts as module
from palaver.personality.counts import _CHARACTERS, KNOWN, MARKS, SURFACE, Counter, folded, sum_rows
from palaver.personality.lexicon import open_lexicon, parse_lexicon

LEXICON = parse_lexicon(
    """
[joy]
words = "happy happi* été* naïve *ful"
[negation]
words = "don't no *n't"
[both]
includes = ["joy", "negation"]
[common]
each = "the happy don't"
""",
    "small",
)
NORMS = {"length": {"the": 3.0, "cat": 0.5, "été": 2.0}, "age": {"cat": 4.0}}


def kind_of(char: str) -> str:
    """word, space or the name of the mark."""
    for mark, characters in _CHARACTERS.items():
        if char in characters:
            return mark
    if ord(char) >= 0x10000:
        return "other_mark"
    category = unicodedata.category(char)[0]
    return "word" if category in "LNM" else "space" if category in "ZC" else "other_mark"


def lower(char: str) -> str:
    small = char.lower()
    return "'" if kind_of(char) == "apostrophe" else small if len(small) == 1 else char


def by_hand(text: str, counter: Counter) -> dict[str, float]:
    """What a row of counts should hold."""
    kinds = [kind_of(c) for c in text]
    found = dict.fromkeys(counter.columns, 0.0)
    sentences: list[tuple[list[str], set[str]]] = [([], set())]
    stopped = False
    i = 0
    while i < len(text):
        kind = kinds[i]
        if kind == "word":
            if stopped:
                sentences.append(([], set()))
                stopped = False
            end = i + 1
            while end < len(text) and (
                kinds[end] == "word"
                or (kinds[end] == "apostrophe" and end + 1 < len(text) and kinds[end + 1] == "word")
            ):
                end += 1
            word = "".join(map(lower, text[i:end]))
            sentences[-1][0].append(word)
            letters = sum(k == "word" for k in kinds[i:end])
            found["apostrophe"] += sum(k == "apostrophe" for k in kinds[i:end])
            found["letters"] += letters
            found["long_words"] += letters > 6
            i = end
            continue
        if kind != "space":
            found[kind] += 1
            inside = kind == "period" and 0 < i < len(text) - 1 and kinds[i - 1] == kinds[i + 1] == "word"
            if kind in ("period", "question_mark", "exclamation_mark", "ellipsis") and not inside:
                stopped = True
                sentences[-1][1].add(kind)
            if text[i : i + 2] == ".." and (i == 0 or text[i - 1] != "."):
                found["ellipsis"] += 1
        i += 1
    for words, ends in sentences:
        if words:
            found["sentences"] += 1
            found["questions"] += "question_mark" in ends
            found["exclamations"] += "exclamation_mark" in ends and "question_mark" not in ends
        for place, word in enumerate(words):
            found["words"] += 1
            found["repeats"] += word in words[:place]
            categories = [counter.lexicon.categories[c] for c in counter.lexicon.match(word)]
            found[KNOWN] += bool(categories)
            for category in categories:
                found[category] += 1
            for norm, values in counter.norms.items():
                if word in values:
                    found[f"sum:{norm}"] += values[word]
                    found[f"count:{norm}"] += 1
    return found


WORDS = ["happy", "Happy", "HAPPINESS", "don't", "Don’t", "the", "The", "cat", "été", "ÉTÉ", "naïve", "awful"]
WORDS += ["no", "3.5", "u.s.", "can't've", "o'clock", "rock'n'roll", "'tis", "中文", "ß", "İ", "ǅ", "e\u0301"]
PIECES = [*WORDS, *".?!,;:-—'’\"(]…。_@😀\n\t\0\u200b\ud800", "..", "...", " ", " ", " ", " ", " "]
pieces = st.sampled_from(PIECES)
texts = st.one_of(st.lists(pieces, max_size=14).map("".join), st.text(max_size=12))


@settings(max_examples=300, deadline=None)
@given(st.lists(texts, max_size=6))
def test_counts_are_those_by_hand(utterances: list[str]) -> None:
    counter = Counter(LEXICON, NORMS)
    found = counter.complete(counter.count(utterances).toarray())
    assert found.shape == (max(len(utterances), 0), len(counter.columns))
    for text, row in zip(utterances, found, strict=True):
        expected = by_hand(text.replace("\0", " "), counter)
        assert dict(zip(counter.columns, row.tolist(), strict=True)) == pytest.approx(expected)


def test_one_by_hand_is_right() -> None:
    row = by_hand("Don't... I'm so happy! The 3.5 cats? the the", Counter(LEXICON, NORMS))
    assert row["words"] == 10
    assert row["sentences"] == 4
    assert row["questions"] == row["exclamations"] == row["ellipsis"] == 1
    assert row["repeats"] == 1
    assert row["period"] == 4
    assert row["both"] == 2


def test_words_seen_before_and_tables_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SLOTS", 64)
    monkeypatch.setattr(module, "_BLOCK", 200)
    monkeypatch.setattr(module, "_GUESS", 0)
    counter = Counter(LEXICON)
    utterances = [f"w{i} happy w{i % 7} don't. The end{i}!" for i in range(9000)]
    once = counter.complete(counter.count(utterances).toarray())
    again = counter.complete(counter.count(utterances).toarray())
    np.testing.assert_array_equal(once, again)
    for i in (0, 1, 4095, 4096, 8999):
        assert dict(zip(counter.columns, once[i], strict=True)) == by_hand(utterances[i], counter)
    monkeypatch.setattr(module, "_MOST_TYPES", 100)  # more words than are kept
    np.testing.assert_array_equal(counter.complete(counter.count(utterances).toarray()), once)


def test_rows_add_up() -> None:
    counter = Counter(open_lexicon())
    utterances = ["I love you.", "", "You don't know me, do you?", "Okay!"] * 5
    found = counter.count(utterances)
    samples = np.random.default_rng(0).integers(0, 20, (7, 300))
    expected = np.stack([found.toarray()[rows].sum(axis=0) for rows in samples])
    np.testing.assert_allclose(sum_rows(found, samples), expected)
    joined = counter.complete(counter.count([" \n".join(utterances)]).toarray())
    totals = counter.complete(found.toarray().sum(axis=0))
    words = counter.columns.index("words")
    assert joined[0, words] == totals[0, words] == 50
    assert sum_rows(found, np.empty((0, 5), int)).shape == (0, len(counter.columns))


def test_columns_and_empty_rows() -> None:
    counter = Counter(LEXICON, NORMS)
    assert counter.columns[: len(SURFACE) + len(MARKS)] == SURFACE + MARKS
    assert counter.columns[-4:] == ("sum:length", "count:length", "sum:age", "count:age")
    found = counter.count(["", "  \n", "a"])
    assert np.diff(found.indptr).tolist()[:2] == [0, 0]
    assert counter.count([]).shape == (0, len(counter.columns))


def test_common_words_keep_rows_short_until_completed() -> None:
    counter = Counter(LEXICON)
    found = counter.count(["the happy"]).toarray()[0]
    place = {name: i for i, name in enumerate(counter.columns)}
    assert found[place["joy"]] == 0
    assert counter.complete(found)[0, place["joy"]] == 1
    assert found[place["joy"]] == 0, "what was given stays as it was"


def test_what_is_no_text() -> None:
    with pytest.raises(DataError, match="utterance 1: expected text, found NoneType"):
        Counter(LEXICON).count(["a", None])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Counter(LEXICON).count("one string")


def test_folded_lower_case() -> None:
    assert folded("DON’T") == "don't"
    assert folded("ÀÉÎ") == "àéî"
    assert folded("İ") == "İ"  # its lower case is two characters


def test_it_travels_to_other_processes() -> None:
    counter = Counter(LEXICON, NORMS)
    counter.count(["happy cat"])
    copy = pickle.loads(pickle.dumps(counter))
    np.testing.assert_array_equal(copy.count(["happy cat"]).toarray(), counter.count(["happy cat"]).toarray())
