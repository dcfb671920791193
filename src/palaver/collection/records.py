"""What a collection gives: conversations, and everybody who came.

A conversation's dialogue is the noun of the rest of the house. Its turns carry what people said about them:

- `knowledge`: the sections that the writer named (FS1, AS2, "Personal Knowledge");
- `labels`: one for each other question, under its criterion (`sentiment` about one's own message,
  `turn_rating` about the partner's), `at` (seconds since the conversation began), `seconds` (from when the
  speaker's turn began until the message), and `pasted` (characters, where the collection counts them).

The dialogue's labels are `config` and `article` where there are reading sets, and the ratings of the whole:
`rating_agent_1` is agent_1's; of a conversation with a bot the criteria stand under their own names, and
`rating`, `rater` and `system` say what `palaver compare train` looks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from palaver.config import dotted
from palaver.errors import explain_mistake
from palaver.files import write_atomically
from palaver.readers.rows import RowFile
from palaver.schema import Dialogue
from palaver.schema.base import Labels, Name, Noun, Text

PERSONAL = "Personal Knowledge"
SOURCES = ("FS1", "FS2", "FS3", "AS1", "AS2", "AS3", "AS4", PERSONAL)
GRADES = ("Poor", "Not Good", "Passable", "Good", "Excellent")
"""Of a partner's message and of the whole conversation."""
KNOWLEDGE_SOURCE = "knowledge_source"
"""The criterion whose answers are a turn's `knowledge`."""

Ending = Literal["complete", "incomplete", "failed", "open"]
"""complete: long enough, and whoever was left at the end has submitted it. incomplete: everybody left before.
failed: a bot did not answer. open: it goes on."""
Exit = Literal[
    "finished",  # submitted and rated what there was to rate
    "partner left",  # went on to no other partner, and leaves with what was said
    "left",  # by the button
    "lost",  # the connection was away for longer than the grace time
    "timed out",  # was there and said nothing for too long
    "bot failed",
    "waited",  # for the whole stated time, and nobody came
    "unneeded",  # came when all conversations had been held
    "here",  # has not left
]
Pay = Literal["full", "partial", "waiting", "none", "open"]


Verdict = Literal["accepted", "review", "rejected"]
Key = tuple[str, str]
"""The conversation, and the participant; no participant is the conversation as a whole."""


class Decision(NamedTuple):
    """What the owner decided about a conversation, or about one side of it."""

    verdict: Verdict
    reason: str = ""


class Participant(Noun):
    """Somebody in a seat of a conversation. A seat that was left may be taken by another person or a bot."""

    id: Name
    """The person's id on the server; of a bot, the system's name."""
    seat: Name
    """The speaker in the dialogue."""
    is_bot: bool = False
    first_turn: int = Field(default=0, ge=0)
    """The number of turns that had been said when they came."""
    n_turns: int = Field(default=0, ge=0)
    """How many they said."""
    exit: Exit = "here"


class Conversation(Noun):
    """One conversation as it was held."""

    id: Name
    dialogue: Dialogue
    participants: tuple[Participant, ...]
    """In the order in which they came."""
    ending: Ending
    configuration: Text | None = None
    began_at: float
    """Seconds since 1970."""
    ended_at: float | None = None
    session: Text = ""
    """Conversations that one person held to compare bots have the same."""

    @property
    def bots(self) -> tuple[Participant, ...]:
        return tuple(p for p in self.participants if p.is_bot)

    @property
    def people(self) -> tuple[Participant, ...]:
        return tuple(p for p in self.participants if not p.is_bot)


class Person(Noun):
    """Somebody who came in, whether or not they talked. Everybody is paid, or `reason` says why not."""

    id: Name
    platform: Text = "link"
    external: Text | None = None
    """The platform's name for them: not for publication."""
    code: Text = ""
    entered_at: float
    left_at: float | None = None
    seconds_waited: float = Field(default=0, ge=0)
    seconds_talked: float = Field(default=0, ge=0)
    n_turns: int = Field(default=0, ge=0)
    conversations: tuple[Name, ...] = ()
    exit: Exit = "here"
    pay: Pay = "open"
    share: float = Field(default=0, ge=0, le=1)
    """Of the turns that a whole conversation takes from one person."""
    reason: Text = ""
    language: Text = ""
    """In which the pages were shown, where there was a choice."""
    qualifications: Labels = Field(default_factory=dict, validate_default=True)
    """What the platform said of them, such as `approved` and `approval_rate`."""


def write_conversations(conversations: Iterable[Conversation], path: Path) -> int:
    """One a line, as JSON; how many."""
    n = 0
    with write_atomically(path) as file:
        for conversation in conversations:
            file.write(conversation.model_dump_json(exclude_defaults=True) + "\n")
            n += 1
    return n


def read_conversations(path: Path) -> Iterator[Conversation]:
    """What `write_conversations` wrote; the error lists every mistake."""
    file = RowFile(path)
    for number, row in file.rows():
        try:
            yield Conversation.model_validate(row)
        except ValidationError as error:
            for mistake in error.errors():
                what = explain_mistake(mistake, list(Conversation.model_fields))
                file.problems.add(number, f"{dotted(mistake['loc'])}: {what}")
    if file.problems:
        raise file.problems.error(file.path, "conversation", file.word, "expected what Palaver wrote")
