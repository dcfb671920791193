"""Tables 2 to 6: mean cosines, and in how many triplets they are ordered as desired (section 3.3).

An encoder notices a difference in meaning if S (the original) is nearer to S+ than to S*. In Negation
Variants both S+ and S* are negations, and they should be nearer to each other than either is to S.

Of Argument Sensitivity section 2.2 says that S and S+ should be nearer than S+ and S*. Table 5 cannot have
been counted so: averages, for which S and S* are nearly the same (99.96 %), would then be right about half
the time and not never, and SkipThought, whose mean of S and S+ is the larger one, more often than in 4.71 %.
It fits the rule of the other sets, which is used here; the other count stands beside it (`other_rule`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError
from palaver.models.encoders.encoder import Encoder, Vectors
from palaver.probes.recipe import SETS, Triplet
from palaver.probes.results import EncoderRow, Failure, PairTest, Part, ProbeResult, SetScore, Share, Spread
from palaver.probes.vectors import encode_texts
from palaver.progress import Progress, no_progress
from palaver.schema.run import record_run
from palaver.statistics.bootstrap import percentile_interval
from palaver.statistics.contingency import mcnemar
from palaver.statistics.significance import holm

Floats = NDArray[np.float64]
Cosines = tuple[Floats, Floats, Floats]
"""S and S+, S and S*, S+ and S*, a number per triplet."""

TIE = 1e-6
"""Cosines of single-precision vectors that differ by less are the same: order-blind encoders win nothing."""
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_FAILURES = 10


def evaluate(
    encoders: Sequence[Encoder],
    triplets: Sequence[Triplet],
    *,
    cache: Path | None = None,
    seed: int = 0,
    n_replicates: int = 10_000,
    data: dict[str, str] | None = None,
    notes: Sequence[str] = (),
    progress: Progress = no_progress,
) -> ProbeResult:
    """Every encoder on every set there are triplets of; vectors are kept in `cache`."""
    if not encoders:
        raise UserError("there is no encoder to probe", "name one or more: palaver probe minilm glove")
    if not triplets:
        raise UserError("there are no triplets to probe with", "make some with palaver probe triplets")
    if len({e.name for e in encoders}) < len(encoders):
        raise UserError("two encoders have the same name", ", ".join(e.name for e in encoders))
    began = time.perf_counter()
    by_set = {
        name: members
        for name in SETS
        if (members := [t for t in triplets if t.set == name and not t.variant])
    }
    texts = list(dict.fromkeys(text for t in triplets for text in (t.original, t.plus, t.star)))
    rows: list[EncoderRow] = []
    scores: list[SetScore] = []
    right: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for encoder in encoders:
        encoded = encode_texts(encoder, texts, folder=cache, progress=progress)
        rng = np.random.default_rng(seed)
        own = []
        for name, members in by_set.items():
            score, right[encoder.name, name] = _score_set(
                encoder.name, name, members, encoded.vectors, rng, n_replicates
            )
            own.append(score)
        scores += own
        rows.append(
            EncoderRow(
                name=encoder.name,
                provenance=encoder.provenance,
                signature=encoder.signature,
                size=len(next(iter(encoded.vectors.values()))),
                mean_accuracy=float(np.mean([s.share.accuracy for s in own])),
                n_encoded=encoded.n_new,
                encoder_seconds=encoded.encoder_seconds,
            )
        )
    rows.sort(key=lambda row: -row.mean_accuracy)
    return ProbeResult(
        encoders=tuple(rows),
        scores=tuple(scores),
        tests=tuple(compare([row.name for row in rows], right, list(by_set))),
        n_triplets={name: len(members) for name, members in by_set.items()},
        n_sentences=len(texts),
        seconds=time.perf_counter() - began,
        notes=tuple(notes) + tuple(_undefined(scores)),
        run=record_run(
            "probe",
            seed=seed,
            config={"encoders": {e.name: e.signature for e in encoders}, "replicates": n_replicates},
            data=data or {},
        ),
    )


def _score_set(
    encoder: str,
    name: str,
    triplets: Sequence[Triplet],
    vectors: dict[str, Vectors],
    rng: np.random.Generator,
    n_replicates: int,
) -> tuple[SetScore, NDArray[np.bool_]]:
    """One encoder on one set, and which triplets it orders as desired."""
    cosines = _cosines_of(triplets, vectors)
    plus, star, between = cosines
    margin = between - np.maximum(plus, star) if name == "negation-variants" else plus - star
    right = np.nan_to_num(margin, nan=-1.0) > TIE  # more than a tie: ordered as desired
    parts = []
    for by, labels in (("case", [t.case for t in triplets]), ("corpus", [t.corpus for t in triplets])):
        for label in sorted(set(labels)):
            chosen = np.array([x == label for x in labels])
            if label and (by == "case" or len(set(labels)) > 1):
                part_share = share_of(right[chosen], rng, n_replicates)
                means = _spread(plus[chosen]).mean, _spread(star[chosen]).mean
                parts.append(Part(by, label, part_share, *means))
    worst = np.argsort(np.nan_to_num(margin, nan=np.inf), kind="stable")[:_MOST_FAILURES]
    share = share_of(right, rng, n_replicates)
    other_rule = None
    if name == "argument-sensitivity":
        other_rule = share_of(plus - between > TIE, rng, n_replicates)
    score = SetScore(
        encoder=encoder,
        set=name,
        plus=_spread(plus),
        star=_spread(star),
        between=_spread(between),
        share=share,
        other_rule=other_rule,
        parts=tuple(parts),
        failures=tuple(_failure(triplets[i], cosines, margin, i) for i in worst if margin[i] <= TIE),
        n_undefined=int(np.isnan(margin).sum()),
    )
    return score, right


def _cosines_of(triplets: Sequence[Triplet], vectors: dict[str, Vectors]) -> Cosines:
    """The three cosines of every triplet; nan where a vector is zero."""
    first, plus, star = (
        np.stack([vectors[getattr(t, part)] for t in triplets]).astype(np.float64)
        for part in ("original", "plus", "star")
    )  # (n, d) each
    return _cosine(first, plus), _cosine(first, star), _cosine(plus, star)


def _cosine(a: Floats, b: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("nd,nd->n", a, a) * np.einsum("nd,nd->n", b, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines: Floats = np.where(lengths > 0, np.einsum("nd,nd->n", a, b) / lengths, np.nan)
    return cosines


def share_of(right: NDArray[np.bool_], rng: np.random.Generator, n_replicates: int = 10_000) -> Share:
    """The share of what is right. Resampling n yes/no answers is drawing from a binomial distribution."""
    n, k = len(right), int(right.sum())
    if k in (0, n):  # resampling shows no spread; the exact interval (Clopper & Pearson 1934) does
        edge = 0.025 ** (1 / n)
        low, high = (edge, 1.0) if k else (0.0, 1 - edge)
        return Share(k, n, low, high, "exact")
    interval = percentile_interval(rng.binomial(n, k / n, n_replicates) / n)
    return Share(k, n, interval.low, interval.high, "bootstrap")


def _spread(values: Floats) -> Spread:
    defined = values[np.isfinite(values)]
    if not defined.size:
        return Spread(float("nan"), (float("nan"),) * len(_QUANTILES))
    return Spread(float(defined.mean()), tuple(float(q) for q in np.quantile(defined, _QUANTILES)))


def _failure(triplet: Triplet, cosines: Cosines, margin: Floats, i: int) -> Failure:
    a, b, c = (float(values[i]) for values in cosines)
    return Failure(triplet.id, triplet.original, triplet.plus, triplet.star, (a, b, c), float(margin[i]))


def compare(
    names: Sequence[str], right: dict[tuple[str, str], NDArray[np.bool_]], sets: Sequence[str]
) -> list[PairTest]:
    """McNemar for every two encoders on every set, Holm over the pairs of a set."""
    pair_tests = []
    for name in sets:
        pairs = list(combinations(names, 2))
        tests = []
        for a, b in pairs:
            x, y = right[a, name], right[b, name]
            tests.append(mcnemar(int((x & ~y).sum()), int((~x & y).sum())))
        adjusted: Sequence[float] = holm([t.p for t in tests]).adjusted.tolist() if tests else []
        for (a, b), test, p in zip(pairs, tests, adjusted, strict=True):
            pair_tests.append(PairTest(name, a, b, test.b, test.c, test.p, p, test.reason))
    return pair_tests


def _undefined(scores: Sequence[SetScore]) -> list[str]:
    return [
        f"{s.encoder}: {s.n_undefined} triplets of {SETS[s.set].title} have a text with a vector of zeros; "
        "they count as not ordered as desired"
        for s in scores
        if s.n_undefined
    ]
