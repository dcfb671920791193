"""The plain layout `{id, split, turns: [{s, t}]}` in JSON lines, in which small corpora are passed on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from palaver.corpora.files import DialogueReader
from palaver.corpora.reading import Tally, split_labels
from palaver.schema import Dialogue
from palaver.schema.base import FrozenDict, Scalar


def read_plain(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """The dialogues with their split as everybody calls it. Any other dialogue file is read as well."""
    reader = DialogueReader(path)
    yield from with_normal_splits(reader)
    if reader.n_duplicates:
        tally["dialogues with the id of an earlier one"] += reader.n_duplicates
    if reader.encoding.recoded_lines:
        tally["lines that were not UTF-8, read as Windows-1252"] += reader.encoding.recoded_lines


def with_normal_splits(dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """The same dialogues; `split` is train, valid or test, and a list of one topic is that topic."""
    for dialogue in dialogues:
        labels = dict(dialogue.labels)
        original = labels.get("split")
        if isinstance(original, str) and "original_split" not in labels:
            labels.update(split_labels(original))
        if "topic" in labels:
            labels["topic"] = _only(labels["topic"])
        changed = labels != dialogue.labels
        yield dialogue.model_copy(update={"labels": FrozenDict(labels)}) if changed else dialogue


def _only(topic: Scalar) -> Scalar:
    """`["Travel"]` -> `Travel`: the reader of files keeps a list as JSON text."""
    if isinstance(topic, str) and topic.startswith("["):
        try:
            found = json.loads(topic)
        except ValueError:
            return topic
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str):
            return found[0]
    return topic
