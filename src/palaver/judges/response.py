"""A reference-free judge of single responses: ridge regression on what a language model and encoders see of
them.

Fitted on people's overall ratings of USR's Topical-Chat responses (Mehri & Eskenazi, ACL 2020); the weights
are plain arrays in `response_weights.json`, one set for responses with knowledge and one for those without.
Its scores are on the scale of those ratings, 1 to 5, and mean little beyond an order. docs/results/judges.md
says how far to believe it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.artefacts import digest
from palaver.errors import UserError, require
from palaver.judges.meta import SEEN
from palaver.judges.response_features import ABOUT_KNOWLEDGE, FEATURES, prompt_of
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real

Floats = NDArray[np.float64]
WEIGHTS = Path(__file__).with_name("response_weights.json")


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear model of standardised features. What is missing counts as the mean."""

    features: tuple[str, ...]
    mean: Floats
    spread: Floats
    weights: Floats
    intercept: float

    def predict(self, table: Floats) -> Floats:
        """`table` has the columns `FEATURES`."""
        columns = [FEATURES.index(name) for name in self.features]
        standard = np.clip((table[:, columns] - self.mean) / self.spread, -4, 4)
        scores: Floats = np.nan_to_num(standard) @ self.weights + self.intercept
        return scores

    def as_dict(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "mean": [round(float(x), 6) for x in self.mean],
            "spread": [round(float(x), 6) for x in self.spread],
            "weights": [round(float(x), 6) for x in self.weights],
            "intercept": round(float(self.intercept), 6),
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Ridge:
        arrays = {name: np.array(fields[name]) for name in ("mean", "spread", "weights")}
        return cls(tuple(fields["features"]), intercept=float(fields["intercept"]), **arrays)


def fit_ridge(table: Floats, target: Floats, features: Sequence[str], penalty: float) -> Ridge:
    """Ridge regression of `target` on those columns of `table` that `features` names."""
    columns = [FEATURES.index(name) for name in features]
    used = table[:, columns]
    mean = np.nanmean(used, axis=0)
    spread = np.maximum(np.nanstd(used, axis=0), 1e-6)
    standard = np.nan_to_num(np.clip((used - mean) / spread, -4, 4))
    level = float(target.mean())
    gram = standard.T @ standard + penalty * np.eye(len(columns))
    return Ridge(tuple(features), mean, spread, np.linalg.solve(gram, standard.T @ (target - level)), level)


def text_digest(response: Response) -> str:
    """Names a response by its texts, to know again what the judge was trained on."""
    prompt = prompt_of(response)
    return digest(prompt.turns[-1] if prompt.turns else "", prompt.reply)[:12]


class ResponseJudge(Named):
    """Rates responses to a context, better with the knowledge they were to draw on."""

    name = "response"
    kind: Kind = "model"
    looks_at: frozenset[Judged] = frozenset({"responses"})
    needs: frozenset[Need] = frozenset()
    criteria: tuple[Criterion, ...] = (
        Criterion(name="response_quality", scale=Real(), title="Quality of a response (ridge)"),
    )

    def __init__(self, device: str = "auto") -> None:
        for package, extra in (("torch", "models"), ("transformers", "models"), ("onnxruntime", "probes")):
            require(package, extra)
        from palaver.judges.response_features import ResponseFeatures

        content = WEIGHTS.read_bytes()
        held = json.loads(content)
        self._with_knowledge = Ridge.of(held["with_knowledge"])
        self._without = Ridge.of(held["without_knowledge"])
        self._seen = frozenset(held["trained_on"])
        self._features = ResponseFeatures.load(device)
        self.signature = f"response|{digest(content.decode())[:10]}"
        self.left_out: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        responses = [one for one in batch if isinstance(one, Response)]
        rated = [response for response in responses if (response.response or "").strip()]
        if len(rated) < len(responses):
            self.left_out["empty responses"] += len(responses) - len(rated)
        if not rated:
            return
        table = self._features.table(rated)
        known = np.isfinite(table[:, FEATURES.index(ABOUT_KNOWLEDGE[0])])
        scores = np.where(known, self._with_knowledge.predict(table), self._without.predict(table))
        for response, score in zip(rated, scores.tolist(), strict=True):
            seen = text_digest(response) in self._seen
            if seen:
                self.notes["responses that it was trained on: their scores say nothing about others"] += 1
            yield Rating(
                item=response.id, system=response.judged_system, rater=self.name,
                criterion="response_quality", value=score, kind=self.kind,
                signature=self.signature + (SEEN if seen else ""),
            )  # fmt: skip


def load_weights() -> dict[str, Any]:
    """What is shipped: weights, where they come from, what they were trained on."""
    if not WEIGHTS.is_file():
        raise UserError("the weights of the judge `response` are missing", "install Palaver anew")
    held: dict[str, Any] = json.loads(WEIGHTS.read_bytes())
    return held
