"""Corpora whose authors release marked text: Switchboard (dialogue-act version) and Deal or No Deal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palaver.corpora.reading import build, split_files, split_labels, text_lines
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue


def read_switchboard(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`swda_data/{train,val,test}/ID.txt`: lines `speaker|text|act`."""
    for name, file in split_files(path, ("train", "val", "test"), "{}/*.txt", split):
        if file.stem.endswith("_text"):
            continue  # the same dialogue once more, without speakers
        turns = [_act(line, f"{file}, line {n}") for n, line in text_lines(file, tally) if line.strip()]
        yield build(file.stem, turns, split_labels(name), str(file))


def _act(line: str, place: str) -> dict[str, Any]:
    speaker, bar, rest = line.partition("|")
    text, second, act = rest.rpartition("|")
    if not bar or not second:
        raise DataError(f"{place}: expected speaker|text|act, found {line[:60]!r}")
    return {"speaker": speaker.strip(), "text": text.strip(), "labels": {"act": act.strip()}}


_DIALOGUE = re.compile(r"<dialogue> (.*) </dialogue>")


def read_negotiations(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`negotiate/{train,val,test}.txt` (Lewis et al. 2017): each negotiation, as one of the two sides saw it.

    Most stand there twice, once for each side; the second is left out.
    """
    seen: set[tuple[str, ...]] = set()
    for name, file in split_files(path, ("train", "val", "test"), "{}.txt", split):
        for number, line in text_lines(file, tally):
            place = f"{file}, line {number}"
            match = _DIALOGUE.search(line)
            if match is None:
                raise DataError(f"{place}: there is no <dialogue> … </dialogue>")
            turns = [_offer(said, place) for said in match[1].split(" <eos> ")]
            turns = [turn for turn in turns if turn["text"] != "<selection>"]
            if not turns:
                tally["negotiations without a word, left out"] += 1
                continue
            mirrored = ("YOU" if turns[0]["speaker"] == "THEM" else "THEM", *(t["text"] for t in turns))
            if mirrored in seen:
                tally["negotiations as the other side saw them, left out"] += 1
                continue
            seen.add((turns[0]["speaker"], *mirrored[1:]))
            yield build(f"dnd-{name}-{number - 1}", turns, split_labels(name), place)


def _offer(said: str, place: str) -> dict[str, Any]:
    speaker, colon, text = said.partition(":")
    if not colon or speaker not in ("YOU", "THEM"):
        raise DataError(f"{place}: expected 'YOU: …' or 'THEM: …', found {said[:60]!r}")
    return {"speaker": speaker, "text": text.strip()}
