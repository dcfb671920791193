"""Tables 2 to 6: mean cosines, and in how many triplets they are ordered as desired (section 3.3).

An encoder notices a difference in meaning if S (the original) is nearer to S+ than to S*. In Negation
Variants both S+ and S* are negations, and they should be nearer to each other than either is to S.

Of Argument Sensitivity section 2.2 says that S and S+ should be nearer than S+ and S*. Table 5 cannot have
been counted so: averages, for which S and S* are nearly the same (99.96 %), would then be right about half
the time and not never, and SkipThought, whose mean of S and S+ is the larger one, more often than in 4.71 %.
It fits the rule of the other sets, which is used here; the other count stands beside it (`other_rule`).

Variants of the triplets (`recipe.VARIANTS`) are scored beside the paper's triplets of the same sentences. One
is made here for every set, the control of case: S* is S itself with its first letter in the other case. An
encoder that finds S+ nearer than that notices the letter more than the meaning.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palaver.engine import Engine
from palaver.errors import UserError
from palaver.models.encoders.encoder import Encoder, Vectors
from palaver.probes.recipe import SETS, VARIANTS, Triplet
from palaver.probes.results import (
    EncoderRow,
    Failure,
    PairScore,
    PairTest,
    Part,
    ProbeResult,
    SetScore,
    Share,
    Spread,
    VariantScore,
)
from palaver.probes.triplets import case_control
from palaver.probes.vectors import encode_texts
from palaver.progress import Progress, no_progress
from palaver.schema.run import record_run
from palaver.statistics.bootstrap import percentile_interval, resample_sums
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
    engine: Engine | str = "local",
    openers: Mapping[str, Callable[[], Encoder]] | None = None,
    progress: Progress = no_progress,
) -> ProbeResult:
    """Every encoder on every set there are triplets of; vectors are kept in `cache`.

    Workers of an `engine` open the encoders themselves, by `openers`; one without is sent to them.
    """
    if not encoders:
        raise UserError("there is no encoder to probe", "name one or more: palaver probe minilm glove")
    if all(t.variant for t in triplets):
        raise UserError("there are no triplets to probe with", "make some with palaver probe triplets")
    if len({e.name for e in encoders}) < len(encoders):
        raise UserError("two encoders have the same name", ", ".join(e.name for e in encoders))
    began = time.perf_counter()
    groups = _group_by_set(triplets)
    texts = list(dict.fromkeys(text for group in groups.values() for text in group.texts()))
    rows: list[EncoderRow] = []
    scores: list[SetScore] = []
    right: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for encoder in encoders:
        opener = (openers or {}).get(encoder.name)
        encoded = encode_texts(encoder, texts, folder=cache, engine=engine, opener=opener, progress=progress)
        rng = np.random.default_rng(seed)
        own = []
        for name, group in groups.items():
            score, right[encoder.name, name] = _score_set(
                encoder.name, name, group, encoded.vectors, rng, n_replicates
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
        tests=tuple(compare([row.name for row in rows], right, list(groups))),
        n_triplets={name: len(group.triplets) for name, group in groups.items()},
        corpora={name: dict(Counter(t.corpus for t in group.triplets)) for name, group in groups.items()},
        n_sentences=len(texts),
        seconds=time.perf_counter() - began,
        notes=(*notes, *_left_out(triplets, groups), *_undefined(scores)),
        run=record_run(
            "probe",
            seed=seed,
            config={"encoders": {e.name: e.signature for e in encoders}, "replicates": n_replicates},
            data=data or {},
        ),
    )


@dataclass(frozen=True)
class _Group:
    """The triplets of one set."""

    triplets: list[Triplet]
    """Those that are counted as the paper's."""
    variants: dict[str, list[tuple[int, Triplet]]]
    """Name of the variant -> place of the triplet it is a variant of, and the variant."""

    def texts(self) -> Iterator[str]:
        variants = [t for members in self.variants.values() for _, t in members]
        for t in (*self.triplets, *variants):
            yield from (t.original, t.plus, t.star)


def _group_by_set(triplets: Sequence[Triplet]) -> dict[str, _Group]:
    """The sets there are triplets of, with their variants and the control of case."""
    groups = {}
    for name in SETS:
        counted = [t for t in triplets if t.set == name and not t.variant]
        if not counted:
            continue
        given = [t for t in triplets if t.set == name and t.variant and t.variant != "case"]
        place = {t.id: n for n, t in enumerate(counted)}
        variants: dict[str, list[tuple[int, Triplet]]] = {variant: [] for variant in VARIANTS}
        for t in (*given, *case_control(counted)):
            original = t.id.removesuffix(f":{t.variant}")
            if original in place:
                variants.setdefault(t.variant, []).append((place[original], t))
        groups[name] = _Group(counted, {variant: members for variant, members in variants.items() if members})
    return groups


def _score_set(
    encoder: str,
    name: str,
    group: _Group,
    vectors: dict[str, Vectors],
    rng: np.random.Generator,
    n_replicates: int,
) -> tuple[SetScore, NDArray[np.bool_]]:
    """One encoder on one set, and which triplets it orders as desired."""
    triplets = group.triplets
    cosines = _cosines_of(triplets, vectors)
    plus, star, between = cosines
    margin = _margin(name, cosines)
    right = _is_right(margin)
    parts = []
    for by in ("case", "corpus", "relation", "pair"):
        labels = [str(getattr(t, by)) for t in triplets]
        for label in sorted(set(labels)):
            if not label or (by == "corpus" and len(set(labels)) == 1):
                continue
            chosen = np.array([x == label for x in labels])
            part_share = share_of(right[chosen], rng, n_replicates)
            means = _spread(plus[chosen]).mean, _spread(star[chosen]).mean
            parts.append(Part(by, label, part_share, *means))
    worst = np.argsort(np.nan_to_num(margin, nan=np.inf), kind="stable")[:_MOST_FAILURES]
    share = share_of(right, rng, n_replicates)
    other_rule = None
    if name == "argument-sensitivity":
        other_rule = share_of(plus - between > TIE, rng, n_replicates)
    variants = [
        _score_variant(variant, members, name, right, vectors, rng, n_replicates)
        for variant, members in group.variants.items()
    ]
    score = SetScore(
        encoder=encoder,
        set=name,
        plus=_spread(plus),
        star=_spread(star),
        between=_spread(between),
        share=share,
        other_rule=other_rule,
        parts=tuple(parts),
        pairs=_score_pairs([p.share for p in parts if p.by == "pair"], rng, n_replicates),
        variants=tuple(variants),
        failures=tuple(_failure(triplets[i], cosines, margin, i) for i in worst if margin[i] <= TIE),
        n_undefined=int(np.isnan(margin).sum()),
    )
    return score, right


def _margin(name: str, cosines: Cosines) -> Floats:
    """By how much a triplet is ordered as desired."""
    plus, star, between = cosines
    return between - np.maximum(plus, star) if name == "negation-variants" else plus - star


def _is_right(margin: Floats) -> NDArray[np.bool_]:
    """More than a tie: ordered as desired."""
    right: NDArray[np.bool_] = np.nan_to_num(margin, nan=-1.0) > TIE
    return right


def _score_variant(
    variant: str,
    members: Sequence[tuple[int, Triplet]],
    name: str,
    right: NDArray[np.bool_],
    vectors: dict[str, Vectors],
    rng: np.random.Generator,
    n_replicates: int,
) -> VariantScore:
    cosines = _cosines_of([t for _, t in members], vectors)
    # The control asks the same of every set: is S+ nearer to S than S in another case is?
    margin = cosines[0] - cosines[1] if variant == "case" else _margin(name, cosines)
    varied, same = _is_right(margin), right[[n for n, _ in members]]
    return VariantScore(
        name=variant,
        share=share_of(varied, rng, n_replicates),
        same=share_of(same, rng, n_replicates),
        plus=_spread(cosines[0]).mean,
        star=_spread(cosines[1]).mean,
        p=mcnemar(int((varied & ~same).sum()), int((~varied & same).sum())).p,
    )


def _score_pairs(pairs: Sequence[Share], rng: np.random.Generator, n_replicates: int) -> PairScore | None:
    """Pairs of verbs are drawn with replacement, each with all its triplets."""
    if len(pairs) < 2:
        return None
    table = np.array([[p.right, p.n, p.accuracy] for p in pairs])  # (pairs, 3)
    sums = resample_sums(table, n_replicates, rng)  # (replicates, 3)
    accuracy = percentile_interval(sums[:, 0] / sums[:, 1])
    mean = percentile_interval(sums[:, 2] / len(pairs))
    return PairScore(len(pairs), accuracy.low, accuracy.high, float(table[:, 2].mean()), mean.low, mean.high)


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


def _left_out(triplets: Sequence[Triplet], groups: Mapping[str, _Group]) -> list[str]:
    """Variants in a file that does not hold the triplet they are a variant of."""
    given = sum(bool(t.variant) and t.variant != "case" for t in triplets)
    used = sum(
        len(members)
        for group in groups.values()
        for name, members in group.variants.items()
        if name != "case"
    )
    if given == used:
        return []
    return [f"{given - used} variants were left out: the triplets they are variants of are not there"]


def _undefined(scores: Sequence[SetScore]) -> list[str]:
    return [
        f"{s.encoder}: {s.n_undefined} triplets of {SETS[s.set].title} have a text with a vector of zeros; "
        "they count as not ordered as desired"
        for s in scores
        if s.n_undefined
    ]
