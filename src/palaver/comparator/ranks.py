"""Systems ranked by the scores of their dialogues: the comparator is a rater like any other.

The same bootstrap and the same TrueSkill as for people's ratings. Every dialogue is one of its own, so the
bootstrap resamples dialogues; TrueSkill sees comparisons of dialogues of different systems drawn at random
(or, where dialogues belong to sittings, of the same sitting), won by the higher score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.errors import DataError
from palaver.statistics.ranking import (
    PairedBootstrap,
    WinMatrix,
    comparisons_from_scores,
    paired_bootstrap,
    win_matrix,
)
from palaver.statistics.trueskill import TrueSkillGroups, TrueSkillSettings, trueskill_groups

Floats = NDArray[np.float64]

STATIC = TrueSkillSettings(tau=0.0, draw_probability="observed")
"""Systems do not learn from being scored."""
_FEWEST = 2


@dataclass(frozen=True)
class SystemRow:
    """One system: its dialogues' mean score, and how often it beats a dialogue of another system."""

    system: str
    n: int
    mean: float
    low: float
    high: float
    win_rate: float
    skill: float
    skill_low: float
    skill_high: float


@dataclass(frozen=True)
class Ranking:
    """Best system first, and the places that the dialogues can tell apart."""

    systems: tuple[SystemRow, ...]
    bootstrap: PairedBootstrap
    trueskill: TrueSkillGroups
    n_dialogues: int
    n_screens: int
    dropped: dict[str, int]
    notes: tuple[str, ...]


def rank_systems(
    scores: ArrayLike,
    systems: Sequence[str | None],
    sittings: Sequence[str | None] | None = None,
    *,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Ranking:
    """Rank systems by their dialogues' scores. Dialogues of one sitting are compared with each other."""
    values = np.asarray(scores, dtype=np.float64)
    if len(values) != len(systems) or (sittings is not None and len(sittings) != len(values)):
        raise DataError(f"{len(values)} scores, but {len(systems)} systems")
    finite = np.isfinite(values)
    keep = [i for i, name in enumerate(systems) if name is not None and finite[i]]
    dropped = {"names no system": sum(name is None for name in systems), "no score": int((~finite).sum())}
    counts: dict[str, int] = {}
    for i in keep:
        counts[str(systems[i])] = counts.get(str(systems[i]), 0) + 1
    few = [name for name, n in counts.items() if n < _FEWEST]
    names = sorted(name for name in counts if name not in few)
    notes = [f"left out: {name} has one dialogue only" for name in few]
    if len(names) < 2:
        raise DataError(
            f"expected dialogues of at least two systems, found {len(names)}",
            "name the system of each dialogue in its field `system` (or `bot`)",
            [f"{name}: {n} dialogues" for name, n in counts.items()],
        )
    code = {name: k for k, name in enumerate(names)}
    keep = [i for i in keep if systems[i] in code]
    y = values[keep]
    which = np.array([code[str(systems[i])] for i in keep])
    rng = np.random.default_rng(seed)
    screen = _screens(which, [sittings[i] for i in keep] if sittings is not None else None, rng)
    # Without sittings the screens are mere chance, and every dialogue is an item of its own.
    item = screen if sittings is not None else np.arange(len(y))
    bootstrap = paired_bootstrap(
        _means(y, item, which, len(names)), names, n_replicates=n_replicates, confidence=confidence, rng=rng
    )
    order = np.lexsort((which, screen))
    compared = comparisons_from_scores(screen[order], which[order], y[order])
    skills = trueskill_groups(
        compared,
        names,
        n_replicates=n_replicates,
        confidence=confidence,
        settings=STATIC,
        rng=rng,
    )
    wins = win_matrix(compared, len(names))
    rows = []
    for k in np.argsort(-bootstrap.means, kind="stable"):
        interval = bootstrap.intervals[k]
        rows.append(
            SystemRow(
                names[k],
                int((which == k).sum()),
                float(bootstrap.means[k]),
                interval.low,
                interval.high,
                *_rates(wins, skills, int(k)),
            )
        )
    return Ranking(
        tuple(rows),
        bootstrap,
        skills,
        len(y),
        int(screen.max()) + 1,
        {reason: n for reason, n in dropped.items() if n},
        tuple(notes),
    )


def _screens(
    which: NDArray[np.int64], sittings: Sequence[str | None] | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(N,) who is compared with whom: the same sitting, or one dialogue of each system dealt at random."""
    if sittings is not None:
        known: dict[str, int] = {}
        return np.array([known.setdefault(s if s is not None else f"\0{i}", len(known))
                         for i, s in enumerate(sittings)])  # fmt: skip
    screen = np.empty(len(which), np.int64)
    for system in np.unique(which):
        rows = np.flatnonzero(which == system)
        screen[rng.permutation(rows)] = np.arange(len(rows))
    return screen


def _means(y: Floats, item: NDArray[np.int64], which: NDArray[np.int64], n_systems: int) -> Floats:
    """(items, systems) mean score of each system's dialogues on an item, nan where there are none."""
    n_items = int(item.max()) + 1
    cell = item * n_systems + which
    count = np.bincount(cell, minlength=n_items * n_systems)
    total = np.bincount(cell, y, n_items * n_systems)
    with np.errstate(invalid="ignore"):
        found = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found.reshape(n_items, n_systems)


def _rates(wins: WinMatrix, skills: TrueSkillGroups, k: int) -> tuple[float, float, float, float]:
    met = wins.wins[k].sum() + wins.wins[:, k].sum() + wins.ties[k].sum()
    rate = (wins.wins[k].sum() + wins.ties[k].sum() / 2) / met if met else float("nan")
    interval = skills.intervals[k]
    return float(rate), float(skills.mu[k]), interval.low, interval.high
