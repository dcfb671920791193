"""A pool of workers: each has one shard to work on and one that waits, and no other shard is taken.

A worker that ends (killed, out of memory, its machine gone) is replaced. The shard it worked on is done
again, the one that waited goes to whoever is free: one batch a worker is redone, none is lost, none is done
twice. A shard that ends three workers is halved where it is a batch of rows, until the row is found.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from palaver.engine.rows import RowError
from palaver.engine.workers import Worker, WorkerLost
from palaver.errors import UserError

_logger = logging.getLogger(__name__)
_AHEAD = 2
"""Shards that a worker has: one that it works on, one that waits."""
_WINDOW = 2 * _AHEAD
"""Shards for each worker that are under way, or done while an earlier one is not, where order matters."""
_TRIES = 3
"""Workers that a shard may end."""
_LOSSES = 12
"""So many workers lost, and no shard done between: it will not get better."""

Name = Callable[[int, Any], str]
"""What the shard of a number is called where it fails."""


@dataclass(eq=False)
class _Task:
    number: int
    shard: Any
    n_losses: int = 0
    whole: _Task | None = None
    """The task that this is a half of; `number` then says which."""
    halves: dict[int, Any] = field(default_factory=dict)
    """What came of its halves."""


@dataclass(eq=False)
class _Desk:
    """A worker and what it was given, in that order."""

    worker: Worker
    tasks: dict[Future[Any], _Task] = field(default_factory=dict)


class Pool:
    """Runs shards on `size` workers, which `start` starts.

    With `ordered` results come in the order of the shards, otherwise as they become ready. With `of_rows` a
    shard is a list of rows and its result is a list, too.
    """

    def __init__(
        self, start: Callable[[], Worker], size: int, name: Name, *, ordered: bool, of_rows: bool
    ) -> None:
        self._start = start
        self._size = size
        self._name = name
        self._ordered = ordered
        self._of_rows = of_rows
        self._desks: list[_Desk] = []
        self._again: deque[_Task] = deque()
        self._early: dict[int, Any] = {}
        """Results that wait for an earlier one."""
        self._has_more = True
        self._n_lost = 0

    def run(self, shards: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """The number and the result of every shard."""
        coming = iter(enumerate(shards))
        n_given = 0
        try:
            self._desks += (_Desk(self._start()) for _ in range(self._size))
            while True:
                self._hand_out(coming)
                futures = [future for desk in self._desks for future in desk.tasks]
                if not futures and not self._again and not self._has_more:
                    return
                starting = [start for desk in self._desks if (start := desk.worker.starting()) is not None]
                wait([*futures, *starting], return_when=FIRST_COMPLETED)
                for desk in self._desks:
                    for number, result in self._collect(desk):
                        if self._ordered:
                            self._early[number] = result
                        else:
                            yield number, result
                while n_given in self._early:
                    yield n_given, self._early.pop(n_given)
                    n_given += 1
        finally:
            for desk in self._desks:
                desk.worker.stop()

    def _hand_out(self, coming: Iterator[tuple[int, Any]]) -> None:
        """First to those who have nothing, then to those who have one.

        What has ended a worker is worked on alone: a result may be lost with its worker although the shard
        behind it was to blame.
        """
        for n_held in range(_AHEAD):
            if n_held and any(task.n_losses for task in self._again):
                return
            for desk in self._desks:
                is_alone = any(task.n_losses for task in desk.tasks.values())
                if len(desk.tasks) == n_held and not is_alone and desk.worker.starting() is None:
                    task = self._next_task(coming)
                    if task is None:
                        return
                    desk.tasks[desk.worker.submit(task.shard)] = task

    def _next_task(self, coming: Iterator[tuple[int, Any]]) -> _Task | None:
        if self._again:
            return self._again.popleft()
        n_held = len(self._early) + sum(len(desk.tasks) for desk in self._desks)
        if not self._has_more or (self._ordered and n_held >= _WINDOW * self._size):
            return None
        for number, shard in coming:
            return _Task(number, shard)
        self._has_more = False
        return None

    def _collect(self, desk: _Desk) -> Iterator[tuple[int, Any]]:
        """What a worker has done. One that is gone is replaced."""
        loss: WorkerLost | None = None
        start = desk.worker.starting()
        if start is not None and start.done():
            loss = WorkerLost(str(start.exception()))
        for future in [future for future in desk.tasks if future.done()]:
            error = future.exception()
            if error is None:
                self._n_lost = 0
                yield from self._finish(desk.tasks.pop(future), future.result())
                continue
            error = desk.worker.explain(error)
            if not isinstance(error, WorkerLost):
                task = desk.tasks[future]
                error.add_note(f"in {self._name(task.number, task.shard)}")
                raise error
            loss = error
        if loss is not None:
            given = list(desk.tasks.values())
            self._replace(desk, loss)
            self._again.extend(given[1:])
            for task in given[:1]:  # it was working on the first
                yield from self._try_again(task, loss)

    def _finish(self, task: _Task, result: Any) -> Iterator[tuple[int, Any]]:
        if task.whole is None:
            yield task.number, result
            return
        whole = task.whole
        whole.halves[task.number] = result
        if len(whole.halves) == 2:
            yield from self._finish(whole, whole.halves[0] + whole.halves[1])

    def _try_again(self, task: _Task, loss: WorkerLost) -> Iterator[tuple[int, Any]]:
        task.n_losses += 1
        if task.n_losses < _TRIES:
            self._again.appendleft(task)
        elif not self._of_rows:
            raise UserError(
                f"a worker ended before its work was done (in {self._name(task.number, task.shard)}): {loss}",
                "was there too little memory? try fewer workers",
            ) from loss
        elif len(task.shard) == 1:
            yield from self._finish(task, [(task.shard, RowError(f"the worker that had it ended: {loss}"))])
        else:
            middle = len(task.shard) // 2
            for number, half in enumerate((task.shard[:middle], task.shard[middle:])):
                self._again.append(_Task(number, half, n_losses=_TRIES - 1, whole=task))

    def _replace(self, desk: _Desk, loss: WorkerLost) -> None:
        self._n_lost += 1
        if self._n_lost >= _LOSSES:
            raise UserError(
                f"{self._n_lost} workers ended one after the other, before any had done its work: {loss}",
                "is there too little memory? try fewer workers",
            ) from loss
        _logger.warning("a worker ended and is replaced: %s", loss)
        desk.worker.stop()
        desk.worker, desk.tasks = self._start(), {}
