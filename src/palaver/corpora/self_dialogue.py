"""The Self-dialogue Corpus (Krause et al. 2017): one person writes both sides of a conversation.

`corpus/TOPIC/*.csv` are the tables of Mechanical Turk, one assignment a row: `AssignmentId`, `WorkerId`,
`Reject`, `Answer.sentence1` and so on (in the alphabet's order: 1, 10, 2). `blocked_workers.txt` beside
`corpus` names people whose work is to be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from palaver.corpora.reading import alternate, build, csv_rows, text_lines
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue

_SENTENCE = re.compile(r"Answer\.sentence(\d+)")


def read_topics(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """All assignments that were not rejected, topic by topic. There are no splits: all is `train`."""
    files = sorted(p for p in path.glob("*/*.csv*") if p.name.endswith((".csv", ".csv.gz")))
    if not files:
        raise DataError(f"{path} holds no tables", "expected corpus/TOPIC/*.csv, as in the release")
    blocked_file = path.parent / "blocked_workers.txt"
    blocked: set[str] = set()
    if blocked_file.exists():
        blocked.update(line.strip() for _, line in text_lines(blocked_file, tally))
    seen: set[str] = set()
    for file in files:
        for number, row in csv_rows(file, ("AssignmentId", "WorkerId", "Answer.sentence1"), tally):
            if row.get("Reject"):
                tally["rejected assignments, left out"] += 1
            elif row["WorkerId"] in blocked:
                tally["assignments of blocked workers, left out"] += 1
            elif row["AssignmentId"] in seen:
                tally["assignments that were there already, left out"] += 1
            elif not (texts := _sentences(row, tally)):
                tally["assignments without a sentence, left out"] += 1
            else:
                seen.add(row["AssignmentId"])
                labels = {"split": "train", "topic": file.parent.name}
                turns = alternate(texts, ("A", "B"))
                yield build(row["AssignmentId"], turns, labels, f"{file}, row {number}")


def _sentences(row: dict[str, str], tally: Tally) -> list[str]:
    numbered = {int(match[1]): text for name, text in row.items() if (match := _SENTENCE.fullmatch(name))}
    sentences = [numbered[n].strip() for n in sorted(numbered)]
    said = [text for text in sentences if text not in ("", "{}")]  # {}: how the export shows an empty answer
    tally["empty sentences, left out"] += len(sentences) - len(said)
    return said
