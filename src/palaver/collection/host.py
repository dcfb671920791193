"""Decides who meets whom and what may be said, and writes it down as events.

Every call is told what time it is. A call that is refused has changed nothing, except that somebody who was
away is back. What was written waits in `new` for whoever stores it; the lobby has taken it in already.

    join ─► waiting ─► seated ─► ready ─► talking ─► rating ─► between ─► out
                 └───────────────── away, back ──────────────────┘

What nobody does, but time brings, is the steward's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palaver.collection.lobby import Room, Seat
from palaver.collection.records import Decision, Key
from palaver.collection.rules import missing, parse_answers
from palaver.collection.steward import Steward
from palaver.errors import Sentence, UserError

NOT_HERE = Sentence("you are not in a conversation")
MUST_ANSWER = Sentence("answer the questions about the last messages first")
MOST_PASTED = 1_000_000


class NotNow(UserError):
    """What was asked for is not possible as things stand; the message says why."""


class Host(Steward):
    """The one who decides what people and bots may do."""

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

    def join(self, person: str, now: float, group: str = "", language: str = "") -> None:
        """Come into the waiting room; twice is once."""
        visitor = self.lobby.visitors.get(person)
        self.see(person, now)
        if visitor is not None and not (visitor.state == "out" and visitor.pay == "none"):
            return
        if visitor is not None and visitor.exit not in ("lost", "unneeded"):
            return  # they have left, and were told why there is no pay
        said = {"group": group, "language": language}
        self._write(now, "joined", None, person, **{name: value for name, value in said.items() if value})
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
            raise NotNow(
                Sentence(
                    "a message has at most {most:,} characters, this one has {n:,}", most=most, n=len(text)
                )
            )

    def why_silent(self, person: str) -> str | None:
        """Why somebody cannot say anything now; None if they can."""
        room = self.lobby.room_of(person)
        seat = room.seat_of(person) if room is not None else None
        if room is None or seat is None:
            return NOT_HERE
        if room.phase == "opening":
            return Sentence("your partner is not there yet")
        if room.phase != "talking":
            return Sentence("this conversation is over")
        if any(other.is_free or not other.is_ready for other in room.opponents(seat.name)):
            return Sentence("your partner has left")
        alternates = self.rules.alternating or room.bots
        if alternates and not room.is_turn_of(seat.name):
            return Sentence("it is your partner's turn")
        if self.turns_to_answer(person) or self.is_vote_missing(person):
            return MUST_ANSWER
        return None

    def turn_to_vote(self, person: str) -> int | None:
        """Somebody's last message, once two bots have replied to it: which reply is better?"""
        room = self.lobby.room_of(person)
        seat = room.seat_of(person) if room is not None else None
        if room is None or seat is None or not self.rules.about_replies or room.phase != "talking":
            return None
        own = room.last_turn(seat.name)
        replies = [room.last_turn(bot.name) for bot in room.opponents(seat.name)]
        return own if own >= 0 and len(replies) > 1 and min(replies) > own else None

    def is_vote_missing(self, person: str) -> bool:
        """Whether two replies have to be compared before anything else."""
        room, number = self.lobby.room_of(person), self.turn_to_vote(person)
        if room is None or number is None:
            return False
        return bool(missing(self.rules.about_replies, room.turns[number].answers.get(person, {})))

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
                raise NotNow(Sentence("there is no message {n}", n=turn + 1))
            is_own = room.turns[turn].by == person
            questions = self.rules.about_own if is_own else self.rules.about_partner
            if turn == self.turn_to_vote(person):
                questions += self.rules.about_replies
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
            fewest = self.rules.fewest_turns
            return Sentence("{said} of at least {fewest} messages were written", said=said, fewest=fewest)
        beside = room.legs[room.leg]
        if len(beside) > 1 and any(room.is_turn_of(bot) for bot in beside):
            return Sentence("it is your partner's turn")  # the two are compared, so both have had their say
        if self.turns_to_answer(person) or self.is_vote_missing(person):
            return MUST_ANSWER
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

    # --- the owner ------------------------------------------------------------------------------------------

    def amend(self, changes: Sequence[str], now: float) -> None:
        """The collection was changed: every process that reads this takes its rules anew."""
        self._write(now, "amended", None, None, changes=list(changes))

    def decide(self, key: Key, decision: Decision, now: float) -> None:
        """What the owner decided about a conversation, or about one side of it. The last decision counts."""
        conversation, participant = key
        body = {"conversation": conversation, "participant": participant, **decision._asdict()}
        self._write(now, "decided", None, None, **body)

    # --- bots -----------------------------------------------------------------------------------------------

    def reply(
        self, room_number: int, seat_name: str, after: int, text: str, now: float, knowledge: str = ""
    ) -> bool:
        """What a bot says to the first `after` turns, and the sentence that it was given for it.

        False if that is no longer of interest.
        """
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
        given = {"knowledge": knowledge} if knowledge else {}
        self._write(now, "said", room, None, id=id, seat=seat_name, by=seat.bot, text=text, **given)
        return True
