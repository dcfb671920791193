"""Sums over batches and what is computed from them."""

from __future__ import annotations

import math

import pytest

from palaver.training.checkpoint import Totals


def test_totals_add_up_field_by_field() -> None:
    assert Totals(1, 2, 3, 4, 5, 6, 7, 8, 9) + Totals(steps=1, loss=1) == Totals(2, 2, 3, 4, 5, 6, 7, 8, 10)


def test_perplexities() -> None:
    totals = Totals(nll=math.log(8), tokens=3, words=1, spelling=math.log(2))
    assert totals.perplexity.per_token == pytest.approx(2)
    assert totals.perplexity.per_word == pytest.approx(16)
    assert Totals().perplexity.per_token == 1
    assert Totals(nll=1e9, tokens=1).perplexity.per_token == math.inf
    assert totals.are_finite
    assert not Totals(norm=math.nan).are_finite
