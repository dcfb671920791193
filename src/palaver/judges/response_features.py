"""What a reference-free judge of single responses looks at."""

from __future__ import annotations

import re
import unicodedata

_BEFORE = re.compile(r"\s+([.,!?;:%)\]}])")
_SUFFIX = re.compile(r"\s+(n't|'(?:s|m|re|ve|ll|d|t))\b")
_AFTER = re.compile(r"([(\[{$#])\s+")
_SPACE = re.compile(r"\s+")


def normalise_text(text: str) -> str:
    """Lower case, ASCII where there is a like letter, one space between words, none before marks.

    A text that was split into tokens ("it 's fine .") and one that was not come to the same form.
    """
    plain = text.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode().lower()
    plain = _AFTER.sub(r"\1", _SUFFIX.sub(r"\1", _BEFORE.sub(r"\1", plain)))
    return _SPACE.sub(" ", plain).strip()
