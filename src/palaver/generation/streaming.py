"""Replies that are told piece by piece while they are made.

A system that can do so has a method `stream(request, say)`: it calls `say` with each piece of text as soon as
it is there, and returns the reply, whose text is the pieces joined. Any other system's reply is one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palaver.schema import Reply, Request, Say, System

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What a tokenizer writes for the first bytes of a character whose others have not come yet."""


def stream_reply(system: System, request: Request, say: Say) -> Reply:
    """The reply of any system; `say` hears it in pieces, or whole where the system cannot stream."""
    stream: Callable[[Request, Say], Reply] | None = getattr(system, "stream", None)
    if stream is not None:
        return stream(request, say)
    (reply,) = system.reply([request])
    if reply.text:
        say(reply.text)
    return reply


class Pieces:
    """Tells what is new in a text that grows. White space waits for the word after it."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._told = ""

    def grow(self, text: str) -> None:
        """`text` is all there is so far."""
        whole = text.strip()
        if not whole.endswith(_UNFINISHED):
            self.finish(whole)

    def finish(self, text: str) -> None:
        """`text` is the reply. What was told is never taken back: a tokenizer may join words differently."""
        if text.startswith(self._told) and len(text) > len(self._told):
            self._say(text[len(self._told) :])
            self._told = text


class TokenPieces:
    """Hears tokens one by one, and tells their text as soon as its characters are whole."""

    def __init__(self, decode: Callable[[Sequence[int]], str], say: Say) -> None:
        self._decode = decode
        self._pieces = Pieces(say)
        self._tokens: list[int] = []

    def hear(self, token: int) -> None:
        self._tokens.append(token)
        self._pieces.grow(self._decode(self._tokens))

    def finish(self, text: str) -> None:
        self._pieces.finish(text)
