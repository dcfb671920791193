"""Fits the judge `response` on USR's overall ratings and measures it, for docs/results/judges.md.

    python experiments/judges/features.py --data ../shared/data --out features.npz
    python experiments/judges/response.py --data ../shared/data --features features.npz \\
        --out docs/results/judges-response.json --weights src/palaver/judges/response_weights.json

Cross-validation is over contexts (all six responses to one are held out together), the penalty is chosen
inside each training part; leaving one system out at a time shows what to expect of systems it has not seen.
Beside it stand length alone and one person against the others. The shipped weights are fitted on all
responses.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from corpora import read_usr, usr_file, write_record
from palaver import meta_evaluate, ratings_from_frame
from palaver.judges.response import fit_kernel_ridge, text_digest
from palaver.judges.response_features import FEATURES, WITHOUT_KNOWLEDGE
from palaver.schema.run import plain

WIDTHS, PENALTIES = (0.007, 0.015, 0.03), (0.3, 1.0, 3.0)
FOLDS = 10


def choose(
    table: np.ndarray, target: np.ndarray, context: np.ndarray, names: tuple[str, ...]
) -> dict[str, float]:
    """Width and penalty by cross-validation over the contexts at hand."""
    fold = np.unique(context, return_inverse=True)[1] % 5
    errors = {}
    for width, penalty in product(WIDTHS, PENALTIES):
        predicted = np.empty(target.size)
        for number in range(5):
            inside = fold != number
            fit = fit_kernel_ridge(table[inside], target[inside], names, width=width, penalty=penalty)
            predicted[~inside] = fit.predict(table[~inside])
        errors[width, penalty] = ((predicted - target) ** 2).mean()
    width, penalty = min(errors, key=lambda pair: errors[pair])
    return {"width": width, "penalty": penalty}


def predict_held_out(
    table: np.ndarray, target: np.ndarray, context: np.ndarray, group: np.ndarray, names: tuple[str, ...]
) -> np.ndarray:
    """Each group's responses by a model that has seen none of them, nor was chosen by them."""
    predicted = np.empty(target.size)
    for number in np.unique(group):
        inside = group != number
        best = choose(table[inside], target[inside], context[inside], names)
        fit = fit_kernel_ridge(table[inside], target[inside], names, **best)
        predicted[~inside] = fit.predict(table[~inside])
    return predicted


def by_system(predicted: np.ndarray, target: np.ndarray, system: np.ndarray) -> dict[str, float]:
    return {
        str(name): float(spearmanr(predicted[system == name], target[system == name]).statistic)
        for name in np.unique(system)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    options = parser.parse_args()
    people, responses = read_usr(options.data)
    held = np.load(options.features)
    if tuple(held["features"]) != FEATURES:
        raise SystemExit("the features are not those of this version: run features.py again")
    table = held["table"]
    overall = people.filter(pl.col("criterion") == "overall").with_columns(pl.col("value").cast(float))
    means = overall.group_by("item", "system").agg(pl.col("value").mean())
    by_output = {(item, system): value for item, system, value in means.iter_rows()}
    target = np.array([by_output[r.id, r.system] for r in responses])
    context = np.array([int(r.id.partition("-")[2]) for r in responses])
    system = np.array([r.system for r in responses])
    fold = np.random.default_rng(0).permutation(context.max() + 1)[context] % FOLDS
    known = np.array([r.knowledge is not None for r in responses])

    models = {"with knowledge": FEATURES, "without knowledge": WITHOUT_KNOWLEDGE}
    held_out = {name: predict_held_out(table, target, context, fold, names) for name, names in models.items()}
    unseen = {
        name: predict_held_out(table, target, context, np.unique(system, return_inverse=True)[1], names)
        for name, names in models.items()
    }
    predictions = np.where(known, held_out["with knowledge"], held_out["without knowledge"])
    new_system = np.where(known, unseen["with knowledge"], unseen["without knowledge"])
    judges = {
        "response": predictions,
        "response, system not seen": new_system,
        "response, no knowledge given": held_out["without knowledge"],
        "length": table[:, FEATURES.index("words")],
    }
    rows = [
        {"item": r.id, "system": r.system, "rater": name, "criterion": name, "value": repr(float(v)),
         "kind": "model"}
        for name, values in judges.items()
        for r, v in zip(responses, values, strict=True)
    ]  # fmt: skip
    columns = ["item", "system", "rater", "criterion", "value", "kind"]
    ratings = ratings_from_frame(
        pl.concat([people.select(columns), pl.DataFrame(rows).select(columns)]), name="usr"
    )
    result = meta_evaluate(ratings, n_disagreements=0)
    kept = [
        r for r in result.rows if r.measure in ("spearman", "pearson", "kendall", "accuracy", "soft accuracy")
    ]

    shipped = {}
    for name, names in models.items():
        best = choose(table, target, context, names)
        fit = fit_kernel_ridge(table, target, names, **best)
        shipped[name.replace(" ", "_")] = {"penalty": best["penalty"], **fit.as_dict()}
    weights = {
        "what": "kernel ridge regression of USR's overall rating (1 to 5) on the features of a response",
        "data": "Mehri & Eskenazi (2020), USR: ratings of 360 Topical-Chat responses by three people each",
        "licence": "the ratings state none (research use); these are figures derived from them, no texts",
        **shipped,
        "trained_on": sorted({text_digest(response) for response in responses}),
    }
    options.weights.write_text(json.dumps(weights) + "\n", encoding="utf-8")
    command = (
        "python experiments/judges/response.py --data ../shared/data --features features.npz "
        "--out docs/results/judges-response.json --weights src/palaver/judges/response_weights.json"
    )
    content = {
        "rows": plain(kept),
        "ceiling": plain(result.ceiling),
        "within_system": {name: by_system(values, target, system) for name, values in judges.items()},
        "single_features": {
            name: float(spearmanr(table[:, k], target, nan_policy="omit").statistic)
            for k, name in enumerate(FEATURES)
        },
        "chosen": {name: {k: m[k] for k in ("width", "penalty")} for name, m in shipped.items()},
        "predictions": [round(float(value), 4) for value in predictions],
        "n": len(responses),
    }
    write_record(options.out, command, [usr_file(options.data)], content)


if __name__ == "__main__":
    main()
