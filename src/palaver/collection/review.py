"""The list that an owner goes through: each verdict a row of a CSV file, with a column to decide in."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from palaver.collection.quality import Quality
from palaver.collection.records import Decision, Key, Verdict
from palaver.errors import DataError, nearest
from palaver.files import write_atomically
from palaver.readers.rows import RowFile

COLUMNS = ("conversation", "participant", "verdict", "score", "reasons", "decision")
DECISIONS: dict[str, Verdict] = {
    "accept": "accepted",
    "accepted": "accepted",
    "reject": "rejected",
    "rejected": "rejected",
}


def write_review(quality: Quality, path: Path) -> None:
    """One row for each conversation, then one for each who took part in it; `decision` is empty."""
    with write_atomically(path) as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_rows(quality))


def _rows(quality: Quality) -> Iterator[tuple[str, ...]]:
    for result in quality.results:
        score, reasons = f"{result.score:.2f}", "; ".join(result.reasons)
        yield result.conversation, "", result.verdict, score, reasons, ""
        for side in result.sides:
            yield (
                result.conversation,
                side.participant,
                side.verdict,
                f"{side.score:.2f}",
                "; ".join(side.reasons),
                "",
            )


def keys_of(quality: Quality) -> set[Key]:
    """Everything that can be decided about."""
    known = {(result.conversation, "") for result in quality.results}
    return known | {(side.conversation, side.participant) for side in quality.sides}


def read_decisions(path: Path, quality: Quality) -> dict[Key, Decision]:
    """What the owner wrote into `decision`: accept, reject, or nothing. Every mistake is listed."""
    known = keys_of(quality)
    names = sorted({conversation for conversation, _ in known})
    decisions: dict[Key, Decision] = {}
    problems = []
    for number, row in RowFile(path).rows():
        if not isinstance(row, dict) or not {"conversation", "decision"} <= row.keys():
            raise DataError(
                f"{path} is not a list of decisions",
                "expected the columns conversation, participant, decision, as in the review.csv of "
                "`palaver collect check`",
            )
        word = str(row["decision"] or "").strip().lower()
        if not word:
            continue
        key = (str(row["conversation"]), str(row.get("participant") or ""))
        place = f"row {number}"
        if word not in DECISIONS:
            problems.append(f"{place}: decision: expected accept or reject, found {row['decision']!r}")
        elif key not in known:
            is_known = (key[0], "") in known
            who = f"{key[1]!r} took no part in" if is_known else "there is no conversation"
            problems.append(f"{place}: {who} {key[0]!r}{'' if is_known else nearest(key[0], names)}")
        elif key in decisions and decisions[key].verdict != DECISIONS[word]:
            problems.append(f"{place}: another row decides otherwise")
        else:
            decisions[key] = Decision(DECISIONS[word])
    if problems:
        raise DataError(f"{path}: these decisions cannot be followed", problems=problems)
    return decisions
