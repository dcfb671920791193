"""TrueSkill against its published example, the `trueskill` package and numerical integration."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import trueskill as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from palaver.statistics._ranking_kernels import draw_terms, rate, win_terms
from palaver.statistics.ranking import as_comparisons, format_groups
from palaver.statistics.trueskill import TrueSkillSettings, trueskill, trueskill_groups

module = importlib.import_module("palaver.statistics.trueskill")  # its function hides it in the package
quick = settings(max_examples=50, deadline=None)


def random_comparisons(n, n_systems, seed, draws=0.3):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_systems, n)
    second = (first + rng.integers(1, n_systems, n)) % n_systems
    outcome = np.where(rng.random(n) < draws, 0, rng.choice([-1, 1], n))
    return first, second, outcome


# One comparison


def update(mu1, sigma1, mu2, sigma2, outcome, constants=None):
    """New mu1, sigma1, mu2, sigma2 after one comparison."""
    constants = constants or TrueSkillSettings()
    model = module._model(constants, constants.draw_probability)
    new1, var1, new2, var2 = rate(
        float(mu1), float(sigma1) ** 2, float(mu2), float(sigma2) ** 2, outcome, model
    )
    return new1, var1**0.5, new2, var2**0.5


def test_published_first_game():
    """Two new players; the figures given in the TrueSkill literature for a win and for a draw."""
    won = update(25, 25 / 3, 25, 25 / 3, 1)
    np.testing.assert_allclose(won, (29.396, 7.171, 20.604, 7.171), atol=5e-4)
    drawn = update(25, 25 / 3, 25, 25 / 3, 0)
    np.testing.assert_allclose(drawn, (25.0, 6.458, 25.0, 6.458), atol=5e-4)


skills = st.floats(0, 50)
spreads = st.floats(0.5, 10)


@given(skills, spreads, skills, spreads, st.sampled_from([-1, 0, 1]), st.floats(-100, 100))
@quick
def test_swapping_and_shifting(mu1, sigma1, mu2, sigma2, outcome, shift):
    new = update(mu1, sigma1, mu2, sigma2, outcome)
    np.testing.assert_allclose(update(mu2, sigma2, mu1, sigma1, -outcome), (*new[2:], *new[:2]))
    moved = update(mu1 + shift, sigma1, mu2 + shift, sigma2, outcome)
    np.testing.assert_allclose(moved, (new[0] + shift, new[1], new[2] + shift, new[3]), atol=1e-7)


@given(skills, spreads, skills, spreads, st.sampled_from([-1, 0, 1]))
@quick
def test_without_drift_a_comparison_only_adds_knowledge(mu1, sigma1, mu2, sigma2, outcome):
    still = TrueSkillSettings(tau=0.0)
    a, sigma_a, b, sigma_b = update(mu1, sigma1, mu2, sigma2, outcome, still)
    assert sigma_a <= sigma1
    assert sigma_b <= sigma2
    if outcome:
        assert (a - mu1) * outcome >= 0 >= (b - mu2) * outcome
    else:
        assert abs(a - b) <= abs(mu1 - mu2) + 1e-12
    # What one gains the other loses, in proportion to the variances.
    assert (a - mu1) * sigma2**2 == pytest.approx(-(b - mu2) * sigma1**2, abs=1e-9)


def test_win_terms_to_the_far_tail():
    x = np.concatenate([np.linspace(-40, 8, 200), [-6.0001, -5.9999, -300.0]])
    terms = np.array([win_terms(v) for v in x])
    v = np.exp(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(x))
    np.testing.assert_allclose(terms[:, 0], v, rtol=1e-9)
    near = x > -40
    np.testing.assert_allclose(terms[near, 1], (v * (v + x))[near], rtol=1e-7, atol=1e-15)
    # Asymptotically w = 1 - 1/x^2 + 6/x^4.
    assert win_terms(-300.0)[1] == pytest.approx(1 - 300.0**-2 + 6 * 300.0**-4, abs=1e-13)
    assert win_terms(-1e9) == pytest.approx((1e9, 1.0))


@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 5.9, 6.1, 12.0, 45.0, 300.0])
@pytest.mark.parametrize("e", [2e-5, 1e-3, 0.1, 1.0, 3.0])
def test_draw_terms_by_integration(t, e):
    """Mean and lost variance of a normal cut to [t - e, t + e], the density divided by its value at t - e."""
    low, high = t - e, t + e
    top = high if low <= 0 else min(high, low + 40 / low)  # beyond this the density is nothing
    node, weight = np.polynomial.legendre.leggauss(120)
    x = low + (node + 1) / 2 * (top - low)
    weight = weight * np.exp(0.5 * (low - x) * (low + x))
    mean = (weight * x).sum() / weight.sum()
    variance = (weight * (x - mean) ** 2).sum() / weight.sum()
    pull, lost = draw_terms(t, e)
    assert pull == pytest.approx(mean, rel=1e-6, abs=1e-9)
    assert lost == pytest.approx(1 - variance, abs=1e-6)


def test_a_draw_of_worlds_apart_and_a_zero_margin():
    assert draw_terms(1e7, 0.5) == pytest.approx((1e7 - 0.5, 1.0))
    assert draw_terms(3.0, 0.0) == (3.0, 1.0)
    new = update(1e6, 1.0, -1e6, 1.0, 0)
    assert np.isfinite(new).all()
    new = update(-1e6, 1.0, 1e6, 1.0, 1)
    assert np.isfinite(new).all()
    assert new[1] > 0


# Sequences


@pytest.mark.parametrize("draw_probability", [0.02, 0.10, 0.50])
@pytest.mark.parametrize("seed", range(3))
def test_against_the_trueskill_package(draw_probability, seed):
    first, second, outcome = random_comparisons(150, 5, seed)
    env = oracle.TrueSkill(draw_probability=draw_probability)
    ratings = [env.create_rating() for _ in range(5)]
    for a, b, o in zip(first, second, outcome, strict=True):
        if o < 0:
            a, b = b, a
        ratings[a], ratings[b] = oracle.rate_1vs1(ratings[a], ratings[b], drawn=o == 0, env=env)
    result = trueskill((first, second, outcome), 5, TrueSkillSettings(draw_probability=draw_probability))
    np.testing.assert_allclose(result.mu, [r.mu for r in ratings], atol=1e-6)
    np.testing.assert_allclose(result.sigma, [r.sigma for r in ratings], atol=1e-6)


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
@quick
def test_relabelling_relabels(n, seed):
    first, second, outcome = random_comparisons(n, 4, seed)
    order = np.random.default_rng(seed).permutation(4)
    plain, other = (
        trueskill((first, second, outcome), 4),
        trueskill((order[first], order[second], outcome), 4),
    )
    np.testing.assert_allclose(other.mu[order], plain.mu)
    np.testing.assert_allclose(other.sigma[order], plain.sigma)
    assert other.games.sum() == 2 * n
    turned = trueskill((second, first, -outcome), 4)
    np.testing.assert_allclose(turned.mu, plain.mu)


def test_a_loop_of_updates_is_the_compiled_loop():
    first, second, outcome = random_comparisons(40, 3, 5)
    mu, sigma = [25.0] * 3, [25 / 3] * 3
    for a, b, o in zip(first, second, outcome, strict=True):
        mu[a], sigma[a], mu[b], sigma[b] = update(mu[a], sigma[a], mu[b], sigma[b], int(o))
    result = trueskill((first, second, outcome), 3)
    np.testing.assert_allclose(result.mu, mu)
    np.testing.assert_allclose(result.sigma, sigma)


def test_observed_share_of_draws():
    observed = TrueSkillSettings(draw_probability="observed")
    assert trueskill(([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, -1]), 2, observed).draw_probability == 0.25
    assert trueskill(([0], [1], [1]), 2, observed).draw_probability == 0.001
    all_drawn = trueskill(([0], [1], [0]), 2, observed)
    assert all_drawn.draw_probability == 0.999
    assert np.isfinite(all_drawn.mu).all()


def test_no_comparisons_leave_the_prior_and_say_so():
    empty = np.array([], dtype=np.int64)
    result = trueskill((empty, empty, empty), 2)
    assert result.mu.tolist() == [25.0, 25.0]
    assert result.notes == ("2 of the systems without comparisons: left at the prior",)
    assert trueskill((empty, empty, empty), 0).mu.size == 0


def test_wrong_arguments():
    with pytest.raises(ValueError, match="draw_probability"):
        TrueSkillSettings(draw_probability=1.0)
    with pytest.raises(ValueError, match="sigma"):
        TrueSkillSettings(sigma=0.0)
    with pytest.raises(ValueError, match="0 to 1"):
        trueskill(([0], [2], [1]), 2)


# Rank groups


def test_groups_of_a_clear_case():
    rng = np.random.default_rng(0)
    strength = np.array([0.0, 0.0, -3.0])
    first, second, _ = random_comparisons(600, 3, 1)
    outcome = np.sign(strength[first] - strength[second] + rng.normal(size=600)).astype(int)
    result = trueskill_groups((first, second, outcome), ["x", "y", "z"], by=np.arange(600) // 6, rng=0)
    assert [set(g.systems) for g in result.groups] == [{"x", "y"}, {"z"}]
    assert result.n_items == 100
    assert result.wins[0, 2] == 1.0
    assert result.intervals[2].high < result.intervals[0].low
    assert format_groups(result.groups).endswith("3. z")


def test_fractions_against_a_plain_loop():
    first, second, outcome = random_comparisons(24, 3, 11, draws=0.2)
    item = np.arange(24) // 3
    result = trueskill_groups((first, second, outcome), ["a", "b", "c"], by=item, n_replicates=4000, rng=0)
    rng = np.random.default_rng(5)
    above = np.zeros((3, 3))
    for _ in range(1500):
        rows = np.concatenate([np.flatnonzero(item == i) for i in rng.integers(0, 8, 8)])
        rows = rng.permutation(rows)
        mu = trueskill((first[rows], second[rows], outcome[rows]), 3).mu
        above += mu[:, None] > mu
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(result.wins[off], (above / 1500)[off], atol=0.05)


def test_the_order_of_rows_within_a_seed_and_the_names_of_items_do_not_matter_much():
    first, second, outcome = random_comparisons(60, 3, 2)
    data = as_comparisons(first, second, outcome, np.arange(60) // 3)
    a = trueskill_groups(data, ["a", "b", "c"], rng=4, n_replicates=200)
    b = trueskill_groups(data, ["a", "b", "c"], rng=4, n_replicates=200, by=data.screen * 7 + 3)
    assert (a.wins == b.wins).all()
    assert a.intervals == b.intervals
    assert (a.wins != trueskill_groups(data, ["a", "b", "c"], rng=5, n_replicates=200).wins).any()


def test_undefined_groups_have_a_reason():
    one = trueskill_groups(([0, 0], [1, 1], [1, 1]), ["a", "b"], by=[0, 0], rng=0)
    assert "one item" in one.reason
    assert np.isnan(one.mu).all()
    assert one.groups == ()
    empty = np.array([], dtype=np.int64)
    assert "no comparisons" in trueskill_groups((empty, empty, empty), ["a", "b"], rng=0).reason


def test_a_system_without_comparisons_has_no_place():
    first, second, outcome = random_comparisons(30, 2, 0)
    result = trueskill_groups((first, second, outcome), ["a", "b", "idle"], rng=0)
    assert result.notes == ("idle has no comparisons",)
    assert np.isnan(result.mu[2])
    assert "idle" not in format_groups(result.groups)


def test_a_system_missed_by_some_replicates_is_undefined_there():
    result = trueskill_groups(([0, 0, 0], [1, 1, 2], [1, -1, 1]), ["a", "b", "c"], by=[0, 1, 2], rng=0)
    assert result.intervals[2].n_undefined > 0
    assert result.intervals[0].n_undefined == 0


def test_wrong_arguments_of_groups():
    with pytest.raises(ValueError, match="one item for each of 1"):
        trueskill_groups(([0], [1], [1]), ["a", "b"], by=[0, 1], rng=0)
    with pytest.raises(ValueError, match="confidence"):
        trueskill_groups(([0], [1], [1]), ["a", "b"], confidence=0, rng=0)


@pytest.mark.parametrize("n_systems", [2, 4])
def test_many_comparisons_are_rated_in_blocks(n_systems: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skills of bootstrap samples: the same mean and spread as when each comparison is rated by itself."""
    rng = np.random.default_rng(n_systems)
    n_items, each = 700, 8
    first = rng.integers(0, n_systems, n_items * each)
    second = (first + rng.integers(1, n_systems, first.size)) % n_systems
    gap = 0.4 * (first - second) + rng.normal(size=first.size)
    outcome = np.where(np.abs(gap) < 0.5, 0, np.sign(gap)).astype(int)
    static = TrueSkillSettings(tau=0.0, draw_probability="observed")
    names = [str(i) for i in range(n_systems)]
    results = []
    for most_single in (10**9, 1000):
        monkeypatch.setattr(module, "_MOST_SINGLE", most_single)
        monkeypatch.setattr(module, "_N_SINGLE", 300)
        results.append(
            trueskill_groups(
                (first, second, outcome),
                names,
                by=np.repeat(np.arange(n_items), each),
                n_replicates=1500,
                settings=static,
                rng=1,
            )
        )
    one, blocks = results
    widths = np.array([i.high - i.low for i in one.intervals])
    np.testing.assert_allclose(blocks.mu, one.mu, atol=0.05 * widths.max())
    for a, b, width in zip(one.intervals, blocks.intervals, widths, strict=True):
        assert abs(a.low - b.low) < 0.08 * width
        assert abs(a.high - b.high) < 0.08 * width
    assert blocks.groups == one.groups
