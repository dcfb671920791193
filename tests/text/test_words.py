"""The tokeniser, the way back, and the sentence splitter."""

from __future__ import annotations

import string
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.text import words as module
from palaver.text.words import count_words, join_words, sentences, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know.", "i do n't know ."),
        ("I'm sure she'll say they've won, he'd agree; it's ours.", None),
        ("can't won't cannot", "ca n't wo n't cannot"),
        ("shouldn't've y'all're", "should n't 've y'all 're"),
        ("CAN’T “quote” ‘one’", "ca n't \" quote \" ' one '"),
        ("$1,000.50 at 10:30, 3.5% of 90s", "$ 1,000.50 at 10:30 , 3.5 % of 90s"),
        ("Wait... what?! Well… no..", "wait ... what ? ! well ... no .."),
        ("well-known, o'clock, rock-and-roll", "well-known , o'clock , rock-and-roll"),
        ("the U.S. at 5 p.m. or e.g this", "the u.s. at 5 p.m. or e.g this"),
        ("yes.I see 5.No", "yes . i see 5 . no"),
        ("a -- b - c — d", "a -- b - c — d"),
        ("dogs' tails", "dogs ' tails"),
        ("do n't i 'm", "do n't i 'm"),  # text that was split before
        ("snake_case __x__", "snake _ case _ _ x _ _"),
        ("😀😀ok👩‍👩‍👧🇫🇷🇩🇪1️⃣👍🏽", "😀 😀 ok 👩‍👩‍👧 🇫🇷 🇩🇪 1️⃣ 👍🏽"),
        ("naïve Ünïcode नमस्ते हिन्दी", "naïve ünïcode नमस्ते हिन्दी"),
        ("co\u00adoperate zero\u200bwidth", "cooperate zerowidth"),
        (" \n\t ", ""),
        ("", ""),
    ],
)
def test_words(text: str, expected: str | None) -> None:
    if expected is None:
        expected = "i 'm sure she 'll say they 've won , he 'd agree ; it 's ours ."
    assert words(text) == expected.split()
    assert count_words(text) == len(expected.split())


anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ENGLISH = (
    "I don't can't won't we'll it's you're cannot o'clock well-known U.S. p.m. e.g. 1,000.5 10:30 ... -- - , "
    ". ! ? : ; ( ) [ ] \" ' $ 5 % # 1 and/or dogs' 'em a b the cat said Hello I'd s m re x.y n't 's .. 'd n …"
)
english = st.lists(st.sampled_from(ENGLISH.split()), max_size=20)


@settings(max_examples=300, deadline=None)
@given(st.one_of(english.map(" ".join), english.map("".join), st.text(string.printable, max_size=40)))
def test_joined_words_are_the_same_words(text: str) -> None:
    found = words(text)
    assert words(join_words(found)) == found
    assert words(" ".join(found)) == found


@settings(max_examples=200, deadline=None)
@given(anything)
def test_no_letter_or_digit_is_lost(text: str) -> None:
    plain = unicodedata.normalize("NFC", text.lower()).replace("ʼ", "")  # counts as an apostrophe
    assert [c for c in "".join(words(text)) if c.isalnum()] == [c for c in plain if c.isalnum()]
    assert all(word and not any(c.isspace() for c in word) for word in words(text))


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_the_ascii_pattern_is_the_general_one(text: str) -> None:
    text = text.lower()
    assert module._ASCII.findall(text) == module._ANY.findall(text)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("i 'm fine , thanks .", "I'm fine, thanks."),
        ("do you ? i do n't !", "Do you? I don't!"),
        ('he said " hello there " , and left', 'He said "hello there", and left'),
        ("the dogs ' tails", "The dogs' tails"),
        ("get ' em", "Get 'em"),
        ("' one ' and ' two '", "'One' and 'two'"),
        ("it costs $ 5 ( or 6 % ) , and / or more ...", "It costs $5 (or 6%), and/or more..."),
        ("5 dogs . cats", "5 dogs. Cats"),
        ("what <unk> is it ?", "What <unk> is it?"),
        ("ßa", "ßa"),
        ("", ""),
    ],
)
def test_join_words(tokens: str, text: str) -> None:
    assert join_words(tokens.split()) == text


def test_join_words_of_tokens_that_are_no_words() -> None:
    assert join_words(["", "a", "", "b"]) == "A b"


@pytest.mark.parametrize(
    "parts",
    [
        ["Mr. Smith met Dr. J. K. Jones.", "They talked."],
        ["He joined the U.S. Army in 1990.", "She stayed in the U.S.", "The war ended."],
        ["Pi is 3.14 or so.", "Yes!", "Really?!", "No."],
        ['"Is it true?" he asked.', '"It is."', "She smiled."],
        ["Well... maybe.", "Well...", "Maybe."],
        ["how are you?", "i am fine.", "and you?"],
        ["See no. 5 and fig. 3.", "I said no.", "Bob left."],
        ["So do I.", "Then we left."],
        ["He was born c. 1500 (approx. five miles away).", "He died."],
        ["Acme Inc. sells things, etc. and more.", "They do."],
        ["今日は。", "元気？", "はい"],
        ["no end"],
        [],
    ],
)
def test_sentences(parts: list[str]) -> None:
    joint = "" if parts and "。" in parts[0] else " "
    assert sentences(joint.join(parts)) == parts


def test_an_empty_line_parts_sentences_and_a_line_break_does_not() -> None:
    assert sentences("A title\n\nSome text\nthat goes on. End") == [
        "A title",
        "Some text that goes on.",
        "End",
    ]


@settings(max_examples=200, deadline=None)
@given(st.one_of(anything, english.map(" ".join)))
def test_sentences_keep_every_character(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(s == " ".join(s.split()) != "" for s in sentences(text))


def test_time_grows_with_the_length_alone() -> None:
    plain = "I don't think it's 5.30 yet, but we'll see -- she said so. " * 4000
    hard = [
        "." * 200_000 + "x",
        "a. " * 70_000,
        "a.a." * 50_000,
        "'" * 200_000,
        "n't" * 70_000,
        "\n " * 99_999,
    ]
    for text in [plain, plain.replace("'", "’"), *hard]:
        began = time.perf_counter()
        words(text), sentences(text)
        seconds = time.perf_counter() - began
        assert seconds < 5 * len(text) / 1e6 + 0.5, text[:20]  # 10 MB/s when nothing else runs
