"""Judges beside the chatters' own ratings of held-out dialogues (reliable_eval), for docs/results/judges.md.

    python experiments/judges/reliable.py --data ../shared/data --out docs/results/judges-reliable.json

Each dialogue was rated by the one person who had it, so there is no ceiling; people are compared within a
sitting, in which one person talked with several systems. The comparator was trained on other raters'
dialogues of this collection.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import polars as pl

from corpora import read_reliable, write_record
from palaver import judge, meta_evaluate, ratings_from_frame
from palaver.schema.run import plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--no-models", action="store_true")
    options = parser.parse_args()
    people, dialogues = read_reliable(options.data)
    columns = ["item", "context", "system", "rater", "criterion", "value", "kind"]
    rows = []
    for dialogue in dialogues:
        replies = [turn.text for turn in dialogue.turns if turn.speaker == "system"]
        own = [turn.text for turn in dialogue.turns if turn.speaker == "user"]
        words = " ".join(replies).lower().split()
        figures = {
            "turns": float(len(dialogue.turns)),
            "words of the system": math.log1p(len(words)),
            "different words of the system": float(len(set(words))),
            "words of the user": math.log1p(len(" ".join(own).split())),
        }
        for name, value in figures.items():
            rows.append(
                {"item": dialogue.id, "context": dialogue.labels["group"],
                 "system": dialogue.labels["system"],
                 "rater": name, "criterion": name, "value": repr(value), "kind": "metric"}
            )  # fmt: skip
    frames = [people.select(columns), pl.DataFrame(rows).select(columns)]
    signatures = {}
    if not options.no_models:
        judged = judge(dialogues, ["comparator"], device="cpu")
        frames.append(judged.frame.select(pl.col(columns).cast(pl.String)))
        signatures = {one.name: one.signature for one in judged.judges}
    result = meta_evaluate(ratings_from_frame(pl.concat(frames), name="reliable"), n_disagreements=0)
    kept = [  # of the other criteria the first figure alone
        row
        for row in result.rows
        if (row.criterion == "rating" and row.measure in ("spearman", "pearson", "kendall", "accuracy"))
        or (row.level, row.measure) == ("outputs", "spearman")
    ]
    content = {
        "palaver": {"signature": result.run.signature, "judges": signatures},
        "rows": plain(kept),
        "ceiling": plain(result.ceiling),
        "tests": plain([test for test in result.tests if test.criterion == "rating"]),
        "notes": list(result.notes),
    }
    command = (
        "python experiments/judges/reliable.py --data ../shared/data --out docs/results/judges-reliable.json"
    )
    if options.no_models:
        command += " --no-models"
    files = [options.data / "rated" / "reliable_eval.dev_dialogues.jsonl.gz"]
    write_record(options.out, command, files, content)


if __name__ == "__main__":
    main()
