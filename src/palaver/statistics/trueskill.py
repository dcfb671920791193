"""TrueSkill for two players with draws: Herbrich, Minka & Graepel (2006), "TrueSkill: a Bayesian skill
rating system", the closed two-player update with the functions v and w of its figure 2.

A skill is normal(mu, sigma^2); a performance adds noise beta; a draw is a difference of performances
within a margin that gives two equal players the draw probability; tau is added before each comparison.
The ratings depend on the order of the comparisons, which is why the rank groups shuffle it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Interval, check_confidence, percentile_interval
from palaver.statistics.ranking import (
    Comparisons,
    RankGroup,
    as_comparisons,
    check_codes,
    check_replicates,
    rank_groups,
    win_fractions,
)

Floats = NDArray[np.float64]
_SHARE_LIMIT = 1e-3
"""An observed share of draws is kept this far from 0 and 1, where the margin is zero or infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueSkillSettings:
    """The model's constants; `draw_probability="observed"` takes the share of draws in the data."""

    mu: float = 25.0
    sigma: float = 25 / 3
    beta: float = 25 / 6
    tau: float = 25 / 300
    draw_probability: float | Literal["observed"] = 0.10

    def __post_init__(self) -> None:
        if not (self.sigma > 0 and self.beta > 0 and self.tau >= 0):
            raise ValueError(
                "sigma and beta must be above 0 and tau not below; "
                f"found {self.sigma}, {self.beta}, {self.tau}"
            )
        share = self.draw_probability
        if share != "observed" and (isinstance(share, str) or not 0 <= share < 1):
            raise ValueError(f'draw_probability must be "observed" or from 0 to below 1, found {share!r}')


_DEFAULT = TrueSkillSettings()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrueSkillResult:
    """Skills after all comparisons, in the order given."""

    mu: Floats
    sigma: Floats
    conservative: Floats
    """mu - 3 sigma: a skill the system very probably has."""
    games: NDArray[np.int64]
    """Comparisons each system took part in."""
    n_systems: int
    n_comparisons: int
    draw_probability: float
    settings: TrueSkillSettings
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrueSkillGroups:
    """Skills over bootstrap samples of items, how often each system came out above each, and the places."""

    systems: tuple[str, ...]
    mu: Floats
    """Mean over the replicates; nan for a system without comparisons."""
    intervals: tuple[Interval, ...]
    wins: Floats
    groups: tuple[RankGroup, ...]
    n_items: int
    n_comparisons: int
    n_replicates: int
    confidence: float
    draw_probability: float
    settings: TrueSkillSettings
    reason: str = ""
    notes: tuple[str, ...] = ()


def update(
    mu1: float,
    sigma1: float,
    mu2: float,
    sigma2: float,
    outcome: int,
    settings: TrueSkillSettings = _DEFAULT,
) -> tuple[float, float, float, float]:
    """New mu1, sigma1, mu2, sigma2 after one comparison (1: the first won, 0: a draw, -1: the second won)."""
    from palaver.statistics._ranking_kernels import rate

    if outcome not in (-1, 0, 1):
        raise ValueError(f"outcome must be 1, 0 or -1, found {outcome}")
    if settings.draw_probability == "observed":
        raise ValueError("one comparison has no share of draws to observe: give a draw_probability")
    constants = _constants(settings, settings.draw_probability)
    new1, var1, new2, var2 = rate(
        float(mu1), float(sigma1) ** 2, float(mu2), float(sigma2) ** 2, int(outcome), *constants
    )
    return new1, var1**0.5, new2, var2**0.5


def trueskill(
    comparisons: Comparisons | tuple[ArrayLike, ArrayLike, ArrayLike],
    n_systems: int,
    settings: TrueSkillSettings = _DEFAULT,
) -> TrueSkillResult:
    """Rate `n_systems` by comparisons, or by (first, second, outcome), one after the other."""
    from palaver.statistics._ranking_kernels import rate_all

    data = _checked(comparisons, n_systems)
    share = _draw_share(data, settings)
    mu, var = np.full(n_systems, settings.mu), np.full(n_systems, settings.sigma**2)
    games = np.zeros(n_systems, dtype=np.int64)
    rate_all(data.first, data.second, data.outcome, mu, var, games, *_constants(settings, share))
    sigma = np.sqrt(var)
    idle = int((games == 0).sum())
    return TrueSkillResult(
        mu=mu,
        sigma=sigma,
        conservative=mu - 3 * sigma,
        games=games,
        n_systems=n_systems,
        n_comparisons=len(data),
        draw_probability=share,
        settings=settings,
        notes=(
            *data.notes,
            *([f"{idle} of the systems without comparisons: left at the prior"] if idle else []),
        ),
    )


def trueskill_groups(
    comparisons: Comparisons | tuple[ArrayLike, ArrayLike, ArrayLike],
    systems: Sequence[str],
    *,
    by: ArrayLike | None = None,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    settings: TrueSkillSettings = _DEFAULT,
    rng: np.random.Generator | int,
) -> TrueSkillGroups:
    """Rank groups by bootstrap over items: all comparisons of a drawn item come along, in random order.

    `by` is the item's code of each comparison, `item_of_screen[comparisons.screen]`; without it the
    screens are resampled, which takes raters of the same item for independent.
    """
    from palaver.statistics._ranking_kernels import rate_replicates

    check_confidence(confidence)
    check_replicates(n_replicates)
    n_systems = len(systems)
    data = _checked(comparisons, n_systems)
    items = data.screen if by is None else np.asarray(by)
    if items.shape != data.first.shape:
        raise ValueError(f"by must give one item for each of {len(data)} comparisons, found {items.shape}")
    order = np.argsort(items, kind="stable")
    _, starts = np.unique(items[order], return_index=True)
    share = _draw_share(data, settings)
    met = np.isin(np.arange(n_systems), np.concatenate([data.first, data.second]))
    samples = np.full((n_replicates, n_systems), np.nan)
    reason = ""
    if starts.size < 2:
        reason = f"{'one item' if starts.size else 'no comparisons'}: there is nothing to resample"
    else:
        samples = rate_replicates(
            data.first[order],
            data.second[order],
            data.outcome[order],
            np.append(starts, len(data)),
            np.full(n_systems, settings.mu),
            np.full(n_systems, settings.sigma**2),
            *_constants(settings, share),
            n_replicates,
            np.random.default_rng(rng).integers(1, 2**63, dtype=np.uint64),
        )
    defined = np.isfinite(samples)
    mu = np.where(defined, samples, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    mu[~defined.any(axis=0)] = np.nan
    wins = win_fractions(samples)
    return TrueSkillGroups(
        systems=tuple(systems),
        mu=mu,
        intervals=tuple(percentile_interval(column, confidence) for column in samples.T),
        wins=wins,
        groups=rank_groups(mu, wins, systems, confidence),
        n_items=int(starts.size),
        n_comparisons=len(data),
        n_replicates=n_replicates,
        confidence=confidence,
        draw_probability=share,
        settings=settings,
        reason=reason,
        notes=(
            *data.notes,
            *(f"{name} has no comparisons" for name, there in zip(systems, met, strict=True) if not there),
        ),
    )


def _checked(
    comparisons: Comparisons | tuple[ArrayLike, ArrayLike, ArrayLike], n_systems: int
) -> Comparisons:
    data = comparisons if isinstance(comparisons, Comparisons) else as_comparisons(*comparisons)
    check_codes(data, n_systems)
    return data


def _draw_share(data: Comparisons, settings: TrueSkillSettings) -> float:
    if settings.draw_probability != "observed":
        return float(settings.draw_probability)
    share = float((data.outcome == 0).mean()) if len(data) else 0.0
    return min(max(share, _SHARE_LIMIT), 1 - _SHARE_LIMIT)


def _constants(settings: TrueSkillSettings, draw_probability: float) -> tuple[float, float, float]:
    """Noise of a difference, drift, and draw margin (Herbrich et al. 2006, section 3)."""
    margin = NormalDist().inv_cdf((draw_probability + 1) / 2) * 2**0.5 * settings.beta
    return 2 * settings.beta**2, settings.tau**2, margin
