"""The shipped comparator on the development pairs, beside its baselines, for docs/reference/comparator.md.

    python experiments/comparator/scorecard.py --data DATA --out RESULTS

DATA holds the folder `rated`. The rater model is trained anew without each system. With --prepared and --main
(what collect.py brought together of the plan `systems` or `groups`) the joined comparator is measured on
unseen systems too. Also measured: pairs of ConvAI2 with one bot and with two, from which the comparator has
learnt nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import machine  # noqa: E402
from record import GAP, TIERS  # noqa: E402

from palaver.comparator.evaluation import evaluate_differences  # noqa: E402
from palaver.comparator.left_out import left_out_scores  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import represent, turn_encoder  # noqa: E402
from palaver.comparator.scorecard import UNSEEN_SYSTEMS, evaluate_comparator  # noqa: E402
from palaver.comparator.scorer import JoinedScorer, PalaverScorer, Scorer, load_scorer  # noqa: E402
from palaver.comparator.training_data import Pairs, RatedDialogues, load_arrays  # noqa: E402
from palaver.schema.run import plain, record_run  # noqa: E402


def unseen_systems(ratings: RatedDialogues, dev: RatedDialogues) -> Any:
    """(N,) the score of each development dialogue by rater models that have not seen its system."""
    x, dev_x = (represent(rated.dialogues, turn_encoder()) for rated in (ratings, dev))
    systems, dev_systems = ([row.system for row in rated.rows] for rated in (ratings, dev))
    return left_out_scores(ratings, x, systems, dev_x, dev_systems)


def joined_on_unseen_systems(
    given: argparse.Namespace, unseen: Any, dialogues: RatedDialogues, pairs: Pairs
) -> dict[str, Any] | None:
    """Both judges trained without the system of each dialogue, joined by the weights that ship."""
    if given.main is None:
        return None
    predictions = load_arrays(given.main / "predictions.npz")
    shipped, fast = load_scorer(), load_scorer("fast")
    if "unseen_systems" not in predictions or not isinstance(shipped, JoinedScorer):
        return None
    assert isinstance(fast, PalaverScorer)
    prepared = load_arrays(given.prepared)
    by_id = dict(zip(prepared["development.ids"].tolist(), predictions["unseen_systems"], strict=True))
    of_language = np.array([float(by_id[name]) for name in dialogues.ids])
    joined = shipped.weights.raters * fast.model.unit * unseen + shipped.weights.language * of_language
    groups = dialogues.codes("rater")[pairs.first]
    return asdict(evaluate_differences(joined[pairs.first] - joined[pairs.second], pairs.label, groups))


def on_convai2(scorer: Scorer, rated: RatedDialogues) -> dict[str, Any]:
    """Pairs of one bot and pairs of two; intervals resample the users of the first of each pair.

    Neither judge has seen any of these bots. Beside them: longer wins, and which bot it is, by the mean
    rating that other users gave it.
    """
    rater, system = rated.codes("rater"), rated.codes("system")
    length = np.array([sum(len(t.text) for t in d.turns if t.speaker != "user") for d in rated.dialogues])
    bot = np.array(
        [rated.values[(system == s) & (rater != r)].mean() for s, r in zip(system, rater, strict=True)]
    )
    rows = {scorer.name: scorer.score(rated.dialogues).score}
    if isinstance(scorer, JoinedScorer):
        rows |= scorer.scores_of_parts(rated.dialogues)
    rows |= {"longer wins": length.astype(float), "which bot it is": bot}
    a, b = np.triu_indices(len(rated), 1)
    wide = np.abs(rated.values[a] - rated.values[b]) > GAP
    of: dict[str, Any] = {}
    for name, mask in (("one bot", system[a] == system[b]), ("two bots", system[a] != system[b])):
        first, second = a[wide & mask], b[wide & mask]
        label = np.sign(rated.values[first] - rated.values[second]).astype(np.int8)
        of[name] = {
            row: asdict(evaluate_differences(values[first] - values[second], label, rater[first]))
            for row, values in rows.items()
            if not (row == "which bot it is" and name == "one bot")
        }
    n_bots = len({row.system for row in rated.rows})
    return {"n_dialogues": len(rated), "n_bots": n_bots, "gap": GAP, "pairs_of": of}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--prepared", type=Path, help="what language_model_data.py wrote")
    parser.add_argument("--main", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    folder = given.data / "rated"
    ratings = read_rated(folder / "reliable_eval.train.jsonl.gz")
    dialogues = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    convai2 = read_rated(folder / "convai2_rated.jsonl.gz")
    convai2 = convai2.take([i for i, row in enumerate(convai2.rows) if row.system is not None])
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dialogues.index, every_vote=True)
    scorer = load_scorer()
    unseen = unseen_systems(ratings, dialogues)
    card = evaluate_comparator(
        scorer,
        dialogues,
        pairs,
        tiers=TIERS,
        unseen={UNSEEN_SYSTEMS: unseen},
        seed=0,
    )
    tiers = " ".join(f"--tier {','.join(tier)}" for tier in TIERS)
    run = record_run(
        "experiments/comparator/scorecard.py",
        seed=0,
        data={"dialogues": dialogues.digest, "pairs": pairs.digest, "convai2": convai2.digest},
        packages=("palaver", "numpy", "scipy", "scikit-learn", "torch", "transformers"),
    )
    record = {
        "made_by": "python experiments/comparator/scorecard.py --data DATA "
        + ("--prepared PREPARED --main MAIN " if given.main is not None else "")
        + "--out docs/results/comparator-scorecard.json",
        "command": "palaver compare evaluate reliable_eval.dev_dialogues.jsonl.gz "
        f"--pairs reliable_eval.dev_pairs.jsonl.gz {tiers} --trained-on reliable_eval.train.jsonl.gz",
        "date": datetime.date.today().isoformat(),
        "seed": 0,
        "machine": machine(),
        "tiers": TIERS,
        **plain(card),
        "joined_on_unseen_systems": joined_on_unseen_systems(given, unseen, dialogues, pairs),
        "on_convai2": on_convai2(scorer, convai2),
        "run": plain(run),
    }
    given.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
