"""Every speed claim of `palaver.statistics` beside its peers, and the start of the command line.

    make bench        (or: python -m benchmarks.statistics)

Each case first checks that both sides give the same answer. Ends with 1 if a target was missed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

if not __package__:  # run as a file: keep this folder off the path, where it would hide Python's `statistics`
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import statistics_agreement, statistics_ranking
from benchmarks.harness import Report, Table, best_of, machine


def run_start(report: Report) -> None:
    """`palaver --help` takes at most three times as long as importing NumPy."""

    def start(*words: str) -> float:
        return best_of(lambda: subprocess.run([sys.executable, *words], capture_output=True, check=True), 10)[
            0
        ]

    numpy = start("-c", "import numpy")
    ours = start(
        "-c", "import sys; sys.argv = ['palaver', '--help']; from palaver.cli.main import run; run()"
    )
    report("palaver --help beside python -c 'import numpy'", peer=numpy, ours=ours, target=1 / 3)


def main() -> None:
    report = Table()
    print(f"{machine()}, one thread")
    print(f"{'':<66} {'peer':>13} {'ours':>13}")
    statistics_agreement.run(report)
    statistics_ranking.run(report)
    run_start(report)
    if report.missed:
        sys.exit(f"missed: {'; '.join(report.missed)}")


if __name__ == "__main__":
    main()
