"""One spelling for texts that say the same: what a comparator reads instead of what was typed.

Case, accents, curly quotes, Unicode's other forms of a letter, spaces, characters of no width, the signs of
Markdown and HTML, Cyrillic and Greek letters in Latin words, quotation marks around a whole text and the ways
to write a contraction ("don't", "dont", "do n't") leave no trace. An emoji or emoticon beside words or marks
is left out; a turn that is nothing but emoji becomes their names. Punctuation stays, without the spaces
before it; "!!!" is "!".
"""

from __future__ import annotations

import html
import re
import unicodedata

from palaver.text.words import EMOJI, STRAIGHT

_SIGNS = "\u00a9\u00ae\u2022\u2023\u2043\u2122\u2190-\u21ff\u25a0-\u25ff"  # ©, ®, bullets, ™, arrows, squares
_EMOJI = re.compile(f"(?:{EMOJI}|[\\ufe0f\\u200d\\U0001f3fb-\\U0001f3ff{_SIGNS}])+")
_EMOTICON = re.compile(
    r"(?<![\w:;=])(?:[:;=][-^']?[()\[\]dp/|*o3]+|\(?\^_*\^\)?|<3+|xd+|:[a-z][a-z0-9_+-]+:)(?!\w)"
)
_NO_WIDTH = re.compile("[\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_MARKUP = re.compile(r"[*_~`#>\[<&]|^[-+]\s", re.MULTILINE)
"""A text without these has neither Markdown nor HTML in it."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|b|i|u|s|p|em|strong|br|hr|div|span|ul|ol|li|code|pre|blockquote|h[1-6])(?:\s[^<>]{0,300})?/?>",
    re.IGNORECASE,
)
_LINK = re.compile(r"!?\[([^\[\]]{1,300})\]\([^()\s]{1,2000}\)")
_FENCE = re.compile(r"^[ \t]*```[A-Za-z+-]*[ \t]*$", re.MULTILINE)
_LINE_START = re.compile(r"^[ \t]*(?:(?:#{1,6}|[-*+]|>)[ \t]+)+(?=\S)", re.MULTILINE)
_EMPHASIS = re.compile(
    r"(?<![\w*_~`])(\*{1,3}|_{1,3}|~~|`{1,2})(?=[^\s*_~`])(.{1,500}?)(?<=\S)\1(?![\w*_~`])"
)
_TICK = re.compile(r"(?<=\w)`(?=\w)")
_AGAIN = re.compile(r"([!?])\1+")
_QUOTED = re.compile(r'"([^"]*[^\W_][^"]*)"')
"""A whole text in quotation marks, as some logs keep turns."""
_MARKS = re.compile("[\u0300-\u036f]")
# The dotless i has a dot as a capital.
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―", "-") | {"′": "'", "ı": "i"})
_LOOK_ALIKES = str.maketrans(
    "аекорсухіјѕԁһӏАВЕЅІЈКМНОРСТУХοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aekopcyxijsdhlABESIJKMHOPCTYXoABEZHIKMNOPTYX",
)
"""Cyrillic and Greek letters that cannot be told from Latin ones by eye."""
_ALIKE = "".join(map(chr, _LOOK_ALIKES))
_LATIN_OR_ALIKE = re.compile(rf"\b[A-Za-z{_ALIKE}]+\b")
_MIXED = re.compile(rf"\b(?=[A-Za-z]*[{_ALIKE}])(?=[{_ALIKE}]*[A-Za-z])[A-Za-z{_ALIKE}]+\b")
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
    plain = _normalise(text)
    while _MARKUP.search(plain) and (again := _normalise(plain)) != plain:
        plain = again  # marks within marks
    return plain


def _normalise(text: str) -> str:
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if _MARKUP.search(text):
        text = _without_markup(text)
    if not text.isascii():
        text = _plain_letters(text)
    text = text.lower()
    text = " ".join(text.split())
    without = _EMOTICON.sub(" ", text)
    if _says_something(without):
        text = without
    if _MAY_CONTRACT.search(text):
        for needed, pattern, expanded in _CONTRACTIONS:
            if needed in text:
                text = pattern.sub(expanded, text)
    text = _SPACE_BEFORE.sub(r"\1", _SPACES.sub(" ", text)).strip()
    text = _AGAIN.sub(r"\1", text)
    quoted = _QUOTED.fullmatch(text)
    return quoted[1].strip() if quoted else text


def _says_something(text: str) -> bool:
    return any(character.isalnum() or character in ".,?!" for character in text)


def _without_markup(text: str) -> str:
    """What a page of Markdown or HTML shows of it."""
    text = _LINE_START.sub("", _FENCE.sub("", _TAG.sub(" ", text)))
    return _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", _TICK.sub("'", text)))


def _plain_letters(text: str) -> str:
    """Straight quotes and dashes, letters without accents, no emoji beside anything else."""
    text = _NO_WIDTH.sub("", text).translate(STRAIGHT).translate(_DASHES)
    spoken = _EMOJI.sub(" ", text)
    text = spoken if _says_something(spoken) else _EMOJI.sub(lambda emoji: f" {_names(emoji[0])} ", text)
    parts = unicodedata.normalize("NFKD", text)
    return with_latin_letters(unicodedata.normalize("NFC", _MARKS.sub("", parts)))


def with_latin_letters(text: str) -> str:
    """The text without letters of other alphabets that only look like Latin ones ("dоg" with a Cyrillic o).

    A text is one of these if it has a word of both; then words of nothing but such letters are Latin, too.
    """
    if not _MIXED.search(text):
        return text
    return _LATIN_OR_ALIKE.sub(lambda word: word[0].translate(_LOOK_ALIKES), text)


def _names(emoji: str) -> str:
    """What a row of emoji shows, in words."""
    names = " ".join(unicodedata.name(character, "").lower() for character in emoji)
    words = _SPACES.sub(" ", _NAME_NOISE.sub(" ", names)).strip(" -")
    return words or "emoji"
