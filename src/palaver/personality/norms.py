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

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import polars as pl

from palaver.errors import DataError
from palaver.files import TextStream
from palaver.readers.rows import Problems
from palaver.tables import open_table

Norms = dict[str, dict[str, float]]

_MRC_NAMES = "NLET NPHON NSYL K-F-FREQ K-F-NCATS K-F-NSAMP T-L-FREQ BROWN-FREQ FAM CONC IMAG MEANC MEANP AOA"
_MRC_BORDERS = (0, 2, 4, 5, 10, 12, 15, 21, 25, 28, 31, 34, 37, 40, 43)
MRC_COLUMNS = dict(zip(_MRC_NAMES.split(), pairwise(_MRC_BORDERS), strict=True))
"""Where each property stands in a line of mrc2.dct, counted from nought."""
_MRC_WORD = 51

_TABLES = (
    {"concreteness": "conc.m"},
    {"age_of_acquisition": "rating.mean"},
    {"valence": "v.mean.sum", "arousal": "a.mean.sum", "dominance": "d.mean.sum"},
    {"frequency": "lg10wf"},
)
"""Norm -> its column; the first column tells the tables apart."""
_MISSING = ("na", "#n/a", "nan")


def read_norms(*paths: Path) -> Norms:
    """The norms of all files together."""
    norms: Norms = {}
    for path in paths:
        with TextStream(path) as stream:
            first = stream.readline().decode()
            is_mrc = len(first) > _MRC_WORD and "|" in first and first[:43].isdecimal()
            read = _mrc((first, *(line.decode() for line in stream)), path) if is_mrc else _table(path)
        twice = sorted(set(norms) & set(read))
        if twice:
            raise DataError(f"{path}: {', '.join(twice)} came from another file already")
        norms |= read
    return norms


def _mrc(lines: Iterable[str], path: Path) -> Norms:
    """A word may have several lines (as noun, as verb); its greatest value counts, as most lines have
    none."""
    norms: Norms = {name: {} for name in MRC_COLUMNS}
    problems = Problems()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        word, bar, _ = line[_MRC_WORD:].partition("|")
        if not bar or not line[:43].isdecimal():
            problems.add(number, "expected 43 digits, marks and word|sound|sound|stress")
            continue
        word = word.lower()
        for name, (begin, end) in MRC_COLUMNS.items():
            value = int(line[begin:end])
            if value and value > norms[name].get(word, 0):
                norms[name][word] = value
    if problems:
        raise problems.error(path, "word of the MRC database", "line")
    return norms


def _table(path: Path) -> Norms:
    source = open_table(path)
    columns = {name.casefold(): name for name in source.columns}
    wanted = next((norms for norms in _TABLES if {"word", next(iter(norms.values()))} <= set(columns)), None)
    if wanted is None:
        raise DataError(
            f"{path}: these are no word norms that are known here",
            "expected mrc2.dct, or a table with Word and one of Conc.M, Rating.Mean, V.Mean.Sum, Lg10WF",
        )
    absent = [column for column in wanted.values() if column not in columns]
    if absent:
        raise DataError(f"{path}, line 1: there is no column {', '.join(absent)}")
    frame = pl.concat(source.frames())
    problems = Problems()
    for row, text in source.problems:
        if row < frame["row"][-1] or "found 1:" not in text:  # SUBTLEX-US ends in half a line
            problems.add(row, text)
    words = frame[columns["word"]].str.to_lowercase()
    for row in frame["row"].filter(words.is_null()):
        problems.add(row, "there is no word")
    norms: Norms = {}
    for name, column in wanted.items():
        cells = frame[columns[column]]
        values = cells.cast(pl.Float64, strict=False)
        is_missing = cells.is_null() | cells.str.to_lowercase().is_in(_MISSING)
        is_number = ~is_missing & values.is_finite().fill_null(False)
        for row, cell in frame.filter(~is_missing & ~is_number).select("row", cells.name).iter_rows():
            problems.add(row, f"{column}: expected a number, found {cell!r}")
        norms[name] = dict(zip(words.filter(is_number), values.filter(is_number), strict=True))
    if problems:
        raise problems.error(path, "norm of a word", "row")
    return norms
