"""What an engine costs and gains, how fast the work of a large job goes, and what kills cost it.

    python -m benchmarks.engine --out docs/results/engine.json
    python -m benchmarks.engine --soak --out docs/results/engine.json
    python -m benchmarks.engine_page        # writes the tables of docs/how-to/cluster.md anew

The first wants an idle machine of two cores or more: shards of one second in a plain loop and on every
engine, and the rates that docs/how-to/cluster.md plans with. The second runs a million rows of which one is
poisoned, kills workers and a node of a Ray cluster, and kills the command itself at random moments. Each
writes its own part of the file. Limits: between two shards a worker waits less than 5 % of its work; two
processes are 1.8 times as fast as one; a killed command redoes at most a batch a worker.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.engine_work import POISONED, Diary, Shift, spin, square, timed_spin
from benchmarks.harness import best_of, machine
from palaver.engine import Engine, RowError, batches, map_rows, map_shards, n_cores

OVERHEAD, SPEED_UP = 0.05, 1.8
ROUNDS = 2
os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # Ray would leave a token in the home folder
ENGINES = ("local", "processes:2", "ray?workers=1", "ray?workers=2")
BOT = """
import os, time
def reply(text):
    with open("asked.txt", "a") as file:
        file.write(text + chr(10))
    time.sleep(0.002)
    return text.upper()
"""


# Speed ---------------------------------------------------------------------------------------------------


def measure_overhead(n_shards: int, shard_seconds: float) -> dict[str, Any]:
    """Shards of equal work in a plain loop, and on the engines.

    What an engine adds is measured inside: every shard says when it began and ended, and the overhead is the
    time that a worker waited between two shards, as a share of its work. Wall times of separate runs would
    differ by more than that on a machine that is shared. They stand beside it (the better of two rounds), and
    so does the time until the first shard began where nothing was running yet.
    """
    work = 1_000_000
    seconds, _ = best_of(lambda: spin(work), 3)
    shards = [round(work * shard_seconds / seconds)] * n_shards
    times = dict.fromkeys(["plain loop", *ENGINES], math.inf)
    shifts: dict[str, list[list[Shift]]] = {engine: [] for engine in ENGINES}
    starts = {engine: _start_seconds(engine) for engine in ENGINES}
    for _ in range(ROUNDS):
        times["plain loop"] = min(times["plain loop"], _seconds(lambda: [spin(shard) for shard in shards]))
        for engine in ENGINES:
            list(map_shards(spin, [1] * 4, engine=engine))  # Ray is started once a session, not once a map
            began = time.perf_counter()
            shifts[engine].append(list(map_shards(timed_spin, shards, engine=engine)))
            times[engine] = min(times[engine], time.perf_counter() - began)
    plain = times["plain loop"]
    return {
        "shards": n_shards,
        "rounds": ROUNDS,
        "shard_seconds": round(plain / n_shards, 3),
        "seconds": {name: round(value, 2) for name, value in times.items()},
        "start_seconds": {name: round(value, 3) for name, value in starts.items()},
        "overhead": {name: float(f"{overhead(rounds):.2g}") for name, rounds in shifts.items()},
        "overhead_limit": OVERHEAD,
        "speed_up": {name: round(plain / times[name], 2) for name in ENGINES if name.endswith("2")},
        "speed_up_to_reach": SPEED_UP,
    }


def overhead(rounds: Iterable[Iterable[Shift]]) -> float:
    """The time that workers waited between their shards, as a share of their work."""
    waited = worked = 0.0
    for shifts in rounds:
        workers: dict[int, list[Shift]] = {}
        for shift in shifts:
            workers.setdefault(shift.worker, []).append(shift)
            worked += shift.ended - shift.began
        for mine in workers.values():
            mine.sort(key=lambda shift: shift.began)
            waited += sum(after.began - before.ended for before, after in pairwise(mine))
    return waited / worked


def _start_seconds(engine: str) -> float:
    """Until the first shard began, with no Ray running and nothing loaded by a worker."""
    if engine.startswith("ray"):
        from palaver.engine.ray_workers import disconnect

        disconnect()
    called = time.monotonic()
    shifts = list(map_shards(timed_spin, [1] * 4, engine=engine))
    return min(shift.began for shift in shifts) - called


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure_rates(n_contexts: int) -> dict[str, Any]:
    """Responses a second of `palaver generate`, and counted by `palaver personality`, on the CPU."""
    from palaver.generation.bulk import generate_file
    from palaver.generation.contexts import Contexts, conditions_of
    from palaver.generation.systems_file import find_system
    from palaver.personality.recogniser import load_recogniser
    from palaver.personality.sources import read_pools

    rates: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = folder / "lines.txt"
        lines.write_text("".join(f"What do you think of number {n}?\n" for n in range(n_contexts)))
        spec = find_system("default-speaker")
        system = spec(device="cpu")
        who = {system.name: conditions_of(system, "all")}
        n_rows = n_contexts * len(who[system.name])
        for engine in ("local", f"processes:{n_cores()}"):
            out = folder / f"{engine.partition(':')[0]}.jsonl"
            seconds = _seconds(
                lambda out=out, engine=engine: generate_file(
                    [system], Contexts(lines), out, conditions=who, context="last", engine=engine,
                    openers={system.name: partial(spec, device="cpu")},
                )
            )  # fmt: skip
            rates[engine] = round(n_rows / seconds, 1)
        same = (folder / "local.jsonl").read_bytes() == (folder / "processes.jsonl").read_bytes()
        rows, others = (
            [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
            for name in ("local", "processes")
        )
        same_replies = [row["response"] for row in rows] == [row["response"] for row in others]
        size = (folder / "local.jsonl").stat().st_size
        many = folder / "many.jsonl"
        with many.open("w", encoding="utf-8") as file:
            for copy in range(max(1, 200_000 // len(rows))):
                for row in rows:
                    file.write(json.dumps({**row, "id": f"{row['id']}-{copy}"}) + "\n")
        n_many = sum(1 for _ in many.open("rb"))
        recogniser = load_recogniser()
        seconds = _seconds(lambda: read_pools(many, recogniser, n_words=0, engine="local"))
    return {
        "system": "default-speaker",
        "responses": n_rows,
        "generated_per_second": rates,
        "files_of_both_engines_are_byte_equal": same,
        "replies_of_both_engines_are_equal": same_replies,
        "bytes_per_response": round(size / n_rows, 1),
        "counted": n_many,
        "counted_per_second": round(n_many / seconds),
    }


# Soak ----------------------------------------------------------------------------------------------------


def soak_poison(n_rows: int, seed: int) -> dict[str, Any]:
    """One poisoned row gives one error row, on every engine."""
    bad = random.Random(seed).randrange(n_rows)
    results = {}
    for engine in ("local", "processes:2", "ray?workers=2"):
        errors, total = [], 0
        rows: Iterator[int] = (POISONED if n == bad else n for n in range(n_rows))
        for number, parts in map_rows(square, batches(rows, 1024), engine=engine):
            place = 1024 * number
            for some, made in parts:
                if isinstance(made, RowError):
                    errors.append(place)
                else:
                    total += sum(made)
                place += len(some)
        expected = sum(n * n for n in range(n_rows)) - bad * bad
        results[engine] = {
            "error_rows": len(errors),
            "is_the_one": errors == [bad],
            "sum_is_right": total == expected,
        }
    return {"rows": n_rows, "poisoned": 1, "engines": results}


def soak_kills(n_batches: int, n_kills: int, seed: int) -> dict[str, Any]:
    """Workers of a map are killed at random moments."""
    rng = random.Random(seed)
    results = {}
    for engine in ("processes:2", "ray?workers=2"):
        with tempfile.TemporaryDirectory() as folder:
            work = Diary(folder, 0.05)
            kill_at = sorted(rng.sample(range(2, n_batches - 5), n_kills))
            made = {}
            n_killed = 0
            for number, parts in map_rows(work, ([n] for n in range(n_batches)), engine=engine):
                made[number] = parts
                while n_killed < n_kills and len(made) >= kill_at[n_killed]:
                    n_killed += _kill_one(Path(folder))
            begun = Counter(int(path.name.partition("-")[0]) for path in Path(folder).iterdir())
        right = {n: [([n], [n * n])] for n in range(n_batches)}
        redone = sum(begun.values()) - n_batches
        results[engine] = {
            "kills": n_killed,
            "none_lost_none_doubled": made == right,
            "batches_redone": redone,
        }
    return {"batches": n_batches, "engines": results}


def _kill_one(folder: Path) -> int:
    """Kill the worker that began a batch last."""
    latest = max(folder.iterdir(), key=lambda path: int(path.name.split("-")[2]))
    try:
        os.kill(int(latest.name.split("-")[1]), signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def soak_nodes(n_batches: int) -> dict[str, Any]:
    """Of a cluster of three nodes one is killed in the middle."""
    from ray.cluster_utils import Cluster

    from palaver.engine.ray_workers import disconnect

    disconnect()
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **node})
    try:
        cluster.add_node(**node)
        victim = cluster.add_node(**node)
        with tempfile.TemporaryDirectory() as folder:
            work = Diary(folder, 0.2)
            made = {}
            for number, parts in map_rows(
                work, ([n] for n in range(n_batches)), engine=Engine("ray", 3, cluster.address)
            ):
                made[number] = parts
                if len(made) == n_batches // 2:
                    cluster.remove_node(victim, allow_graceful=False)
            n_begun = sum(1 for _ in Path(folder).iterdir())
        right = {n: [([n], [n * n])] for n in range(n_batches)}
        return {
            "nodes": 3,
            "killed": 1,
            "batches": n_batches,
            "none_lost_none_doubled": made == right,
            "batches_redone": n_begun - n_batches,
        }
    finally:
        disconnect()
        cluster.shutdown()


def soak_driver(n_contexts: int, n_kills: int, seed: int) -> dict[str, Any]:
    """`palaver generate` on two processes, killed after some replies, at random, and then let to its end."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bot.py").write_text(BOT)
        lines = [f"line {n}" for n in range(n_contexts)]
        (folder / "lines.txt").write_text("\n".join(lines) + "\n")
        words = [sys.executable, "-m", "palaver", "generate", "--system", "bot:reply", "--batch-size", "16"]
        words += ["--contexts", "lines.txt", "--out", "out.jsonl", "--engine", "processes:2"]
        asked = folder / "asked.txt"
        asked.touch()
        kills = 0
        for target in [*sorted(rng.sample(range(1, n_contexts * 9 // 10), n_kills)), None]:
            command = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
            while command.poll() is None and (
                target is None or len(asked.read_bytes().splitlines()) < target
            ):
                time.sleep(0.01)
            if command.poll() is not None:
                break
            command.kill()
            command.wait()
            kills += 1
        code = command.returncode
        rows = [json.loads(line)["response"] for line in (folder / "out.jsonl").read_text().splitlines()]
        n_asked = len(asked.read_text().splitlines())
    return {
        "kills": kills,
        "ended_with": code,
        "none_lost_none_doubled": rows == [line.upper() for line in lines],
        "contexts": n_contexts,
        "asked_again": n_asked - n_contexts,
        "one_batch_a_worker_and_kill_would_be": kills * 2 * 16,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shards", type=int, default=30)
    parser.add_argument("--shard-seconds", type=float, default=1.0)
    parser.add_argument(
        "--contexts", type=int, default=5000, help="that default-speaker answers as everybody"
    )
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.soak:
        result: dict[str, Any] = {
            "poison": soak_poison(asked.rows, asked.seed),
            "killed_workers": soak_kills(40 * asked.kills, asked.kills, asked.seed),
            "killed_node": soak_nodes(6 * asked.kills),
            "killed_command": soak_driver(200 * asked.kills, asked.kills, asked.seed),
        }
    else:
        result = {
            "overhead": measure_overhead(asked.shards, asked.shard_seconds),
            "rates": measure_rates(asked.contexts),
        }
    print(json.dumps(result, indent=1))
    part = "soak" if asked.soak else "speed"
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.engine", *sys.argv[1:]]),
        "seed": asked.seed,
        "machine": machine(),
        "results": result,
    }
    if asked.out is not None:
        kept = json.loads(asked.out.read_text()) if asked.out.is_file() else {}
        asked.out.write_text(json.dumps({**kept, part: record}, indent=1) + "\n")
    is_reached = _is_whole(result) if asked.soak else _is_light(result["overhead"])
    return 0 if is_reached else 1


def _is_light(speed: dict[str, Any]) -> bool:
    is_light = all(value < OVERHEAD for value in speed["overhead"].values())
    return is_light and bool(speed["speed_up"]["processes:2"] >= SPEED_UP)


def _is_whole(soak: dict[str, Any]) -> bool:
    workers, command = soak["killed_workers"]["engines"].values(), soak["killed_command"]
    poison = soak["poison"]["engines"].values()
    parts = [*workers, soak["killed_node"], command]
    return (
        all(part["none_lost_none_doubled"] for part in parts)
        and all(engine["is_the_one"] and engine["sum_is_right"] for engine in poison)
        and all(engine["batches_redone"] <= engine["kills"] for engine in workers)
        and command["asked_again"] <= command["one_batch_a_worker_and_kill_would_be"]
    )


if __name__ == "__main__":
    sys.exit(main())
