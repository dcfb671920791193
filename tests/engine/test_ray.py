"""A real Ray cluster of several nodes, processes here; a worker, a node and the driver are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
sys.path.insert(0, str(Path(__file__).parent))
from engine_work import Diary, Model, WhoOpened, squares, wait_until
from palaver.engine import Engine, Recipe, RowError, map_rows, map_shards
from palaver.engine.ray_workers import connect, disconnect
from palaver.errors import DataError, UserError

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
MISSING = "__import__('palaver.files').files.check_readable(__import__('pathlib').Path('none.csv'))"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one processor each; a test adds another and kills it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **NODE})
    try:
        cluster.add_node(**NODE)
        yield cluster
    finally:
        disconnect()
        cluster.shutdown()


@pytest.fixture
def engine(cluster: Any) -> Engine:
    port = cluster.address.rpartition(":")[2]
    # a head on this machine is found under any of its names
    return Engine("ray", address=f"127.0.0.1:{port}")


def batches_of(rows: list[int], size: int) -> list[list[int]]:
    return [rows[begin : begin + size] for begin in range(0, len(rows), size)]


def test_results_are_those_of_this_process(engine: Engine) -> None:
    shards = [f"{n} * {n}" for n in range(20)]
    assert list(map_shards(eval, shards, engine=engine)) == [n * n for n in range(20)]
    with pytest.raises(DataError, match="no file none.csv") as caught:
        list(map_shards(eval, ["1", "2", MISSING], engine=engine))
    assert "in shard 3" in caught.value.__notes__
    here = {(os.getpid(), 0)}
    opened = set(map_shards(WhoOpened(Recipe(Model, None)), range(9), engine=engine))
    assert len(opened) <= 2, "an actor opens its model once"
    assert not opened & here


def test_one_poisoned_row_and_one_that_kills_cost_two_rows(engine: Engine) -> None:
    rows = list(range(1, 25))
    rows[3], rows[17] = -1, -2
    made: dict[int, Any] = {}
    for _, parts in map_rows(squares, batches_of(rows, 3), engine=engine):
        for some, result in parts:
            results = [result] if isinstance(result, RowError) else result
            made |= dict(zip(some, results, strict=True))
    assert made.pop(-1) == RowError("ValueError: poisoned")
    assert isinstance(made.pop(-2), RowError)
    assert made == {row: row * row for row in rows if row > 0}


def test_a_killed_worker_and_a_killed_node(
    engine: Engine, cluster: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work = Diary(str(tmp_path), 0.1)
    rows = list(range(1, 61))
    node = cluster.add_node(**NODE)
    results = map_shards(work, batches_of(rows, 1), engine=engine)
    made = [next(results) for _ in range(4)]
    os.kill(next(iter(work.workers())), signal.SIGKILL)
    made += [next(results) for _ in range(12)]
    cluster.remove_node(node, allow_graceful=False)
    made += list(results)
    assert made == [[row * row] for row in rows], "none lost, none doubled"
    redone = Counter(work.begun()) - Counter(rows)
    n_lost = sum("is replaced" in record.message for record in caplog.records)
    assert 1 <= n_lost <= 3, "the worker, and what was on the node: one or two"
    assert sum(redone.values()) <= n_lost, "a batch for each worker that was lost"


SLOW_BOT = """
import os, time
def reply(text):
    with open("asked.txt", "a") as file:
        file.write(text + chr(10))
    time.sleep(0.02)
    return text.upper()
"""


def test_a_killed_driver_goes_on(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "slow_bot.py").write_text(SLOW_BOT)
    lines = [f"line {n}" for n in range(120)]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    words = [sys.executable, "-m", "palaver", "generate", "--system", "slow_bot:reply", "--batch-size", "5"]
    words += ["--contexts", "lines.txt", "--out", "out.jsonl", "--engine", str(engine)]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    out, asked = tmp_path / "out.jsonl", tmp_path / "asked.txt"
    killed = start()
    wait_until(lambda: killed.poll() is not None or (out.is_file() and out.read_bytes().count(b"\n") >= 20))
    killed.kill()
    told, _ = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, told.decode()
    again = start()
    told, _ = again.communicate(timeout=120)
    assert again.returncode == 0, told.decode()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["response"] for row in rows] == [line.upper() for line in lines]
    assert not list(tmp_path.glob("*.ahead"))
    n_asked = len(asked.read_text().splitlines())
    assert n_asked <= 120 + 2 * 5, "at most one batch a worker is redone"


def test_what_does_not_fit_into_the_cluster_is_told(engine: Engine) -> None:
    with pytest.raises(UserError, match=r"no worker fits .* each takes 1 CPUs and 1 GPUs"):
        list(map_shards(eval, ["1"], engine=Engine("ray", address=engine.address, gpus=1)))
    assert connect(engine.address).is_initialized()
