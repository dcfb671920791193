"""What corpus loaders share: lines, tables and JSON with the place of every mistake, splits, merged turns.

Loaders build plain values and let `Dialogue.model_validate` check them, a whole dialogue in one call. That is
also the fastest way: 1.1 µs a turn, where `model_construct` needs 2.2 and `Turn(…)` 1.6 (pydantic 2.12).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from palaver.config import dotted
from palaver.errors import DataError, nearest
from palaver.files import TextStream
from palaver.readers import rows
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue, Turn

Loader = Callable[[Path, str | None, Tally], Iterator[Dialogue]]
"""Reads a file or folder. The split is a hint to skip whole files; `CorpusReader` filters what comes."""

UNKNOWN = "(unknown)"
"""The speaker of a turn whose source names none."""

_SPLITS = {"dev": "valid", "development": "valid", "val": "valid", "validation": "valid", "eval": "valid"}


def normal_split(name: str) -> str:
    """train, valid or test for the names that corpora give them; another name stays as it is."""
    return _SPLITS.get(name.strip().lower(), name.strip().lower())


def split_labels(original: str) -> dict[str, str]:
    """`split` as everybody says it, and `original_split` where the source says something else."""
    split = normal_split(original)
    return {"split": split} if split == original else {"split": split, "original_split": original}


def in_split(label: object, wanted: str | None) -> bool:
    """Whether a dialogue's split is the wanted one, or a part of it: valid_rare is in valid."""
    return wanted is None or label == wanted or (isinstance(label, str) and label.startswith(f"{wanted}_"))


def split_files(
    folder: Path, names: Sequence[str], pattern: str, split: str | None
) -> Iterator[tuple[str, Path]]:
    """The files of each split that is wanted, with its name; `{}` in the pattern stands for the name."""
    for name in names:
        if in_split(normal_split(name), split):
            file = named(folder, pattern.format(name))
            files = [file] if file is not None else sorted(folder.glob(pattern.format(name)))
            yield from ((name, file) for file in files)


def build(
    id: str, turns: list[dict[str, Any]], labels: Mapping[str, Any], place: str, **more: Any
) -> Dialogue:
    """The dialogue, or everything that is wrong with it and where. Labels that are None are left out."""
    about = {name: value for name, value in labels.items() if value is not None}
    try:
        return Dialogue.model_validate({"id": id, "turns": turns, "labels": about, **more})
    except ValidationError as error:
        problems = [f"{dotted(e['loc']) or 'dialogue'}: {e['msg']}" for e in error.errors()]
    raise DataError(f"{place}: this is not a dialogue", problems=problems)


def alternate(texts: Sequence[str], speakers: tuple[str, str], first: int = 0) -> list[dict[str, Any]]:
    """Turns of two people who speak by turns."""
    return [{"speaker": speakers[(first + i) % 2], "text": text} for i, text in enumerate(texts)]


def merge_turns(dialogue: Dialogue) -> tuple[Dialogue, int]:
    """Consecutive turns of one speaker as one, and how many turns were joined to the one before.

    Texts are joined by a space, knowledge by union; labels on which the turns do not agree are left out.
    """
    merged: list[Turn] = []
    for turn in dialogue.turns:
        if merged and merged[-1].speaker == turn.speaker:
            last = merged[-1]
            labels = {k: v for k, v in last.labels.items() if k in turn.labels and turn.labels[k] == v}
            knowledge = tuple(dict.fromkeys((*last.knowledge, *turn.knowledge)))
            text = f"{last.text} {turn.text}"
            merged[-1] = Turn(speaker=turn.speaker, text=text, knowledge=knowledge, labels=labels)
        else:
            merged.append(turn)
    n_joined = len(dialogue.turns) - len(merged)
    return (dialogue.model_copy(update={"turns": tuple(merged)}) if n_joined else dialogue), n_joined


def text_lines(path: Path, tally: Tally) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends. The file is never held whole."""
    with TextStream(path) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, line.decode().rstrip("\r\n")
        _note_encoding(stream, tally)


def csv_rows(path: Path, needed: Sequence[str], tally: Tally) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by column name, numbered as a spreadsheet does; the needed columns are there."""
    from palaver.csv_tables import read_header  # brings polars, which other corpora do without

    header = read_header(path)
    with TextStream(path) as stream:
        checked = False
        for number, row in rows.csv_rows(stream, path, header):
            if not checked:
                _check_columns(path, list(row), needed)
                checked = True
            yield number, row
        _note_encoding(stream, tally)


def _check_columns(path: Path, names: Sequence[str], needed: Sequence[str]) -> None:
    missing = [f"there is no column {name!r}{nearest(name, names)}" for name in needed if name not in names]
    if missing:
        hint = f"expected {', '.join(needed)}; found {', '.join(names)}"
        raise DataError(f"{path}: columns are missing", hint, missing)


def _note_encoding(stream: TextStream, tally: Tally) -> None:
    if stream.encoding.recoded_lines:
        tally[rows.RECODED] += stream.encoding.recoded_lines


def load_json(path: Path, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    """A whole JSON file, which must be an object or a list; the error says in which line and column."""
    with TextStream(path) as stream:
        raw = stream.read()
    try:
        value = json.loads(raw)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise DataError(f"{path}, {where}: not JSON: {error.msg}", "is the file whole?") from None
    except RecursionError:
        raise DataError(f"{path}: brackets within brackets within brackets, too deep to follow") from None
    if not isinstance(value, kind):
        word = "an object" if kind is dict else "a list"
        raise DataError(f"{path}: expected {word}, found {type(value).__name__}")
    return value


def named(folder: Path, name: str) -> Path | None:
    """`folder/name`, packed or not, if it is there."""
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.exists()), None)


def field(record: Any, name: str, kind: type[Any] | tuple[type[Any], ...], place: str) -> Any:
    """A field of a JSON object that must be there and of that kind."""
    if not isinstance(record, dict):
        raise DataError(f"{place}: expected an object, found {type(record).__name__}")
    if name not in record:
        names = ", ".join(map(str, list(record)[:8])) or "nothing"
        raise DataError(f"{place}: there is no {name!r}{nearest(name, list(record))}", f"found {names}")
    if not isinstance(record[name], kind):
        raise DataError(f"{place}: {name}: found {type(record[name]).__name__}, not what the layout says")
    return record[name]
