"""Intervals by leaving out groups: their coverage where dialogues and raters both vary."""

from __future__ import annotations

import math

import numpy as np
import pytest

from palaver.statistics.jackknife import Deletions, jackknife_interval, jackknife_p


def deletions_of_mean(values, raters=True):
    """The mean of a (dialogues, raters) table without each row, each column, each cell."""
    rows = (values.sum() - values.sum(axis=1)) / (values.size - values.shape[1])
    columns = (values.sum() - values.sum(axis=0)) / (values.size - values.shape[0])
    cells = ((values.sum() - values) / (values.size - 1)).ravel()
    return Deletions(dialogues=rows, raters=columns, crossings=cells) if raters else Deletions(dialogues=rows)


def covers(with_raters, n=400):
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(n):
        table = rng.normal(size=(20, 1)) + rng.normal(size=(1, 6)) + rng.normal(size=(20, 6))
        found = jackknife_interval(float(table.mean()), deletions_of_mean(table, with_raters))
        hits += found.low <= 0 <= found.high
    return hits / n


def test_two_way_clusters_are_covered_and_one_way_is_not_enough():
    assert 0.91 <= covers(True) <= 0.99
    assert covers(False) < 0.8


def test_raters_nested_in_dialogues_do_not_count_twice():
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)  # each dialogue has a rater of its own
    without = (values.sum() - values) / 29
    once = jackknife_interval(0.0, Deletions(dialogues=without))
    nested = jackknife_interval(0.0, Deletions(dialogues=without, raters=without, crossings=without))
    assert nested.high == pytest.approx(once.high, rel=0.05)


def test_scales_keep_an_interval_within_bounds():
    noisy = np.array([0.99, 0.9, 0.999, 0.8])
    correlation = jackknife_interval(0.95, Deletions(dialogues=noisy), scale="correlation")
    share = jackknife_interval(0.95, Deletions(dialogues=noisy), scale="share")
    assert -1 <= correlation.low < 0.95 < correlation.high <= 1
    assert 0 <= share.low < 0.95 < share.high <= 1


def test_a_share_of_the_dialogues_narrows_the_interval():
    values = np.random.default_rng(0).normal(size=20)
    whole = jackknife_interval(0.0, Deletions(dialogues=values))
    tenth = jackknife_interval(0.0, Deletions(dialogues=values), share=0.1)
    assert tenth.high == pytest.approx(whole.high * math.sqrt(0.1))


def test_undefined_deletions_give_no_interval():
    found = jackknife_interval(0.5, Deletions(dialogues=np.array([math.nan, 0.5])))
    assert math.isnan(found.low)


@pytest.mark.parametrize("scale", ["correlation", "agreement"])
def test_a_group_that_holds_all_disagreement_does_not_make_the_interval_endless(scale):
    one_group = np.array([1.0] + [0.947] * 9)  # ten groups, one with all that raters differ by
    found = jackknife_interval(0.95, Deletions(dialogues=one_group), scale=scale)
    assert 0.3 < found.low < 0.9 < found.high < 1
    mirrored = jackknife_interval(-0.95, Deletions(dialogues=-one_group), scale="correlation")
    assert -0.9 < mirrored.high < -0.3


def test_p_and_interval_say_the_same():
    without = 0.4 + 0.05 * np.random.default_rng(0).normal(size=12)
    p = jackknife_p(0.4, Deletions(dialogues=without), scale="agreement")
    found = jackknife_interval(0.4, Deletions(dialogues=without), scale="agreement", confidence=1 - p)
    assert found.low == pytest.approx(0, abs=1e-6)
