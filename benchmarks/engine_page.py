"""The tables of docs/how-to/cluster.md, from docs/results/engine.json; a test compares the two.

python -m benchmarks.engine_page
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import fill_block

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/results/engine.json"
PAGE = ROOT / "docs/how-to/cluster.md"
JOB = 32_500_000
"""Responses of Xing & Fernández (2018): 2.5 million contexts, 13 characters."""
WORKERS = (2, 16, 128, 1024)


def speed_table(record: Mapping[str, Any]) -> Iterator[str]:
    speed = record["speed"]["results"]["overhead"]
    limit, wanted = speed["overhead_limit"], speed["speed_up_to_reach"]
    yield (
        f"| {speed['shards']} shards of {speed['shard_seconds']:.1f} s | seconds | until the first begins | "
        f"between shards (below {100 * limit:.0f} %) | as fast as the loop (two: {wanted:g} ×) |"
    )
    yield "|---|---|---|---|---|"
    seconds = speed["seconds"]
    yield f"| a plain loop | {seconds['plain loop']:.1f} | | | |"
    for name, value in speed["overhead"].items():
        start = speed["start_seconds"][name]
        waited = f"{100 * value:.2g} %{_missed(value < limit)}"
        times = ""
        if name in speed["speed_up"]:
            times = f"{speed['speed_up'][name]:.2f} ×{_missed(speed['speed_up'][name] >= wanted)}"
        yield f"| `--engine {name}` | {seconds[name]:.1f} | {start:.2g} s | {waited} | {times} |"


def _missed(is_reached: bool) -> str:
    return "" if is_reached else ", not reached"


def soak_table(record: Mapping[str, Any]) -> Iterator[str]:
    soak = record["soak"]["results"]
    yield "| what was done | on | what came out | done again |"
    yield "|---|---|---|---|"
    poison = soak["poison"]
    for engine, found in poison["engines"].items():
        is_right = found["is_the_one"] and found["sum_is_right"]
        told = f"{found['error_rows']} error row" + ("" if is_right else ", not the right one")
        yield f"| {poison['rows']:,} rows, one poisoned | `{engine}` | {told} | |"
    workers = soak["killed_workers"]
    for engine, found in workers["engines"].items():
        done = f"{workers['batches']} batches, {found['kills']} workers killed"
        yield f"| {done} | `{engine}` | {_whole(found)} | {found['batches_redone']} batches |"
    node = soak["killed_node"]
    done = f"{node['batches']} batches, one of {node['nodes']} nodes killed"
    yield f"| {done} | `ray` | {_whole(node)} | {node['batches_redone']} batches |"
    command = soak["killed_command"]
    done = f"`generate`, {command['contexts']:,} contexts, killed {command['kills']} times"
    most = command["one_batch_a_worker_and_kill_would_be"]
    again = f"{command['asked_again']} contexts (one batch a worker: {most})"
    yield f"| {done} | `processes:2` | {_whole(command)} | {again} |"


def _whole(found: Mapping[str, Any]) -> str:
    return "none lost, none doubled" if found["none_lost_none_doubled"] else "not whole"


def plan_table(record: Mapping[str, Any]) -> Iterator[str]:
    rates = record["speed"]["results"]["rates"]
    (engine, together), *_ = [
        (name, rate) for name, rate in rates["generated_per_second"].items() if name != "local"
    ]
    each = together / int(engine.partition(":")[2])
    yield "| workers, one core each | generating | counting the words | file |"
    yield "|---|---|---|---|"
    size = f"{JOB * rates['bytes_per_response'] / 1e9:.1f} GB"
    for workers in WORKERS:
        generating = JOB / (each * workers)
        counting = JOB / (rates["counted_per_second"] * workers)
        yield f"| {workers:,} | {_duration(generating)} | {_duration(counting)} | {size} |"


def _duration(seconds: float) -> str:
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86_400:.3g} days"


def rates_line(record: Mapping[str, Any]) -> Iterator[str]:
    speed = record["speed"]
    rates = speed["results"]["rates"]
    told = ", ".join(
        f"{rate:,.0f} a second with `{engine}`" for engine, rate in rates["generated_per_second"].items()
    )
    equal = "the same bytes"
    if not rates["files_of_both_engines_are_byte_equal"]:
        equal = "the same replies" if rates["replies_of_both_engines_are_equal"] else "other replies"
    yield f"`{rates['system']}` answered {told} ({rates['responses']:,} responses, {equal} from both);"
    yield f"words were counted at {rates['counted_per_second']:,} responses a second in one process."
    yield f"Machine: {speed['machine']}. Command: `{speed['command']}`."


TABLES = {
    "speed": ("speed", speed_table),
    "soak": ("soak", soak_table),
    "rates": ("speed", rates_line),
    "plan": ("speed", plan_table),
}
"""Name -> the part of the results file that it is made of, and how."""


def read_record() -> dict[str, Any]:
    """The results file; a part that nobody measured yet is not there."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}


def render(page: str, record: Mapping[str, Any]) -> str:
    """The page with every table as the record has it."""
    for name, (part, table) in TABLES.items():
        text = "\n".join(table(record)) if part in record else "Not measured yet: see `benchmarks/engine.py`."
        page = fill_block(page, name, "docs/results/engine.json", text)
    return page


def main() -> None:
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), read_record()), encoding="utf-8")


if __name__ == "__main__":
    main()
