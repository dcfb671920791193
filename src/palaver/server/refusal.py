"""What is not permitted, and texts that no database takes."""

from __future__ import annotations

from palaver.errors import Sentence, UserError


class Refusal(UserError):
    """A request that the study's rules do not permit; `status` is what HTTP calls it."""

    def __init__(self, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.status = status


def storable(text: str, what: str, longest: int, *, shortest: int = 0) -> str:
    """Text that every database takes: no NUL, no half characters, not too long."""
    if not shortest <= len(text) <= longest:
        limits = {"shortest": shortest, "longest": longest, "n": len(text)}
        raise Refusal(
            Sentence(
                "{what}: expected {shortest} to {longest:,} characters, found {n:,}", what=what, **limits
            ),
            422,
        )
    return clean(text, what)


def clean(text: str, what: str = Sentence("the text")) -> str:
    """Text as every database takes it: no NUL, no half of a surrogate pair."""
    if "\0" in text:
        raise Refusal(Sentence("{what} contains a NUL character, which cannot be stored", what=what), 422)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(Sentence("{what} is not valid Unicode", what=what), 422) from None
    return text
