"""`map_shards` and `map_rows`: one function over many shards, on any engine.

Shards may be a stream: no more than a few for each worker are in flight. The function is sent to a worker
once, not with every shard; a `Recipe` in it opens the worker's model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from typing import Any, TypeVar

from palaver.engine.cores import n_cores
from palaver.engine.engine import Engine
from palaver.engine.pool import Name, Pool
from palaver.engine.rows import RowError, in_parts
from palaver.engine.workers import Worker, processes, threads
from palaver.progress import Progress, no_progress

S = TypeVar("S")
R = TypeVar("R")
Row = TypeVar("Row")
Made = TypeVar("Made")


def map_shards(
    function: Callable[[S], R],
    shards: Iterable[S],
    *,
    engine: Engine | str = "processes",
    wants_gpu: bool = False,
    name: Callable[[int, S], str] | None = None,
    what: str = "shards",
    progress: Progress = no_progress,
) -> Iterator[R]:
    """`function(shard)` of every shard, in the order of the shards, as they become ready.

    One worker of this machine needs no process of its own. `name(number, shard)` is what a shard is called
    where it fails. `progress` is told how many shards of `what` are done; the total is 0 where nobody knows
    it. With `wants_gpu` a worker on Ray is given a GPU, or the share of one that the engine says.
    """
    total = len(shards) if isinstance(shards, Sized) else 0
    results = _run(function, shards, Engine.of(engine), total, wants_gpu, name or _number)
    return _told(results, partial(progress, what), total)


def map_rows(
    function: Callable[[Sequence[Row]], Made],
    batches: Iterable[Sequence[Row]],
    *,
    engine: Engine | str = "local",
    wants_gpu: bool = False,
    ordered: bool = False,
) -> Iterator[tuple[int, list[tuple[Sequence[Row], Made | RowError]]]]:
    """The number of each batch and what came of its rows, in parts.

    Batches come as they become ready, in any order unless `ordered`, which holds some back. A row that fails,
    or ends its worker, costs one row: see `in_parts`.
    """
    work = partial(in_parts, function)
    return _run(work, batches, Engine.of(engine), 0, wants_gpu, _number, ordered=ordered, of_rows=True)


def _number(number: int, shard: object) -> str:
    return f"shard {number + 1}"


def _run(
    function: Callable[[Any], Any],
    shards: Iterable[Any],
    engine: Engine,
    total: int,
    wants_gpu: bool,
    name: Name,
    *,
    ordered: bool = True,
    of_rows: bool = False,
) -> Iterator[tuple[int, Any]]:
    start: Callable[[], Worker]
    most = total or 1 << 20
    if engine.kind == "ray":
        from palaver.engine.ray_workers import ray_workers

        start, size = ray_workers(function, engine, wants_gpu=wants_gpu, most=most)
    else:
        size = min(engine.size, most)
        if size == 1:
            return _serial(function, shards, name)
        if engine.kind == "threads":
            start = threads(function)
        else:
            start = processes(function, max(1, n_cores() // size))
    return Pool(start, size, name, ordered=ordered, of_rows=of_rows).run(shards)


def _serial(function: Callable[[Any], Any], shards: Iterable[Any], name: Name) -> Iterator[tuple[int, Any]]:
    for number, shard in enumerate(shards):
        try:
            result = function(shard)
        except Exception as error:
            error.add_note(f"in {name(number, shard)}")
            raise
        yield number, result


def _told(results: Iterator[tuple[int, R]], progress: Callable[[int, int], None], total: int) -> Iterator[R]:
    for number, result in results:
        progress(number + 1, total)
        yield result
