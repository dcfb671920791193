"""OpenSubtitles as plain text (Tiedemann 2009): a line is an utterance, the next line is the answer to it.

Nothing says who speaks or where a film ends. Lines are given to two speakers by turns, and come in dialogues
of 100 lines that overlap by one: each pair of consecutive lines is in exactly one dialogue. A blank line,
where there is one, ends a dialogue, and no pair crosses it. A file of any size is read without being held.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from palaver.corpora.reading import alternate, build, text_lines
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue

LINES = 100
"""Lines in a dialogue. The last one is also the first of the next."""

_SUFFIXES = (".txt", ".en", ".txt.gz", ".en.gz")


def read_lines(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """The lines of a file, or of every text file in a folder."""
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.name.lower().endswith(_SUFFIXES))
    if not files:
        raise DataError(f"{path} holds no text file", f"expected names that end in {', '.join(_SUFFIXES)}")
    for file in files:
        yield from _read_file(file, tally)


def _read_file(path: Path, tally: Tally) -> Iterator[Dialogue]:
    name = path.name.removesuffix(".gz").removesuffix(".txt")
    texts: list[str] = []
    first, fresh = 1, False  # fresh: the lines hold one that no dialogue has had yet
    for number, line in text_lines(path, tally):
        text = line.strip()
        if not text:
            tally["blank lines, which end a dialogue"] += 1
            if fresh:
                yield _dialogue(name, path, first, texts)
            texts, fresh = [], False
            continue
        if not texts:
            first = number
        texts.append(text)
        fresh = True
        if len(texts) == LINES:
            yield _dialogue(name, path, first, texts)
            texts, first, fresh = texts[-1:], number, False
    if fresh:
        yield _dialogue(name, path, first, texts)


def _dialogue(name: str, path: Path, first: int, texts: list[str]) -> Dialogue:
    # by the line, so that the one that two dialogues share has the same speaker in both
    turns = alternate(texts, ("A", "B"), first - 1)
    return build(f"{name}-{first}", turns, {"line": first}, f"{path}, line {first}")
