"""Bots as partners: reads from the log whose turn it is, asks the system, and writes what it says.

It runs in a process of its own, beside those that serve pages: a model may be large, and slow. If it ends,
the host notices that a bot is silent, and nobody is left waiting. While a bot speaks, pages are told its
words so far; the log gets the whole message alone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from palaver.collection.lobby import SEATS, Room, Seat
from palaver.errors import UserError
from palaver.generation.streaming import stream_reply
from palaver.knowledge.candidates import candidates_of
from palaver.knowledge.selector import make_selector
from palaver.schema import Request, System
from palaver.server.chat_log import ChatLog, Command, Signal, read_plan
from palaver.server.chat_view import bot_dialogue, reading_set, side_of

_log = logging.getLogger("palaver.server")
PAUSE = 0.05
"""Seconds between two looks at the log."""
AT_ONCE = 16
"""Requests to systems that wait for an answer at the same time."""
PIECES_SECONDS = 0.2
"""Between two times that pages are told what bots have said so far."""
WHY_SHORT = 200


class Turn(NamedTuple):
    """A turn that a bot has to say: the seat in the room, after so many turns."""

    room: int
    seat: str
    after: int


class Unheard(Exception):
    """Nobody listens to a bot any more."""


class Speech:
    """What a bot says, as far as it has come."""

    def __init__(self) -> None:
        self.text = ""
        self.n_shown = 0
        self.knowledge = ""
        self.is_over = False
        self.whole: Future[str] = Future()

    def say(self, piece: str) -> None:
        if self.is_over:
            raise Unheard
        self.text += piece

    def typed(self, n_characters: float) -> str:
        """The whole words among so many characters."""
        text = self.text[: int(max(0.0, n_characters))]
        return text if len(text) == len(self.text) else text[: text.rfind(" ") + 1].rstrip()


class BotRunner:
    """Lets systems speak in the conversations of one database."""

    def __init__(
        self, log: ChatLog, systems: Mapping[str, System], clock: Callable[[], float] | None = None
    ) -> None:
        self._log, self._systems = log, systems
        self._clock = clock or log.clock
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="palaver-bot")
        self._speeches: dict[Turn, Speech] = {}
        self._shown_at = 0.0
        self._sentences: dict[tuple[int, str], tuple[str, ...]] = {}
        """Of each side of a reading set that was asked for."""
        self._lock = {name: threading.Lock() for name in systems}

    @property
    def _speed(self) -> float:
        return self._log.collection.partners.characters_per_second

    def run(self, stopping: threading.Event) -> None:
        """Until it is told to stop."""
        while not stopping.wait(PAUSE):
            try:
                self.step()
            except SQLAlchemyError as error:
                _log.error("the bots cannot read or write: %s", str(error).splitlines()[0])
                stopping.wait(1.0)
        for speech in self._speeches.values():
            speech.is_over = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def step(self) -> None:
        """Ask what is to be asked, and say what is there to be said."""
        self._log.look()
        due: dict[Turn, tuple[Room, Seat]] = {}
        for room, seat in self._log.host.bots_to_speak():
            if seat.bot in self._systems:
                due[Turn(room.number, seat.name, len_before(room, seat))] = (room, seat)
        for turn, (room, seat) in due.items():
            if turn not in self._speeches:
                speech = self._speeches[turn] = Speech()
                request = Request(bot_dialogue(room, seat), knowledge=self._knowledge(room, seat))
                speech.knowledge = request.knowledge or ""
                speech.whole = self._pool.submit(self._ask, str(seat.bot), request, speech)
        commands: list[Command] = []
        for turn, speech in list(self._speeches.items()):
            if turn not in due:
                speech.is_over = True  # the conversation is over, or somebody else spoke
                del self._speeches[turn]
            elif speech.whole.done() and self._is_typed(speech.whole, *due[turn]):
                commands.append(self._command(turn, speech))
                del self._speeches[turn]
        if commands:
            self._log.run(commands)
        if self._log.collection.partners.disclosed:  # people write unseen, so a bot that passes for one does
            self._show(due)

    def _knowledge(self, room: Room, seat: Seat) -> str | None:
        """The sentence of the bot's side of the reading set that fits what was said best."""
        bot = str(seat.bot)
        if (
            self._log.collection.knowledge is None
            or room.plan is None
            or not reads_knowledge(self._systems[bot])
        ):
            return None
        side = seat.name if seat.name in SEATS else SEATS[1]
        if (room.plan, side) not in self._sentences:
            shelf = reading_set(read_plan(self._log.database, room.plan), side)
            self._sentences[room.plan, side] = candidates_of(shelf).sentences
        sentences = self._sentences[room.plan, side]
        history = [turn.text for turn in bot_dialogue(room, seat).turns]
        selection = make_selector("tfidf", sentences).select(history, sentences)
        return selection.sentence if selection is not None else None

    def _ask(self, bot: str, request: Request, speech: Speech) -> str:
        with self._lock[bot]:  # no system promises to answer two at once
            if speech.is_over:
                raise Unheard
            return stream_reply(self._systems[bot], request, speech.say).text

    def _show(self, due: Mapping[Turn, tuple[Room, Seat]]) -> None:
        """Tell pages the words so far."""
        now = self._clock()
        if now < self._shown_at + PIECES_SECONDS:
            return
        pieces: list[Signal] = []
        for turn, speech in self._speeches.items():
            room, seat = due[turn]
            text = speech.typed(self._speed * (now - room.turn_began_at(seat.name)))
            if len(text) > speech.n_shown:
                speech.n_shown = len(text)
                side = side_of(room, seat.name, room.leg)
                frame = {
                    "type": "piece",
                    "room": room.number,
                    "turns": turn.after,
                    "side": side,
                    "text": text,
                }
                pieces.append(Signal(room.number, "", frame))
        if pieces:
            self._shown_at = now
            self._log.tell(pieces)

    def _is_typed(self, future: Future[str], room: Room, seat: Seat) -> bool:
        """Whether so much time has passed as it takes to type it."""
        if future.exception() is not None:
            return True
        return self._clock() >= room.turn_began_at(seat.name) + len(future.result()) / self._speed

    def _command(self, turn: Turn, speech: Speech) -> Command:
        error = speech.whole.exception()
        if error is None:
            text = speech.whole.result()
            return lambda host, now: host.reply(turn.room, turn.seat, turn.after, text, now, speech.knowledge)
        if not isinstance(error, UserError):
            _log.error("a bot failed", exc_info=error)
        why = str(error)[:WHY_SHORT] or type(error).__name__
        return lambda host, now: host.fail(turn.room, turn.seat, why, now)


def reads_knowledge(system: System) -> bool:
    """Whether a system says that it takes a sentence of knowledge."""
    return "knowledge" in getattr(system, "takes", ())


def len_before(room: Room, seat: Seat) -> int:
    """Turns said before this seat's next one, as far as it heard them: the same while others also reply."""
    heard = [room.last_turn(other.name) for other in room.opponents(seat.name)]
    return max(heard) + 1
