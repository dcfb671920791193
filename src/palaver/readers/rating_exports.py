"""Ratings as other tools keep them, where an entry of the file is no row but a task, a log or a sample.

`open_ratings` opens any rating file. The judgements in entries of these shapes are laid under each other;
from there on they are a table like any other.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from palaver.errors import DataError
from palaver.files import as_path, check_readable, detect_format
from palaver.readers.rating_columns import ALIASES
from palaver.readers.rows import RowFile, file_stem
from palaver.readers.shapes import ID_KEYS, Tally, first_of, is_scalar
from palaver.sheets import sheet_kind
from palaver.tables import TableSource, open_rows, open_table

Fields = dict[str, Any]


def open_ratings(path: str | Path, *, sheet: str | None = None) -> TableSource:
    """A rating file as a table, whatever wrote it."""
    path = as_path(path)
    check_readable(path)
    if sheet is not None or sheet_kind(path) or detect_format(path) != "jsonl":
        return open_table(path, sheet=sheet)
    file = RowFile(path)
    try:
        first = next((row for _, row in file.rows()), None)
    except DataError:
        return open_table(path)  # says what is wrong
    take = _shape_of(first, path)
    if take is None:
        return open_rows(path, [(1, first)]) if file.is_object else open_table(path)
    tally = Tally()
    rows: list[tuple[int, Fields]] = []
    for number, entry in file.rows():
        try:
            rows += ((number, row) for row in take(entry, number, path, tally))
        except _ANOTHER_SHAPE:
            file.problems.add(number, "it is not like the first one")
    if file.problems:
        raise file.problems.error(path, "rating", file.word)
    if not rows:
        raise DataError(
            f"{path}: there is no rating in it", "; ".join(f"{k}: {n:,}" for k, n in tally.items())
        )
    source = open_rows(path, rows)
    source.notes += (f"{what}: {count:,}" for what, count in tally.items())
    return source


def _shape_of(first: Any, path: Path) -> _Take | None:
    """What takes the judgements out of entries like the first one; None where only names are the same."""
    for marks, take in _SHAPES:
        if isinstance(first, dict) and marks <= first.keys():
            with contextlib.suppress(*_ANOTHER_SHAPE):
                for _ in take(first, 1, path, Tally()):
                    pass
                return take
    return None


_ANOTHER_SHAPE = (TypeError, KeyError, AttributeError, IndexError)
_ANSWERS = ("choices", "rating", "number", "selected", "text", "taxonomy")
"""What Label Studio calls the value of a control."""


def _label_studio(task: Fields, number: int, path: Path, tally: Tally) -> Iterator[Fields]:
    """A task of Label Studio: for each annotation a row as its JSON-MIN has it."""
    data = {name: value for name, value in task["data"].items() if is_scalar(value)}
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            tally["annotations that were skipped in Label Studio, left out"] += 1
            continue
        answers: Fields = {}
        for result in annotation["result"]:
            value = next((result["value"][name] for name in _ANSWERS if name in result["value"]), None)
            if value is None:
                tally["marks in a text or a picture, left out"] += 1
                continue
            answers[result["from_name"]] = value[0] if isinstance(value, list) and len(value) == 1 else value
        who = annotation.get("completed_by")
        who = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
        about = {"id": task.get("id"), "annotator": who, "annotation_id": annotation.get("id")}
        about |= {name: annotation.get(name) for name in ("created_at", "lead_time")}
        yield {**data, **about, **answers}


_GRADES = {"C": 1, "P": 0.5, "I": 0, "N": 0, "true": 1, "false": 0}
"""What Inspect's grades stand for, as Inspect itself counts them: correct, partly, incorrect, no answer."""


def _inspect_log(log: Fields, number: int, path: Path, tally: Tally) -> Iterator[Fields]:
    """A log of Inspect: for each score of a sample a row; an epoch is one more asking."""
    for sample in log["samples"]:
        if not sample.get("scores"):
            tally["samples without a score, left out"] += 1
        for scorer, score in (sample.get("scores") or {}).items():
            values = score["value"]
            named = values if isinstance(values, dict) else {"": values}
            for name, value in named.items():
                text = str(value).lower() if isinstance(value, bool) else value
                yield {
                    "item": sample["id"],
                    "system": log["eval"]["model"],
                    "rater": scorer,
                    "criterion": f"{scorer} {name}".strip(),
                    "value": _GRADES.get(text, text) if isinstance(text, str) else text,
                    "repeat": sample.get("epoch", 1) - 1,
                    "kind": "llm" if scorer.startswith("model_graded") else "metric",
                }


_SAMPLES = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+")


def _harness_sample(sample: Fields, number: int, path: Path, tally: Tally) -> Iterator[Fields]:
    """A sample of lm-eval, whose file stands in a folder with the name of the model."""
    stem = path.name.split(".json")[0]
    match = _SAMPLES.fullmatch(stem)
    system = path.resolve().parent.name if match else file_stem(path).removeprefix("samples_")
    for metric in sample["metrics"]:
        names = (match["task"] if match else "", metric)
        criterion = " ".join(name for name in names if name)
        if sample.get("filter", "none") != "none":
            criterion += f" ({sample['filter']})"
        about = {"item": sample["doc_id"], "system": system, "rater": metric, "kind": "metric"}
        yield {**about, "criterion": criterion, "value": sample[metric]}


def _prodigy_example(example: Fields, number: int, path: Path, tally: Tally) -> Iterator[Fields]:
    """An example of Prodigy: what `meta` says of it are fields like any other."""
    if example["answer"] == "ignore":
        tally["examples that were ignored in Prodigy, left out"] += 1
        return
    row = {**(example.get("meta") or {}), **{name: v for name, v in example.items() if is_scalar(v)}}
    accepted = example.get("accept")
    if accepted is not None:
        row["accept"] = accepted[0] if len(accepted) == 1 else [str(option) for option in accepted]
    yield row


def _rated_by_several(row: Fields, number: int, path: Path, tally: Tally) -> Iterator[Fields]:
    """A criterion with a list of numbers, one of each rater, as the FED data has it; nobody is named."""
    place_of_row = f"row {number}"
    key = first_of(row, ("item", *ID_KEYS))
    item = row[key] if key else place_of_row
    if first_of(row, ("rater", *ALIASES["rater"])) or not all(
        isinstance(v, list) for v in row["annotations"].values()
    ):
        raise TypeError("the judgement of one rater")
    for criterion, values in row["annotations"].items():
        for place, value in enumerate(values, start=1):
            rater = f"{place_of_row}, {place}"  # the first rater of one row is not the first one of another
            about = {"item": item, "system": row["system"], "rater": rater}
            yield {**about, "criterion": criterion, "value": value}


_Take = Callable[[Fields, int, Path, Tally], Iterator[Fields]]
_SHAPES: tuple[tuple[set[str], _Take], ...] = (
    ({"annotations", "data"}, _label_studio),
    ({"samples", "eval"}, _inspect_log),
    ({"doc_id", "filtered_resps", "metrics"}, _harness_sample),
    ({"_input_hash", "answer"}, _prodigy_example),
    ({"annotations", "context", "system"}, _rated_by_several),
)
"""Names that an entry of a shape has, and what takes its judgements out."""
