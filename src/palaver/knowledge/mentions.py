"""Where entities are named in a text, found in one pass (Aho & Corasick 1975).

The automaton reads words and marks, not letters, so a name begins and ends where words do. Case is ignored.
Of names that overlap the one that begins first counts, and of these the longest: "New York Times" is not a
mention of New York.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(r"\w+|[^\w\s]")
_STRAIGHT = str.maketrans(dict.fromkeys("‘’‛ʼ´", "'") | dict.fromkeys("“”„‟«»", '"'))


def tokens(text: str) -> list[str]:
    """Words and marks, case and form of quotation marks ignored."""
    plain = unicodedata.normalize("NFC", text).translate(_STRAIGHT)
    return _TOKEN.findall(unicodedata.normalize("NFC", plain.casefold()))


@dataclass
class _State:
    """What has been read of the names so far."""

    depth: int = 0
    next: dict[str, _State] = field(default_factory=dict)
    fallback: _State | None = None
    """The longest other beginning of a name that what was read ends in."""
    entity: str | None = None
    """The entity whose name ends here."""
    shorter: _State | None = None
    """The nearest state on the way of fallbacks where a name ends."""


class MentionFinder:
    """An automaton for the names of many entities: pairs of a name or alias and the entity it stands for."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._root = _State()
        for name, entity in names:
            self._add(tokens(name), entity)
        self._link()

    def _add(self, words: list[str], entity: str) -> None:
        if not words:
            return
        state = self._root
        for word in words:
            state = state.next.setdefault(word, _State(state.depth + 1))
        state.entity = entity

    def _link(self) -> None:
        """Give each state its fallback, in order of depth."""
        queue = deque(self._root.next.values())
        for state in queue:
            state.fallback = self._root
        while queue:
            state = queue.popleft()
            for word, child in state.next.items():
                child.fallback = self._step(state.fallback, word)
                queue.append(child)
            before = state.fallback
            if before is not None:
                state.shorter = before if before.entity is not None else before.shorter

    def _step(self, state: _State | None, word: str) -> _State:
        while state is not None:
            following = state.next.get(word)
            if following is not None:
                return following
            state = state.fallback
        return self._root

    def _all(self, words: list[str]) -> Iterator[tuple[int, int, str]]:
        """Every name in the words, also those that overlap: begin, end, entity."""
        state = self._root
        for end, word in enumerate(words, start=1):
            state = self._step(state, word)
            at: _State | None = state if state.entity is not None else state.shorter
            while at is not None and at.entity is not None:
                yield end - at.depth, end, at.entity
                at = at.shorter

    def find(self, text: str) -> list[str]:
        """The entities named in a text, in reading order, as often as they are named."""
        mentions = sorted(self._all(tokens(text)), key=lambda mention: (mention[0], -mention[1]))
        entities = []
        read_to = 0
        for begin, end, entity in mentions:
            if begin >= read_to:
                entities.append(entity)
                read_to = end
        return entities

    def count(self, text: str) -> dict[str, int]:
        """How often each entity is named, most often first; of equals the one that is named first."""
        counts: dict[str, int] = {}
        for entity in self.find(text):
            counts[entity] = counts.get(entity, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))
