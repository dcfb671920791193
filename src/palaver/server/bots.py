"""Bots as partners: reads from the log whose turn it is, asks the system, and writes what it says.

It runs in a process of its own, beside those that serve pages: a model may be large, and slow. If it ends,
the host notices that a bot is silent, and nobody is left waiting.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from palaver.collection.lobby import Room, Seat
from palaver.errors import UserError
from palaver.schema import Reply, Request, System
from palaver.server.chat_log import ChatLog, Command
from palaver.server.chat_view import bot_dialogue

_log = logging.getLogger("palaver.server")
PAUSE = 0.05
"""Seconds between two looks at the log."""
AT_ONCE = 16
"""Requests to systems that wait for an answer at the same time."""
WHY_SHORT = 200


class Turn(NamedTuple):
    """A turn that a bot has to say: the seat in the room, after so many turns."""

    room: int
    seat: str
    after: int


class BotRunner:
    """Lets systems speak in the conversations of one database."""

    def __init__(
        self, log: ChatLog, systems: Mapping[str, System], clock: Callable[[], float] | None = None
    ) -> None:
        self._log, self._systems = log, systems
        self._clock = clock or log.clock
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="palaver-bot")
        self._asked: dict[Turn, Future[str]] = {}
        self._speed = log.collection.partners.characters_per_second
        self._lock = {name: threading.Lock() for name in systems}

    def run(self, stopping: threading.Event) -> None:
        """Until it is told to stop."""
        while not stopping.wait(PAUSE):
            try:
                self.step()
            except SQLAlchemyError as error:
                _log.error("the bots cannot read or write: %s", str(error).splitlines()[0])
                stopping.wait(1.0)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def step(self) -> None:
        """Ask what is to be asked, and say what is there to be said."""
        self._log.look()
        due: dict[Turn, tuple[Room, Seat]] = {}
        for room, seat in self._log.host.bots_to_speak():
            if seat.bot in self._systems:
                due[Turn(room.number, seat.name, len_before(room, seat))] = (room, seat)
        for turn, (room, seat) in due.items():
            if turn not in self._asked:
                request = Request(bot_dialogue(room, seat))
                self._asked[turn] = self._pool.submit(self._ask, str(seat.bot), request)
        commands: list[Command] = []
        for turn, future in list(self._asked.items()):
            if turn not in due:
                del self._asked[turn]  # the conversation is over, or somebody else spoke
            elif future.done() and self._is_typed(future, *due[turn]):
                commands.append(self._command(turn, future))
                del self._asked[turn]
        if commands:
            self._log.run(commands)

    def _ask(self, bot: str, request: Request) -> str:
        with self._lock[bot]:  # no system promises to answer two at once
            replies: Sequence[Reply] = self._systems[bot].reply([request])
        return replies[0].text

    def _is_typed(self, future: Future[str], room: Room, seat: Seat) -> bool:
        """Whether so much time has passed as it takes to type it."""
        if future.exception() is not None:
            return True
        return self._clock() >= room.turn_began_at(seat.name) + len(future.result()) / self._speed

    def _command(self, turn: Turn, future: Future[str]) -> Command:
        error = future.exception()
        if error is None:
            text = future.result()
            return lambda host, now: host.reply(turn.room, turn.seat, turn.after, text, now)
        if not isinstance(error, UserError):
            _log.error("a bot failed", exc_info=error)
        why = str(error)[:WHY_SHORT] or type(error).__name__
        return lambda host, now: host.fail(turn.room, turn.seat, why, now)


def len_before(room: Room, seat: Seat) -> int:
    """Turns said before this seat's next one, as far as it heard them: the same while others also reply."""
    heard = [room.last_turn(other.name) for other in room.opponents(seat.name)]
    return max(heard) + 1
