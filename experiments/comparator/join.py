"""Join the rater model and the language model of the shipped comparator: weights chosen on held-out raters.

    python experiments/comparator/join.py --data DATA --work WORK --main MAIN --out RESULTS

WORK is the folder that ship.py was given with --work, MAIN what collect.py wrote (predictions.npz,
results.json, adapter-0.safetensors). Both models have scored every training dialogue without having seen its
rater. The share of the language model is the largest that costs nothing with people: on the pairs of held-out
raters, plain and by trust, and on the development pairs it loses at most `LOSS` beside the rater model alone.
Writes the adapter and the weights beside the rater model in src/palaver/comparator/default.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from record import held_out  # noqa: E402

from palaver.comparator.evaluation import evaluate_pairs  # noqa: E402
from palaver.comparator.language_model import ADAPTER, LanguageModel  # noqa: E402
from palaver.comparator.method import log_odds_unit, rating_pairs  # noqa: E402
from palaver.comparator.model import RECORD, load_model  # noqa: E402
from palaver.comparator.rater_effects import effects, sittings  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import Representation  # noqa: E402
from palaver.comparator.scorer import load_scorer  # noqa: E402
from palaver.comparator.training_data import load_arrays  # noqa: E402
from palaver.judges.audit import read_audit_pairs  # noqa: E402
from palaver.readers.roles import is_silent, without_empty_turns  # noqa: E402

DEFAULT = ROOT / "src/palaver/comparator/default"
SHARES = np.round(np.linspace(0, 1, 11), 1)
LOSS = 0.002
"""Accuracy that may go for what the audit gains."""
PEOPLE = ("accuracy", "weighted_accuracy", "development_accuracy")


def audit_scores(adapter: Path) -> tuple[Any, Any]:
    """How much higher each of the two scores the better dialogue of the open pairs that have one."""
    pairs = [pair for pair in read_audit_pairs("open") if pair.better != "equal"]
    sides = [(p.a, p.b) if p.better == "a" else (p.b, p.a) for p in pairs]
    sides = [both for both in sides if not any(map(is_silent, both))]  # these are right by rule
    spoken = [without_empty_turns(dialogue) for both in sides for dialogue in both]
    fast = load_scorer("fast")
    of_raters, of_language = fast.score(spoken).score, LanguageModel.load(adapter).score(spoken)
    return of_raters[0::2] - of_raters[1::2], of_language[0::2] - of_language[1::2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--main", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true", help="write nothing beside the rater model")
    given = parser.parse_args()
    folder = given.data / "rated"
    ratings = read_rated(folder / "reliable_eval.train.jsonl.gz")
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    of_raters, weight = held_out(given.work, ratings.ids)
    predictions = load_arrays(given.main / "predictions.npz")
    of_language = predictions["held_out"].astype(float)
    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    taken = effects(ratings.values, sitting)
    spread = float(np.sqrt(np.mean((ratings.values - taken.level) ** 2)))
    own = rating_pairs(ratings.values, sitting, gap=0.5 * spread)
    assert own is not None
    model, _ = load_model(DEFAULT)
    dev_raters = model.heads_of(Representation(**load_arrays(given.work / "represented-dev.npz"))).mean(0)
    dev_language = predictions["development.0"].astype(float)
    of_audit = audit_scores(given.main / "adapter-0.safetensors")
    table: list[dict[str, Any]] = []
    groups = ratings.codes("rater")[own.first]
    for share in SHARES:
        parts = (1 - share) / of_raters.std(), share / of_language.std()
        joined = parts[0] * of_raters + parts[1] * of_language
        result = evaluate_pairs(joined, own, groups)
        right = np.sign(joined[own.first] - joined[own.second]) == own.label
        trusted = float(np.average(right, weights=weight[own.first]))
        of_pairs = parts[0] * of_audit[0] + parts[1] * of_audit[1]
        table.append(
            {
                "share": float(share),
                **asdict(result),
                "weighted_accuracy": trusted,
                "development_accuracy": evaluate_pairs(
                    parts[0] * dev_raters + parts[1] * dev_language, pairs
                ).accuracy,
                "audit_accuracy": float((of_pairs > 0).mean()),
            }
        )
    share = max(row["share"] for row in table if all(row[of] >= table[0][of] - LOSS for of in PEOPLE))
    parts = (1 - share) / of_raters.std(), share / of_language.std()
    dev_joined = parts[0] * dev_raters + parts[1] * dev_language
    difference = dev_joined[pairs.first] - dev_joined[pairs.second]
    unit = log_odds_unit(difference, pairs.label.astype(float))
    offset = -unit * float(np.mean(parts[0] * of_raters + parts[1] * of_language))
    weights = {"raters": unit * parts[0], "language": unit * parts[1], "offset": offset}
    trained = json.loads((given.main / "results.json").read_text(encoding="utf-8"))
    seeds = sorted(int(name.split(".")[1]) for name in predictions if name.startswith("development."))
    record = {
        "command": "python experiments/comparator/join.py --data DATA --work WORK --main MAIN "
        "--out docs/results/comparator-joined.json",
        "chosen_share": share,
        "shares": table,
        "weights": weights,
        "development": {
            "rater model": asdict(evaluate_pairs(dev_raters, pairs)),
            "language model": {
                f"seed {seed}": asdict(
                    evaluate_pairs(predictions[f"development.{seed}"].astype(float), pairs)
                )
                for seed in seeds
            },
            "joined": asdict(evaluate_pairs(dev_joined, pairs)),
        },
        "language_model": trained,
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for row in table:
        print(row["share"], *(round(row[k], 4) for k in (*PEOPLE, "audit_accuracy")))
    print(
        "share",
        share,
        {k: round(v["accuracy"], 4) for k, v in record["development"].items() if "accuracy" in v},
    )
    print([round(v["accuracy"], 4) for v in record["development"]["language model"].values()])
    if given.dry:
        return
    shutil.copyfile(given.main / "adapter-0.safetensors", DEFAULT / ADAPTER)
    about = json.loads((DEFAULT / RECORD).read_text(encoding="utf-8"))
    about["language_model"] = {**weights, "share": share}
    (DEFAULT / RECORD).write_text(json.dumps(about, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
