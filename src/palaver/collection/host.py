"""Decides who meets whom and what may be said, and writes it down as events.

Every call is told what time it is. A call that is refused has changed nothing, except that somebody who was
away is back. What was written waits in `new` for whoever stores it; the lobby has taken it in already.

    join ─► waiting ─► seated ─► ready ─► talking ─► rating ─► between ─► out
                 └───────────────── away, back ──────────────────┘

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
from palaver.collection.rules import Rules, missing, parse_answers
from palaver.errors import UserError

NOT_HERE = "you are not in a conversation"
MOST_PASTED = 1_000_000
MOST_MISSED = 3
"""Invitations that somebody may leave without an answer."""


class NotNow(UserError):
    """What was asked for is not possible as things stand; the message says why."""


class Host:
    """The one who decides."""

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

    # --- presence -------------------------------------------------------------------------------------------

    def hear(self, signs: Mapping[str, float]) -> None:
        """Signs of life, and when each was given. They are no events: people give one every few seconds."""
        for person, at in signs.items():
            self._seen[person] = max(at, self._seen.get(person, 0.0))

    def see(self, person: str, now: float) -> None:
        """A sign of life, now; whoever was away is back."""
        self.hear({person: now})
        visitor = self.lobby.visitors.get(person)
        if visitor is not None and visitor.is_away and visitor.state != "out":
            self._write(now, "back", None, person)

    def lose(self, person: str, now: float) -> None:
        """The connection was closed: away at once, not only after some silence."""
        visitor = self.lobby.visitors.get(person)
        if visitor is not None and not visitor.is_away and visitor.state != "out":
            self._write(now, "away", None, person)

    def _last_seen(self, visitor: Visitor) -> float:
        # Whoever was here before we began gets as much time as somebody who has just been seen.
        return max(self._seen.get(visitor.id, self._started_at), visitor.joined_at)

    # --- what people do -------------------------------------------------------------------------------------

    def join(self, person: str, now: float) -> None:
        """Come into the waiting room; twice is once."""
        visitor = self.lobby.visitors.get(person)
        self.see(person, now)
        if visitor is not None and not (visitor.state == "out" and visitor.pay == "none"):
            return
        if visitor is not None and visitor.exit not in ("lost", "unneeded"):
            return  # they have left, and were told why there is no pay
        self._write(now, "joined", None, person)
        if self._is_over():
            self._exit(self.lobby.visitors[person], "unneeded", now)
            return
        self.tick(now)

    def say_ready(self, person: str, now: float) -> None:
        """The person is at the page that has found them a partner."""
        self.see(person, now)
        room = self.lobby.room_of(person)
        seat = room.seat_of(person) if room is not None else None
        if room is None or seat is None or seat.is_ready:
            return
        self._write(now, "ready", room, person)
        if room.phase == "opening" and all(s.is_ready for s in room.seats.values()):
            self._write(now, "began", room)

    def say(self, person: str, id: str, text: str, now: float, pasted: int = 0) -> int:
        """A message; the number of its turn. The same id again is the same message."""
        self.see(person, now)
        room, seat = self._seat(person)
        known = room.by_id.get(id)
        if known is not None:
            if known.by != person or known.text != text:
                raise NotNow("this message was sent before with another text")
            return known.number
        self._check_text(text)
        reason = self.why_silent(person)
        if reason is not None:
            raise NotNow(reason)
        kept = {"pasted": min(pasted, MOST_PASTED)} if pasted > 0 else {}
        self._write(now, "said", room, person, id=id, seat=seat.name, by=person, text=text, **kept)
        return len(room.turns) - 1

    def _check_text(self, text: str) -> None:
        if not text.strip():
            raise NotNow("there is nothing in this message")
        most = self.rules.longest_message
        if len(text) > most:
            raise NotNow(f"a message has at most {most:,} characters, this one has {len(text):,}")

    def why_silent(self, person: str) -> str | None:
        """Why somebody cannot say anything now; None if they can."""
        room = self.lobby.room_of(person)
        seat = room.seat_of(person) if room is not None else None
        if room is None or seat is None:
            return NOT_HERE
        if room.phase == "opening":
            return "your partner is not there yet"
        if room.phase != "talking":
            return "this conversation is over"
        if any(other.is_free or not other.is_ready for other in room.opponents(seat.name)):
            return "your partner has left"
        alternates = self.rules.alternating or room.bots
        if alternates and not room.is_turn_of(seat.name):
            return "it is your partner's turn"
        if self.turns_to_answer(person):
            return "answer the questions about the last messages first"
        return None

    def turns_to_answer(self, person: str) -> list[int]:
        """Turns about which something required is not answered yet: one's own last, and the partner's."""
        room = self.lobby.room_of(person)
        seat = room.seat_of(person) if room is not None else None
        if room is None or seat is None:
            return []
        occupied = next((o for o in reversed(room.occupancies) if o.by == person), None)
        first = occupied.first_turn if occupied is not None else 0
        own, partner = self.rules.about_own, self.rules.about_partner
        if not any(q.required for q in (*own, *partner)):
            return []
        return [
            turn.number
            for turn in room.turns[first:]
            if turn.leg == room.leg
            and missing(own if turn.by == person else partner, turn.answers.get(person, {}))
        ]

    def answer(
        self, person: str, answers: dict[str, str], now: float, turn: int | None = None, bot: str = ""
    ) -> None:
        """What somebody thinks of a turn; at the end of a bot, or (`bot` is empty) of the whole."""
        self.see(person, now)
        room, _ = self._seat(person)
        if turn is not None:
            if not 0 <= turn < len(room.turns):
                raise NotNow(f"there is no message {turn + 1}")
            is_own = room.turns[turn].by == person
            questions = self.rules.about_own if is_own else self.rules.about_partner
        else:
            if room.phase != "rating":
                raise NotNow("the conversation goes on: submit it first")
            questions = self.questions_at_end(room).get(bot, ())
        values = parse_answers(questions, answers)
        if values:
            self._write(now, "answered", room, person, turn=turn, bot=bot, answers=values)
        if turn is None and not self.left_to_rate(room, person):
            self._finish(room, person, now)

    def questions_at_end(self, room: Room) -> dict[str, tuple[Any, ...]]:
        """What is asked at the end, about which bot; "" stands for the whole."""
        if len(room.bots) < 2:
            return {"": self.rules.about_whole} if self.rules.about_whole else {}
        asked: dict[str, tuple[Any, ...]] = {}
        if self.rules.about_whole:
            asked |= dict.fromkeys(room.bots, self.rules.about_whole)
        if self.rules.about_pair:
            asked[""] = self.rules.about_pair
        return asked

    def left_to_rate(self, room: Room, person: str) -> bool:
        given = room.whole.get(person, {})
        return any(missing(asked, given.get(bot, {})) for bot, asked in self.questions_at_end(room).items())

    def why_not_submit(self, person: str) -> str | None:
        """Why somebody cannot submit the conversation (or the part of it) yet; None if they can."""
        room = self.lobby.room_of(person)
        if room is None or room.phase != "talking":
            return NOT_HERE
        said = room.leg_turns
        if said < self.rules.fewest_turns:
            return f"{said} of at least {self.rules.fewest_turns} messages were written"
        if self.turns_to_answer(person):
            return "answer the questions about the last messages first"
        return None

    def submit(self, person: str, now: float) -> None:
        """Hand the conversation in; with several bots in turn, go on to the next. Twice is once."""
        self.see(person, now)
        room, _ = self._seat(person)
        if room.phase == "rating":
            return
        reason = self.why_not_submit(person)
        if reason is not None:
            raise NotNow(reason)
        if room.leg + 1 < len(room.legs):
            self._write(now, "advanced", room, person)
            return
        self._write(now, "submitted", room, person)
        for seat in [s for s in room.seats.values() if s.person is not None and not s.is_ready]:
            self._write(now, "uninvited", room, seat.person, missed=False)
        for name in room.people:
            if not self.left_to_rate(room, name):
                self._finish(room, name, now)

    def _finish(self, room: Room, person: str, now: float) -> None:
        self._write(now, "finished", room, person)
        self._end_if_empty(room, now)
        visitor = self.lobby.visitors[person]
        if visitor.n_finished >= self.rules.most_conversations or self._is_over():
            self._exit(visitor, "finished", now)

    def choose(self, person: str, option: str, now: float) -> None:
        """What next: `again` or `stop` between conversations; `bot` or `stop` where the partner has left."""
        self.see(person, now)
        visitor = self.lobby.visitors.get(person)
        if visitor is None or option not in self.options(person):
            raise NotNow("this cannot be chosen now")
        room = self.lobby.room_of(person)
        if option == "again":
            self._write(now, "joined", None, person)
            self.tick(now)
        elif option == "bot":
            assert room is not None
            free = next(s for s in room.seats.values() if s.is_free or not s.is_ready)
            if free.person is not None:
                self._write(now, "uninvited", room, free.person, missed=False)
            self._write(now, "took", room, None, bot=self.rules.substitute, seat=free.name)
        elif room is not None:
            self._vacate(room, visitor, "partner left", now)
        else:
            self._exit(visitor, "finished", now)

    def options(self, person: str) -> list[str]:
        """What can be chosen now."""
        visitor, room = self.lobby.visitors.get(person), self.lobby.room_of(person)
        if visitor is None:
            return []
        if visitor.state == "between":
            return ["again", "stop"]
        if room is None or room.phase != "talking" or room.free_since is None:
            return []
        return ["bot", "stop"] if self.rules.substitute is not None else ["stop"]

    def leave(self, person: str, now: float) -> None:
        """Leave for good; twice is once."""
        visitor, room = self.lobby.visitors.get(person), self.lobby.room_of(person)
        if visitor is None or visitor.state == "out":
            return
        if room is not None:
            self._vacate(room, visitor, "left", now)
        else:
            self._exit(visitor, "finished" if visitor.state == "between" else "left", now)
        self.tick(now)

    def _seat(self, person: str) -> tuple[Room, Seat]:
        room = self.lobby.room_of(person)
        seat = room.seat_of(person) if room is not None else None
        if room is None or seat is None:
            raise NotNow(NOT_HERE)
        return room, seat

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

    def reply(self, room_number: int, seat_name: str, after: int, text: str, now: float) -> bool:
        """What a bot says to the first `after` turns; False if that is no longer of interest."""
        room = self.lobby.rooms[room_number]
        seat = room.seats[seat_name]
        if room.phase != "talking" or seat.bot is None or room.last_turn(seat_name) >= after:
            return False
        if not room.is_turn_of(seat_name):
            return False
        text = text.strip()
        if not text:
            return self.fail(room_number, seat_name, "it said nothing", now)
        id = f"{room_number}-{seat_name}-{after}"
        self._write(now, "said", room, None, id=id, seat=seat_name, by=seat.bot, text=text)
        return True

    def fail(self, room_number: int, seat_name: str, why: str, now: float) -> bool:
        """A bot cannot go on: the conversation ends, and nobody in it is to blame."""
        room = self.lobby.rooms[room_number]
        if room.phase != "talking":
            return False
        self._write(now, "failed", room, None, seat=seat_name, why=why)
        for seat in [s for s in room.seats.values() if s.person is not None]:
            self._vacate(room, self.lobby.visitors[str(seat.person)], "bot failed", now, why)
        return True

    # --- what time does -------------------------------------------------------------------------------------

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
            if visitor.is_away and now - visitor.away_since > self.rules.grace_seconds:
                room = self.lobby.room_of(person)
                if room is not None:
                    self._vacate(room, visitor, "lost", now)
                else:
                    self._exit(visitor, "lost", now)

    def _watch_rooms(self, now: float) -> None:
        rules = self.rules
        for room, seat in self.bots_to_speak():
            if now - room.turn_began_at(seat.name) > rules.bot_seconds:
                self.fail(room.number, seat.name, "it did not answer in time", now)
        for number in list(self.lobby.live):
            room = self.lobby.rooms[number]
            for seat in list(room.seats.values()):
                if seat.person is None or room.phase == "ended":
                    continue
                if not seat.is_ready and now - seat.since > rules.ready_seconds:
                    self._miss(room, seat.person, now)
                elif self._is_idle(room, seat, now):
                    self._vacate(room, self.lobby.visitors[seat.person], "timed out", now)
            is_left_alone = room.free_since is not None and room.phase == "talking"
            if is_left_alone and now - (room.free_since or now) > rules.wait_seconds:
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
            return now - (room.submitted_at or now) > self.rules.idle_seconds
        if room.phase != "talking" or not seat.is_ready or not room.is_turn_of(seat.name):
            return False
        return now - room.turn_began_at(seat.name) > self.rules.idle_seconds

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
        """Nobody meets themselves, or the same person twice."""
        return first != second and second not in self.lobby.visitors[first].met

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

    # --- ways out -------------------------------------------------------------------------------------------

    def _vacate(self, room: Room, visitor: Visitor, exit: Exit, now: float, why: str = "") -> None:
        """Somebody gets up and goes. Whoever stays keeps what was said."""
        self._write(now, "vacated", room, visitor.id, exit=exit)
        self._exit(visitor, exit, now, is_complete=room.phase == "rating", why=why)
        self._dissolve(room, now)
        self._end_if_empty(room, now)

    def _end_if_empty(self, room: Room, now: float) -> None:
        if room.people or room.phase == "ended":
            return
        ending: Ending = "complete" if room.phase == "rating" else "incomplete"
        if any(occupancy.exit == "bot failed" for occupancy in room.occupancies):
            ending = "failed"
        self._write(now, "ended", room, None, ending=ending)

    def _exit(
        self, visitor: Visitor, exit: Exit, now: float, *, is_complete: bool = False, why: str = ""
    ) -> None:
        pay, reason = pay_for(visitor, exit, now, is_complete=is_complete)
        share = 1.0 if pay == "full" else min(1.0, visitor.n_turns / self.rules.own_share)
        if why:
            reason = f"{reason}: {why}"
        body = {"exit": exit, "pay": pay, "reason": reason, "share": round(share, 3)}
        self._write(now, "exited", None, visitor.id, **body)
