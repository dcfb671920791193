"""What time brings: people who go away or have waited long enough, bots that are silent, and pairs.

A room with a free seat is one that needs somebody: it makes no difference whether nobody came yet or somebody
left. That is the whole of pairing, pairing again, and taking somebody's place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from palaver.collection.lobby import SEATS, Event, Lobby, Room, Seat, Visitor
from palaver.collection.payment import pay_for
from palaver.collection.records import Ending, Exit
from palaver.collection.rules import Rules

MOST_MISSED = 3
"""Invitations that somebody may leave without an answer."""


class Steward:
    """Looks after the lobby: seats people, watches rooms, shows people out. Everything is an event."""

    def __init__(self, rules: Rules, events: Iterable[Event] = (), started_at: float = 0.0) -> None:
        self.rules = rules
        self.lobby = Lobby(events)
        self.new: list[Event] = []
        self._started_at = started_at
        self._seen: dict[str, float] = {}

    def take_new(self) -> list[Event]:
        """The events that have to be stored."""
        new, self.new = self.new, []
        return new

    def _write(
        self, now: float, kind: str, room: Room | None = None, person: str | None = None, **body: Any
    ) -> Event:
        number = room.number if room is not None else None
        event = Event(self.lobby.cursor + 1, now, kind, number, person, body)
        self.lobby.apply(event)
        self.new.append(event)
        return event

    def hear(self, signs: Mapping[str, float]) -> None:
        """Signs of life, and when each was given. They are no events: people give one every few seconds."""
        for person, at in signs.items():
            self._seen[person] = max(at, self._seen.get(person, 0.0))

    def _last_seen(self, visitor: Visitor) -> float:
        # Whoever was here before we began gets as much time as somebody who has just been seen.
        return max(self._seen.get(visitor.id, self._started_at), visitor.joined_at)

    def _elapsed(self, since: float, now: float) -> float:
        """How long somebody has had: time in which we were not there does not count against anybody."""
        return now - max(since, self._started_at)

    def tick(self, now: float) -> None:
        """Whatever time brings: who is away, who waited long enough, which bots are silent; and pairs."""
        self._notice_absence(now)
        self._watch_rooms(now)
        self._end_waiting(now)
        self._seat_people(now)

    def _notice_absence(self, now: float) -> None:
        people = [*self.lobby.waiting]
        people += [p for number in self.lobby.live for p in self.lobby.rooms[number].people]
        for person in people:
            visitor = self.lobby.visitors[person]
            if not visitor.is_away and now - self._last_seen(visitor) > self.rules.silence_seconds:
                self._write(now, "away", None, person)
            if visitor.is_away and self._elapsed(visitor.away_since, now) > self.rules.grace_seconds:
                room = self.lobby.room_of(person)
                if room is not None:
                    self._vacate(room, visitor, "lost", now)
                else:
                    self._exit(visitor, "lost", now)

    def _watch_rooms(self, now: float) -> None:
        rules = self.rules
        for room, seat in self.bots_to_speak():
            if self._elapsed(room.turn_began_at(seat.name), now) > rules.bot_seconds:
                self.fail(room.number, seat.name, "it did not answer in time", now)
        for number in list(self.lobby.live):
            room = self.lobby.rooms[number]
            for seat in list(room.seats.values()):
                if seat.person is None or room.phase == "ended":
                    continue
                if not seat.is_ready and self._elapsed(seat.since, now) > rules.ready_seconds:
                    self._miss(room, seat.person, now)
                elif self._is_idle(room, seat, now):
                    self._vacate(room, self.lobby.visitors[seat.person], "timed out", now)
            is_left_alone = room.free_since is not None and room.phase == "talking"
            if is_left_alone and self._elapsed(room.free_since or now, now) > rules.wait_seconds:
                for person in room.people:
                    self._vacate(room, self.lobby.visitors[person], "partner left", now)

    def _miss(self, room: Room, person: str, now: float) -> None:
        """Somebody who was given a partner is not at their page."""
        self._write(now, "uninvited", room, person, missed=True)
        visitor = self.lobby.visitors[person]
        if visitor.n_missed >= MOST_MISSED:
            self._exit(visitor, "lost", now)
        self._dissolve(room, now)

    def _dissolve(self, room: Room, now: float) -> None:
        """A room that cannot begin: whoever is in it waits again, and has lost nothing of their time."""
        if room.phase != "opening":
            return
        for person in room.people:
            self._write(now, "uninvited", room, person, missed=False)
        self._end_if_empty(room, now)

    def _is_idle(self, room: Room, seat: Seat, now: float) -> bool:
        if room.phase == "rating":
            return self._elapsed(room.submitted_at or now, now) > self.rules.idle_seconds
        if room.phase != "talking" or not seat.is_ready or not room.is_turn_of(seat.name):
            return False
        return self._elapsed(room.turn_began_at(seat.name), now) > self.rules.idle_seconds

    def _end_waiting(self, now: float) -> None:
        """The stated time is over for those who wait."""
        for person in list(self.lobby.waiting):
            visitor = self.lobby.visitors[person]
            since = visitor.waiting_since
            if since is not None and now - since > self.rules.wait_seconds and not visitor.is_away:
                self._exit(visitor, "waited", now)

    def _seat_people(self, now: float) -> None:
        """Fill free seats, the oldest room first; then open rooms for those who still wait."""
        waiting = [self.lobby.visitors[person] for person in self.lobby.waiting]
        there = [visitor for visitor in waiting if not visitor.is_away]
        there.sort(key=lambda visitor: (visitor.n_missed, visitor.waiting_since or now))
        queue = [visitor.id for visitor in there]
        if not queue:
            return
        if self._is_over():
            for person in queue:
                self._exit(self.lobby.visitors[person], "unneeded", now)
            return
        if self.rules.lineups:
            for person in queue:
                if not self._has_plan():
                    return
                self._open(now, [person], self._next_lineup())
            return
        for number in list(self.lobby.live):
            if not queue:
                return
            room = self.lobby.rooms[number]
            seat = room.free_seat
            if seat is not None and room.phase == "talking" and self._is_somebody_there(room):
                newcomer = next((p for p in queue if self._may_enter(p, room)), None)
                if newcomer is not None:
                    queue.remove(newcomer)
                    self._write(now, "invited", room, newcomer, seat=seat.name)
        while len(queue) > 1 and self._has_plan():
            first = queue.pop(0)
            partner = next((p for p in queue if self._may_meet(first, p)), None)
            if partner is not None:
                queue.remove(partner)
                self._open(now, [first, partner], None)

    def _is_somebody_there(self, room: Room) -> bool:
        return bool(room.people) and not any(self.lobby.visitors[p].is_away for p in room.people)

    def _may_enter(self, person: str, room: Room) -> bool:
        was_here = any(o.by == person for o in room.occupancies)
        return not was_here and all(self._may_meet(person, other) for other in room.people)

    def _may_meet(self, first: str, second: str) -> bool:
        """Nobody meets themselves, one person twice, another language, or a group that is not for them."""
        one, other = self.lobby.visitors[first], self.lobby.visitors[second]
        languages = {visitor.language for visitor in (one, other) if visitor.language}
        if self.rules.same_language and len(languages) > 1:
            return False
        return first != second and second not in one.met and self.rules.may_meet(one.group, other.group)

    def _open(self, now: float, people: list[str], lineup: int | None) -> None:
        legs = self.rules.lineups[lineup] if lineup is not None else ((),)
        number = len(self.lobby.rooms) + 1
        body = {"plan": self._next_plan(), "lineup": lineup, "legs": [list(leg) for leg in legs]}
        event = Event(self.lobby.cursor + 1, now, "opened", number, None, body)
        self.lobby.apply(event)
        self.new.append(event)
        room = self.lobby.rooms[number]
        for person, seat in zip(people, SEATS, strict=False):
            self._write(now, "invited", room, person, seat=seat)

    def _next_plan(self) -> int | None:
        if self.rules.n_plans is None:
            return None
        taken = self.lobby.plans_taken
        return next(number for number in range(self.rules.n_plans) if number not in taken)

    def _has_plan(self) -> bool:
        return self.rules.n_plans is None or len(self.lobby.plans_taken) < self.rules.n_plans

    def _is_over(self) -> bool:
        return self.rules.n_plans is not None and self.lobby.n_complete >= self.rules.n_plans

    def _next_lineup(self) -> int:
        """One of those that were used least; which one depends on the seed and the number of the room."""
        counts = [self.lobby.lineups.get(place, 0) for place in range(len(self.rules.lineups))]
        least = [place for place, count in enumerate(counts) if count == min(counts)]
        text = f"{self.rules.seed} {len(self.lobby.rooms)}"
        return least[int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % len(least)]

    # --- bots -----------------------------------------------------------------------------------------------

    def bots_to_speak(self) -> list[tuple[Room, Seat]]:
        """Where a bot's turn is. A bot starts no clock of anybody's, and speaks only in its turn."""
        rooms = [self.lobby.rooms[number] for number in self.lobby.live]
        return [
            (room, seat)
            for room in rooms
            if room.phase == "talking"
            for seat in room.seats.values()
            if seat.bot is not None and self._is_active(room, seat) and room.is_turn_of(seat.name)
        ]

    @staticmethod
    def _is_active(room: Room, seat: Seat) -> bool:
        active = room.legs[room.leg]
        return not active or seat.bot in active

    def fail(self, room_number: int, seat_name: str, why: str, now: float) -> bool:
        """A bot cannot go on: the conversation ends, and nobody in it is to blame. `why` is for the owner."""
        room = self.lobby.rooms[room_number]
        if room.phase != "talking":
            return False
        self._write(now, "failed", room, None, seat=seat_name, why=why)
        for seat in [s for s in room.seats.values() if s.person is not None]:
            self._vacate(room, self.lobby.visitors[str(seat.person)], "bot failed", now)
        return True

    # --- ways out -------------------------------------------------------------------------------------------

    def _vacate(self, room: Room, visitor: Visitor, exit: Exit, now: float) -> None:
        """Somebody gets up and goes. Whoever stays keeps what was said."""
        self._write(now, "vacated", room, visitor.id, exit=exit)
        self._exit(visitor, exit, now, is_complete=room.phase == "rating")
        self._dissolve(room, now)
        self._end_if_empty(room, now)

    def _end_if_empty(self, room: Room, now: float) -> None:
        if room.people or room.phase == "ended":
            return
        ending: Ending = "complete" if room.phase == "rating" else "incomplete"
        if any(occupancy.exit == "bot failed" for occupancy in room.occupancies):
            ending = "failed"
        self._write(now, "ended", room, None, ending=ending)

    def _exit(self, visitor: Visitor, exit: Exit, now: float, *, is_complete: bool = False) -> None:
        pay, reason = pay_for(visitor, exit, now, is_complete=is_complete)
        share = 1.0 if pay == "full" else min(1.0, visitor.n_turns / self.rules.own_share)
        body = {"exit": exit, "pay": pay, "reason": reason, "share": round(share, 3)}
        self._write(now, "exited", None, visitor.id, **body)
