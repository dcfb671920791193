"""ICC against Shrout & Fleiss' table, pingouin, plain loops over the definitions, and resampled tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from palaver.statistics import _agreement, _anova
from palaver.statistics.icc import FORMS, IccForm, IccResult, icc, icc_long

quick = settings(max_examples=50, deadline=None)

# Shrout & Fleiss 1979, table 2: six targets, four judges
TARGETS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float
)


def simulated(n: int, k: int, seed: int, noise: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=k) + noise * rng.normal(size=(n, k))


def numbers(form: IccForm) -> list[float]:
    return [form.value, form.f, form.df1, form.df2, form.p, form.low, form.high]


def assert_same(one: IccResult, other: IccResult, tolerance: float = 1e-7) -> None:
    for a, b in zip(one.forms, other.forms, strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=tolerance, atol=tolerance, err_msg=a.form)
        assert a.reason == b.reason


def test_shrout_and_fleiss_table_4() -> None:
    values = [round(form.value, 2) for form in icc(TARGETS).forms]
    assert values == [0.17, 0.29, 0.71, 0.44, 0.62, 0.91]
    assert [form.form for form in icc(TARGETS).forms] == list(FORMS)


def test_intervals_of_the_same_data_as_published_for_r_psych() -> None:
    """psych::ICC on this table prints these bounds (its documented example)."""
    bounds = [(round(form.low, 2), round(form.high, 2)) for form in icc(TARGETS).forms]
    assert bounds == [(-0.13, 0.72), (0.02, 0.76), (0.34, 0.95), (-0.88, 0.91), (0.07, 0.93), (0.68, 0.99)]


@pytest.mark.parametrize(("n", "k", "seed"), [(6, 2, 0), (12, 5, 1), (40, 3, 2)])
def test_against_pingouin(n: int, k: int, seed: int) -> None:
    table = simulated(n, k, seed)
    long = pd.DataFrame({"i": np.repeat(np.arange(n), k), "r": np.tile(np.arange(k), n), "v": table.ravel()})
    oracle = pingouin.intraclass_corr(long, "i", "r", "v")
    # pingouin writes A (absolute agreement) for Shrout & Fleiss' 2 and C (consistency) for 3
    names = dict(
        zip(FORMS, ["ICC(1,1)", "ICC(A,1)", "ICC(C,1)", "ICC(1,k)", "ICC(A,k)", "ICC(C,k)"], strict=True)
    )
    rows = oracle.set_index("Type")
    for form in icc(table).forms:
        row = rows.loc[names[form.form]]
        ours = [form.value, form.f, form.df1, form.df2, form.p]
        np.testing.assert_allclose(
            ours, [row["ICC"], row["F"], row["df1"], row["df2"], row["pval"]], rtol=1e-9
        )
        np.testing.assert_allclose([form.low, form.high], row["CI95"], atol=0.0051)  # it rounds to 2 places


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_intervals_invert_the_f_distribution(confidence: float) -> None:
    """McGraw & Wong's bounds written out with scipy.stats, for the consistency and the absolute case."""
    table = simulated(15, 4, 3)
    n, k = table.shape
    result = icc(table, confidence=confidence)
    tail = (1 - confidence) / 2
    form = result["ICC(3,1)"]
    low, high = form.f / stats.f.isf(tail, n - 1, form.df2), form.f * stats.f.isf(tail, form.df2, n - 1)
    assert form.low == pytest.approx((low - 1) / (low + k - 1), rel=1e-9)
    assert result["ICC(3,k)"].high == pytest.approx(1 - 1 / high, rel=1e-9)

    form = result["ICC(2,1)"]
    mean = table.mean()
    msb = k * np.sum((table.mean(axis=1) - mean) ** 2) / (n - 1)
    msj = n * np.sum((table.mean(axis=0) - mean) ** 2) / (k - 1)
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + mean
    mse = np.sum(rest**2) / ((n - 1) * (k - 1))
    a = k * form.value / (n * (1 - form.value))
    b = 1 + k * form.value * (n - 1) / (n * (1 - form.value))
    v = (a * msj + b * mse) ** 2 / ((a * msj) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    f = stats.f.isf(tail, n - 1, v)
    low = n * (msb - f * mse) / (f * (k * msj + (k * n - k - n) * mse) + n * msb)
    assert form.low == pytest.approx(low, rel=1e-8)
    low_mean = n * (msb - f * mse) / (f * (msj - mse) + n * msb)
    assert result["ICC(2,k)"].low == pytest.approx(low_mean, rel=1e-8)


def test_a_95_percent_interval_covers_the_truth_about_as_often() -> None:
    truth = 1 / (1 + 0.8**2)
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(400):
        table = rng.normal(size=(20, 1)) + 0.8 * rng.normal(size=(20, 4))
        form = icc(table)["ICC(1,1)"]
        hits += form.low <= truth <= form.high
    assert 0.92 < hits / 400 < 0.98


def one_way_by_hand(groups: list[list[float]]) -> tuple[float, float]:
    """ICC(1,1) and ICC(1,k) of ratings grouped by item, from the definitions."""
    everything = [value for group in groups for value in group]
    n, total = len(groups), len(everything)
    grand = sum(everything) / total
    means = [sum(group) / len(group) for group in groups]
    between = sum(len(g) * (m - grand) ** 2 for g, m in zip(groups, means, strict=True)) / (n - 1)
    within = sum((v - m) ** 2 for g, m in zip(groups, means, strict=True) for v in g) / (total - n)
    k0 = (total - sum(len(g) ** 2 for g in groups) / total) / (n - 1)
    return (between - within) / (between + (k0 - 1) * within), (between - within) / between


def test_unbalanced_one_way_by_hand() -> None:
    table = simulated(12, 5, 4)
    gaps = np.random.default_rng(4).random(table.shape) < 0.4
    table[gaps] = np.nan
    table[3] = np.nan
    table[7, 1:], table[7, 0] = np.nan, 1.0
    groups = [[float(v) for v in row if not math.isnan(v)] for row in table]
    single, average = one_way_by_hand([group for group in groups if group])
    result = icc(table)
    form = result["ICC(1,1)"]
    assert form.value == pytest.approx(single, rel=1e-12)
    assert result["ICC(1,k)"].value == pytest.approx(average, rel=1e-12)
    assert form.dropped == int(np.isnan(table).sum())
    assert form.n_items == sum(map(bool, groups))
    assert any("without a rating" in note for note in form.notes)
    singles = sum(len(group) == 1 for group in groups)
    assert any(note.startswith(f"{singles} item") and "single rating" in note for note in form.notes)


def test_two_way_uses_complete_items_only() -> None:
    table = simulated(10, 4, 5)
    complete = table.copy()
    table[[2, 6], [0, 3]] = np.nan
    result, oracle = icc(table), icc(np.delete(complete, [2, 6], axis=0))
    for name in ("ICC(2,1)", "ICC(3,1)", "ICC(2,k)", "ICC(3,k)"):
        np.testing.assert_allclose(numbers(result[name]), numbers(oracle[name]), rtol=1e-9)
        assert (result[name].dropped, result[name].n_items) == (2, 8)
        assert result[name].notes == ("2 items not rated once by every rater",)


def test_a_column_without_ratings_is_no_rater() -> None:
    table = np.column_stack([TARGETS, np.full(6, np.nan)])
    assert_same(icc(table), icc(TARGETS))
    assert icc(table)["ICC(2,1)"].n_raters == 4


tables = st.tuples(st.integers(2, 8), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(1, 6).map(float))
)


@quick
@given(table=tables, seed=st.integers(0, 99))
def test_items_and_raters_have_no_order(table: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = table[rng.permutation(len(table))][:, rng.permutation(table.shape[1])]
    assert_same(icc(table), icc(shuffled))


@quick
@given(table=tables, scale=st.sampled_from([-3.0, 0.1, 7.0]), shift=st.sampled_from([0.0, -5.0, 1000.0]))
def test_scale_and_origin_do_not_matter(table: np.ndarray, scale: float, shift: float) -> None:
    assert_same(icc(table), icc(table * scale + shift))


@pytest.mark.parametrize("change", [lambda x: x + 1e9, lambda x: x * 1e200, lambda x: x * 1e-250])
def test_far_from_zero_huge_and_tiny_ratings(change: object) -> None:
    assert_same(icc(change(TARGETS)), icc(TARGETS))  # type: ignore[operator]
    long = icc_long(np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6), change(TARGETS).ravel())  # type: ignore[operator]
    assert_same(long, icc(TARGETS))


@quick
@given(table=tables, gaps=st.integers(0, 2**20), seed=st.integers(0, 99))
def test_long_is_wide(table: np.ndarray, gaps: int, seed: int) -> None:
    """Rows in any order, codes with holes, missing values as rows or as absent rows."""
    missing = np.array([(gaps >> i) & 1 for i in range(20)] * 2)[: table.size].reshape(table.shape) == 1
    table = np.where(missing, np.nan, table)
    item, rater = np.indices(table.shape)
    order = np.random.default_rng(seed).permutation(table.size)
    item, rater, value = (column.ravel()[order] for column in (item, rater, table))
    wide = icc(table)
    assert_same(icc_long(item * 7 + 3, rater - 5, value), wide)
    here = ~np.isnan(value)
    assert_same(icc_long(item[here] * 10**12, rater[here], value[here]), wide)


def test_crowd_of_many_raters_builds_no_table() -> None:
    rng = np.random.default_rng(6)
    n = 200_000
    item = np.repeat(np.arange(n // 4), 4)
    rater = rng.integers(0, 10**5, n)  # items x raters would be 40 GB
    value = rng.normal(size=n // 4)[item] + rng.normal(size=n)
    result = icc_long(item, rater, value)
    assert result["ICC(1,1)"].value == pytest.approx(0.5, abs=0.02)
    assert result["ICC(1,1)"].n_raters == np.unique(rater).size
    assert math.isnan(result["ICC(2,1)"].value)
    assert "rated by every rater" in result["ICC(2,1)"].reason


def test_a_rater_who_rated_an_item_twice_makes_it_incomplete() -> None:
    item = np.repeat(np.arange(6), 4)
    rater = np.tile(np.arange(4), 6)
    rater[1] = 0
    result = icc_long(item, rater, TARGETS.ravel())
    np.testing.assert_allclose(numbers(result["ICC(3,k)"]), numbers(icc(TARGETS[1:])["ICC(3,k)"]), rtol=1e-9)
    assert result["ICC(3,k)"].dropped == 1
    extra = icc_long([0, *item], [2, *np.tile(np.arange(4), 6)], [5.0, *TARGETS.ravel()])
    np.testing.assert_allclose(numbers(extra["ICC(3,k)"]), numbers(icc(TARGETS[1:])["ICC(3,k)"]), rtol=1e-9)
    assert result["ICC(1,1)"].value == pytest.approx(icc(TARGETS)["ICC(1,1)"].value)


def test_uncrossed_columns_have_no_two_way_forms() -> None:
    for result in (
        icc(TARGETS, crossed=False),
        icc_long(np.repeat(np.arange(6), 4), None, TARGETS.ravel()),
        icc_long(np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6), TARGETS.ravel(), crossed=False),
    ):
        assert not result.crossed
        assert result["ICC(1,k)"].value == pytest.approx(icc(TARGETS)["ICC(1,k)"].value)
        for name in ("ICC(2,1)", "ICC(3,1)", "ICC(2,k)", "ICC(3,k)"):
            assert math.isnan(result[name].value)
            assert "not crossed" in result[name].reason
            assert result[name].n_raters == 4


def test_raters_who_never_differ() -> None:
    result = icc(np.array([[0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.7, 0.7, 0.7]]))
    for form in result.forms:
        assert form.value == 1
        assert form.f == math.inf
        assert all(math.isnan(number) for number in (form.p, form.low, form.high))
        assert "does not show how sure" in form.reason


def test_raters_who_differ_by_a_constant() -> None:
    """Consistency is perfect, absolute agreement is not; MSE = 0 must not break its interval."""
    result = icc(np.arange(8.0)[:, None] / 3 + [0.0, 0.7, 1.1])
    assert result["ICC(3,1)"].value == pytest.approx(1)
    assert result["ICC(3,1)"].f == math.inf
    assert result["ICC(3,1)"].reason.startswith("no interval: raters differ by a constant only")
    form = result["ICC(2,1)"]
    assert 0 < form.low < form.value < form.high < 1


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (np.empty((0, 0)), "fewer than two"),
        (np.empty((0, 3)), "fewer than two items"),
        (np.empty((3, 0)), "two"),
        (np.full((4, 3), np.nan), "two"),
        (np.array([[1.0, 2.0, 3.0]]), "fewer than two items"),
        (np.array([[1.0], [2.0], [3.0]]), "two rat"),
        (np.array([[1.0, np.nan], [np.nan, 2.0]]), "two"),
        (np.full((4, 3), 0.1), "do not vary"),
    ],
)
def test_undefined_is_nan_with_a_reason(table: np.ndarray, reason: str) -> None:
    for form in icc(table, n_replicates=20, rng=1).forms:
        assert math.isnan(form.value)
        assert math.isnan(form.low)
        assert reason in form.reason
        assert form.boot is None


def test_item_means_that_do_not_vary() -> None:
    result = icc(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    assert result["ICC(1,1)"].value == pytest.approx(-1)
    assert result["ICC(1,1)"].f == 0
    assert math.isnan(result["ICC(1,k)"].value)
    assert "mean ratings do not vary" in result["ICC(1,k)"].reason


def test_empty_long_input() -> None:
    for form in icc_long([], [], []).forms:
        assert math.isnan(form.value)


def test_infinite_ratings_are_missing() -> None:
    table = TARGETS.copy()
    table[0, 0] = np.inf
    gap = TARGETS.copy()
    gap[0, 0] = np.nan
    assert_same(icc(table), icc(gap))


def all_draws(n: int, b: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, size=(b, n))


@pytest.mark.parametrize("gaps", [False, True])
def test_bootstrap_is_the_icc_of_resampled_tables(gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known draws in the place of random ones; two-way forms redraw the complete items only."""
    table = simulated(14, 3, 7, noise=0.7)
    if gaps:
        table[[0, 5, 5], [1, 0, 2]] = np.nan
    draws = {n: all_draws(n, 60, n) for n in (14, 12)}

    def known(sums: np.ndarray, *_: object) -> np.ndarray:
        return np.array([sums[draw].sum(axis=0) for draw in draws[len(sums)]])

    monkeypatch.setattr(_anova, "resample_sums", known)
    result = icc(table, n_replicates=60, rng=0, confidence=0.9)
    complete = table[~np.isnan(table).any(axis=1)]
    for form in result.forms:
        data = table if form.form.startswith("ICC(1") else complete
        values = [icc(data[draw])[form.form].value for draw in draws[len(data)]]
        assert form.boot is not None
        expected = np.nanquantile(values, [0.05, 0.95])
        np.testing.assert_allclose([form.boot.low, form.boot.high], expected, rtol=1e-8)


def test_bootstrap_follows_the_seed_and_surrounds_the_value() -> None:
    table = simulated(50, 4, 9)
    one, again, other = (icc(table, n_replicates=500, rng=seed) for seed in (1, 1, 2))
    for a, b, c in zip(one.forms, again.forms, other.forms, strict=True):
        assert a.boot == b.boot != c.boot
        assert a.boot is not None
        assert a.boot.low < a.value < a.boot.high
        assert a.boot.n_replicates == 500
    assert icc(table, n_replicates=500, rng=np.random.default_rng(1)).forms == one.forms


def test_replicates_of_two_items_that_are_one_item_are_undefined() -> None:
    boot = icc([[0.1, 0.2, 0.4], [0.7, 0.9, 1.1]], n_replicates=400, rng=3)["ICC(1,k)"].boot
    assert boot is not None
    assert 120 < boot.n_undefined < 280


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ratings": [1.0, 2.0]}, "shape"),
        ({"ratings": TARGETS, "confidence": 1.0}, "confidence"),
        ({"ratings": TARGETS, "n_replicates": -1}, "n_replicates"),
        ({"ratings": TARGETS, "n_replicates": 5}, "rng"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        icc(**arguments)  # type: ignore[arg-type]


def test_wrong_long_arguments() -> None:
    with pytest.raises(ValueError, match="one length"):
        icc_long([0, 1], [0, 1, 2], [1.0, 2.0])
    with pytest.raises(ValueError, match="integer codes"):
        icc_long([0.5, 1.0], [0, 1], [1.0, 2.0])
    with pytest.raises(KeyError, match="none of"):
        icc(TARGETS)["ICC(4,1)"]


def test_patterns_give_the_icc_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    item = np.repeat(np.arange(20_000), rng.integers(1, 4, 20_000))
    value = np.clip(np.rint(rng.normal(3, 1, 20_000)[item] + rng.normal(size=item.size)), 1, 5)
    folded = icc_long(item, None, value, n_replicates=1500, rng=1)["ICC(1,k)"]
    monkeypatch.setattr(_agreement, "MANY", 10**9)
    plain = icc_long(item, None, value, n_replicates=1500, rng=1)["ICC(1,k)"]
    for name in ("value", "f", "low", "high", "k"):
        assert getattr(folded, name) == pytest.approx(getattr(plain, name), rel=1e-12)
    assert (folded.df1, folded.df2, folded.n_items, folded.notes) == (
        plain.df1,
        plain.df2,
        plain.n_items,
        plain.notes,
    )
    assert folded.boot is not None
    assert plain.boot is not None
    width = plain.boot.high - plain.boot.low
    assert abs(folded.boot.low - plain.boot.low) < 0.06 * width
    assert abs(folded.boot.high - plain.boot.high) < 0.06 * width
