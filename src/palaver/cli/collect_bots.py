"""The bots of a collection, in a process of their own beside the server."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import typer

from palaver.cli.study_database import open_database
from palaver.errors import UserError
from palaver.generation.system import Conditioned
from palaver.generation.systems_file import find_system
from palaver.schema import Dialogue, Request, System, Turn
from palaver.schema.response import USER

_SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def bots_beside(database: str, names: list[str], systems_file: Path | None) -> Iterator[None]:
    """The bots at work in a process of their own, as long as the block lasts."""
    if not names:
        yield
        return
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=run_bots, args=(database, names, systems_file, theirs), daemon=True)
    typer.echo(f"opening {', '.join(names)} …", err=True)
    process.start()
    theirs.close()
    try:
        problem, notes = ours.recv()
    except EOFError:
        problem, notes = "the process of the bots ended before it began", []
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if problem:
        process.join()
        raise UserError(str(problem))
    try:
        yield
    finally:
        process.terminate()
        process.join(5)


def run_bots(database: str, names: list[str], systems_file: Path | None, parent: Connection) -> None:
    """Open systems and let them speak until the process is told to end.

    The parent is told why it cannot begin, or nothing; and what is worth saying.
    """
    from palaver.server.bots import BotRunner, reads_knowledge
    from palaver.server.chat_log import ChatLog

    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threading.Thread(target=_end_with_parent, args=(stopping,), daemon=True).start()
    try:
        systems: dict[str, System] = {name: find_bot(name, systems_file)() for name in names}
        for system in systems.values():
            check_bot(system)
    except UserError as error:
        _tell(parent, error.message, [])
        return
    with open_database(database) as base:
        log = ChatLog(base)
        notes = []
        if log.collection.knowledge is not None:
            ignorant = [name for name, system in systems.items() if not reads_knowledge(system)]
            notes = [f"{name} takes no knowledge: it talks without a reading set" for name in ignorant]
        runner = BotRunner(log, systems)
        if _tell(parent, "", notes):
            runner.run(stopping)


def _tell(parent: Connection, problem: str, notes: list[str]) -> bool:
    """Whether there is still a parent to be told."""
    try:
        parent.send((problem, notes))
    except ConnectionError:
        return False
    return True


def find_bot(name: str, systems_file: Path | None) -> Callable[[], System]:
    """What opens a system, as `palaver chat` names it; NAME/SPEAKER is one of its speakers."""
    system, slash, speaker = name.rpartition("/")
    try:
        return find_system(name, systems_file)
    except UserError:
        if not slash:
            raise
    spec = find_system(system, systems_file)
    return lambda: Conditioned(spec(), speaker=speaker, ocean=None)


def check_bot(system: System) -> None:
    """A system with several speakers is asked something now: it says so if it does not know who it is."""
    if getattr(system, "speakers", ()):
        hello = Dialogue(id="hello", turns=(Turn(speaker=USER, text="Hello!"),))
        system.reply([Request(hello)])


def _end_with_parent(stopping: threading.Event) -> None:
    """A server that is stopped by a signal has no time to say so."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        stopping.set()
