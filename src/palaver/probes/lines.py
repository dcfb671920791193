"""Lines as they really come: what can be parsed as one English sentence, and what is refused before.

A sentence all in capitals is parsed in ordinary case and comes back in capitals; emoji at the end are set
aside and put back.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from palaver.probes.refusals import NotApplicable
from palaver.probes.words import word_set

MAX_WORDS = 60
_ENGLISH = word_set(
    """
    a an the and or but of to in on at by for with from is are was were be been has have had do does
    did not no it its he she they we you i his her their our my this that these those there will
    would can could as who which than then into over said says about after before while some any all
    if when
    """
)
_OTHERS = word_set(
    """
    der das und ist nicht ein eine einen dem den mit auf für sich auch wird von zu wir ich sie er es
    im le la les des une est pas que qui dans pour sur avec nous vous je il elle au du sont et ce
    cette un el los las una es y por para con del se su al lo como más pero muy está son il della
    che di non per una gli sono nel questo è dei delle più het een van niet zijn wij maar ook voor
    naar aan de op dat o os uma não em do da dos com para está são och det att som inte på jag är
    ett av til og ikke en af i w na nie jest się z do to
    """
)
"""Small words of other languages in Latin letters."""
_FOREIGN = _OTHERS - _ENGLISH - word_set("do to i he me am so or on en de la le el o y z w al es die den")
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
