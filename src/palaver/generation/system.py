"""What every system that replies is asked and answers, and the checks all kinds share.

A system reads a dialogue, and perhaps who shall speak (a name, or OCEAN scores after Xing & Fernández 2018)
and a sentence of knowledge (Topical-Chat, section 4). Its reply depends on the request alone, not on those
around it: what is drawn at random is seeded by the dialogue's id and its number of turns.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from palaver.corpora.personalities import TRAITS
from palaver.errors import UserError, nearest
from palaver.schema import Dialogue, Reply, Request, System

CONDITIONS = ("speaker", "ocean", "knowledge")
"""What a request may hold besides the dialogue; `takes` of a system says which of them it understands."""

_TAKERS = {
    "speaker": "checkpoints trained on speakers (such as default-speaker)",
    "ocean": "checkpoints trained on personalities (such as default-personality)",
    "knowledge": "checkpoints trained with knowledge (such as default-knowledge)",
}
_CALLED = {"speaker": "speaker", "ocean": "personality (OCEAN scores)", "knowledge": "knowledge sentence"}


class Notes:
    """Things worth saying once, however often they happen."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def add(self, topic: str, text: str) -> None:
        self._said.setdefault(topic, text)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._said.values()))

    def __len__(self) -> int:
        return len(self._said)


def cut_note(name: str, longest: int, *, can_grow: bool = True) -> str:
    """What is said when a reply had no end yet where it had to stop."""
    raised = "; a larger max_length lets it go on" if can_grow else ""
    return f"{name} stops a reply after {longest} tokens, whole or not{raised}"


def takes(system: System) -> frozenset[str]:
    """Which conditions the system understands; a system that does not say is asked with any."""
    return getattr(system, "takes", frozenset(CONDITIONS))


def notes(system: System) -> tuple[str, ...]:
    """What the system has to say about its replies so far."""
    return tuple(getattr(system, "notes", ()))


def settings(system: System) -> dict[str, Any]:
    """Everything the replies depend on besides the requests: two systems with equal settings reply alike."""
    return getattr(system, "settings", {"name": system.name})


def chunk_size(system: System) -> int:
    """How many requests to hand over at once: enough to work well, few enough to lose little when stopped."""
    return getattr(system, "chunk", 64)


def check_ocean(scores: Sequence[float]) -> tuple[float, ...]:
    """Five numbers from 1 to 7, or an error that names everything that is wrong with them."""
    wrong = [] if len(scores) == len(TRAITS) else [f"expected five numbers, found {len(scores)}"]
    for place, score in enumerate(scores):
        trait = f"number {place + 1} ({TRAITS[place]})" if place < len(TRAITS) else f"number {place + 1}"
        if not _is_number(score) or not 1 <= score <= 7:
            wrong.append(f"{trait}: expected a number from 1 to 7, found {score!r}")
    if wrong:
        raise UserError("these are not OCEAN scores:", _ocean_hint(), wrong)
    return tuple(float(score) for score in scores)


def parse_ocean(text: str) -> tuple[float, ...]:
    """`6.5,3.5,3.5,3.5,3.5` as five numbers."""
    scores: list[Any] = []
    for part in text.replace(";", ",").split(","):
        try:
            scores.append(float(part))
        except ValueError:
            scores.append(part.strip())
    return check_ocean(scores)


def _ocean_hint() -> str:
    return f"five numbers from 1 to 7: {', '.join(TRAITS)}; for example 6.5,3.5,3.5,3.5,3.5"


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def check_speaker(name: str, speakers: Sequence[str], system: str) -> int:
    """The place of `name` among the speakers a system knows."""
    if name not in speakers:
        raise UserError(
            f"{system} does not know the speaker {name!r}{nearest(name, speakers)}",
            f"it knows {', '.join(speakers)}" if speakers else "it knows no speakers by name",
        )
    return list(speakers).index(name)


def check_takes(system: System, request: Request) -> None:
    """A condition that a system cannot heed is an error, never quietly left out."""
    for condition in CONDITIONS:
        if getattr(request, condition) is not None and condition not in takes(system):
            raise UserError(
                f"{system.name} takes no {_CALLED[condition]}",
                takers_of(condition),
            )


def takers_of(condition: str) -> str:
    """Which systems understand a condition, as a hint."""
    return (
        f"those take one: {_TAKERS[condition]}, huggingface or openai systems whose system_prompt "
        f"has {{{condition}}}, and Python functions with the parameter {condition}"
    )


def check_context(dialogue: Dialogue) -> None:
    """There must be something to reply to."""
    if not is_answerable(dialogue):
        raise UserError(
            f"there is nothing to reply to in dialogue {dialogue.id!r}: "
            + ("it has no turns" if not dialogue.turns else "its turns are empty"),
            "give at least one turn with text",
        )


def is_answerable(dialogue: Dialogue) -> bool:
    return any(turn.text.strip() for turn in dialogue.turns)


def stable_key(*parts: object) -> int:
    """64 bits that depend on the parts alone: not on the process, the machine or Python's hash seed."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        text = str(part).encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)  # ("ab", "c") is not ("a", "bc")
    return int.from_bytes(digest.digest(), "big")


def request_key(request: Request) -> int:
    """What seeds the reply to a request."""
    if request.key is not None:
        return request.key
    return stable_key(request.dialogue.id, len(request.dialogue.turns))


class Conditioned:
    """A system that speaks as one speaker or personality, unless a request says otherwise."""

    def __init__(self, system: System, *, speaker: str | None, ocean: tuple[float, ...] | None) -> None:
        self._system = system
        self._speaker = speaker
        self._ocean = ocean
        self.name = system.name

    @property
    def settings(self) -> dict[str, Any]:
        return {**settings(self._system), "speaker": self._speaker, "ocean": self._ocean}

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return self._system.reply([self._filled(request) for request in requests])

    def _filled(self, request: Request) -> Request:
        if request.speaker is not None or request.ocean is not None:
            return request
        return replace(request, speaker=self._speaker, ocean=self._ocean)

    def __getattr__(self, name: str) -> Any:
        if name == "_system":  # not there yet while a copy is being made
            raise AttributeError(name)
        of_system = getattr(self._system, name)
        if name == "stream":
            return lambda request, say: of_system(self._filled(request), say)
        return of_system
