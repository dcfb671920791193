"""Conversations by name: a collection, what it wrote, dialogues, a corpus, or the folder of a release."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import options
from palaver.cli.progress import progress
from palaver.cli.study_database import database_url, open_study
from palaver.collection.labels import as_conversation, as_dialogue
from palaver.collection.records import Conversation, Decision, Key, Person, read_conversations
from palaver.corpora.catalogue import corpus, corpus_names, read_corpus
from palaver.errors import UserError
from palaver.readers.rows import RowFile
from palaver.schema import Dialogue

Conversations = Annotated[
    str,
    typer.Argument(
        help="A collection (collection.toml, its database, or what `palaver collect conversations` wrote); "
        f"dialogues: {options.ANY_SHAPE}; a corpus by name, or the folder of a release."
    ),
]

RELEASE = "topical-chat"
"""The corpus whose layout a folder has."""


@dataclass
class Source:
    """What was read, and what a reader should know about it."""

    conversations: list[Conversation]
    people: list[Person] = field(default_factory=list)
    """Everybody who came; only a collection knows them."""
    notes: list[str] = field(default_factory=list)
    decisions: dict[Key, Decision] = field(default_factory=dict)
    """What the owner of a collection decided about them."""

    def dialogues(self, *, only_complete: bool = False) -> list[Dialogue]:
        """Those that are over and not rejected by the owner, as dialogues; what is left out is noted."""
        left_out = {"open", "incomplete", "failed"} if only_complete else {"open"}
        counts = Counter(c.ending for c in self.conversations if c.ending in left_out)
        self.notes += [f"left out, {ending}: {n:,}" for ending, n in counts.items()]
        over = [c for c in self.conversations if c.ending not in left_out]
        kept = [c for c in over if not self._is_rejected(c)]
        if len(kept) < len(over):
            self.notes.append(f"left out, rejected by hand: {len(over) - len(kept):,}")
        return [as_dialogue(c) for c in kept]

    def _is_rejected(self, conversation: Conversation) -> bool:
        decision = self.decisions.get((conversation.id, ""))
        return decision is not None and decision.verdict == "rejected"


def open_source(name: str, data: Path | None, split: str | None = None) -> Source:
    """The conversations that `name` names."""
    path = Path(name)
    if not path.is_dir() and database_url(name) is not None:
        return _read_collection(name)
    if path.is_file() and _holds_conversations(path):
        return Source(list(read_conversations(path)))
    if path.is_dir():
        if corpus(RELEASE).locate(path) is None:
            raise UserError(f"{path} holds no release", "expected a folder with conversations/ in it")
        reader = read_corpus(RELEASE, root=path, split=split)
    elif path.is_file() or name in corpus_names() or "." not in name:
        reader = read_corpus(name, root=data, split=split)
    else:
        raise UserError(f"there is no {name}", "expected a file, a corpus by name, or a release's folder")
    conversations = []
    with progress() as tell:
        for dialogue in reader:
            conversations.append(as_conversation(dialogue))
            tell("reading conversations", len(conversations), len(conversations))
    return Source(conversations, notes=list(reader.notes))


def _holds_conversations(path: Path) -> bool:
    _, row = next(RowFile(path).rows(), (0, None))
    return isinstance(row, dict) and {"dialogue", "participants"} <= row.keys()


def _read_collection(name: str) -> Source:
    from palaver.server.chat_records import read_records

    with open_study(name) as database:
        records = read_records(database)
    return Source(records.conversations, records.people, decisions=records.decisions)
