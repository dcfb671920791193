"""Keep what the models of `palaver demo` say and how the comparator scores it, for installs without them.

python experiments/demo/keep.py

It runs the demonstration (extra `models`) and writes `kept.jsonl` and `kept-scores.json`
beside its experiment file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import polars as pl

from palaver.cli.demo import copy_demo
from palaver.evaluation.run import run_experiment

FOLDER = Path(__file__).parent.parent.parent / "src/palaver/evaluation/demo"
FIELDS = ("id", "system", "context", "response")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        run_experiment(copy_demo(Path(name), "experiment.toml"), Path(name) / "results")
        lines = (Path(name) / "results/responses.jsonl").read_text(encoding="utf-8").splitlines()
        ratings = pl.read_parquet(Path(name) / "results/ratings.parquet")
    rows = [json.loads(line) for line in lines]
    kept = [{field: row[field] for field in FIELDS} for row in rows if row["system"] != "written"]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
    (FOLDER / "kept.jsonl").write_text(text, encoding="utf-8")
    scores: dict[str, dict[str, float]] = {}
    for rating in ratings.filter(pl.col("rater").str.starts_with("comparator")).iter_rows(named=True):
        scores.setdefault(rating["system"], {})[rating["item"]] = round(float(rating["value"]), 4)
    (FOLDER / "kept-scores.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
