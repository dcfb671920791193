"""Answers on their way into the database: checked against the scale, stored once, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from palaver.errors import Sentence
from palaver.schema import Item, Question
from palaver.schema.rating import value_text
from palaver.schema.scale.text import LONGEST
from palaver.server.catalogue import ScreenContent
from palaver.server.leases import Lease
from palaver.server.records import AnswerKey
from palaver.server.refusal import Refusal, clean, storable
from palaver.server.tables import answer
from palaver.studies.conditions import is_asked
from palaver.studies.turns import judged_turns

DAY = 86400.0
MAX_VALUE = LONGEST


def _storable(text: str) -> str:
    try:
        return clean(text)
    except Refusal as refused:
        raise ValueError(refused.message) from None


Storable = Annotated[str, AfterValidator(_storable)]


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """One answer as a page sends it. `position` is where the output stood, `turn` the turn of its dialogue
    where it is about one; a pairwise `value` is the place chosen.

    What comes from a script is checked against the types; the scale checks the value of all."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_-]{8,36}$")]
    criterion: Annotated[Storable, StringConstraints(min_length=1, max_length=1000)]
    position: Annotated[int, Field(ge=0, le=1000)]
    value: (
        Annotated[float, Field(strict=True)]  # a truth value is no number
        | Annotated[Storable, StringConstraints(max_length=2 * LONGEST)]  # line breaks may be two characters
        | Annotated[list[Storable], Field(max_length=1000)]
    )
    seconds: Annotated[float | None, Field(ge=0, le=1e7)] = None
    given_at: Annotated[float | None, Field(ge=0, le=1e11)] = None
    turn: Annotated[int | None, Field(ge=0, le=1_000_000)] = None


def answer_row(
    raw: RawAnswer,
    content: ScreenContent,
    assignment_id: int,
    rater_id: str,
    order: Sequence[int],
    now: float,
    version: int,
) -> dict[str, object]:
    """The row to store, or Refusal with what was expected."""
    question = next((q for q in content.questions if q.criterion == raw.criterion), None)
    if question is None:
        raise Refusal(Sentence("this screen does not ask for {criterion!r}", criterion=raw.criterion), 422)
    if not 0 <= raw.position < len(order):
        raise Refusal(Sentence("there is no output in place {place}", place=raw.position), 422)
    try:
        value = value_text(question.scale.read_answer(raw.value, order))
    except ValueError as error:
        problem = Sentence("{criterion}: {problem}", criterion=raw.criterion, problem=error.args[0])
        raise Refusal(problem, 422) from None
    output, against, position = content.item.outputs[order[raw.position]], None, raw.position
    if question.scale.form == "pair":  # a comparison is about the item's first output
        output, against = content.item.outputs[0], content.item.outputs[1].system
        position = list(order).index(0)
    if raw.turn not in judged_turns(question, output):
        if raw.turn is None:
            problem = Sentence("{criterion} is not asked about the whole", criterion=raw.criterion)
        else:
            problem = Sentence(
                "{criterion} is not asked about turn {turn}", criterion=raw.criterion, turn=raw.turn
            )
        raise Refusal(problem, 422)
    return {
        "id": storable(raw.id, "id", 36, shortest=1),
        "assignment_id": assignment_id,
        "rater_id": rater_id,
        "item": content.item.id,
        "system": output.system,
        "against": against,
        "output": output.id,
        "criterion": question.criterion,
        "value": storable(value, raw.criterion, MAX_VALUE),
        "given_at": _plausible(raw.given_at, now),
        "received_at": now,
        "seconds": raw.seconds if raw.seconds is not None and 0 <= raw.seconds < DAY else None,
        "shown_position": position,
        "version": version,
        "turn": raw.turn,
    }


def _plausible(given_at: float | None, now: float) -> float:
    """A phone's clock may be wrong: no answer is given after it arrived, or a month before."""
    if given_at is None or not now - 31 * DAY <= given_at <= now:
        return now
    return given_at


CHANGES = 20
"""How often a rater may change every answer of a screen."""
_OTHER = Sentence("another answer has this id already")
_ADD = insert(answer)
_THERE = select(answer).where(answer.c.assignment_id == bindparam("of_assignment")).order_by(answer.c.number)


def store(
    connection: Connection,
    held: Lease,
    rows: Sequence[dict[str, object]],
    questions: Sequence[Question],
    most: int,
) -> tuple[int, dict[AnswerKey, str]]:
    """Add the rows of a screen that are not there yet, so that it has at most `most`.

    Answers to questions that are not asked (see `Condition`) are dropped. How many rows were added, and all
    values as they stand now.
    """
    new: dict[object, dict[str, object]] = {}
    for row in rows:
        if new.setdefault(row["id"], row) is not row and not _same(new[row["id"]], row):
            raise Refusal("two answers share an id", 409)
    there = connection.execute(_THERE, {"of_assignment": held.id}).mappings().all()
    for known in there:
        if known["id"] in new and not _same(known, new.pop(known["id"])):
            raise Refusal(_OTHER, 409)
    stored = values_of(there)
    added = drop_unasked(list(new.values()), {**stored, **values_of(rows)}, questions)
    if added:
        if len(there) + len(added) > most:
            raise Refusal("this screen was answered too many times", 409)
        try:
            connection.execute(_ADD, added)
        except IntegrityError:  # on another screen
            raise Refusal(_OTHER, 409) from None
    values = {**stored, **values_of(added)}
    check_order(values, questions)
    return len(added), values


def check_order(values: Mapping[AnswerKey, str], questions: Sequence[Question]) -> None:
    """Refuse answers that put the outputs of an item into no order: two best ones, a rank given twice."""
    for question in questions:
        if question.scale.relative:
            given = [
                float(value) for (criterion, _, _), value in values.items() if criterion == question.criterion
            ]
            problem = question.scale.check_outputs(given) if given else ""
            if problem:
                raise Refusal(
                    Sentence("{criterion}: {problem}", criterion=question.criterion, problem=problem), 422
                )


def values_of(rows: Sequence[Mapping[Any, Any]]) -> dict[AnswerKey, str]:
    """What each answer is about -> its value; of several the last."""
    return {_key(row): row["value"] for row in rows}


def drop_unasked(
    rows: Sequence[dict[str, object]], values: Mapping[AnswerKey, str], questions: Sequence[Question]
) -> list[dict[str, object]]:
    """The rows without answers to questions that these values hide: a page without scripts shows them all."""
    asked = {question.criterion: question for question in questions}
    return [
        row
        for row, (criterion, system, turn) in zip(rows, map(_key, rows), strict=True)
        if is_asked(asked[criterion], system, turn, values, questions)
    ]


def _key(row: Mapping[str, Any]) -> AnswerKey:
    return row["criterion"], row["system"], row["turn"]


def is_complete(values: Mapping[AnswerKey, str], item: Item, questions: Sequence[Question]) -> bool:
    """Whether every required question has an answer wherever it is asked (a comparison needs one)."""
    for question in questions:
        outputs = item.outputs if question.scale.form != "pair" else item.outputs[:1]
        if question.required and any(
            (question.criterion, output.system, turn) not in values
            and is_asked(question, output.system, turn, values, questions)
            for output in outputs
            for turn in judged_turns(question, output)
        ):
            return False
    return True


def _same(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    return all(a[k] == b[k] for k in ("rater_id", "assignment_id", "criterion", "system", "turn", "value"))
