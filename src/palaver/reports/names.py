"""Names as they may be shown: they come from data, so they can hold anything, at any length."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Bidirectional overrides would turn the text around a name; the rest cannot stand in XML or UTF-8.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def scrub(text: str) -> str:
    """`text` with every character that cannot be shown as text replaced by U+FFFD."""
    return _UNSHOWABLE.sub("\ufffd", text)


def clean(name: str) -> str:
    """`name` on one line, without control characters; never empty."""
    return " ".join(scrub(name).split()) or "(blank)"


def shorten(name: str, width: int) -> str:
    """`name` in at most `width` characters. Start and end are kept: variants tend to differ there."""
    text = clean(name)
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    head = width - 1 - tail
    return f"{text[:head].rstrip()}…{text[len(text) - tail :].lstrip()}"


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Name -> short form, different for different names (`…` and a number where they would be the same)."""
    short: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in short:
            continue
        text, number = shorten(name, width), 1
        while text in taken:
            number += 1
            mark = f"…{number}"
            text = clean(name)[: width - len(mark)] + mark
        taken.add(text)
        short[name] = text
    return short
