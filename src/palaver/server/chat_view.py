"""What somebody in a collection sees: made from the lobby, for one person. Nothing in it names a system."""

from __future__ import annotations

from typing import Any

from palaver.collection.host import MUST_ANSWER, Host
from palaver.collection.lobby import Occupancy, Room, Seat, Turn
from palaver.collection.rules import missing
from palaver.schema import Dialogue, ReadingSet
from palaver.schema.response import USER


def view(host: Host, person: str, now: float, room_known: int = 0, turns_known: int = 0) -> dict[str, Any]:
    """Where somebody stands, and the turns that their page does not have yet."""
    visitor, room = host.lobby.visitors.get(person), host.lobby.room_of(person)
    if visitor is None:
        return {"type": "view", "state": "new"}
    seen: dict[str, Any] = {"type": "view", "state": visitor.state, "options": host.options(person)}
    since = visitor.waiting_since
    if since is not None:
        seen["seconds_left"] = max(0.0, host.rules.wait_seconds - (now - since))
    seat = room.seat_of(person) if room is not None else None
    if visitor.state in ("out", "between"):
        seen["names"] = _names(host, person)
    if visitor.state == "out":
        return {**seen, "reason": visitor.reason}
    if room is None or seat is None:
        return seen
    seen["room"] = room.number
    if room.phase == "opening" or not seat.is_ready:
        return {**seen, "state": "waiting" if seat.is_ready else "invited"}
    known = turns_known if room_known == room.number else 0
    answers_due = host.turns_to_answer(person)
    own = next(o for o in reversed(room.occupancies) if o.by == person and o.seat == seat.name)
    return {
        **seen,
        "state": _phase(host, room, seat),
        "turns": [_turn(host, room, seat, turn) for turn in room.turns[known:]],
        "n_turns": len(room.turns),
        "first": own.first_turn,
        "changes": _changes(room, seat, own),
        "ask": answers_due,
        "vote": _open_vote(host, room, person),
        "can_say": host.why_silent(person) is None,
        "must_answer": host.why_silent(person) == MUST_ANSWER,
        "why": host.why_silent(person),
        "can_submit": host.why_not_submit(person) is None,
        "said": room.leg_turns,
        "fewest": host.rules.fewest_turns,
        "leg": room.leg,
        "legs": len(room.legs),
        "sides": max(1, len(room.legs[room.leg])),
        "partner": _partner(host, room, seat),
        "talked": now - room.began_at if room.began_at is not None else 0.0,
        "rate": _left_to_rate(host, room, person) if room.phase == "rating" else [],
    }


def _changes(room: Room, seat: Seat, own: Occupancy) -> list[dict[str, Any]]:
    """Before which turns somebody took the seat of somebody who had left."""
    later = [o for o in room.occupancies if o.first_turn > 0 and not room.bots]
    return [
        {"n": o.first_turn, "who": "you" if o is own else "partner"}
        for o in later
        if o is own or o.seat != seat.name
    ]


def _phase(host: Host, room: Room, seat: Seat) -> str:
    if room.phase == "talking" and host.options(seat.person or ""):
        return "alone"
    return room.phase


def _turn(host: Host, room: Room, seat: Seat, turn: Turn) -> dict[str, Any]:
    is_own = turn.seat == seat.name
    given = turn.answers.get(seat.person or "", {})
    votes = {q.criterion: q.scale for q in host.rules.about_replies if q.criterion in given}
    return {
        "n": turn.number,
        "id": turn.id if turn.by == seat.person else "",
        "mine": is_own,
        "side": side_of(room, turn.seat, turn.leg),
        "leg": turn.leg,
        "text": turn.text,
        "bot": not is_own and _is_shown_as_bot(room, turn),
        "answers": {
            criterion: "|".join(value)
            if isinstance(value, list)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
            for criterion, value in given.items()
            if criterion not in votes
        },
        "votes": {
            criterion: scale.show_answer(given[criterion], (0, 1)) for criterion, scale in votes.items()
        },
    }


def _open_vote(host: Host, room: Room, person: str) -> int | None:
    """The message of one's own whose two replies can be compared now."""
    number = host.turn_to_vote(person)
    if number is None:
        return None
    given = room.turns[number].answers.get(person, {})
    is_open = any(question.criterion not in given for question in host.rules.about_replies)
    return number if is_open else None


def _names(host: Host, person: str) -> list[str]:
    """The bots of the conversation that somebody has just rated, by their places, if they may be told."""
    visitor = host.lobby.visitors[person]
    if not host.rules.reveal or not visitor.rooms:
        return []
    room = host.lobby.rooms[visitor.rooms[-1]]
    is_rated = any(o.by == person and o.exit == "finished" for o in room.occupancies)
    return list(room.bots) if is_rated else []


def side_of(room: Room, seat: str, leg: int) -> int:
    """The column in which a seat's turns stand."""
    active = room.legs[leg]
    return active.index(seat) if seat in active else 0


def _is_shown_as_bot(room: Room, turn: Turn) -> bool:
    return any(o.is_bot and o.by == turn.by and o.seat == turn.seat for o in room.occupancies)


def _partner(host: Host, room: Room, seat: Seat) -> dict[str, Any]:
    others = room.opponents(seat.name)
    people = [host.lobby.visitors[other.person] for other in others if other.person is not None]
    bots = [other for other in others if other.bot is not None]
    return {
        "is_away": any(person.is_away for person in people),
        "is_typing": any(room.is_turn_of(bot.name) for bot in bots),
        "is_bot": bool(bots),
    }


def _left_to_rate(host: Host, room: Room, person: str) -> list[str]:
    """What is not rated yet: the places of bots, "" for the whole."""
    given = room.whole.get(person, {})
    return [
        place_of(room, bot)
        for bot, asked in host.questions_at_end(room).items()
        if missing(asked, given.get(bot, {}))
    ]


def place_of(room: Room, bot: str) -> str:
    """How a page calls a bot: by its place."""
    return str(room.bots.index(bot)) if bot else ""


def bot_at(room: Room | None, place: str) -> str:
    """The bot that a page calls by its place; "" for the whole, and for what is no place."""
    if room is None or not place.isdigit() or int(place) >= len(room.bots):
        return ""
    return room.bots[int(place)]


def reading(plan: Dialogue, seat: str) -> dict[str, Any] | None:
    """The reading set of a seat: Factual Sections 1 to 3, and Article Sections 1 to 4 if there is one."""
    shelf = reading_set(plan, seat)
    if shelf is None:
        return None
    return {"factual": _factual(shelf), "article": _article(shelf)}


def reading_set(plan: Dialogue, seat: str) -> ReadingSet | None:
    """The reading set of a seat."""
    return next((s for s in plan.knowledge or () if s.id.endswith(f"-{seat}")), None)


def _factual(shelf: ReadingSet) -> list[dict[str, Any]]:
    return [
        {
            "name": f"FS{n}",
            "title": section.entity.name,
            "lead": section.lead,
            "facts": [fact.text for fact in section.facts],
        }
        for n, section in enumerate(shelf.sections, start=1)
    ]


def _article(shelf: ReadingSet) -> dict[str, Any] | None:
    if shelf.article is None:
        return None
    parts = [{"name": f"AS{n}", "text": text} for n, text in enumerate(shelf.article.parts, start=1)]
    return {"title": shelf.article.title, "parts": parts}


def bot_dialogue(room: Room, seat: Seat) -> Dialogue:
    """The conversation as a bot hears it: its own replies, and what people said."""
    turns = [
        {"speaker": USER if turn.seat != seat.name else seat.bot, "text": turn.text}
        for turn in room.turns
        if turn.leg == room.leg and (turn.seat == seat.name or not _is_other_bot(room, turn, seat))
    ]
    return Dialogue.model_validate({"id": f"{room.number}-{seat.bot}", "turns": turns})


def _is_other_bot(room: Room, turn: Turn, seat: Seat) -> bool:
    other = room.seats.get(turn.seat)
    return other is not None and other.bot is not None and other.name != seat.name
