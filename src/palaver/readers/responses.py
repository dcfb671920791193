"""The one reader of responses: what `palaver generate` writes, and tables that others make.

- One response a row: `system` (or `model`), `context` (or `prompt`, `history`), `response` (or `output`,
  `answer`, `reply`), and what else a `Response` has. JSON lines, a JSON array, CSV or Parquet.
- One context a row and one column a system: every column that is not an id, a context, a reference or
  knowledge is a system.

Responses are unique by (`id`, `system`, `speaker`). Rows without an id share one where their contexts are
equal. For files of millions of rows `ResponseTable` gives Arrow columns, shard by shard.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from palaver.errors import DataError, nearest
from palaver.files import TextStream
from palaver.readers.dialogue_exports import dialogue_rows
from palaver.readers.rows import FirstRows, Problems, RowFile, RowReader, file_stem
from palaver.readers.shapes import (
    FIELDS,
    PROMPT,
    Tally,
    as_name,
    first_of,
    holds_ratings,
    json_list,
    labels_of,
    other_file,
    take_prompt,
    turn_list,
    turns_of,
    unpack,
)
from palaver.readers.turn_rows import is_exchange, is_turn_row
from palaver.schema.response import Response

if TYPE_CHECKING:
    import polars as pl

NAMES = {
    "id": ("id", "context_id", "prompt_id", "question_id", "dialogue_id", "conversation_id", "item"),
    "system": ("system", "model", "bot", "system_id", "model_id"),
    "context": ("context", "prompt", "history", "question", "input", "messages", "instruction"),
    "response": ("response", "output", "answer", "reply", "completion"),
    "reference": ("reference", "references", "target", "gold"),
    "knowledge": ("knowledge", "fact"),
    "speaker": ("speaker",),
    "ocean": ("ocean",),
    "logprob": ("logprob",),
}
"""The fields of a response and the names they come under; the first present one counts."""

EXPECTED = (
    'expected one response a row: {"id": "c1", "system": "A", "context": "Hi.", "response": "Hello!"}\n'
    "or one column a system: context, A, B (--column FIELD=NAME for other names)"
)
REPEATED = "responses that are there already"
_NO_SYSTEMS = frozenset(name for names in (*NAMES.values(), *FIELDS.values()) for name in names)
_NO_SYSTEMS |= {"labels", "split", "source", "topic", "category", "domain", "language", "dataset"}
SHARD = 1 << 25
"""Bytes of a file that are read at a time."""
_ROWS = 50_000
"""Rows of a table that are read at a time."""
_LOOK = 100
"""Rows that are looked at to tell what a file holds."""

Fields = dict[str, Any]


class ResponseReader(RowReader, Iterable[Response]):
    """Responses one by one, as often as it is gone through.

    A row that is no response, or one that is there already, is an error after the last row, which lists ten;
    with `skip_repeats` a response that is there already is left out and counted.
    """

    noun = "response"
    expected = EXPECTED

    def __init__(
        self, path: str | Path, columns: Mapping[str, str] | None = None, *, skip_repeats: bool = False
    ) -> None:
        _check_fields(columns or {})
        super().__init__(path, columns)
        self.skip_repeats = skip_repeats
        self.systems_in_columns = system_columns(_sample(self.file))
        """Where each system has a column of its own: these."""

    def _start(self) -> None:
        super()._start()
        self.n_responses = 0
        self._first_rows = FirstRows()
        self._contexts: dict[bytes, str] = {}
        self._repeats: Tally = Tally()

    def __iter__(self) -> Iterator[Response]:
        self._start()
        for number, row in self.file.rows():
            for fields in self._fields(number, row):
                response = self._build(number, fields, row)
                if response is not None:
                    self.n_responses += 1
                    yield response
            if self._is_hopeless(self.n_responses):
                break
        if self.problems:
            raise self.error()
        if not self.n_responses:
            raise DataError(f"{self.path}: there is no response in it", EXPECTED)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the file."""
        if not self.systems_in_columns:
            return super().notes
        return (*super().notes, f"each of these columns is a system: {', '.join(self.systems_in_columns)}")

    def _fields(self, number: int, row: Any) -> Iterator[Fields]:
        """The plain values of the responses in a row."""
        if not isinstance(row, dict):
            self._mistake(number, f"expected an object, found {type(row).__name__}", row)
            return
        if self.file.format == "csv":  # an empty response is one; any other empty cell says nothing
            row = {name: cell for name, cell in row.items() if cell != "" or name in NAMES["response"]}
        try:
            if not self.systems_in_columns:
                yield _canonical(row, self._tally)
                return
            rest = {name: value for name, value in row.items() if name not in self.systems_in_columns}
            shared = _canonical({**rest, "response": ""}, self._tally)
            for system in self.systems_in_columns:
                cell = row.get(system)
                yield {**shared, "system": system, "response": None if cell == "" else cell}
        except ValueError as error:
            self._mistake(number, str(error), row)

    def _build(self, number: int, fields: Fields, row: Fields) -> Response | None:
        if "response" not in fields:
            close = nearest("response", list(row))
            self._mistake(number, f"there is no 'response'{close}", row)
            return None
        if fields.get("system") is None:
            fields["system"] = file_stem(self.path)
            self._tally[f"responses that name no system, taken as {fields['system']!r}"] += 1
        if fields.get("id") is None:
            fields["id"] = self._made_id(number, fields)
        try:
            response = Response.model_validate(fields)
        except ValidationError as error:
            self._mistakes(error, row, lambda _: number)
            return None
        key = (response.id, response.system, response.speaker)
        first = self._first_rows.of(hash(key), number)
        if first != number and self.skip_repeats:
            self._tally[REPEATED] += 1
            return None
        if first != number:
            who = f" as {response.speaker!r}" if response.speaker else ""
            answers = f"{response.system!r} answers {response.id!r}{who}"
            self._mistake(number, f"{answers} already in {self.file.word} {first}", row)
            return None
        return response

    def _made_id(self, number: int, fields: Fields) -> str:
        """One id for equal contexts, another where the same system answers the same context again."""
        self._tally["responses without an id, which is made of file and place"] += 1
        made = f"{file_stem(self.path)}:{number}"
        if not fields.get("context"):
            return made
        digest = hashlib.blake2b(json.dumps(fields["context"], default=str).encode(), digest_size=12).digest()
        made = self._contexts.setdefault(digest, made)
        answer = str((made, fields["system"], fields.get("speaker")))
        self._repeats[answer] += 1
        return made if self._repeats[answer] == 1 else f"{made}#{self._repeats[answer]}"


def _canonical(row: Fields, tally: Tally) -> Fields:
    """A row as the plain values of a `Response`."""
    names = {name: first_of(row, known) for name, known in NAMES.items()}
    if "response" in row:  # be it with nothing in it: a system that gave no reply
        names["response"] = "response"
    names["context"] = names["context"] or turn_list(row)
    values = {field: row[name] for field, name in names.items() if name is not None}
    fields: Fields = {
        field: as_name(values[field]) for field in ("id", "system", "speaker") if field in values
    }
    fields |= {field: values[field] for field in ("response", "logprob") if field in values}
    while isinstance(fields.get("response"), list) and len(fields["response"]) == 1:
        (fields["response"],) = fields["response"]  # lm-eval lists what it asked for once
    prompt = None
    if "context" in values:
        source = _unpacked(values["context"])
        turns = turns_of(source, tally)
        fields["context"], prompt = take_prompt(source, turns, tally)
    if "reference" in values:
        fields["reference"] = _unpacked(values["reference"])
    if "knowledge" in values:
        knowledge = _unpacked(values["knowledge"])
        is_list = isinstance(knowledge, list) and all(isinstance(part, str) for part in knowledge)
        fields["knowledge"] = "\n".join(knowledge) if is_list else knowledge
    if "ocean" in values:
        fields["ocean"] = _scores(values["ocean"])
    labels = unpack(row.get("labels"), "labels")
    taken = {name for name in names.values() if name is not None}
    fields["labels"] = labels_of({**row, "labels": labels}, taken)
    if labels is not None and not isinstance(labels, dict):
        fields["labels"] = labels  # the check of the noun says what is wrong
    elif prompt is not None:
        fields["labels"].setdefault(PROMPT, prompt)
    return fields


def _unpacked(cell: Any) -> Any:
    """The list in a cell of JSON text, unless it is one of numbers; any other cell is what it is."""
    values = json_list(cell)
    return values if values and not isinstance(values[0], int | float) else cell


def _scores(value: Any) -> Any:
    """Five numbers, of which a table has only the text."""
    if not isinstance(value, str):
        return value
    return [float(part) for part in re.split(r"[\s,;|]+", value.strip(" []()")) if part]


def _sample(file: RowFile) -> list[Fields]:
    """The first rows, to tell what the file holds."""
    rows = [row for _, row in islice(file.rows(), _LOOK) if isinstance(row, dict)]
    file.problems = Problems()
    if rows and all(holds_ratings(row, NAMES["response"]) for row in rows):
        raise DataError(f"{file.path} holds neither responses nor dialogues", other_file(rows[0]))
    return rows


def _check_fields(columns: Mapping[str, str]) -> None:
    """Names that are not in `NAMES` are labels or systems, but one that is nearly there is a slip."""
    for name in columns:
        close = difflib.get_close_matches(name, list(NAMES), n=1, cutoff=0.85)
        if close and name not in _NO_SYSTEMS and not name.startswith(close[0]):  # system1 may be meant
            raise DataError(
                f"a response has no field {name!r} (did you mean {close[0]!r}?)", f"known: {', '.join(NAMES)}"
            )


def system_columns(rows: Sequence[Fields]) -> tuple[str, ...]:
    """The columns that are systems, where each system has one; none where a row is one response."""
    keys = dict.fromkeys(name for row in rows for name in row)
    if any(name in keys for name in NAMES["response"]):
        return ()
    if any(is_turn_row(row) or is_exchange(row) or isinstance(row.get("turns"), list) for row in rows):
        return ()
    if any(isinstance(row.get("chosen"), str) and "rejected" in row for row in rows):
        return ("chosen", "rejected")
    contexts = [name for name in NAMES["context"] if name in keys and name != "messages"]
    if not contexts:
        return ()
    return tuple(
        name
        for name in keys
        if name not in _NO_SYSTEMS and all(isinstance(row.get(name), str | None) for row in rows)
    )


def is_responses(path: str | Path, columns: Mapping[str, str] | None = None) -> bool:
    """Whether a file holds responses; otherwise it may hold dialogues."""
    rows = _sample(RowFile(path, columns))
    keys = dict.fromkeys(name for row in rows for name in row)
    if any(isinstance(row.get("turns"), list) for row in rows):
        return False
    if rows and dialogue_rows(rows[0], "", Tally()) is not None:
        return False
    if "response" in keys or system_columns(rows):
        return True
    others = any(name in keys for field in ("system", "context") for name in NAMES[field])
    return others and any(name in keys for name in NAMES["response"])


def read_responses(
    path: str | Path, *, columns: Mapping[str, str] | None = None, skip_repeats: bool = False
) -> ResponseReader:
    """The responses of a file. `columns` are field -> name in the file, for names that are not known."""
    return ResponseReader(path, columns, skip_repeats=skip_repeats)


# --- files of millions of rows ---------------------------------------------------------------------------


class Shard(NamedTuple):
    """A part of a file, not parsed yet where it is lines of JSON."""

    first: int
    """The number of its first row."""
    content: bytes | list[Any]


@dataclass(frozen=True)
class ResponseTable:
    """The responses of a file as columns of text. It and its shards can be sent to worker processes."""

    path: Path
    names: Mapping[str, str]
    """Field -> its name in the file."""
    systems_in_columns: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: str | Path, columns: Mapping[str, str] | None = None) -> ResponseTable:
        _check_fields(columns or {})
        rows = _sample(RowFile(path, columns))
        keys = dict.fromkeys(name for row in rows for name in row)
        names = {field: next((n for n in known if n in keys), field) for field, known in NAMES.items()}
        if names["id"] not in keys and names["context"] in keys:
            names["id"] = names["context"]  # what answers one context belongs together
        return cls(Path(path), {**names, **(columns or {})}, system_columns(rows))

    def shards(self, progress: Callable[[int], None] | None = None) -> Iterator[Shard]:
        """Lines of JSON as bytes, which a worker parses; rows of other files. Told the bytes consumed."""
        file = RowFile(self.path)
        if file.word != "line":
            rows = file.rows()
            while part := list(islice(rows, _ROWS)):
                yield Shard(part[0][0], [row for _, row in part])
            return
        first, rest = 1, b""
        with TextStream(self.path) as stream:
            while block := stream.read(SHARD):
                cut = block.rfind(b"\n") + 1
                if cut:
                    lines = rest + block[:cut]
                    yield Shard(first, lines)
                    first += lines.count(b"\n")
                    rest = b""
                rest += block[cut:]
                if progress is not None:
                    progress(stream.consumed())
        if rest.strip():
            yield Shard(first, rest)

    def read(self, shard: Shard, fields: Sequence[str]) -> pl.DataFrame:
        """Columns of text. Numbers become text, lists of them are joined by commas."""
        import polars as pl

        frame = self._plain_columns(shard, fields)
        if frame is not None:
            return frame
        rows = [part for row in self._rows(shard) for part in self._responses(row)]
        columns = {name: [_as_text(row.get(name)) for row in rows] for name in fields}
        return pl.DataFrame(columns, dict.fromkeys(fields, pl.String))

    def _plain_columns(self, shard: Shard, fields: Sequence[str]) -> pl.DataFrame | None:
        """Polars reads lines as `palaver generate` writes them; None for whatever is odd."""
        import polars as pl

        content = shard.content
        if isinstance(content, list) or self.systems_in_columns:
            return None
        names = {name: self.names.get(name, name) for name in fields}
        wanted = b"|".join(re.escape(name.encode()) for name in names.values())
        if re.search(rb'"(?:%s)"\s*:\s*[^"n\s]' % wanted, content):
            return None  # numbers and lists, which polars would write in its own way
        try:
            frame = pl.read_ndjson(content, schema=dict.fromkeys(names.values(), pl.String))
        except pl.exceptions.PolarsError:  # no JSON, or rows that are no objects
            return None
        return frame.select(pl.col(column).alias(name) for name, column in names.items())

    def _rows(self, shard: Shard) -> Iterator[Fields]:
        is_text = isinstance(shard.content, bytes)
        values: Sequence[Any] = (
            shard.content.split(b"\n") if isinstance(shard.content, bytes) else shard.content
        )
        for number, value in enumerate(values, start=shard.first):
            if is_text and not value.strip():
                continue
            place = f"{self.path}, {'line' if is_text else 'row'} {number}"
            try:
                row = json.loads(value) if is_text else value
            except ValueError as error:
                raise DataError(f"{place}: not JSON: {error}", EXPECTED) from None
            if not isinstance(row, dict):
                raise DataError(f"{place}: expected an object, found {type(row).__name__}", EXPECTED)
            yield row

    def _responses(self, row: Fields) -> Iterator[Fields]:
        known = {field: row[name] for field, name in self.names.items() if name in row}
        if not self.systems_in_columns:
            yield {**row, **known}
        for system in self.systems_in_columns:
            yield {**row, **known, "system": system, "response": row.get(system)}


def _as_text(value: Any) -> str | None:
    if isinstance(value, list):
        return ",".join(f"{part:g}" if isinstance(part, int | float) else str(part) for part in value)
    return None if value is None else str(as_name(value))
