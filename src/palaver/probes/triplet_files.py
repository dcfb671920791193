"""Triplets on disk: JSON lines, CSV or Parquet, by the name's ending."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palaver.errors import DataError
from palaver.files import TextStream, check_readable, format_by_name, write_atomically
from palaver.probes.recipe import SETS, Triplet


def write_triplets(triplets: Sequence[Triplet], path: Path) -> None:
    """JSON lines, CSV or Parquet, by the name's ending."""
    if not triplets:
        raise DataError(
            "there are no triplets to write", "see the counts of reasons: no sentence fitted any set"
        )
    rows: list[dict[str, Any]] = [t.to_dict() for t in triplets]
    kind = format_by_name(path)
    if kind == "jsonl":
        with write_atomically(path) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    import polars as pl

    with write_atomically(path, "wb") as file:
        frame = pl.DataFrame(rows)
        _ = frame.write_parquet(file) if kind == "parquet" else frame.write_csv(file)


def write_items(triplets: Sequence[Triplet], path: Path) -> None:
    """Triplets as items of a study (preset triplet-check): S is what is shown, S+ and S* are judged."""
    with write_atomically(path) as file:
        for t in triplets:
            outputs = [{"system": t.plus_rule, "text": t.plus}, {"system": t.star_rule, "text": t.star}]
            row = {"id": t.id, "context": t.original, "outputs": outputs}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_triplets(path: Path) -> list[Triplet]:
    """What `write_triplets` wrote; a file of one's own needs set, original, plus and star."""
    check_readable(path)
    if path.name.endswith((".parquet", ".csv")):
        import polars as pl

        rows = (pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)).to_dicts()
    else:
        with TextStream(path) as stream:
            rows = _json_rows(path, stream.read().decode("utf-8").splitlines())
    problems, found = [], []
    for number, row in enumerate(rows, 1):
        missing = [name for name in ("set", "original", "plus", "star") if not row.get(name)]
        if missing:
            problems.append(f"row {number}: no {', '.join(missing)}")
        elif row["set"] not in SETS:
            problems.append(f"row {number}: there is no set {row['set']!r}")
        else:
            kind = SETS[row["set"]]
            made = {
                "plus_rule": kind.plus_rule,
                "star_rule": kind.star_rule,
                "corpus": path.stem,
                "source_id": str(number),
                "source": row["original"],
                "id": f"{kind.name}:{number}",
            }
            known = {k: str(v) for k, v in row.items() if k in Triplet.__dataclass_fields__ and v is not None}
            found.append(Triplet(**(made | known)))
    if problems:
        raise DataError(f"{path} does not hold triplets", f"known sets: {', '.join(SETS)}", problems[:20])
    return found


def _json_rows(path: Path, lines: list[str]) -> list[dict[str, Any]]:
    rows, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            problems.append(f"line {number}: {error}")
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            problems.append(f"line {number}: expected an object, found {line[:40]!r}")
    if problems:
        raise DataError(f"{path} is no file of JSON lines", "", problems[:20])
    return rows
