"""What the language model of the comparator learns from, cut into tokens.

    python experiments/comparator/language_model_data.py --data DATA --out prepared.npz

Holds the ratings of Reliable-Eval and ConvAI 2017, the development dialogues, those of ConvAI2 (from which
nothing is learnt), minimal pairs, and the open part of the audit (which is looked at, not learnt from).
Raters are weighed by agreement with a linear model of surface features that has not seen them. The adapter
that ships has learnt without two kinds of minimal pairs: --without detail explanation.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from palaver.comparator.language_model import (  # noqa: E402
    AdapterSettings,
    TokenRows,
    open_base,
    tokenise,
)

CRITERIA = ("robotic", "interesting", "fun", "consistent", "fluent", "repetitive", "topic")
FOLDS = 4
SOURCES = ("reliable_eval", "convai2017", "development", "convai2")
"""The first two are learnt from."""
PARTS = (*SOURCES, "pairs", "pairs_held_out", "audit")


def prepare(given: argparse.Namespace) -> None:
    """Write everything that training needs as arrays."""
    import minimal_pairs

    from palaver.comparator.method import draw_folds, held_out_together
    from palaver.comparator.rater_effects import effects, sittings
    from palaver.comparator.reading import read_rated
    from palaver.judges.audit import read_audit_pairs
    from palaver.text.normalisation import normalise

    _, tokenizer = open_base(given.base, 1)
    settings = AdapterSettings()
    folder = given.data / "rated"
    files = {
        "reliable_eval": "reliable_eval.train", "convai2017": "convai2017_humanbot",
        "development": "reliable_eval.dev_dialogues", "convai2": "convai2_rated",
    }  # fmt: skip
    arrays: dict[str, Any] = {}
    for source in SOURCES:
        rated = read_rated(folder / f"{files[source]}.jsonl.gz")
        if given.first:
            rated = rated.take(range(min(given.first, len(rated))))
        rows = tokenise(
            [[(t.speaker == "user", normalise(t.text)) for t in d.turns] for d in rated.dialogues],
            tokenizer,
            settings.max_tokens,
        )
        arrays |= _named(source, rows)
        arrays[f"{source}.ids"] = np.array(rated.ids)
        arrays[f"{source}.system"] = np.array([row.system or "" for row in rated.rows])
        if source == "reliable_eval":
            sitting = sittings(rated.codes("rater"), rated.codes("group"))
            own = [rated.values, *(_scores(rated, name) for name in CRITERIA)]
            arrays["target"] = np.stack([effects(values, sitting).target for values in own], 1).astype("f4")
            arrays["sitting"] = sitting
            arrays["fold"] = draw_folds(held_out_together(rated)[0], FOLDS, 0)
            arrays["weight"] = _weigh_raters(rated, sitting).astype("f4")
        if source == "convai2017":
            values = rated.values
            arrays["other_target"] = ((values - values.mean()) / values.std()).astype("f4")
        print(f"{source}: {len(rows)} dialogues, {rows.lengths.mean():.0f} tokens each", flush=True)
    learnt, held_out = minimal_pairs.read_material(given.data)
    inferences = minimal_pairs.read_inferences(given.data)
    cut = len(inferences) // 10  # what comes before is not learnt from
    of_kind = (2, 1, 4) if given.first else (1100, 80, 2000)  # learnt, held out; inferences that are learnt
    made = {
        "pairs": [
            *minimal_pairs.make_pairs(learnt, of_kind[0], seed=1, without=given.without),
            *minimal_pairs.inference_pairs(inferences[cut:], of_kind[2], seed=1),
        ],
        "pairs_held_out": [
            *minimal_pairs.make_pairs(held_out, of_kind[1], seed=2, without=given.without),
            *minimal_pairs.inference_pairs(inferences[:cut], of_kind[1], seed=2),
        ],
    }
    made["audit"] = [
        minimal_pairs.Pair(p.kind, *(_turns(d) for d in ((p.a, p.b) if p.better == "a" else (p.b, p.a))))
        for p in read_audit_pairs("open")
        if p.better != "equal"
    ]
    for name, pairs in made.items():
        turns = [
            [(who == "user", normalise(text)) for who, text in side]
            for p in pairs
            for side in (p.good, p.bad)
        ]
        arrays |= _named(name, tokenise(turns, tokenizer, settings.max_tokens))
        arrays[f"{name}.kind"] = np.array([pair.kind for pair in pairs])
        print(
            f"{name}: {len(pairs)}, {np.diff(arrays[f'{name}.bounds']).mean():.0f} tokens a side", flush=True
        )
    np.savez_compressed(given.out, **arrays)
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.1f} MB")


def _turns(dialogue: Any) -> list[tuple[str, str]]:
    return [("user" if turn.speaker == "user" else "system", turn.text) for turn in dialogue.turns]


def _named(name: str, rows: TokenRows) -> dict[str, Any]:
    return {f"{name}.{part}": getattr(rows, part) for part in ("tokens", "roles", "bounds")}


def _weigh_raters(rated: Any, sitting: Any) -> Any:
    """(N,) what each rating counts, by a model of surface features that has not seen its rater."""
    from palaver.comparator.method import MethodSettings, draw_folds, held_out_scores, held_out_together
    from palaver.comparator.rater_effects import effects, reliability
    from palaver.comparator.representation import represent

    x = represent(rated.dialogues, lambda texts: np.ones((len(texts), 1)))
    group, rater = held_out_together(rated)[0], rated.codes("rater")
    fold, target = draw_folds(group, 5, 0), effects(rated.values, sitting).target
    weights = np.ones(len(rated))
    for _ in range(2):
        held = held_out_scores(x, target, weights, group, fold, MethodSettings(heads=1, trees=0))
        weights = reliability(rated.values, held, rater, sitting).weights(rater)
    return weights


def _scores(rated: Any, criterion: str) -> Any:
    return np.array([float(json.loads(str(row.dialogue.labels["scores"]))[criterion]) for row in rated.rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--base", type=Path, help="a folder of transformers; else what `palaver get smollm2` got"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--without", nargs="*", default=[], help="kinds of minimal pairs")
    parser.add_argument("--first", type=int, help="dialogues of each source, and few pairs, for a trial")
    prepare(parser.parse_args())
