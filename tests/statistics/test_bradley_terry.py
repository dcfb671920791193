"""Bradley-Terry against Agresti's and Davidson's tables, evalica, direct maximisation and linear programs."""

from __future__ import annotations

import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from palaver.statistics._kernels import draw_weights
from palaver.statistics.bradley_terry import bradley_terry, bradley_terry_bootstrap
from palaver.statistics.ford_condition import is_finite
from palaver.statistics.ranking import WinMatrix, as_comparisons, win_matrix

quick = settings(max_examples=50, deadline=None)
MODELS = ["half", "rao-kupper", "davidson"]


def matrix_of(wins, ties=None):
    wins = np.asarray(wins, dtype=float)
    return WinMatrix(wins=wins, ties=np.zeros_like(wins) if ties is None else np.asarray(ties, dtype=float))


def random_matrix(n_systems, seed, n=300):
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n_systems)
    first = rng.integers(0, n_systems, n)
    second = (first + rng.integers(1, n_systems, n)) % n_systems
    wins = rng.random(n) < 1 / (1 + np.exp(strength[second] - strength[first]))
    outcome = np.where(rng.random(n) < 0.25, 0, np.where(wins, 1, -1))
    return win_matrix(as_comparisons(first, second, outcome), n_systems)


# Published tables


def test_baseball_of_agresti():
    """Agresti (2002), Categorical Data Analysis, 2nd ed., tables 10.10 and 10.11: American League 1987.

    Estimates with Baltimore at zero; their standard errors are said to be about 0.3.
    """
    wins = [
        [0, 7, 9, 7, 7, 9, 11],  # Milwaukee
        [6, 0, 7, 5, 11, 9, 9],  # Detroit
        [4, 6, 0, 7, 7, 8, 12],  # Toronto
        [6, 8, 6, 0, 6, 7, 10],  # New York
        [6, 2, 6, 7, 0, 7, 12],  # Boston
        [4, 4, 5, 6, 6, 0, 6],  # Cleveland
        [2, 4, 1, 3, 1, 7, 0],  # Baltimore
    ]
    result = bradley_terry(matrix_of(wins))
    above = result.strength - result.strength[-1]
    np.testing.assert_allclose(above[:-1], [1.58, 1.44, 1.29, 1.25, 1.11, 0.68], atol=0.005)
    v = result.covariance
    se = np.sqrt(np.diag(v) + v[-1, -1] - 2 * v[-1])
    assert (np.round(se[:-1], 1) == 0.3).all()
    assert result.n_comparisons == 21 * 13
    assert result.converged


PUDDING = [  # i, j, preferred i, preferred j, no preference
    (1, 2, 19, 22, 16), (1, 3, 16, 19, 12), (2, 3, 19, 19, 10), (1, 4, 18, 23, 13), (2, 4, 23, 19, 9),
    (3, 4, 19, 20, 15), (1, 5, 13, 19, 18), (2, 5, 16, 20, 12), (3, 5, 16, 15, 17), (4, 5, 17, 14, 16),
    (1, 6, 18, 21, 12), (2, 6, 22, 20, 12), (3, 6, 13, 18, 10), (4, 6, 14, 19, 18), (5, 6, 11, 21, 12),
]  # fmt: skip


def test_puddings_of_davidson():
    """Davidson (1970), JASA 65, table 2 and section 6: six brands of chocolate pudding, with ties.

    The worths are his, after a few iterations; the standard errors of the log-worths with mean zero
    are those of the R package PlackettLuce (its vignette, section 2.2).
    """
    wins, ties = np.zeros((6, 6)), np.zeros((6, 6))
    for i, j, w, lost, t in PUDDING:
        wins[i - 1, j - 1], wins[j - 1, i - 1] = w, lost
        ties[i - 1, j - 1] = ties[j - 1, i - 1] = t
    result = bradley_terry(matrix_of(wins, ties), ties="davidson")
    worth = np.exp(result.strength) / np.exp(result.strength).sum()
    np.testing.assert_allclose(worth, [0.1388, 0.1730, 0.1617, 0.1654, 0.1587, 0.2024], atol=1e-4)
    assert result.nu == pytest.approx(0.7468, abs=1e-4)
    expected_se = [0.1219, 0.1218, 0.1268, 0.1220, 0.1271, 0.1266]
    np.testing.assert_allclose(result.se, expected_se, atol=3e-4)
    assert result.nu_se / result.nu == pytest.approx(0.0825, abs=1e-4)
    # No brand stands out, as Davidson finds.
    groups = bradley_terry_bootstrap(matrix_of(wins, ties), list("123456"), ties="davidson", rng=0).groups
    assert len(groups) == 1


# Oracles


def log_likelihood(params, matrix, model):
    n = matrix.n_systems
    theta = np.append(params[: n - 1], -np.sum(params[: n - 1]))
    nu = np.exp(params[-1]) if model != "half" else 0.0
    total = 0.0
    for i in range(n):
        for j in range(n):
            a, b = np.exp(theta[i]), np.exp(theta[j])
            if i == j:
                continue
            if model == "half":
                total += (matrix.wins[i, j] + matrix.ties[i, j] / 2) * np.log(a / (a + b))
            elif model == "rao-kupper":
                total += matrix.wins[i, j] * np.log(a / (a + nu * b))
                if i < j:
                    tie = a * b * (nu**2 - 1) / ((a + nu * b) * (b + nu * a))
                    total += matrix.ties[i, j] * np.log(max(tie, 1e-300))
            else:
                norm = a + b + nu * np.sqrt(a * b)
                total += matrix.wins[i, j] * np.log(a / norm)
                if i < j:
                    total += matrix.ties[i, j] * np.log(nu * np.sqrt(a * b) / norm)
    return total


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(2))
def test_against_direct_maximisation(model, seed):
    matrix = random_matrix(4, seed)
    start = np.append(np.zeros(3), 0.5) if model != "half" else np.zeros(3)
    best = minimize(lambda p: -log_likelihood(p, matrix, model), start, method="BFGS", options={"gtol": 1e-7})
    result = bradley_terry(matrix, ties=model)
    np.testing.assert_allclose(result.strength[:3], best.x[:3], atol=1e-5)
    assert result.strength.sum() == pytest.approx(0, abs=1e-12)
    assert result.log_likelihood == pytest.approx(-best.fun, rel=1e-9)
    assert np.isnan(result.nu) if model == "half" else result.nu == pytest.approx(np.exp(best.x[3]), rel=1e-4)
    # Standard errors from second differences of the likelihood.
    at = np.append(result.strength[:3], np.log(result.nu) if model != "half" else [])
    h, k = 1e-3, len(at)
    information = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            e, f = h * np.eye(k)[i], h * np.eye(k)[j]
            information[i, j] = -sum(
                s * t * log_likelihood(at + s * e + t * f, matrix, model) for s in (1, -1) for t in (1, -1)
            ) / (4 * h * h)
    se = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(result.se[:3], se[:3], rtol=1e-4)
    if model != "half":
        assert result.nu_se == pytest.approx(result.nu * se[3], rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_half_wins_are_those_of_evalica(seed):
    rng = np.random.default_rng(seed)
    names = [f"system {i}" for i in range(6)]
    first = rng.integers(0, 6, 500)
    second = (first + rng.integers(1, 6, 500)) % 6
    outcome = np.where(rng.random(500) < 0.5 + 0.08 * (first - second), 1, -1)
    outcome[rng.random(500) < 0.2] = 0
    winners = [{1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}[o] for o in outcome]
    xs, ys = [names[i] for i in first], [names[i] for i in second]
    scores = evalica.bradley_terry(xs, ys, winners, tolerance=1e-12, limit=10_000).scores
    result = bradley_terry(as_comparisons(first, second, outcome), systems=names)
    expected = np.log(scores[names].to_numpy())
    np.testing.assert_allclose(result.strength, expected - expected.mean(), atol=1e-8)


def finite_by_linear_program(beat, tied, has_nu):
    """No direction of the parameters but the common shift along which the likelihood never falls."""
    n = len(beat)
    rows = []
    for i in range(n):
        for j in range(n):
            row = np.zeros(n + 1)
            row[i], row[j] = -1.0, 1.0  # t_j - t_i <= ...
            if beat[i, j]:
                rows.append(row + np.append(np.zeros(n), 1.0 if has_nu else 0.0))
            if tied[i, j]:
                rows.append(row - np.append(np.zeros(n), 1.0 if has_nu else 0.0))
    bounds = [(0, 0), *[(-1, 1)] * (n - 1), (0, 1) if has_nu else (0, 0)]
    for k in range(1, n + 1):
        for sign in (1, -1):
            cost = np.zeros(n + 1)
            cost[k] = sign
            solution = linprog(cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=bounds)
            if solution.fun < -1e-9:
                return False
    return True


@given(st.integers(2, 4), st.integers(0, 2**32 - 1), st.booleans())
@quick
def test_existence_by_linear_program(n, seed, has_nu):
    rng = np.random.default_rng(seed)
    beat = (rng.random((n, n)) < 0.4) & ~np.eye(n, dtype=bool)
    tied = np.triu(rng.random((n, n)) < 0.4, 1)
    tied = tied | tied.T
    if not (beat | tied).any() or (has_nu and not tied.any()):
        return
    assert is_finite(beat[None], tied[None], has_nu)[0] == finite_by_linear_program(beat, tied, has_nu)


# Properties


@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from(MODELS))
@quick
def test_relabelling_reversing_and_duplicating(n, seed, model):
    matrix = random_matrix(n, seed, 60)
    plain = bradley_terry(matrix, ties=model)
    order = np.random.default_rng(seed).permutation(n)
    moved = bradley_terry(
        matrix_of(matrix.wins[np.ix_(order, order)], matrix.ties[np.ix_(order, order)]), ties=model
    )
    turned = bradley_terry(matrix_of(matrix.wins.T, matrix.ties), ties=model)
    triple = bradley_terry(matrix_of(3 * matrix.wins, 3 * matrix.ties), ties=model)
    assert bool(plain.reason) == bool(moved.reason) == bool(turned.reason) == bool(triple.reason)
    np.testing.assert_allclose(moved.strength, plain.strength[order], atol=1e-6)
    np.testing.assert_allclose(turned.strength, -plain.strength, atol=1e-6)
    np.testing.assert_allclose(triple.strength, plain.strength, atol=1e-6)
    np.testing.assert_allclose(triple.se, plain.se / np.sqrt(3), rtol=1e-5)
    np.testing.assert_allclose([moved.nu, turned.nu, triple.nu], plain.nu, rtol=1e-5)


@pytest.mark.parametrize("model", ["half", "davidson"])
def test_expected_points_are_the_observed_ones(model):
    """At the maximum of an exponential family each system's expected points are those seen."""
    matrix = random_matrix(5, 3)
    result = bradley_terry(matrix, ties=model)
    half = np.exp((result.strength[:, None] - result.strength) / 2)
    nu = 0.0 if model == "half" else result.nu
    expected = (half + nu / 2) / (half + 1 / half + nu)
    met = matrix.wins + matrix.wins.T + matrix.ties
    np.testing.assert_allclose((met * expected).sum(1), (matrix.wins + matrix.ties / 2).sum(1), rtol=1e-9)


def test_without_ties_all_models_agree():
    matrix = matrix_of([[0, 5, 3], [2, 0, 4], [4, 1, 0]])
    half, kupper, davidson = (bradley_terry(matrix, ties=model) for model in MODELS)
    np.testing.assert_allclose(kupper.strength, half.strength)
    np.testing.assert_allclose(davidson.se, half.se)
    assert (kupper.nu, davidson.nu) == (1.0, 0.0)
    assert "no ties" in kupper.notes[0]


def test_intervals_are_wald_intervals():
    result = bradley_terry(random_matrix(3, 0), confidence=0.9)
    np.testing.assert_allclose(
        [i.high for i in result.intervals], result.strength + 1.6448536269514722 * result.se, rtol=1e-6
    )
    assert result.intervals[0].method == "wald"


@pytest.mark.parametrize("model", MODELS)
def test_lopsided_counts_converge(model):
    matrix = matrix_of([[0, 1e6, 1e6], [1, 0, 1e6], [0, 1, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    result = bradley_terry(matrix, ties=model)
    assert result.converged
    assert result.strength[0] - result.strength[1] == pytest.approx(np.log(1e6), rel=0.1)


# No estimate


def test_reasons_name_the_systems():
    unbeaten = bradley_terry(matrix_of([[0, 2, 1], [0, 0, 1], [0, 1, 0]]), systems=["a", "b", "c"])
    assert "a never lost" in unbeaten.reason
    assert "b, c never won" in unbeaten.reason
    assert np.isnan(unbeaten.strength).all()
    assert np.isnan(unbeaten.intervals[0].low)
    assert not unbeaten.converged
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[1, 0] = wins[2, 3] = wins[3, 2] = 1
    apart = bradley_terry(matrix_of(wins), systems=list("abcd"))
    assert apart.reason.endswith("a, b | c, d")
    assert bradley_terry(matrix_of(np.zeros((3, 3)))).reason == "no comparisons"
    nothing = bradley_terry_bootstrap(matrix_of(np.zeros((3, 3))), list("abc"), prior=1.0, rng=0)
    assert nothing.reason == "no comparisons"
    assert "1 system:" in bradley_terry(matrix_of(np.zeros((1, 1)))).reason


def test_a_tie_joins_for_half_wins_but_cannot_fix_nu():
    matrix = matrix_of([[0, 3], [0, 0]], [[0, 2], [2, 0]])
    assert bradley_terry(matrix).strength[0] == pytest.approx(np.log(4 / 1) / 2)
    for model in ("rao-kupper", "davidson"):
        assert "nu has no finite estimate" in bradley_terry(matrix, ties=model).reason


@pytest.mark.parametrize("model", MODELS)
def test_a_prior_gives_an_estimate(model):
    matrix = matrix_of([[0, 3, 0], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert bradley_terry(matrix, ties=model).reason
    result = bradley_terry(matrix, ties=model, prior=0.5)
    assert result.reason == ""
    assert result.strength[0] > result.strength[2] > result.strength[1]
    assert result.n_comparisons == 4
    assert abs(bradley_terry(matrix, ties=model, prior=50).strength).max() < abs(result.strength).max()


def test_wrong_arguments():
    matrix = matrix_of([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="ties must be one of"):
        bradley_terry(matrix, ties="third")
    with pytest.raises(ValueError, match="prior"):
        bradley_terry(matrix, prior=-1)
    with pytest.raises(ValueError, match="n_systems"):
        bradley_terry(as_comparisons([0], [1], [1]))
    with pytest.raises(ValueError, match="3 systems"):
        bradley_terry(matrix, 3)
    with pytest.raises(ValueError, match="as many names"):
        bradley_terry(matrix, 2, systems=["a"])
    with pytest.raises(ValueError, match="both ways round"):
        bradley_terry(matrix_of([[0, 1], [1, 0]], [[0, 1], [2, 0]]))
    with pytest.raises(ValueError, match="0 or more"):
        bradley_terry(matrix_of([[0, np.nan], [1, 0]]))
    with pytest.raises(ValueError, match="diagonals"):
        bradley_terry(matrix_of([[1, 1], [1, 0]]))
    with pytest.raises(ValueError, match="whole numbers"):
        bradley_terry_bootstrap(matrix_of([[0, 1.5], [1, 0]]), ["a", "b"], rng=0)


# Bootstrap


@pytest.mark.parametrize("model", MODELS)
def test_bootstrap_spread_is_the_standard_error(model):
    matrix = random_matrix(4, 5, 2000)
    result = bradley_terry_bootstrap(matrix, list("abcd"), n_replicates=1500, ties=model, rng=0)
    assert result.n_undefined == 0
    np.testing.assert_allclose(result.samples.mean(0), result.estimate.strength, atol=0.02)
    # Half wins treat a tie as a coin, so their stated error is the larger one.
    ratio = result.samples.std(0) / result.estimate.se
    assert ((ratio > 0.75) & (ratio < 1.1)).all() if model == "half" else (abs(ratio - 1) < 0.1).all()
    np.testing.assert_allclose(result.wins + result.wins.T, 1.0)


@pytest.mark.parametrize("model", MODELS)
def test_a_replicate_is_a_fit_of_its_own(model):
    """The batch starts at the estimate and shares its steps; each row must still be its own maximum."""
    matrix = random_matrix(4, 7, 80)
    result = bradley_terry_bootstrap(matrix, list("abcd"), n_replicates=25, ties=model, rng=3)
    left, right = np.triu_indices(4, 1)
    cells = np.stack([matrix.wins[left, right], matrix.wins[right, left], matrix.ties[left, right]], -1)
    cells = cells[cells.any(1)]
    drawn = np.random.default_rng(3).multinomial(80, cells.ravel() / 80, size=25).reshape(25, -1, 3)
    for row, sample in zip(drawn, result.samples, strict=True):
        wins, ties = np.zeros((4, 4)), np.zeros((4, 4))
        wins[left, right], wins[right, left] = row[:, 0], row[:, 1]
        ties[left, right] = ties[right, left] = row[:, 2]
        np.testing.assert_allclose(
            sample, bradley_terry(matrix_of(wins, ties), ties=model).strength, atol=1e-7
        )


def test_undefined_replicates_are_counted():
    matrix = matrix_of([[0, 6], [1, 0]])
    result = bradley_terry_bootstrap(matrix, ["a", "b"], n_replicates=400, rng=0)
    assert 0.25 < result.n_undefined / 400 < 0.45  # (6/7)^7 = 0.34
    assert "without a finite estimate" in result.notes[0]
    assert result.intervals[0].n_undefined == result.n_undefined
    calm = bradley_terry_bootstrap(matrix, ["a", "b"], n_replicates=400, prior=0.1, rng=0)
    assert calm.n_undefined == 0


def test_bootstrap_without_an_estimate():
    result = bradley_terry_bootstrap(matrix_of([[0, 6], [0, 0]]), ["a", "b"], n_replicates=10, rng=0)
    assert "never lost" in result.reason
    assert result.groups == ()
    assert np.isnan(result.wins).all()


def test_bootstrap_repeats_with_its_seed():
    matrix = random_matrix(3, 1)
    a, b = (bradley_terry_bootstrap(matrix, list("abc"), n_replicates=50, rng=9) for _ in range(2))
    assert (a.samples == b.samples).all()


# By item


def test_resampling_items_keeps_their_comparisons_together():
    """Four copies of each comparison, drawn together, say no more than one copy; drawn apart they seem to."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 200)
    second = (first + rng.integers(1, 3, 200)) % 3
    outcome = rng.choice([1, 0, -1], 200, p=[0.5, 0.2, 0.3])
    item = np.arange(200)
    once = as_comparisons(first, second, outcome)
    copies = as_comparisons(*(np.tile(x, 4) for x in (first, second, outcome)))
    single = bradley_terry_bootstrap(once, list("abc"), by=item, n_replicates=4000, rng=1)
    together = bradley_terry_bootstrap(copies, list("abc"), by=np.tile(item, 4), n_replicates=4000, rng=2)
    apart = bradley_terry_bootstrap(copies, list("abc"), n_replicates=4000, rng=3)
    plain = bradley_terry_bootstrap(once, list("abc"), n_replicates=4000, rng=4)
    spread = single.samples.std(axis=0)
    np.testing.assert_allclose(together.samples.std(axis=0), spread, rtol=0.08)
    np.testing.assert_allclose(plain.samples.std(axis=0), spread, rtol=0.08)
    np.testing.assert_allclose(apart.samples.std(axis=0), spread / 2, rtol=0.08)


def test_resampled_items_are_counted_as_a_loop_counts_them():
    """The drawn win matrices are those of a plain loop over the drawn items, fitted one by one."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, 120)
    second = (first + rng.integers(1, 4, 120)) % 4
    outcome = rng.choice([1, 0, -1], 120)
    item = rng.integers(0, 15, 120)
    data = as_comparisons(first, second, outcome)
    result = bradley_terry_bootstrap(data, list("abcd"), by=item, n_replicates=6, ties="davidson", rng=7)
    state = np.random.default_rng(7).integers(1, 2**63, dtype=np.uint64)
    weights = np.empty((6, np.unique(item).size))
    draw_weights(weights, np.full(6, weights.shape[1]), state)
    for b in range(6):
        chosen = np.repeat(np.arange(120), weights[b][np.unique(item, return_inverse=True)[1]].astype(int))
        drawn = as_comparisons(first[chosen], second[chosen], outcome[chosen])
        np.testing.assert_allclose(
            result.samples[b], bradley_terry(drawn, 4, ties="davidson").strength, atol=1e-6
        )


@pytest.mark.parametrize("by", [[0, 1], np.zeros((3, 1))])
def test_by_must_name_an_item_for_each_comparison(by):
    data = as_comparisons([0, 1, 0], [1, 0, 1], [1, 1, 0])
    with pytest.raises(ValueError, match="by must give one item"):
        bradley_terry_bootstrap(data, ["a", "b"], by=by, rng=0)
    with pytest.raises(ValueError, match="comparisons must be given"):
        bradley_terry_bootstrap(win_matrix(data, 2), ["a", "b"], by=[0, 1, 2], rng=0)


def test_no_interval_where_too_many_replicates_have_no_bound():
    """Of 20 items one was lost: 36% of the draws miss it, and say that a never loses."""
    outcome = np.ones(20, dtype=int)
    outcome[0] = -1
    data = as_comparisons(np.zeros(20, dtype=int), np.ones(20, dtype=int), outcome)
    result = bradley_terry_bootstrap(data, ["a", "b"], by=np.arange(20), n_replicates=400, rng=0)
    assert 0.3 < result.n_undefined / 400 < 0.45
    assert np.isnan([(interval.low, interval.high) for interval in result.intervals]).all()
    assert len(result.groups) == 2
