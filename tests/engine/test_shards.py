"""`map_shards` and `map_rows`: every engine gives the same, and says where it failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.engine import Engine, Recipe, RowError, map_rows, map_shards, n_cores
from palaver.errors import DataError, UserError

sys.path.insert(0, str(Path(__file__).parent))
# worker processes find it on the same path
from engine_work import Diary, Model, Patient, WhoOpened, is_alive, squares, wait_until

LOCAL, THREADS, PROCESSES = Engine(), Engine("threads", 2), Engine("processes", 2)
HERE = (LOCAL, THREADS, PROCESSES)


MISSING = "__import__('palaver.files').files.check_readable(__import__('pathlib').Path('none.csv'))"
PROCESS = "__import__('os').getpid()"
DEATH = "__import__('os')._exit(9)"
SQUARES = [f"{n} * {n}" for n in range(20)]


@pytest.mark.parametrize("engine", HERE, ids=str)
def test_results_come_in_order(engine: Engine) -> None:
    assert list(map_shards(eval, SQUARES, engine=engine)) == [n * n for n in range(20)]


@pytest.mark.parametrize("engine", HERE, ids=str)
def test_nothing_to_do(engine: Engine) -> None:
    assert list(map_shards(eval, [], engine=engine)) == []


@pytest.mark.parametrize("engine", HERE, ids=str)
def test_an_error_names_the_shard_and_stays_what_it_was(engine: Engine) -> None:
    found = map_shards(eval, ["1", "2", MISSING, "4", "5"], engine=engine, name=lambda i, _: f"part {i}")
    assert next(found) == 1
    with pytest.raises(DataError, match="no file none.csv") as caught:
        list(found)
    assert caught.value.__notes__ == ["in part 2"]


def test_a_shard_that_ends_its_workers_is_named() -> None:
    with pytest.raises(
        UserError, match=r"a worker ended .* \(in shard 3\): its process was killed or crashed"
    ):
        list(map_shards(eval, ["1", "2", DEATH, "4"], engine=PROCESSES))


def test_a_worker_that_is_killed_once_is_replaced(tmp_path: Path) -> None:
    mark = tmp_path / "killed"
    once = (
        f"__import__('pathlib').Path({str(mark)!r}).exists() or (open({str(mark)!r}, 'w').close(), {DEATH})"
    )
    shards = ["1", "2", once, *SQUARES]
    assert list(map_shards(eval, shards, engine=PROCESSES)) == [1, 2, True, *(n * n for n in range(20))]


def test_workers_of_a_killed_command_end_and_begin_nothing_more(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from engine_work import Diary
from palaver.engine import map_rows
if __name__ == "__main__":
    list(map_rows(Diary({str(tmp_path)!r}, 0.3), [[n] for n in range(9)], engine="processes:2"))
"""
    work = Diary(str(tmp_path), 0)
    driver = subprocess.Popen([sys.executable, "-c", program])
    wait_until(lambda: len(work.workers()) == 2 or driver.poll() is not None)
    driver.kill()
    driver.wait()
    begun = work.begun()
    wait_until(lambda: not any(is_alive(pid) for pid in work.workers()), seconds=5)
    assert work.begun() == begun


def test_a_map_that_is_left_does_not_wait_for_its_workers(tmp_path: Path) -> None:
    """Ctrl-C, or an error of another shard: nobody wants the results any more."""
    work = Diary(str(tmp_path), 0.0)
    slow = Diary(str(tmp_path), 60.0)
    results = map_shards(Patient(slow, work), [[1], [2], [3]], engine=PROCESSES)
    assert next(results) == [1]
    wait_until(lambda: len(work.begun()) == 3)
    began = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 10
    assert not any(is_alive(pid) for pid in work.workers())


def test_one_poisoned_row_and_one_that_kills_cost_two_rows() -> None:
    rows = list(range(1, 25))
    rows[3], rows[17] = -1, -2
    answers = {}
    shards = [rows[begin : begin + 4] for begin in range(0, 24, 4)]
    for _, parts in map_rows(squares, shards, engine=PROCESSES, ordered=True):
        for some, made in parts:
            made = [made] if isinstance(made, RowError) else made
            answers |= dict(zip(some, made, strict=True))
    assert list(answers) == rows
    assert answers.pop(-1) == RowError("ValueError: poisoned")
    assert isinstance(answers.pop(-2), RowError)
    assert answers == {row: row * row for row in rows if row > 0}


def test_a_worker_opens_its_model_once_and_is_never_sent_one() -> None:
    here = Model()
    work = WhoOpened(Recipe(Model, here))
    assert set(map_shards(work, range(4), engine=LOCAL)) == {(os.getpid(), id(here))}
    opened = set(map_shards(work, range(8), engine=PROCESSES))
    assert len(opened) <= 2, "one a worker"
    assert os.getpid() not in {pid for pid, _ in opened}
    with pytest.raises(UserError, match="cannot be sent to a worker"):
        list(map_shards(WhoOpened(Recipe.of(here)), range(4), engine=PROCESSES))


def test_a_function_that_cannot_be_sent_fails_at_once() -> None:
    with pytest.raises(Exception, match="pickle|local"):
        list(map_shards(lambda n: n, range(4), engine=PROCESSES))


@pytest.mark.parametrize("engine", [Engine("threads", 3), LOCAL], ids=str)
def test_a_stream_is_not_read_far_ahead(engine: Engine) -> None:
    taken = []

    def stream() -> Iterator[int]:
        for n in range(1000):
            taken.append(n)
            yield n

    found = map_shards(lambda n: n * n, stream(), engine=engine)
    assert [next(found) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert len(taken) <= 5 + 4 * 3
    found.close()  # type: ignore[attr-defined]


def test_progress_counts_shards() -> None:
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    list(map_shards(eval, ["1", "2", "3"], engine=THREADS, progress=tell))
    assert told == [("shards", 1, 3), ("shards", 2, 3), ("shards", 3, 3)]
    told.clear()
    list(map_shards(eval, iter(["1", "2"]), engine=LOCAL, what="parts", progress=tell))
    assert told == [("parts", 1, 0), ("parts", 2, 0)]


def test_processes_are_others_and_one_worker_is_none() -> None:
    ids = set(map_shards(eval, [PROCESS] * 4, engine=PROCESSES))
    assert os.getpid() not in ids
    assert set(map_shards(eval, [PROCESS] * 4, engine="processes:1")) == {os.getpid()}


def test_wrong_calls() -> None:
    with pytest.raises(UserError, match="did you mean 'processes'"):
        map_shards(eval, ["1"], engine="process")
    assert n_cores() >= 1
