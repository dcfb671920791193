"""Writes expected.json: what the packages bert-score 0.3.13 and mauve-text 0.4.0 give.

    pip install --no-deps bert-score==0.3.13 mauve-text==0.4.0 faiss-cpu==1.15.1
    python tests/data/model-metrics/make.py

Neither is needed to run the tests. bert-score reads MiniLM, all six layers, as `bertscore` does.
"""

from __future__ import annotations

import json
from pathlib import Path

import mauve
import numpy as np
from bert_score import BERTScorer

from palaver.models.encoders.transformer import minilm_folder

PAIRS = [
    ("The cat sat on the mat.", "A cat was sitting on the mat."),
    ("I have no idea.", "The match begins at eight o'clock in the evening."),
    ("yes", "yes"),
    ("Did you see the film about the lighthouse keeper?", "Have you watched that movie?"),
    ("I love jazz, especially from the fifties!", "I love jazz."),
    ("Das ist doch schön.", "Das ist aber nicht schön, oder?"),
    ("我喜欢猫", "我喜欢狗和猫"),
    ("no no no no", "No, never, not at all."),
    ("The cat sat on the mat.", "I love jazz."),
]
SETS = {"equal": (0.0, 200, 200), "near": (0.6, 300, 300), "far": (1.5, 250, 400), "apart": (6.0, 200, 200)}
"""Name -> how far the means lie apart, and how many vectors either set has."""


def vectors(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of vectors of eight numbers around two means."""
    shift, n_p, n_q = SETS[name]
    rng = np.random.default_rng(sorted(SETS).index(name))
    return rng.normal(1.0, 1.0, (n_p, 8)), rng.normal(1.0, 1.0, (n_q, 8)) + shift * np.eye(8)[0]


def main() -> None:
    said, expected = map(list, zip(*PAIRS, strict=True))
    content: dict[str, object] = {"pairs": PAIRS}
    for idf in (False, True):
        scorer = BERTScorer(
            model_type=str(minilm_folder()), num_layers=6, idf=idf, idf_sents=expected, device="cpu"
        )
        names = ("precision", "recall", "f")
        scores = scorer.score(said, expected)
        content["idf" if idf else "plain"] = {n: s.tolist() for n, s in zip(names, scores, strict=True)}
    content["mauve"] = {}
    for name in SETS:
        p, q = vectors(name)
        runs = [mauve.compute_mauve(p, q, seed=seed) for seed in range(5)]
        content["mauve"][name] = {
            "values": [run.mauve for run in runs],
            "p": runs[0].p_hist.tolist(),
            "q": runs[0].q_hist.tolist(),
        }
    path = Path(__file__).with_name("expected.json")
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
