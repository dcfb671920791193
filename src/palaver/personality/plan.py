"""The repetitions of every condition: which samples are drawn, and how training and test side are parted.

Each task draws its own samples and trains its own classifiers, so that threads can share the work. Every use
of chance has a stream of its own: leaving a condition out changes none of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from zlib import crc32

import numpy as np

from palaver.engine import Engine
from palaver.errors import UserError
from palaver.personality.classifiers import NAMES, SVM
from palaver.personality.pools import Pools
from palaver.personality.samples import Floats, Rows, Vectors
from palaver.personality.splits import by_fold, fold_groups, resample_groups, shuffle_pools, smallest_side
from palaver.personality.svm import Fold, Outcome, Side, cross_folds, run_folds

LEAST = 50
"""Utterances in a sample below which a split by group is not worth looking at."""
REPLICATE_SAMPLES = 50
"""Of each character in a resampled pool: the interval needs many pools more than many samples."""
REPLICATE_UTTERANCES = 50_000
"""Most of a character that a resampled pool is made of. A hundred samples' worth does as well as
any number: what the pool then adds to the variance of a sample is one part in a hundred."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The numbers of the protocol; the defaults are the paper's where it gives them."""

    samples: int = 250
    size: int = 500
    repetitions: int = 10
    folds: int = 5
    ocean_samples: int = 50
    replicates: int = 50
    """Resampled pools, for the interval."""
    confidence: float = 0.95
    grid: tuple[float, ...] = (0.1, 1.0, 10.0)
    """Values of C among which the training side chooses."""
    unscaled_words: bool = False
    """Also the words without scaling."""
    classifier: str = SVM
    """One of `classifiers.NAMES`."""
    seed: int = 0
    engine: Engine | str = field(default="processes", compare=False)

    def __post_init__(self) -> None:
        least = {"samples": 2 * self.folds, "size": 1, "repetitions": 2, "folds": 3, "ocean_samples": 1}
        wrong = [
            f"{name}: expected {n} or more, found {getattr(self, name)}"
            for name, n in (least | {"replicates": 0, "seed": 0}).items()
            if getattr(self, name) < n
        ]
        if self.classifier not in NAMES:
            wrong.append(f"classifier: expected {', '.join(NAMES)}, found {self.classifier!r}")
        if wrong:
            raise UserError("these settings make no protocol:", problems=wrong)


QUICK = {"samples": 100, "repetitions": 3, "replicates": 20}
"""For a first look."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a condition is; its name is built of that."""

    labels: Literal["characters", "shuffled labels", "pseudo-characters"] = "characters"
    features: str = "traits"
    split: Literal["samples", "groups"] = "samples"
    scaled: bool = True

    @property
    def name(self) -> str:
        name: str = self.features if self.features != "traits" else self.labels
        if not self.scaled:
            name += ", unscaled"
        if self.split == "groups":
            name += " by group"
        return name


Result = tuple[Kind, Outcome]
Task = Callable[[], list[Result]]


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A stream of random numbers for one use."""
    return np.random.default_rng([seed, *(crc32(k.encode()) if isinstance(k, str) else k for k in key)])


def draw_seeds(rng: np.random.Generator, n: int) -> list[int]:
    return [int(seed) for seed in rng.integers(1 << 62, size=n)]


class Plan:
    """Everything that is to be computed for some pools."""

    def __init__(self, pools: Pools, settings: Settings) -> None:
        self.pools = pools
        self.settings = settings
        s = settings
        self._folds = [self._fold_groups(pools.members, "split", r) for r in range(s.repetitions)]
        side = min(smallest_side(by_fold(pools.members, pools.group, fold, s.folds)) for fold in self._folds)
        self.size_by_group = min(s.size, side)
        self.no_groups = ""
        """Why there is no split by group, where there is none."""
        if self.size_by_group < min(LEAST, s.size):
            n_least, poorest = min(zip(pools.n_groups_of, pools.characters, strict=True))
            self.no_groups = (
                f"of {s.folds} parts by {pools.group_noun}, one has only {side} utterances of a character "
                f"({poorest} speaks in {n_least:,} {pools.group_noun}s)"
            )

    def tasks(self) -> list[Task]:
        """All repetitions of the conditions."""
        tasks: list[Task] = []
        for repetition in range(self.settings.repetitions):
            tasks.append(partial(self._by_sample, repetition))
            if not self.no_groups:
                tasks.append(partial(self._by_group, repetition))
        return tasks

    def replicates(self, c: float) -> list[Task]:
        """The split by group in resampled pools, with a C that was good for all of the data."""
        if self.no_groups:
            return []
        return [partial(self._resampled, r, c) for r in range(self.settings.replicates)]

    def _fold_groups(self, members: Sequence[Rows], *key: str | int) -> Rows:
        rng = generator(self.settings.seed, *key)
        return fold_groups(members, self.pools.group, self.pools.n_groups, self.settings.folds, rng)

    def _by_sample(self, repetition: int) -> list[Result]:
        """The paper's: all samples of a character from one pool."""
        s, pools = self.settings, self.pools
        n = len(pools.characters)
        label = np.repeat(np.arange(n), s.samples)
        seeds = draw_seeds(generator(s.seed, "samples", repetition), n)
        outcomes = []

        def cross(kind: Kind, vectors: Floats, label: Rows) -> None:
            folds = cross_folds(Side(vectors, label), s.folds, generator(s.seed, "folds", repetition))
            options: dict[str, Any] = {"scaled": kind.scaled, "seed": repetition, "classifier": s.classifier}
            outcomes.append((kind, run_folds(folds, n, s.grid, **options)))

        traits = pools.traits.of(pools.members, s.samples, s.size, seeds)
        cross(Kind(), traits, label)
        shuffled = generator(s.seed, "labels", repetition).permutation(label)
        cross(Kind(labels="shuffled labels"), traits, shuffled)
        rng = generator(s.seed, "pseudo", repetition)
        dealt = shuffle_pools(pools.members, rng)
        traits = pools.traits.of(dealt, s.samples, s.size, draw_seeds(rng, n))
        cross(Kind(labels="pseudo-characters"), traits, label)
        for features, vectors in pools.words.items():
            counts = vectors.of(pools.members, s.samples, s.size, seeds)
            for scaled in [True, False] if s.unscaled_words else [True]:
                cross(Kind(features=features, scaled=scaled), counts, label)
        return outcomes

    def _by_group(self, repetition: int) -> list[Result]:
        """No utterance, and no group, on both sides."""
        s, pools = self.settings, self.pools
        sides = by_fold(pools.members, pools.group, self._folds[repetition], s.folds)
        features: dict[str, Vectors] = {"traits": pools.traits}
        if "words" in pools.words:
            features["words"] = pools.words["words"]
        rng = generator(s.seed, "groups", repetition)
        return self._both(sides, features, s.samples, self.size_by_group, s.grid, rng)

    def _resampled(self, replicate: int, c: float) -> list[Result]:
        s, pools = self.settings, self.pools
        rng = generator(s.seed, "resample", replicate)
        members = resample_groups([_thinned(rows, rng) for rows in pools.members], pools.group, rng)
        sides = by_fold(members, pools.group, self._fold_groups(members, "resplit", replicate), s.folds)
        size = min(self.size_by_group, smallest_side(sides))
        if not size:  # nothing of a character in a part, by chance
            return []
        rng = generator(s.seed, "resampled", replicate)
        samples = max(2 * s.folds, min(s.samples, REPLICATE_SAMPLES))
        return self._both(sides, {"traits": pools.traits}, samples, size, (c,), rng)

    def _both(
        self,
        sides: Sequence[Sequence[Rows]],
        features: Mapping[str, Vectors],
        samples: int,
        size: int,
        grid: tuple[float, ...],
        rng: np.random.Generator,
    ) -> list[Result]:
        """The characters and, the utterances dealt out anew within each part, as many pseudo-characters."""
        n = len(self.pools.characters)
        tuned = len(grid) > 1 and self.settings.classifier == SVM
        by = self.settings.classifier
        folds = group_folds(sides, features, samples, size, rng, tuned=tuned)
        outcomes = [
            (Kind(features=name, split="groups"), run_folds(folds[name], n, grid, classifier=by))
            for name in features
        ]
        dealt = [shuffle_pools(side, rng) for side in sides]
        pseudo = group_folds(dealt, {"traits": self.pools.traits}, samples, size, rng, tuned=tuned)
        kind = Kind(labels="pseudo-characters", split="groups")
        outcomes.append((kind, run_folds(pseudo["traits"], n, grid, classifier=by)))
        return outcomes

    def notes(self) -> Iterator[str]:
        """What a reader should know about the pools' sizes."""
        s, pools = self.settings, self.pools
        small = [
            f"{name} ({rows.size:,})"
            for name, rows in zip(pools.characters, pools.members, strict=True)
            if rows.size < 4 * s.size
        ]
        if small:
            yield f"samples of {s.size} overlap much where there are few utterances: {', '.join(small)}"
        if self.no_groups:
            yield f"no split by {pools.group_noun}: {self.no_groups}"
        elif self.size_by_group < s.size:
            yield (
                f"split by {pools.group_noun}, samples have {self.size_by_group} utterances, as the smallest "
                "part of a character has no more"
            )


def group_folds(
    sides: Sequence[Sequence[Rows]],
    features: Mapping[str, Vectors],
    samples: int,
    size: int,
    rng: np.random.Generator,
    *,
    tuned: bool = True,
) -> dict[str, list[Fold]]:
    """Folds of samples each of whose utterances come from one side; `sides` are [fold][character].

    C is chosen on the fold after the tested one, by classifiers that learnt from the rest; fewer samples do
    for that.
    """
    n, n_folds = len(sides[0]), len(sides)
    n_test = samples // n_folds
    folds: dict[str, list[Fold]] = {name: [] for name in features}
    for k in range(n_folds):
        others = [i for i in range(n_folds) if i != k]
        parts = [(_union(sides, others), samples - n_test), (sides[k], n_test)]
        if tuned:
            held = (k + 1) % n_folds
            rest = _union(sides, [i for i in others if i != held])
            parts += [(rest, (samples - n_test) // 4), (sides[held], (n_test + 1) // 2)]
        seeds = [draw_seeds(rng, n) for _ in parts]
        for name, vectors in features.items():
            train, test, *tune = (
                Side(vectors.of(pools, count, size, seed), np.repeat(np.arange(n), count))
                for (pools, count), seed in zip(parts, seeds, strict=True)
            )
            folds[name].append(Fold(train, test, (tune[0], tune[1]) if tuned else None))
    return folds


def _thinned(rows: Rows, rng: np.random.Generator) -> Rows:
    step = -(-rows.size // REPLICATE_UTTERANCES)
    return rows if step == 1 else rows[rng.integers(step) :: step]


def _union(sides: Sequence[Sequence[Rows]], which: Sequence[int]) -> list[Rows]:
    return [np.concatenate([sides[i][c] for i in which]) for c in range(len(sides[0]))]
