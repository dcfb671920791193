"""Dialogues into examples: a response, the turns before it, who speaks, the knowledge chosen for it.

Xing & Fernández (2018), section 3.1: every two consecutive turns of a scene are a pair. Gopalakrishnan et al.
(2019), section 4: the history is all turns before the response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palaver.corpora.catalogue import CorpusReader, read_corpus
from palaver.corpora.personalities import Scores
from palaver.errors import DataError, UserError, nearest
from palaver.models.turns import first_turn_seen
from palaver.schema import Dialogue
from palaver.training.experiment import Data, Source

Select = Callable[[Iterable[Dialogue]], Iterator[tuple[Dialogue, Sequence[str | None]]]]
"""Gives each dialogue with one knowledge sentence, or none, per turn."""

FIRST = "the first turn of a dialogue, which answers nothing"
EMPTY = "an empty response"
NO_CONTEXT = "nothing but empty turns before it"
STRANGER = "by a speaker without an id"


@dataclass(frozen=True)
class Episode:
    """The turns of a dialogue and which of them are to be learned; lists of equal length, one entry each."""

    turns: list[str]
    responses: list[int] = field(default_factory=list)
    """Index of the response among the turns."""
    begins: list[int] = field(default_factory=list)
    """Index of the first turn it sees; the last is the one before it."""
    speakers: list[int] = field(default_factory=list)
    knowledge: list[str] = field(default_factory=list)


def read_source(source: Source, data: Data) -> CorpusReader:
    """The dialogues of a source as a stream, turns merged where that is wanted."""
    name = source.corpus or source.path or ""
    root = source.root or data.root
    return read_corpus(
        name, root=root, split=source.split, merge_turns=data.merge_turns, columns=source.columns
    )


def count_turns(dialogues: Iterable[Dialogue]) -> Counter[str]:
    """Turns by speaker."""
    return Counter(turn.speaker for dialogue in dialogues for turn in dialogue.turns)


@dataclass(frozen=True)
class Cast:
    """Who has an id. By source, since a name may belong to a main character of one show only."""

    names: tuple[str, ...]
    """In the order of their ids."""
    by_source: tuple[Mapping[str, int], ...]
    """Name -> id among the speakers of each training source; validation sources take everyone."""

    @property
    def everyone(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


def choose_cast(data: Data, counts: Sequence[Counter[str]], extra: Sequence[str] = ()) -> Cast | None:
    """Who gets an id, from the turns counted in each training source; none if nobody is asked for.

    `extra` are the speakers of an OCEAN table, who are meant when neither names nor a number is given.
    """
    if data.min_turns and not data.speakers:
        kept = [{n for n, turns in count.items() if turns >= data.min_turns} for count in counts]
        total = sum(counts, Counter[str]())
        names = sorted(set().union(*kept), key=lambda n: (-total[n], n))
        if not names:
            most = ", ".join(f"{n} {c:,}" for n, c in total.most_common(3))
            raise DataError(f"nobody has {data.min_turns:,} turns (most: {most})", "lower data.min_turns")
    elif data.speakers or extra:
        names = list(data.speakers or extra)
        kept = [set(names) for _ in counts]
    else:
        return None
    by_source = ({name: i for i, name in enumerate(names) if name in some} for some in kept)
    return Cast(tuple(names), tuple(by_source))


def check_speakers(
    table: Mapping[str, Scores], speakers: Sequence[str], heard: Sequence[str], path: Path
) -> None:
    """Everybody with an id has OCEAN scores, and everybody in the table of scores speaks in the data."""
    problems = [
        f"{name!r} has no scores{nearest(name, list(table))}" for name in speakers if name not in table
    ]
    problems += [
        f"{name!r} never speaks in the training data{nearest(name, heard)}"
        for name in table
        if name not in heard
    ]
    if problems:
        raise DataError(f"{path} does not fit the data:", problems=problems)


def episodes(
    dialogues: Iterable[Dialogue],
    data: Data,
    *,
    ids: Mapping[str, int] | None = None,
    select: Select | None = None,
    skipped: Counter[str] | None = None,
) -> Iterator[Episode]:
    """The examples, dialogue by dialogue, as a stream. `skipped` counts what is left out, by reason."""
    skipped = Counter() if skipped is None else skipped
    pairs = select(dialogues) if select is not None else ((d, ()) for d in dialogues)
    for dialogue, sentences in pairs:
        texts = [turn.text.strip() for turn in dialogue.turns]
        episode = Episode(texts)
        if data.task == "windows":  # all of the text is learned, whoever speaks
            yield episode
            continue
        if sentences and len(sentences) != len(texts):
            raise UserError(f"{dialogue.id}: {len(sentences)} knowledge sentences for {len(texts)} turns")
        for i, turn in enumerate(dialogue.turns):
            begin = first_turn_seen(i, data.history_turns)
            if i == 0:
                skipped[FIRST] += 1
            elif not texts[i]:
                skipped[EMPTY] += 1
            elif not any(texts[begin:i]):
                skipped[NO_CONTEXT] += 1
            elif ids is not None and turn.speaker not in ids:
                skipped[STRANGER] += 1
            else:
                episode.responses.append(i)
                episode.begins.append(begin)
                episode.speakers.append(ids[turn.speaker] if ids is not None else -1)
                episode.knowledge.append((sentences[i] or "") if sentences else "")
        yield episode
