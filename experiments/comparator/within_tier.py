"""Does a second model of the differences within a system help where systems are close? It does not clearly.

    python experiments/comparator/within_tier.py --data DATA --work WORK --out RESULTS

WORK is the folder that ship.py was given with --work. Most of what ratings teach is which bot it is. Here a
ridge regression learns what is left when the mean of each system is taken out, and is added to the rater
model with a share. The share is the best on held-out raters of the training ratings, where pairs within a
tier and all pairs count the same; the development pairs measure it, beside the rater model alone.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src")]

from record import TIERS, head_of, held_out, parser_of  # noqa: E402

from palaver.comparator.evaluation import evaluate_differences  # noqa: E402
from palaver.comparator.method import (  # noqa: E402
    MethodSettings,
    draw_folds,
    fit_model,
    held_out_scores,
    held_out_together,
    rating_pairs,
)
from palaver.comparator.model import load_model  # noqa: E402
from palaver.comparator.rater_effects import effects, sittings  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import Representation  # noqa: E402
from palaver.comparator.training_data import Pairs, RatedDialogues, load_arrays  # noqa: E402

Floats = NDArray[np.float64]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
RIDGES = (1000.0, 3000.0)


def in_one_tier(rated: RatedDialogues, pairs: Pairs) -> NDArray[np.bool_]:
    """(P,) whether both systems are of one tier."""
    tier = np.array(
        [next((i for i, names in enumerate(TIERS) if row.system in names), -1) for row in rated.rows]
    )
    return np.asarray((tier[pairs.first] >= 0) & (tier[pairs.first] == tier[pairs.second]))


def right(scores: Floats, pairs: Pairs) -> NDArray[np.bool_]:
    return np.asarray(np.sign(scores[pairs.first] - scores[pairs.second]) == pairs.label)


def gain_over_raters(
    before: NDArray[np.bool_], after: NDArray[np.bool_], raters: NDArray[np.int64]
) -> dict[str, float]:
    """How much more is right, with 95% by a bootstrap over raters."""
    gain = after.astype(float) - before
    names, codes = np.unique(raters, return_inverse=True)
    sums, counts = np.bincount(codes, gain), np.bincount(codes)
    drawn = np.random.default_rng(0).integers(len(names), size=(2000, len(names)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"gain": float(gain.mean()), "low": float(low), "high": float(high)}


def main() -> None:
    given = parser_of(__doc__).parse_args()
    folder = given.data / "rated"
    ratings = read_rated(folder / "reliable_eval.train.jsonl.gz")
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    x, dev_x = (
        Representation(**load_arrays(given.work / name))
        for name in ("represented.npz", "represented-dev.npz")
    )
    held, weights = held_out(given.work, ratings.ids)
    model, _ = load_model(given.work / "comparator")
    of_dev = model.heads_of(dev_x).mean(0)

    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    taken = effects(ratings.values, sitting)
    spread = float(np.sqrt(np.mean((ratings.values - taken.level) ** 2)))
    own = rating_pairs(ratings.values, sitting, gap=0.5 * spread)
    assert own is not None
    system = ratings.codes("system")
    mean = np.bincount(system, taken.target * weights) / np.bincount(system, weights)
    within = taken.target - mean[system]
    group, _ = held_out_together(ratings)
    fold = draw_folds(group, 5, 0)
    trust = weights[own.first]
    own_tier, dev_tier = in_one_tier(ratings, own), in_one_tier(dev, pairs)

    tried: list[dict[str, Any]] = []
    scores_of_dev: list[Floats] = []
    for ridge in RIDGES:
        settings = MethodSettings(heads=1, trees=0, ridge=ridge)
        more = held_out_scores(x, within, weights, group, fold, settings)
        more_dev = fit_model(x, within, weights, group, settings).raw(dev_x).mean(0)
        for share in SHARES:
            is_right = right(held / held.std() + share * more / more.std(), own)
            joined = of_dev / held.std() + share * more_dev / more.std()
            on_dev = right(joined, pairs)
            scores_of_dev.append(joined)
            tried.append(
                {
                    "ridge": ridge,
                    "share": share,
                    "held_out_raters": float(np.average(is_right, weights=trust)),
                    "held_out_raters_in_tier": float(np.average(is_right[own_tier], weights=trust[own_tier])),
                    "development": float(on_dev.mean()),
                    "development_in_tier": float(on_dev[dev_tier].mean()),
                }
            )
    chosen = max(
        range(len(tried)), key=lambda i: tried[i]["held_out_raters"] + tried[i]["held_out_raters_in_tier"]
    )
    raters = dev.codes("rater")[pairs.first]
    before, after = right(of_dev, pairs), right(scores_of_dev[chosen], pairs)
    difference = scores_of_dev[chosen][pairs.first] - scores_of_dev[chosen][pairs.second]
    record = {
        **head_of(__file__, "comparator-within-tier.json", seed=0),
        "n_held_out_pairs": len(own),
        "n_held_out_pairs_in_tier": int(own_tier.sum()),
        "tried": tried,
        "chosen": tried[chosen],
        "development": {
            "all pairs": asdict(evaluate_differences(difference, pairs.label, raters)),
            "within a tier": asdict(
                evaluate_differences(difference[dev_tier], pairs.label[dev_tier], raters[dev_tier])
            ),
        },
        "gain_on_development": {
            "all pairs": gain_over_raters(before, after, raters),
            "within a tier": gain_over_raters(before[dev_tier], after[dev_tier], raters[dev_tier]),
        },
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record["chosen"]), json.dumps(record["gain_on_development"]))


if __name__ == "__main__":
    main()
