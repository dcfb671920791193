"""The usual arena interval: every vote counts as independent, though prompts and people come back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from grids import STRENGTHS, Generator, Row, rate, stream

from palaver.statistics.prediction_powered_pairs import Comparisons, Verdicts, prediction_powered_strengths

Z90 = 1.6448536269514722
NOBODY = Verdicts(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.float64, np.int64)))


def arena_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Coverage of 90% intervals of differences of strengths; people differ in what they like."""
    for n_prompts, n_people, each in ((60, 20, 10), (200, 40, 10)):
        truth = [
            pair.people.value
            for pair in _strengths(20_000, 2_000, 2, stream(seed, "arena truth", n_prompts)).pairs
        ]
        rng = stream(seed, "arena", n_prompts)
        covered = {"clustered": 0, "votes as independent": 0}
        total = 0
        for _ in range(n_studies):
            found = _strengths(n_prompts, n_people, each, rng)
            if found.reason:
                continue
            for pair, expected in zip(found.pairs, truth, strict=True):
                own = pair.people
                total += 1
                covered["clustered"] += own.low <= expected <= own.high
                covered["votes as independent"] += abs(own.value - expected) <= Z90 * own.se_rows
        yield {
            "prompts": n_prompts,
            "people": n_people,
            "votes": 3 * n_prompts * each,
            "coverage": {name: rate(hits, total) for name, hits in covered.items()},
        }


def _strengths(n: int, n_people: int, each: int, rng: Generator):
    first, second = np.tile([0, 0, 1], n), np.tile([1, 2, 2], n)
    prompt = np.repeat(np.arange(n), 3)
    gap = STRENGTHS[first] - STRENGTHS[second]
    quality = 0.7 * rng.standard_normal((n, 3))  # of each system's answer to each prompt
    gap = gap + quality[prompt, first] - quality[prompt, second]
    rows = np.repeat(np.arange(gap.size), each)
    person = rng.integers(0, n_people, rows.size)
    liking = 0.5 * rng.standard_normal((n_people, 3))
    heard = gap[rows] + liking[person, first[rows]] - liking[person, second[rows]]
    heard += rng.logistic(size=rows.size)
    won = np.where(np.abs(heard) < 0.3, 0.5, (heard > 0).astype(float))
    compared = Comparisons(
        first[rows], second[rows], won, np.zeros(rows.size), prompt[rows], person, np.zeros(rows.size)
    )
    return prediction_powered_strengths(compared, NOBODY, ["a", "b", "c"], confidence=0.9)
