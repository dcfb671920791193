"""Distinguishability at the size of the paper: 13 characters, 700,000 short responses each, SVM included.

    python -m benchmarks.personality                    # under 120 s on 2 cores, below 4 GB
    python -m benchmarks.personality --scale 0.1        # a tenth of the responses, for a busy machine

Writes responses as `palaver generate` does (not timed), then reads and counts them in shards and runs the
whole protocol: traits of each character, 250 samples of 500, an SVM in 5 x 10 folds, for characters, shuffled
labels and pseudo-characters, then split by context, with an interval over resampled pools. `--words` adds the
bags of words, which the paper computes for transcripts only. Ends with 1 if a limit was missed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CHARACTERS = 13
RESPONSES = 700_000
SECONDS, GIGABYTES = 120, 4.0
WORDS = """
i you the it a to and that is what of do not me no in know this we have are my was your be on he well
just like so oh yeah right okay think good for at can get she with her his him but one all they out up if
about see want here there love really very never always maybe sorry please thanks great happy sad angry
afraid friend mother work money book idea plan house night wrong hate hope feel tell look come take time
people
"""


def write_responses(path: Path, n: int, seed: int = 0) -> None:
    """Rows of one system; each character has its own liking for each word."""
    rng = np.random.default_rng(seed)
    words = WORDS.split()
    base = 1 / (2 + np.arange(len(words)))
    banks = []
    for _ in range(CHARACTERS):
        p = base * rng.lognormal(0, 0.25, size=base.size)
        sizes = rng.integers(2, 11, size=20_000)
        drawn = rng.choice(words, size=(20_000, 10), p=p / p.sum())
        marks = rng.choice([".", "?", "!", "..."], size=20_000, p=[0.7, 0.15, 0.1, 0.05])
        banks.append([" ".join(words[:k]) + mark for words, k, mark in zip(drawn, sizes, marks, strict=True)])
    with path.open("w") as file:
        for begin in range(0, n, 1000):
            picks = rng.integers(20_000, size=(1000, CHARACTERS)).tolist()
            file.writelines(
                f'{{"id": "{begin + i}", "system": "bench", "speaker": "person {k}", "ocean": null, '
                f'"context": "Do you love me?", "response": "{banks[k][pick]}", "logprob": -9.5}}\n'
                for i, row in enumerate(picks[: n - begin])
                for k, pick in enumerate(row)
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="share of the 700,000 responses")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--words", action="store_true", help="also the bags of the 200 most frequent words")
    options = parser.parse_args()

    from palaver.personality.plan import Settings
    from palaver.personality.protocol import run_protocol
    from palaver.personality.recogniser import load_recogniser
    from palaver.personality.sources import read_pools

    n = round(RESPONSES * options.scale)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.jsonl"
        write_responses(path, n)
        print(
            f"{CHARACTERS} x {n:,} responses, {path.stat().st_size / 1e9:.2f} GB, {options.workers} workers"
        )
        begin = time.perf_counter()
        pools = read_pools(
            path,
            load_recogniser(),
            n_words=200 if options.words else 0,
            engine=f"processes:{options.workers}",
        )
        counted = time.perf_counter() - begin
        found = run_protocol(pools, Settings(engine=f"processes:{options.workers}"))
        total = time.perf_counter() - begin
    own = resource.getrusage(resource.RUSAGE_SELF)
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory = (own.ru_maxrss + (options.workers if child.ru_maxrss else 0) * child.ru_maxrss) / 2**20
    for condition in found.conditions:
        print(f"  {condition.name:<32} F1 {condition.f1:.3f}")
    print(f"  {found.verdict.text}")
    print(f"reading and counting   {counted:8.1f} s")
    print(f"samples and SVM        {total - counted:8.1f} s")
    print(f"in all                 {total:8.1f} s   below {SECONDS} s on 2 free cores")
    print(f"processor time         {own.ru_utime + child.ru_utime:8.1f} s   (half of it on 2 free cores)")
    print(f"memory, at most        {memory:8.2f} GB  below {GIGABYTES:g} GB")
    missed = [what for what, bad in (("time", total > SECONDS), ("memory", memory > GIGABYTES)) if bad]
    if missed and options.scale >= 1:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
