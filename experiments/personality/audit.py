"""What the recognisers can and cannot do: docs/results/recogniser.json.

    python experiments/personality/audit.py --data DATA/personality --out docs/results/recogniser.json

1. Errors by trait on held-out writers (ten folds; every essay has a writer of its own): of the default
   recogniser against the scores that it imitates, and of both against what the writers said of themselves.
   Beside each stands what always saying the mean, or the more frequent label, reaches.
2. Texts written for this audit (`audit_texts.toml`): pairs that differ in one trait. Is the high one higher?
3. Orderly texts: does a category of orderly words help? It is added to the features and judged on held-out
   writers, everything else being chosen inside the training part.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from fit import FILE, essays, recogniser_scores  # type: ignore[import-not-found]
from self_report import FILE as LABELLED  # type: ignore[import-not-found]
from self_report import fit_self_report, labelled_essays

from palaver.corpora.personalities import TRAITS
from palaver.files import sha256_of
from palaver.personality.counts import Counter
from palaver.personality.features import Standard, feature_names
from palaver.personality.fit import choose_ridge, fit
from palaver.personality.lexicon import open_lexicon
from palaver.personality.recogniser import load_recogniser, score_texts

N_FOLDS = 10
ORDERLY = re.compile(
    r"\b(plan|plans|planned|planning|schedule[sd]?|lists?|organi[sz]\w+|tidy|neat|clean(ed|ing)?|prepare[sd]?|"
    r"preparing|ready|careful(ly)?|early|deadlines?|due|finish(ed|ing)?|complete[sd]?|goals?|duty|duties|"
    r"responsib\w+|disciplin\w+|focus(ed)?|check(ed|ing)?|calendar|agenda|routine|productive|efficient\w*|"
    r"details?|thorough\w*|practi[sc]e[sd]?|punctual|on time|bills?|budget|sorted|label(led|s)?|promises?)\b",
    re.IGNORECASE,
)
"""Words of order and duty, written down before their correlation with anything was looked at."""


def round_all(values: Any) -> list[float]:
    return [round(float(v), 4) for v in values]


def auc(score: np.ndarray, label: np.ndarray) -> float:
    """The chance that a "yes" has a higher score than a "no"."""
    rank = np.argsort(np.argsort(score)) + 1
    yes, no = label.sum(), (1 - label).sum()
    return float((rank[label == 1].sum() - yes * (yes + 1) / 2) / (yes * no))


def imitation(data: Path) -> dict[str, Any]:
    """The default recogniser against the scores it imitates, on writers it was not fitted on."""
    rows = essays(data / FILE)
    scores = recogniser_scores(rows)
    fitted = fit([row["text"] for row in rows], scores, Counter(open_lexicon()), name="default")
    shares = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    predicted = (fitted.predicted - scores.mean(axis=0)) / scores.std(axis=0)
    return {
        "writers": len(rows),
        "r": round_all(fitted.correlations),
        "mean_error": round_all(fitted.mean_errors),
        "mean_error_of_the_mean": round_all(np.abs(scores - scores.mean(axis=0)).mean(axis=0)),
        "error_in_deviations": round_all(np.abs(predicted - shares).mean(axis=0)),
        "sd_of_scores": round_all(scores.std(axis=0)),
        "slope": round_all(fitted.slopes),
    }


def self_reports(data: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both recognisers against the writers' own labels; and the trial of orderly words."""
    fitted, labels = fit_self_report(data)
    texts, _ = labelled_essays(data / LABELLED)
    default = score_texts(load_recogniser(), texts).values
    most = np.maximum(labels.mean(axis=0), 1 - labels.mean(axis=0))
    result: dict[str, Any] = {"writers": len(texts), "accuracy_of_the_more_frequent_label": round_all(most)}
    for name, scores in (("self-report", fitted.predicted), ("default", default)):
        high = scores > np.median(scores, axis=0)
        result[name] = {
            "accuracy": round_all((high == (labels == 1)).mean(axis=0)),
            "auc": round_all(auc(scores[:, t], labels[:, t]) for t in range(5)),
        }
    result["agreement_of_both"] = round_all(
        np.corrcoef(default[:, t], fitted.predicted[:, t])[0, 1] for t in range(5)
    )
    return result, orderly_words(texts, labels)


def orderly_words(texts: list[str], labels: np.ndarray) -> dict[str, Any]:
    """Conscientiousness with and without a category of orderly words, on held-out writers."""
    counter = Counter(open_lexicon())
    totals = counter.complete(counter.count(texts).toarray())
    words = totals[:, list(counter.columns).index("words")]
    rate = 100 * np.array([len(ORDERLY.findall(text)) for text in texts]) / words
    target = 3 + 2 * labels[:, [TRAITS.index("conscientiousness")]]
    folds = np.random.default_rng(0).permutation(len(texts)) % N_FOLDS
    predicted = {name: np.empty(len(texts)) for name in ("without", "with")}
    for fold in range(N_FOLDS):
        train, test = folds != fold, folds == fold
        standard = Standard.learn(totals[train], counter.columns)
        z = (rate - rate[train].mean()) / rate[train].std()
        for name, extra in (("without", np.empty((len(texts), 0))), ("with", z[:, None])):
            x = [np.hstack([standard.features(totals[rows]), extra[rows]]) for rows in (train, test)]
            weights, intercepts, _ = choose_ridge(x[0], target[train], np.random.default_rng(0))
            predicted[name][test] = (x[1] @ weights + intercepts)[:, 0]
    label = (target[:, 0] > 4).astype(float)
    return {
        "words_per_hundred": round(float(rate.mean()), 3),
        "essays_without_any": round(float((rate == 0).mean()), 3),
        "r_of_the_rate_with_the_label": round(float(np.corrcoef(rate, label)[0, 1]), 4),
        "auc_of_the_rate_alone": round(auc(rate, label), 4),
        "auc_without_the_category": round(auc(predicted["without"], label), 4),
        "auc_with_the_category": round(auc(predicted["with"], label), 4),
    }


def own_texts() -> list[dict[str, Any]]:
    """High less low of each pair, in standard deviations of the essays."""
    pairs = tomllib.loads(Path(__file__).with_name("audit_texts.toml").read_text(encoding="utf-8"))["pair"]
    rows = []
    for pair in pairs:
        row: dict[str, Any] = {"trait": pair["trait"], "begins": pair["high"][:40]}
        row["orderly_words"] = [len(ORDERLY.findall(pair[side])) for side in ("high", "low")]
        for name in ("default", "self-report"):
            high, low = score_texts(load_recogniser(name), [pair["high"], pair["low"]]).values
            t = TRAITS.index(pair["trait"])
            row[name] = {"high": round(float(high[t]), 3), "low": round(float(low[t]), 3)}
        rows.append(row)
    return rows


def strongest(trait: str, n: int = 8) -> dict[str, list[str]]:
    """The features with the largest weights of a trait in the default recogniser."""
    recogniser: Any = load_recogniser()
    weights = recogniser.weights[:, TRAITS.index(trait)]
    names = feature_names(recogniser.columns)
    order = np.argsort(weights)
    return {
        "raise": [f"{names[i]} {weights[i]:+.3f}" for i in order[::-1][:n]],
        "lower": [f"{names[i]} {weights[i]:+.3f}" for i in order[:n]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    labels, orderly = self_reports(given.data)
    content = {
        "command": "python experiments/personality/audit.py --data DATA/personality "
        "--out docs/results/recogniser.json",
        "date": datetime.now(UTC).date().isoformat(),
        "seed": 0,
        "folds": N_FOLDS,
        "machine": f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}",
        "data": {name: sha256_of(given.data / name) for name in (FILE, LABELLED)},
        "traits": TRAITS,
        "imitation": imitation(given.data),
        "self_reports": labels,
        "own_texts": own_texts(),
        "conscientiousness": {"orderly_words": orderly, "strongest_features": strongest("conscientiousness")},
    }
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
