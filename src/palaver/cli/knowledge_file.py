"""`--knowledge FILE`: sentences to choose from, the one that fits what was said by TF-IDF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palaver.errors import DataError
from palaver.files import TextStream, sha256_of
from palaver.generation.contexts import Context
from palaver.knowledge.selector import Group, Query, best, make_selector
from palaver.text.words import sentences

LAST_TURNS = 3
"""A conversation moves on; what was said long ago should not choose the sentence."""


class KnowledgeFile:
    """A text file cut into sentences."""

    def __init__(self, path: Path) -> None:
        with TextStream(path) as stream:
            lines = [line.decode().strip() for line in stream]
        if any("\0" in line for line in lines):
            raise DataError(f"{path} is not a text file", "expected sentences, such as those of an article")
        texts = dict.fromkeys(sentence for line in lines for sentence in sentences(line) if sentence.strip())
        if not any(letter.isalnum() for sentence in texts for letter in sentence):
            raise DataError(f"there are no sentences in {path}")
        self.path = path
        self.sentences = list(texts)
        self.signature = sha256_of(path)[:16]
        self._selector = make_selector("tfidf", self.sentences, last_turns=LAST_TURNS)

    def choose(self, history: Sequence[str]) -> str | None:
        """The sentence that fits best; none if no word of any sentence was said."""
        selection = self._selector.select(history, self.sentences)
        return selection.sentence if selection is not None and selection.score > 0 else None

    def choose_for(self, contexts: Sequence[Context]) -> list[str | None]:
        """The same for many contexts at once."""
        queries = [Query([turn.text for turn in context.dialogue.turns]) for context in contexts]
        (table,) = self._selector.scores([Group(queries, self.sentences)])
        selections = [best(row, self.sentences) for row in table] if table is not None else []
        return [selection.sentence if selection.score > 0 else None for selection in selections]
