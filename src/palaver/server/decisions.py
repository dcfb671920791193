"""Disputed items, and what an admin decided about them.

A decision stands beside the raters' answers and changes none of them: it is a row of its own, is exported as
one, and no statistic counts it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from palaver.schema import Question
from palaver.schema.rating import value_text
from palaver.server.database import Database
from palaver.server.editions import Edition
from palaver.server.records import log
from palaver.server.refusal import Refusal, clean
from palaver.server.tables import answer, assignment, decision, rater, screen

MOST_ITEMS = 200
LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItem:
    """One thing that raters judged: an output of an item, or a pair, by one criterion."""

    item: str
    question: Question
    system: str
    against: str | None
    values: tuple[str, ...]
    """Of raters who are not excluded, one each, the latest."""
    dispute: float
    """The share of pairs of raters who said different things; NaN with fewer than two raters."""
    decision: Row[Any] | None

    @property
    def criterion(self) -> str:
        return self.question.criterion


def judged_items(database: Database, edition: Edition, item: str | None = None) -> list[JudgedItem]:
    """What two raters or more have judged, the most disputed first; all that was judged of one item."""
    questions = {question.criterion: question for question in edition.study.questions}
    key = (answer.c.item, answer.c.criterion, answer.c.system, answer.c.against)
    query = (
        select(*key, answer.c.rater_id, answer.c.value)
        .join(assignment, assignment.c.id == answer.c.assignment_id)
        .join(screen, screen.c.id == assignment.c.screen_id)
        .join(rater, rater.c.id == answer.c.rater_id)
        .where(screen.c.kind == "main", ~rater.c.excluded)
        .order_by(answer.c.number)
    )
    if item is not None:
        query = query.where(answer.c.item == item)
    values: dict[tuple[str, str, str, str | None], dict[str, str]] = {}
    with database.reading() as connection:
        for row in connection.execute(query):
            place = (row.item, row.criterion, row.system, row.against)
            values.setdefault(place, {})[row.rater_id] = row.value
        decided = _standing(connection)
    judged = [
        JudgedItem(
            item=name,
            question=questions[criterion],
            system=system,
            against=against,
            values=tuple(by_rater.values()),
            dispute=_dispute(list(by_rater.values())),
            decision=decided.get((name, criterion, system, against)),
        )
        for (name, criterion, system, against), by_rater in values.items()
        if criterion in questions
    ]
    if item is not None:
        return judged
    several = [one for one in judged if not math.isnan(one.dispute)]
    return sorted(several, key=lambda one: -one.dispute)[:MOST_ITEMS]


def _dispute(values: Sequence[str]) -> float:
    n_pairs = len(values) * (len(values) - 1) / 2
    if not n_pairs:
        return math.nan
    n_same = sum(values.count(value) * (values.count(value) - 1) / 2 for value in set(values))
    return 1 - n_same / n_pairs


def _standing(connection: Connection) -> dict[tuple[str, str, str, str | None], Row[Any]]:
    """The latest decision about each thing, unless it was taken back."""
    latest: dict[tuple[str, str, str, str | None], Row[Any]] = {}
    for row in connection.execute(select(decision).order_by(decision.c.id)):
        latest[row.item, row.criterion, row.system, row.against] = row
    return {key: row for key, row in latest.items() if row.value is not None}


def count_decisions(database: Database) -> int:
    """Decisions that stand."""
    with database.reading() as connection:
        return len(_standing(connection))


def settle(
    database: Database, edition: Edition, judged: JudgedItem, value: str, reason: str, *, by: str, now: float
) -> None:
    """Write down a decision; an empty value takes an earlier one back."""
    text: str | None = None
    if value.strip():
        try:
            text = value_text(judged.question.scale.parse(value.strip()))
        except ValueError as error:
            raise Refusal(f"{judged.criterion}: {error}", 422) from None
    reason = clean(reason.strip(), "the reason")
    if len(reason) > LONGEST_REASON:
        raise Refusal(f"the reason has more than {LONGEST_REASON:,} characters", 422)
    row = {
        "item": judged.item,
        "system": judged.system,
        "against": judged.against,
        "criterion": judged.criterion,
        "value": text,
        "reason": reason,
        "admin": by,
        "at": now,
        "version": edition.version,
    }
    with database.writing() as connection:
        connection.execute(insert(decision).values(row))
        said = f"as {text}" if text is not None else "no longer"
        log(connection, now, None, "settled", f"{judged.item}, {judged.criterion}: {said}, by {by}")


def decision_lines(database: Database, *, names: bool = True) -> Iterator[bytes]:
    """Every decision that was made, one JSON line each; `standing`: it was not replaced or taken back."""
    with database.reading() as connection:
        standing = {row.id for row in _standing(connection).values()}
        rows = connection.execute(select(decision).order_by(decision.c.id)).all()
    for row in rows:
        line = {**row._mapping, "at": datetime.fromtimestamp(row.at, UTC).isoformat(timespec="seconds")}
        line |= {"kind": "decision", "standing": row.id in standing}
        del line["id"]
        if not names:
            del line["admin"]
        yield (json.dumps(line, ensure_ascii=False) + "\n").encode(errors="replace")
