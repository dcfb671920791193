"""Who is here, who waits, who talks with whom: a fold over the log of events.

Nothing here decides anything (`host` does), reads a clock or a socket. Two processes that have read the same
events hold the same lobby.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.collection.records import Decision, Ending, Exit, Key, Pay

SEATS = ("agent_1", "agent_2")
"""Of a conversation between two people; with bots the person sits in the first, each bot under its name."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. Events are numbered from 1, without a gap, and never change."""

    number: int
    at: float
    kind: str
    room: int | None = None
    person: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Turn:
    """A message, and what was answered about it."""

    number: int
    id: str
    """Made by the sender's page, so that sending it twice is one message."""
    seat: str
    by: str
    text: str
    at: float
    leg: int
    pasted: int = 0
    knowledge: str = ""
    """The sentence of its reading set that a bot was given."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Who answered -> criterion -> value."""


@dataclass(slots=True)
class Seat:
    """A place in a room."""

    name: str
    person: str | None = None
    bot: str | None = None
    is_ready: bool = False
    since: float = 0.0
    """When whoever sits here was put here."""

    @property
    def is_free(self) -> bool:
        return self.person is None and self.bot is None


@dataclass(slots=True)
class Occupancy:
    """Somebody was in a seat."""

    by: str
    seat: str
    is_bot: bool
    first_turn: int
    exit: Exit = "here"


@dataclass(slots=True)
class Room:
    """One conversation; where bots are compared, all that one person talks about with them."""

    number: int
    plan: int | None
    """Which of the planned reading sets; None without any."""
    lineup: int | None
    """Which bots in which order, of those that the rules name; None between people."""
    legs: tuple[tuple[str, ...], ...]
    """The bots of each part of the session: in turn, or side by side. Between people one part without any."""
    opened_at: float
    seats: dict[str, Seat]
    turns: list[Turn] = field(default_factory=list)
    by_id: dict[str, Turn] = field(default_factory=dict)
    occupancies: list[Occupancy] = field(default_factory=list)
    leg: int = 0
    leg_turns: int = 0
    """Turns of this part."""
    last_turns: dict[str, Turn] = field(default_factory=dict)
    """The last turn of each seat in this part."""
    phase: str = "opening"
    """opening, talking, rating, ended."""
    began_at: float | None = None
    ended_at: float | None = None
    leg_began_at: float = 0.0
    ending: Ending = "open"
    free_since: float | None = None
    """Since when a seat has been empty that was taken before."""
    submitted_at: float | None = None
    failure: str = ""
    """Why a bot could not go on."""
    whole: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Who answered -> about which bot ("" for the conversation) -> criterion -> value."""

    @property
    def people(self) -> list[str]:
        """Those who sit here, ready or not."""
        return [seat.person for seat in self.seats.values() if seat.person is not None]

    @property
    def free_seat(self) -> Seat | None:
        return next((seat for seat in self.seats.values() if seat.is_free), None)

    @property
    def bots(self) -> tuple[str, ...]:
        """All bots that were planned for this room, in the order of their parts."""
        return tuple(bot for leg in self.legs for bot in leg)

    def seat_of(self, person: str) -> Seat | None:
        return next((seat for seat in self.seats.values() if seat.person == person), None)

    def opponents(self, seat: str) -> list[Seat]:
        """Whom somebody in this seat talks with in this part."""
        active = self.legs[self.leg]
        if self.seats[seat].bot is not None and active:
            return [other for other in self.seats.values() if other.bot is None]
        return [
            other
            for name, other in self.seats.items()
            if name != seat and (not active or other.bot in active)
        ]

    def last_turn(self, seat: str) -> int:
        """The number of the last turn of a seat in this part; -1 before the first."""
        turn = self.last_turns.get(seat)
        return -1 if turn is None else turn.number

    def is_turn_of(self, seat: str) -> bool:
        """Whether it is this seat's turn: all others have said something since."""
        if self.phase != "talking":
            return False
        others = self.opponents(seat)
        own = self.last_turn(seat)
        if not others or any(other.is_free for other in others):
            return False
        if own == -1 and all(self.last_turn(other.name) == -1 for other in others):
            return self.seats[seat].bot is None  # nothing was said: people begin
        return all(self.last_turn(other.name) > own for other in others)

    def turn_began_at(self, seat: str) -> float:
        """Since when it has been this seat's turn, or since when whoever sits there has sat there."""
        times = [turn.at for name, turn in self.last_turns.items() if name != seat]
        return max(self.leg_began_at, self.seats[seat].since, *times)


@dataclass(slots=True)
class Visitor:
    """Somebody who came."""

    id: str
    group: str = ""
    language: str = ""
    """Of the pages they read; empty where nobody knows."""
    state: str = "waiting"
    """waiting, seated (in a room, perhaps not yet ready), between (two conversations), out."""
    joined_at: float = 0.0
    waiting_since: float | None = None
    seconds_waited: float = 0.0
    seconds_talked: float = 0.0
    room: int | None = None
    rooms: list[int] = field(default_factory=list)
    """In which something could be said."""
    met: set[str] = field(default_factory=set)
    n_turns: int = 0
    n_finished: int = 0
    n_missed: int = 0
    """Invitations that they did not answer."""
    is_away: bool = False
    away_since: float = 0.0
    exit: Exit = "here"
    pay: Pay = "open"
    share: float = 0.0
    reason: str = ""
    left_at: float | None = None


class Lobby:
    """The state of a collection after the events so far."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.cursor = 0
        """The number of the last event."""
        self.visitors: dict[str, Visitor] = {}
        self.rooms: dict[int, Room] = {}
        self.waiting: dict[str, None] = {}
        """Who waits."""
        self.live: dict[int, None] = {}
        """Rooms that have not ended."""
        self.plans_taken: set[int] = set()
        """Plans of rooms that go on or came to a good end."""
        self.n_complete = 0
        self.lineups: dict[int, int] = {}
        """How many rooms go on or came to a good end with each lineup."""
        self.decisions: dict[Key, Decision] = {}
        """What the owner decided."""
        for event in events:
            self.apply(event)

    def room_of(self, person: str) -> Room | None:
        visitor = self.visitors.get(person)
        return self.rooms[visitor.room] if visitor is not None and visitor.room is not None else None

    def apply(self, event: Event) -> None:
        """Take the next event in. One that was taken in already, or comes too early, is a mistake."""
        if event.number != self.cursor + 1:
            raise ValueError(f"expected event {self.cursor + 1}, found {event.number}")
        getattr(self, f"_{event.kind}")(event)
        self.cursor = event.number

    # --- people ---------------------------------------------------------------------------------------------

    def _joined(self, event: Event) -> None:
        person = str(event.person)
        visitor = self.visitors.setdefault(person, Visitor(person, joined_at=event.at))
        visitor.group = event.body.get("group", visitor.group)
        visitor.language = event.body.get("language", visitor.language)
        visitor.state, visitor.exit, visitor.pay, visitor.reason = "waiting", "here", "open", ""
        visitor.is_away, visitor.left_at, visitor.room = False, None, None
        visitor.waiting_since = event.at
        self.waiting[person] = None

    def _away(self, event: Event) -> None:
        visitor = self.visitors[str(event.person)]
        visitor.is_away, visitor.away_since = True, event.at

    def _back(self, event: Event) -> None:
        self.visitors[str(event.person)].is_away = False

    def _exited(self, event: Event) -> None:
        visitor = self.visitors[str(event.person)]
        self._stop_waiting(visitor, event.at)
        visitor.state, visitor.left_at, visitor.room = "out", event.at, None
        visitor.exit, visitor.pay = event.body["exit"], event.body["pay"]
        visitor.share, visitor.reason = event.body["share"], event.body["reason"]

    def _stop_waiting(self, visitor: Visitor, at: float) -> None:
        self.waiting.pop(visitor.id, None)
        if visitor.waiting_since is not None:
            visitor.seconds_waited += at - visitor.waiting_since
            visitor.waiting_since = None

    def _amended(self, event: Event) -> None:
        """The rules changed; the log that hands them to the host reads them again."""

    def _decided(self, event: Event) -> None:
        body = event.body
        key = (body["conversation"], body["participant"])
        self.decisions[key] = Decision(body["verdict"], body["reason"])

    # --- rooms ----------------------------------------------------------------------------------------------

    def _opened(self, event: Event) -> None:
        assert event.room is not None
        legs = tuple(tuple(leg) for leg in event.body["legs"])
        seats = {SEATS[0]: Seat(SEATS[0])}
        bots = [bot for leg in legs for bot in leg]
        for bot in bots:
            seats[bot] = Seat(bot, bot=bot, is_ready=True, since=event.at)
        if not bots:
            seats[SEATS[1]] = Seat(SEATS[1])
        room = Room(event.room, event.body["plan"], event.body["lineup"], legs, event.at, seats)
        room.occupancies += [Occupancy(bot, bot, True, 0) for bot in bots]
        self.rooms[event.room] = room
        self.live[event.room] = None
        if room.plan is not None:
            self.plans_taken.add(room.plan)
        if room.lineup is not None:
            self.lineups[room.lineup] = self.lineups.get(room.lineup, 0) + 1

    def _invited(self, event: Event) -> None:
        """Somebody is put into a free seat and has to say that they are there."""
        room, visitor = self.rooms[event.room or 0], self.visitors[str(event.person)]
        seat = room.seats[event.body["seat"]]
        seat.person, seat.is_ready, seat.since = visitor.id, False, event.at
        visitor.state, visitor.room = "seated", room.number
        self.waiting.pop(visitor.id, None)  # the clock of the waiting time goes on until they are ready

    def _uninvited(self, event: Event) -> None:
        """They wait again: they did not say so in time (`missed`), or their partner did not."""
        room, visitor = self.rooms[event.room or 0], self.visitors[str(event.person)]
        seat = room.seat_of(visitor.id)
        assert seat is not None
        seat.person, seat.is_ready = None, False
        visitor.state, visitor.room = "waiting", None
        visitor.n_missed += event.body["missed"]
        self.waiting[visitor.id] = None

    def _ready(self, event: Event) -> None:
        room, visitor = self.rooms[event.room or 0], self.visitors[str(event.person)]
        seat = room.seat_of(visitor.id)
        assert seat is not None
        seat.is_ready = True
        if room.phase == "talking":  # a seat that somebody else had left
            self._take_seat(room, seat, event.at)

    def _took(self, event: Event) -> None:
        """A bot goes on in a seat that was left."""
        room = self.rooms[event.room or 0]
        seat = room.seats[event.body["seat"]]
        seat.bot, seat.is_ready = event.body["bot"], True
        self._take_seat(room, seat, event.at)

    def _take_seat(self, room: Room, seat: Seat, at: float) -> None:
        seat.since = at
        room.free_since = None
        name = seat.person or seat.bot or ""
        room.occupancies.append(Occupancy(name, seat.name, seat.bot is not None, len(room.turns)))
        if seat.person is not None:
            visitor = self.visitors[seat.person]
            self._stop_waiting(visitor, at)
            visitor.rooms.append(room.number)
            for other in room.people:
                if other != seat.person:
                    visitor.met.add(other)
                    self.visitors[other].met.add(seat.person)

    def _began(self, event: Event) -> None:
        room = self.rooms[event.room or 0]
        room.phase, room.began_at, room.leg_began_at = "talking", event.at, event.at
        for seat in room.seats.values():
            if seat.person is not None:
                self._take_seat(room, seat, event.at)

    def _said(self, event: Event) -> None:
        room, body = self.rooms[event.room or 0], event.body
        turn = Turn(
            len(room.turns),
            *(body["id"], body["seat"], body["by"], body["text"], event.at, room.leg),
            pasted=body.get("pasted", 0),
            knowledge=body.get("knowledge", ""),
        )
        room.turns.append(turn)
        room.by_id[turn.id] = turn
        room.last_turns[turn.seat] = turn
        room.leg_turns += 1
        if event.person is not None:
            self.visitors[event.person].n_turns += 1

    def _answered(self, event: Event) -> None:
        """What somebody thinks of a turn, of a bot, or of the whole."""
        room, body, person = self.rooms[event.room or 0], event.body, str(event.person)
        if body["turn"] is not None:
            room.turns[body["turn"]].answers.setdefault(person, {}).update(body["answers"])
        else:
            room.whole.setdefault(person, {}).setdefault(body["bot"], {}).update(body["answers"])

    def _advanced(self, event: Event) -> None:
        """The next part begins."""
        room = self.rooms[event.room or 0]
        room.leg, room.leg_began_at = room.leg + 1, event.at
        room.leg_turns, room.last_turns = 0, {}

    def _submitted(self, event: Event) -> None:
        room = self.rooms[event.room or 0]
        room.phase, room.submitted_at = "rating", event.at

    def _failed(self, event: Event) -> None:
        """A bot could not go on."""
        room = self.rooms[event.room or 0]
        room.failure = event.body["why"]
        for occupancy in room.occupancies:
            if occupancy.is_bot and occupancy.seat == event.body["seat"]:
                occupancy.exit = "bot failed"

    def _finished(self, event: Event) -> None:
        """Somebody has rated the whole and gets up."""
        self._get_up(event, "finished")
        visitor = self.visitors[str(event.person)]
        visitor.n_finished += 1
        visitor.state = "between"

    def _vacated(self, event: Event) -> None:
        """Somebody gets up before the end, of their own will or not."""
        self._get_up(event, event.body["exit"])

    def _get_up(self, event: Event, exit: Exit) -> None:
        room, visitor = self.rooms[event.room or 0], self.visitors[str(event.person)]
        seat = room.seat_of(visitor.id)
        assert seat is not None
        seat.person, seat.is_ready = None, False
        visitor.room = None
        for occupancy in room.occupancies:
            if occupancy.by == visitor.id:
                occupancy.exit = exit
        if room.began_at is not None:
            visitor.seconds_talked += event.at - max(room.began_at, seat.since)
        if room.phase == "talking":
            room.free_since = event.at

    def _ended(self, event: Event) -> None:
        room = self.rooms[event.room or 0]
        room.phase, room.ended_at, room.ending = "ended", event.at, event.body["ending"]
        self.live.pop(room.number, None)
        if room.ending == "complete":
            self.n_complete += 1
            return
        if room.plan is not None:
            self.plans_taken.discard(room.plan)
        if room.lineup is not None:
            self.lineups[room.lineup] -= 1
