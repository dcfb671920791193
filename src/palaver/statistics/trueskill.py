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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import (
    Floats,
    Ints,
    Rng,
    check_fraction,
    check_replicates,
    resample_sums,
)
from palaver.statistics.codes import dense_codes
from palaver.statistics.ranking import (
    MOST_CELLS,
    Comparisons,
    Ranking,
    as_comparisons,
    check_codes,
    counts_by_item,
    items_of_systems,
    limit_wins,
    number_pairs,
    win_fractions,
    win_matrix,
)
from palaver.tabular import Tabular

if TYPE_CHECKING:
    from palaver.statistics._ranking_kernels import Model

_SHARE_LIMIT = 1e-3
"""An observed share of draws is kept this far from 0 and 1, where the margin is zero or infinite."""
_MOST_SINGLE = 2**15
"""Up to this many comparisons the bootstrap rates each by itself."""
_N_SINGLE = 2**12
_GROWTH = 0.02
"""Beyond it the first `_N_SINGLE` are, and then blocks of this share of what has been rated."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TrueSkillResult(Tabular):
    """Skills after all comparisons, in the order given."""

    mu: Floats
    sigma: Floats
    games: NDArray[np.int64]
    """Comparisons each system took part in."""
    n_systems: int
    n_comparisons: int
    draw_probability: float
    settings: TrueSkillSettings
    reason: str = ""
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        return f"{self.n_systems:,} systems, {self.n_comparisons:,} comparisons"

    def _tables(self) -> dict[str, Any]:
        systems = np.arange(self.n_systems)
        return {"skills": {"system": systems, "mu": self.mu, "sigma": self.sigma, "games": self.games}}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TrueSkillGroups(Ranking):
    """Systems by their skills over bootstrap samples of items."""

    mu: Floats
    """Mean over the replicates; nan for a system without comparisons."""
    n_comparisons: int
    draw_probability: float
    settings: TrueSkillSettings

    @property
    def scores(self) -> Floats:
        return self.mu


def trueskill(
    comparisons: Comparisons | tuple[ArrayLike, ArrayLike, ArrayLike],
    n_systems: int,
    settings: TrueSkillSettings = _DEFAULT,
) -> TrueSkillResult:
    """Rate `n_systems` by comparisons, or by (first, second, outcome), one after the other."""
    from palaver.statistics._ranking_kernels import rate_all

    data = _checked(comparisons, n_systems)
    share = _draw_share(data, settings)
    model = _model(settings, share)
    mu, var = np.full(n_systems, model.mu), np.full(n_systems, model.var)
    games = np.zeros(n_systems, dtype=np.int64)
    rate_all(data.first, data.second, data.outcome, mu, var, games, model)
    idle = int((games == 0).sum())
    return TrueSkillResult(
        mu=mu,
        sigma=np.sqrt(var),
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
    rng: Rng,
) -> TrueSkillGroups:
    """Rank groups by bootstrap over items: all comparisons of a drawn item come along, in random order.

    `by` is the item's code of each comparison, `item_of_screen[comparisons.screen]`; without it the
    screens are resampled, which takes raters of the same item for independent.
    """
    check_fraction("confidence", confidence)
    check_replicates(n_replicates)
    n_systems = len(systems)
    data = _checked(comparisons, n_systems)
    items = data.screen if by is None else np.asarray(by)
    if items.shape != data.first.shape:
        raise ValueError(f"by must give one item for each of {len(data)} comparisons, found {items.shape}")
    item, n_items = dense_codes("by", items)
    games = _Games(data, item, n_items, n_systems, settings, _draw_share(data, settings))
    samples = np.full((n_replicates, n_systems), np.nan)
    reason = ""
    if n_items < 2:
        reason = f"{'one item' if n_items else 'no comparisons'}: there is nothing to resample"
    else:
        n_kinds = 3 * n_systems * (n_systems - 1) // 2
        together = len(data) > _MOST_SINGLE and settings.tau == 0 and n_items * n_kinds <= MOST_CELLS
        resample = _resample_counts if together else _resample_comparisons
        samples = resample(games, n_replicates, np.random.default_rng(rng))
    n_met = win_matrix(data, n_systems).games
    defined = np.isfinite(samples)
    mu = np.where(defined, samples, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    mu[~defined.any(axis=0)] = np.nan
    return TrueSkillGroups.from_samples(
        samples,
        mu,
        systems,
        wins=limit_wins(win_fractions(samples), items_of_systems(data, item, n_systems)),
        confidence=confidence,
        mu=mu,
        n_items=n_items,
        n_comparisons=len(data),
        draw_probability=games.draw_probability,
        settings=settings,
        reason=reason,
        notes=(
            *data.notes,
            *(f"{name} has no comparisons" for name, n in zip(systems, n_met, strict=True) if not n),
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Games:
    """Comparisons by item, and the model that rates them."""

    data: Comparisons
    item: Ints
    n_items: int
    n_systems: int
    settings: TrueSkillSettings
    draw_probability: float


def _resample_comparisons(games: _Games, n_replicates: int, rng: np.random.Generator) -> Floats:
    """Final skills of bootstrap samples of items, every comparison rated by itself."""
    from palaver.statistics._ranking_kernels import rate_replicates

    data = games.data
    order = np.argsort(games.item, kind="stable")
    return np.asarray(
        rate_replicates(
            data.first[order],
            data.second[order],
            data.outcome[order],
            np.searchsorted(games.item[order], np.arange(games.n_items + 1)),
            games.n_systems,
            _model(games.settings, games.draw_probability),
            n_replicates,
            rng.integers(1, 2**63, dtype=np.uint64),
        )
    )


def _resample_counts(games: _Games, n_replicates: int, rng: np.random.Generator) -> Floats:
    """The same for very many comparisons, which are counted first and then rated in growing blocks.

    In a random order only the number of comparisons of each kind matters. Without drift each comparison
    moves the skills by less than the one before, so that blocks in proportion to what has been rated give
    the same skills up to a small part of their standard error.
    """
    from palaver.statistics._ranking_kernels import rate_counts

    left, right = np.triu_indices(games.n_systems, 1)
    pair = number_pairs(left, right, games.n_systems)
    adds = counts_by_item(games.data, games.item, games.n_items, pair)
    return np.asarray(
        rate_counts(
            left,
            right,
            resample_sums(adds, n_replicates, rng),
            games.n_systems,
            _model(games.settings, games.draw_probability),
            _N_SINGLE,
            _GROWTH,
            rng.integers(1, 2**63, dtype=np.uint64),
        )
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


def _model(settings: TrueSkillSettings, draw_probability: float) -> Model:
    """Herbrich et al. 2006, section 3."""
    from palaver.statistics._ranking_kernels import Model

    return Model(
        mu=float(settings.mu),
        var=float(settings.sigma**2),
        noise=float(2 * settings.beta**2),
        drift=float(settings.tau**2),
        margin=NormalDist().inv_cdf((draw_probability + 1) / 2) * 2**0.5 * settings.beta,
    )
