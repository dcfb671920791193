"""The plain layout `{id, split, turns: [{s, t}]}` in JSON lines, in which small corpora are passed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from palaver.corpora.reading import split_labels
from palaver.readers import read_dialogues
from palaver.readers.shapes import Tally, json_list
from palaver.schema import Dialogue
from palaver.schema.base import FrozenDict, Scalar


def read_plain(
    path: Path, split: str | None, tally: Tally, columns: Mapping[str, str] | None = None
) -> Iterator[Dialogue]:
    """The dialogues with their split as everybody calls it, and a list of one topic as that topic.

    Any other dialogue file is read as well.
    """
    reader = read_dialogues(path, columns=columns)
    for dialogue in reader:
        labels = dict(dialogue.labels)
        original = labels.get("split")
        if isinstance(original, str) and "original_split" not in labels:
            labels.update(split_labels(original))
        if "topic" in labels:
            labels["topic"] = _only(labels["topic"])
        changed = labels != dialogue.labels
        yield dialogue.model_copy(update={"labels": FrozenDict(labels)}) if changed else dialogue
    tally.update(reader.tally)


def _only(topic: Scalar) -> Scalar:
    """`["Travel"]` -> `Travel`: the reader of files keeps a list as JSON text."""
    topics = json_list(topic)
    if topics is not None and len(topics) == 1 and isinstance(topics[0], str):
        return topics[0]
    return topic
