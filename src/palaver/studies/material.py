"""What systems said, joined by what it answers: the material of a study.

Responses of one id, or dialogues of one id, belong together, from however many files. What not all systems
have cannot be compared and is left out, with a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from palaver.errors import DataError, UserError, count_of
from palaver.readers.dialogues import read_dialogues
from palaver.readers.responses import REPEATED, is_responses, read_responses
from palaver.readers.rows import file_stem
from palaver.schema import Dialogue, Output, Response, Turn
from palaver.schema.base import Scalar
from palaver.studies.screens import draw_key
from palaver.tabular import few

NO_REPLY = "responses in which the system gave no reply"
INCOMPLETE = "contexts that not all systems answered"
UNSHARED_KNOWLEDGE = "background sentences, where systems drew on different ones"
UNLIKE = "contexts whose systems were given different histories under one id"

_SHARED_IDS = "dialogues with the id of an earlier one"
"""A note of the reader's that says nothing here: dialogues of one id belong together."""

T = TypeVar("T")
Said = TypeVar("Said", Response, Dialogue)
Named = tuple[str, T]
"""A system and what it said."""


@dataclass(frozen=True)
class Candidate:
    """What may become an item: a context with a reply of every system, or a dialogue of every system."""

    id: str
    outputs: tuple[Output, ...]
    """One of each system, in the order of the systems."""
    context: tuple[Turn, ...] = ()
    reference: str | None = None
    knowledge: str | None = None
    labels: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Material:
    """All candidates, and what could not become one."""

    candidates: tuple[Candidate, ...]
    systems: tuple[str, ...]
    """In order of first appearance."""
    dialogues: bool
    """Whether whole dialogues are judged, not replies."""
    left_out: Mapping[str, int]
    """Reason -> how many."""
    notes: tuple[str, ...]


def read_material(
    sources: Sequence[str | Path], *, columns: Mapping[str, str] | None = None, seed: int = 0
) -> Material:
    """The responses or dialogues of one or more files. `seed` matches dialogues that share no id."""
    paths = [Path(source) for source in sources]
    if not paths:
        raise UserError("no file of responses or dialogues was named")
    of_responses = [path for path in paths if is_responses(path, columns)]
    if of_responses and len(of_responses) < len(paths):
        other = next(path for path in paths if path not in of_responses)
        raise UserError(
            f"{of_responses[0]} holds responses, {other} holds dialogues", "make a study of one or the other"
        )
    reading = _Reading(columns)
    return reading.responses(paths) if of_responses else reading.dialogues(paths, seed)


class _Reading:
    """Joins files, and counts what is left out on the way."""

    def __init__(self, columns: Mapping[str, str] | None) -> None:
        self.columns = columns
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []
        self.systems: dict[str, None] = {}

    def responses(self, paths: Sequence[Path]) -> Material:
        said: list[Named[Response]] = []
        for path in paths:
            reader = read_responses(path, columns=self.columns, skip_repeats=True)
            of_file = [(response.judged_system, response) for response in reader]
            said += self._new(path, of_file, said)
            self._tell(path, reader.tally, len(paths) > 1)
        self.systems = dict.fromkeys(system for system, _ in said)
        answered = [(system, response) for system, response in said if response.response is not None]
        self.left_out[NO_REPLY] += len(said) - len(answered)
        n_systems = len(self.systems)
        groups = _group(answered, lambda response: response.id)
        if n_systems > 1 and not any(len(group) == n_systems for group in groups):
            with_words = [(system, response) for system, response in answered if response.context]
            by_words = _group(_numbered(with_words), lambda numbered: (_words(numbered[1]), numbered[0]))
            if any(len(group) == n_systems for group in by_words):
                self.notes.append("no id is shared by all systems: contexts of the same words were joined")
                groups = [{s: response for s, (_, response) in group.items()} for group in by_words]
        complete = [group for group in groups if len(group) == n_systems]
        self.left_out[INCOMPLETE] += len(groups) - len(complete)
        alike = [group for group in complete if len({_words(r) for r in group.values() if r.context}) <= 1]
        self.left_out[UNLIKE] += len(complete) - len(alike)
        if not any(response.context for _, response in answered):
            self.notes.append("the responses have no context (--column context=NAME says where it is)")
        return self._material([self._candidate(group) for group in alike], paths, dialogues=False)

    def dialogues(self, paths: Sequence[Path], seed: int) -> Material:
        said: list[Named[Dialogue]] = []
        for path in paths:
            reader = read_dialogues(path, columns=self.columns)
            of_file = [(str(d.labels.get("system") or file_stem(path)), d) for d in reader]
            said += self._new(path, of_file, said)
            self._tell(path, reader.tally, len(paths) > 1)
        self.systems = dict.fromkeys(system for system, _ in said)
        spoken = [(system, dialogue) for system, dialogue in said if dialogue.turns]
        self.left_out["dialogues without turns"] += len(said) - len(spoken)
        n_systems = len(self.systems)
        groups = _group(spoken, lambda dialogue: dialogue.id)
        if not any(len(group) == n_systems for group in groups):
            groups = _group(spoken, lambda dialogue: dialogue.labels.get("context") or dialogue.id)
        matched = any(len(group) == n_systems for group in groups)
        if not matched:
            groups = _match(spoken, list(self.systems), seed)
            self.notes.append(f"the systems share no dialogue ids: matched at random (seed {seed})")
        complete = [group for group in groups if len(group) == n_systems]
        reason = "dialogues that not all systems have" if matched else "dialogues without a partner"
        self.left_out[reason] += len(spoken) - n_systems * len(complete)
        width = len(str(len(complete)))
        candidates = [
            _dialogue_candidate(group, "" if matched else f"match-{n:0{width}d}", list(self.systems))
            for n, group in enumerate(complete, start=1)
        ]
        return self._material(candidates, paths, dialogues=True)

    def _new(self, path: Path, of_file: list[Named[Said]], said: Sequence[Named[Said]]) -> list[Named[Said]]:
        """What no earlier file has: a system says one thing to one context."""
        known = {(system, one.id) for system, one in said}
        new = []
        for system, one in of_file:
            key = (system, one.id)
            if key in known:
                self.left_out[REPEATED] += 1
            else:
                known.add(key)
                new.append((system, one))
        if of_file and not new:
            systems = few(sorted({system for system, _ in of_file}))
            raise UserError(
                f"{path}: everything in it is in an earlier file already",
                f"its systems are called as there ({systems}): give them "
                "other names in the column system; where rows name no system, it is called as its file",
            )
        return new

    def _tell(self, path: Path, tally: Mapping[str, int], several: bool) -> None:
        for what, count in tally.items():
            if what == REPEATED:
                self.left_out[REPEATED] += count
            elif count and what != _SHARED_IDS:
                self.notes.append(f"{path.name}: {what}: {count:,}" if several else f"{what}: {count:,}")

    def _candidate(self, group: Mapping[str, Response]) -> Candidate:
        first = next(iter(group.values()))
        history = next((response.context for response in group.values() if response.context), ())
        references = dict.fromkeys(text for response in group.values() for text in response.references)
        sentences = {response.knowledge for response in group.values() if response.knowledge}
        if len(sentences) > 1:
            self.left_out[UNSHARED_KNOWLEDGE] += 1
        return Candidate(
            id=first.id,
            outputs=tuple(Output(system=system, text=group[system].response) for system in self.systems),
            context=tuple(Turn(speaker=turn.speaker, text=turn.text) for turn in history),
            reference=next(iter(references), None),
            knowledge=sentences.pop() if len(sentences) == 1 else None,
            labels=first.labels,
        )

    def _material(self, candidates: Sequence[Candidate], paths: Sequence[Path], dialogues: bool) -> Material:
        left_out = {reason: n for reason, n in self.left_out.items() if n}
        if not candidates:
            named = ", ".join(str(path) for path in paths)
            what = "dialogue" if dialogues else "context"
            raise DataError(
                f"{named}: there is no {what} of which all {count_of(len(self.systems), 'system')} have one",
                f"systems: {', '.join(self.systems)}",
                [*(f"{n:,} {reason}" for reason, n in left_out.items()), *self.notes],
            )
        return Material(tuple(candidates), tuple(self.systems), dialogues, left_out, tuple(self.notes))


def _group(said: Iterable[Named[T]], key: Callable[[T], Hashable]) -> list[dict[str, T]]:
    """What belongs together, by system."""
    groups: dict[Hashable, dict[str, T]] = {}
    for system, one in said:
        groups.setdefault(key(one), {})[system] = one
    return list(groups.values())


def _words(response: Response) -> tuple[str, ...]:
    """What was said before the reply."""
    return tuple(turn.text for turn in response.context)


def _numbered(said: Iterable[Named[Response]]) -> list[Named[tuple[int, Response]]]:
    """Each response with how often the same system met the same words before."""
    times: Counter[Hashable] = Counter()
    numbered = []
    for system, response in said:
        key = (system, _words(response))
        numbered.append((system, (times[key], response)))
        times[key] += 1
    return numbered


def _match(said: Sequence[Named[Dialogue]], systems: Sequence[str], seed: int) -> list[dict[str, Dialogue]]:
    """One dialogue of each system at a time, at random."""
    of_system: dict[str, list[Dialogue]] = {system: [] for system in systems}
    for system, dialogue in said:
        of_system[system].append(dialogue)
    for system, dialogues in of_system.items():
        dialogues.sort(key=lambda dialogue: draw_key(seed, "match", system, dialogue.id))
    return [dict(zip(systems, row, strict=True)) for row in zip(*of_system.values(), strict=False)]


def _dialogue_candidate(group: Mapping[str, Dialogue], id: str, systems: Sequence[str]) -> Candidate:
    first = next(iter(group.values()))
    outputs = [
        Output(
            system=system,
            id=group[system].id,
            dialogue=Dialogue(
                id=group[system].id,
                turns=tuple(Turn(speaker=turn.speaker, text=turn.text) for turn in group[system].turns),
            ),
        )
        for system in systems
    ]
    return Candidate(id or first.id, tuple(outputs), labels=first.labels)
