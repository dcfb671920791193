"""One spelling for texts that say the same: what a comparator reads instead of what was typed.

Case, accents, curly quotes, Unicode's other forms of a letter, spaces and the ways to write a contraction
("don't", "dont", "do n't") leave no trace. An emoji or emoticon beside words is left out; a turn that is
nothing but emoji becomes their names. Punctuation stays, without the spaces before it.
"""

from __future__ import annotations

import re
import unicodedata

from palaver.text.words import EMOJI, STRAIGHT

_EMOJI = re.compile(f"(?:{EMOJI}|[\\ufe0f\\u200d\\U0001f3fb-\\U0001f3ff])+")
_EMOTICON = re.compile(r"(?<![\w:;=])(?:[:;=][-^']?[()\[\]dp/|*o3]+|\^_*\^|<3+|xd+)(?!\w)")
_MARKS = re.compile("[\u0300-\u036f]")
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―", "-") | {"ı": "i"})  # the dotless i has a dot as a capital
_NAME_NOISE = re.compile(
    r"\b(?:emoji|modifier|fitzpatrick|type|variation|selector|joiner|sign|symbol|face)\b|-?\d+"
)

_VERBS = "do|does|did|is|are|was|were|have|has|had|could|would|should|must|might|need"
_SUBJECTS = (
    "it|he|she|that|this|there|here|what|who|where|when|how|why|everything|everyone|everybody|"
    "something|someone|somebody|nothing|nobody"
)
_CONTRACTIONS = [
    (needed, re.compile(pattern), expanded)
    for needed, pattern, expanded in (
        ("t", rf"\b({_VERBS}) ?n ?'? ?t\b", r"\1 not"),
        ("can", r"\bcan(?: ?n)? ?'? ?t\b|\bcannot\b", "can not"),
        ("wo", r"\bwo ?n ?'? ?t\b", "will not"),
        ("ain", r"\bain ?'? ?t\b", "is not"),
        ("n't", r"\b(\w+)n't\b", r"\1 not"),
        ("m", r"\bi ?'? ?m\b", "i am"),
        ("re", r"\b(you|they) ?'? ?re\b", r"\1 are"),
        ("re", r"\bwe(?: ?' ?| )re\b", "we are"),
        ("ve", r"\b(i|you|we|they|could|would|should|might|must) ?'? ?ve\b", r"\1 have"),
        ("ll", r"\b(you|they) ?'? ?ll\b", r"\1 will"),
        ("'", r"\b(\w+) ?' ?ll\b", r"\1 will"),
        ("'", r"\b(i|you|he|she|it|we|they|who|that|there) ?' ?d\b", r"\1 would"),
        ("let", r"\blet(?: ?' ?| )s\b", "let us"),
        ("s", rf"\b({_SUBJECTS})(?: ?' ?| )s\b", r"\1 is"),
        ("s", r"\b(he|she|that|what|there|where|who|how)s\b", r"\1 is"),
        ("'re", r"\b(\w+) ?'re\b", r"\1 are"),
        ("'ve", r"\b(\w+) ?'ve\b", r"\1 have"),
        ("gonna", r"\bgonna\b", "going to"),
        ("wanna", r"\bwanna\b", "want to"),
    )
]
"""What a text must hold for the pattern to fit, which is looked for first because it is faster; the rest."""
_MAY_CONTRACT = re.compile(r"'|t\b|m\b|re\b|ve\b|ll\b|s\b|nna\b")
_SPACE_BEFORE = re.compile(r"\s+([.,!?;:])")
_SPACES = re.compile(r"\s+")


def normalise(text: str) -> str:
    """The text in lower case and in one spelling; equal for texts that differ in spelling alone."""
    if not text.isascii():
        text = _plain_letters(text)
    text = text.lower()
    without = _EMOTICON.sub(" ", text)
    if any(map(str.isalnum, without)):
        text = without
    if _MAY_CONTRACT.search(text):
        for needed, pattern, expanded in _CONTRACTIONS:
            if needed in text:
                text = pattern.sub(expanded, text)
    return _SPACE_BEFORE.sub(r"\1", _SPACES.sub(" ", text)).strip()


def _plain_letters(text: str) -> str:
    """Straight quotes and dashes, letters without accents, no emoji beside words."""
    text = text.translate(STRAIGHT).translate(_DASHES)
    spoken = _EMOJI.sub(" ", text)
    if any(map(str.isalnum, spoken)):
        text = spoken
    else:
        text = _EMOJI.sub(lambda emoji: f" {_names(emoji[0])} ", text)
    parts = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", _MARKS.sub("", parts))


def _names(emoji: str) -> str:
    """What a row of emoji shows, in words."""
    names = " ".join(unicodedata.name(character, "").lower() for character in emoji)
    words = _SPACES.sub(" ", _NAME_NOISE.sub(" ", names)).strip(" -")
    return words or "emoji"
