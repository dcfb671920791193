"""Correlations of criteria: how often independent criteria seem to go together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from palaver.statistics.correlation import METHODS, Method
from palaver.studies.correlations import correlate_criteria
from palaver.studies.judgements import judgements_of
from palaver.studies.ratings import as_rating_table
from palaver.studies.results import CorrelationRow

COLUMNS = ("item", "system", "rater", "criterion", "value")


def rows_of(scores: np.ndarray, rater: np.ndarray, method: Method) -> dict[str, CorrelationRow]:
    """Scores are (criteria, items, systems, raters of an item), raters (items, raters of an item)."""
    rows = [
        (f"i{i}", f"s{s}", f"r{rater[i, r]}", "ab"[c], float(value))
        for (c, i, s, r), value in np.ndenumerate(scores)
    ]
    table = as_rating_table(pl.DataFrame(rows, schema=COLUMNS, orient="row"))
    judged = [judgements_of(table, criterion, "raw") for criterion in "ab"]
    return {row.over: row for row in correlate_criteria(judged, method, 0.95)}


def test_outputs_of_one_item_are_one_observation() -> None:
    """Ratings of twelve items, copied to four systems, are no more evidence than before."""
    rng = np.random.default_rng(2)
    shared = rng.normal(size=(12, 1, 1))
    scores = np.stack([shared, shared]) + 1.5 * rng.normal(size=(2, 12, 1, 1))
    rater = np.arange(12)[:, None]
    once = rows_of(scores, rater, "pearson")["item means"]
    copied = rows_of(np.repeat(scores, 4, axis=2), rater, "pearson")["item means"]
    assert copied.value == pytest.approx(once.value)
    assert once.p > 0.05
    assert copied.p > 0.05
    assert copied.high - copied.low > 0.9 * (once.high - once.low)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n_items", "least"), [(2, 1.0), (3, 1 / 3)])
def test_a_perfect_correlation_of_few_items_is_no_proof(method: Method, n_items: int, least: float) -> None:
    """Ten systems that are as good as their item makes them are no ten observations."""
    scores = np.broadcast_to(np.arange(n_items)[:, None, None], (2, n_items, 10, 1)).astype(float)
    row = rows_of(scores, np.zeros((n_items, 1), dtype=int), method)["item means"]
    assert row.value == pytest.approx(1)
    assert row.p == pytest.approx(least)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("over", ["item means", "single ratings"])
def test_kind_raters_are_kind_on_both_criteria(method: Method, over: str) -> None:
    """Six raters with levels of their own are six observations, however much they rate."""
    rng = np.random.default_rng(3)
    level = np.array([-1.3, -0.9, 0.2, 0.1, 0.8, 1.4]), np.array([-1.2, 0.3, -0.6, 0.4, -0.2, 1.3])
    rater = (np.arange(40)[:, None] + np.arange(2)) % 6
    of_rater = np.stack([2 * one[rater] for one in level])[:, :, None, :]
    scores = of_rater + 0.5 * rng.normal(size=(2, 40, 2, 2))
    row = rows_of(scores, rater, method)[over]
    assert row.value > 0.3
    assert row.p > 0.005  # as 80 or 160 points it would be below 1e-6
    assert row.low < 0.35


def test_points_that_share_nothing_keep_their_intervals() -> None:
    """Each rating an item and a rater of its own: leaving out groups says about the same as the formula."""
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(60, 1, 1))
    scores = np.stack([shared, shared]) + rng.normal(size=(2, 60, 1, 1))
    row = rows_of(scores, np.arange(60)[:, None], "pearson")["item means"]
    reach = 1.96 / np.sqrt(57)
    low, high = np.tanh([np.arctanh(row.value) - reach, np.arctanh(row.value) + reach])
    assert row.low <= low + 1e-3
    assert row.high >= high - 1e-3
    assert row.high - row.low < 1.6 * (high - low)
