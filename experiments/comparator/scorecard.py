"""The shipped comparator on the development pairs, beside its baselines, for docs/reference/comparator.md.

    python experiments/comparator/scorecard.py --data DATA --work WORK --out RESULTS

DATA holds the folder `rated`; WORK is the folder that ship.py was given with --work: the rater model is
trained anew without each system. Where a language model is shipped, its scores are those that collect.py
brought together: --prepared and --main. Where --main holds `unseen_systems` (the plan `systems`), the
joined comparator is measured on unseen systems too. Also measured: pairs of ConvAI2 with one bot, from which
the comparator has learnt nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import machine  # noqa: E402
from record import TIERS  # noqa: E402

from palaver.comparator.evaluation import evaluate_differences  # noqa: E402
from palaver.comparator.left_out import left_out_scores  # noqa: E402
from palaver.comparator.method import rating_pairs  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import Representation, represent  # noqa: E402
from palaver.comparator.scorecard import UNSEEN_SYSTEMS, evaluate_comparator  # noqa: E402
from palaver.comparator.scorer import JoinedScorer, PalaverScorer, Scorer, Scores, load_scorer  # noqa: E402
from palaver.comparator.training_data import Pairs, RatedDialogues, load_arrays  # noqa: E402
from palaver.schema import Dialogue  # noqa: E402
from palaver.schema.run import plain, record_run  # noqa: E402

GAP = 1.5
"""Ratings of ConvAI2, 1 to 5, that lie further apart than this make a pair."""


class KnownScorer(Scorer):
    """The comparator's scores by dialogue, as they were computed from kept numbers."""

    def __init__(self, name: str, signature: str, by_id: dict[str, float]) -> None:
        self.name, self.by_id = name, by_id
        self.__dict__["signature"] = signature  # that of the comparator, not of this

    def _score(self, dialogues: Sequence[Dialogue], progress: Any) -> Scores:
        score = np.array([self.by_id[dialogue.id] for dialogue in dialogues])
        return Scores(score, score, score)

    def _scores_without(self, dialogues: Any, places: Any) -> Any:
        raise NotImplementedError


class KnownLanguage:
    """The language model's scores, as they were computed where it was trained."""

    def __init__(self, by_id: dict[str, float]) -> None:
        self.by_id = by_id

    def score(self, dialogues: Sequence[Dialogue], **options: Any) -> Any:
        return np.array([self.by_id[dialogue.id] for dialogue in dialogues])


def open_known(given: argparse.Namespace, dev: RatedDialogues, convai2: RatedDialogues) -> Scorer:
    """The shipped comparator, with the scores of the development dialogues from what ship.py kept."""
    shipped, fast = load_scorer(), load_scorer("fast")
    assert isinstance(fast, PalaverScorer)
    x = Representation(**load_arrays(given.work / "represented-dev.npz"))
    by_id = dict(zip(dev.ids, fast.model.heads_of(x).mean(0), strict=True))
    kept = given.work / "represented-convai2.npz"
    if not kept.is_file():
        x = represent(convai2.dialogues, fast.encode)
        np.savez(kept, features=x.features, vectors=x.vectors)
    x = Representation(**load_arrays(kept))
    by_id |= dict(zip(convai2.ids, fast.model.heads_of(x).mean(0), strict=True))
    raters = KnownScorer(shipped.name, shipped.signature, by_id)
    if not isinstance(shipped, JoinedScorer):
        return raters
    predictions = load_arrays(given.main / "predictions.npz")
    prepared = load_arrays(given.prepared)
    of_language = {
        str(name): float(score)
        for source in ("development", "convai2")
        for name, score in zip(prepared[f"{source}.ids"], predictions[f"{source}.0"], strict=True)
    }
    joined = JoinedScorer(raters, lambda: KnownLanguage(of_language), shipped.weights)  # type: ignore[arg-type, return-value]
    joined.__dict__["signature"] = shipped.signature
    return joined


def unseen_systems(given: argparse.Namespace, ratings: RatedDialogues, dev: RatedDialogues) -> Any:
    """(N,) the score of each development dialogue by rater models that have not seen its system."""
    kept = given.work / "unseen-systems.npz"
    if not kept.is_file():
        x, dev_x = (
            Representation(**load_arrays(given.work / name))
            for name in ("represented.npz", "represented-dev.npz")
        )
        systems, dev_systems = ([row.system for row in rated.rows] for rated in (ratings, dev))
        np.savez(kept, raw=left_out_scores(ratings, x, systems, dev_x, dev_systems))
    return load_arrays(kept)["raw"]


def joined_on_unseen_systems(
    given: argparse.Namespace, unseen: Any, dialogues: RatedDialogues, pairs: Pairs
) -> dict[str, Any] | None:
    """Both judges trained without the system of each dialogue, joined by the weights that ship."""
    predictions = {} if given.main is None else load_arrays(given.main / "predictions.npz")
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


def within_bots(scorer: Scorer, rated: RatedDialogues) -> dict[str, Any]:
    """Pairs of ConvAI2 with the same bot; intervals resample the users of the first of each pair."""
    pairs = rating_pairs(rated.values, rated.codes("system"), gap=GAP)
    assert pairs is not None
    scores = scorer.score(rated.dialogues).score
    length = np.array([sum(len(t.text) for t in d.turns if t.speaker != "user") for d in rated.dialogues])
    groups = rated.codes("rater")[pairs.first]
    rows = {scorer.name: scores, "longer wins": length.astype(float)}
    return {
        "n_dialogues": len(rated),
        "n_bots": len({row.system for row in rated.rows}),
        "gap": GAP,
        "results": {
            name: asdict(
                evaluate_differences(values[pairs.first] - values[pairs.second], pairs.label, groups)
            )
            for name, values in rows.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
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
    scorer = open_known(given, dialogues, convai2)
    unseen = unseen_systems(given, ratings, dialogues)
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
        "made_by": "python experiments/comparator/scorecard.py --data DATA --work WORK "
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
        "within_bots_of_convai2": within_bots(scorer, convai2),
        "run": plain(run),
    }
    given.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
