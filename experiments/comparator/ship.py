"""Fit the comparator that comes with Palaver and write it to src/palaver/comparator/default.

    python experiments/comparator/ship.py --data DATA

Trained on the Reliable-Eval training ratings (3,564 dialogues, 443 raters; MIT licence); the development
pairs fix the unit of its scores. It holds weights only, none of the data.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "src")]

import plain_kernels  # noqa: E402

plain_kernels.use_where_needed()

from palaver.comparator.model import save_model  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.training import train_palaver  # noqa: E402
from palaver.comparator.training_data import TrainingData  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PALAVER_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "palaver" / "comparator" / "default")
    parser.add_argument("--work", type=Path, help="keeps what was encoded, for another time")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    folder = given.data / "rated"
    ratings = read_rated(folder / "reliable_eval.train.jsonl.gz")
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    with tempfile.TemporaryDirectory() as scratch:
        work = given.work or Path(scratch)
        data = TrainingData.gather(ratings, dev=dev, pairs=pairs)
        fitted = train_palaver(data, work, device=given.device, say=print).fitted
    save_model(
        fitted.model,
        given.out,
        data={
            "name": "Reliable-Eval, training ratings",
            "licence": "MIT",
            "digest": ratings.digest,
            "trained_on": ratings.dialogue_digests,
        },
        **fitted.describe(),
    )
    print(fitted.describe())
    print(sum(p.stat().st_size for p in given.out.iterdir()), "bytes in", given.out)


if __name__ == "__main__":
    main()
