"""Compiled inner loops of the ranking statistics. Imported only where one is called."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from palaver.statistics._random_kernels import STEP, mix

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Rows = NDArray[np.int64]
Outcomes = NDArray[np.int8]

_ROOT_HALF = math.sqrt(0.5)
_DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)
_HALF = np.uint64(32)

_TAIL = 6.0
"""Beyond this many deviations the normal tail is taken as a continued fraction, which cannot underflow."""
_NARROW = 1e-5
"""Below this draw margin (in deviations) a draw is the point zero; the error is the margin squared."""

HALF, RAO_KUPPER, DAVIDSON = 0, 1, 2


class Model(NamedTuple):
    """TrueSkill's constants: a new skill, twice beta squared, tau squared, and the draw margin."""

    mu: float
    var: float
    noise: float
    drift: float
    margin: float


# Comparisons ---------------------------------------------------------------------------------------


@numba.njit(cache=True)
def compare_rows(screen: Codes, system: Codes, score: Floats) -> tuple[Codes, Codes, Outcomes, Codes, int]:
    """First, second, outcome and screen of each pair of rows of a screen, for rows sorted by screen.

    A system does not meet itself; the last number counts such pairs.
    """
    n = screen.size
    total = 0
    run = 0
    for i in range(n):
        run = run + 1 if i > 0 and screen[i] == screen[i - 1] else 0
        total += run
    first, second, where = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int32)
    outcome = np.empty(total, np.int8)
    k = 0
    for i in range(n):
        j = i + 1
        while j < n and screen[j] == screen[i]:
            if system[i] != system[j]:
                first[k] = system[i]
                second[k] = system[j]
                outcome[k] = 1 if score[i] > score[j] else (-1 if score[i] < score[j] else 0)
                where[k] = screen[i]
                k += 1
            j += 1
    return first[:k], second[:k], outcome[:k], where[:k], total - k


@numba.njit(cache=True)
def tally(first: Codes, second: Codes, outcome: Outcomes, n_systems: int, cells: Floats) -> None:
    """Count comparisons in cells[first, second, outcome + 1], flattened.

    A branch on the outcome would cost five times as much, a three-dimensional index twice.
    """
    for k in range(first.size):
        row = np.int64(first[k]) * n_systems + second[k]
        cells[np.uint64(3 * row + outcome[k] + 1)] += 1.0


@numba.njit(cache=True)
def tally_items(
    first: Codes, second: Codes, outcome: Outcomes, item: Rows, pair: NDArray[np.int64], table: Floats
) -> None:
    """Count each item's comparisons in table[item, 3 * pair + k]; k: 0 left won, 1 right won, 2 tie."""
    for k in range(first.size):
        a, b = first[k], second[k]
        kind = 2
        if outcome[k] != 0:
            kind = 0 if (outcome[k] == 1) == (a < b) else 1
        table[item[k], 3 * pair[a, b] + kind] += 1.0


# TrueSkill -----------------------------------------------------------------------------------------


@numba.njit(cache=True, error_model="numpy")
def _excess(z: float) -> float:
    """density(z) / tail(z) - z for z >= 6: Laplace's continued fraction 1/(z + 2/(z + 3/(z + ...)))."""
    f = z
    for k in range(40, 1, -1):
        f = z + k / f
    return 1 / f


@numba.njit(cache=True, error_model="numpy")
def win_terms(x: float) -> tuple[float, float]:
    """v and w of a win at margin x: the mean shift and the variance lost by cutting off below -x."""
    if x < -_TAIL:
        excess = _excess(-x)
        return excess - x, (excess - x) * excess
    v = _DENSITY_AT_ZERO * math.exp(-0.5 * x * x) / (0.5 * math.erfc(-x * _ROOT_HALF))
    return v, v * (v + x)


@numba.njit(cache=True, error_model="numpy")
def draw_terms(t: float, e: float) -> tuple[float, float]:
    """How far a draw with margin e pulls a difference of t >= 0 towards zero, and the variance lost."""
    if e < _NARROW:
        return t, 1.0
    low, high = t - e, t + e
    if low < _TAIL:
        mass = 0.5 * (math.erfc(low * _ROOT_HALF) - math.erfc(high * _ROOT_HALF))
        at_low = _DENSITY_AT_ZERO * math.exp(-0.5 * low * low)
        at_high = _DENSITY_AT_ZERO * math.exp(-0.5 * high * high)
        pull = (at_low - at_high) / mass
        lost = pull * pull - (low * at_low - high * at_high) / mass
    else:  # the same, everything divided by the density at `low`, which may underflow
        ratio = math.exp(-2 * t * e)
        mass = 1 / (low + _excess(low)) - ratio / (high + _excess(high))
        pull = -math.expm1(-2 * t * e) / mass
        lost = 1.0 if low > 1e5 else pull * pull - (low - high * ratio) / mass
    return pull, min(max(lost, 0.0), 1.0)


@numba.njit(cache=True, error_model="numpy")
def _terms(gap: float, scale: float, outcome: int, margin: float) -> tuple[float, float]:
    """v and w of a comparison of skills that lie `gap` apart, in units of 1 / scale."""
    if outcome == 0:
        pull, w = draw_terms(abs(gap) * scale, margin * scale)
        return -math.copysign(pull, gap), w
    v, w = win_terms((outcome * gap - margin) * scale)
    return v * outcome, w


@numba.njit(cache=True, error_model="numpy")
def rate(
    mu_a: float, var_a: float, mu_b: float, var_b: float, outcome: int, model: Model
) -> tuple[float, float, float, float]:
    """One comparison of a and b (Herbrich et al. 2006).

    Scalars in, scalars out: handing arrays to a function that is not inlined costs half the time.
    """
    var_a += model.drift
    var_b += model.drift
    scale = 1 / math.sqrt(model.noise + var_a + var_b)
    v, w = _terms(mu_a - mu_b, scale, outcome, model.margin)
    share_a, share_b = var_a * scale, var_b * scale
    return (
        mu_a + share_a * v,
        var_a - share_a * share_a * w,
        mu_b - share_b * v,
        var_b - share_b * share_b * w,
    )


@numba.njit(cache=True, error_model="numpy")
def rate_all(
    first: Codes, second: Codes, outcome: Outcomes, mu: Floats, var: Floats, games: Rows, model: Model
) -> None:
    """Every comparison in the order given, in place; `games` counts the comparisons of each system."""
    for k in range(first.size):
        a, b = first[k], second[k]
        mu[a], var[a], mu[b], var[b] = rate(mu[a], var[a], mu[b], var[b], outcome[k], model)
        games[a] += 1
        games[b] += 1


@numba.njit(cache=True, error_model="numpy")
def rate_replicates(
    first: Codes,
    second: Codes,
    outcome: Outcomes,
    starts: Rows,
    n_systems: int,
    model: Model,
    n: int,
    seed: np.uint64,
) -> Floats:
    """Final mu of `n` bootstrap samples of items, comparisons shuffled; nan for a system not drawn.

    The comparisons of item i are starts[i]:starts[i + 1].
    """
    n_items = starts.size - 1
    out = np.full((n, n_systems), np.nan)
    drawn = np.empty(n_items, np.int64)
    mu, var = np.empty(n_systems), np.empty(n_systems)
    seen = np.empty(n_systems, np.bool_)
    state = np.uint64(seed)
    for r in range(n):
        for i in range(n_items):
            state += STEP
            drawn[i] = np.int64(((mix(state) >> _HALF) * np.uint64(n_items)) >> _HALF)
        order = np.empty((starts[drawn + 1] - starts[drawn]).sum(), np.int64)
        k = 0
        for item in drawn:
            for row in range(starts[item], starts[item + 1]):
                state += STEP  # inside-out Fisher-Yates: fill and shuffle in one pass
                j = np.int64(((mix(state) >> _HALF) * np.uint64(k + 1)) >> _HALF)
                order[k] = order[j]
                order[j] = row
                k += 1
        mu[:] = model.mu
        var[:] = model.var
        seen[:] = False
        for row in order:
            a, b = first[row], second[row]
            seen[a] = True
            seen[b] = True
            mu[a], var[a], mu[b], var[b] = rate(mu[a], var[a], mu[b], var[b], outcome[row], model)
        for s in range(n_systems):
            if seen[s]:
                out[r, s] = mu[s]
    return out


@numba.njit(cache=True, error_model="numpy", inline="always")
def _normal(state: np.uint64) -> float:
    """A standard normal number (Box & Muller 1958) from one state; the next is two steps on."""
    unit = 1.0 / 9007199254740992.0
    u = (np.float64(mix(state) >> np.uint64(11)) + 1.0) * unit
    angle = np.float64(mix(state + STEP) >> np.uint64(11)) * unit
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * angle)


@numba.njit(cache=True, error_model="numpy", inline="always")
def _outcome_of(kind: int) -> int:
    """What a column of counts stands for: of each pair the wins of the left, those of the right, the ties."""
    return 0 if kind % 3 == 2 else 1 - 2 * (kind % 3)


@numba.njit(cache=True, error_model="numpy")
def rate_counts(
    left: Rows,
    right: Rows,
    counts: Floats,
    n_systems: int,
    model: Model,
    n_single: int,
    growth: float,
    seed: np.uint64,
) -> Floats:
    """Final mu of samples given as counts (samples, 3 * pairs) of comparisons, in random order.

    The first `n_single` comparisons are rated one by one. By then the variances are small, and `growth` times
    as many as have been rated are rated together, at the same skills. How many of each kind come into such
    a block is drawn from the normal approximation of its distribution.
    """
    n_samples, n_kinds = counts.shape
    out = np.full((n_samples, n_systems), np.nan)
    mu, var = np.empty(n_systems), np.empty(n_systems)
    pull, precision = np.empty(n_systems), np.empty(n_systems)
    block = np.empty(n_kinds)
    state = np.uint64(seed)
    for r in range(n_samples):
        waiting = counts[r].copy()
        n_waiting = waiting.sum()
        mu[:] = model.mu
        var[:] = model.var
        for kind in range(n_kinds):
            if waiting[kind] > 0:
                out[r, left[kind // 3]] = 0.0
                out[r, right[kind // 3]] = 0.0
        for _ in range(min(n_single, int(n_waiting))):
            state += STEP
            place = float(((mix(state) >> _HALF) * np.uint64(n_waiting)) >> _HALF)
            kind = 0
            while place >= waiting[kind]:
                place -= waiting[kind]
                kind += 1
            waiting[kind] -= 1
            n_waiting -= 1
            a, b = left[kind // 3], right[kind // 3]
            mu[a], var[a], mu[b], var[b] = rate(mu[a], var[a], mu[b], var[b], _outcome_of(kind), model)
        n_rated = float(n_single)
        while n_waiting > 0:
            size = min(growth * n_rated, n_waiting)
            share = size / n_waiting
            surplus = 0.0
            for kind in range(n_kinds):  # independent numbers, then their sum is put right
                spread = math.sqrt(waiting[kind] * share * (1 - share))
                block[kind] = spread * _normal(state)
                state += STEP
                state += STEP
                surplus += block[kind]
            pull[:] = 0.0
            precision[:] = 0.0
            taken = 0.0
            for kind in range(n_kinds):
                block[kind] += (share - surplus / n_waiting) * waiting[kind]
                block[kind] = min(max(block[kind], 0.0), waiting[kind])
                taken += block[kind]
                waiting[kind] -= block[kind]
                a, b = left[kind // 3], right[kind // 3]
                scale = 1 / math.sqrt(model.noise + var[a] + var[b])
                v, w = _terms(mu[a] - mu[b], scale, _outcome_of(kind), model.margin)
                pull[a] += block[kind] * scale * v
                pull[b] -= block[kind] * scale * v
                precision[a] += block[kind] * scale * scale * w
                precision[b] += block[kind] * scale * scale * w
            for s in range(n_systems):
                after = 1 / (1 / var[s] + precision[s])
                mu[s] += 0.5 * (var[s] + after) * pull[s]
                var[s] = after
            n_rated += taken
            n_waiting = 0.0 if share == 1.0 else n_waiting - taken
        for s in range(n_systems):
            if out[r, s] == 0.0:
                out[r, s] = mu[s]
    return out


# Bradley-Terry -------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _log_sigmoid(x: float) -> float:
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


@numba.njit(cache=True)
def _sigmoid(x: float) -> float:
    e = math.exp(-abs(x))
    return 1 / (1 + e) if x >= 0 else e / (1 + e)


@numba.njit(cache=True)
def likelihood_terms(
    params: Floats, left: Rows, right: Rows, counts: Floats, model: int
) -> tuple[Floats, Floats, Floats]:
    """Log-likelihood, gradient and observed information of each of B problems.

    params is (B, S) or, for the models with ties, (B, S + 1) with the tie parameter last: log nu.
    counts is (B, pairs, 3): wins of left, wins of right, ties.
    """
    n_problems, n_params = params.shape
    tie = n_params - 1
    value, gradient = np.zeros(n_problems), np.zeros((n_problems, n_params))
    information = np.zeros((n_problems, n_params, n_params))
    for b in range(n_problems):
        p, g, h = params[b], gradient[b], information[b]
        total = 0.0
        for k in range(left.size):
            i, j = left[k], right[k]
            won, lost, tied = counts[b, k, 0], counts[b, k, 1], counts[b, k, 2]
            n = won + lost + tied
            if n == 0:
                continue
            gap = p[i] - p[j]
            if model == HALF:
                s = _sigmoid(gap)
                won += 0.5 * tied
                total += won * gap + n * (_log_sigmoid(-gap))
                slope = won - n * s
                curve = n * s * (1 - s)
            elif model == RAO_KUPPER:
                eta = p[tie]
                won += tied
                lost += tied
                s1, s2 = _sigmoid(gap - eta), _sigmoid(-gap - eta)
                total += won * _log_sigmoid(gap - eta) + lost * _log_sigmoid(-gap - eta)
                slope = won * (1 - s1) - lost * (1 - s2)
                curve1, curve2 = won * s1 * (1 - s1), lost * s2 * (1 - s2)
                curve = curve1 + curve2
                g[tie] -= won * (1 - s1) + lost * (1 - s2)
                h[tie, tie] += curve
                cross = curve2 - curve1
                if tied > 0:
                    if eta <= 0:  # outside the model: nu is at least 1
                        total = -np.inf
                    else:
                        total += tied * (2 * eta + math.log(-math.expm1(-2 * eta)))
                        g[tie] += 2 * tied / -math.expm1(-2 * eta)
                        h[tie, tie] += tied / math.sinh(min(eta, 300.0)) ** 2
            else:
                eta = p[tie]
                top = max(abs(gap) / 2, eta)
                e1, e2 = math.exp(gap / 2 - top), math.exp(-gap / 2 - top)
                e0 = math.exp(eta - top)
                norm = e1 + e2 + e0
                lean, p0 = (e1 - e2) / norm, e0 / norm
                total += (won - lost) * gap / 2 + tied * eta - n * (top + math.log(norm))
                slope = ((won - lost) - n * lean) / 2
                curve = n * (1 - p0 - lean * lean) / 4
                g[tie] += tied - n * p0
                h[tie, tie] += n * p0 * (1 - p0)
                cross = -n * lean * p0 / 2
            g[i] += slope
            g[j] -= slope
            h[i, i] += curve
            h[j, j] += curve
            h[i, j] -= curve
            h[j, i] -= curve
            if model != HALF:
                h[i, tie] += cross
                h[tie, i] += cross
                h[j, tie] -= cross
                h[tie, j] -= cross
        value[b] = total
    return value, gradient, information
