"""Norms of words, for those who have the files: MRC, concreteness, age of acquisition, valence, frequency.

Each reader gives {norm: {word: value}}, words in lower case. `read_norms` tells the files apart:

- the MRC Psycholinguistic Database (Coltheart 1981; Wilson 1988), `mrc2.dct`, fixed columns, nought =
  unknown;
- concreteness (Brysbaert et al. 2014), tab-separated with `Word` and `Conc.M`;
- age of acquisition (Kuperman et al. 2012), CSV with `Word` and `Rating.Mean`;
- valence, arousal, dominance (Warriner et al. 2013), CSV with `Word`, `V.Mean.Sum`, `A.Mean.Sum`,
  `D.Mean.Sum`;
- SUBTLEX-US word frequency (Brysbaert & New 2009), tab-separated with `Word` and `Lg10WF`.

The recogniser that ships needs none of them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from palaver.errors import DataError
from palaver.files import TextStream

Norms = dict[str, dict[str, float]]

MRC_COLUMNS = {
    "NLET": (0, 2),
    "NPHON": (2, 4),
    "NSYL": (4, 5),
    "K-F-FREQ": (5, 10),
    "K-F-NCATS": (10, 12),
    "K-F-NSAMP": (12, 15),
    "T-L-FREQ": (15, 21),
    "BROWN-FREQ": (21, 25),
    "FAM": (25, 28),
    "CONC": (28, 31),
    "IMAG": (31, 34),
    "MEANC": (34, 37),
    "MEANP": (37, 40),
    "AOA": (40, 43),
}
"""Where each property stands in a line of mrc2.dct, counted from nought."""
_MRC_WORD = 51

_TABLES = {
    ("word", "conc.m"): {"concreteness": "conc.m"},
    ("word", "rating.mean"): {"age_of_acquisition": "rating.mean"},
    ("word", "v.mean.sum"): {"valence": "v.mean.sum", "arousal": "a.mean.sum", "dominance": "d.mean.sum"},
    ("word", "lg10wf"): {"frequency": "lg10wf"},
}
_MISSING = {"", "na", "#n/a", "nan"}


def read_norms(*paths: Path) -> Norms:
    """The norms of all files together."""
    norms: Norms = {}
    for path in paths:
        with TextStream(path) as stream:
            lines = stream.read().decode().splitlines()
        read = _mrc(lines, path) if _looks_like_mrc(lines) else _table(lines, path)
        twice = sorted(set(norms) & set(read))
        if twice:
            raise DataError(f"{path}: {', '.join(twice)} came from another file already")
        norms |= read
    return norms


def _looks_like_mrc(lines: list[str]) -> bool:
    return bool(lines) and len(lines[0]) > _MRC_WORD and "|" in lines[0] and lines[0][:43].isdecimal()


def _mrc(lines: Iterable[str], path: Path) -> Norms:
    """A word may have several lines (as noun, as verb); its greatest value counts, as most lines have
    none."""
    norms: Norms = {name: {} for name in MRC_COLUMNS}
    problems = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        word, bar, _ = line[_MRC_WORD:].partition("|")
        if not bar or not line[:43].isdecimal():
            problems.append(f"line {number}: expected 43 digits, marks and word|sound|sound|stress")
            continue
        word = word.lower()
        for name, (begin, end) in MRC_COLUMNS.items():
            value = int(line[begin:end])
            if value and value > norms[name].get(word, 0):
                norms[name][word] = value
    if problems:
        raise _broken(path, problems)
    return norms


def _table(lines: list[str], path: Path) -> Norms:
    head = lines[0].casefold() if lines else ""
    mark = "\t" if "\t" in head else ","
    rows = csv.reader(lines, delimiter=mark)
    header = [cell.strip() for cell in next(csv.reader([head], delimiter=mark), [])]
    wanted = next((norms for needed, norms in _TABLES.items() if set(needed) <= set(header)), None)
    if wanted is None:
        raise DataError(
            f"{path}: these are no word norms that are known here",
            "expected mrc2.dct, or a table with Word and one of Conc.M, Rating.Mean, V.Mean.Sum, Lg10WF",
        )
    absent = [column for column in wanted.values() if column not in header]
    if absent:
        raise DataError(f"{path}, line 1: there is no column {', '.join(absent)}")
    next(rows)
    read: Norms = {name: {} for name in wanted}
    problems = []
    for cells in rows:
        if len(cells) == 1 and rows.line_num >= len(lines):
            continue  # SUBTLEX-US ends in half a line
        word = cells[header.index("word")].strip().lower() if len(cells) == len(header) else ""
        if not word:
            if any(cell.strip() for cell in cells):
                problems.append(f"line {rows.line_num}: expected {len(header)} cells with a word among them")
            continue
        for name, column in wanted.items():
            cell = cells[header.index(column)].strip()
            if cell.casefold() in _MISSING:
                continue
            try:
                value = float(cell)
            except ValueError:
                value = math.nan
            if math.isfinite(value):
                read[name][word] = value
            else:
                problems.append(f"line {rows.line_num}: {column}: expected a number, found {cell!r}")
    if problems:
        raise _broken(path, problems)
    return read


def _broken(path: Path, problems: list[str]) -> DataError:
    shown = problems[:20] + ([f"and {len(problems) - 20:,} more"] if len(problems) > 20 else [])
    count = "1 broken line" if len(problems) == 1 else f"{len(problems):,} broken lines"
    return DataError(f"{path} has {count}:", problems=shown)
