"""A pool of workers: each has one shard, and is given the next once the caller has what came of it.

So whatever is killed, a worker, its machine or this process, at most one shard a worker is done again. A
shard that waited at the worker would save a millisecond between two shards, and cost that promise.

A worker that ends (killed, out of memory, its machine gone) is replaced, and its shard is done again: none is
lost, none is done twice. A shard that ends three workers is halved where it is a batch of rows, until the row
is found.
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
_WINDOW = 4
"""Shards for each worker that are under way, or done while an earlier one is not, where order matters."""
_TRIES = 3
"""Workers that a shard may end."""
_PULSE = 0.2
"""Seconds after which a wait is begun anew: Polars lets the system go on waiting after Ctrl-C, and Python
would not hear of it before a shard is done."""
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


@dataclass(frozen=True)
class _Failure:
    """What a shard raised. Where order matters it waits for its turn: the first shard that fails is told."""

    error: BaseException


@dataclass(eq=False)
class _Desk:
    """A worker and what it works on."""

    worker: Worker
    task: _Task | None = None
    future: Future[Any] = field(default_factory=Future)


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
                for desk in self._desks:
                    self._give(desk, coming)
                futures = [desk.future for desk in self._desks if desk.task is not None]
                if not futures and not self._again and not self._has_more:
                    return
                starting = [start for desk in self._desks if (start := desk.worker.starting()) is not None]
                wait([*futures, *starting], timeout=_PULSE, return_when=FIRST_COMPLETED)
                for desk in self._desks:
                    for number, result in self._collect(desk):
                        if self._ordered:
                            self._early[number] = result
                        else:
                            yield number, result
                    self._give(desk, coming)  # before the results of the others are dealt with
                while n_given in self._early:
                    result = self._early.pop(n_given)
                    if isinstance(result, _Failure):
                        raise result.error
                    yield n_given, result
                    n_given += 1
        finally:
            for desk in self._desks:
                desk.worker.stop()

    def _give(self, desk: _Desk, coming: Iterator[tuple[int, Any]]) -> None:
        """Give a worker that has nothing to do the next shard."""
        if desk.task is None and desk.worker.starting() is None:
            desk.task = self._next_task(coming)
            if desk.task is not None:
                desk.future = desk.worker.submit(desk.task.shard)

    def _next_task(self, coming: Iterator[tuple[int, Any]]) -> _Task | None:
        if self._again:
            return self._again.popleft()
        n_held = len(self._early) + sum(desk.task is not None for desk in self._desks)
        if not self._has_more or (self._ordered and n_held >= _WINDOW * self._size):
            return None
        for number, shard in coming:
            return _Task(number, shard)
        self._has_more = False
        return None

    def _collect(self, desk: _Desk) -> Iterator[tuple[int, Any]]:
        """What a worker has done. One that is gone is replaced."""
        start = desk.worker.starting()
        if start is not None and start.done():
            self._replace(desk, WorkerLost(str(start.exception())))
        if desk.task is None or not desk.future.done():
            return
        task, desk.task = desk.task, None
        error = desk.future.exception()
        if error is None:
            self._n_lost = 0
            yield from self._finish(task, desk.future.result())
            return
        error = desk.worker.explain(error)
        if not isinstance(error, WorkerLost):
            error.add_note(f"in {self._name(task.number, task.shard)}")
            if not self._ordered or task.whole is not None:
                raise error
            self._early[task.number] = _Failure(error)
            self._has_more = False
            return
        self._replace(desk, error)
        yield from self._try_again(task, error)

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
        desk.worker = self._start()
