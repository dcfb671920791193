"""Pools from generated responses: the rows of `palaver generate` (id, speaker or ocean, response).

The group of a response is the context that it answers. Rows are read and counted in shards: the texts of
millions of responses are never held at once, and worker processes share the reading.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from palaver.corpora.personalities import TRAITS
from palaver.engine import Engine, map_shards
from palaver.errors import DataError, nearest
from palaver.generation.common import common_responses
from palaver.personality.bag import Bag
from palaver.personality.pools import Choice, Pools, choose_characters
from palaver.personality.utterances import UtteranceShard, build_pools, count_texts
from palaver.progress import Progress, no_progress
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
    columns: Mapping[str, str] | None = None,
    n_words: int = 200,
    engine: Engine | str = "processes",
    progress: Progress = no_progress,
) -> Pools:
    """The responses of one system as each character."""
    size = path.stat().st_size
    table = ResponseTable.open(path, columns)
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
        table.shards(lambda done: progress("counting responses", done, size)),
        engine=Engine.of(engine).for_work(is_small=size <= 2 * responses.SHARD),
        name=lambda _, shard: f"the rows of {path} from {shard.first:,} on",
    )
    parts = list(shards)
    left_out: Counter[str] = sum((part.left_out for part in parts), Counter())
    systems = sorted({system for part in parts for system in part.systems})
    names, code = _coded(pl.concat([part.who for part in parts]))
    if not names:
        reasons = [f"{reason}: {n:,}" for reason, n in left_out.items()]
        hint = f"systems in the file: {', '.join(systems)}" if choice.system else ""
        if f"responses without {choice.by!r}" in left_out and not hint:
            close = nearest(choice.by, ("speaker", "system"))
            hint = f"--by says what is told apart: speaker, system or another field{close}"
        raise DataError(f"{path}: there is no response to look at", hint, reasons)
    if choice.by != "system" and choice.system is None and len(systems) > 1:
        raise DataError(
            f"{path} holds responses of {len(systems)} systems: {', '.join(systems)}",
            "choose one with --system, or compare the systems with --by system",
        )
    characters = [choice.rename.get(name, name) for name in names]
    counts: Counter[str] = Counter()
    for name, n in zip(characters, np.bincount(code).tolist(), strict=True):  # two names may be one now
        counts[name] += n
    chosen, spelled = choose_characters(counts, choice.characters, source=source)
    place = {name: i for i, name in enumerate(chosen)}
    has_ids = any(part.has_ids for part in parts)
    if not has_ids:
        notes.append("the rows have no id, so each response is a group of its own")
    others = sum(n for name, n in counts.items() if name not in place)
    return build_pools(
        [part.counted for part in parts],
        recogniser,
        bag,
        characters=chosen,
        label=np.array([place.get(name, -1) for name in characters], dtype=np.int32)[code],
        groups=np.concatenate([part.group for part in parts]),
        group_noun="context" if has_ids else "response",
        source=source,
        path=path,
        left_out={**left_out, "responses of others": others},
        notes=(*notes, *spelled),
    )


def requested_scores(
    path: Path, choice: Choice, columns: Mapping[str, str] | None = None
) -> dict[str, tuple[float, ...]]:
    """Who -> the OCEAN scores that were asked for, as the rows have them; each has one personality."""
    table = ResponseTable.open(path, columns)
    asked: dict[str, set[str]] = {}
    for shard in table.shards():
        names = table.read(shard, ("speaker", "ocean", "system"))
        for speaker, ocean, system in set(names.iter_rows()):
            if ocean and choice.system in (None, system):
                name = speaker or ocean
                asked.setdefault(choice.rename.get(name, name), set()).add(ocean)
    unclear = [f"{name}: {'; '.join(sorted(scores))}" for name, scores in asked.items() if len(scores) > 1]
    if unclear:
        raise DataError(f"{path}: a speaker was asked for with different scores", problems=unclear)
    if not asked:
        raise DataError(
            f"{path}: no row says which personality was asked for (ocean)",
            "palaver generate --ocean-table writes it; or name the table with --table",
        )
    return {name: _five_scores(name, next(iter(scores)), path) for name, scores in asked.items()}


def _five_scores(name: str, text: str, path: Path) -> tuple[float, ...]:
    try:
        scores = tuple(float(part) for part in text.split(","))
    except ValueError:
        scores = ()
    if len(scores) != len(TRAITS):
        raise DataError(f"{path}: the personality of {name}: expected five numbers, found {text!r}")
    return scores


def _first_texts(table: ResponseTable) -> list[str | None]:
    texts: list[str | None] = []
    for shard in table.shards():
        texts += table.read(shard, ("response",))["response"].to_list()
        if len(texts) >= PROBE:
            break
    return texts[:PROBE]


def _pairs(table: ResponseTable, choice: Choice) -> Iterator[tuple[str, str]]:
    """Who, and what: for finding the responses common to all in the file, also those not looked at."""
    for shard in table.shards():
        rows = _columns(table, shard, choice).select("who", "system", "response")
        for who, system, text in rows.iter_rows():
            if who is not None and choice.system in (None, system) and text is not None:
                yield choice.rename.get(who, who), text


def _columns(table: ResponseTable, shard: Shard, choice: Choice) -> pl.DataFrame:
    """Columns who, response, id and system. The speaker says who, or the personality where none is named."""
    fields = dict.fromkeys((choice.by, "response", "id", "system"))
    rows = table.read(shard, tuple(fields))
    who = _without_empty(choice.by)
    if choice.by == "speaker" and rows.select(who).to_series().null_count():
        rows = table.read(shard, (*fields, "ocean"))
        who = pl.coalesce(who, _without_empty("ocean"))
    return rows.with_columns(who.alias("who"))


def _without_empty(column: str) -> pl.Expr:
    return pl.col(column).replace("", None)


@dataclass
class _Part:
    """A shard of responses, counted."""

    who: pl.Series
    """Whose each response is."""
    group: Any
    counted: UtteranceShard
    left_out: Counter[str]
    systems: set[str]
    has_ids: bool


def _count(
    shard: Shard, table: ResponseTable, choice: Choice, drop: frozenset[str], recogniser: Any, bag: Bag | None
) -> _Part:
    rows = _columns(table, shard, choice)
    systems = set(rows["system"].drop_nulls().unique())
    left: Counter[str] = Counter()

    def keep(rows: pl.DataFrame, wanted: pl.Expr, reason: str) -> pl.DataFrame:
        kept = rows.filter(wanted)
        left[reason] += rows.height - kept.height
        return kept

    if choice.system is not None:
        other = f"responses of other systems than {choice.system}"
        rows = keep(rows, pl.col("system") == choice.system, other)
    rows = keep(rows, pl.col("who").is_not_null(), f"responses without {choice.by!r}")
    rows = keep(rows, pl.col("response").str.strip_chars() != "", "empty responses")
    if drop:
        reason = f"responses among the {len(drop)} most frequent ones common to all"
        rows = keep(rows, ~pl.col("response").is_in(sorted(drop)), reason)
    ids, place = _coded(rows["id"])
    has_ids = any(name is not None for name in ids)
    codes = np.array([_code(name) for name in ids], dtype=np.int64)[place]
    group = np.where(codes >= 0, codes, shard.first + np.arange(codes.size))  # without an id, by itself
    counted = count_texts(rows["response"].to_list(), recogniser, bag)
    return _Part(rows["who"], group, counted, left, systems, has_ids)


def _coded(column: pl.Series) -> tuple[list[Any], Any]:
    """The different values in the order of their first rows, and the number of its value for each row."""
    values = column.unique(maintain_order=True)
    numbers = pl.DataFrame([values.alias("value")]).with_row_index("number")
    rows = pl.DataFrame([column.alias("value")])
    joined = rows.join(numbers, on="value", how="left", nulls_equal=True, maintain_order="left")
    return values.to_list(), joined["number"].to_numpy()


def _code(name: str | None) -> int:
    """A number for an id, the same in every shard; -1 for none."""
    if name is None:
        return -1
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest())
