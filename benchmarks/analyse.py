"""`palaver study analyse` on millions of six-point ratings: seconds and peak memory of a fresh process.

    python -m benchmarks.analyse                             # 1 and 10 million ratings, a few minutes
    python -m benchmarks.analyse --millions 1 --out here.json

Five systems, three raters an item out of 2,000. In the shape "outputs" each output has three raters of its
own; in the shape "screens" three raters judge all five outputs of an item, which makes 20 million comparisons
out of 10 million ratings. Report, results and ratings are written. Ends with 1 if a limit was missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.harness import machine, run_palaver

SEED = 0
N_SYSTEMS, N_RATERS, RATERS_PER_ITEM = 5, 2000, 3
SHAPES = ("outputs", "screens")
MOST_SECONDS, MOST_MB = 20, 2048
"""For 10 million ratings in the shape "outputs", on two cores."""
RESULTS = Path(__file__).parent.parent / "docs/results/analyse.json"


def make_ratings(n_ratings: int, shape: str) -> pl.DataFrame:
    """Ratings from 1 to 6 of items of different level by systems of different quality, item by item."""
    rng = np.random.default_rng(SEED)
    n_items = -(-n_ratings // (N_SYSTEMS * RATERS_PER_ITEM))
    level = rng.normal(3.2, 0.8, size=(n_items, 1, 1))
    quality = np.linspace(0, 0.8, N_SYSTEMS)[:, None]
    latent = level + quality + rng.normal(size=(n_items, N_SYSTEMS, RATERS_PER_ITEM))
    value = np.clip(np.rint(latent), 1, 6).astype(np.int8)
    groups = (n_items, 1, 1) if shape == "screens" else (n_items, N_SYSTEMS, 1)
    first_rater = rng.integers(0, N_RATERS, size=groups)
    rater = np.broadcast_to((first_rater + np.array([0, 300, 1000])) % N_RATERS, value.shape)
    item, system, _ = np.indices(value.shape, dtype=np.int32)
    return (
        pl.DataFrame({"item": item.ravel(), "system": system.ravel(), "rater": rater.ravel()})
        .select(pl.format(f"{name} {{}}", name).alias(name) for name in ("item", "system", "rater"))
        .with_columns(pl.lit("quality").alias("criterion"), pl.Series("value", value.ravel()))
        .head(n_ratings)
    )


@dataclass(frozen=True)
class Case:
    n_ratings: int
    shape: str
    seconds: float
    processor_seconds: float
    """Of all cores together: what it costs on a machine that is busy with other work."""
    peak_mb: int
    written_mb: float

    @property
    def missed(self) -> bool:
        limited = self.n_ratings == 10**7 and self.shape == "outputs"
        return limited and (self.seconds > MOST_SECONDS or self.peak_mb > MOST_MB)


def measure(n_ratings: int, shape: str) -> Case:
    """Analyse such ratings in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ratings.parquet")
        make_ratings(n_ratings, shape).write_parquet(path)
        words = ["study", "analyse", str(path), "--out", str(Path(folder, "results")), "--seed", str(SEED)]
        seconds, processor_seconds, megabytes = run_palaver(words)
        written = sum(file.stat().st_size for file in Path(folder, "results").iterdir())
    case = Case(
        n_ratings=n_ratings,
        shape=shape,
        seconds=round(seconds, 1),
        processor_seconds=round(processor_seconds, 1),
        peak_mb=round(megabytes),
        written_mb=round(written / 2**20, 1),
    )
    times = f"{case.seconds:7.1f} s, processors {case.processor_seconds:7.1f} s"
    print(f"{n_ratings:>12,} ratings, {shape:<8} {times}, {case.peak_mb:7,} MB", flush=True)
    return case


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    print(machine())
    cases = [measure(10**6 * millions, shape) for millions in given.millions for shape in given.shapes]
    record = {
        "command": "palaver study analyse ratings.parquet --out results --seed 0",
        "made_by": "python -m benchmarks.analyse",
        "date": time.strftime("%Y-%m-%d"),
        "seed": SEED,
        "systems": N_SYSTEMS,
        "raters": N_RATERS,
        "raters_per_item": RATERS_PER_ITEM,
        "machine": machine(),
        "versions": {name: version(name) for name in ("palaver", "numpy", "scipy", "numba", "polars")},
        "cases": [asdict(case) for case in cases],
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    missed = [case for case in cases if case.missed]
    if missed:
        sys.exit(f"missed {MOST_SECONDS} s or {MOST_MB} MB: {missed}")


if __name__ == "__main__":
    main()
