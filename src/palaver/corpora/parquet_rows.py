"""Dialogues as Parquet: one row per dialogue, in types that Hugging Face `datasets` and others can read.

`id, turns, speakers, source, knowledge, labels`; `turns` is a list of `{speaker, text, knowledge, labels}`.
Labels and the dialogue's knowledge have no fixed type and are JSON text (an object, and a list or null).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from palaver.errors import DataError
from palaver.schema import Dialogue

_BATCH = 1000
"""Dialogues in a row group, which is what `datasets` writes as well."""


def write_parquet(dialogues: Iterable[Dialogue], file: IO[bytes]) -> int:
    """Write the dialogues in row groups; how many there were."""
    import pyarrow as pa
    import pyarrow.parquet

    text, texts = pa.string(), pa.list_(pa.string())
    turn = pa.struct({"speaker": text, "text": text, "knowledge": texts, "labels": text})
    schema = pa.schema(
        {
            "id": text,
            "turns": pa.list_(turn),
            "speakers": texts,
            "source": text,
            "knowledge": text,
            "labels": text,
        }
    )
    count = 0
    left = iter(dialogues)
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := [_to_row(dialogue) for dialogue in islice(left, _BATCH)]:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _to_row(dialogue: Dialogue) -> dict[str, Any]:
    row = dialogue.model_dump(mode="json")
    known = dialogue.knowledge
    row["knowledge"] = None if known is None else _json([k.model_dump(mode="json") for k in known])
    row["labels"] = _json(dialogue.labels)
    for turn in row["turns"]:
        turn["labels"] = _json(turn["labels"])
    return row


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_parquet(path: Path) -> Iterator[tuple[Sequence[int], dict[str, Any]]]:
    """The dialogues as plain values with the row of each."""
    import pyarrow as pa

    from palaver.tables import open_parquet

    number = 0
    with open_parquet(path) as file:
        try:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield (number,), _from_row(row)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} is damaged after row {number}: {error}") from None
        except ValueError as error:
            raise DataError(f"{path}, row {number}: {error}") from None


def _from_row(row: dict[str, Any]) -> dict[str, Any]:
    """Without nulls, which stand for a field's default, and with JSON text as what it says."""
    row = {name: value for name, value in row.items() if value is not None}
    for name in ("labels", "knowledge"):
        if isinstance(row.get(name), str):
            try:
                row[name] = json.loads(row[name])
            except (ValueError, RecursionError):
                raise ValueError(f"{name}: expected JSON, found {row[name]!r}") from None
    turns = row.get("turns")
    if isinstance(turns, list):
        row["turns"] = [_from_row(turn) if isinstance(turn, dict) else turn for turn in turns]
    return row
