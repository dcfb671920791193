"""The one reader of dialogues: JSON lines, JSON arrays, CSV and Parquet, in the shapes people have.

A row is a whole dialogue or one turn of it:

- `turns`, `messages`, `conversations` or another list of turns; a bare list of them; a `history` with a
  `response`. Turns have `speaker` and `text`, `role` and `content`, `from` and `value`, `s` and `t`, or `spk`
  and `text`.
- a `dialogue` that is such a row, beside what else is known, as `palaver collect conversations` writes.
- one turn a row: `dialogue, speaker, text`, the rows of a dialogue together; or `text` with `labels` as in
  ParlAI, up to the row that says `episode_done`.

Further fields become labels; `palaver.readers.shapes.FIELDS` are those that have one name afterwards. What
`write_dialogues` writes is read back to equal values from each format:

- JSON lines: one `Dialogue` a line, fields left out where they have their default.
- CSV: one turn a row, `dialogue, turn, speaker, text, knowledge, labels, source, about`. `turn` counts from
  1. `knowledge` holds ids joined by | (or a JSON list, where an id is empty or holds a | itself), `labels` a
  JSON object. What belongs to the whole dialogue stands in its first row, in `about`: a JSON object with
  `labels`, `knowledge`, and `speakers` where the turns do not say them. A dialogue without turns is a row
  without a turn number.
- Parquet: one dialogue a row, in types that Hugging Face `datasets` and others can read; `turns` is a list of
  `{speaker, text, knowledge, labels}`. Labels and the dialogue's knowledge are JSON text.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from palaver.errors import DataError, check_kind, nearest
from palaver.files import format_by_name, write_atomically
from palaver.readers.dialogue_exports import dialogue_rows
from palaver.readers.rows import RowReader, file_stem
from palaver.readers.shapes import (
    ID_KEYS,
    PROMPT,
    Tally,
    as_name,
    first_of,
    is_turn,
    is_turns,
    json_list,
    labels_of,
    take_prompt,
    turn_list,
    turns_of,
    unpack,
)
from palaver.readers.turn_rows import (
    Draft,
    add_exchange,
    add_turn,
    is_exchange,
    is_internal,
    is_turn_row,
    with_plain_names,
    write_csv,
)
from palaver.schema import Dialogue
from palaver.schema.response import SYSTEM

EXPECTED = (
    'expected one dialogue a row: {"id": "d1", "turns": [{"speaker": "user", "text": "Hi."}, …]}\n'
    "or one turn a row: dialogue, speaker, text (--column FIELD=NAME for other names)"
)
_OWN = frozenset(Dialogue.model_fields)
_HISTORY_KEYS = ("history", "context", "prompt")
_BATCH = 1000
"""Dialogues in a row group of Parquet, which is what `datasets` writes as well."""
_REPEATED = "dialogues with the id of an earlier one"

Fields = dict[str, Any]


class DialogueReader(RowReader, Iterable[Dialogue]):
    """Dialogues one by one, as often as it is gone through.

    A row that is no dialogue is an error after the last row, which lists ten; with `skip_bad` it is left out.
    """

    noun = "dialogue"
    expected = EXPECTED

    def __init__(
        self, path: str | Path, columns: Mapping[str, str] | None = None, *, skip_bad: bool = False
    ) -> None:
        super().__init__(path, columns)
        self.skip_bad = skip_bad

    def _start(self) -> None:
        super()._start()
        self.n_dialogues = 0
        self._ids: set[str] = set()
        self._keys: set[tuple[str, str]] = set()
        """Of dialogues whose turns are rows without numbers: id and source."""

    def __iter__(self) -> Iterator[Dialogue]:
        return (dialogue for _, dialogue in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Dialogue]]:
        """Each dialogue with the number of its (first) row; `file.word` is what the number counts."""
        self._start()
        for draft in self._drafts():
            dialogue = self._build(draft)
            if dialogue is None:
                if self._is_hopeless(self.n_dialogues):
                    break
                continue
            if draft.key in self._keys:
                goes_on = (
                    f"dialogue {dialogue.id!r} goes on here, after another one: sort the rows by dialogue"
                )
                self._mistake(draft.places[0], goes_on, None)
                continue
            if draft.key is not None and not draft.is_numbered:
                self._keys.add(draft.key)
            self.n_dialogues += 1
            if dialogue.id in self._ids:
                self._tally[_REPEATED] += 1
            self._ids.add(dialogue.id)
            self._tally["turns without text"] += sum(not turn.text.strip() for turn in dialogue.turns)
            yield draft.places[0], dialogue
        if self.problems and not self.skip_bad:
            raise self.error()
        if not self.n_dialogues and not self.problems:
            raise DataError(f"{self.path}: there is no dialogue in it", EXPECTED)

    @property
    def tally(self) -> Tally:
        return super().tally + Tally({"rows that are no dialogues": len(self.problems)})

    def _build(self, draft: Draft) -> Dialogue | None:
        fields = draft.fields
        try:
            if fields is draft.row:
                with contextlib.suppress(ValidationError):  # then it is another shape, or wrong
                    return Dialogue.model_validate(fields)
                fields = self._fields(fields)
            if fields.get("id") is None:
                self._tally["dialogues without an id, named after file and place"] += 1
                fields = {**fields, "id": f"{file_stem(self.path)}:{draft.places[0]}"}
            return Dialogue.model_validate(fields)
        except ValidationError as error:
            self._mistakes(error, draft.row or draft.fields, draft.place_of)
        except ValueError as error:
            self._mistake(draft.places[0], str(error), draft.row)
        return None

    def _drafts(self) -> Iterator[Draft]:
        """Dialogues as plain values, put together from their rows, which stand together."""
        current: Draft | None = None
        for number, row in self._rows():
            try:
                row = _opened(row)
                if is_turn_row(row):
                    if is_internal(row):
                        self._tally["internal notes of a help desk, left out"] += 1
                        continue
                    draft = add_turn(current, number, row)
                elif is_exchange(row):
                    draft = add_exchange(current, number, row, self._tally)
                else:
                    fields = row if _looks_ours(row) else self._fields(row)
                    draft = Draft([number], fields, is_whole=True, row=row)
            except ValueError as error:
                self._mistake(number, str(error), row)
                continue
            if current is not None and current is not draft:
                yield current.closed(self._tally)
            current = draft
        if current is not None:
            yield current.closed(self._tally)

    def _rows(self) -> Iterator[tuple[int, Any]]:
        """The rows of the file, with those of other tools taken apart; an array of turns is one row."""
        battles: dict[str, int] = {}
        for number, row in self._entries():
            if self.file.format == "csv":
                row = with_plain_names(row)
            name = f"{file_stem(self.path)}:{number}"
            dialogues = dialogue_rows(row, name, self._tally, battles)
            if dialogues is None:
                yield number, row
            else:
                yield from ((number, dialogue) for dialogue in dialogues)

    def _entries(self) -> Iterator[tuple[int, Any]]:
        rows = self.file.rows()
        if self.file.word != "entry":
            yield from rows
            return
        first = next(rows, None)
        if first is None:
            return
        if is_turn(first[1]) and not is_turn_row(first[1]):
            yield 1, [first[1], *(row for _, row in rows)]
            return
        yield first
        yield from rows

    def _fields(self, row: Any) -> Fields:
        """The plain values of a `Dialogue` from a row that holds a whole one."""
        if is_turns(row):
            row = {"turns": row}
        if not isinstance(row, dict):
            raise ValueError(f"expected an object or a list of turns, found {type(row).__name__}")
        if self.file.format == "csv":
            row = {key: cell for key, cell in row.items() if cell != ""}
        row = _unpacked(row)
        name = turn_list(row)
        response = row.get("response") if name != "turns" else None
        if response is not None:
            name = first_of(row, _HISTORY_KEYS) or name
        if name is None:
            names = ", ".join(map(str, list(row)[:12])) or "nothing"
            raise ValueError(f"there are no turns{nearest('turns', list(row))}; found {names}")
        turns = turns_of(row[name], self._tally)
        taken = {name, "knowledge", "speakers", "source"}
        turns, prompt = take_prompt(row[name], turns, self._tally)
        if response is not None and isinstance(turns, list):
            turns = [*turns, {"speaker": _answerer(turns), "text": response}]
            taken.add("response")
        fields: Fields = {"turns": turns}
        id_key = first_of(row, ID_KEYS)
        if id_key is not None:
            fields["id"] = as_name(row[id_key])
            taken.add(id_key)
        source = first_of(row, ("source", "src"))
        if source is not None:
            fields["source"] = row[source]
            taken.add(source)
        if isinstance(row.get("speakers"), list) and name == "turns":
            fields["speakers"] = row["speakers"]
        knowledge = row.get("knowledge")
        if isinstance(knowledge, list) and all(isinstance(part, dict) for part in knowledge):
            fields["knowledge"] = knowledge
        elif knowledge is not None:
            taken.discard("knowledge")
        labels = row.get("labels")
        if labels is not None and not isinstance(labels, dict):
            fields["labels"] = labels  # the check of the noun says what is wrong
            return fields
        fields["labels"] = labels_of(row, taken)
        if prompt is not None:
            self._tally[f"instructions to a chat model, kept as the label {PROMPT!r}"] += 1
            fields["labels"].setdefault(PROMPT, prompt)
        return fields


def _looks_ours(row: Any) -> bool:
    """Whether the check of the noun can be asked at once, by the look of the first turn."""
    if not isinstance(row, dict) or not row.keys() <= _OWN or not isinstance(row.get("turns"), list):
        return False
    return not row["turns"] or (isinstance(row["turns"][0], dict) and "text" in row["turns"][0])


def _opened(row: Any) -> Any:
    """The dialogue in a row that holds it whole beside other fields, as collected conversations do."""
    inner = row.get("dialogue") if isinstance(row, dict) else None
    return inner if isinstance(inner, dict) else row


def _unpacked(row: Fields) -> Fields:
    """With lists and objects in place of their JSON text, which is how tables hold them."""
    row = dict(row)
    for name, value in row.items():
        if not isinstance(value, str):
            continue
        if name in ("labels", "turns", "speakers"):
            row[name] = unpack(value, name)
            continue
        inner = json_list(value)
        if inner is not None and (name == "knowledge" or (inner and turn_list({name: inner}))):
            row[name] = inner
    return row


def _answerer(turns: Sequence[Any]) -> str:
    """Who gave a response: whoever did not speak last."""
    names = [turn["speaker"] for turn in turns if isinstance(turn, dict) and "speaker" in turn]
    others = [name for name in reversed(names) if name != names[-1]]
    return others[0] if others else SYSTEM


def read_dialogues(
    path: str | Path, *, columns: Mapping[str, str] | None = None, skip_bad: bool = False
) -> DialogueReader:
    """The dialogues of a file. `columns` are field -> name in the file, for names that are not known."""
    return DialogueReader(path, columns, skip_bad=skip_bad)


def write_dialogues(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Write dialogues in the format the name's ending says; how many there were."""
    path = Path(path)
    kind = format_by_name(path)
    dialogues = map(_checked, dialogues)
    with write_atomically(path, "wb" if kind == "parquet" else "w") as file:
        if kind == "parquet":
            count = _write_parquet(dialogues, file)
        elif kind == "csv":
            count = write_csv(dialogues, file, "\t" if ".tsv" in path.suffixes else ",")
        else:
            count = 0
            for count, dialogue in enumerate(dialogues, start=1):  # noqa: B007
                file.write(dialogue.model_dump_json(exclude_defaults=True) + "\n")
        if not count:
            raise DataError(f"there are no dialogues to write to {path}")
    return count


def _checked(dialogue: Dialogue) -> Dialogue:
    check_kind(dialogue, Dialogue, "dialogues")
    return dialogue


def _write_parquet(dialogues: Iterable[Dialogue], file: IO[bytes]) -> int:
    """Write the dialogues batch by batch; how many there were."""
    import polars as pl

    from palaver.tables import write_parquet

    text, texts = pl.String(), pl.List(pl.String)
    turn = pl.Struct({"speaker": text, "text": text, "knowledge": texts, "labels": text})
    own = {"id": text, "turns": pl.List(turn), "speakers": texts}
    schema = {**own, "source": text, "knowledge": text, "labels": text}
    left = iter(dialogues)

    def frames() -> Iterator[pl.DataFrame]:
        while batch := [_parquet_row(dialogue) for dialogue in islice(left, _BATCH)]:
            yield pl.DataFrame(batch, schema=schema)

    return write_parquet(frames(), file)


def _parquet_row(dialogue: Dialogue) -> dict[str, Any]:
    row = dialogue.model_dump(mode="json")
    if dialogue.knowledge is not None:
        row["knowledge"] = json.dumps(row["knowledge"], ensure_ascii=False)
    row["labels"] = json.dumps(row["labels"], ensure_ascii=False)
    for turn in row["turns"]:
        turn["labels"] = json.dumps(turn["labels"], ensure_ascii=False)
    return row
