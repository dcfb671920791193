"""Texts that differ in spelling alone become one text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.text.normalisation import normalise

PLAIN = "i do not know, it is fine!"


@pytest.mark.parametrize(
    "text",
    [
        "I don't know, it's fine!",
        "I DON’T KNOW, IT’S FINE!",
        "i dont know , it is fine !",
        "i do n't know, it s fine!  ",
        "I don't know, it's fine! 😀👍🏽",
        "I don't know, it's fine! :)",
        "I ｄｏｎ't know, it's fine!",
        "I\u200b don't  know,\nit's fine!",
        "I d\u200don't k\u200cnow, \u200eit's fine!\u200e",
        "I don`t know, it′s fine!!!",
        "**I don't know**, *it's* ~~fine~~!",
        "## I don't know,\n- it's _fine_!",
        "> I don't [know](https://example.org/a), `it's` fine!",
        "<p>I don&#39;t know, it&rsquo;s <b>fine</b>!</p>",
        "• I don't know → it's fine!".replace(" →", ",™"),
        "I don't 🙂know, it's 1️⃣ 🇩🇪 👨‍👩‍👧 :smile: fine! (^_^)",
    ],
)
def test_spellings_of_one_sentence_are_one(text: str) -> None:
    assert normalise(text) == PLAIN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We're, they're and you'll; were, well", "we are, they are and you will; were, well"),
        ("can't cannot CANT won't", "can not can not can not will not"),
        ("let's go, shouldn't we", "let us go, should not we"),
        ("John's dog wants its bone", "john's dog wants its bone"),
        ("the drunk font I want", "the drunk font i want"),
        ("Café — naïve", "cafe - naive"),
        ("👍", "thumbs up"),
        (":)", ":)"),
        ("? 😀", "?"),
        ('"Yes, of course."', "yes, of course."),
        ("“Yes” and “no”", '"yes" and "no"'),
        ('""', '""'),
        ("**✅ Done** <B>👍</B>", "done"),
        ("**👍**", "thumbs up"),
        ("2 * 3 * 4, snake_case, 5 > 4 & 3 < 4", "2 * 3 * 4, snake_case, 5 > 4 & 3 < 4"),
        ("*sighs* <unk> [sic] a `b", "sighs <unk> [sic] a `b"),
        ("**" * 20_000, "**" * 20_000),
        ("Неllо, it's а niсe dаy", "hello, it is a nice day"),  # Cyrillic letters among Latin ones
        ("Hellο Βοb", "hello bob"),  # Greek ones
        ("The Russian words он and она mean he and she", "the russian words он and она mean he and she"),
        ("TNFα and Windoшs", "tnfα and windoшs"),  # no look-alikes
        ("", ""),
    ],
)
def test_what_becomes_of(text: str, expected: str) -> None:
    assert normalise(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet="*_~`#>[](!)- \n&;lt<b>/:^3'\"sa"))
def test_what_is_normalised_stays_so(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec="latin-1")))
def test_case_and_spaces_at_the_end_leave_no_trace(text: str) -> None:
    assert normalise(text.lower() + "  ") == normalise(text)
