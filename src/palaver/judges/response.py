"""A reference-free judge of single responses: kernel ridge regression on what a language model and a sentence
encoder see of them.

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
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.artefacts import digest
from palaver.errors import require
from palaver.judges.labels import SEEN, SEEN_NOTE
from palaver.judges.response_features import ABOUT_KNOWLEDGE, FEATURES, FeatureRows, prompt_of
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real

Floats = NDArray[np.float64]
WEIGHTS = Path(__file__).with_name("response_weights.json")
LINEAR = 0.5
WIDTHS = (0.007, 0.015, 0.03)
PENALTIES, SHARES = (0.3, 1.0, 3.0), (0.0, 1.0, 2.0)
"""The fit is the mean over all of them: a choice among them on so few ratings was worse."""
_FARTHEST = 4.0
"""Standard deviations; what lies farther counts as that far."""
_ARRAYS = ("mean", "spread", "support", "weights", "state_mean", "state_spread", "state_weights")


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """Kernel ridge regression on standardised features. What is missing counts as the mean.

    The kernel is the mean of Gaussians of `WIDTHS` plus `LINEAR` times the mean product of two rows of
    features, plus a share of the mean product of their states, which comes to one weight for each state.
    """

    features: tuple[str, ...]
    mean: Floats
    spread: Floats
    support: Floats
    """The standardised rows it was fitted on."""
    weights: Floats
    """One for each of them."""
    state_mean: Floats
    state_spread: Floats
    state_weights: Floats
    intercept: float

    def predict(self, rows: FeatureRows) -> Floats:
        features = _standardise(rows.table[:, _columns(self.features)], self.mean, self.spread)
        states = _standardise(rows.states, self.state_mean, self.state_spread)
        scores: Floats = kernel(features, self.support) @ self.weights
        return scores + states @ self.state_weights + self.intercept

    def as_dict(self) -> dict[str, Any]:
        arrays = {name: np.round(getattr(self, name), 5).tolist() for name in _ARRAYS}
        return {
            "features": list(self.features),
            "intercept": round(self.intercept, 6),
            **arrays,
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> KernelRidge:
        arrays = {name: np.array(fields[name]) for name in _ARRAYS}
        return cls(tuple(fields["features"]), intercept=fields["intercept"], **arrays)


def fit_kernel_ridge(rows: FeatureRows, target: Floats, features: Sequence[str]) -> KernelRidge:
    """Of `target` on those features that `features` names and on the states."""
    used = rows.table[:, _columns(features)]
    mean, spread = _level(used)
    state_mean, state_spread = _level(rows.states)
    support = _standardise(used, mean, spread)
    states = _standardise(rows.states, state_mean, state_spread)
    level = float(target.mean())
    alike, alike_states = kernel(support, support), states @ states.T / states.shape[1]
    weights, state_weights = np.zeros(len(rows)), np.zeros(states.shape[1])
    settings = list(product(PENALTIES, SHARES))
    for penalty, share in settings:
        gram = alike + share * alike_states + penalty * np.eye(len(rows))
        solution = np.linalg.solve(gram, target - level) / len(settings)
        weights += solution
        state_weights += share / states.shape[1] * states.T @ solution
    return KernelRidge(
        tuple(features), mean, spread, support, weights, state_mean, state_spread, state_weights, level
    )


def _level(values: Floats) -> tuple[Floats, Floats]:
    return np.nanmean(values, axis=0), np.maximum(np.nanstd(values, axis=0), 1e-6)


def _columns(features: Sequence[str]) -> list[int]:
    return [FEATURES.index(name) for name in features]


def _standardise(rows: Floats, mean: Floats, spread: Floats) -> Floats:
    """In standard deviations; what is missing counts as the mean."""
    return np.nan_to_num(np.clip((rows - mean) / spread, -_FARTHEST, _FARTHEST))


def kernel(rows: Floats, others: Floats) -> Floats:
    """How alike features are: Gaussians and a line."""
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * rows @ others.T
    near = np.mean([np.exp(-width * np.maximum(squares, 0)) for width in WIDTHS], axis=0)
    alike: Floats = near + LINEAR * rows @ others.T / rows.shape[1]
    return alike


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
        for package in ("torch", "transformers"):
            require(package, "models")
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
        rows = self._features.measure(rated)
        known = np.isfinite(rows.table[:, FEATURES.index(ABOUT_KNOWLEDGE[0])])
        scores = np.where(known, self._with_knowledge.predict(rows), self._without.predict(rows))
        for response, score in zip(rated, scores.tolist(), strict=True):
            seen = text_digest(response) in self._seen
            if seen:
                self.notes[SEEN_NOTE] += 1
            yield Rating(
                item=response.id, system=response.judged_system, rater=self.name,
                criterion="response_quality", value=score, kind=self.kind,
                signature=self.signature + (SEEN if seen else ""),
            )  # fmt: skip
