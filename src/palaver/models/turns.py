"""What a response model reads of a dialogue: turns and knowledge sentences as token ids, cut to its limits.

The history is the last tokens of the turns joined by `<sep>`, the knowledge the first tokens of a sentence
(Topical-Chat, section 4: W_H and W_K). A language model that was taught a chat format has its marks around
the turns instead (`Frame`). Training and generation both call this, so that a model is asked in the form in
which it was taught.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from palaver.text.vocabulary import SEP, Vocabulary

_CHARACTERS = 40
"""Of a very long text, read first per token that is kept: few tokens are longer."""


class Excerpt(NamedTuple):
    """The part of a text that a model reads."""

    tokens: list[int]
    is_cut: bool
    """Whether there was more than the model can read."""


Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """What a language model has around the parts of its text, as token ids; each pair: before and after."""

    begin: Tokens
    """In front of everything."""
    knowledge: tuple[Tokens, Tokens]
    theirs: tuple[Tokens, Tokens]
    """Around a turn of the one who is answered."""
    own: tuple[Tokens, Tokens]
    """Around a turn of the one who answers; the response follows the first of the two."""


def first_turn_seen(n_before: int, history_turns: int) -> int:
    """Of `n_before` turns before a response, the index of the first that the model sees; 0 turns mean all."""
    return max(0, n_before - history_turns) if history_turns else 0


def encode_turns(vocabulary: Vocabulary, texts: Sequence[str], longest: int | None = None) -> list[list[int]]:
    """Token ids of each turn, at least the last `longest` of them; white space around a turn is not read."""
    stripped = [text.strip() for text in texts]
    if longest is None:
        return vocabulary.encode_batch(stripped)
    ends = [_end(text, longest) for text in stripped]
    encoded = vocabulary.encode_batch(ends)
    for i, (text, end) in enumerate(zip(stripped, ends, strict=True)):
        if len(end) < len(text) and len(encoded[i]) <= longest:
            encoded[i] = vocabulary.encode(text)
    return encoded


def _end(text: str, longest: int) -> str:
    """Whole words from the end of a very long text."""
    room = _CHARACTERS * (longest + 1)
    if len(text) <= room:
        return text
    pieces = text[-room:].split(maxsplit=1)
    return pieces[1] if len(pieces) == 2 else text


def join_turns(turns: Sequence[Sequence[int]], longest: int, frame: Frame | None = None) -> Excerpt:
    """The last `longest` tokens of encoded turns joined by `<sep>`, or with the marks of `frame`."""
    if frame is not None:
        return _join_framed(turns, longest, frame)
    n_tokens = -1
    first = len(turns)
    while first and n_tokens <= longest:  # a long history costs no more than what is kept
        first -= 1
        n_tokens += len(turns[first]) + 1
    tokens: list[int] = []
    for turn in turns[first:]:
        tokens += turn
        tokens.append(SEP)
    return Excerpt(tokens[:-1][-longest:], n_tokens > longest)


def _join_framed(turns: Sequence[Sequence[int]], longest: int, frame: Frame) -> Excerpt:
    """Turns with their marks, the last ones that fit; of the first of them its end, if there is no more room.

    The last turn is the one that is answered; before it the two take turns.
    """
    pieces: list[list[int]] = []
    room = longest
    for distance, turn in enumerate(reversed(turns)):
        before, after = frame.own if distance % 2 else frame.theirs
        left = room - len(before) - len(after)
        if left < min(len(turn), 1):
            return Excerpt(_joined(pieces), True)
        kept = turn[-left:] if left else ()
        pieces.append([*before, *kept, *after])
        room = left - len(kept)
        if len(kept) < len(turn):
            return Excerpt(_joined(pieces), True)
    return Excerpt(_joined(pieces), False)


def _joined(pieces: list[list[int]]) -> list[int]:
    return [token for piece in reversed(pieces) for token in piece]


def encode_knowledge(vocabulary: Vocabulary, sentences: Sequence[str], longest: int) -> list[Excerpt]:
    """The first `longest` tokens of each sentence."""
    encoded = vocabulary.encode_batch([sentence.strip() for sentence in sentences])
    return [Excerpt(tokens[:longest], len(tokens) > longest) for tokens in encoded]
