"""Pools from generated responses: the rows of `palaver generate` (id, speaker or ocean, response).

The group of a response is the context that it answers. Rows are read and counted in shards: the texts of
millions of responses are never held at once, and worker processes share the reading.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from palaver.engine import map_shards
from palaver.errors import DataError
from palaver.files import TextStream
from palaver.generation.common import common_responses
from palaver.personality.bag import Bag
from palaver.personality.pools import Choice, Pools, choose_characters
from palaver.personality.utterances import UtteranceShard, build_pools, count_texts
from palaver.tables import open_table

SHARD = 1 << 25
"""Bytes of a file that are read and counted at a time."""
PROBE = 100_000
"""Responses among which the most frequent words are looked for."""

Chunk = tuple[int, bytes | list[dict[str, Any]]]
"""The number of its first row, and whole lines of JSON, or the rows themselves."""


def read_responses(
    path: Path,
    recogniser: Any,
    choice: Choice,
    *,
    source: str,
    n_words: int = 200,
    workers: int = 0,
    tell: Callable[[str, int, int], None] | None = None,
) -> Pools:
    """The responses of one system as each character."""
    size = path.stat().st_size

    def progress(done: int) -> None:
        if tell is not None:
            tell("counting responses", done, size)

    drop: frozenset[str] = frozenset()
    notes: list[str] = []
    if choice.drop_common:
        common = common_responses(_pairs(path, choice), choice.drop_common)
        drop = frozenset(text for text, _ in common)
        if len(common) < choice.drop_common:
            notes.append(
                f"{len(common)} responses are common to all, {choice.drop_common} were to be dropped"
            )
    bag = None
    if n_words:
        texts = [row.get("response") for row in islice(_rows(path), PROBE)]
        bag = Bag((text for text in texts if isinstance(text, str) and text not in drop), n_words)
        if len(texts) == PROBE:
            notes.append(f"the most frequent words are those of the first {PROBE:,} responses")
    shards = map_shards(
        partial(_parse, path=path, choice=choice, drop=drop, recogniser=recogniser, bag=bag),
        _chunks(path, progress),
        workers=workers,
        backend="processes" if size > 2 * SHARD else "serial",
        name=lambda _, chunk: f"the rows of {path} from {chunk[0]:,} on",
    )
    found = _Merged()
    for shard in shards:
        found.add(shard)
    found.check(path, choice)
    chosen, spelled = choose_characters(found.counts, choice.characters, source=source)
    if not found.has_ids:
        notes.append("the rows have no id, so each response is a group of its own")
    others = sum(n for name, n in found.counts.items() if name not in chosen)
    return build_pools(
        found.counted,
        recogniser,
        bag,
        characters=chosen,
        label=found.labels(chosen),
        groups=np.concatenate(found.groups),
        group_noun="context" if found.has_ids else "response",
        source=source,
        path=path,
        left_out={**found.left_out, "responses of others": others},
        notes=(*notes, *spelled),
    )


def _chunks(path: Path, tell: Callable[[int], None] | None = None) -> Iterator[Chunk]:
    """Lines of JSON as bytes, which the workers read; rows of other tables, which are read here."""
    source = open_table(path)
    if source.format != "jsonl":
        for frame in source.frames(tell):
            if frame.height:
                yield int(frame["row"][0]), frame.to_dicts()
        if source.problems:
            problems = [f"row {number}: {text}" for number, text in source.problems]
            raise DataError(f"{path} has rows that cannot be read:", problems=problems)
        return
    first, rest = 1, b""
    with TextStream(path) as stream:
        while block := stream.read(SHARD):
            cut = block.rfind(b"\n") + 1
            if cut:
                lines = rest + block[:cut]
                yield first, lines
                first += lines.count(b"\n")
                rest = b""
            rest += block[cut:]
            if tell is not None:
                tell(stream.consumed())
    if rest.strip():
        yield first, rest


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for chunk in _chunks(path):
        yield from _rows_of(chunk, path)


def _rows_of(chunk: Chunk, path: Path) -> Iterator[dict[str, Any]]:
    first, content = chunk
    if isinstance(content, list):
        yield from content
        return
    for number, line in enumerate(content.split(b"\n"), start=first):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise DataError(f"{path}, line {number}: expected an object, found {type(row).__name__}")
            yield row


def _pairs(path: Path, choice: Choice) -> Iterator[tuple[str, str]]:
    """Who, and what: for finding the responses common to all in the file, also those not looked at."""
    for row in _rows(path):
        who, text = _who(row, choice), row.get("response")
        if who is not None and choice.system in (None, row.get("system")) and isinstance(text, str):
            yield who, text


def _who(row: Mapping[str, Any], choice: Choice) -> str | None:
    """Whose response it is: the speaker's, or the personality's where no speaker is named."""
    who = row.get(choice.by)
    if who is None and choice.by == "speaker":
        who = row.get("ocean")
    if isinstance(who, list):
        who = ",".join(f"{score:g}" for score in who)
    return None if who is None or who == "" else choice.rename.get(str(who), str(who))


def _table(chunk: Chunk, path: Path, choice: Choice) -> Any:
    """Columns who, text, id and system, all of them text."""
    import pyarrow as pa

    columns = _read_plain(chunk, choice)
    if columns is None:
        rows = list(_rows_of(chunk, path))
        columns = {
            "who": [_who(row, choice) for row in rows],
            "text": [row["response"] if isinstance(row.get("response"), str) else None for row in rows],
            "id": [None if row.get("id") is None else str(row["id"]) for row in rows],
            "system": [str(row.get("system")) for row in rows],
        }
    return pa.table(columns, schema=pa.schema({name: pa.string() for name in columns}))


def _read_plain(chunk: Chunk, choice: Choice) -> dict[str, Any] | None:
    """The columns of lines as `palaver generate` writes them, read by Arrow; None for whatever is odd."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json

    content = chunk[1]
    if isinstance(content, list) or choice.rename:
        return None
    wanted = dict.fromkeys((choice.by, "id", "system", "response"), pa.string())
    try:
        table = pa.json.read_json(
            pa.BufferReader(content),
            pa.json.ReadOptions(use_threads=False, block_size=max(1, len(content))),
            pa.json.ParseOptions(pa.schema(wanted), unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:  # no JSON, or numbers where texts were expected
        return None
    who = table[choice.by]
    if who.null_count or pc.any(pc.equal(who, "")).as_py():
        return None
    return {
        "who": who,
        "text": table["response"],
        "id": table["id"],
        "system": pc.fill_null(table["system"], "None"),
    }


@dataclass
class _Parsed:
    """A shard of responses, counted."""

    names: list[str]
    label: Any
    group: Any
    counted: UtteranceShard
    left_out: Counter[str]
    systems: set[str]
    has_ids: bool


def _parse(
    chunk: Chunk, path: Path, choice: Choice, drop: frozenset[str], recogniser: Any, bag: Bag | None
) -> _Parsed:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _table(chunk, path, choice)
    systems = set(pc.unique(table["system"]).to_pylist())
    left: Counter[str] = Counter()

    def keep(table: Any, wanted: Any, reason: str) -> Any:
        kept = table.filter(wanted)
        left[reason] += table.num_rows - kept.num_rows
        return kept

    if choice.system is not None:
        other = f"responses of other systems than {choice.system}"
        table = keep(table, pc.equal(table["system"], choice.system), other)
    table = keep(table, pc.is_valid(table["who"]), f"responses without {choice.by!r}")
    said = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(table["text"]), ""), False)
    table = keep(table, said, "empty responses")
    if drop:
        common = pc.is_in(table["text"], value_set=pa.array(sorted(drop), pa.string()))
        reason = f"responses among the {len(drop)} most frequent ones common to all"
        table = keep(table, pc.invert(common), reason)
    names, label = _encoded(table["who"])
    ids, place = _encoded(table["id"])
    has_ids = any(name is not None for name in ids)
    first = chunk[0]
    codes = np.array([_code(name) for name in ids], dtype=np.int64)[place] if ids else np.zeros(0, np.int64)
    group = np.where(codes >= 0, codes, first + np.arange(codes.size))  # without an id, by itself
    counted = count_texts(table["text"].to_pylist(), recogniser, bag)
    return _Parsed([str(name) for name in names], label, group, counted, left, systems, has_ids)


def _encoded(column: Any) -> tuple[list[str | None], Any]:
    """The different values of a column, and the number of the value in each row."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return coded.dictionary.to_pylist(), np.asarray(coded.indices, dtype=np.int32)


def _code(name: str | None) -> int:
    """A number for an id, the same in every shard; -1 for none."""
    if name is None:
        return -1
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest())


class _Merged:
    """All shards together; a character has one number in all of them."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._labels: list[Any] = []
        self.groups: list[Any] = []
        self.counted: list[UtteranceShard] = []
        self.counts: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.systems: set[str] = set()
        self.has_ids = False

    def add(self, part: _Parsed) -> None:
        place = [self._number.setdefault(name, len(self._number)) for name in part.names]
        self._labels.append(np.array(place, dtype=np.int32)[part.label])
        self.groups.append(part.group)
        self.counted.append(part.counted)
        n_each = np.bincount(part.label, minlength=len(part.names)).tolist()
        self.counts.update(dict(zip(part.names, n_each, strict=True)))
        self.left_out.update(part.left_out)
        self.systems |= part.systems
        self.has_ids |= part.has_ids

    def labels(self, chosen: tuple[str, ...]) -> Any:
        """The place of each response's character among the chosen, -1 for others."""
        place = [chosen.index(name) if name in chosen else -1 for name in self._number]
        return np.array(place, dtype=np.int32)[np.concatenate(self._labels)]

    def check(self, path: Path, choice: Choice) -> None:
        """Something is there to look at, and of one system only."""
        if not self.counts:
            reasons = [f"{reason}: {n:,}" for reason, n in self.left_out.items()]
            hint = f"systems in the file: {', '.join(sorted(self.systems))}" if choice.system else ""
            raise DataError(f"{path}: there is no response to look at", hint, reasons)
        if choice.by != "system" and choice.system is None and len(self.systems) > 1:
            raise DataError(
                f"{path} holds responses of {len(self.systems)} systems: {', '.join(sorted(self.systems))}",
                "choose one with --system, or compare the systems with --by system",
            )
