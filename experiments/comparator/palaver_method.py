"""The method `palaver` on real ratings, what each of its parts is worth, and how well it cleans.

    python experiments/comparator/palaver_method.py --data DATA --out OUT --ablations --results RESULTS
    python experiments/comparator/palaver_method.py --data DATA --out OUT --fine-tune

DATA holds the folder `rated`. Every choice of the method was made on held-out raters of the training ratings;
the development pairs fix one number, the unit of the scores. The mark of quality control (`passed_qc`) is
read here only, to measure cleaning. With --fine-tune the encoder is also trained on comparisons within a
sitting, held out in the same folds, and joined with the method (needs a GPU to be quick).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src"), str(HERE.parents[1])]

import plain_kernels  # noqa: E402

plain_kernels.use_where_needed()

from benchmarks.harness import machine  # noqa: E402

from palaver.comparator import method  # noqa: E402
from palaver.comparator.cleaning import clean  # noqa: E402
from palaver.comparator.coherence import FLOW  # noqa: E402
from palaver.comparator.evaluation import calibration, evaluate_pairs  # noqa: E402
from palaver.comparator.method import Fit, MethodSettings, fit, log_odds_unit, rating_pairs  # noqa: E402
from palaver.comparator.rater_effects import effects, reliability, sittings  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import Representation  # noqa: E402
from palaver.comparator.surface import FEATURES  # noqa: E402
from palaver.comparator.training import TrainingResult, train_palaver  # noqa: E402
from palaver.comparator.training_data import RatedDialogues, TrainingData  # noqa: E402


def auc(score: Any, positive: Any) -> float:
    """The chance that a positive scores higher than a negative (ties half)."""
    from scipy.stats import rankdata

    ranks, n = rankdata(score), int(np.sum(positive))
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(ranks) - n)))


def without(
    x: Representation, *, surface: bool = True, flow: bool = True, vectors: bool = True
) -> Representation:
    """The dialogues with a part of their numbers made constant, which the method then ignores."""
    features = x.features.copy()
    if not surface:
        features[:, : len(FEATURES)] = 0
    if not flow:
        features[:, -len(FLOW) :] = 0
    return Representation(features, x.vectors if vectors else np.zeros_like(x.vectors))


def ablations(
    trained: TrainingResult, ratings: RatedDialogues, pairs: Any, settings: MethodSettings
) -> list[dict[str, Any]]:
    """Each part left out, with few heads: accuracy on held-out ratings and on development pairs."""
    assert trained.pairs_x is not None
    quick = dataclasses.replace(settings, heads=4)
    unknown = RatedDialogues(
        tuple(dataclasses.replace(row, rater=None, group=None) for row in ratings.rows), ratings.scale
    )
    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    judge = rating_pairs(ratings.values, sitting, gap=10.0)
    assert judge is not None
    parts: list[tuple[str, RatedDialogues, dict[str, bool], MethodSettings]] = [
        ("all", ratings, {}, quick),
        ("without surface features", ratings, {"surface": False}, quick),
        ("without flow features", ratings, {"flow": False}, quick),
        ("without vectors", ratings, {"vectors": False}, quick),
        ("without trees", ratings, {}, dataclasses.replace(quick, trees=0)),
        ("raters unknown", unknown, {}, quick),
    ]
    rows = []
    for name, rated, kept, chosen in parts:
        x, dev_x = without(trained.x, **kept), without(trained.pairs_x, **kept)
        got = fit(rated, x, pairs=pairs, pairs_x=dev_x, settings=chosen)
        rows.append(_line(name, evaluate_pairs(got.held_out, judge).accuracy, got.on_pairs))
    x = trained.x
    group, _ = method.held_out_together(ratings)
    fold = method.draw_folds(group, settings.folds, settings.seed)
    target, even = effects(ratings.values, sitting).target, np.ones(len(ratings))
    held = method.held_out_scores(x, target, even, group, fold, quick)
    scores = method.fit_model(x, target, even, group, quick).raw(trained.pairs_x).mean(0)
    rows.append(_line("all raters count the same", evaluate_pairs(held, judge).accuracy,
                      evaluate_pairs(scores, pairs)))  # fmt: skip
    return rows


def _line(name: str, held: float, on_pairs: Any) -> dict[str, Any]:
    print(f"  {name:<28} held-out ratings {held:.4f}   development {on_pairs.accuracy:.4f}", flush=True)
    return {"part": name, "held_out": held, "development": on_pairs.accuracy}


def cleaning(ratings: RatedDialogues, trained: TrainingResult, pairs: Any) -> dict[str, Any]:
    """How well suspicion finds the dialogues of raters who failed quality control."""
    failed = np.array([not row.dialogue.labels["passed_qc"] for row in ratings.rows])
    got = clean(ratings, trained.x, pairs=pairs, pairs_x=trained.pairs_x, fitted=trained.fitted)
    verdicts = np.array([row.verdict for row in got.ratings])
    shapley = np.array([row.shapley for row in got.ratings], float)
    rater = ratings.codes("rater")
    return {
        "auc": auc(got.suspicion, failed),
        "auc_correlation_only": auc(-_of(trained.fitted, rater), failed),
        "auc_shapley_dialogue": auc(-shapley, failed),
        "auc_shapley_rater": auc(-np.bincount(rater, shapley)[rater], failed),
        "failed_share": {
            v: [int((verdicts == v).sum()), float(failed[verdicts == v].mean())]
            for v in ("keep", "suspicious", "drop")
            if (verdicts == v).any()
        },
    }


def _of(fitted: Fit, rater: Any) -> Any:
    return fitted.reliability.shrunk[np.searchsorted(fitted.reliability.raters, rater)]


def fine_tuned(
    given: argparse.Namespace, ratings: RatedDialogues, dev: RatedDialogues, weights: Any, seed: int
) -> Any:
    """Held-out scores (N,) and development scores of a network trained within sittings; kept in a file."""
    from palaver.comparator.cmade.network import apply_network, build_network
    from palaver.comparator.cmade.presets import Training
    from palaver.comparator.cmade.training import Examples, train
    from palaver.models.devices import choose_device

    path = given.out / f"fine-tuned-{seed}-{given.epochs}.npz"
    if path.is_file():
        with np.load(path) as file:
            return file["held"], file["dev"]
    device = choose_device(given.device)
    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    target = effects(ratings.values, sitting).target
    group, _ = method.held_out_together(ratings)
    fold = method.draw_folds(group, 5, 0)
    settings = Training(epochs=given.epochs, batch_size=48, learning_rate=given.learning_rate)
    held, began = np.zeros(len(ratings)), time.time()
    for k in [*range(int(fold.max()) + 1), -1]:  # -1: on all, for the development dialogues
        seen, unseen = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        network = build_network(given.encoder or None, pooling="mean", seed=seed, device=device)
        inputs = network.inputs(ratings.dialogues)
        train(
            network, inputs, Examples(seen, target[seen], sitting[seen], weights[seen]), settings, seed=seed
        )
        if k >= 0:
            scores, _ = apply_network(network, inputs)
            held[unseen] = scores[unseen]
        else:
            on_dev, _ = apply_network(network, network.inputs(dev.dialogues))
        print(f"  seed {seed}, fold {k}: {time.time() - began:.0f} s", flush=True)
    np.savez(path, held=held, dev=on_dev)
    return held, on_dev


def join(trained: TrainingResult, nets: list[Any], ratings: RatedDialogues, pairs: Any) -> dict[str, Any]:
    """The method and the networks, both in units of their spread; the share is chosen on held-out ratings."""
    assert trained.pairs_x is not None
    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    judge = rating_pairs(ratings.values, sitting, gap=10.0)
    assert judge is not None
    weight = trained.fitted.weights[judge.first]
    own, own_dev = trained.fitted.held_out, trained.fitted.model.heads_of(trained.pairs_x).mean(0)
    net = np.mean([held / held.std() for held, _ in nets], axis=0)
    net_dev = np.mean([on_dev / held.std() for held, on_dev in nets], axis=0)
    rows = []
    for share in np.linspace(0, 1, 11):
        held = (1 - share) * own / own.std() + share * net
        on_dev = (1 - share) * own_dev / own.std() + share * net_dev
        right = np.sign(held[judge.first] - held[judge.second]) == judge.label
        rows.append(
            {
                "share": round(float(share), 1),
                "held_out": float(np.average(right, weights=weight)),
                "development": evaluate_pairs(on_dev, pairs).accuracy,
            }
        )
        print(f"  network's share {share:.1f}: held-out ratings {rows[-1]['held_out']:.4f}   "
              f"development {rows[-1]['development']:.4f}", flush=True)  # fmt: skip
    return {"chosen": max(rows, key=lambda row: row["held_out"]), "all": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PALAVER_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=Path("runs/palaver-method"))
    parser.add_argument("--results", type=Path, help="the file of figures; without it OUT/results.json")
    parser.add_argument("--encoder", default="", help="folder of MiniLM, or of another encoder")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--ablations", action="store_true", help="every part left out once")
    parser.add_argument("--fine-tune", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="240 ratings only: does everything run?")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    given = parser.parse_args()
    from palaver.models.devices import choose_device

    folder = given.data / "rated"
    ratings = read_rated(folder / "reliable_eval.train.jsonl.gz")
    if given.tiny:
        ratings = ratings.take(range(240))
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    runs, scores, began = [], [], time.time()
    trained: TrainingResult | None = None
    for seed in given.seeds:
        trained = train_palaver(
            TrainingData.gather(ratings, dev=dev, pairs=pairs), given.out, settings=MethodSettings(seed=seed),
            encoder=given.encoder or "minilm", device=str(choose_device(given.device)), say=print,
        )  # fmt: skip
        assert trained.pairs_x is not None
        runs.append({"seed": seed, **trained.fitted.describe(), **cleaning(ratings, trained, pairs)})
        scores.append(trained.fitted.model.heads_of(trained.pairs_x).mean(0))
        r = runs[-1]
        told = [r["on_ratings"]["accuracy"], r["on_pairs"]["accuracy"], r["ece"], r["auc"]]
        print(
            f"seed {seed}: held-out ratings, development, ECE, cleaning AUC:", *np.round(told, 4), flush=True
        )
    assert trained is not None
    together = np.mean(scores, axis=0)
    difference = together[pairs.first] - together[pairs.second]
    unit = log_odds_unit(difference, pairs.label.astype(float))
    result: dict[str, Any] = {
        "command": "python experiments/comparator/palaver_method.py --data DATA --out OUT"
        f"{' --ablations' if given.ablations else ''}{' --fine-tune' if given.fine_tune else ''}"
        " --results docs/results/comparator-method.json",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "data": {"ratings": ratings.digest, "pairs": pairs.digest},
        "runs": runs,
        "accuracy_mean": float(np.mean([r["on_pairs"]["accuracy"] for r in runs])),
        "accuracy_sd": float(np.std([r["on_pairs"]["accuracy"] for r in runs], ddof=1)) if runs[1:] else None,
        "auc_mean": float(np.mean([r["auc"] for r in runs])),
        "together": dataclasses.asdict(evaluate_pairs(together, pairs)),
        "ece_together": calibration(1 / (1 + np.exp(-unit * difference)), pairs.label).ece,
        "seconds": round(time.time() - began, 1),
    }
    print(json.dumps({k: v for k, v in result.items() if k != "runs"}, indent=1))
    if given.ablations:
        result["ablations"] = ablations(trained, ratings, pairs, MethodSettings(seed=given.seeds[-1]))
    if given.fine_tune:
        weights = reliability(
            ratings.values, trained.fitted.held_out, ratings.codes("rater"),
            sittings(ratings.codes("rater"), ratings.codes("group")),
        ).weights(ratings.codes("rater"))  # fmt: skip
        nets = [fine_tuned(given, ratings, dev, weights, seed) for seed in given.seeds]
        result["networks"] = [evaluate_pairs(on_dev, pairs).accuracy for _, on_dev in nets]
        print("networks alone, development:", result["networks"])
        result["joined"] = join(trained, nets, ratings, pairs)
    target = given.results or given.out / "results.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
