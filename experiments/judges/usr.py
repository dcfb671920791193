"""Every judge there is beside people's ratings of USR's Topical-Chat responses, for docs/results/judges.md.

    python experiments/judges/usr.py --data ../shared/data --out docs/results/judges-usr.json

Metrics, length, cosines, the cross-encoder, SmolLM2's likelihood and the comparator need no ratings; the
judge `response` stands here with its predictions by cross-validation over contexts (response.py), never with
those of the shipped weights, which have seen these responses.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import polars as pl
from features import CROSS_ENCODER, USR_FEATURES, load_features

from corpora import read_usr, usr_file, write_record
from palaver import judge, meta_evaluate, ratings_from_frame
from palaver.judges.response_features import FEATURES
from palaver.metrics.metric import METRICS
from palaver.schema.run import plain

SHOWN = {
    "likelihood": "SmolLM2: log-likelihood in context",
    "gain_context": "SmolLM2: gain by the context",
    "gain_knowledge": "SmolLM2: gain by the knowledge",
    "cos_last": "MiniLM: cosine to the last turn",
    "cos_context": "MiniLM: cosine to the context",
    "cos_knowledge": "MiniLM: cosine to the knowledge",
}


def rows_of(name: str, values: np.ndarray, responses: list) -> list[dict[str, str]]:
    return [
        {"item": r.id, "system": r.system, "rater": name, "criterion": name, "value": repr(float(value)),
         "kind": "model"}
        for r, value in zip(responses, values, strict=True)
        if np.isfinite(value)
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--response", type=Path, default=Path("docs/results/judges-response.json"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--no-models", action="store_true", help="leave out the comparator and metrics that open a model"
    )
    parser.add_argument("--judged", type=Path, help="where the judges' ratings are kept between runs")
    options = parser.parse_args()
    people, responses = read_usr(options.data)
    if options.judged is not None and options.judged.is_file():
        judged = pl.read_parquet(options.judged)
    else:
        names = [
            name
            for name in METRICS
            if name != "empty" and not (options.no_models and METRICS.get(name).with_model is not None)
        ]
        if not options.no_models:
            names.append("comparator")
        judged = judge(responses, names, device="cpu").frame
        if options.judged is not None:
            judged.write_parquet(options.judged)
    columns = ["item", "system", "rater", "criterion", "value", "kind"]
    frames = [people.select(columns), judged.select(pl.col(columns).cast(pl.String))]
    seen, cross_encoder = load_features(USR_FEATURES)
    rows = [
        row
        for name, title in SHOWN.items()
        for row in rows_of(title, seen.table[:, FEATURES.index(name)], responses)
    ]
    for title, scores in zip(CROSS_ENCODER, cross_encoder.T, strict=True):
        rows += rows_of(title, scores, responses)
    fitted = json.loads(options.response.read_text())
    rows += rows_of("response (cross-validated)", np.array(fitted["predictions"]), responses)
    frames.append(pl.DataFrame(rows).select(columns))
    ratings = ratings_from_frame(pl.concat(frames), name="usr")
    result = meta_evaluate(ratings, responses=responses, n_permutations=1000, n_disagreements=0)
    command = "python experiments/judges/usr.py --data ../shared/data --out docs/results/judges-usr.json"
    if options.no_models:
        command += " --no-models"
    measures = ("spearman", "pearson", "kendall", "accuracy", "soft accuracy")
    kept = [  # of the other criteria the first figure alone
        row
        for row in result.rows
        if row.measure in (measures if row.criterion == "overall" else ("spearman",))
        and (row.criterion == "overall" or row.level == "outputs")
    ]
    best = result.best("overall")
    tests = [
        test
        for test in result.tests
        if test.criterion == "overall" and test.test == "permutation" and best.judge in (test.a, test.b)
    ]
    content = {
        "palaver": {
            "signature": result.run.signature,
            "judges": dict(judged.select("rater", "signature").unique().sort("rater").iter_rows()),
        },
        "rows": plain(kept),
        "ceiling": plain(result.ceiling),
        "tests": plain(tests),
        "joined": plain([row for row in result.joined if row.criterion == "overall"]),
        "notes": list(result.notes),
    }
    write_record(options.out, command, [usr_file(options.data)], content)


if __name__ == "__main__":
    main()
