"""How distinguishable are characters by what they say? After Xing & Fernández (2018), and beyond.

Theirs (section 4): 250 samples of 500 utterances of each character, each a vector of five traits; an RBF SVM
recovers the character, 5-fold cross-validation, ten times; shuffled labels as baseline, the 200 most frequent
words in place of traits as control. Samples are drawn anew for each of the ten repetitions.

Beyond it, because samples of one finite pool overlap, so that even pools dealt out at random can be told
apart: pseudo-characters, the same utterances dealt out anew; a split by group (episode, context), so that no
utterance is on both sides; and an interval over resampled pools.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from palaver.engine import Engine, map_shards
from palaver.errors import require
from palaver.personality.plan import Kind, Plan, Result, Settings, Task, draw_seeds, generator
from palaver.personality.pools import Pools, check_sizes
from palaver.personality.results import (
    Character,
    CharacterScore,
    Condition,
    ConditionTest,
    Distinguishability,
    prf,
)
from palaver.personality.samples import Floats
from palaver.personality.svm import Outcome
from palaver.personality.verdict import judge
from palaver.progress import Progress, no_progress
from palaver.schema import record_run
from palaver.statistics.significance import compare_means


def run_protocol(
    pools: Pools, settings: Settings | None = None, *, progress: Progress | None = None
) -> Distinguishability:
    """Run the whole protocol on the pools of some characters."""
    s = settings or Settings()
    check_sizes(pools, s.size)
    plan = Plan(pools, s)
    progress = progress or no_progress
    outcomes: dict[Kind, list[Outcome]] = {}
    for kind, outcome in _run(plan.tasks(), s, "classifying samples", progress):
        outcomes.setdefault(kind, []).append(outcome)
    best = _usual_c(outcomes.get(Kind(split="groups"), []))
    resampled = _pairs(list(_run(plan.replicates(best), s, "resampling pools", progress)))
    conditions = {
        kind.name: _condition(kind, results, pools, s, plan.size_by_group)
        for kind, results in outcomes.items()
    }
    return Distinguishability(
        title=pools.source,
        recogniser=pools.recogniser,
        group_noun=pools.group_noun,
        characters=tuple(estimate_traits(pools, s)),
        conditions=tuple(conditions.values()),
        tests=tuple(_tests(conditions)),
        verdict=judge(conditions, resampled, pools.group_noun, s.confidence, plan.no_groups),
        classifier=s.classifier,
        resampled=tuple(map(tuple, resampled.tolist())),
        left_out=pools.left_out,
        notes=(*pools.notes, *plan.notes()),
        run=record_run(
            "personality distinguish",
            seed=s.seed,
            config={
                **{k: v for k, v in asdict(s).items() if k not in ("seed", "engine")},
                "recogniser": pools.recogniser,
                "characters": pools.characters,
                "left out": pools.left_out,
            },
            data=pools.hashes,
            packages=("palaver", "numpy", "scipy", "scikit-learn"),
        ),
    )


def _run(tasks: Sequence[Task], settings: Settings, what: str, progress: Progress) -> Iterator[Result]:
    """In threads, for drawing and training let go of Python's lock; the matrix library then needs none."""
    options: Any = {"engine": Engine.of(settings.engine).in_threads(), "what": what, "progress": progress}
    with require("threadpoolctl", "models").threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Stochastic Optimizer")  # a perceptron stops after 200 epochs
        for results in map_shards(lambda task: task(), tasks, **options):
            yield from results


def _usual_c(outcomes: Sequence[Outcome]) -> float:
    chosen = Counter(c for outcome in outcomes for c in outcome.chosen)
    return max(chosen, key=lambda c: (chosen[c], -c), default=1.0)


def estimate_traits(pools: Pools, settings: Settings) -> Iterator[Character]:
    """Section 3.1: the mean over 50 samples of 500 is the character's personality."""
    for number, (name, rows) in enumerate(zip(pools.characters, pools.members, strict=True)):
        seeds = draw_seeds(generator(settings.seed, "ocean", number), 1)
        scores = pools.traits.of([rows], settings.ocean_samples, settings.size, seeds)
        yield Character(
            name=name,
            n_utterances=rows.size,
            n_groups=pools.n_groups_of[number],
            ocean=tuple(scores.mean(axis=0).tolist()),
            ocean_sd=tuple(scores.std(axis=0, ddof=1).tolist() if len(scores) > 1 else [math.nan] * 5),
        )


def _condition(
    kind: Kind, outcomes: Sequence[Outcome], pools: Pools, settings: Settings, size_by_group: int
) -> Condition:
    each = np.stack([prf(outcome.confusion) for outcome in outcomes])  # (repetitions, 3, characters)
    mean, sd = each.mean(axis=0), each.std(axis=0, ddof=1)
    repetitions = each[:, 2].mean(axis=1)
    counts = sum(outcome.confusion for outcome in outcomes).astype(np.float64)  # type: ignore[union-attr]
    chosen = Counter(f"{c:g}" for outcome in outcomes for c in outcome.chosen)
    precision, recall, f1 = mean.mean(axis=1).tolist()
    sigma = mean.std(axis=1, ddof=1).tolist()
    return Condition(
        name=kind.name,
        **asdict(kind),
        n_samples=settings.samples,
        size=size_by_group if kind.split == "groups" else settings.size,
        precision=precision,
        recall=recall,
        f1=f1,
        precision_sigma=sigma[0],
        recall_sigma=sigma[1],
        f1_sigma=sigma[2],
        f1_sd=float(repetitions.std(ddof=1)),
        characters=tuple(
            CharacterScore(
                character=name,
                precision=mean[0, i],
                recall=mean[1, i],
                f1=mean[2, i],
                precision_sd=sd[0, i],
                recall_sd=sd[1, i],
                f1_sd=sd[2, i],
            )
            for i, name in enumerate(pools.characters)
        ),
        repetitions=tuple(repetitions.tolist()),
        confusion=tuple(map(tuple, (counts / counts.sum(axis=1, keepdims=True)).tolist())),
        chosen_c=dict(sorted(chosen.items(), key=lambda pair: float(pair[0]))),
    )


def _pairs(results: Sequence[Result]) -> Floats:
    """F1 of the characters and of the pseudo-characters in each resampled pool, (pools, 2)."""
    f_scores = [float(prf(outcome.confusion)[2].mean()) for _, outcome in results]
    return np.array(f_scores).reshape(-1, 2)


_COMPARED = (
    ("characters", "shuffled labels"),
    ("characters", "pseudo-characters"),
    ("characters", "words"),
    ("characters", "words, unscaled"),
    ("words", "words without stop words"),
    ("characters by group", "pseudo-characters by group"),
    ("characters by group", "words by group"),
    ("characters", "characters by group"),
)


def _tests(conditions: Mapping[str, Condition]) -> Iterator[ConditionTest]:
    for a, b in _COMPARED:
        if a in conditions and b in conditions:
            test = compare_means(conditions[a].repetitions, conditions[b].repetitions)
            yield ConditionTest(a=a, b=b, test=test)
