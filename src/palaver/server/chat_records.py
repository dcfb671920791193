"""What a collection gave: conversations, people and ratings, made from the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import select

from palaver.collection.lobby import SEATS, Lobby, Room
from palaver.collection.lobby import Turn as Said
from palaver.collection.records import KNOWLEDGE_SOURCE, Conversation, Decision, Key, Participant, Person
from palaver.collection.settings import Collection
from palaver.errors import DataError
from palaver.schema import Dialogue, Question, Rating, Turn
from palaver.schema.response import USER
from palaver.server.chat_log import is_collection, read_collection, read_events
from palaver.server.database import Database
from palaver.server.tables import plan, rater
from palaver.server.words import LANGUAGE

PEOPLE = "person"
"""The system that a rating of a person's message is about."""


class _Source:
    """Everything that is read once."""

    def __init__(self, database: Database) -> None:
        with database.reading() as connection:
            collection = read_collection(connection)
            if collection is None:
                raise DataError("this database holds a study, not a collection of conversations")
            self.collection: Collection = collection
            self.lobby = Lobby(read_events(connection))
            self.plans = {
                row.number: Dialogue.model_validate_json(row.document)
                for row in connection.execute(select(plan))
            }
            self.raters = connection.execute(select(rater).order_by(rater.c.entered_at, rater.c.id)).all()

    @property
    def questions(self) -> dict[str, Question]:
        c = self.collection
        asked = (*c.about_own, *c.about_partner, *c.about_replies, *c.about_whole, *c.about_pair)
        return {question.criterion: question for question in asked}


class Records(NamedTuple):
    """What a collection gave, read at one time."""

    conversations: list[Conversation]
    people: list[Person]
    decisions: dict[Key, Decision]


def read_records(database: Database) -> Records:
    """All of it, for the price of reading the log once."""
    source = _Source(database)
    people = [_person(source, row) for row in source.raters]
    return Records(list(_held(source)), people, source.lobby.decisions)


def conversations_of(database: Database) -> Iterator[Conversation]:
    """Every conversation that began, in order; of a comparison of bots, one for each bot."""
    return _held(_Source(database))


def _held(source: _Source) -> Iterator[Conversation]:
    for room in source.lobby.rooms.values():
        if room.began_at is not None:
            yield from _conversations(source, room)


def _conversations(source: _Source, room: Room) -> Iterator[Conversation]:
    if not room.bots:
        yield _conversation(source, room, str(room.number), room.turns)
        return
    for bot in room.bots:
        leg = next(place for place, bots in enumerate(room.legs) if bot in bots)
        turns = [turn for turn in room.turns if turn.leg == leg and turn.seat in (bot, SEATS[0])]
        id = f"{room.number}-{bot}" if len(room.bots) > 1 else str(room.number)
        yield _conversation(source, room, id, turns, bot)


def _conversation(
    source: _Source, room: Room, id: str, turns: list[Said], bot: str | None = None
) -> Conversation:
    planned = source.plans.get(room.plan) if room.plan is not None else None
    names = {SEATS[0]: USER, bot: bot} if bot is not None else {}
    dialogue = Dialogue(
        id=id,
        turns=tuple(_turn(source, room, turn, names) for turn in turns),
        speakers=(USER, bot) if bot is not None else SEATS,
        source=source.collection.name,
        knowledge=_reading_sets(planned, id),
        labels=_labels(source, room, planned, bot),
    )
    participants = [
        Participant(
            id=o.by,
            seat=names.get(o.seat, o.seat),
            is_bot=o.is_bot,
            first_turn=min(o.first_turn, len(turns)),
            n_turns=sum(turn.by == o.by and turn.seat == o.seat for turn in turns),
            exit=o.exit,
        )
        for o in room.occupancies
        if not o.is_bot or bot is None or o.by == bot
    ]
    return Conversation(
        id=id,
        dialogue=dialogue,
        participants=tuple(participants),
        ending=room.ending,
        configuration=str(planned.labels["config"]) if planned is not None else None,
        began_at=room.began_at or room.opened_at,
        ended_at=room.ended_at,
        session=str(room.number) if len(room.bots) > 1 else "",
    )


def _reading_sets(planned: Dialogue | None, id: str) -> tuple[Any, ...] | None:
    if planned is None or planned.knowledge is None:
        return None
    return tuple(
        shelf.model_copy(update={"id": f"{id}-{seat}"})
        for shelf, seat in zip(planned.knowledge, SEATS, strict=True)
    )


def _turn(source: _Source, room: Room, turn: Said, names: dict[str, Any]) -> Turn:
    began = max((t.at for t in room.turns[: turn.number] if t.seat != turn.seat), default=room.began_at)
    labels: dict[str, Any] = {
        "at": round(turn.at - (room.began_at or turn.at), 3),
        "seconds": round(turn.at - (began or turn.at), 3),
    }
    if turn.pasted:
        labels["pasted"] = turn.pasted
    knowledge = (turn.knowledge,) if turn.knowledge else ()
    for answers in turn.answers.values():
        for criterion, value in answers.items():
            if criterion == KNOWLEDGE_SOURCE:
                knowledge = tuple(value)
            elif (
                source.questions[criterion].scale.form != "pair"
            ):  # votes are about two systems: ratings only
                labels[criterion] = label_of(source.questions[criterion], value)
    return Turn(speaker=names.get(turn.seat, turn.seat), text=turn.text, knowledge=knowledge, labels=labels)


def label_of(question: Question, value: Any) -> str | float | int:
    """A value as a label: the word of a step where each has one, otherwise as it is."""
    if isinstance(value, list):
        return "|".join(value)
    words: tuple[str, ...] = getattr(question.scale, "labels", ())
    choices = question.scale.choices() if question.scale.form == "number" else ()
    if len(words) == len(choices) > 2:
        return next((c.label for c in choices if float(c.value) == float(value)), value)
    return int(value) if isinstance(value, float) and value == int(value) else value


def _labels(source: _Source, room: Room, planned: Dialogue | None, bot: str | None) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    if planned is not None:
        labels |= {"config": planned.labels["config"], "article": planned.labels["article"]}
    if room.failure:
        labels["failure"] = room.failure
    seats = {o.by: o.seat for o in room.occupancies}
    if bot is None:
        for person, given in room.whole.items():
            for criterion, value in given.get("", {}).items():
                labels[f"{criterion}_{seats[person]}"] = label_of(source.questions[criterion], value)
        return labels
    labels["system"] = bot
    if len(room.bots) > 1:
        labels["context"] = str(room.number)  # by which the dialogues of one round are matched
    for person, given in room.whole.items():
        labels["rater"] = person
        about = given.get(bot, {}) if len(room.bots) > 1 else given.get("", {})
        labels |= {criterion: value for criterion, value in about.items() if not isinstance(value, list)}
    return labels


# --- people -------------------------------------------------------------------------------------------------


def people_of(database: Database) -> list[Person]:
    """Everybody who came in, in the order in which they did."""
    source = _Source(database)
    return [_person(source, row) for row in source.raters]


def _person(source: _Source, row: Any) -> Person:
    visitor = source.lobby.visitors.get(row.id)
    known = {
        "id": row.id,
        "platform": row.platform,
        "external": row.external,
        "code": row.code,
        "entered_at": row.entered_at,
        LANGUAGE: json.loads(row.parameters).get(LANGUAGE, ""),
    }
    if visitor is None:
        exits = {"declined": "did not agree to take part", "withdrawn": "left before the waiting room"}
        if row.state in exits:
            return Person(**known, exit="left", pay="none", reason=exits[row.state])
        return Person(**known, reason="has not come to the waiting room")
    return Person(
        **known,
        left_at=visitor.left_at,
        seconds_waited=visitor.seconds_waited,
        seconds_talked=visitor.seconds_talked,
        n_turns=visitor.n_turns,
        conversations=tuple(map(str, visitor.rooms)),
        exit=visitor.exit,
        pay=visitor.pay,
        share=visitor.share,
        reason=visitor.reason or "is here",
    )


# --- ratings ------------------------------------------------------------------------------------------------


def ratings_of(database: Database) -> Iterator[Rating]:
    """What people said about their partners, as rows of the one rating table: turns, conversations, pairs."""
    source = _Source(database)
    own = {question.criterion for question in source.collection.about_own}
    for room in source.lobby.rooms.values():
        for turn in room.turns:
            for person, answers in turn.answers.items():
                for criterion, value in answers.items():
                    if criterion not in own:
                        bot = turn.by if turn.seat in room.bots or _is_bot(room, turn) else None
                        yield _rating(source, room, person, criterion, value, bot, turn=turn.number)
        for person, given in room.whole.items():
            for about, answers in given.items():
                for criterion, value in answers.items():
                    yield _rating(source, room, person, criterion, value, about or _only_bot(room))


class Answer(NamedTuple):
    """What somebody said about a conversation, in words."""

    rater: str
    about: str
    criterion: str
    answer: str | float | int


def answers_about(database: Database, conversation: Conversation) -> list[Answer]:
    """What was said about the whole, and the votes; answers about single messages are labels of these."""
    source = _Source(database)
    told = []
    for row in ratings_of(database):
        is_pair = row.against is not None
        if (row.context or row.item) != (conversation.session or conversation.id):
            continue
        if (row.turn is not None and not is_pair) or (
            conversation.session and not is_pair and row.system not in conversation.dialogue.speakers
        ):
            continue
        about = "the conversation" if row.turn is None else "two replies"
        if is_pair:
            about += f": {row.system} (left) or {row.against}"
        told.append(Answer(row.rater, about, row.criterion, _said(source, row)))
    return told


def _said(source: _Source, row: Rating) -> str | float | int:
    """The answer in words; of a vote, which is better."""
    value = list(row.value) if isinstance(row.value, tuple) else row.value
    if row.against is None:
        return label_of(source.questions[row.criterion], value)
    return {"win": row.system, "loss": row.against}.get(str(value), str(value))


def ratings_of_collection(database: Database) -> list[Rating]:
    """The ratings of a collection that was served; none where the database holds a study alone."""
    with database.reading() as connection:
        if not is_collection(connection):
            return []
    ratings = list(ratings_of(database))
    if not ratings:
        raise DataError("nobody has rated a conversation yet", "`palaver collect status` says how far it is")
    return ratings


def _is_bot(room: Room, turn: Said) -> bool:
    return any(o.is_bot and o.by == turn.by for o in room.occupancies)


def _only_bot(room: Room) -> str | None:
    return room.bots[0] if len(room.bots) == 1 else None


def _rating(
    source: _Source,
    room: Room,
    person: str,
    criterion: str,
    value: Any,
    bot: str | None,
    turn: int | None = None,
) -> Rating:
    question = source.questions[criterion]
    shown: dict[str, Any] = {}
    item, system = str(room.number), bot or PEOPLE
    if question.scale.form == "pair":
        first, second = room.bots[:2]
        shown = {"against": second, "context": item, "item": f"{item}|{first}|{second}", "system": first}
    elif len(room.bots) > 1 and bot is not None:
        shown = {"context": item, "shown_position": room.bots.index(bot)}
    at = room.turns[turn].at if turn is not None else (room.ended_at or room.submitted_at)
    values: dict[str, Any] = {
        "study": source.collection.name,
        "item": item,
        "system": system,
        "rater": person,
        "criterion": criterion,
        "value": tuple(value) if isinstance(value, list) else value,
        "kind": "user",
        "given_at": datetime.fromtimestamp(at, UTC) if at is not None else None,
        "turn": turn,
        **shown,
    }
    return Rating.model_validate(values)
