"""What the vectors of single turns say of a dialogue: coherence, repetition of meaning, mean vectors.

`coherence` compares a turn with the turn it answers, `repeat` a turn with what the same role said before.
Vectors have length 1, so every comparison is a cosine. Turns are encoded one by one: a turn that many
dialogues share is encoded once, and a dialogue without one of its turns costs no further encoding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_OF_STEPS = ("mean", "min", "sd", "max", "trend")
_OF_REPEATS = ("nearest", "nearest_max", "next", "all", "next_but_one")
FLOW: tuple[str, ...] = (
    *(f"coherence_{turns}_{name}" for turns in ("system", "user", "longer") for name in _OF_STEPS),
    *(f"repeat_{role}_{name}" for role in ("system", "user") for name in _OF_REPEATS),
    "roles_alike",
)

VECTORS: tuple[str, ...] = ("system", "user", "answers_product", "answers_distance")


MOST_TURNS = 1000
"""Every turn is compared with every other; of a longer dialogue the end is looked at."""


def flow(vectors: Floats, is_user: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Features (len(FLOW),) and mean vectors (4d,) of one dialogue.

    The means are those of the system's turns, of the user's turns, and over the system's answers of the
    product and of the distance, entry by entry, to the turn that is answered.
    """
    vectors, is_user = vectors[-MOST_TURNS:], is_user[-MOST_TURNS:]
    dim = vectors.shape[1]
    cosines = vectors @ vectors.T  # (T, T)
    system, user = np.flatnonzero(~is_user), np.flatnonzero(is_user)
    turn = np.flatnonzero(is_user[1:] != is_user[:-1]) + 1  # turns that answer the other role
    steps = cosines[turn, turn - 1]
    by_user = is_user[turn]
    later = system[system >= 3]
    longer = np.maximum(cosines[later, later - 1], cosines[later, later - 3])
    means = np.zeros((len(VECTORS), dim), np.float32)
    if len(system):
        means[0] = vectors[system].mean(0)
    if len(user):
        means[1] = vectors[user].mean(0)
    answers = turn[~by_user]
    if len(answers):
        said, asked = vectors[answers], vectors[answers - 1]
        means[2], means[3] = (said * asked).mean(0), np.abs(said - asked).mean(0)
    features = [
        *_steps(steps[~by_user]),
        *_steps(steps[by_user]),
        *_steps(longer),
        *_repeats(cosines[np.ix_(system, system)]),
        *_repeats(cosines[np.ix_(user, user)]),
        float(means[0] @ means[1]),
    ]
    return np.array(features, np.float32), means.ravel()


def _steps(values: Floats) -> tuple[float, ...]:
    if not len(values):
        return (0.0,) * len(_OF_STEPS)
    mean = float(values.mean())
    half = len(values) // 2
    trend = float(values[half:].mean() - values[:half].mean()) if half else 0.0
    return mean, float(values.min()), float(values.std()), float(values.max()), trend


def _repeats(cosines: Floats) -> tuple[float, ...]:
    n = len(cosines)
    if n < 2:
        return (0.0,) * len(_OF_REPEATS)
    before = np.tri(n, k=-1, dtype=bool)
    nearest = np.where(before, cosines, -1.0).max(1)[1:]
    following = float(np.diagonal(cosines, 1).mean())
    return (
        float(nearest.mean()),
        float(nearest.max()),
        following,
        float(cosines[before].mean()),
        float(np.diagonal(cosines, 2).mean()) if n > 2 else following,
    )
