"""The log of a collection in its database, and this process's picture of it.

Each process holds a `Host` that has read the log so far. A command is decided in a transaction that excludes
all others: what other processes wrote is read, the host decides, and what it writes gets the next numbers. So
pairing needs no process that knows more than the others, and what was acknowledged is on disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from palaver.collection.amendment import Amendment, compare_collections
from palaver.collection.host import Host
from palaver.collection.lobby import Event
from palaver.collection.plans import number_of_plans, plan_conversations
from palaver.collection.settings import Collection
from palaver.collection.standards import Standards
from palaver.errors import UserError
from palaver.schema import Dialogue
from palaver.server.database import Database
from palaver.server.records import change_rater, log
from palaver.server.study_state import Clock, StudyState
from palaver.server.tables import chat_event, chat_signal, collection, plan, presence, rater

Command = Callable[[Host, float], Any]
"""Something that somebody wants, at a time."""
PRESENCE_SECONDS = 4.0
"""Between two exchanges of signs of life with other processes."""
GROUP = "group"
"""The parameter of a link that says to which group of people it was sent."""
SIGNAL_SECONDS = 60.0
"""After which a signal is deleted."""
_READ = select(chat_event).order_by(chat_event.c.number)


def create_collection(
    database: Database,
    settings: Collection,
    source: str,
    folder: Path,
    clock: Clock = time.time,
) -> None:
    """Put a collection into its database if it is new there; a file that has changed since is refused."""
    with database.reading() as connection:
        there = read_collection(connection)
    if there is None:
        StudyState.create(database, settings.frame(), source, clock)
    if there is not None:
        if _without_standards(there) != _without_standards(settings):
            raise UserError(
                f"the database holds the collection {there.name!r}, and the file has changed since",
                "`palaver collect amend` takes over what may change; or serve it with another --database",
            )
        return
    plans = plan_conversations(settings, folder)
    with database.writing() as connection:
        if read_collection(connection) is None:
            row = {
                "id": 1,
                "document": settings.model_dump_json(),
                "source": source,
                "n_plans": number_of_plans(settings, plans),
            }
            connection.execute(insert(collection).values(row))
            if plans:
                documents = [{"number": n, "document": p.model_dump_json()} for n, p in enumerate(plans)]
                connection.execute(insert(plan), documents)


def amend_collection(database: Database, settings: Collection, source: str) -> Amendment:
    """Change a collection while it runs; what would make conversations incomparable is refused."""
    log = ChatLog(database)
    amendment = compare_collections(log.collection, settings)
    if amendment.refusals:
        raise UserError(
            "this would make conversations incomparable",
            "serve it as a collection of its own, with another --database",
            amendment.refusals,
        )
    if amendment.changes:
        StudyState(database).amend(settings.frame(), source)
        values: dict[str, Any] = {"document": settings.model_dump_json(), "source": source}
        if settings.knowledge is None:
            values["n_plans"] = settings.conversation.wanted
        with database.writing() as connection:
            connection.execute(update(collection).values(values))
        log.run([lambda host, now: host.amend(amendment.changes, now)])
    return amendment


def _without_standards(settings: Collection) -> Collection:
    return settings.model_copy(update={name: {} for name in Standards.model_fields})


def read_collection(connection: Connection) -> Collection | None:
    """The collection in a database; None where there is a study alone."""
    document = connection.execute(select(collection.c.document)).scalar()
    return None if document is None else Collection.model_validate_json(document)


def is_collection(connection: Connection) -> bool:
    """Whether a database holds conversations; a study alone otherwise."""
    return connection.execute(select(collection.c.id)).first() is not None


def read_plan(database: Database, number: int) -> Dialogue:
    """What each side of a planned conversation reads."""
    with database.reading() as connection:
        document = connection.execute(select(plan.c.document).where(plan.c.number == number)).scalar_one()
    return Dialogue.model_validate_json(document)


def read_group(database: Database, person: str) -> str:
    """The group that somebody's link named."""
    with database.reading() as connection:
        kept = connection.execute(select(rater.c.parameters).where(rater.c.id == person)).scalar_one()
    return str(json.loads(kept).get(GROUP, ""))


def read_events(connection: Connection, after: int = 0) -> list[Event]:
    """The events that come after one, in order."""
    rows = connection.execute(_READ.where(chat_event.c.number > after))
    return [Event(row.number, row.at, row.kind, row.room, row.person, json.loads(row.body)) for row in rows]


class Signal(NamedTuple):
    """A frame for the others in a room, which is told and not kept."""

    room: int
    sender: str
    """The person who is not told; nothing for a bot."""
    frame: Mapping[str, Any]


class ChatLog:
    """One process's picture of a collection. Not for several threads at once."""

    def __init__(self, database: Database, clock: Clock = time.time) -> None:
        self.database, self.clock = database, clock
        with database.reading() as connection:
            self._read_rules(connection)
            events = read_events(connection)
            last = connection.execute(select(func.max(chat_signal.c.number))).scalar()
        self._signal_cursor = int(last or 0)
        self._signals: list[Signal] = []
        self.host = Host(self._rules, events, started_at=clock())
        self._exchanged_at = 0.0

    def _read_rules(self, connection: Connection) -> None:
        settings = read_collection(connection)
        if settings is None:
            raise UserError("there is no collection in this database")
        self.collection = settings
        self._rules = settings.rules(connection.execute(select(collection.c.n_plans)).scalar())

    def _take_in(self, connection: Connection) -> list[Event]:
        """Read what other processes wrote."""
        events = read_events(connection, self.host.lobby.cursor)
        for event in events:
            self.host.lobby.apply(event)
        if any(event.kind == "amended" for event in events):
            self._read_rules(connection)
            self.host.rules = self._rules
        self._read_signals(connection)
        return events

    def look(self) -> list[Event]:
        """Take in what other processes wrote."""
        with self.database.reading() as connection:
            return self._take_in(connection)

    def take_signals(self) -> list[Signal]:
        """What other processes had to tell since the last time; their senders' own signals come, too."""
        signals, self._signals = self._signals, []
        return signals

    def tell(self, signals: Sequence[Signal]) -> None:
        """Tell other processes."""
        with self.database.writing() as connection:
            self._write_signals(connection, signals)

    def _read_signals(self, connection: Connection) -> None:
        rows = select(chat_signal).where(chat_signal.c.number > self._signal_cursor)
        for row in connection.execute(rows.order_by(chat_signal.c.number)):
            self._signal_cursor = row.number
            self._signals.append(Signal(row.room, row.sender, json.loads(row.frame)))

    def _write_signals(self, connection: Connection, signals: Sequence[Signal]) -> None:
        now = self.clock()
        rows = [
            {"at": now, "room": s.room, "sender": s.sender, "frame": json.dumps(s.frame, ensure_ascii=False)}
            for s in signals
        ]
        if rows:
            connection.execute(insert(chat_signal), rows)

    def run(
        self,
        commands: Sequence[Command],
        signs: Mapping[str, float] | None = None,
        signals: Sequence[Signal] = (),
    ) -> tuple[list[Any], list[Event]]:
        """Carry out commands, and whatever time brings; their results, or the error of each that was refused,
        and the new events, other processes' too. When this returns, all of it is stored."""
        now = self.clock()
        results: list[Any] = []
        try:
            with self.database.writing() as connection:
                events = self._take_in(connection)
                self.host.hear(signs or {})
                self._exchange_signs(connection, signs or {}, now)
                self._write_signals(connection, signals)
                for command in commands:
                    try:
                        results.append(command(self.host, now))
                    except UserError as error:
                        results.append(error)
                self.host.tick(now)
                new = self.host.take_new()
                self._store(connection, new)
        except BaseException:
            self._read_again()  # the host may have decided what was never stored
            raise
        return results, [*events, *new]

    def _read_again(self) -> None:
        with self.database.reading() as connection:
            self._read_rules(connection)
            events = read_events(connection)
        self.host = Host(self._rules, events, started_at=self.clock())

    def _store(self, connection: Connection, events: Sequence[Event]) -> None:
        if not events:
            return
        connection.execute(
            insert(chat_event),
            [
                {
                    "number": event.number,
                    "at": event.at,
                    "kind": event.kind,
                    "room": event.room,
                    "person": event.person,
                    "body": json.dumps(event.body, ensure_ascii=False),
                }
                for event in events
            ],
        )
        for event in events:
            if event.kind == "exited":
                self._show_out(connection, event)

    def _show_out(self, connection: Connection, event: Event) -> None:
        """The rater's row follows the log: who has left goes on to the survey, or to the way out."""
        state = next_state(event.body, has_survey=bool(self.collection.survey))
        if state is not None:
            change_rater(connection, str(event.person), state=state)
        log(connection, event.at, event.person, f"chat {event.body['pay']}", event.body["reason"])

    def _exchange_signs(self, connection: Connection, signs: Mapping[str, float], now: float) -> None:
        if now < self._exchanged_at + PRESENCE_SECONDS:
            return
        self._exchanged_at = now
        if signs:
            connection.execute(delete(presence).where(presence.c.person.in_(list(signs))))
            rows = [{"person": person, "seen_at": at} for person, at in signs.items()]
            connection.execute(insert(presence), rows)
        connection.execute(delete(chat_signal).where(chat_signal.c.at < now - SIGNAL_SECONDS))
        since = now - self._rules.silence_seconds
        others = connection.execute(select(presence).where(presence.c.seen_at > since))
        self.host.hear({row.person: row.seen_at for row in others})


def next_state(exit: Mapping[str, Any], *, has_survey: bool) -> str | None:
    """The state of somebody's row who left the conversations; None where they may come again."""
    if exit["pay"] != "none":
        return "survey" if has_survey else "done"
    return {"lost": None, "unneeded": "unneeded"}.get(exit["exit"], "withdrawn")
