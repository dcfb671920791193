"""Krippendorff's alpha against his own example, a loop over all pairs, two packages, and resampled data."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import evalica
import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palaver.statistics import _agreement, _value_counts
from palaver.statistics import alpha as module
from palaver.statistics.alpha import LEVELS, Level, alpha_long, krippendorff_alpha

quick = settings(max_examples=50, deadline=None)
nan = math.nan

# Krippendorff 2011, section C: four observers, twelve units
RELIABILITY = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
).T


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_krippendorffs_example(level: Level, published: float) -> None:
    result = krippendorff_alpha(RELIABILITY, level=level)
    assert result.value == pytest.approx(published, abs=5e-4)
    assert (result.n_items, result.n_ratings, result.n_raters, result.dropped) == (11, 40, 4, 1)
    assert result.notes == ("1 item with fewer than two ratings", "7 ratings missing")
    assert result.value == pytest.approx(1 - result.observed / result.expected)


def difference(level: Level, a: float, b: float, everything: list[float]) -> float:
    if level == "nominal":
        return float(a != b)
    if level == "interval":
        return (a - b) ** 2
    if level == "ratio":
        return ((a - b) / (a + b)) ** 2 if a + b else 0.0
    low, high = min(a, b), max(a, b)
    ends = sum(v == a for v in everything) + sum(v == b for v in everything)
    return (sum(low <= v <= high for v in everything) - ends / 2) ** 2


def by_pairs(table: np.ndarray, level: Level) -> tuple[float, float]:
    """Observed and expected disagreement, by looking at every pair of ratings."""
    units = [[float(v) for v in row if not math.isnan(v)] for row in table]
    units = [unit for unit in units if len(unit) > 1]
    everything = [v for unit in units for v in unit]
    n = len(everything)

    def total(values: list[float]) -> float:
        return sum(difference(level, a, b, everything) for a in values for b in values)

    return sum(total(unit) / (len(unit) - 1) for unit in units) / n, total(everything) / (n * (n - 1))


ratings = st.tuples(st.integers(1, 6), st.integers(2, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([nan, 0.0, 1.0, 2.0, 3.0, 5.0, 2.5]))
)


@quick
@given(table=ratings, level=st.sampled_from(LEVELS))
def test_against_every_pair(table: np.ndarray, level: Level) -> None:
    result = krippendorff_alpha(table, level=level)
    if result.reason:
        kept = table[np.sum(~np.isnan(table), axis=1) > 1]
        assert math.isnan(result.value)
        assert np.unique(kept[~np.isnan(kept)]).size < 2
    else:
        observed, expected = by_pairs(table, level)
        assert result.observed == pytest.approx(observed, abs=1e-12)
        assert result.expected == pytest.approx(expected, abs=1e-12)
        assert result.value == pytest.approx(1 - observed / expected, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("values", ["few", "many", "fractions"])
def test_against_packages(level: Level, values: str) -> None:
    rng = np.random.default_rng(3)
    table = 3 + rng.normal(size=(60, 1)) + rng.normal(size=(60, 5))
    table = {"few": np.round(table), "many": np.round(table * 100), "fractions": table}[values]
    table = np.abs(table)
    table[rng.random(table.shape) < 0.2] = nan
    ours = krippendorff_alpha(table, level=level).value
    assert ours == pytest.approx(krippendorff.alpha(table.T, level_of_measurement=level), abs=1e-11)
    assert ours == pytest.approx(evalica.alpha(pd.DataFrame(table.T), level).alpha, abs=1e-11)


@quick
@given(table=ratings, level=st.sampled_from(LEVELS), seed=st.integers(0, 99))
def test_items_have_no_order_and_who_rated_does_not_matter(
    table: np.ndarray, level: Level, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(table[rng.permutation(len(table))], axis=1)
    one, other = krippendorff_alpha(table, level=level), krippendorff_alpha(shuffled, level=level)
    assert other.value == pytest.approx(one.value, abs=1e-12, nan_ok=True)
    item, _ = np.indices(shuffled.shape)
    long = alpha_long(item.ravel() * 3 - 4, shuffled.ravel(), level=level)
    assert long.value == pytest.approx(one.value, abs=1e-12, nan_ok=True)
    assert (long.n_items, long.n_ratings, long.dropped) == (one.n_items, one.n_ratings, one.dropped)


@pytest.mark.parametrize(
    ("level", "change"),
    [
        ("nominal", lambda x: np.array([7.0, 3.0, 1.0, 9.0, 2.0, 0.0])[np.nan_to_num(x).astype(int)]),
        ("ordinal", lambda x: np.exp(x)),
        ("interval", lambda x: 1e9 - 3 * x),
        ("interval", lambda x: x * 1e200),
        ("interval", lambda x: x * 1e-200),
        ("ratio", lambda x: 0.3 * x),
        ("ratio", lambda x: x * 3e307),
    ],
)
def test_what_each_level_does_not_see(level: Level, change: Callable[[np.ndarray], np.ndarray]) -> None:
    changed = np.where(np.isnan(RELIABILITY), nan, change(RELIABILITY))
    one = krippendorff_alpha(RELIABILITY, level=level, n_replicates=200, rng=1)
    other = krippendorff_alpha(changed, level=level, n_replicates=200, rng=1)
    assert other.value == pytest.approx(one.value, rel=1e-7)
    assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=1e-6)


@quick
@given(table=ratings, level=st.sampled_from(LEVELS))
def test_twice_the_data_keeps_the_observed_disagreement(table: np.ndarray, level: Level) -> None:
    one = krippendorff_alpha(table, level=level)
    assume(not one.reason)
    twice = krippendorff_alpha(np.tile(table, (2, 1)), level=level)
    n = one.n_ratings
    scale = 4 if level == "ordinal" else 1  # ranks go twice as far
    assert twice.observed == pytest.approx(scale * one.observed, abs=1e-9)
    # the sum over all pairs grows by 4, the number of pairs of two different ratings by 2 (2n - 1) / (n - 1)
    assert twice.expected == pytest.approx(scale * one.expected * 2 * (n - 1) / (2 * n - 1), abs=1e-9)


def test_perfect_agreement_is_one() -> None:
    table = np.repeat([[0.1], [0.7], [1.3], [0.7]], 3, axis=1)
    for level in LEVELS:
        result = krippendorff_alpha(table, level=level, n_replicates=100, rng=1)
        assert result.value == pytest.approx(1, abs=1e-15)
        assert math.isnan(result.low)
        assert math.isnan(result.high)
        assert "does not show how sure" in result.reason


@pytest.mark.parametrize("dense", [0, 10**9])
@pytest.mark.parametrize("few", [0, 512])
@pytest.mark.parametrize("level", LEVELS)
def test_bootstrap_is_alpha_of_resampled_items(
    level: Level, few: int, dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known draws in the place of random ones, through dense and sparse counts, table and quadrature."""
    rng = np.random.default_rng(4)
    table = np.round(np.abs(3 + rng.normal(size=(15, 1)) + rng.normal(size=(15, 4))))
    table[rng.random(table.shape) < 0.25] = nan
    table[0] = [0, 0, 1, nan]
    kept = table[np.sum(~np.isnan(table), axis=1) > 1]
    draws = rng.integers(0, len(kept), size=(40, len(kept)))
    weights = np.array([np.bincount(draw, minlength=len(kept)) for draw in draws]).astype(float)
    monkeypatch.setattr(_value_counts, "_DENSE", dense)
    monkeypatch.setattr(_value_counts, "_FEW_VALUES", few)
    monkeypatch.setattr(_value_counts, "draw_blocks", lambda *_: iter([weights[:25], weights[25:]]))
    monkeypatch.setattr(module, "resample_sums", lambda t, b, rng, times: weights @ t)
    boot = krippendorff_alpha(table, level=level, n_replicates=40, rng=0, confidence=0.8).boot
    values = [krippendorff_alpha(kept[draw], level=level).value for draw in draws]
    assert boot is not None
    np.testing.assert_allclose([boot.low, boot.high], np.quantile(values, [0.1, 0.9]), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("few", [0, 512])
@pytest.mark.parametrize("level", LEVELS)
def test_replicates_in_which_all_ratings_are_equal_are_undefined(
    level: Level, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_value_counts, "_FEW_VALUES", few)
    boot = krippendorff_alpha([[0.1] * 3, [0.7] * 3], level=level, n_replicates=400, rng=2).boot
    assert boot is not None
    assert 150 < boot.n_undefined < 250
    assert (boot.low, boot.high) == pytest.approx((1, 1), abs=1e-10)


@quick
@given(
    values=arrays(np.float64, 12, elements=st.floats(0, 1), unique=True),
    counts=arrays(np.float64, (3, 12), elements=st.integers(0, 5).map(float)),
)
def test_quadrature_of_ratio_differences(values: np.ndarray, counts: np.ndarray) -> None:
    values = np.sort(np.where(values < 1e-150, 0.0, values))
    values = np.unique(values)
    assume(values[-1] > 0)
    counts = counts[:, : values.size]
    exact = _value_counts.ratio_by_table(values)(counts)
    fast = _value_counts.ratio_by_quadrature(values)(counts)
    np.testing.assert_allclose(fast, exact, atol=1e-12 * max(1.0, float(counts.sum(axis=1).max()) ** 2))


@pytest.mark.parametrize("level", LEVELS)
def test_the_seed_decides_and_blocks_do_not(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    table = np.round(3 + rng.normal(size=(30, 1)) + rng.normal(size=(30, 3)).clip(-2, 2) + 3)
    one, again, other = (krippendorff_alpha(table, level=level, n_replicates=300, rng=s) for s in (1, 1, 2))
    assert one.boot == again.boot != other.boot
    assert one.low < one.value < one.high
    monkeypatch.setattr(_value_counts, "_BLOCK", 100)
    small = krippendorff_alpha(table, level=level, n_replicates=300, rng=1)
    assert (small.low, small.high) == pytest.approx((one.low, one.high), abs=1e-12)


def test_many_distinct_values_need_no_table() -> None:
    """10,000 items x 5,000 values as a dense table would take 400 MB."""
    rng = np.random.default_rng(6)
    table = np.round(5000 * rng.beta(2, 2, size=(10_000, 1)) + rng.normal(scale=300, size=(10_000, 5)))
    table = np.clip(table, 0, 4999)
    assert np.unique(table).size > 4900
    tracemalloc.start()
    for level in LEVELS:
        result = krippendorff_alpha(table, level=level, n_replicates=20, rng=1)
        assert result.low < result.value < result.high
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6


def test_long_items_with_many_ratings() -> None:
    """A million pairs in each item would be slow if they were not counted by value."""
    rng = np.random.default_rng(7)
    table = rng.integers(1, 6, size=(4, 20_000)).astype(float)
    for level in LEVELS:
        assert abs(krippendorff_alpha(table, level=level).value) < 0.001


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (np.empty((0, 0)), "no item has two"),
        (np.empty((3, 0)), "no item has two"),
        (np.full((3, 3), nan), "no item has two"),
        (np.array([[1.0], [2.0]]), "no item has two"),
        (np.array([[1.0, nan], [nan, 2.0]]), "no item has two"),
        (np.full((4, 3), 0.1), "equal"),
        (np.array([[2.0, 2.0], [2.0, nan], [2.0, 2.0], [nan, 5.0]]), "equal"),
    ],
)
def test_undefined_is_nan_with_a_reason(level: Level, table: np.ndarray, reason: str) -> None:
    result = krippendorff_alpha(table, level=level, n_replicates=10, rng=1)
    assert math.isnan(result.value)
    assert math.isnan(result.low)
    assert math.isnan(result.expected)
    assert reason in result.reason
    assert result.boot is None


def test_ratio_needs_values_of_zero_or_more() -> None:
    table = np.array([[1.0, -2.0], [3.0, 4.0]])
    result = krippendorff_alpha(table, level="ratio")
    assert math.isnan(result.value)
    assert "found -2" in result.reason
    assert not krippendorff_alpha(table, level="interval").reason


def test_one_item_with_two_values() -> None:
    for level in LEVELS:
        result = krippendorff_alpha([[1.0, 2.0, 2.0]], level=level, n_replicates=10, rng=1)
        assert result.value == pytest.approx(0, abs=1e-12)


def test_infinite_ratings_are_missing() -> None:
    table = RELIABILITY.copy()
    table[3, 1] = math.inf
    gap = RELIABILITY.copy()
    gap[3, 1] = nan
    for level in LEVELS:
        assert krippendorff_alpha(table, level=level) == krippendorff_alpha(gap, level=level)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="level must be one of nominal"):
        krippendorff_alpha(RELIABILITY, level="metric")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shape"):
        krippendorff_alpha([1.0, 2.0])
    with pytest.raises(ValueError, match="confidence"):
        krippendorff_alpha(RELIABILITY, confidence=1.5)
    with pytest.raises(ValueError, match="rng"):
        krippendorff_alpha(RELIABILITY, n_replicates=10)
    with pytest.raises(ValueError, match="one length"):
        alpha_long([1, 2], [1.0])
    with pytest.raises(ValueError, match="integer codes"):
        alpha_long([0.1, 0.2], [1.0, 2.0])


def repeated(n_items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Item codes and five-step ratings, one to four an item."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), rng.integers(1, 5, n_items))
    level = rng.normal(3, 1, n_items)[item]
    return item, np.clip(np.rint(level + rng.normal(size=item.size)), 1, 5)


@pytest.mark.parametrize("level", LEVELS)
def test_patterns_give_the_alpha_of_the_items(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items with the same ratings are counted together: the same value, and an interval of the same width."""
    item, value = repeated(20_000, 3)
    folded = alpha_long(item, value, level=level, n_replicates=1500, rng=1)
    monkeypatch.setattr(_agreement, "MANY", 10**9)
    plain = alpha_long(item, value, level=level, n_replicates=1500, rng=1)
    counted = ("n_items", "n_ratings", "n_raters", "dropped", "notes")
    assert [getattr(folded, name) for name in counted] == [getattr(plain, name) for name in counted]
    for name in ("value", "observed", "expected"):
        assert getattr(folded, name) == pytest.approx(getattr(plain, name), rel=1e-12)
    width = plain.high - plain.low
    assert abs(folded.low - plain.low) < 0.06 * width
    assert abs(folded.high - plain.high) < 0.06 * width


def test_values_that_do_not_repeat_are_not_folded() -> None:
    rng = np.random.default_rng(4)
    item = np.repeat(np.arange(20_000), 2)
    assert _agreement.rated_items(item, rng.normal(size=item.size), 20_000).times is None
    few = _agreement.rated_items(item, rng.integers(1, 7, item.size).astype(float), 20_000)
    assert few.n_codes == 21  # two of six values, in any order
    assert few.n_items == 20_000
