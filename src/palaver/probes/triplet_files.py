"""Triplets on disk: JSON lines, CSV or Parquet, by the name's ending."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from palaver.errors import DataError
from palaver.files import format_by_name, write_atomically
from palaver.probes.recipe import SETS, Triplet
from palaver.probes.writing import capitalise


def write_triplets(triplets: Sequence[Triplet], path: Path) -> None:
    """JSON lines, CSV or Parquet, by the name's ending."""
    if not triplets:
        raise DataError(
            "there are no triplets to write", "see the counts of reasons: no sentence fitted any set"
        )
    rows = [asdict(t) for t in triplets]
    kind = format_by_name(path)
    if kind == "jsonl":
        with write_atomically(path) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    import polars as pl

    frame = pl.DataFrame(rows)
    write = frame.write_parquet if kind == "parquet" else frame.write_csv
    with write_atomically(path, "wb") as file:
        write(file)


def write_items(triplets: Sequence[Triplet], path: Path) -> None:
    """Triplets as items of a study (preset triplet-check): S is what is shown, S+ and S* are judged.

    Variants are left out, and sentences begin with a capital: people would call its lack a mistake.
    """
    with write_atomically(path) as file:
        for t in triplets:
            if t.variant:
                continue
            outputs = [
                {"system": t.plus_rule, "text": capitalise(t.plus)},
                {"system": t.star_rule, "text": capitalise(t.star)},
            ]
            row = {"id": t.id, "context": capitalise(t.original), "outputs": outputs}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_triplets(path: Path) -> list[Triplet]:
    """What `write_triplets` wrote, packed or not; a file of one's own needs set, original, plus and star."""
    from palaver.tables import open_table
    from palaver.text_columns import ROW

    source = open_table(path)
    rows = [row for frame in source.frames() for row in frame.iter_rows(named=True)]
    problems = list(source.problems)
    triplets = []
    for row in rows:
        number = row.pop(ROW)
        missing = [name for name in ("set", "original", "plus", "star") if not row.get(name)]
        if missing:
            problems.append((number, f"no {', '.join(missing)}"))
        elif row["set"] not in SETS:
            problems.append((number, f"there is no set {row['set']!r}"))
        else:
            kind = SETS[row["set"]]
            defaults = {
                "plus_rule": kind.plus_rule,
                "star_rule": kind.star_rule,
                "corpus": path.stem,
                "source_id": str(number),
                "source": row["original"],
                "id": f"{kind.name}:{number}",
            }
            own = {k: v for k, v in row.items() if k in Triplet.__dataclass_fields__ and v is not None}
            triplets.append(Triplet(**(defaults | own)))
    if problems:
        details = [f"row {number}: {what}" for number, what in sorted(problems)]
        raise DataError(f"{path} does not hold triplets", f"known sets: {', '.join(SETS)}", details[:20])
    return triplets
