"""`map_shards`: one function over many shards, results in order, memory for a few shards only.

Shards may be a stream: no more than two for each worker are in flight. The function is sent to a worker
once, not with every shard, so it may carry a vocabulary or a model. Worker processes are spawned, not forked:
a fork of a process with threads (BLAS, Arrow, torch) may hang.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import Any, Literal, TypeVar, cast

from palaver.errors import UserError, nearest, require
from palaver.progress import Progress, no_progress

S = TypeVar("S")
R = TypeVar("R")
Backend = Literal["processes", "threads", "serial", "ray"]

Submit = Callable[[Any], Callable[[], Any]]
"""Begins to work on a shard; what it gives back waits for the result."""

_AHEAD = 2
_packed = b""
"""In a worker process: what it was started for."""


def n_cores() -> int:
    """The processors this process may use, which in a container are fewer than the machine has."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def map_shards(
    function: Callable[[S], R],
    shards: Iterable[S],
    *,
    workers: int = 0,
    backend: Backend = "processes",
    name: Callable[[int, S], str] | None = None,
    what: str = "shards",
    progress: Progress = no_progress,
) -> Iterator[R]:
    """`function(shard)` of every shard, in the order of the shards, as they become ready.

    `workers` is the number of processes or threads, 0 for one a core; one worker needs no process of its
    own. `name(number, shard)` is what a shard is called where it fails. `progress` is told how many shards of
    `what` are done; the total is 0 where nobody knows it. "threads" suit work that lets go of
    Python's lock (NumPy, libsvm); "ray" uses the cluster that `RAY_ADDRESS` names, or this machine.
    """
    if backend not in _BACKENDS:
        known = tuple(_BACKENDS)
        raise UserError(
            f"there is no backend {backend!r}{nearest(backend, known)}", f"known: {', '.join(known)}"
        )
    if workers < 0:
        raise UserError(f"expected 0 workers (one a core) or more, found {workers}")
    total = len(shards) if isinstance(shards, Sized) else 0
    wanted = min(workers or n_cores(), total or 1 << 20)
    if wanted == 1 and backend != "ray":
        backend = "serial"
    return _in_order(
        _BACKENDS[backend](function, wanted), shards, name or _number, partial(progress, what), total, wanted
    )


def _number(number: int, shard: object) -> str:
    return f"shard {number + 1}"


def _in_order(
    backend: AbstractContextManager[Submit],
    shards: Iterable[Any],
    name: Callable[[int, Any], str],
    progress: Callable[[int, int], None],
    total: int,
    workers: int,
) -> Iterator[Any]:
    waiting: deque[tuple[str, Callable[[], Any]]] = deque()
    n_done = 0

    def finish() -> Any:
        nonlocal n_done
        called, result = waiting.popleft()
        try:
            made = result()
        except Exception as error:
            error.add_note(f"in {called}")
            raise
        n_done += 1
        progress(n_done, total)
        return made

    with backend as submit:
        for number, shard in enumerate(shards):
            while len(waiting) >= _AHEAD * workers:
                yield finish()
            try:
                begun = submit(shard)
            except Exception:  # no worker is left: what became of an earlier shard says why
                while waiting:
                    finish()
                raise
            waiting.append((name(number, shard), begun))
        while waiting:
            yield finish()


@contextmanager
def _serial(function: Callable[[Any], Any], workers: int) -> Iterator[Submit]:
    yield lambda shard: partial(function, shard)


@contextmanager
def _threads(function: Callable[[Any], Any], workers: int) -> Iterator[Submit]:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(workers)
    try:
        yield lambda shard: pool.submit(function, shard).result
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _processes(function: Callable[[Any], Any], workers: int) -> Iterator[Submit]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    packed = pickle.dumps(function)  # here, so that what cannot be sent fails here and not in a worker
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (packed,))
    try:
        yield lambda shard: pool.submit(_work, shard).result
    except BrokenProcessPool as error:
        where = "; ".join(getattr(error, "__notes__", ())) or "before its first shard"
        raise UserError(
            f"a worker process ended before its work was done ({where})",
            "was there too little memory? try fewer workers",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(packed: bytes) -> None:
    global _packed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of it and stops the work
    _packed = packed


@cache
def _unpacked() -> Callable[[Any], Any]:
    """At the first shard, whose failure is reported; a failure of `_begin` would only be seen as a death."""
    return cast(Callable[[Any], Any], pickle.loads(_packed))


def _work(shard: Any) -> Any:
    return _unpacked()(shard)


@contextmanager
def _ray(function: Callable[[Any], Any], workers: int) -> Iterator[Submit]:
    ray = require("ray", "cluster")
    ours = not ray.is_initialized()
    if ours:
        ray.init(log_to_driver=False, include_dashboard=False)
    kept = ray.put(function)
    remote = ray.remote(_call)
    try:
        yield lambda shard: partial(_get, ray, remote.remote(kept, shard))
    finally:
        if ours:
            ray.shutdown()


def _call(function: Callable[[Any], Any], shard: Any) -> Any:
    return function(shard)


def _get(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        raise cause from None


_BACKENDS: dict[str, Callable[[Callable[[Any], Any], int], AbstractContextManager[Submit]]] = {
    "processes": _processes,
    "threads": _threads,
    "serial": _serial,
    "ray": _ray,
}
