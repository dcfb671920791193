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
from palaver.errors import require
from palaver.judges.labels import SEEN, SEEN_NOTE
from palaver.judges.response_features import ABOUT_KNOWLEDGE, FEATURES, prompt_of
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real

Floats = NDArray[np.float64]
WEIGHTS = Path(__file__).with_name("response_weights.json")
LINEAR = 0.5
_FARTHEST = 4.0
"""Standard deviations; what lies farther counts as that far."""
_ARRAYS = ("mean", "spread", "support", "weights")


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """Kernel ridge regression on standardised features. What is missing counts as the mean.

    The kernel is a Gaussian of `width` plus `LINEAR` times the mean product of two rows.
    """

    features: tuple[str, ...]
    mean: Floats
    spread: Floats
    support: Floats
    """The standardised rows it was fitted on."""
    weights: Floats
    """One for each of them."""
    intercept: float
    width: float

    def predict(self, table: Floats) -> Floats:
        """`table` has the columns `FEATURES`."""
        rows = _standard(table[:, _columns(self.features)], self.mean, self.spread)
        scores: Floats = _kernel(rows, self.support, self.width) @ self.weights + self.intercept
        return scores

    def as_dict(self) -> dict[str, Any]:
        arrays = {name: np.round(getattr(self, name), 4).tolist() for name in _ARRAYS}
        return {
            "features": list(self.features),
            "width": self.width,
            "intercept": round(self.intercept, 6),
            **arrays,
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> KernelRidge:
        arrays = {name: np.array(fields[name]) for name in _ARRAYS}
        return cls(tuple(fields["features"]), intercept=fields["intercept"], width=fields["width"], **arrays)


def fit_kernel_ridge(
    table: Floats, target: Floats, features: Sequence[str], *, width: float, penalty: float
) -> KernelRidge:
    """Of `target` on those columns of `table` that `features` names."""
    used = table[:, _columns(features)]
    mean = np.nanmean(used, axis=0)
    spread = np.maximum(np.nanstd(used, axis=0), 1e-6)
    rows = _standard(used, mean, spread)
    level = float(target.mean())
    gram = _kernel(rows, rows, width) + penalty * np.eye(len(rows))
    weights = np.linalg.solve(gram, target - level).astype(np.float64)
    return KernelRidge(tuple(features), mean, spread, rows, weights, level, width)


def _columns(features: Sequence[str]) -> list[int]:
    return [FEATURES.index(name) for name in features]


def _standard(rows: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.nan_to_num(np.clip((rows - mean) / spread, -_FARTHEST, _FARTHEST))


def _kernel(rows: Floats, others: Floats, width: float) -> Floats:
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * rows @ others.T
    kernel: Floats = np.exp(-width * np.maximum(squares, 0)) + LINEAR * rows @ others.T / rows.shape[1]
    return kernel


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
        Criterion(name="response_quality", scale=Real(), title="Quality of a response"),
    )

    def __init__(self, device: str = "auto") -> None:
        for package, extra in (("torch", "models"), ("transformers", "models"), ("onnxruntime", "probes")):
            require(package, extra)
        from palaver.judges.response_features import ResponseFeatures

        content = WEIGHTS.read_bytes()
        held = json.loads(content)
        self._with_knowledge = KernelRidge.of(held["with_knowledge"])
        self._without = KernelRidge.of(held["without_knowledge"])
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
                self.notes[SEEN_NOTE] += 1
            yield Rating(
                item=response.id, system=response.judged_system, rater=self.name,
                criterion="response_quality", value=score, kind=self.kind,
                signature=self.signature + (SEEN if seen else ""),
            )  # fmt: skip
