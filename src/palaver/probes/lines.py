"""Lines as they really come: what can be parsed as one English sentence, and what is refused before.

A sentence all in capitals is parsed in ordinary case and comes back in capitals; emoji at the end are set
aside and put back.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from palaver.probes.refusals import NotApplicable
from palaver.probes.words import LISTS, word_set

MAX_WORDS = 60
_ENGLISH = LISTS["english"]
_FOREIGN = (
    LISTS["foreign"] - _ENGLISH - word_set("do to i he me am so or on en de la le el o y z w al es die den")
)
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\ufe0f\u200d\U0001f1e6-\U0001f1ff]"
)
_AT_END = re.compile(rf"(?:\s*{_EMOJI.pattern})+\s*$")
_APART = re.compile(r"\s+(n't|'s|'re|'ve|'ll|'d|'m|[,.;:?!%])(?=\W|$)")


@dataclass(frozen=True)
class Line:
    """A line made ready for the parser, and how to give a result the line's own dress."""

    text: str
    capitals: bool = False
    ending: str = ""

    def dress(self, output: str) -> str:
        return (output.upper() if self.capitals else output) + self.ending


def prepare(text: str, *, max_words: int = MAX_WORDS) -> Line:
    """The line as one tidy sentence; raises `NotApplicable` where it cannot be one."""
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    if not text:
        raise NotApplicable("empty")
    if len(text.split()) > max_words:
        raise NotApplicable("too-long")
    emoji = _AT_END.search(text)
    ending = ""
    if emoji:
        text, ending = text[: emoji.start()], " " + emoji[0].strip()
    if not text:
        raise NotApplicable("no-verb")
    if _EMOJI.search(text) or any(unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Cn") for c in text):
        raise NotApplicable("unusual-characters")
    text = text.translate(_STRAIGHT)
    text = _APART.sub(r"\1", text)
    if not is_english(text):
        raise NotApplicable("not-english")
    capitals = text.isupper() and len(text.split()) > 2
    if capitals:
        text = text.lower()
        text = re.sub(r"\bi\b", "I", text[:1].upper() + text[1:])
    return Line(text, capitals, ending)


_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})


def is_english(text: str) -> bool:
    """By script and small words. A sentence without any of them (Lilly loves Imogen.) has the benefit."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return False
    if sum("LATIN" not in unicodedata.name(c, "") for c in letters) > 0.2 * len(letters):
        return False
    words = re.findall(r"[^\W\d_]+", text.lower())
    english = sum(w in _ENGLISH for w in words)
    foreign = sum(w in _FOREIGN for w in words)
    accents = sum(not c.isascii() for c in letters)
    if english == 0 and len(words) > 2 and (foreign or accents):
        return False
    return not foreign > english
