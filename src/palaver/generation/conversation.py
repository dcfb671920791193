"""A person and one or more systems in conversation: all hear the person, each keeps its own replies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from palaver.errors import UserError
from palaver.generation.streaming import stream_reply
from palaver.generation.system import check_ocean, check_speaker, check_takes, stable_key, takes
from palaver.schema import Dialogue, Reply, Request, System, Turn

Choose = Callable[[Sequence[str]], str | None]
"""The knowledge sentence for what was said so far."""
Hear = Callable[[str, str], None]
"""Is told who speaks, and the next piece of what is said."""
YOU = "you"


@dataclass(frozen=True)
class SystemReply:
    """What one system replied, as whom, and the sentence it was given to read."""

    system: str
    reply: Reply
    speaker: str | None = None
    knowledge: str | None = None

    @property
    def who(self) -> str:
        return f"{self.speaker} ({self.system})" if self.speaker else self.system


class Conversation:
    """Says, takes back and says again. A turn that fails changes nothing."""

    def __init__(self, systems: Sequence[System], *, id: str = "chat", seed: int = 0) -> None:
        names = [system.name for system in systems]
        if not names or len(set(names)) != len(names):
            raise UserError(f"expected one or more different systems, found {', '.join(names) or 'none'}")
        self.systems = list(systems)
        self.id = id
        self.seed = seed
        self.speaker: str | None = None
        self.ocean: tuple[float, ...] | None = None
        self._knowledge: Choose | None = None
        self._turns: dict[str, list[Turn]] = {name: [] for name in names}
        self._attempt = 0

    def set_speaker(self, name: str | None) -> list[str]:
        """Who the systems speak as; notes about systems that do not know speakers."""
        notes = self._heeded_by("speaker", Request(self._probe(), speaker=name) if name else None)
        for system in self.systems:
            known: tuple[str, ...] = getattr(system, "speakers", ())
            if name is not None and known and "speaker" in takes(system):
                check_speaker(name, known, system.name)
        self.speaker = name
        self.ocean = None if name is not None else self.ocean
        return notes

    def set_ocean(self, scores: Sequence[float] | None) -> list[str]:
        """The personality the systems speak with."""
        checked = None if scores is None else check_ocean(scores)
        notes = self._heeded_by("ocean", Request(self._probe(), ocean=checked) if checked else None)
        self.ocean = checked
        self.speaker = None if checked is not None else self.speaker
        return notes

    def set_knowledge(self, choose: Choose | None) -> list[str]:
        """Where the sentence comes from that the systems read before each reply."""
        notes = self._heeded_by("knowledge", Request(self._probe(), knowledge="") if choose else None)
        self._knowledge = choose
        return notes

    def _heeded_by(self, condition: str, request: Request | None) -> list[str]:
        """An error if no system takes the condition; otherwise a note for each that does not."""
        if request is None:
            return []
        deaf = [system for system in self.systems if condition not in takes(system)]
        if len(deaf) == len(self.systems):
            check_takes(deaf[0], request)
        return [f"{system.name} takes no {condition} and goes on without" for system in deaf]

    def _probe(self) -> Dialogue:
        return Dialogue(id=self.id, turns=())

    def say(self, text: str, hear: Hear | None = None) -> list[SystemReply]:
        """Say something; what each system replies. `hear` is told the pieces of each reply meanwhile."""
        if not text.strip():
            raise UserError("there is nothing to reply to: the turn is empty")
        whole = text.encode(errors="replace").decode()  # a terminal may give half a character
        turn = Turn(speaker=YOU, text=whole.strip())
        return self._reply({name: [*turns, turn] for name, turns in self._turns.items()}, 0, hear)

    def retry(self, hear: Hear | None = None) -> list[SystemReply]:
        """Other replies to the last turn."""
        if not self._spoken():
            raise UserError("there is no reply yet to try again")
        before = {name: turns[:-1] for name, turns in self._turns.items()}
        return self._reply(before, self._attempt + 1, hear)

    def undo(self) -> str:
        """Take back the last turn and its replies; what had been said."""
        if not self._spoken():
            raise UserError("there is nothing to take back")
        said = next(iter(self._turns.values()))[-2].text
        self._turns = {name: turns[:-2] for name, turns in self._turns.items()}
        return said

    def dialogues(self) -> list[Dialogue]:
        """The conversation with each system."""
        several = len(self.systems) > 1
        return [
            Dialogue(
                id=f"{self.id}-{name}" if several else self.id,
                turns=tuple(turns),
                source="palaver chat",
                labels={"system": name, "seed": self.seed},
            )
            for name, turns in self._turns.items()
            if turns
        ]

    def _spoken(self) -> bool:
        return any(self._turns.values())

    def _reply(
        self, histories: dict[str, list[Turn]], attempt: int, hear: Hear | None = None
    ) -> list[SystemReply]:
        said: list[SystemReply] = []
        for system in self.systems:
            turns = histories[system.name]
            request = self._request(system, turns, attempt)
            if hear is None:
                (reply,) = system.reply([request])
            else:
                who = SystemReply(system.name, Reply(""), request.speaker).who
                reply = stream_reply(system, request, partial(hear, who))
            if reply.skipped is not None:
                raise UserError(f"{system.name} has no reply: {reply.skipped}")
            said.append(SystemReply(system.name, reply, request.speaker, request.knowledge))
        self._attempt = attempt
        self._turns = {s.system: [*histories[s.system], _turn(s)] for s in said}
        return said

    def _request(self, system: System, turns: Sequence[Turn], attempt: int) -> Request:
        heeds = takes(system)
        choose = self._knowledge if "knowledge" in heeds else None
        return Request(
            Dialogue(id=self.id, turns=tuple(turns)),
            speaker=self.speaker if "speaker" in heeds else None,
            ocean=self.ocean if "ocean" in heeds else None,
            knowledge=choose([turn.text for turn in turns]) if choose else None,
            key=stable_key(self.seed, self.id, len(turns), attempt),
        )


def _turn(said: SystemReply) -> Turn:
    logprob = said.reply.logprob
    labels = {"logprob": logprob} if logprob is not None and math.isfinite(logprob) else {}
    read = (said.knowledge,) if said.knowledge else ()
    return Turn(speaker=said.who, text=said.reply.text, knowledge=read, labels=labels)
