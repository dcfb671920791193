"""How fast an evaluation answers when nothing is left to do, and what kills cost it.

    python -m benchmarks.evaluate --out docs/results/evaluate.json
    python -m benchmarks.evaluate --size --out docs/results/evaluate-size.json
    python -m benchmarks.evaluate --soak --out docs/results/evaluate-soak.json
    python -m benchmarks.evaluate_page      # writes the sentences of docs/how-to/evaluate.md anew

The first makes 100,000 cells (two systems, one judge, 25,000 contexts) and runs the same command again: the
limit is one second. The second makes a folder of 1 GB and measures how long a browser takes to open its
report (the limit is two seconds), and how much memory writing it takes. The third kills runs at 20 moments
drawn at random and compares every byte of the outcome with that of a run nobody killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import machine

LIMIT = 1.0
OPEN_LIMIT = 2.0
OUTPUTS = ("responses.jsonl", "ratings.parquet", "results.json", "report.html")
BOTS = """
import os, time
from palaver.schema import Reply

class Bot:
    chunk = {chunk}

    def __init__(self, word):
        self.word = word

    def reply(self, requests):
        asked("reply", len(requests))
        time.sleep({pause})
        return [Reply(f"{{self.word}} {{request.dialogue.turns[-1].text}}") for request in requests]

def judge(response):
    asked("judge", 1)
    return float(len(response.response))

def asked(what, n):
    if "CALLS" in os.environ:
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"{{what}} {{n}}\\n")
"""
EXPERIMENT = """
seed = 0
[test]
contexts = "questions.txt"
[systems.one]
kind = "python"
function = "bots:Bot"
word = "one"
[systems.two]
kind = "python"
function = "bots:Bot"
word = "two"
[judges]
by = ["bots:judge"]
"""


def prepare(folder: Path, n_contexts: int, chunk: int = 64, pause: float = 0.0) -> None:
    (folder / "bots.py").write_text(BOTS.format(chunk=chunk, pause=pause))
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "questions.txt").write_text("".join(f"What about number {n}?\n" for n in range(n_contexts)))


def start(folder: Path, out: str, calls: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, **({"CALLS": str(folder / calls)} if calls else {})}
    words = [sys.executable, "-m", "palaver", "evaluate", "experiment.toml", "--out", out]
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def timed(folder: Path, out: str) -> float:
    began = time.perf_counter()
    assert start(folder, out).wait() == 0
    return time.perf_counter() - began


def processor_seconds() -> float:
    """Of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_speed(n_cells: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_contexts = n_cells // 4  # two systems, one judge: four cells a context
        prepare(folder, n_contexts)
        first = timed(folder, "out")
        before = processor_seconds()
        again = min(timed(folder, "out") for _ in range(3))
        processor = (processor_seconds() - before) / 3
        (folder / "experiment.toml").write_text(f'title = "Another title"\n{EXPERIMENT}')
        changed = timed(folder, "out")
        size = sum((folder / "out" / name).stat().st_size for name in OUTPUTS)
        page = (folder / "out" / "report.html").stat().st_size
    return {
        "cells": 4 * n_contexts,
        "first_seconds": round(first, 2),
        "nothing_to_do_seconds": round(again, 2),
        "nothing_to_do_processor_seconds": round(processor, 2),
        "limit_seconds": LIMIT,
        "all_cells_there_but_a_new_title_seconds": round(changed, 2),
        "bytes_of_outputs": size,
        "bytes_of_report": page,
    }


def measure_size(n_bytes: int) -> dict[str, Any]:
    """A folder of so many bytes: what its report takes to write, and to open."""
    line = "We talked about this for a long time and came to no end, which is the way of such talks. " * 11
    per_context = 14_000  # bytes in the folder, of two systems and one judge
    n_contexts = n_bytes // per_context
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, 0, chunk=256)
        with (folder / "questions.txt").open("w") as file:
            file.writelines(f"{line}What about number {n}?\n" for n in range(n_contexts))
        first = peak_of(folder, "out")
        (folder / "experiment.toml").write_text(f'title = "Another title"\n{EXPERIMENT}')
        again = peak_of(folder, "out")
        size = sum(path.stat().st_size for path in (folder / "out").iterdir())
        page = folder / "out" / "report.html"
        examples = page.read_text(encoding="utf-8").count('<article class="example"')
        opened = seconds_to_open(page)
        page_size = page.stat().st_size
    return {
        "contexts": n_contexts,
        "cells": 4 * n_contexts,
        "bytes_of_folder": size,
        "bytes_of_report": page_size,
        "examples": examples,
        "open_seconds": round(opened, 2),
        "limit_seconds": OPEN_LIMIT,
        "first_seconds": round(first.seconds, 1),
        "first_peak_megabytes": round(first.megabytes),
        "report_again_seconds": round(again.seconds, 1),
        "report_again_peak_megabytes": round(again.megabytes),
    }


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    seconds: float
    megabytes: float
    """The most memory that it held at once."""


def peak_of(folder: Path, out: str) -> Cost:
    began = time.perf_counter()
    process = start(folder, out)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0
    return Cost(time.perf_counter() - began, used.ru_maxrss / 1024)


def seconds_to_open(page: Path) -> float:
    """From the click until the page is loaded, laid out and its scripts have run; the middle of five."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(5):
            context = browser.new_context()
            tab = context.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_function("document.querySelector('output').textContent.includes('shown')")
            tab.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
            times.append(tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
            context.close()
        browser.close()
    return sorted(times)[2]


def soak(n_kills: int, seed: int) -> dict[str, Any]:
    """Kill runs at random moments. One that comes to its end is compared, and begins anew."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, n_contexts=400, chunk=16, pause=0.1)  # half of a run is replies
        assert start(folder, "whole", "whole.calls").wait() == 0
        whole_seconds = timed(folder, "warm")
        killed = folder / "killed"
        kills = rounds = n_equal = 0
        while kills < n_kills or (killed / "cells.db").exists():
            process = start(folder, "killed", "killed.calls")
            limit = rng.uniform(0.1, 0.9) * whole_seconds if kills < n_kills else None
            try:
                process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
                continue
            rounds += 1
            n_equal += all(
                (killed / name).read_bytes() == (folder / "whole" / name).read_bytes() for name in OUTPUTS
            )
            shutil.rmtree(killed)
        paid, once = _paid(folder / "killed.calls"), _paid(folder / "whole.calls")
    batches = {"reply": 16, "judge": 256}
    return {
        "kills": kills,
        "runs_that_ended": rounds,
        "of_these_byte_equal": n_equal,
        "files_compared": list(OUTPUTS),
        "cells_paid_twice": {what: paid[what] - rounds * once[what] for what in once},
        "one_batch_a_kill_would_be": {what: kills * size for what, size in batches.items()},
    }


def _paid(path: Path) -> dict[str, int]:
    paid: dict[str, int] = {}
    for line in path.read_text().splitlines():
        what, n = line.split()
        paid[what] = paid.get(what, 0) + int(n)
    return paid


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--size", action="store_true")
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.soak:
        result = soak(asked.kills, asked.seed)
        is_good = result["of_these_byte_equal"] == result["runs_that_ended"] and all(
            n <= result["one_batch_a_kill_would_be"][what] for what, n in result["cells_paid_twice"].items()
        )
    elif asked.size:
        result = measure_size(asked.bytes)
        is_good = result["open_seconds"] <= OPEN_LIMIT
    else:
        result = measure_speed(asked.cells)
        is_good = result["nothing_to_do_seconds"] <= LIMIT
    print(json.dumps(result, indent=1))
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.evaluate", *sys.argv[1:]]),
        "seed": asked.seed,
        "machine": machine(),
        "results": result,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
