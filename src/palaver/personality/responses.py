"""Pools from generated responses: the rows of `palaver generate` (id, speaker or ocean, response).

The group of a response is the context that it answers. Rows are read and counted in shards: the texts of
millions of responses are never held at once, and worker processes share the reading.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from palaver.engine import map_shards
from palaver.errors import DataError
from palaver.generation.common import common_responses
from palaver.personality.bag import Bag
from palaver.personality.pools import Choice, Pools, choose_characters
from palaver.personality.utterances import UtteranceShard, build_pools, count_texts
from palaver.progress import Progress
from palaver.readers import responses
from palaver.readers.responses import ResponseTable, Shard

PROBE = 100_000
"""Responses among which the most frequent words are looked for."""


def read_responses(
    path: Path,
    recogniser: Any,
    choice: Choice,
    *,
    source: str,
    n_words: int = 200,
    workers: int = 0,
    tell: Progress | None = None,
) -> Pools:
    """The responses of one system as each character."""
    size = path.stat().st_size
    table = ResponseTable.open(path)

    def progress(done: int) -> None:
        if tell is not None:
            tell("counting responses", done, size)

    drop: frozenset[str] = frozenset()
    notes: list[str] = []
    if choice.drop_common:
        common = common_responses(_pairs(table, choice), choice.drop_common)
        drop = frozenset(text for text, _ in common)
        if len(common) < choice.drop_common:
            notes.append(
                f"{len(common)} responses are common to all, {choice.drop_common} were to be dropped"
            )
    bag = None
    if n_words:
        texts = _first_texts(table)
        bag = Bag((text for text in texts if text is not None and text not in drop), n_words)
        if len(texts) == PROBE:
            notes.append(f"the most frequent words are those of the first {PROBE:,} responses")
    shards = map_shards(
        partial(_count, table=table, choice=choice, drop=drop, recogniser=recogniser, bag=bag),
        table.shards(progress),
        workers=workers,
        backend="processes" if size > 2 * responses.SHARD else "serial",
        name=lambda _, shard: f"the rows of {path} from {shard.first:,} on",
    )
    total = _Total()
    for shard in shards:
        total.add(shard)
    total.check(path, choice)
    chosen, spelled = choose_characters(total.counts, choice.characters, source=source)
    if not total.has_ids:
        notes.append("the rows have no id, so each response is a group of its own")
    others = sum(n for name, n in total.counts.items() if name not in chosen)
    return build_pools(
        total.counted,
        recogniser,
        bag,
        characters=chosen,
        label=total.labels(chosen),
        groups=np.concatenate(total.groups),
        group_noun="context" if total.has_ids else "response",
        source=source,
        path=path,
        left_out={**total.left_out, "responses of others": others},
        notes=(*notes, *spelled),
    )


def _first_texts(table: ResponseTable) -> list[str | None]:
    texts: list[str | None] = []
    for shard in table.shards():
        texts += table.read(shard, ("response",))["response"].to_pylist()
        if len(texts) >= PROBE:
            break
    return texts[:PROBE]


def _pairs(table: ResponseTable, choice: Choice) -> Iterator[tuple[str, str]]:
    """Who, and what: for finding the responses common to all in the file, also those not looked at."""
    for shard in table.shards():
        columns = _columns(table, shard, choice)
        names = [columns[name].to_pylist() for name in ("who", "system", "response")]
        for who, system, text in zip(*names, strict=True):
            if who is not None and choice.system in (None, system) and text is not None:
                yield choice.rename.get(who, who), text


def _columns(table: ResponseTable, shard: Shard, choice: Choice) -> Any:
    """Columns who, response, id and system. The speaker says who, or the personality where none is named."""
    import pyarrow.compute as pc

    fields = dict.fromkeys((choice.by, "response", "id", "system"))
    columns = table.read(shard, tuple(fields))
    who = _without_empty(columns[choice.by])
    if choice.by == "speaker" and who.null_count:
        columns = table.read(shard, (*fields, "ocean"))
        who = pc.coalesce(_without_empty(columns["speaker"]), _without_empty(columns["ocean"]))
    return columns.append_column("who", who)


def _without_empty(column: Any) -> Any:
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(column, ""), None, column)


@dataclass
class _Part:
    """A shard of responses, counted."""

    names: list[str]
    label: Any
    group: Any
    counted: UtteranceShard
    left_out: Counter[str]
    systems: set[str]
    has_ids: bool


def _count(
    shard: Shard, table: ResponseTable, choice: Choice, drop: frozenset[str], recogniser: Any, bag: Bag | None
) -> _Part:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = _columns(table, shard, choice)
    systems = {name for name in pc.unique(rows["system"]).to_pylist() if name is not None}
    left: Counter[str] = Counter()

    def keep(rows: Any, wanted: Any, reason: str) -> Any:
        kept = rows.filter(wanted)
        left[reason] += rows.num_rows - kept.num_rows
        return kept

    if choice.system is not None:
        other = f"responses of other systems than {choice.system}"
        rows = keep(rows, pc.equal(rows["system"], choice.system), other)
    rows = keep(rows, pc.is_valid(rows["who"]), f"responses without {choice.by!r}")
    has_words = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(rows["response"]), ""), False)
    rows = keep(rows, has_words, "empty responses")
    if drop:
        common = pc.is_in(rows["response"], value_set=pa.array(sorted(drop), pa.string()))
        reason = f"responses among the {len(drop)} most frequent ones common to all"
        rows = keep(rows, pc.invert(common), reason)
    names, label = _encoded(rows["who"])
    ids, place = _encoded(rows["id"])
    has_ids = any(name is not None for name in ids)
    codes = np.array([_code(name) for name in ids], dtype=np.int64)[place] if ids else np.zeros(0, np.int64)
    group = np.where(codes >= 0, codes, shard.first + np.arange(codes.size))  # without an id, by itself
    counted = count_texts(rows["response"].to_pylist(), recogniser, bag)
    characters = [choice.rename.get(str(name), str(name)) for name in names]
    return _Part(characters, label, group, counted, left, systems, has_ids)


def _encoded(column: Any) -> tuple[list[str | None], Any]:
    """The different values of a column, and the number of the value in each row."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return coded.dictionary.to_pylist(), np.asarray(coded.indices, dtype=np.int32)


def _code(name: str | None) -> int:
    """A number for an id, the same in every shard; -1 for none."""
    if name is None:
        return -1
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest())


class _Total:
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

    def add(self, part: _Part) -> None:
        place = [self._number.setdefault(name, len(self._number)) for name in part.names]
        self._labels.append(np.array(place, dtype=np.int32)[part.label])
        self.groups.append(part.group)
        self.counted.append(part.counted)
        n_each = np.bincount(part.label, minlength=len(part.names)).tolist()
        for name, n in zip(part.names, n_each, strict=True):  # two names may have become one
            self.counts[name] += n
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
