"""Names from the data, made fit to show."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.reports import names

anything = st.text(st.characters(), max_size=80)


@given(anything, st.integers(5, 40))
@settings(max_examples=50, deadline=None)
def test_short_is_short_and_can_be_encoded(name: str, width: int) -> None:
    short = names.shorten(name, width)
    assert 0 < len(short) <= max(width, len("(blank)"))
    short.encode()
    assert "\n" not in short


@given(st.lists(anything, max_size=12, unique=True), st.integers(8, 20))
@settings(max_examples=50, deadline=None)
def test_short_names_differ(many: list[str], width: int) -> None:
    short = names.short_names(many, width)
    assert len(set(short.values())) == len(short) == len(many)


def test_both_ends_are_kept() -> None:
    assert names.shorten("transformer-base-finetuned-v2", 14) == "transform…d-v2"
    assert names.shorten("TGen", 14) == "TGen"


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    short = names.short_names(["a" * 30 + "x" + "b" * 30, "a" * 30 + "y" + "b" * 30], 12)
    assert len(set(short.values())) == 2
    assert all(len(s) <= 12 for s in short.values())


def test_what_cannot_be_shown_is_replaced() -> None:
    assert names.clean("a\x00b\x1b[31m\u202ec\ud800\n d") == "a\ufffdb\ufffd[31m\ufffdc\ufffd d"
    assert names.clean(" \n ") == "(blank)"
    assert names.clean("نظام 系统 é") == "نظام 系统 é"
