"""Answers on their way into the database: checked against the scale, stored once, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select

from palaver.schema import Item, Question
from palaver.schema.rating import value_text
from palaver.server.catalogue import ScreenContent
from palaver.server.refusal import Refusal, storable
from palaver.server.tables import answer

DAY = 86400.0
MAX_VALUE = 2000


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """One answer as it comes from a page. `position` is where the output stood, not which one it is."""

    id: str
    criterion: str
    position: int
    value: object
    seconds: float | None = None
    given_at: float | None = None


def answer_row(
    given: RawAnswer,
    content: ScreenContent,
    assignment_id: int,
    rater_id: str,
    order: Sequence[int],
    now: float,
) -> dict[str, object]:
    """The row to store, or Refusal with what was expected."""
    question = next((q for q in content.questions if q.criterion == given.criterion), None)
    if question is None:
        raise Refusal(f"this screen does not ask for {given.criterion!r}", 422)
    if not 0 <= given.position < len(order):
        raise Refusal(f"there is no output in place {given.position}", 422)
    try:
        value = value_text(question.scale.read_answer(given.value, order))
    except ValueError as error:
        raise Refusal(f"{given.criterion}: {error}", 422) from None
    output, against, position = content.item.outputs[order[given.position]], None, given.position
    if question.scale.form == "pair":  # a comparison is about the item's first output
        output, against = content.item.outputs[0], content.item.outputs[1].system
        position = list(order).index(0)
    return {
        "id": storable(given.id, "id", 36, shortest=1),
        "assignment_id": assignment_id,
        "rater_id": rater_id,
        "item": content.item.id,
        "system": output.system,
        "against": against,
        "output": output.id,
        "criterion": question.criterion,
        "value": storable(value, given.criterion, MAX_VALUE),
        "given_at": _plausible(given.given_at, now),
        "received_at": now,
        "seconds": given.seconds if given.seconds is not None and 0 <= given.seconds < DAY else None,
        "shown_position": position,
    }


def _plausible(given_at: float | None, now: float) -> float:
    """A phone's clock may be wrong: no answer is given after it arrived, or a month before."""
    if given_at is None or not now - 31 * DAY <= given_at <= now:
        return now
    return given_at


_LAST = select(func.coalesce(func.max(answer.c.number), 0))
_ADD = insert(answer)
_KNOWN = select(answer).where(answer.c.id.in_(bindparam("ids", expanding=True)))
_ANSWERED = select(answer.c.criterion, answer.c.system).where(
    answer.c.assignment_id == bindparam("of_assignment")
)


def store(connection: Connection, rows: Sequence[dict[str, object]]) -> None:
    """Add the rows that are not there yet. Needs the writer's lock, as it numbers them."""
    if not rows:
        return
    new: dict[object, dict[str, object]] = {}
    for row in rows:
        if new.setdefault(row["id"], row) is not row and not _same(new[row["id"]], row):
            raise Refusal("two answers share an id", 409)
    known = connection.execute(_KNOWN, {"ids": list(new)}).mappings()
    for there in [dict(row) for row in known]:
        if not _same(there, new.pop(there["id"])):
            raise Refusal("another answer has this id already", 409)
    last = connection.execute(_LAST).scalar_one()
    numbered = [{**row, "number": last + n} for n, row in enumerate(new.values(), start=1)]
    if numbered:
        connection.execute(_ADD, numbered)


def is_complete(
    connection: Connection, assignment_id: int, item: Item, questions: Sequence[Question]
) -> bool:
    """Whether every required question has an answer for every output (a comparison needs one)."""
    rows = connection.execute(_ANSWERED, {"of_assignment": assignment_id})
    answered = {(criterion, system) for criterion, system in rows}
    for question in questions:
        outputs = item.outputs if question.scale.form != "pair" else item.outputs[:1]
        if question.required and any((question.criterion, o.system) not in answered for o in outputs):
            return False
    return True


def _same(a: Mapping[str, object], b: Mapping[str, object]) -> bool:
    return all(a[k] == b[k] for k in ("rater_id", "assignment_id", "criterion", "system", "value"))
