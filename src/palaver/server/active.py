"""Which comparison teaches most about the order (`assignment = "active"`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from palaver.schema import Pairwise
from palaver.statistics.trueskill import TrueSkillSettings, trueskill

_SETTINGS = TrueSkillSettings(tau=0.0, draw_probability="observed")
_OUTCOME = {word: round(2 * score - 1) for word, score in Pairwise.SCORES.items()}
"""What TrueSkill calls them: 1, 0 and -1."""


def most_telling(pairs: Mapping[int, tuple[str, ...]], answers: Sequence[tuple[str, str, str]]) -> int:
    """Of the screens in `pairs` (screen -> its two systems), the one whose outcome is most open.

    TrueSkill's match quality (Herbrich et al. 2006, section 4), weighted by how unsure both skills are:
    two systems that are known to be equal have little left to say.
    """
    systems = sorted(
        {name for pair in pairs.values() for name in pair} | {n for a, b, _ in answers for n in (a, b)}
    )
    code = {name: i for i, name in enumerate(systems)}
    mu, sigma = np.full(len(systems), _SETTINGS.mu), np.full(len(systems), _SETTINGS.sigma)
    if answers:
        first, second, outcome = (
            np.array(column)
            for column in zip(*((code[a], code[b], _OUTCOME[v]) for a, b, v in answers), strict=True)
        )
        skills = trueskill((first, second, outcome), len(systems), _SETTINGS)
        mu, sigma = skills.mu, skills.sigma

    def worth(screen: int) -> float:
        a, b = (code[name] for name in pairs[screen])
        spread = sigma[a] ** 2 + sigma[b] ** 2
        total = 2 * _SETTINGS.beta**2 + spread
        return float(np.exp(-((mu[a] - mu[b]) ** 2) / (2 * total)) * spread)

    return max(pairs, key=lambda s: (worth(s), -s))
