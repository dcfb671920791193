"""A log as a system: what was said at that point is said again.

The point is found by the dialogue's id and the number of turns so far; for a dialogue the log does not know,
by the very same turns before it. A file of responses is a log of what one system replied to each context.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from palaver.errors import DataError, UserError, nearest
from palaver.files import check_readable, sha256_of
from palaver.generation.options import ReplayOptions
from palaver.generation.system import Notes, check_takes
from palaver.readers import read_dialogues, read_responses
from palaver.readers.responses import is_responses
from palaver.registry import Named
from palaver.schema import Dialogue, Reply, Request, Turn
from palaver.schema.response import SYSTEM


class ReplaySystem(Named):
    """Replies out of a log. A dialogue with the id of an earlier one is found by its turns only."""

    def __init__(
        self,
        name: str,
        dialogues: Iterable[Dialogue],
        *,
        missing: Literal["error", "skip"] = "error",
        source: str = "",
    ) -> None:
        self.name = name
        self.takes: frozenset[str] = frozenset()
        self.notes = Notes()
        self.settings: dict[str, Any] = {"kind": "replay", "source": source, "missing": missing}
        self._skips = missing == "skip"
        self._by_id: dict[str, tuple[str, ...]] = {}
        self._by_history: dict[bytes, str] = {}
        repeated = 0
        for dialogue in dialogues:
            texts = tuple(turn.text for turn in dialogue.turns)
            repeated += dialogue.id in self._by_id
            self._by_id.setdefault(dialogue.id, texts)
            for history, text in zip(_histories(dialogue.turns), texts, strict=False):
                self._by_history.setdefault(history, text)
        if repeated:
            self.notes.add(
                "repeated", f"{name}: {repeated} dialogues of the log have the id of an earlier one"
            )

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Reply:
        check_takes(self, request)
        dialogue = request.dialogue
        place = len(dialogue.turns)
        texts = self._by_id.get(dialogue.id)
        if texts is not None:
            text = texts[place] if place < len(texts) else None
            why = f"dialogue {dialogue.id!r} ends after {len(texts)} turns in the log"
        else:
            *_, last = _histories(dialogue.turns)
            text = self._by_history.get(last)
            why = f"the log has no dialogue {dialogue.id!r}, and none with these {place} turns"
        if text is not None:
            return Reply(text)
        if self._skips:
            return Reply("", skipped=why)
        raise UserError(f"{self.name}: {why}", 'missing = "skip" leaves such replies out')


def _histories(turns: Sequence[Turn]) -> Iterator[bytes]:
    """A digest of the turns before each place, the one after the last included; each from the one before."""
    so_far = b""
    yield so_far
    for turn in turns:
        so_far = hashlib.blake2b(so_far + turn.text.strip().encode(), digest_size=16).digest()
        yield so_far


def open_replay(name: str, options: ReplayOptions, folder: Path) -> ReplaySystem:
    """The system that `systems.toml` describes."""
    path = folder / options.path
    check_readable(path)
    source = sha256_of(path)
    if is_responses(path):
        whose, dialogues = _replies_in(path, name, options.system)
        return ReplaySystem(name, dialogues, missing=options.missing, source=f"{source}|{whose}")
    if options.system is not None:
        raise UserError(f"{name}: `system` says whose responses are meant, but {path} holds dialogues")
    return ReplaySystem(name, read_dialogues(path), missing=options.missing, source=source)


def _replies_in(path: Path, name: str, wanted: str | None) -> tuple[str, list[Dialogue]]:
    """Whose responses of a file are meant, and each of them as the last turn of its context."""
    responses = list(read_responses(path, skip_repeats=True))
    systems = list(dict.fromkeys(response.judged_system for response in responses))
    whose = wanted or (systems[0] if len(systems) == 1 else name)
    if whose not in systems:
        raise DataError(
            f"{path} holds no responses of {whose!r}{nearest(whose, systems)}",
            f"it has those of {', '.join(systems)}; say whose are meant: system = {systems[0]!r}",
        )
    dialogues = []
    for response in responses:
        if response.judged_system == whose and response.response is not None:
            turns = (*response.context, Turn(speaker=SYSTEM, text=response.response))
            dialogues.append(Dialogue(id=response.id, turns=turns))
    return whose, dialogues
