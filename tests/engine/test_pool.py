"""The pool: workers that end cost no row, double none, and redo at most one batch each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Timer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.engine import RowError, in_parts
from palaver.engine.pool import Pool
from palaver.engine.workers import WorkerLost
from palaver.errors import UserError


class MortalWorker:
    """Does its shards at once, in this process; at each `dies` decides whether it ends."""

    def __init__(self, work: Callable[[Any], Any], dies: Callable[[Any], bool], begun: Counter[Any]) -> None:
        self.work, self.dies, self.begun = work, dies, begun
        self.is_dead = False

    def starting(self) -> None:
        return None

    def submit(self, shard: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.is_dead:
            self.begun[tuple(shard)] += 1
            self.is_dead = self.dies(shard)
        if self.is_dead:
            future.set_exception(WorkerLost("killed"))
        else:
            future.set_result(self.work(shard))
        return future

    def explain(self, error: BaseException) -> BaseException:
        return error

    def stop(self) -> None:
        pass


def squares(rows: Sequence[int]) -> list[int]:
    return [row * row for row in rows]


def batches_of(n: int, size: int) -> list[list[int]]:
    rows = list(range(n))
    return [rows[begin : begin + size] for begin in range(0, n, size)]


def name(number: int, shard: object) -> str:
    return f"shard {number + 1}"


@given(
    n=st.integers(0, 120),
    size=st.integers(1, 20),
    workers=st.integers(1, 8),
    seed=st.integers(0, 1000),
    ordered=st.booleans(),
)
def test_none_lost_none_doubled(n: int, size: int, workers: int, seed: int, ordered: bool) -> None:
    draw = random.Random(seed)
    begun: Counter[Any] = Counter()
    n_deaths = 0

    def dies(shard: Any) -> bool:
        nonlocal n_deaths
        is_death = begun[tuple(shard)] == 1 and draw.random() < 0.3  # a shard's second worker lives
        n_deaths += is_death
        return is_death

    pool = Pool(lambda: MortalWorker(squares, dies, begun), workers, name, ordered=ordered, of_rows=False)
    shards = batches_of(n, size)
    try:
        results = list(pool.run(shards))
    except UserError as error:
        assert "ended one after the other" in error.message  # the dice may fall so
        return
    assert [number for number, _ in sorted(results)] == list(range(len(shards)))
    assert not ordered or results == sorted(results)
    assert dict(results) == {number: squares(shard) for number, shard in enumerate(shards)}
    assert sum(begun.values()) == len(shards) + n_deaths, "one batch is redone for a worker that ended"


@given(killer=st.integers(0, 59), size=st.integers(1, 30), workers=st.integers(1, 4))
def test_a_row_that_ends_its_worker_costs_one_row(killer: int, size: int, workers: int) -> None:
    begun: Counter[Any] = Counter()
    work = partial(in_parts, squares)

    def start() -> MortalWorker:
        return MortalWorker(work, lambda shard: killer in shard, begun)

    pool = Pool(start, workers, name, ordered=True, of_rows=True)
    made = [
        (row, result) for _, parts in pool.run(batches_of(60, size)) for rows, result in parts for row in rows
    ]
    assert [row for row, _ in made] == list(range(60))
    assert [row for row, result in made if isinstance(result, RowError)] == [killer]


class ForgetfulWorker(MortalWorker):
    """Takes a while, and when it ends, what it had just done is lost with it."""

    def __init__(self, work: Callable[[Any], Any], dies: Callable[[Any], bool], begun: Counter[Any]) -> None:
        super().__init__(work, dies, begun)
        self.given: list[Future[Any]] = []

    def submit(self, shard: Any) -> Future[Any]:
        done = super().submit(shard)
        self.given.append(Future())
        if self.is_dead:
            for future in self.given:
                if not future.done():
                    future.set_exception(WorkerLost("killed"))
        else:
            Timer(0.01, self._tell, (self.given[-1], done.result())).start()
        return self.given[-1]

    def _tell(self, future: Future[Any], result: Any) -> None:
        if not self.is_dead:
            future.set_result(result)


def test_rows_that_are_lost_with_their_worker_are_not_to_blame() -> None:
    def start() -> ForgetfulWorker:
        return ForgetfulWorker(partial(in_parts, squares), lambda shard: 5 in shard, Counter())

    pool = Pool(start, 1, name, ordered=True, of_rows=True)
    made = [part for _, parts in pool.run(batches_of(12, 4)) for part in parts]
    assert [rows for rows, result in made if isinstance(result, RowError)] == [[5]]
    assert sorted(row for rows, _ in made for row in rows) == list(range(12))


def test_the_first_shard_that_fails_is_told_whichever_is_done_first() -> None:
    class SlowWorker(MortalWorker):
        """Its first shard is done later than all that the others do."""

        def submit(self, shard: Any) -> Future[Any]:
            late: Future[Any] = Future()
            Timer(0.05, lambda: late.set_result("late")).start()
            return late

    class FailingWorker(MortalWorker):
        def submit(self, shard: Any) -> Future[Any]:
            failed: Future[Any] = Future()
            failed.set_exception(ValueError(f"no {shard}"))
            return failed

    kinds = iter([SlowWorker, FailingWorker])
    pool = Pool(
        lambda: next(kinds)(squares, lambda shard: False, Counter()), 2, name, ordered=True, of_rows=False
    )
    results = pool.run([[1], [2], [3], [4]])
    assert next(results) == (0, "late")
    with pytest.raises(ValueError, match=r"no \[2\]"):
        next(results)


def test_a_shard_that_is_no_batch_is_named() -> None:
    pool = Pool(
        lambda: MortalWorker(squares, lambda shard: 7 in shard, Counter()),
        2,
        name,
        ordered=True,
        of_rows=False,
    )
    with pytest.raises(UserError, match=r"a worker ended before its work was done \(in shard 4\): killed"):
        list(pool.run(batches_of(20, 2)))


def test_workers_that_never_live_are_given_up() -> None:
    pool = Pool(
        lambda: MortalWorker(squares, lambda shard: True, Counter()), 2, name, ordered=True, of_rows=True
    )
    with pytest.raises(UserError, match="workers ended one after the other"):
        list(pool.run(batches_of(1000, 100)))
