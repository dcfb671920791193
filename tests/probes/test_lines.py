from __future__ import annotations

import pytest

from palaver.probes.lines import is_english, prepare
from palaver.probes.refusals import NotApplicable


def reason(text: str) -> str:
    with pytest.raises(NotApplicable) as refused:
        prepare(text)
    return refused.value.reason


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \t\u00a0", "empty"),
        ("a " * 61, "too-long"),
        ("A man 😀 is singing", "unusual-characters"),
        ("A man\x00is singing", "unusual-characters"),
        ("😀", "no-verb"),
        ("12 + 34 = 46", "not-english"),
        ("Der Mann schneidet eine Kartoffel.", "not-english"),
        ("Les enfants jouent dans le jardin.", "not-english"),
        ("El hombre está cortando una patata.", "not-english"),
        ("Il gatto non è nella casa.", "not-english"),
        ("Мужчина режет картофель.", "not-english"),
        ("一个男人正在切土豆。", "not-english"),
    ],
)
def test_refused_before_parsing(text: str, why: str) -> None:
    assert reason(text) == why


@pytest.mark.parametrize(
    "text",
    ["Lilly loves Imogen.", "A man is singing", "Go!", "I met him at the café in Málaga.", "Dogs bark."],
)
def test_english(text: str) -> None:
    assert is_english(text)


def test_white_space_and_split_clitics_are_mended() -> None:
    assert prepare("  He  does n't   know , she said .").text == "He doesn't know, she said."


def test_curly_quotes_become_straight() -> None:
    assert prepare("“It’s over,” he said.").text == '"It\'s over," he said.'


def test_capitals_and_emoji_are_put_back() -> None:
    line = prepare("A MAN IS SINGING 😀👍")
    assert line.text == "A man is singing"
    assert line.dress("A man is not singing") == "A MAN IS NOT SINGING 😀👍"


def test_a_short_line_in_capitals_is_left_alone() -> None:
    assert not prepare("NASA SAYS").capitals
