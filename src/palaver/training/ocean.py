"""Tables of personalities: a speaker and five OCEAN scores from 1 to 7 (Xing & Fernández 2018, section 2.2).

CSV with a header (`speaker`, then the traits by name or first letter, in any order), or JSON: an object of
name -> five numbers, or a list of objects with the same keys as the CSV.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from palaver.errors import DataError, nearest
from palaver.files import TextStream

TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
Scores = tuple[float, float, float, float, float]


def read_ocean(path: Path) -> dict[str, Scores]:
    """Speaker -> scores in the order of OCEAN. All mistakes are reported together."""
    with TextStream(path) as stream:
        text = stream.read().decode()
    name = path.name.lower().removesuffix(".gz")
    rows, problems = _json_rows(text, path) if name.endswith(".json") else _csv_rows(text, path)
    table: dict[str, Scores] = {}
    for place, speaker, values in rows:
        scores = [_score(value) for value in values]
        wrong = [
            f"{trait} should be a number from 1 to 7, found {value!r}"
            for trait, score, value in zip(TRAITS, scores, values, strict=False)
            if score is None
        ]
        if len(values) != 5:
            wrong = [f"expected five numbers, found {len(values)}"]
        if not speaker:
            wrong.append("the speaker's name is missing")
        if speaker in table:
            wrong.append(f"{speaker!r} is there already")
        problems += [f"{place}: {text}" for text in wrong]
        if not wrong:
            table[speaker] = tuple(scores)  # type: ignore[assignment]
    if problems:
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        raise DataError(f"{path} has {count}:", problems=problems)
    if not table:
        raise DataError(f"{path} names no speaker")
    return table


def check_speakers(
    table: Mapping[str, Scores], speakers: Sequence[str], heard: Sequence[str], path: Path
) -> None:
    """Everybody who is wanted has scores, and everybody in the table speaks in the data."""
    problems = [
        f"{name!r} has no scores{nearest(name, list(table))}" for name in speakers if name not in table
    ]
    known = set(heard)
    problems += [
        f"{name!r} never speaks in the training data{nearest(name, list(heard))}"
        for name in table
        if name not in known
    ]
    if problems:
        raise DataError(f"{path} does not fit the data:", problems=problems)


_Rows = list[tuple[str, str, list[Any]]]


def _csv_rows(text: str, path: Path) -> tuple[_Rows, list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter="\t" if ".tsv" in path.suffixes else ",")
    header = [cell.strip().casefold() for cell in next(reader, [])]
    places = [_column(header, trait) for trait in TRAITS]
    missing = [t for t, place in zip(TRAITS, places, strict=True) if place is None]
    if "speaker" not in header:
        missing.insert(0, "speaker")
    if missing:
        return [], [f"line 1: the header has no column {name}" for name in missing]
    rows: _Rows = []
    for cells in reader:
        if any(cell.strip() for cell in cells):
            cells += [""] * (len(header) - len(cells))
            speaker = cells[header.index("speaker")].strip()
            rows.append((f"line {reader.line_num}", speaker, [cells[p] for p in places if p is not None]))
    return rows, []


def _column(header: Sequence[str], trait: str) -> int | None:
    return next((header.index(name) for name in (trait, trait[0]) if name in header), None)


def _json_rows(text: str, path: Path) -> tuple[_Rows, list[str]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None
    if isinstance(found, dict):
        return [(f"{name!r}", str(name), v if isinstance(v, list) else [v]) for name, v in found.items()], []
    if not isinstance(found, list):
        raise DataError(f"{path}: expected an object of names and five numbers, or a list of objects")
    rows: _Rows = []
    problems = []
    for number, row in enumerate(found, start=1):
        if not isinstance(row, dict):
            problems.append(f"entry {number}: expected an object, found {row!r}")
            continue
        folded = {str(key).casefold(): value for key, value in row.items()}
        values = [folded.get(trait, folded.get(trait[0])) for trait in TRAITS]
        rows.append(
            (f"entry {number}", str(folded.get("speaker") or "").strip(), folded.get("ocean", values))
        )
    return rows, problems


def _score(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and 1 <= number <= 7 and not isinstance(value, bool) else None
