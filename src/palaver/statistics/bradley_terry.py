"""Bradley-Terry strengths from paired comparisons, with ties, intervals and a bootstrap.

With log-strengths t and g = t_i - t_j, three ways to treat a tie:
- "half": half a win for each side of the plain model P(i beats j) = 1 / (1 + exp(-g)), Bradley & Terry
  (1952). The intervals are a little wide where there are many ties: a tie varies less than a coin.
- "rao-kupper": P(i beats j) = 1 / (1 + nu exp(-g)) with nu >= 1, Rao & Kupper (1967), equation 2.3.
- "davidson": P(tie) / sqrt(P(i beats j) P(j beats i)) = nu >= 0, Davidson (1970), equation 2.4.
Each log-likelihood is concave in (t, log nu) and depends on differences only; Newton's method with the
sum of t held at zero finds the maximum. A finite maximum exists when, however the systems are split in
two, each part has beaten (or tied with) the other: Ford (1957).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import (
    Floats,
    Interval,
    Ints,
    Rng,
    check_fraction,
    check_replicates,
    draw_blocks,
    resample_sums,
)
from palaver.statistics.codes import dense_codes
from palaver.statistics.ford_condition import Bools, is_finite, obstacle
from palaver.statistics.ranking import (
    MOST_CELLS,
    Comparisons,
    Ranking,
    WinMatrix,
    counts_by_item,
    items_of_systems,
    limit_wins,
    number_pairs,
    win_fractions,
    win_matrix,
)
from palaver.tabular import Tabular

Ties = Literal["half", "rao-kupper", "davidson"]

_NO_TIES = {"half": float("nan"), "rao-kupper": 1.0, "davidson": 0.0}
"""The tie parameter at which the model has no ties (there is none in "half")."""
_MAX_STEP = 5.0
_MAX_ITERATIONS = 100
_MAX_HALVINGS = 50
_SMALL_STEP = 1e-6  # convergence is quadratic: after a step this small the error is about 1e-12
_BATCH = 1_000_000
"""Numbers of counts and curvatures held at once by the bootstrap."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BradleyTerryResult(Tabular):
    """Log-strengths with mean zero, and how sure they are."""

    systems: tuple[str, ...]
    """Their names; without any `system 0`, `system 1` …"""
    strength: Floats
    se: Floats
    intervals: tuple[Interval, ...]
    covariance: Floats
    """Of the strengths, so that the variance of a difference can be had; its rows add up to zero."""
    ties: Ties
    nu: float
    """The tie parameter; nan for ties="half"."""
    nu_se: float
    log_likelihood: float
    n_systems: int
    n_comparisons: float
    confidence: float
    prior: float
    converged: bool
    n_iterations: int
    reason: str = ""
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        counted = f"{self.n_systems:,} systems, {self.n_comparisons:,g} comparisons"
        return f"{counted}; undefined ({self.reason})" if self.reason else counted

    def _tables(self) -> dict[str, Any]:
        return {
            "strengths": {
                "system": list(self.systems),
                "strength": self.strength,
                "se": self.se,
                "low": [interval.low for interval in self.intervals],
                "high": [interval.high for interval in self.intervals],
            }
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BradleyTerryBootstrap(Ranking):
    """Systems by their strengths over resampled items; without items, comparisons are what is drawn."""

    estimate: BradleyTerryResult
    n_undefined: int

    @property
    def scores(self) -> Floats:
        return self.estimate.strength


def bradley_terry(
    data: Comparisons | WinMatrix,
    n_systems: int | None = None,
    *,
    systems: Sequence[str] | None = None,
    ties: Ties = "half",
    confidence: float = 0.95,
    prior: float = 0.0,
) -> BradleyTerryResult:
    """Fit log-strengths to comparisons or to their win matrix.

    `prior` adds that many wins in each direction between every two systems (0.1, say), which makes the
    estimate finite where Ford's condition fails and draws it towards equality everywhere.
    """
    check_fraction("confidence", confidence)
    matrix, names = _input(data, n_systems, systems)
    table = _Table.of(matrix, ties, prior)
    beat, tied = table.graphs(table.counts[None])
    reason = obstacle(beat[0], tied[0], table.has_nu, names)
    if not reason and not table.seen.any():  # a prior alone is no evidence
        reason = "no comparisons"
    notes = data.notes if isinstance(data, Comparisons) else ()
    if reason:
        fit = None
        theta = se = np.full(matrix.n_systems, np.nan)
        covariance = np.full((matrix.n_systems, matrix.n_systems), np.nan)
        nu = nu_se = np.nan
    else:
        fit = _fit(table, table.counts[None], table.has_nu, _start(table))
        theta = fit.params[0, : table.n]
        covariance, nu_variance = _covariance(fit.information[0], table.n)
        se = np.sqrt(np.diag(covariance))
        nu = float(np.exp(fit.params[0, -1])) if table.has_nu else _NO_TIES[ties]
        nu_se = nu * nu_variance**0.5 if table.has_nu else np.nan
        if ties != "half" and not table.has_nu:
            notes = (*notes, f"no ties: nu is at its limit {nu:g}, without a standard error")
    reach = NormalDist().inv_cdf((1 + confidence) / 2)
    return BradleyTerryResult(
        systems=tuple(map(str, names)),
        strength=theta,
        se=se,
        intervals=tuple(
            Interval(low, high, confidence, "wald")
            for low, high in zip((theta - reach * se).tolist(), (theta + reach * se).tolist(), strict=True)
        ),
        covariance=covariance,
        ties=ties,
        nu=nu,
        nu_se=nu_se,
        log_likelihood=float(fit.value[0]) if fit else np.nan,
        n_systems=matrix.n_systems,
        n_comparisons=matrix.n_comparisons,
        confidence=confidence,
        prior=prior,
        converged=bool(fit.converged[0]) if fit else False,
        n_iterations=fit.n_iterations if fit else 0,
        reason=reason,
        notes=notes,
    )


def bradley_terry_bootstrap(
    data: Comparisons | WinMatrix,
    systems: Sequence[str],
    *,
    by: ArrayLike | None = None,
    n_replicates: int = 1000,
    ties: Ties = "half",
    confidence: float = 0.95,
    prior: float = 0.0,
    rng: Rng,
) -> BradleyTerryBootstrap:
    """Resample, all replicates at once, and rank the systems.

    Without `by` the comparisons are drawn with replacement, which is a multinomial draw over the cells
    of the win matrix and takes comparisons for independent. Where several belong together, `by` gives
    the item's code of each comparison, and items are drawn with all of theirs. A replicate without a
    finite estimate is counted in `n_undefined` and left out; where these are more than a tail of the
    interval, there is none.
    """
    check_replicates(n_replicates)
    matrix, names = _input(data, None, systems)
    if by is not None and (not isinstance(data, Comparisons) or np.shape(by) != data.first.shape):
        raise ValueError("by must give one item for each comparison, and comparisons must be given")
    estimate = bradley_terry(data, systems=systems, ties=ties, confidence=confidence, prior=prior)
    samples = np.full((n_replicates, matrix.n_systems), np.nan)
    n_items = int(estimate.n_comparisons) if by is None else dense_codes("by", np.asarray(by))[1]
    reason = estimate.reason
    n_met: Floats | Ints = matrix.games
    if by is not None and isinstance(data, Comparisons):
        n_met = items_of_systems(data, dense_codes("by", np.asarray(by))[0], matrix.n_systems)
    if not reason and by is not None and n_items < 2:  # every replicate would be the data
        reason = "one item: there is nothing to resample"
    if not reason:
        table = _Table.of(matrix, ties, prior)
        generator = np.random.default_rng(rng)
        if by is not None and isinstance(data, Comparisons):
            blocks = _draw_items(table, data, np.asarray(by), n_replicates, generator)
        else:
            blocks = _draw_comparisons(table, n_replicates, generator)
        samples = np.concatenate([_strengths(table, estimate, drawn) for drawn in blocks])
    n_undefined = int(np.isnan(samples).any(axis=1).sum())
    notes = estimate.notes
    if n_undefined and not reason:
        notes = (*notes, f"{n_undefined} of {n_replicates} replicates without a finite estimate, left out")
    result = BradleyTerryBootstrap.from_samples(
        samples,
        estimate.strength,
        names,
        wins=limit_wins(win_fractions(samples), n_met),
        confidence=confidence,
        estimate=estimate,
        n_items=n_items,
        n_undefined=n_undefined,
        reason=reason,
        notes=notes,
    )
    if n_undefined <= (1 - confidence) / 2 * n_replicates:
        return result
    # what was left out lies beyond every number: with so much of it an end of the interval would be made up
    open_ended = tuple(replace(interval, low=np.nan, high=np.nan) for interval in result.intervals)
    return replace(result, intervals=open_ended)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """The comparisons by pair, and the model to fit to them."""

    n: int
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    seen: Floats
    """(pairs, 3): wins of left, wins of right, ties."""
    ties: Ties
    prior: float

    @classmethod
    def of(cls, matrix: WinMatrix, ties: Ties, prior: float) -> _Table:
        if ties not in get_args(Ties):
            raise ValueError(f"ties must be one of {', '.join(get_args(Ties))}, found {ties!r}")
        if not 0 <= prior < np.inf:
            raise ValueError(f"prior must be a number of wins, 0 or more; found {prior}")
        left, right = np.triu_indices(matrix.n_systems, 1)
        seen = np.stack(
            [matrix.wins[left, right], matrix.wins[right, left], matrix.ties[left, right]], axis=-1
        )
        kept = seen.any(axis=1) | (prior > 0)
        return cls(
            n=matrix.n_systems, left=left[kept], right=right[kept], seen=seen[kept], ties=ties, prior=prior
        )

    @property
    def counts(self) -> Floats:
        """What is fitted: the comparisons seen and the wins of the prior."""
        return self.with_prior(self.seen)

    def with_prior(self, seen: ArrayLike) -> Floats:
        return np.add(seen, [self.prior, self.prior, 0.0], dtype=np.float64)

    @property
    def has_nu(self) -> bool:
        """Whether there is a tie parameter to fit; without any tie it is at its limit."""
        return self.ties != "half" and bool(self.seen[:, 2].any())

    def graphs(self, counts: Floats) -> tuple[Bools, Bools]:
        """For (B, pairs, 3) counts: who beat whom, and who tied with whom, as (B, S, S)."""
        beat, tied = np.zeros((2, len(counts), self.n, self.n), dtype=bool)
        beat[:, self.left, self.right] = counts[:, :, 0] > 0
        beat[:, self.right, self.left] = counts[:, :, 1] > 0
        tied[:, self.left, self.right] = tied[:, self.right, self.left] = counts[:, :, 2] > 0
        return beat, tied


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    params: Floats
    value: Floats
    information: Floats
    converged: Bools
    n_iterations: int


def _input(
    data: Comparisons | WinMatrix, n_systems: int | None, systems: Sequence[str] | None
) -> tuple[WinMatrix, tuple[str, ...]]:
    n = n_systems if n_systems is not None else len(systems) if systems is not None else None
    if isinstance(data, Comparisons):
        if n is None:
            raise ValueError("give n_systems or systems together with comparisons")
        data = win_matrix(data, n)
    shape = (data.n_systems, data.n_systems)
    if data.wins.shape != shape or data.ties.shape != shape or (n is not None and n != data.n_systems):
        raise ValueError(
            f"wins and ties must be square tables of {n if n is not None else data.n_systems} systems, "
            f"found {data.wins.shape} and {data.ties.shape}"
        )
    if not ((data.wins >= 0).all() and (data.ties >= 0).all() and (data.ties == data.ties.T).all()):
        raise ValueError("wins and ties must be counts, 0 or more, and ties the same both ways round")
    if data.wins.diagonal().any() or data.ties.diagonal().any():
        raise ValueError("a system is compared with itself: the diagonals of wins and ties must be 0")
    names = tuple(systems) if systems is not None else tuple(f"system {i}" for i in range(data.n_systems))
    if len(names) != data.n_systems:
        raise ValueError(f"{data.n_systems} systems need as many names, found {len(names)}")
    return data, names


def _start(table: _Table) -> Floats:
    """Log-odds of winning against anybody, and the nu that gives equal systems the share of ties seen."""
    won, lost, tied = table.counts.T
    of_left, of_right = won + tied / 2, lost + tied / 2
    points = np.bincount(table.left, of_left, table.n) + np.bincount(table.right, of_right, table.n)
    lost_points = np.bincount(table.left, of_right, table.n) + np.bincount(table.right, of_left, table.n)
    strength = np.log((points + 0.5) / (lost_points + 0.5))
    strength -= strength.mean()
    if not table.has_nu:
        return strength
    share = min(tied.sum() / table.counts.sum(), 1 - 1e-6)
    nu = (1 + share) / (1 - share) if table.ties == "rao-kupper" else 2 * share / (1 - share)
    return np.append(strength, np.log(nu))


def _fit(table: _Table, counts: Floats, has_nu: bool, start: Floats) -> _Fit:
    """Newton's method with step halving on (B, pairs, 3) counts, all B problems together."""
    from palaver.statistics import _ranking_kernels as kernels

    kinds = {"half": kernels.HALF, "rao-kupper": kernels.RAO_KUPPER, "davidson": kernels.DAVIDSON}
    kind = kinds[table.ties] if has_nu else kernels.HALF

    def terms(at: Floats) -> tuple[Floats, Floats, Floats]:
        value, gradient, information = kernels.likelihood_terms(at, table.left, table.right, counts, kind)
        # The strengths may be shifted freely; a curvature along the shift makes the matrix invertible
        # and, the gradient being orthogonal to it, changes no step.
        strengths = information[:, : table.n, : table.n]
        strengths += (np.trace(strengths, axis1=1, axis2=2) / table.n**2)[:, None, None]
        return value, gradient, information

    params = np.tile(start, (len(counts), 1))
    value, gradient, information = terms(params)
    for iteration in range(1, _MAX_ITERATIONS + 1):  # noqa: B007 (reported)
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        size = np.abs(step).max(axis=1)
        factor = np.minimum(1.0, _MAX_STEP / np.maximum(size, _SMALL_STEP))
        for _ in range(_MAX_HALVINGS):
            trial = params + factor[:, None] * step
            new = terms(trial)
            worse = ~(new[0] >= value - 1e-11 * (1 + np.abs(value)))
            if not worse.any():
                break
            factor = np.where(worse, factor / 2, factor)
        params, (value, gradient, information) = trial, new
        converged = size * factor < _SMALL_STEP
        if converged.all():
            break
    return _Fit(
        params=params, value=value, information=information, converged=converged, n_iterations=iteration
    )


def _covariance(information: Floats, n: int) -> tuple[Floats, float]:
    """Of the strengths under sum zero, and the variance of log nu (nan without one)."""
    inverse = np.linalg.inv(information)
    # The shift added to the information has its own share 1 / (n * eigenvalue) in the inverse.
    covariance = inverse[:n, :n] - inverse[:n, :n].mean()
    return covariance, float(inverse[-1, -1]) if len(inverse) > n else float("nan")


def _draw_comparisons(table: _Table, n_replicates: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Blocks of resampled counts, (replicates, pairs, 3)."""
    seen = table.seen
    total = seen.sum()
    if (seen != np.rint(seen)).any():
        raise ValueError("a bootstrap needs whole numbers of wins and ties")
    block_size = _block_size(table, seen.size)
    for begin in range(0, n_replicates, block_size):
        size = min(block_size, n_replicates - begin)
        drawn = rng.multinomial(int(total), (seen / total).ravel(), size=size)
        yield drawn.reshape(size, -1, 3).astype(np.float64)


def _draw_items(
    table: _Table, data: Comparisons, by: NDArray[np.generic], n_replicates: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """The same for items, which are drawn with what their comparisons add to the counts."""
    item, n_items = dense_codes("by", by)
    n_cells = 3 * table.left.size
    pair = number_pairs(table.left, table.right, table.n)
    if n_items * n_cells <= MOST_CELLS:
        counts = resample_sums(counts_by_item(data, item, n_items, pair), n_replicates, rng)
        block_size = _block_size(table, n_cells)
        for begin in range(0, n_replicates, block_size):
            yield counts[begin : begin + block_size].reshape(-1, table.left.size, 3)
        return
    from scipy.sparse import csr_array

    won_by_left = (data.outcome == 1) == (data.first < data.second)
    cell = 3 * pair[data.first, data.second] + np.where(data.outcome == 0, 2, np.where(won_by_left, 0, 1))
    adds = csr_array((np.ones(cell.size), (cell, item)), shape=(n_cells, n_items))
    for weights in draw_blocks(n_items, None, n_replicates, _block_size(table, n_items), rng):
        yield np.ascontiguousarray((adds @ weights.T).T).reshape(len(weights), -1, 3)


def _block_size(table: _Table, width: int) -> int:
    """Replicates that are fitted together; `width` numbers are held for each while it is drawn."""
    return max(1, _BATCH // max(width, 3 * len(table.seen), (table.n + 1) ** 2))


def _strengths(table: _Table, estimate: BradleyTerryResult, drawn: Floats) -> Floats:
    """Strengths fitted to a block of counts; nan where there is no finite estimate."""
    counts = table.with_prior(drawn)
    strengths = np.full((len(counts), table.n), np.nan)
    finite = is_finite(*table.graphs(counts), table.has_nu)
    # A replicate that drew no tie has no nu to fit: it is the plain model.
    tied = counts[:, :, 2].any(axis=1) & table.has_nu
    for has_nu in {False, table.has_nu}:
        chosen = finite & (tied == has_nu)
        if chosen.any():
            start = np.append(estimate.strength, np.log(estimate.nu)) if has_nu else estimate.strength
            fit = _fit(table, counts[chosen], has_nu, start)
            fit.params[~fit.converged] = np.nan
            strengths[chosen] = fit.params[:, : table.n]
    return strengths
