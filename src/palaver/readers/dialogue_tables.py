"""How dialogues are written as CSV and as Parquet; `palaver.readers.dialogues` describes the layouts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from itertools import islice
from typing import IO, Any

from palaver.readers.turn_rows import COLUMNS, join_ids
from palaver.schema import Dialogue

_BATCH = 1000
"""Dialogues in a row group of Parquet, which is what `datasets` writes as well."""


def write_csv(dialogues: Iterable[Dialogue], file: IO[str], delimiter: str = ",") -> int:
    """Write a header and the rows of each dialogue; how many dialogues there were."""
    # Its lines end in CR LF, which also makes it quote a text with a lone CR.
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(COLUMNS)
    count = 0
    for count, dialogue in enumerate(dialogues, start=1):  # noqa: B007
        about = _json(_about(dialogue))
        for number, turn in enumerate(dialogue.turns, start=1):
            cells = (turn.speaker, turn.text, join_ids(turn.knowledge), _json(turn.labels))
            writer.writerow((dialogue.id, number, *cells, dialogue.source, about if number == 1 else ""))
        if not dialogue.turns:
            writer.writerow((dialogue.id, "", "", "", "", "", dialogue.source, about))
    return count


def _about(dialogue: Dialogue) -> dict[str, Any]:
    about: dict[str, Any] = {}
    if dialogue.speakers != tuple(dict.fromkeys(turn.speaker for turn in dialogue.turns)):
        about["speakers"] = dialogue.speakers
    if dialogue.labels:
        about["labels"] = dialogue.labels
    if dialogue.knowledge is not None:
        about["knowledge"] = [k.model_dump(mode="json", exclude_defaults=True) for k in dialogue.knowledge]
    return about


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def write_parquet(dialogues: Iterable[Dialogue], file: IO[bytes]) -> int:
    """Write the dialogues in row groups; how many there were."""
    import pyarrow as pa
    import pyarrow.parquet

    text, texts = pa.string(), pa.list_(pa.string())
    turn = pa.struct({"speaker": text, "text": text, "knowledge": texts, "labels": text})
    own = {"id": text, "turns": pa.list_(turn), "speakers": texts}
    schema = pa.schema({**own, "source": text, "knowledge": text, "labels": text})
    count = 0
    left = iter(dialogues)
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := [_parquet_row(dialogue) for dialogue in islice(left, _BATCH)]:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _parquet_row(dialogue: Dialogue) -> dict[str, Any]:
    row = dialogue.model_dump(mode="json")
    if dialogue.knowledge is not None:
        row["knowledge"] = json.dumps(row["knowledge"], ensure_ascii=False)
    row["labels"] = json.dumps(row["labels"], ensure_ascii=False)
    for turn in row["turns"]:
        turn["labels"] = json.dumps(turn["labels"], ensure_ascii=False)
    return row
