"""Tables of personalities: a speaker and five OCEAN scores from 1 to 7 (Xing & Fernández 2018, section 2.2).

CSV with a header: `speaker`, then the traits by name or first letter in any order; columns that have none of
these names are taken in the order O, C, E, A, N. Or JSON: an object of name -> scores, a list of objects with
`speaker` and `ocean`, `scores` or the traits, or one such object per line.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from palaver.errors import DataError, UserError
from palaver.files import TextStream, write_atomically
from palaver.readers.shapes import number_or_text

TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
"""The Big Five in the order of their initials, OCEAN; each from 1 to 7."""

Scores = tuple[float, float, float, float, float]


class _Row(NamedTuple):
    place: str
    speaker: str
    scores: Sequence[Any]
    """As they stand in the file; in a CSV a cell that is a number is one here."""


def trait_values(row: Mapping[Any, Any]) -> list[Any]:
    """What stands under the name or the first letter of each trait, in any case; None where nothing does."""
    folded = {str(key).casefold(): value for key, value in row.items()}
    return [folded.get(trait, folded.get(trait[0])) for trait in TRAITS]


def read_ocean_table(path: str | Path) -> dict[str, Scores]:
    """Speaker -> scores in the order of OCEAN. All mistakes are reported together."""
    path = Path(path)
    with TextStream(path) as stream:
        text = stream.read().decode()
    is_json = path.name.lower().removesuffix(".gz").endswith((".json", ".jsonl"))
    problems: list[str] = []
    if is_json or text.lstrip()[:1] in ("{", "["):
        rows = list(_json_rows(text, path, problems))
    else:
        rows = list(_csv_rows(text, path, problems))
    table: dict[str, Scores] = {}
    for row in rows:
        wrong = [
            f"{trait} should be a number from 1 to 7, found {cell!r}"
            for trait, cell in zip(TRAITS, row.scores, strict=False)
            if isinstance(cell, bool) or not isinstance(cell, int | float) or not 1 <= cell <= 7
        ]
        if len(row.scores) != len(TRAITS):
            wrong = [f"expected five numbers, found {len(row.scores)}"]
        if not row.speaker:
            wrong.append("the speaker's name is missing")
        elif row.speaker in table:
            wrong.append(f"{row.speaker!r} is there already")
        problems += [f"{row.place}: {mistake}" for mistake in wrong]
        if not wrong:
            table[row.speaker] = tuple(map(float, row.scores))  # type: ignore[assignment]
    if not rows and not problems:
        problems.append("there are no rows in it, so it names no speaker")
    if problems:
        raise DataError(
            f"{path} is not a table of OCEAN scores:",
            "expected speaker and five numbers from 1 to 7",
            problems,
        )
    return table


def check_table_name(path: Path) -> None:
    """A table is written as CSV, and `read_ocean_table` goes by the name."""
    if not path.name.lower().endswith(".csv"):
        raise UserError(f"cannot write a table of OCEAN scores to {path.name!r}", "end the name in .csv")


def write_ocean_table(path: Path, table: Mapping[str, Sequence[float]]) -> None:
    """A CSV file that `read_ocean_table` reads."""
    check_table_name(path)
    with write_atomically(path) as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("speaker", *TRAITS))
        rows.writerows((name, *(f"{score:.3f}" for score in scores)) for name, scores in table.items())


def _csv_rows(text: str, path: Path, problems: list[str]) -> Iterator[_Row]:
    tabs = ".tsv" in [suffix.lower() for suffix in path.suffixes]
    reader = csv.reader(io.StringIO(text), delimiter="\t" if tabs else ",")
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
        places, wrong = _columns(header)
        problems += (f"line 1: {mistake}" for mistake in wrong)
        for cells in reader if not wrong else ():
            if not any(cell.strip() for cell in cells):
                continue
            place = f"line {reader.line_num}"
            if len(cells) > len(header):
                problems.append(f"{place}: expected {len(header)} fields, found {len(cells)}")
            speaker, *scores = [cells[i].strip() if i < len(cells) else "" for i in places]
            yield _Row(place, speaker, [number_or_text(score) for score in scores])
    except csv.Error as error:
        problems.append(f"line {reader.line_num}: not a CSV row: {error}")


def _columns(header: Sequence[str]) -> tuple[list[int], list[str]]:
    """Where speaker and scores stand, and what is wrong with the names of the columns."""
    speaker = next((i for i, n in enumerate(header) if n in ("speaker", "name", "character")), None)
    if speaker is None and any(not isinstance(number_or_text(cell), str) for cell in header[1:]):
        return [], ["there is no header; expected speaker and the five traits"]
    rest = [i for i in range(len(header)) if i != speaker]
    places = [[i for i in rest if header[i] in (trait, trait[0])] for trait in TRAITS]
    wrong = [] if speaker is not None else ["the header has no column speaker"]
    if any(places) or speaker is None:
        for trait, columns in zip(TRAITS, places, strict=True):
            if len(columns) != 1:
                columns_word = "columns" if len(columns) > 1 else "column"
                wrong.append(f"the header has {len(columns) or 'no'} {columns_word} {trait}")
        rest = [columns[0] for columns in places if columns]
    return [speaker or 0, *rest], wrong


def _json_rows(text: str, path: Path, problems: list[str]) -> Iterator[_Row]:
    def pairs(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in fields]
        problems.extend(f"{name!r} is there already" for name in sorted(set(names)) if names.count(name) > 1)
        return dict(fields)

    try:
        if text.lstrip().startswith("{") and "\n{" in text.strip():
            lines = [line for line in text.splitlines() if line.strip()]
            data: Any = [json.loads(line, object_pairs_hook=pairs) for line in lines]
        else:
            data = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("speaker"), str):
        data = [data]
    elif isinstance(data, dict):
        data = [{"speaker": name, "scores": scores} for name, scores in data.items()]
    if not isinstance(data, list):
        raise DataError(f"{path}: expected an object of names and five numbers, or a list of objects")
    for number, row in enumerate(data, start=1):
        if not isinstance(row, dict):
            problems.append(f"row {number}: expected an object, found {row!r}")
            continue
        folded = {key.casefold(): value for key, value in row.items()}
        scores = folded.get("scores", folded.get("ocean", folded))
        if isinstance(scores, dict):
            scores = trait_values(scores)
        scores = scores if isinstance(scores, list) else [scores]
        name = folded.get("speaker")
        speaker = name.strip() if isinstance(name, str) else ""
        yield _Row(f"row {number}", speaker, scores)
