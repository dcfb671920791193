"""Whether a text looks English: by the share of its words that are function words, and by its script.

A guard, not a recogniser of languages: it is made to warn where a tool that knows only English is given
something else. A text of a few words is not judged.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path

from palaver.text.normalisation import with_latin_letters

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_LISTING = re.compile(r"[,;]|^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_LISTED = 2
"""So many words between two commas are one of a list."""
_FEWEST_WORDS = 6
"""Fewer words say nothing about a language."""
_LOWEST_SHARE = 0.15
"""English conversation has more function words than this; judged only on texts of `_LONG` words."""
_LONG = 20
_LATIN_SHARE = 0.5


def looks_english(text: str) -> bool:
    """False where most letters are of another script, or another language's function words prevail."""
    if not text.isascii():
        text = with_latin_letters(unicodedata.normalize("NFKC", text))
        letters = [letter for letter in text if letter.isalpha()]
        if sum(map(_is_latin, letters)) < _LATIN_SHARE * len(letters):
            return False
    words = _words_of_sentences(text.lower().replace("’", "'"))
    if len(words) < _FEWEST_WORDS:
        return True
    counts = {language: sum(map(known.__contains__, words)) for language, known in _languages().items()}
    english = counts.pop("English")
    if max(counts.values()) > english:
        return False
    return len(words) < _LONG or english >= _LOWEST_SHARE * len(words)


def _words_of_sentences(text: str) -> list[str]:
    """The words; of a text that mostly lists names or things only those beside the list."""
    parts = [_WORD.findall(part) for part in _LISTING.split(text)]
    words = [word for part in parts for word in part]
    unlisted = [word for part in parts if len(part) > _LISTED for word in part]
    return unlisted if 2 * len(unlisted) < len(words) else words


@cache
def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")


@cache
def _languages() -> dict[str, frozenset[str]]:
    text = Path(__file__).with_name("function_words.toml").read_text(encoding="utf-8")
    return {language: frozenset(words.split()) for language, words in tomllib.loads(text).items()}
