"""Conversations over WebSockets. A message is acknowledged when it is stored; a page that comes again is sent
what it does not have.

One task per process takes what pages want, carries all of it out in one transaction, and tells everybody whom
it concerns. In between it looks for what other processes wrote. Views are made between two transactions, so
nobody sees what is not stored yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from sqlalchemy.exc import SQLAlchemyError

from palaver.collection.host import Host
from palaver.collection.lobby import Event
from palaver.errors import Sentence, UserError
from palaver.server.chat_log import GROUP, ChatLog, Command, Signal, read_group
from palaver.server.chat_view import bot_at, view
from palaver.server.refusal import Refusal, clean
from palaver.server.security import RateLimit, Signer
from palaver.server.words import Words

_log = logging.getLogger("palaver.server")
POLL_SECONDS = 0.05
"""Between two looks at what other processes wrote."""
TICK_SECONDS = 1.0
FRAMES_AT_ONCE = 40
FRAMES_SECONDS = 2.0
"""More frames than this within so many seconds, and the connection is closed: nobody types so fast."""
MOST_SOCKETS = 4
"""Of one person; the oldest is closed."""
MOST_BYTES = 262_144
"""Of a frame. Longer ones end the connection before anybody reads them."""
TOO_MANY = Sentence("you send more than anybody can type: the connection is closed")


@dataclass(eq=False)
class Connection:
    """One page of somebody's."""

    person: str
    words: Words
    """Of the language that its reader has."""
    outbox: asyncio.Queue[dict[str, Any] | None] = field(default_factory=lambda: asyncio.Queue(1000))
    room: int = 0
    turns: int = 0
    """What the page has: so many turns of this room."""

    def send(self, frame: dict[str, Any] | None) -> None:
        with contextlib.suppress(asyncio.QueueFull):  # a page that takes nothing any more will come again
            self.outbox.put_nowait(frame)


@dataclass
class Wish:
    """A command that somebody waits for, and a page that is shown how things stand after it."""

    command: Command
    done: asyncio.Future[Any]
    page: Connection | None = None


class NotSaved(UserError):
    """The database could not be written: the page keeps what it has, and sends it again."""

    def __init__(self) -> None:
        super().__init__(Sentence("this could not be saved yet; it is sent again"))


class ChatHub:
    """The conversations of one process: who is connected, and what they want."""

    def __init__(self, log: ChatLog) -> None:
        self.log = log
        self._connections: dict[str, list[Connection]] = {}
        self._seen: dict[str, float] = {}
        self._wishes: asyncio.Queue[Wish] = asyncio.Queue()
        self._signals: list[Signal] = []
        """For people whose pages are connected to other processes."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="palaver-chat")
        self._limits = RateLimit(FRAMES_AT_ONCE, FRAMES_SECONDS)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown()

    async def do(self, command: Command, page: Connection | None = None) -> Any:
        """Carry a command out; what it returns, once it is stored. A refusal is raised."""
        wish = Wish(command, asyncio.get_running_loop().create_future(), page)
        await self._wishes.put(wish)
        return await wish.done

    # --- the one task ---------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        ticked_at = 0.0
        while True:
            wishes = await self._next_wishes()
            is_due = time.monotonic() >= ticked_at + TICK_SECONDS and self._is_anybody_here()
            try:
                if wishes or is_due or self._signals:
                    ticked_at = time.monotonic()
                    await self._carry_out(wishes)
                elif self._connections:
                    self._tell(await self._in_thread(self.log.look))
                for signal in self.log.take_signals():
                    self._pass_on(signal)
            except SQLAlchemyError as error:
                _log.error("the conversations cannot be stored: %s", str(error).splitlines()[0])
                for wish in wishes:
                    if not wish.done.done():
                        wish.done.set_exception(NotSaved())
                await asyncio.sleep(TICK_SECONDS)

    def _is_anybody_here(self) -> bool:
        """Also those who have gone without a word: somebody has to notice."""
        lobby = self.log.host.lobby
        return bool(self._connections or lobby.waiting or lobby.live)

    async def _next_wishes(self) -> list[Wish]:
        wishes: list[Wish] = []
        with contextlib.suppress(TimeoutError):
            wishes.append(await asyncio.wait_for(self._wishes.get(), POLL_SECONDS))
        while not self._wishes.empty():
            wishes.append(self._wishes.get_nowait())
        return wishes

    async def _carry_out(self, wishes: Sequence[Wish]) -> None:
        commands = [wish.command for wish in wishes]
        signals, self._signals = self._signals, []
        results, events = await self._in_thread(self.log.run, commands, dict(self._seen), signals)
        for wish, result in zip(wishes, results, strict=True):
            if wish.done.done():
                continue
            if isinstance(result, Exception):
                wish.done.set_exception(result)
            else:
                wish.done.set_result(result)
        self._tell(events)
        for wish in wishes:
            if wish.page is not None:
                self._show(wish.page)

    async def _in_thread(self, call: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *args)

    # --- who is to be told ----------------------------------------------------------------------------------

    def _tell(self, events: Sequence[Event]) -> None:
        """Send everybody whom these events concern what they see now."""
        lobby = self.log.host.lobby
        concerned: dict[str, None] = {}
        for event in events:
            if event.person is not None:
                concerned[event.person] = None
                room = lobby.room_of(event.person)
            else:
                room = None
            room = lobby.rooms[event.room] if event.room is not None else room
            if room is not None:
                concerned |= dict.fromkeys(room.people)
        for person in concerned:
            for connection in self._connections.get(person, ()):
                self._show(connection)

    def _show(self, connection: Connection) -> None:
        """Send a page what it does not have yet."""
        now = self.log.clock()
        seen = view(self.log.host, connection.person, now, connection.room, connection.turns)
        if seen.get("why"):
            seen["why"] = connection.words(seen["why"])
        connection.room, connection.turns = seen.get("room", 0), seen.get("n_turns", 0)
        connection.send(seen)

    def pass_on(self, person: str, frame: Mapping[str, Any]) -> None:
        """Tell the partner something that is not worth keeping: that somebody types, or has got a message."""
        room = self.log.host.lobby.room_of(person)
        if room is None:
            return
        signal = Signal(room.number, person, frame)
        if any(other != person and other not in self._connections for other in room.people):
            self._signals.append(signal)
        self._pass_on(signal)

    def _pass_on(self, signal: Signal) -> None:
        """Tell those whose pages are connected here."""
        room = self.log.host.lobby.rooms.get(signal.room)
        for person in room.people if room is not None else ():
            if person != signal.sender:
                for connection in self._connections.get(person, ()):
                    connection.send(dict(signal.frame))

    # --- pages that come and go -----------------------------------------------------------------------------

    def connect(self, person: str, words: Words, room: int, turns: int) -> Connection:
        connection = Connection(person, words, room=room, turns=turns)
        pages = self._connections.setdefault(person, [])
        pages.append(connection)
        if len(pages) > MOST_SOCKETS:
            pages.pop(0).send(None)
        self.see(person)
        return connection

    def disconnect(self, connection: Connection) -> None:
        pages = self._connections.get(connection.person, [])
        if connection in pages:
            pages.remove(connection)
        if not pages:
            self._connections.pop(connection.person, None)
            self._seen.pop(connection.person, None)

    def group_of(self, query: Mapping[str, str]) -> dict[str, str]:
        """The group that a link names, where groups matter; a link without one is refused."""
        meetings = self.log.collection.partners.meetings
        if not meetings:
            return {}
        group = query.get(GROUP, "")
        if group not in {name for pair in meetings for name in pair}:
            raise Refusal("this link does not say which group it is for: please ask for another", 400)
        return {GROUP: group}

    def see(self, person: str) -> None:
        self._seen[person] = self.log.clock()

    def allow(self, person: str) -> bool:
        return self._limits.allow(person)


# --- one page -----------------------------------------------------------------------------------------------

router = APIRouter()


@router.websocket("/chat/socket")
async def talk(socket: WebSocket) -> None:
    """A page's connection. The first frame says who it is, and what the page has already."""
    site = socket.app.state.site
    try:
        site.check_socket(socket)
        session = site.session(socket)
        if site.chat is None or session is None:
            raise Refusal("you are not in a conversation", 401)
    except Refusal as refusal:
        await socket.close(1008, refusal.message)
        return
    await socket.accept()
    try:
        hello = _parse(await asyncio.wait_for(socket.receive_text(), 10))
        greet(hello, session.rater, site.signer)
    except (Refusal, TimeoutError) as error:
        await socket.close(1008, str(error) or "nothing came")
        return
    except WebSocketDisconnect:
        return
    hub: ChatHub = site.chat
    group = await site.work(read_group, hub.log.database, session.rater)
    connection = hub.connect(session.rater, session.words, _number(hello, "room"), _number(hello, "turns"))
    writer = asyncio.create_task(_write(socket, connection))
    try:
        language = session.words.language
        await hub.do(lambda host, now: host.join(session.rater, now, group, language), connection)
        await _listen(socket, hub, connection)
    except WebSocketDisconnect:
        pass
    finally:
        hub.disconnect(connection)
        writer.cancel()


def greet(hello: Mapping[str, Any], rater: str, signer: Signer) -> None:
    """The first frame carries the token of the very session whose cookie came with it."""
    token = hello.get("token")
    if hello.get("type") != "hello" or not isinstance(token, str):
        raise Refusal("expected a greeting first", 403)
    signer.check_csrf(rater, token)


async def _write(socket: WebSocket, connection: Connection) -> None:
    while True:
        frame = await connection.outbox.get()
        try:
            if frame is None:
                await socket.close(1008, "this conversation is open in another window")
                return
            await socket.send_text(json.dumps(frame, ensure_ascii=False))
        except (RuntimeError, WebSocketDisconnect):
            return  # it was closed meanwhile


async def _listen(socket: WebSocket, hub: ChatHub, connection: Connection) -> None:
    while True:
        try:
            text = await socket.receive_text()
        except RuntimeError:  # the page is gone, and the task that writes noticed it first
            return
        if not hub.allow(connection.person):
            await socket.send_text(json.dumps({"type": "refused", "why": connection.words(TOO_MANY)}))
            await socket.close(1008, TOO_MANY)
            return
        hub.see(connection.person)
        mark = ""
        try:
            frame = _parse(text)
            mark = str(frame.get("mark", ""))[:100]
            result = await _heed(hub, connection, frame)
            if mark:
                connection.send({"type": "done", "mark": mark, "result": result})
        except UserError as refusal:
            again, why = isinstance(refusal, NotSaved), connection.words(refusal.message)
            connection.send({"type": "refused", "mark": mark, "why": why, "again": again})


async def _heed(hub: ChatHub, connection: Connection, frame: Mapping[str, Any]) -> Any:
    """Do what a frame asks for."""
    person, kind = connection.person, frame.get("type")
    if kind == "alive":
        visitor = hub.log.host.lobby.visitors.get(person)
        if visitor is not None and visitor.is_away:
            await hub.do(lambda host, now: host.see(person, now))
        return None
    if kind in ("typing", "got"):
        hub.pass_on(person, {"type": kind, "turns": _number(frame, "turns")})
        return None
    command = command_of(person, frame)
    if command is None:
        raise Refusal("there is no such request", 422)
    return await hub.do(command)


def command_of(person: str, frame: Mapping[str, Any]) -> Command | None:
    """The command that a frame stands for; None where there is none such."""
    kind = frame.get("type")
    if kind == "ready":
        return lambda host, now: host.say_ready(person, now)
    if kind == "say":
        id, text = _text(frame, "id", 64), clean(str(frame.get("text", "")), Sentence("the message"))
        pasted = _number(frame, "pasted")
        return lambda host, now: host.say(person, id, text, now, pasted)
    if kind == "answer":
        given = frame.get("answers")
        if not isinstance(given, dict) or len(given) > 100:
            raise Refusal("expected answers by criterion", 422)
        answers = {str(k): clean(str(v))[:1000] for k, v in given.items()}
        if frame.get("turn") is not None:
            turn = _number(frame, "turn")
            return lambda host, now: host.answer(person, answers, now, turn=turn)
        place = str(frame.get("place", ""))[:3]
        return lambda host, now: _answer_at_end(host, person, answers, place, now)
    if kind == "submit":
        return lambda host, now: host.submit(person, now)
    if kind == "choose":
        option = _text(frame, "option", 20)
        return lambda host, now: host.choose(person, option, now)
    return None


def _answer_at_end(host: Host, person: str, answers: dict[str, str], place: str, now: float) -> None:
    bot = bot_at(host.lobby.room_of(person), place)
    host.answer(person, answers, now, bot=bot)


def _parse(text: str) -> dict[str, Any]:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        frame = None
    if not isinstance(frame, dict):
        raise Refusal("expected a JSON object", 422)
    return frame


def _number(frame: Mapping[str, Any], name: str) -> int:
    value = frame.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**31:
        raise Refusal(Sentence("{what}: expected a number", what=name), 422)
    return value


def _text(frame: Mapping[str, Any], name: str, longest: int) -> str:
    value = frame.get(name, "")
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise Refusal(Sentence("{what}: expected 1 to {longest} characters", what=name, longest=longest), 422)
    return clean(value, name)
