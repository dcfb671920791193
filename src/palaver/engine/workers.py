"""Workers of this machine: threads and processes. Each does one shard after the other, in the order given.

Processes are spawned, not forked: a fork of a process with threads (BLAS, Arrow, torch) may hang. A worker
gets the function once, not with every shard, so the function may carry a vocabulary or open a model.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any, Protocol, cast

from palaver.engine.cores import limit_threads
from palaver.errors import UserError

_packed = b""
"""In a worker process: what it was started for."""


class WorkerLost(Exception):
    """A worker ended before its work was done."""


class Worker(Protocol):
    """Works on shards, one after the other."""

    def starting(self) -> Future[Any] | None:
        """What is done when it has started; nothing once it has. Where it failed to start, that says so."""

    def submit(self, shard: Any) -> Future[Any]: ...

    def explain(self, error: BaseException) -> BaseException:
        """What the work raised, or `WorkerLost` where the worker is gone."""

    def stop(self) -> None: ...


class LocalWorker:
    """An executor of one thread or process."""

    def __init__(self, executor: Executor, work: Callable[[Any], Any]) -> None:
        self._executor = executor
        self._work = work
        self._latest: Future[Any] | None = None

    def starting(self) -> Future[Any] | None:
        return None

    def submit(self, shard: Any) -> Future[Any]:
        try:
            self._latest = self._executor.submit(self._work, shard)
        except BrokenProcessPool as error:  # it has ended since
            self._latest = Future()
            self._latest.set_exception(error)
        return self._latest

    def explain(self, error: BaseException) -> BaseException:
        if isinstance(error, BrokenProcessPool):
            return WorkerLost("its process was killed or crashed")
        return error

    def stop(self) -> None:
        if self._latest is not None and not self._latest.done():  # nobody wants it any more (Ctrl-C)
            for process in dict(getattr(self._executor, "_processes", None) or {}).values():
                process.kill()
        self._executor.shutdown(cancel_futures=True)


def threads(function: Callable[[Any], Any]) -> Callable[[], Worker]:
    """Starts a thread."""
    return lambda: LocalWorker(ThreadPoolExecutor(1), function)


def processes(function: Callable[[Any], Any], n_threads: int) -> Callable[[], Worker]:
    """Starts a process, whose matrix libraries take `n_threads`."""
    packed = pack(function)
    spawn = multiprocessing.get_context("spawn")
    return lambda: LocalWorker(ProcessPoolExecutor(1, spawn, _begin, (packed, n_threads)), _work)


def pack(function: Callable[[Any], Any]) -> bytes:
    """The function as bytes; what cannot be sent fails here, not in a worker."""
    try:
        return pickle.dumps(function)
    except Exception as error:  # pickle raises what it likes
        raise UserError(
            f"this cannot be sent to a worker: {type(error).__name__}: {error}",
            "use --engine local, or name a function of a module: MODULE:FUNCTION",
        ) from error


def _begin(packed: bytes, n_threads: int) -> None:
    global _packed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of it and stops the work
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(n_threads)
    _packed = packed


def _end_with_parent() -> None:
    """A parent that was killed asks for nothing any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@cache
def _unpacked() -> Callable[[Any], Any]:
    """At the first shard, whose failure is reported; a failure of `_begin` would only be seen as a death."""
    return cast(Callable[[Any], Any], pickle.loads(_packed))


def _work(shard: Any) -> Any:
    return _unpacked()(shard)
