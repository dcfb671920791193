"""What every system that replies is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from palaver.schema.dialogue import Dialogue


@dataclass(frozen=True)
class Request:
    """What a system is asked: to say the next turn of `dialogue`."""

    dialogue: Dialogue
    speaker: str | None = None
    ocean: tuple[float, ...] | None = None
    knowledge: str | None = None
    key: int | None = None
    """Seeds this reply; without it the dialogue's id and number of turns do."""


@dataclass(frozen=True)
class Reply:
    """What it said."""

    text: str
    logprob: float | None = None
    """ln p of the whole reply under the system itself, its end mark included, where there is one."""
    n_tokens: int | None = None
    """Its tokens, the end mark not counted."""
    skipped: str | None = None
    """Why there is no reply, for a system that was told to go on without one; `text` is empty then."""


Say = Callable[[str], None]
"""Is told the next piece of a reply while it is made."""


@runtime_checkable
class System(Protocol):
    """Anything that replies. Kinds may also have `takes`, `speakers`, `notes` and `settings`, and a method
    `stream(request, say: Say) -> Reply` (`palaver.generation.streaming`)."""

    name: str

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, in their order."""
        ...
