"""`map_shards`: every backend gives the same, in order, and says where it failed."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator

import pytest

from palaver.engine import map_shards, n_cores
from palaver.engine.shards import Backend
from palaver.errors import DataError, MissingExtra, UserError

HERE: tuple[Backend, ...] = ("serial", "threads", "processes")


# Worker processes cannot import test files, so the work is `eval` of an expression.
MISSING = "__import__('palaver.files').files.check_readable(__import__('pathlib').Path('none.csv'))"
PROCESS = "__import__('os').getpid()"
DEATH = "__import__('os')._exit(9)"
SQUARES = [f"{n} * {n}" for n in range(20)]


@pytest.mark.parametrize("backend", HERE)
def test_results_come_in_order(backend: Backend) -> None:
    assert list(map_shards(eval, SQUARES, workers=2, backend=backend)) == [n * n for n in range(20)]


@pytest.mark.parametrize("backend", HERE)
def test_nothing_to_do(backend: Backend) -> None:
    assert list(map_shards(eval, [], workers=2, backend=backend)) == []


@pytest.mark.parametrize("backend", HERE)
def test_an_error_names_the_shard_and_stays_what_it_was(backend: Backend) -> None:
    found = map_shards(
        eval, ["1", "2", MISSING, "4", "5"], workers=2, backend=backend, name=lambda i, _: f"part {i}"
    )
    assert next(found) == 1
    with pytest.raises(DataError, match="no file none.csv") as caught:
        list(found)
    assert caught.value.__notes__ == ["in part 2"]


def test_a_worker_that_dies_is_reported() -> None:
    with pytest.raises(UserError, match=r"a worker process ended .* shard"):
        list(map_shards(eval, [*SQUARES, DEATH, *SQUARES], workers=2))


def test_a_worker_that_dies_while_shards_are_still_handed_out_is_reported() -> None:
    def slow() -> Iterator[str]:
        yield DEATH
        time.sleep(1.5)  # the pool has noticed by now, and refuses what comes next
        yield from SQUARES

    with pytest.raises(UserError, match=r"a worker process ended .* shard 1"):
        list(map_shards(eval, slow(), workers=2))


def test_a_function_that_cannot_be_sent_fails_at_once() -> None:
    with pytest.raises(Exception, match="pickle|local"):
        list(map_shards(lambda n: n, range(4), workers=2))


@pytest.mark.parametrize("backend", ["threads", "serial"])
def test_a_stream_is_not_read_far_ahead(backend: Backend) -> None:
    taken = []

    def stream() -> Iterator[int]:
        for n in range(1000):
            taken.append(n)
            yield n

    found = map_shards(lambda n: n * n, stream(), workers=3, backend=backend)
    assert [next(found) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert len(taken) <= 5 + 2 * 3
    found.close()  # type: ignore[attr-defined]


def test_progress_counts_shards() -> None:
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    list(map_shards(eval, ["1", "2", "3"], workers=2, backend="threads", progress=tell))
    assert told == [("shards", 1, 3), ("shards", 2, 3), ("shards", 3, 3)]
    told.clear()
    list(map_shards(eval, iter(["1", "2"]), workers=2, backend="serial", what="parts", progress=tell))
    assert told == [("parts", 1, 0), ("parts", 2, 0)]


def test_processes_are_others_and_one_worker_is_none() -> None:
    ids = set(map_shards(eval, [PROCESS] * 4, workers=2, backend="processes"))
    assert os.getpid() not in ids
    assert set(map_shards(eval, [PROCESS] * 4, workers=1, backend="processes")) == {os.getpid()}


def test_wrong_calls() -> None:
    with pytest.raises(UserError, match="did you mean 'threads'"):
        map_shards(eval, ["1"], backend="thread")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="found -1"):
        map_shards(eval, ["1"], workers=-1)
    assert n_cores() >= 1


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray() -> None:
    with pytest.raises(MissingExtra, match="'ray'") as caught:
        list(map_shards(eval, ["1", "2"], backend="ray"))
    assert "[cluster]" in caught.value.hint


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_with_ray() -> None:
    assert list(map_shards(eval, SQUARES, backend="ray")) == [n * n for n in range(20)]
    with pytest.raises(DataError, match="no file none.csv") as caught:
        list(map_shards(eval, ["1", "2", MISSING], backend="ray"))
    assert "in shard 3" in caught.value.__notes__
