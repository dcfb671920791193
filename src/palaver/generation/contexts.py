"""What replies are generated for: contexts out of a file or corpus, and who shall answer them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palaver.errors import DataError, UserError
from palaver.files import TextStream, check_readable
from palaver.generation.system import check_speaker, is_answerable, takers_of, takes
from palaver.readers.responses import is_responses, read_responses
from palaver.schema import Dialogue, Request, System, Turn


@dataclass(frozen=True)
class Context:
    """Something to reply to; `reference` is what was really said next."""

    id: str
    dialogue: Dialogue
    reference: str | tuple[str, ...] | None = None
    speaker: str | None = None
    """Who said the reference, where that is known."""
    knowledge: str | None = None
    """The sentence to draw on, where the file has one."""


@dataclass(frozen=True)
class Survey:
    """What a pass over all contexts found."""

    count: int
    digest: str
    """Of ids and texts: equal contexts, wherever they come from, have equal digests."""
    skipped: dict[str, int]
    """Reason -> how many were left out."""


class Contexts:
    """Contexts that can be gone through again and again, always in the same order.

    `source` is a `.txt` with one utterance a line, any dialogue file, or the name of a corpus. Each dialogue
    is a context as a whole or, with `every_turn`, each of its beginnings, the turn that follows as reference.
    Of a file of responses it is what they answer, each context once, with its reference.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        split: str | None = None,
        every_turn: bool = False,
        limit: int | None = None,
        root: Path | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.source = str(source)
        self.split = split
        self.every_turn = every_turn
        self.limit = limit
        self._root, self._columns = root, columns
        self._skipped: Counter[str] = Counter()
        self.n_repeated = 0
        """Dialogues whose id an earlier one has; they are called ID~2, ID~3 and so on."""
        path = Path(source)
        self._is_text = path.name.lower().removesuffix(".gz").endswith(".txt")
        if self._is_text:
            check_readable(path)
        wants_dialogues = split or every_turn
        if wants_dialogues and self._is_text:
            asked = "--split" if split else "--every-turn"
            raise UserError(
                f"{asked} needs dialogues, but {source} has one utterance a line", f"leave out {asked}"
            )
        self.of_responses = not (self._is_text or wants_dialogues) and (
            path.is_file() and is_responses(path, columns)
        )
        """Whether the file holds responses, of which only the contexts are taken."""

    def __iter__(self) -> Iterator[Context]:
        self._skipped = Counter()
        count = 0
        for context in self._all():
            if count == self.limit:
                return
            if is_answerable(context.dialogue):
                count += 1
                yield context
            else:
                self._skipped["nothing to reply to"] += 1

    def _all(self) -> Iterator[Context]:
        if self._is_text:
            return self._lines()
        return self._from_responses() if self.of_responses else self._from_dialogues()

    def survey(self) -> Survey:
        """Go through all of them once: mistakes in the file show before hours of work."""
        digest = hashlib.sha256()
        count = 0
        for context in self:
            count += 1
            turns = context.dialogue.turns
            texts = [
                turn.text for turn in (turns[-1:] if self.every_turn else turns)
            ]  # the others came before
            said = (context.id, context.reference, len(turns), *texts)
            digest.update(json.dumps(said).encode())
        if not count:
            why = f" with split {self.split!r}" if self.split else ""
            needed = "two turns, the second as reference" if self.every_turn else "a turn with text"
            raise DataError(
                f"there are no contexts in {self.source}{why}",
                f"a dialogue needs {needed}",
                [f"{n:,} left out: {reason}" for reason, n in self._skipped.items()],
            )
        return Survey(count, digest.hexdigest()[:16], dict(self._skipped))

    def dialogues(self) -> Iterator[Dialogue]:
        """The whole dialogues of all splits; none of a file of utterances or responses."""
        from palaver.corpora.catalogue import read_corpus

        if not (self._is_text or self.of_responses):
            yield from read_corpus(self.source, root=self._root, columns=self._columns)

    def _lines(self) -> Iterator[Context]:
        with TextStream(Path(self.source)) as stream:
            for number, line in enumerate(stream, start=1):
                text = line.decode().strip()
                turn = Turn.model_construct(speaker="user", text=text, knowledge=(), labels={})
                yield Context(str(number), _dialogue(str(number), (turn,)))

    def _from_responses(self) -> Iterator[Context]:
        ids: set[str] = set()
        for response in read_responses(self.source, columns=self._columns, skip_repeats=True):
            if response.id in ids:
                continue
            ids.add(response.id)
            turns = response.context
            speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
            dialogue = Dialogue.model_construct(
                id=response.id,
                turns=turns,
                speakers=speakers,
                source="",
                knowledge=None,
                labels=response.labels,
            )
            yield Context(response.id, dialogue, response.reference, knowledge=response.knowledge)

    def _from_dialogues(self) -> Iterator[Context]:
        from palaver.corpora.catalogue import read_corpus

        self.n_repeated = 0
        times: Counter[str] = Counter()
        for dialogue in read_corpus(self.source, root=self._root, split=self.split, columns=self._columns):
            times[dialogue.id] += 1
            if times[dialogue.id] > 1:  # two responses with one id could not be told apart
                self.n_repeated += 1
                dialogue = dialogue.model_copy(update={"id": f"{dialogue.id}~{times[dialogue.id]}"})
            turns = dialogue.turns
            if not self.every_turn:
                yield Context(dialogue.id, dialogue)
                continue
            for place in range(1, len(turns)):
                before = _dialogue(dialogue.id, turns[:place], dialogue)
                yield Context(f"{dialogue.id}#{place}", before, turns[place].text, turns[place].speaker)


def _dialogue(id: str, turns: tuple[Turn, ...], like: Dialogue | None = None) -> Dialogue:
    """Built of checked parts, so it is not checked again."""
    if like is not None:
        return like.model_copy(update={"turns": turns})
    return Dialogue.model_construct(
        id=id, turns=turns, speakers=("user",), source="", knowledge=None, labels={}
    )


@dataclass(frozen=True)
class Condition:
    """Who answers: nobody in particular, a speaker, or a personality (`speaker` is then only its name)."""

    speaker: str | None = None
    ocean: tuple[float, ...] | None = None

    def request(self, context: Context, knowledge: str | None = None) -> Request:
        speaker = self.speaker if self.ocean is None else None
        return Request(context.dialogue, speaker=speaker, ocean=self.ocean, knowledge=knowledge)


def conditions_of(
    system: System,
    speakers: str | Sequence[str] | None = None,
    table: Mapping[str, Sequence[float]] | None = None,
) -> list[Condition]:
    """The conditions a system is asked under: `speakers` is "all" or names, `table` names personalities."""
    if table is not None:
        if "ocean" not in takes(system):
            raise UserError(f"{system.name} takes no personality (OCEAN scores)", takers_of("ocean"))
        return [Condition(name, tuple(scores)) for name, scores in table.items()]
    if speakers is None:
        return [Condition()]
    if "speaker" not in takes(system):
        raise UserError(f"{system.name} takes no speaker", takers_of("speaker"))
    known: tuple[str, ...] = getattr(system, "speakers", ())
    if speakers == "all":
        if not known:
            raise UserError(f"{system.name} knows no speakers by name", "name them: --speakers A,B")
        return [Condition(name) for name in known]
    wanted = list(dict.fromkeys(speakers.split(",") if isinstance(speakers, str) else speakers))
    for name in wanted if known else ():
        check_speaker(name, known, system.name)
    return [Condition(name) for name in wanted]
