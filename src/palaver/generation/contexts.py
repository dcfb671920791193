"""What replies are generated for: contexts out of a file or corpus, and who shall answer them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import DataError, UserError
from palaver.files import TextStream, check_readable
from palaver.generation.system import (
    TRAITS,
    Request,
    System,
    check_ocean,
    check_speaker,
    is_answerable,
    takes,
)
from palaver.schema import Dialogue, Turn


@dataclass(frozen=True)
class Context:
    """Something to reply to; `reference` is what was really said next."""

    id: str
    dialogue: Dialogue
    reference: str | None = None


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
    """

    def __init__(
        self,
        source: str | Path,
        *,
        split: str | None = None,
        every_turn: bool = False,
        limit: int | None = None,
        root: Path | None = None,
    ) -> None:
        self.source = str(source)
        self.split = split
        self.every_turn = every_turn
        self.limit = limit
        self._root = root
        self._skipped: Counter[str] = Counter()
        path = Path(source)
        self._is_text = path.name.lower().removesuffix(".gz").endswith(".txt")
        if self._is_text:
            check_readable(path)
            if split or every_turn:
                asked = "--split" if split else "--every-turn"
                raise UserError(f"{asked} needs dialogues, but {source} has one utterance a line")

    def __iter__(self) -> Iterator[Context]:
        self._skipped = Counter()
        count = 0
        for context in self._lines() if self._is_text else self._from_dialogues():
            if count == self.limit:
                return
            if is_answerable(context.dialogue):
                count += 1
                yield context
            else:
                self._skipped["nothing to reply to"] += 1

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
            raise DataError(f"there are no contexts in {self.source}{why}")
        return Survey(count, digest.hexdigest()[:16], dict(self._skipped))

    def _lines(self) -> Iterator[Context]:
        with TextStream(Path(self.source)) as stream:
            for number, line in enumerate(stream, start=1):
                text = line.decode().strip()
                turn = Turn.model_construct(speaker="user", text=text, knowledge=(), labels={})
                yield Context(str(number), _dialogue(str(number), (turn,)))

    def _from_dialogues(self) -> Iterator[Context]:
        from palaver.corpora import read_corpus

        for dialogue in read_corpus(self.source, root=self._root, split=self.split):
            turns = dialogue.turns
            if not self.every_turn:
                yield Context(dialogue.id, dialogue)
                continue
            for place in range(1, len(turns)):
                before = _dialogue(dialogue.id, turns[:place], dialogue)
                yield Context(f"{dialogue.id}#{place}", before, turns[place].text)


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
            raise UserError(
                f"{system.name} takes no personality (OCEAN scores)", "see palaver generate --help"
            )
        return [Condition(name, tuple(scores)) for name, scores in table.items()]
    if speakers is None:
        return [Condition()]
    if "speaker" not in takes(system):
        raise UserError(f"{system.name} takes no speaker", "leave out --speakers, or choose another system")
    known: tuple[str, ...] = getattr(system, "speakers", ())
    if speakers == "all":
        if not known:
            raise UserError(f"{system.name} knows no speakers by name", "name them: --speakers A,B")
        return [Condition(name) for name in known]
    wanted = list(dict.fromkeys(speakers.split(",") if isinstance(speakers, str) else speakers))
    for name in wanted if known else ():
        check_speaker(name, known, system.name)
    return [Condition(name) for name in wanted]


def read_ocean_table(path: str | Path) -> dict[str, tuple[float, ...]]:
    """Speaker -> five OCEAN scores, from CSV (speaker and a column per trait) or JSON; all mistakes at once.

    Columns are found by the traits' names or initials, or are taken in the order O, C, E, A, N if none is.
    """
    path = Path(path)
    with TextStream(path) as stream:
        text = stream.read().decode()
    rows = list(_json_scores(text, path) if text.lstrip()[:1] in ("{", "[") else _csv_scores(text, path))
    found: dict[str, tuple[float, ...]] = {}
    wrong: list[str] = []
    for place, name, scores in rows:
        if not name:
            wrong.append(f"{place}: there is no speaker")
        elif name in found:
            wrong.append(f"{place}: {name!r} is there twice")
        try:
            found[name] = check_ocean(scores)
        except UserError as error:
            wrong += (f"{place}: {problem}" for problem in error.problems)
    if not rows:
        wrong.append("there are no rows in it")
    if wrong:
        raise DataError(f"{path} is not a table of OCEAN scores:", "expected speaker and five numbers", wrong)
    return found


def _csv_scores(text: str, path: Path) -> Iterator[tuple[str, str, list[Any]]]:
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    names = [name.strip().casefold() for name in header]
    speaker = next((i for i, n in enumerate(names) if n in ("speaker", "name", "character")), 0)
    rest = [i for i in range(len(names)) if i != speaker]
    places = [next((i for i in rest if names[i] in (trait, trait[0])), None) for trait in TRAITS]
    if any(place is not None for place in places):
        missing = [trait for trait, place in zip(TRAITS, places, strict=True) if place is None]
        if missing:
            raise DataError(f"{path} has no column {', '.join(missing)}", f"found {', '.join(header)}")
        rest = [place for place in places if place is not None]
    for number, row in enumerate(rows, start=2):
        if any(cell.strip() for cell in row):
            cells = [row[i] if i < len(row) else "" for i in (speaker, *rest)]
            yield f"row {number}", cells[0].strip(), [_number(cell) for cell in cells[1:]]


def _json_scores(text: str, path: Path) -> Iterator[tuple[str, str, list[Any]]]:
    try:
        if text.lstrip().startswith("{") and "\n{" in text.strip():
            data: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            data = json.loads(text)
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from None
    if isinstance(data, dict) and "speaker" in data:
        data = [data]
    if isinstance(data, dict):
        data = [{"speaker": name, "scores": scores} for name, scores in data.items()]
    for number, row in enumerate(data, start=1):
        scores = row.get("scores", row.get("ocean", row)) if isinstance(row, dict) else []
        if isinstance(scores, dict):
            folded = {str(key).casefold(): value for key, value in scores.items()}
            scores = [folded.get(trait, folded.get(trait[0])) for trait in TRAITS]
        name = row.get("speaker", "") if isinstance(row, dict) else ""
        yield f"row {number}", str(name), list(scores) if isinstance(scores, list) else [scores]


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell.strip()
