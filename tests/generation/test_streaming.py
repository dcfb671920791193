"""Pieces of replies: joined they are the reply, whatever the tokens are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from palaver.generation.streaming import Pieces, TokenPieces, stream_reply
from palaver.generation.system import Conditioned
from palaver.schema import Dialogue, Reply, Request, Say


@given(st.text(st.characters(exclude_characters="\ufffd", exclude_categories=("Cs",))))
def test_pieces_joined_are_the_text(text: str) -> None:
    """Tokens are single bytes here, so characters come in parts."""
    told: list[str] = []
    pieces = TokenPieces(lambda tokens: bytes(tokens).decode(errors="replace"), told.append)
    for byte in text.encode():
        pieces.hear(byte)
    pieces.finish(text.strip())
    assert "".join(told) == text.strip()
    assert all(told)


def test_white_space_waits_for_the_next_word() -> None:
    told: list[str] = []
    pieces = Pieces(told.append)
    for text in (" Well", " Well ", " Well \n", " Well \nyes", " Well \nyes "):
        pieces.grow(text)
    pieces.finish("Well \nyes")
    assert told == ["Well", " \nyes"]


def test_what_was_told_is_not_taken_back() -> None:
    told: list[str] = []
    pieces = Pieces(told.append)
    pieces.grow("do n't")
    pieces.grow("don't go")
    assert told == ["do n't"]


class _Slow:
    name = "slow"

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply("as one") for _ in requests]


class _Streaming(_Slow):
    def stream(self, request: Request, say: Say) -> Reply:
        say(f"{request.speaker} ")
        say("speaks")
        return Reply(f"{request.speaker} speaks", -2.0)


def test_any_system_can_be_heard(talk: Callable[..., Dialogue]) -> None:
    request = Request(talk("hi"))
    told: list[str] = []
    assert stream_reply(_Slow(), request, told.append) == Reply("as one")
    joey = Conditioned(_Streaming(), speaker="Joey", ocean=None)
    assert stream_reply(joey, request, told.append) == Reply("Joey speaks", -2.0)
    assert (
        stream_reply(Conditioned(_Slow(), speaker="Joey", ocean=None), request, told.append).text == "as one"
    )
    assert told == ["as one", "Joey ", "speaks", "as one"]
