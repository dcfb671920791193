"""What a probe found: frozen, with everything the tables and the pages show, and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from palaver.schema.run import RunRecord
from palaver.tabular import Tabular, columns_of, few, show_number


@dataclass(frozen=True)
class Share:
    """How many triplets were ordered as desired, with an interval."""

    right: int
    n: int
    low: float
    high: float
    interval: str
    """How the interval was found."""

    @property
    def accuracy(self) -> float:
        return self.right / self.n if self.n else math.nan


@dataclass(frozen=True)
class Spread:
    """Cosines of one kind of pair: mean, and five quantiles (5, 25, 50, 75, 95 %)."""

    mean: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class Failure:
    """A triplet that was ordered the wrong way round, and by how much."""

    id: str
    original: str
    plus: str
    star: str
    cosines: tuple[float, float, float]
    """S and S+, S and S*, S+ and S*."""
    margin: float


@dataclass(frozen=True)
class Part:
    """The triplets of one case, corpus, pair of verbs or relation of the two, of a set."""

    by: str
    name: str
    share: Share
    plus: float
    star: float
    """Mean cosines of S and S+, S and S*."""


@dataclass(frozen=True)
class VariantScore:
    """Triplets made in another way, beside the paper's triplets of the same sentences (`recipe.VARIANTS`)."""

    name: str
    share: Share
    """Of the variants."""
    same: Share
    """Of the paper's triplets of these sentences."""
    plus: float
    star: float
    """Mean cosines of S and S+, S and S* in the variants."""
    p: float
    """McNemar's test of the two."""


@dataclass(frozen=True)
class PairScore:
    """Negation Detection with pairs of verbs as the unit: triplets of one pair are not independent."""

    n_pairs: int
    low: float
    high: float
    """Interval of the accuracy where pairs are drawn, not triplets."""
    mean: float
    """Mean of the pairs' accuracies: each pair counts once."""
    mean_low: float
    mean_high: float


@dataclass(frozen=True)
class SetScore:
    """One encoder on one set: a row of Tables 2 to 6."""

    encoder: str
    set: str
    plus: Spread
    star: Spread
    between: Spread
    share: Share
    other_rule: Share | None
    """Argument Sensitivity by the wording of section 2.2; see `evaluate`."""
    parts: tuple[Part, ...]
    pairs: PairScore | None
    """Where the triplets say which verb replaced which."""
    variants: tuple[VariantScore, ...]
    failures: tuple[Failure, ...]
    n_undefined: int
    """Triplets with a text whose vector is zero: no cosine; they count as not ordered as desired."""

    def variant(self, name: str) -> VariantScore:
        return next(v for v in self.variants if v.name == name)


@dataclass(frozen=True)
class EncoderRow:
    """An encoder with where it comes from and what it took."""

    name: str
    provenance: str
    signature: str
    size: int
    mean_accuracy: float
    n_encoded: int
    encoder_seconds: float


@dataclass(frozen=True)
class PairTest:
    """McNemar's test of two encoders on one set, corrected for all pairs of that set (Holm)."""

    set: str
    a: str
    b: str
    only_a: int
    only_b: int
    p: float
    adjusted: float
    note: str


@dataclass(frozen=True, repr=False)
class ProbeResult(Tabular):
    """Encoders x sets. Tables: scores, variants, encoders, tests."""

    encoders: tuple[EncoderRow, ...]
    """Best first by the mean of the sets' accuracies."""
    scores: tuple[SetScore, ...]
    tests: tuple[PairTest, ...]
    n_triplets: dict[str, int]
    """Set -> triplets that are counted as the paper's; variants are not among them."""
    corpora: dict[str, dict[str, int]]
    """Set -> corpus -> triplets."""
    n_sentences: int
    seconds: float
    notes: tuple[str, ...]
    run: RunRecord

    def _headline(self) -> str:
        means = few([f"{e.name} = {show_number(e.mean_accuracy)}" for e in self.encoders])
        return f"mean accuracy {means}; {sum(self.n_triplets.values()):,} triplets"

    def _tables(self) -> dict[str, Any]:
        shares = [score.share for score in self.scores]
        variants = [(score, variant) for score in self.scores for variant in score.variants]
        return {
            "scores": {
                "encoder": [score.encoder for score in self.scores],
                "set": [score.set for score in self.scores],
                "accuracy": [share.accuracy for share in shares],
                "low": [share.low for share in shares],
                "high": [share.high for share in shares],
                "n": [share.n for share in shares],
                "plus": [score.plus.mean for score in self.scores],
                "star": [score.star.mean for score in self.scores],
            },
            "variants": {
                "encoder": [score.encoder for score, _ in variants],
                "set": [score.set for score, _ in variants],
                "variant": [variant.name for _, variant in variants],
                "accuracy": [variant.share.accuracy for _, variant in variants],
                "low": [variant.share.low for _, variant in variants],
                "high": [variant.share.high for _, variant in variants],
                "same": [variant.same.accuracy for _, variant in variants],
                "n": [variant.share.n for _, variant in variants],
                "p": [variant.p for _, variant in variants],
            },
            "encoders": columns_of(EncoderRow, self.encoders),
            "tests": columns_of(PairTest, self.tests),
        }

    def score(self, encoder: str, set: str) -> SetScore:
        return next(s for s in self.scores if s.encoder == encoder and s.set == set)

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(self.n_triplets)

    def to_json(self) -> str:
        """`results.json`: undefined numbers are null."""
        plain = to_jsonable_python(self, inf_nan_mode="null")
        for row, score in zip(plain["scores"], self.scores, strict=True):
            row["share"]["accuracy"] = score.share.accuracy
        plain["run"]["signature"] = self.run.signature
        return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
