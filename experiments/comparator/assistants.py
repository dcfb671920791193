"""The shipped comparator on fluent assistants, which it has never seen: MT-Bench's answers of six models.

    python experiments/comparator/assistants.py --data DATA --out RESULTS

No person has judged them, but six language models have, each pair in both orders. A pair counts where their
verdicts have a majority; *clear* are those on which at least three quarters of the verdicts agree (a tie is
half a verdict for each side). Beside the comparator and its parts: longer wins, which model it is (by the
verdicts on other questions), and each judge against the majority of the other five. Intervals resample
questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import machine  # noqa: E402

from palaver.comparator.evaluation import evaluate_differences  # noqa: E402
from palaver.comparator.scorer import (  # noqa: E402
    LANGUAGE_MODEL,
    RATER_MODEL,
    JoinedScorer,
    is_english,
    load_scorer,
)
from palaver.files import sha256_of  # noqa: E402
from palaver.readers.rows import RowFile  # noqa: E402
from palaver.schema import Dialogue, Turn  # noqa: E402

Floats = NDArray[np.float64]
CLEAR = 0.75
"""The share of the verdicts that agree on a clear pair."""
FILES = ("questions", "answers", "pairwise")
SHARES = {
    "a_first": {"A": 1.0, "B": 0.0, "tie": 0.5},
    "b_first": {"A": 0.0, "B": 1.0, "tie": 0.5},
}
"""The order in which a pair was shown -> the place that won -> how much of the verdict is for `a`."""


def read_rows(path: Path) -> list[Any]:
    return [row for _, row in RowFile(path).rows()]


def share_of_first(verdict: dict[str, Any]) -> list[float]:
    """For each order, how much of the verdict is for `a`; what could not be read is left out."""
    return [share[verdict[order]] for order, share in SHARES.items() if verdict[order] in share]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    files = {name: given.data / f"judges/mtbench_{name}.jsonl.gz" for name in FILES}
    questions = {row["question_id"]: row["turns"] for row in read_rows(files["questions"])}
    answers: dict[tuple[int, str], Dialogue] = {}
    for row in read_rows(files["answers"]):
        turns = []
        for asked, said in zip(questions[row["question_id"]], row["choices"][0]["turns"], strict=True):
            turns += [Turn(speaker="user", text=asked), Turn(speaker="system", text=said)]
        key = row["question_id"], row["model_id"]
        answers[key] = Dialogue(id=f"{key[0]}@{key[1]}", turns=tuple(turns))
    place = {key: i for i, key in enumerate(answers)}

    verdicts: dict[tuple[int, str, str], dict[str, list[float]]] = defaultdict(dict)
    for row in read_rows(files["pairwise"]):
        a, b = sorted((row["a"], row["b"]))  # judges have some pairs the other way round
        shares = share_of_first(row)
        verdicts[row["question"], a, b][row["judge"]] = shares if a == row["a"] else [1 - s for s in shares]
    pairs = list(verdicts)
    question = np.array([q for q, _, _ in pairs])
    first = np.array([place[q, a] for q, a, _ in pairs])
    second = np.array([place[q, b] for q, _, b in pairs])
    judges = sorted({judge for of_pair in verdicts.values() for judge in of_pair})
    sums = np.array([[sum(verdicts[pair].get(judge, ())) for judge in judges] for pair in pairs])
    counts = np.array([[len(verdicts[pair].get(judge, ())) for judge in judges] for pair in pairs])

    def lean(columns: list[int]) -> Floats:
        """How far the verdicts of these judges lean to the first, from -0.5 to 0.5."""
        return np.asarray(sums[:, columns].sum(1) / np.maximum(counts[:, columns].sum(1), 1) - 0.5)

    of_all = lean(list(range(len(judges))))
    decided, clear = of_all != 0, np.abs(of_all) >= CLEAR - 0.5
    label = np.sign(of_all).astype(np.int8)

    dialogues = list(answers.values())
    scorer = load_scorer()
    assert isinstance(scorer, JoinedScorer)
    parts, weights = scorer.scores_of_parts(dialogues), scorer.weights
    joined = weights.raters * parts[RATER_MODEL] + weights.language * parts[LANGUAGE_MODEL]
    values = {scorer.name: joined, **parts}
    lengths = [sum(len(t.text) for t in d.turns if t.speaker == "system") for d in dialogues]
    values["longer wins"] = np.array(lengths, float)
    differences = {name: of[first] - of[second] for name, of in values.items()}
    differences["which model it is"] = by_model(question, pairs, of_all)

    def measure(difference: Floats, keep: NDArray[np.bool_], labels: NDArray[np.int8] = label) -> Any:
        return asdict(evaluate_differences(difference[keep], labels[keep], question[keep]))

    rows = {
        name: {"decided": measure(difference, decided), "clear": measure(difference, clear)}
        for name, difference in differences.items()
    }
    others = {}
    for i, judge in enumerate(judges):
        rest = lean([j for j in range(len(judges)) if j != i])
        others[judge] = measure(lean([i]), rest != 0, np.sign(rest).astype(np.int8))
    record = {
        "command": "python experiments/comparator/assistants.py --data DATA "
        "--out docs/results/comparator-assistants.json",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "seed": 0,
        "data": {path.name: sha256_of(path) for path in files.values()},
        "comparator": scorer.signature,
        "n_questions": len(questions),
        "n_models": len({model for _, model in answers}),
        "n_dialogues": len(dialogues),
        "n_not_english": sum(not is_english(dialogue) for dialogue in dialogues),
        "clear": CLEAR,
        "rows": rows,
        "a judge against the majority of the others": others,
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, row in rows.items():
        print(name, {kind: round(result["accuracy"], 3) for kind, result in row.items()})
    print({judge: round(result["accuracy"], 3) for judge, result in others.items()})


def by_model(question: NDArray[Any], pairs: list[tuple[int, str, str]], lean: Floats) -> Floats:
    """How far verdicts on all other questions lean to the first model of each pair."""
    models = sorted({model for _, *both in pairs for model in both})
    number = {model: i for i, model in enumerate(models)}
    first, second = (np.array([number[pair[side]] for pair in pairs]) for side in (1, 2))
    difference = np.zeros(len(pairs))
    for q in np.unique(question):
        seen = question != q
        strength = np.zeros(len(models))
        np.add.at(strength, first[seen], lean[seen])
        np.add.at(strength, second[seen], -lean[seen])
        difference[~seen] = (strength[first] - strength[second])[~seen]
    return difference


if __name__ == "__main__":
    main()
