"""Sentences to probe with: SICK, MSR Paraphrase, the Treebank sample, the STS benchmark, files of one's own.

The corpora are read where the user has them, in the layout of their release, packed or not.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from palaver.errors import DataError
from palaver.files import TextStream
from palaver.readers.rows import RowFile
from palaver.readers.texts import read_texts

CORPORA = ("SICK_full.txt", "SICK.txt", "msr_paraphrase_train.txt", "treebank.zip")
"""A folder with one of these (they may be packed) holds sentences to make triplets of."""

_SICK_TEXTS = ("pair_ID", "sentence_A", "sentence_B")
_SICK_LABELS = ("entailment_label", "relatedness_score", "entailment_AB", "entailment_BA")


@dataclass(frozen=True)
class Sentence:
    corpus: str
    id: str
    text: str
    is_paired: bool = False
    """Whether it is one of two sentences that were compared."""


@dataclass(frozen=True)
class Pair:
    """Two sentences, and what people said about them; of a user's file, that they mean the same."""

    first: Sentence
    second: Sentence
    relatedness: float = 5.0
    entailment: str = "ENTAILMENT"
    both_ways: bool = True
    captions: tuple[Sentence, ...] = ()
    """The captions the two were made from, which the full release of SICK carries along."""


def read_text(path: Path, columns: Mapping[str, str] | None = None) -> list[Sentence]:
    """One sentence a line, a turn or a response; blank ones are passed over (their number still counts)."""
    texts = read_texts(path, columns=columns)
    sentences = [Sentence(path.stem, place, text.strip()) for place, text in texts if text.strip()]
    if not sentences:
        raise DataError(f"{path} has no sentences: every line is blank", "expected one sentence a line")
    return sentences


PARAPHRASE = ("sentence1", "sentence2")
"""The fields of a file of paraphrases."""
_OTHER_NAMES = (
    ("sentence_A", "sentence_B"),
    ("sentence", "paraphrase"),
    ("text", "paraphrase"),
    ("original", "paraphrase"),
    ("text1", "text2"),
    ("first", "second"),
)
_EXPECTED = "expected a table with the columns sentence1 and sentence2 (--column sentence1=NAME for others)"


def read_paraphrases(path: Path, columns: Mapping[str, str] | None = None) -> list[Pair]:
    """Two sentences a row that mean the same. A table of two columns needs no names we know."""
    file = RowFile(path, columns)
    pairs = []
    names: tuple[str, str] | None = None
    for number, row in file.rows():
        if not isinstance(row, dict):
            file.problems.add(number, "not a row with names")
            continue
        names = names or _paraphrase_columns(path, row)
        texts = [str(row.get(name) or "").strip() for name in names]
        if not all(texts):
            file.problems.add(
                number, f"no {' and '.join(n for n, t in zip(names, texts, strict=True) if not t)}"
            )
            continue
        first, second = (
            Sentence(path.stem, f"{file.word} {number}{letter}", text, is_paired=True)
            for letter, text in zip("AB", texts, strict=True)
        )
        pairs.append(Pair(first, second))
    if file.problems:
        raise file.problems.error(path, "pair of sentences", file.word, _EXPECTED)
    if not pairs:
        raise DataError(f"{path} has no pairs of sentences", _EXPECTED)
    return pairs


def _paraphrase_columns(path: Path, row: Mapping[str, object]) -> tuple[str, str]:
    for names in (PARAPHRASE, *_OTHER_NAMES):
        if all(name in row for name in names):
            return names
    if len(row) != 2:
        raise DataError(f"{path}: which two of its {len(row)} columns are paraphrases?", _EXPECTED)
    first, second = row
    if max(len(name.split()) for name in row) > 3:
        raise DataError(
            f"{path}: its first row is a pair, where the names of the columns should be", _EXPECTED
        )
    return first, second


def find(folder: Path, *names: str) -> Path | None:
    """The first of `names` in the folder, plain or with .gz."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def first_with_corpora(folders: Iterable[Path]) -> Path | None:
    """The first folder that holds one of the corpora."""
    return next((folder for folder in folders if find(folder, *CORPORA) is not None), None)


def _rows(path: Path) -> Iterator[list[str]]:
    with TextStream(path) as stream:
        for line in stream:
            yield line.decode().rstrip("\r\n").split("\t")


def read_sick(folder: Path) -> list[Pair]:
    """The pairs of SICK, in the order of the file (`SICK_full.txt` or the release's `SICK.txt`)."""
    path = find(folder, "SICK_full.txt", "SICK.txt")
    if path is None:
        return []
    rows = _rows(path)
    header = next(rows)
    missing = [name for name in _SICK_TEXTS + _SICK_LABELS if name not in header]
    if missing:
        raise DataError(f"{path} has no column {', '.join(missing)}", "expected SICK as it is published")
    pairs = []
    for number, fields in enumerate(rows, 2):
        if len(fields) < len(header):
            raise DataError(f"{path}:{number}: expected {len(header)} fields, found {len(fields)}")
        row = dict(zip(header, fields, strict=False))
        id = row["pair_ID"]
        captions = {x: row.get(f"sentence_{x}_original") for x in "AB"}
        pairs.append(
            Pair(
                first=Sentence("sick", f"{id}A", row["sentence_A"], is_paired=True),
                second=Sentence("sick", f"{id}B", row["sentence_B"], is_paired=True),
                relatedness=float(row["relatedness_score"]),
                entailment=row["entailment_label"],
                both_ways=(row["entailment_AB"], row["entailment_BA"]) == ("A_entails_B", "B_entails_A"),
                captions=tuple(
                    Sentence("sick-captions", f"{id}{x}", c) for x, c in captions.items() if c is not None
                ),
            )
        )
    return pairs


def read_msrp(folder: Path) -> list[Sentence]:
    """MSR Paraphrase, training and test part."""
    sentences = []
    for part in ("train", "test"):
        path = find(folder, f"msr_paraphrase_{part}.txt")
        if path is not None:
            rows = _rows(path)
            next(rows)
            for row in rows:
                if len(row) >= 5:
                    sentences += [Sentence("msrp", row[1], row[3]), Sentence("msrp", row[2], row[4])]
    return sentences


def read_treebank(folder: Path) -> list[Sentence]:
    """The raw text of NLTK's Treebank sample (`treebank.zip`), a sentence a line."""
    path = folder / "treebank.zip"
    if not path.is_file():
        return []
    sentences = []
    with zipfile.ZipFile(path) as archive:
        for name in sorted(n for n in archive.namelist() if "/raw/wsj_" in n):
            file = name.rpartition("/")[2]
            lines = archive.read(name).decode("latin-1").splitlines()
            for number, line in enumerate(lines, 1):
                if line.strip() and not line.startswith(".START"):
                    sentences.append(Sentence("treebank", f"{file}:{number}", line.strip()))
    return sentences


def read_sts(folder: Path) -> list[Sentence]:
    """The captions of the STS benchmark (its news are those of MSR Paraphrase and the like)."""
    sentences = []
    for part in ("dev", "test"):
        path = find(folder, f"sts-{part}.csv")
        if path is not None:
            for number, row in enumerate(_rows(path), 1):
                if len(row) >= 7 and row[0] == "main-captions":
                    sentences.append(Sentence("sts", f"{part}:{number}A", row[5]))
                    sentences.append(Sentence("sts", f"{part}:{number}B", row[6]))
    return sentences
