"""Fits the judge `response` on USR's overall ratings and measures it, for docs/results/judges.md.

    python experiments/judges/response.py --data ../shared/data --out docs/results/judges-response.json \\
        --weights src/palaver/judges/response_weights.json --thumbs thumbs.npz

The fit is a mean over widths, penalties and shares (palaver.judges.response), which were settled while
looking at these ratings. Measured are responses to contexts that were not seen, of a system that was not
seen, and of both; and, as quite another thing, whether people who talked with other bots liked a reply
(ConvAI 2017). Beside it stand length alone and one person against the others. The shipped weights are fitted
on all responses.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from features import USR_FEATURES, load_features
from scipy.stats import spearmanr

from corpora import read_thumbs, read_usr, thumbs_file, usr_file, write_record
from palaver import meta_evaluate, ratings_from_frame
from palaver.judges.response import KernelRidge, fit_kernel_ridge, text_digest
from palaver.judges.response_features import FEATURES, WITHOUT_KNOWLEDGE, FeatureRows
from palaver.schema.run import plain

FOLDS = 10
MODELS = {"with knowledge": FEATURES, "without knowledge": WITHOUT_KNOWLEDGE}


class Ratings:
    """The responses as arrays: what is seen of them, what people said, which context and system."""

    def __init__(
        self, rows: FeatureRows, target: np.ndarray, context: np.ndarray, system: np.ndarray
    ) -> None:
        self.rows, self.target, self.context, self.system = rows, target, context, system

    def take(self, kept: np.ndarray) -> Ratings:
        return Ratings(self.rows.take(kept), self.target[kept], self.context[kept], self.system[kept])

    def fit(self, names: tuple[str, ...]) -> KernelRidge:
        return fit_kernel_ridge(self.rows, self.target, names)


def parts_of(ratings: Ratings, how: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(seen, measured) of every part: contexts that are new, a system that is new, or both."""
    fold = np.random.default_rng(0).permutation(ratings.context.max() + 1)[ratings.context] % FOLDS
    if how == "context":
        for number in range(FOLDS):
            yield fold != number, fold == number
        return
    for name in np.unique(ratings.system):
        if how == "system":
            yield ratings.system != name, ratings.system == name
            continue
        for number in range(3):
            new = fold % 3 == number
            yield (ratings.system != name) & ~new, (ratings.system == name) & new


def predict_new(ratings: Ratings, names: tuple[str, ...], how: str) -> np.ndarray:
    """Each response by a model that has not seen its part."""
    predicted = np.empty(ratings.target.size)
    for seen, measured in parts_of(ratings, how):
        predicted[measured] = ratings.take(seen).fit(names).predict(ratings.rows.take(measured))
    return predicted


def by_system(predicted: np.ndarray, ratings: Ratings) -> dict[str, float]:
    return {
        str(name): float(spearmanr(predicted[inside], ratings.target[inside]).statistic)
        for name in np.unique(ratings.system)
        if (inside := ratings.system == name).any()
    }


def measure_thumbs(data: Path, features: Path, model: KernelRidge) -> dict[str, Any]:
    """Replies of other bots that people gave a thumb: rank correlation, and that of length."""
    rows, _ = load_features(features)
    thumbs = np.array(read_thumbs(data, "convai2017")[1][: len(rows)])
    length = rows.table[:, FEATURES.index("words")]
    return {
        "corpus": "ConvAI 2017",
        "n": len(rows),
        "up": float(thumbs.mean()),
        "spearman": float(spearmanr(model.predict(rows), thumbs).statistic),
        "spearman_of_length": float(spearmanr(length, thumbs).statistic),
    }


def read_ratings(data: Path) -> tuple[Ratings, pl.DataFrame, list[Any]]:
    people, responses = read_usr(data)
    overall = people.filter(pl.col("criterion") == "overall").with_columns(pl.col("value").cast(float))
    means = overall.group_by("item", "system").agg(pl.col("value").mean())
    by_output = {(item, system): value for item, system, value in means.iter_rows()}
    ratings = Ratings(
        load_features(USR_FEATURES)[0],
        np.array([by_output[r.id, r.system] for r in responses]),
        np.array([int(r.id.partition("-")[2]) for r in responses]),
        np.array([r.system for r in responses]),
    )
    return ratings, people, responses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--thumbs", type=Path, required=True, help="features of ConvAI 2017 (features.py)")
    options = parser.parse_args()
    ratings, people, responses = read_ratings(options.data)
    known = np.array([r.knowledge is not None for r in responses])
    judges = {}
    for title, how in (
        ("response", "context"), ("response, system not seen", "system"),
        ("response, neither system nor context seen", "both"),
    ):  # fmt: skip
        new = {name: predict_new(ratings, names, how) for name, names in MODELS.items()}
        judges[title] = np.where(known, new["with knowledge"], new["without knowledge"])
        if how == "context":
            judges["response, no knowledge given"] = new["without knowledge"]
    judges["length"] = ratings.rows.table[:, FEATURES.index("words")]
    rows = [
        {"item": r.id, "system": r.system, "rater": name, "criterion": name, "value": repr(float(v)),
         "kind": "model"}
        for name, values in judges.items()
        for r, v in zip(responses, values, strict=True)
    ]  # fmt: skip
    columns = ["item", "system", "rater", "criterion", "value", "kind"]
    table = ratings_from_frame(
        pl.concat([people.select(columns), pl.DataFrame(rows).select(columns)]), name="usr"
    )
    result = meta_evaluate(table, n_disagreements=0)
    kept = [
        r
        for r in result.rows
        if r.criterion == "overall"
        and r.measure in ("spearman", "pearson", "kendall", "accuracy", "soft accuracy")
    ]

    shipped = {name.replace(" ", "_"): ratings.fit(names).as_dict() for name, names in MODELS.items()}
    weights = {
        "what": "kernel ridge regression of USR's overall rating (1 to 5) on what is seen of a response",
        "data": "Mehri & Eskenazi (2020), USR: ratings of 360 Topical-Chat responses by three people each",
        "licence": "the ratings state none (research use); these are figures derived from them, no texts",
        **shipped,
        "trained_on": sorted({text_digest(response) for response in responses}),
    }
    options.weights.write_text(json.dumps(weights) + "\n", encoding="utf-8")
    command = (
        "python experiments/judges/response.py --data ../shared/data --out docs/results/judges-response.json "
        "--weights src/palaver/judges/response_weights.json --thumbs thumbs.npz"
    )
    features = ratings.rows.table
    content = {
        "rows": plain(kept),
        "ceiling": plain([row for row in result.ceiling if row.criterion == "overall"]),
        "within_system": {name: by_system(values, ratings) for name, values in judges.items()},
        "single_features": {
            name: float(spearmanr(features[:, k], ratings.target, nan_policy="omit").statistic)
            for k, name in enumerate(FEATURES)
        },
        "weights_bytes": options.weights.stat().st_size,
        "thumbs": measure_thumbs(options.data, options.thumbs, KernelRidge.of(shipped["with_knowledge"])),
        "predictions": [round(float(value), 4) for value in judges["response"]],
        "n": len(responses),
    }
    files = [usr_file(options.data), thumbs_file(options.data, "convai2017"), USR_FEATURES]
    write_record(options.out, command, files, content)


if __name__ == "__main__":
    main()
