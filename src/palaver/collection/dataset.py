"""Conversations as a dataset to pass on: without the participants' own names, and as Parquet with a card."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from palaver.collection.labels import PARTICIPANT, in_split_order, text_label, with_labels
from palaver.collection.stats import ConversationStats, count_conversations
from palaver.errors import UserError
from palaver.files import write_atomically
from palaver.readers import write_dialogues
from palaver.schema import Dialogue
from palaver.tabular import show_value


def number_participants(dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """The participants as p1, p2, … in order of appearance: who they are is nobody else's business."""
    numbers: dict[str, str] = {}
    for dialogue in dialogues:
        labels: dict[str, object] = dict(dialogue.labels)
        for name in [name for name in labels if name.startswith(PARTICIPANT)]:
            people = str(labels[name] or "").split("|")
            labels[name] = "|".join(numbers.setdefault(person, f"p{len(numbers) + 1}") for person in people)
        yield with_labels(dialogue, labels)


def write_parquet(dialogues: Sequence[Dialogue], folder: Path, *, name: str, licence: str = "") -> list[str]:
    """`data/SPLIT.parquet` and `README.md`, as Hugging Face `datasets` loads it; the splits' names."""
    parts: dict[str, list[Dialogue]] = {}
    for dialogue in dialogues:
        parts.setdefault(text_label(dialogue, "split") or "train", []).append(dialogue)
    wrong = [split for split in parts if not split.replace("_", "").isalnum() or not split.isascii()]
    if wrong:
        raise UserError(
            f"{wrong[0]!r} cannot be the name of a split", "use letters, digits and _ in the label split"
        )
    splits = in_split_order(parts)
    for split in splits:
        write_dialogues(parts[split], folder / "data" / f"{split}.parquet")
    with write_atomically(folder / "README.md") as file:
        file.write(dataset_card(name, licence, splits, count_conversations(dialogues)))
    return splits


def dataset_card(name: str, licence: str, splits: Sequence[str], stats: ConversationStats) -> str:
    """The card: what is in the files, how much of it, and under which terms."""
    files = "\n".join(f"  - split: {split}\n    path: data/{split}.parquet" for split in splits)
    rows = "\n".join(
        f"| {size.split} | {size.configuration or 'all'} | {size.conversations:,} | {size.utterances:,} "
        f"| {show_value(size.turns)} | {show_value(size.length)} | {size.distinct_words:,} |"
        for size in stats.sizes
    )
    terms = f"license: {_yaml(licence)}\n" if licence else ""
    notes = "".join(f"\nNote: {note}.\n" for note in stats.notes)
    return f"""---
pretty_name: {_yaml(name)}
{terms}task_categories:
- text-generation
configs:
- config_name: default
  data_files:
{files}
---

# {" ".join(name.split())}

Conversations between two sides, each with what it was given to read.

| split | configuration | conversations | utterances | turns each | words each | distinct words |
|---|---|---:|---:|---:|---:|---:|
{rows}
{notes}
## Fields

One conversation a row.

| field | content |
|---|---|
| `id` | the conversation |
| `turns` | list of `speaker`, `text`, `knowledge` (the sections it came from), `labels` (JSON text) |
| `speakers` | the sides, in order of first appearance |
| `knowledge` | JSON text: each side's reading set, in sections FS1, FS2, … and AS1, AS2, … |
| `labels` | JSON text: `config`, `article`, `split`, and by side `rating_…` and `participant_…` |

Of a turn's labels, `sentiment` is what its writer says of it and `turn_rating` what the partner says.

## Licence

{licence or "Not stated: whoever passes this dataset on should say under which terms."}
"""


def _yaml(text: str) -> str:
    """A text that YAML takes for nothing else."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
