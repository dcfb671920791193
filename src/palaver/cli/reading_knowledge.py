"""`generate --selector`: each reply's sentence is chosen from what its speaker had read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from palaver.errors import UsageError, UserError, require
from palaver.generation.contexts import Context, Contexts
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.replies import NextTurn, ReplyKnowledge
from palaver.knowledge.selector import HISTORY_SELECTORS, SELECTORS, Selector, make_selector


class ReadingKnowledge:
    """The reading sets of the contexts' dialogues, and the selector that chooses from them.

    Term weights are fitted on the reading sets of all parts of a corpus, whichever part is answered.
    """

    def __init__(self, name: str, contexts: Contexts, device: str = "cpu") -> None:
        require("sklearn", "models")
        sees_response = SELECTORS.get(name).sees_response
        if sees_response and not contexts.every_turn:
            raise UsageError(
                f"--selector {name} compares with the true reply, which is known with --every-turn only",
                f"give --every-turn, or a selector of the history alone: {', '.join(HISTORY_SELECTORS)}",
            )
        sentences = reading_sentences(contexts.dialogues())
        if not sentences:
            raise UserError(
                f"--selector {name}: there is no sentence in the reading sets of {contexts.source}",
                "it takes conversations with reading sets, such as topical-chat or what `palaver collect "
                "export` writes; --knowledge FILE chooses from a text",
            )
        self._knowledge = ReplyKnowledge(_open(name, sentences, device))
        digest = hashlib.sha256("\n".join(sentences).encode()).hexdigest()[:16]
        self.signature = f"{name}|{digest}"

    def choose_for(self, contexts: Sequence[Context]) -> list[str | None]:
        """The sentence for the reply to each context."""
        turns = []
        for context in contexts:
            reference = context.reference if isinstance(context.reference, str) else None
            turns.append(NextTurn(context.dialogue, context.speaker, reference))
        return self._knowledge.choose(turns)

    @property
    def notes(self) -> list[str]:
        """What a person should know about the choices so far."""
        without, total = self._knowledge.n_without_sentences, self._knowledge.n_turns
        if not without:
            return []
        return [f"{without:,} of {total:,} replies have no knowledge: their speaker had no sentence to read"]


def _open(name: str, sentences: list[str], device: str) -> Selector:
    if name in ("encoder", "trained-encoder"):
        return make_selector(name, sentences, device=device)
    return make_selector(name, sentences)
