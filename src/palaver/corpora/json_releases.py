"""Corpora whose authors release JSON: CMU DoG, DREAM, Commonsense-Dialogues, Taskmaster-4, SGD, MuTual.

Each loader reads the authors' own files and names speakers, ids and splits like the plain copies do, so that
a result does not depend on where the corpus was had from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palaver.corpora.reading import UNKNOWN, alternate, build, field, load_json, split_files, split_labels
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue


def read_cmu_dog(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`Conversations/{train,valid,test}/ID.json`: talk about a film that one or both could read about."""
    for name, file in split_files(path, ("train", "valid", "test"), "{}/*.json", split):
        record = load_json(file, dict)
        turns = []
        for turn in field(record, "history", list, str(file)):
            speaker, text = field(turn, "uid", str, str(file)), field(turn, "text", str, str(file))
            turns.append({"speaker": speaker, "text": text, "labels": {"doc": turn.get("docIdx")}})
        labels: dict[str, Any] = {**split_labels(name), "rating": record.get("rating")}
        labels["wikiDocumentIdx"] = record.get("wikiDocumentIdx", record.get("docLinkIdx"))
        labels["who"] = json.dumps(record.get("whoSawDoc"))
        yield build(file.stem, turns, labels, str(file))


def read_dream(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`data/{train,dev,test}.json`: a list of [turns "M: text", questions, id]."""
    for name, file in split_files(path.parent, ("train", "dev", "test"), "{}.json", split):
        for number, record in enumerate(load_json(file, list), start=1):
            match record:
                case [list(lines), _, str(id)] if all(isinstance(line, str) for line in lines):
                    turns = [_spoken(line, tally) for line in lines]
                case _:
                    raise DataError(f"{file}, dialogue {number}: expected [turns, questions, id]")
            yield build(id, turns, split_labels(name), f"{file}, dialogue {number}")


def read_commonsense(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`data/{train,valid,test}.json`: id -> {context, speaker, turns}."""
    for name, file in split_files(path.parent, ("train", "valid", "test"), "{}.json", split):
        for id, record in load_json(file, dict).items():
            place = f"{file}, dialogue {id}"
            turns = alternate(field(record, "turns", list, place), ("A", "B"))
            labels = {"split": name, "context": record.get("context"), "role": record.get("speaker")}
            yield build(f"{name}{id}", turns, labels, place)


def read_taskmaster4(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`TM-4-2024/data/data_NN.json`: lists of {conversation_id, utterances}. There are no splits."""
    files = sorted(p for p in path.iterdir() if p.name.endswith((".json", ".json.gz")))
    for file in files:
        for number, record in enumerate(load_json(file, list), start=1):
            place = f"{file}, dialogue {number}"
            turns = _turns(record, "utterances", "text", place)
            labels = {"split": "train", "scenario": record.get("scenario")}
            yield build(field(record, "conversation_id", str, place), turns, labels, place)


def read_sgd(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`{train,dev,test}/dialogues_NNN.json`: lists of {dialogue_id, services, turns}."""
    for name, file in split_files(path.parent.parent, ("train", "dev", "test"), "{}/dialogues_*.json", split):
        for number, record in enumerate(load_json(file, list), start=1):
            place = f"{file}, dialogue {number}"
            turns = _turns(record, "turns", "utterance", place)
            labels = {**split_labels(name), "services": json.dumps(record.get("services"))}
            id = f"{name}_{field(record, 'dialogue_id', str, place)}"
            yield build(id, turns, labels, place)


_SIDE = re.compile(r"(?:^|\s)([mf]) : ")


def read_mutual(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """`data/mutual/{train,dev,test}/ID.txt`: an article "m : … f : …" and the options to go on with.

    The right option is the last turn; where the answer is not given, the dialogue ends before it.
    """
    for name, file in split_files(path, ("train", "dev", "test"), "{}/*.txt", split):
        record = load_json(file, dict)
        said = field(record, "article", str, str(file))
        options = dict(zip("ABCD", field(record, "options", list, str(file)), strict=False))
        answer = str(record.get("answers"))
        if answer in options:
            said = f"{said} {options[answer]}"
        else:
            tally["dialogues whose answer is not given, which end before it"] += 1
        before, *pieces = _SIDE.split(said)
        if before.strip() or not pieces:
            raise DataError(f"{file}: article: expected 'm : …' or 'f : …', found {said[:60]!r}")
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        turns = [{"speaker": side, "text": text.strip()} for side, text in pairs]
        yield build(str(record.get("id") or file.stem), turns, split_labels(name), str(file))


def _turns(record: Any, name: str, text: str, place: str) -> list[dict[str, Any]]:
    return [
        {"speaker": field(turn, "speaker", str, place), "text": field(turn, text, str, place)}
        for turn in field(record, name, list, place)
    ]


def _spoken(line: str, tally: Tally) -> dict[str, Any]:
    speaker, colon, text = line.partition(":")
    if not colon or not speaker.strip():
        tally[f"turns without a speaker, called {UNKNOWN} here"] += 1
        return {"speaker": UNKNOWN, "text": line.strip()}
    return {"speaker": speaker.strip(), "text": text.strip()}
