"""Does the rater model do better on conversations from elsewhere when it learns from two sources?

    python experiments/comparator/second_source.py --data DATA --work WORK --out RESULTS

Fitted on Reliable-Eval alone, as it ships, on ConvAI 2017 alone, and on both, as `palaver compare train` does
with two files: ratings are brought onto one scale, and those that name no rater are one sitting of their own.
Nothing is chosen. Measured on ConvAI2, which none of them has seen: pairs of one named bot, of two, and pairs
of dialogues whose bot and user nobody named. Beside it what it costs at home: raters of Reliable-Eval who
were held out, and the development pairs. "joined" adds the shipped language model, which has seen ConvAI
2017, by its weights, the rater model stretched to the spread of the one that ships. WORK keeps what was
encoded.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src")]

from record import GAP, head_of, parser_of  # noqa: E402
from within_tier import gain_over_raters, in_one_tier  # noqa: E402

from palaver.comparator.evaluation import evaluate_differences  # noqa: E402
from palaver.comparator.method import fit, rating_pairs  # noqa: E402
from palaver.comparator.rater_effects import effects, sittings  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.representation import Representation, represent, turn_encoder  # noqa: E402
from palaver.comparator.scorer import JoinedScorer, PalaverScorer, load_scorer  # noqa: E402
from palaver.comparator.training_data import Pairs, RatedDialogues, load_arrays  # noqa: E402
from palaver.readers.roles import without_empty_turns  # noqa: E402

Floats = NDArray[np.float64]
FILES = {
    "reliable": "reliable_eval.train",
    "development": "reliable_eval.dev_dialogues",
    "convai2017": "convai2017_humanbot",
    "convai2": "convai2_rated",
}
SOURCES = {
    "Reliable-Eval": ("reliable",),
    "Reliable-Eval and ConvAI 2017": ("reliable", "convai2017"),
    "ConvAI 2017": ("convai2017",),
}


class Measured(NamedTuple):
    """Pairs of the rows of one file, and who is drawn together for their interval."""

    file: str
    pairs: Pairs
    groups: NDArray[np.int64]


def represent_once(rated: RatedDialogues, path: Path) -> Representation:
    if not path.is_file():
        x = represent(rated.dialogues, turn_encoder())
        np.savez(path, features=x.features, vectors=x.vectors)
    return Representation(**load_arrays(path))


def language_scores(rated: RatedDialogues, scorer: JoinedScorer, path: Path) -> Floats:
    if not path.is_file():
        np.save(path, scorer.language.score([without_empty_turns(d) for d in rated.dialogues]))
    return np.asarray(np.load(path))


def measured_pairs(rated: dict[str, RatedDialogues], folder: Path) -> dict[str, Measured]:
    """Column -> the pairs it is about."""
    dev, other = rated["development"], rated["convai2"]
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    raters = dev.codes("rater")[pairs.first]
    tier = in_one_tier(dev, pairs)
    user, system = other.codes("rater"), other.codes("system")
    group = np.where(user >= 0, user, user.max() + 1 + np.arange(len(other)))
    a, b = np.triu_indices(len(other), 1)
    wide = np.abs(other.values[a] - other.values[b]) > GAP
    named = (system[a] >= 0) & (system[b] >= 0)
    masks = {
        "ConvAI2, one bot": named & (system[a] == system[b]),
        "ConvAI2, two bots": named & (system[a] != system[b]),
        "ConvAI2, no bot named": (system[a] < 0) & (system[b] < 0),
    }
    columns = {
        "development": Measured("development", pairs, raters),
        "within a tier": Measured("development", pairs.take(tier), raters[tier]),
    }
    for name, mask in masks.items():
        first, second = a[wide & mask], b[wide & mask]
        label = np.sign(other.values[first] - other.values[second]).astype(np.int8)
        columns[name] = Measured("convai2", Pairs(first, second, label), group[first])
    return columns


def held_out_pairs(ratings: RatedDialogues) -> Pairs:
    """Pairs of one sitting whose ratings lie at least half a spread apart."""
    sitting = sittings(ratings.codes("rater"), ratings.codes("group"))
    level = effects(ratings.values, sitting).level
    spread = float(np.sqrt(np.mean((ratings.values - level) ** 2)))
    pairs = rating_pairs(ratings.values, sitting, gap=0.5 * spread)
    assert pairs is not None
    return pairs


def difference(scores: Floats, pairs: Pairs) -> Floats:
    return np.asarray(scores[pairs.first] - scores[pairs.second])


def main() -> None:
    given = parser_of(__doc__).parse_args()
    folder = given.data / "rated"
    given.work.mkdir(parents=True, exist_ok=True)
    rated = {name: read_rated(folder / f"{file}.jsonl.gz") for name, file in FILES.items()}
    x = {name: represent_once(r, given.work / f"second-source-{name}.npz") for name, r in rated.items()}
    columns = measured_pairs(rated, folder)
    scorer = load_scorer()
    assert isinstance(scorer, JoinedScorer)
    assert isinstance(scorer.raters, PalaverScorer)
    language = {
        name: language_scores(rated[name], scorer, given.work / f"second-source-language-{name}.npy")
        for name in ("development", "convai2")
    }
    shipped_spread = float(scorer.raters.model.heads_of(x["development"]).mean(0).std())
    home = held_out_pairs(rated["reliable"])
    rows: dict[str, dict[str, Any]] = {}
    right: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for source, files in SOURCES.items():
        ratings = read_rated([folder / f"{FILES[name]}.jsonl.gz" for name in files])
        of_files = Representation(
            np.vstack([x[name].features for name in files]), np.vstack([x[name].vectors for name in files])
        )
        fitted = fit(ratings, of_files, pairs=columns["development"].pairs, pairs_x=x["development"])
        model = fitted.model
        scores = {name: model.heads_of(x[name]).mean(0) for name in ("development", "convai2")}
        stretch = shipped_spread / scores["development"].std()
        joined = {
            name: scorer.weights.raters * stretch * scores[name] + scorer.weights.language * language[name]
            for name in scores
        }
        if "reliable" in files:
            at_home = fitted.held_out[: len(rated["reliable"])]
        else:
            at_home = model.heads_of(x["reliable"]).mean(0)
        groups = rated["reliable"].codes("rater")[home.first]
        rows[source] = {
            "n_ratings": len(ratings),
            "raters held out": asdict(evaluate_differences(difference(at_home, home), home.label, groups)),
        }
        for kind, of_kind in (("rater model", scores), ("joined", joined)):
            rows[source][kind] = {}
            for name, column in columns.items():
                of_pairs = difference(of_kind[column.file], column.pairs)
                rows[source][kind][name] = asdict(
                    evaluate_differences(of_pairs, column.pairs.label, column.groups)
                )
                right[source, kind + name] = np.sign(of_pairs) == column.pairs.label
        print(source, {n: round(r["accuracy"], 3) for n, r in rows[source]["joined"].items()}, flush=True)
    alone, both = list(SOURCES)[:2]
    record = {
        **head_of(__file__, "comparator-second-source.json", seed=0),
        "data": {name: r.digest for name, r in rated.items()},
        "gap": GAP,
        "n_unnamed": int((rated["convai2"].codes("system") < 0).sum()),
        "rows": rows,
        "gain_of_both": {
            kind: {
                name: gain_over_raters(right[alone, kind + name], right[both, kind + name], column.groups)
                for name, column in columns.items()
            }
            for kind in ("rater model", "joined")
        },
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record["gain_of_both"], indent=1))


if __name__ == "__main__":
    main()
