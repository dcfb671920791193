"""What the judge `response` and the cross-encoder see of rated responses, for response.py and usr.py.

    python experiments/judges/features.py --data ../shared/data
    python experiments/judges/features.py --data ../shared/data --corpus convai2017 --limit 1200 \\
        --out thumbs.npz

USR's 360 responses take twenty minutes on two cores. Their features lie in this folder, so the other scripts
run without it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from corpora import ROOT, THUMBS, read_thumbs, read_usr
from palaver.judges.response_features import FEATURES, FeatureRows, ResponseFeatures, prompt_of
from palaver.schema import Response

USR_FEATURES = ROOT / "experiments" / "judges" / "usr_features.npz"
CROSS_ENCODER = ("cross-encoder: answers the last turn", "cross-encoder: belongs to the knowledge")


def cross_encoder_scores(responses: list[Response]) -> np.ndarray:
    """(responses, 2); nan where there is no knowledge."""
    from palaver.models.cross_encoder import CrossEncoder

    model = CrossEncoder()
    scores = np.full((len(responses), 2), np.nan)
    for row, prompt in zip(scores, map(prompt_of, responses), strict=True):
        row[0] = model.score([(prompt.turns[-1] if prompt.turns else "", prompt.reply)])[0]
        if prompt.knowledge:
            row[1] = model.score([(prompt.reply, prompt.knowledge)])[0]
    return scores


def save_features(path: Path, rows: FeatureRows, cross_encoder: np.ndarray | None = None) -> None:
    arrays = {"table": rows.table.astype(np.float32), "states": rows.states.astype(np.float16)}
    if cross_encoder is not None:
        arrays["cross_encoder"] = cross_encoder.astype(np.float32)
    np.savez_compressed(path, features=np.array(FEATURES), **arrays)


def load_features(path: Path) -> tuple[FeatureRows, np.ndarray]:
    """The features, and the cross-encoder's scores where it was asked."""
    held = np.load(path)
    if tuple(held["features"]) != FEATURES:
        raise SystemExit(f"{path}: not the features of this version; run features.py again")
    rows = FeatureRows(held["table"].astype(float), held["states"].astype(float))
    return rows, held["cross_encoder"].astype(float) if "cross_encoder" in held else np.empty((len(rows), 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", choices=("usr", *THUMBS), default="usr")
    parser.add_argument("--limit", type=int, help="the first so many responses")
    parser.add_argument("--out", type=Path, default=USR_FEATURES)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    is_usr = options.corpus == "usr"
    responses = read_usr(options.data)[1] if is_usr else read_thumbs(options.data, options.corpus)[0]
    responses = responses[: options.limit]
    rows = ResponseFeatures.load(options.device).measure(responses)
    save_features(options.out, rows, cross_encoder_scores(responses) if is_usr else None)


if __name__ == "__main__":
    main()
