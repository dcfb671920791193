"""The page on clusters shows what the benchmark wrote, and names what there is."""

from __future__ import annotations

import pytest
from benchmarks.engine import overhead
from benchmarks.engine_page import PAGE, read_record, render, speed_table
from benchmarks.engine_work import Shift

from palaver.engine.engine import SHAPES


def test_the_tables_are_those_of_the_results_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    record = read_record()
    assert render(page, record) == page, "python -m benchmarks.engine_page writes them anew"
    for part in record.values():
        assert {"command", "seed", "machine", "results"} <= set(part)


def test_the_page_says_what_engines_are_called() -> None:
    assert f"`--engine {SHAPES}`" in PAGE.read_text(encoding="utf-8")


def test_overhead_is_what_each_worker_waited_between_its_shards() -> None:
    late = [Shift(2, 5.0, 7.0), Shift(1, 1.5, 2.5), Shift(1, 0.0, 1.0), Shift(2, 7.25, 8.25)]
    assert overhead([late]) == pytest.approx((0.5 + 0.25) / 5)
    assert overhead([late, [Shift(1, 10.0, 15.0)]]) == pytest.approx(0.75 / 10)


def test_the_table_says_what_was_not_reached() -> None:
    names = ["local", "processes:2"]
    speed = {
        "shards": 3,
        "shard_seconds": 1.0,
        "seconds": {"plain loop": 3.0, "local": 3.1, "processes:2": 1.6},
        "start_seconds": dict.fromkeys(names, 0.5),
        "overhead": {"local": 0.0001, "processes:2": 0.06},
        "overhead_limit": 0.05,
        "speed_up": {"processes:2": 1.88},
        "speed_up_to_reach": 1.8,
    }
    *_, local, processes = speed_table({"speed": {"results": {"overhead": speed}}})
    assert local == "| `--engine local` | 3.1 | 0.5 s | 0.01 % |  |"
    assert processes == "| `--engine processes:2` | 1.6 | 0.5 s | 6 %, not reached | 1.88 × |"
