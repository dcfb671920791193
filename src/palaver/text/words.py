"""Words and sentences: one tokeniser for everything that counts or compares words.

Contractions are split as in the Penn Treebank ("don't" -> do, n't; "I'm" -> i, 'm) and everything is
lower-cased. Hyphens and apostrophes inside a word, and points, commas and colons inside a number, belong to
it ("well-known", "o'clock", "1,000.5", "10:30"); so do the points of "u.s." and "p.m.". An ellipsis, a
dash of several hyphens and an emoji are one token each; any other mark is a token of its own. Curly quotes
count as straight ones. `join_words` goes back to readable text. There are no models and no downloads.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLITICS = _set("n't 's 'm 're 've 'd 'll")
# Accents and vowel signs with a code point of their own are no \w to Python but do belong to words.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0963\u0966-\u0df3\u0e00-\u0e4e\u0e80-\u0eff\u0f18-\u0f39\u0f71-\u0fbc\u1000-\u1049"
    r"\u1780-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u302a-\u302f\u3099\u309a\ufe20-\ufe2f"
)
_PICTURE = r"[\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff][\ufe0f\U0001f3fb-\U0001f3ff]*"
EMOJI = r"[#*0-9]\ufe0f?\u20e3|[\U0001f1e6-\U0001f1ff]{2}|" + _PICTURE + r"(?:\u200d" + _PICTURE + r")*"
"""A regular expression of one emoji."""


def _pattern(letter: str, digit_or_letter: str, before: str = "") -> re.Pattern[str]:
    """The tokeniser for an alphabet. ASCII has its own, which is four times as fast; a test compares them."""
    char = digit_or_letter
    end = f"(?!{char})"
    clitic = f"'(?:s|m|re|ve|d|ll){end}"
    inner = f"(?:-|(?!{clitic})'|(?<=[0-9])[.,:](?=[0-9]))"
    return re.compile(
        f"{before}n't{end}|{clitic}"
        f"|(?:{letter}\\.)+{letter}{end}(?:\\.(?!\\.))?"  # u.s., p.m, e.g.
        f"|{char}+(?:{inner}{char}+)*"
        r"|\.{2,}|-{2,}|\S"
    )


_ASCII = _pattern("[a-z]", "[a-z0-9]")
_ANY = _pattern(r"[^\W\d_]", rf"(?:[^\W_]|[{_MARKS}])", before=rf"{EMOJI}|\u2026|")
_SPLIT_NOT = re.compile(rf"(?<=[^\W_])n't(?!(?!n't)(?:[^\W_]|[{_MARKS}]))")
STRAIGHT = str.maketrans(
    {**dict.fromkeys("‘’‛ʼ´", "'"), **dict.fromkeys("“”„‟«»", '"'), "…": "..."}
    | dict.fromkeys("\u00ad\u200b\u2060\ufeff", "")  # characters of no width, left behind by editors
)


def words(text: str) -> list[str]:
    """The words and marks of `text`, lower-cased, in order."""
    text = text.lower()
    pattern = _ASCII
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(STRAIGHT)
        pattern = _ANY
    if "n't" in text:
        text = _SPLIT_NOT.sub(" n't", text)
    return pattern.findall(text)


def count_words(text: str) -> int:
    """`len(words(text))`: what perplexity per word divides by."""
    return len(words(text))


_LEFT = _set(". , ; : ! ? ... .. ) ] } % ° … /") | _CLITICS  # stand close to what comes before
_RIGHT = _set("( [ { $ £ € # @ ¿ ¡ /")  # stand close to what comes after
_QUOTES = _set("\" '")  # stand close to what they enclose
_FULL_STOPS = _set(". ! ?")
_NO_PLAIN_WORDS = _LEFT | _RIGHT | _QUOTES | {""}


def join_words(tokens: Sequence[str]) -> str:
    """Readable text from words: "i 'm fine , thanks ." -> "I'm fine, thanks.".

    Tokens are put close to each other only where `words` would part them again, so that
    `words(join_words(words(text))) == words(text)`.
    """
    pieces: list[str] = []
    run: tuple[str, ...] = ()  # the last two tokens, as far as no space parts them
    close, start = False, True
    quotes_left: dict[str, int] = {}
    open_quotes: set[str] = set()
    for token in tokens:
        if token not in _NO_PLAIN_WORDS and not close:  # most of them
            run = (token,)
            if start or token == "i":
                start = start and not token[0].isalnum()
                token = _capitalised(token)
            pieces.append(token)
            continue
        if not token:
            continue
        left, right = token in _LEFT, token in _RIGHT
        if token in _QUOTES:
            quotes_left[token] = quotes_left.get(token, tokens.count(token)) - 1
            shortened = not quotes_left[token] and run and run[-1].endswith(("s", "in"))  # dogs', goin'
            left = token in open_quotes or bool(shortened)
            right = not left
            open_quotes ^= {token}
        shown = _capitalised(token) if start or token == "i" else token
        if run and (close or left) and _is_parted(run, token):
            run = (run[-1], token)
            pieces[-1] += shown
        else:
            run = (token,)
            pieces.append(shown)
        start = token in _FULL_STOPS or (start and not token[0].isalnum())
        close = right
    return " ".join(pieces)


@functools.lru_cache(maxsize=1 << 17)
def _is_parted(run: tuple[str, ...], token: str) -> bool:
    """Whether `words` finds these tokens when nothing stands between them."""
    return words("".join(run) + token) == [*run, token]


@functools.lru_cache(maxsize=1 << 17)
def _capitalised(token: str) -> str:
    """With a capital, unless lower case would not give the same letter back (ß)."""
    capital = token[0].upper()
    return capital + token[1:] if capital.lower() == token[0] else token


# After the first a full stop never ends a sentence, after the second not before a number; after the third it
# may, if a sentence plainly begins.
_TITLES = _set(
    "mr mrs ms mx dr prof rev hon st sgt cpl lt col gen maj capt cmdr adm gov sen rep pres messrs vs approx "
    "ca cf e.g i.e viz"
)
_BEFORE_NUMBERS = _set("no nos vol vols fig figs ft pp op ch sec art")
_SHORTENED = _set(
    "etc inc ltd co corp jr sr esq bros dept univ est al a.m p.m jan feb apr jun jul aug sep sept oct nov "
    "dec tue tues thu thur thurs ave blvd rd hr hrs yr yrs lb lbs oz mt ph.d"
)
_STARTERS = _set(
    "the a an this that these those he she it they we you i his her its their our my in on at as after "
    "before during since when while if although but and so however also there then what who how why"
)
_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s|$)|[。！？][”’」』）]*|\n\s*\n")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]+\Z")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NEXT_WORD = re.compile(r"\s*([\"'“‘«(\[]*)([^\W_]*)")


def sentences(text: str) -> list[str]:
    """The sentences of `text`, in order, with white space put right; nothing else is changed."""
    return [part for part in (" ".join(s.split()) for s in _raw_sentences(text)) if part]


def _raw_sentences(text: str) -> Iterator[str]:
    begin = 0
    for stop in _STOP.finditer(text):
        if _ends_sentence(text, begin, stop):
            yield text[begin : stop.end()]
            begin = stop.end()
    yield text[begin:]


def _ends_sentence(text: str, begin: int, stop: re.Match[str]) -> bool:
    mark = stop.group().rstrip("\"'”’»)]")
    if not mark.strip() or mark[0] in "。！？":
        return True  # an empty line, or a full stop that needs no space after it
    quoted = stop.group() != mark
    opening, word = _NEXT_WORD.match(text, stop.end()).groups()  # type: ignore[union-attr]  # always matches
    lower = word[:1].islower()
    if lower and (quoted or (mark != "." and set(mark) <= {".", "…"})):
        return False  # “Really?” he said; well... yes
    if mark != ".":
        return True
    last = _LAST_WORD.search(text, max(begin, stop.start() - 40), stop.start())
    before = last.group() if last else ""
    bare = before.lower()
    if bare in _TITLES or (bare in _BEFORE_NUMBERS and word[:1].isdigit()):
        return False
    if len(before) == 1 and before.isalpha() and before != "I":
        return False  # an initial, or born c. 1500
    if bare in _SHORTENED or _DOTTED.fullmatch(before):
        return not lower and (bool(opening) or word.lower() in _STARTERS)
    return True
