"""Two designs' agreement, from files to rows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from study_strategies import Row, write_csv

from palaver.errors import UserError
from palaver.studies import analyse
from palaver.studies.agreement_comparison import compare_agreement


def ratings(noise: float, seed: int, raters: int = 3, first: int = 0, criteria: str = "qr") -> list[Row]:
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(9).normal(50, 10, 60)
    return [
        {"item": f"i{i}", "system": "a", "rater": f"{i % 5}-{r}", "criterion": c,
         "value": round(truth[i] + noise * rng.normal(), 3)}
        for i in range(first, first + 40)
        for r in range(raters)
        for c in criteria
    ]  # fmt: skip


def test_a_noisier_design_agrees_less(tmp_path: Path) -> None:
    a = write_csv(ratings(4, 1), tmp_path / "a.csv")
    b = write_csv(ratings(16, 2), tmp_path / "b.csv")
    comparison = compare_agreement(a, b, n_replicates=500)
    rows = [row for row in comparison.differences if row.headline]
    assert [row.criterion for row in rows] == ["q", "r"]
    assert {row.form for row in rows} == {"ICC(1,k)"}
    for row, path in ((row, path) for row in rows for path in (a, b)):
        [quoted] = [
            r for r in analyse(path, n_replicates=5).agreement if r.headline and r.criterion == row.criterion
        ]
        assert (row.a if path == a else row.b) == pytest.approx(quoted.value)
    assert all(0 < row.low < row.difference < row.high for row in rows)
    assert [row.p_holm for row in rows] == pytest.approx([2 * row.p for row in rows])
    assert comparison == compare_agreement(a, b, n_replicates=500)
    back = compare_agreement(b, a, n_replicates=500).differences[1]
    assert back.difference == pytest.approx(-rows[0].difference)
    assert json.loads(comparison.to_json())["differences"][0]["n_shared"] == 40


def test_unequal_numbers_of_ratings_and_other_items_are_said(tmp_path: Path) -> None:
    a = write_csv(ratings(10, 1), tmp_path / "a.csv")
    b = write_csv(ratings(10, 2, raters=5, first=20), tmp_path / "b.csv")
    [row] = [
        r for r in compare_agreement(a, b, n_replicates=50).differences if r.headline and r.criterion == "q"
    ]
    assert (row.form, row.n_shared, row.n_raters_b) == ("ICC(1,1)", 20, 25)
    assert row.notes[0].startswith("3.0 and 5.0 ratings per output")
    assert row.notes[1] == "20 items in common, the others are drawn apart"


def test_what_is_not_compared_is_named(tmp_path: Path) -> None:
    a = write_csv(ratings(4, 1, criteria="q"), tmp_path / "a.csv")
    b = write_csv(ratings(4, 1), tmp_path / "b.csv")
    comparison = compare_agreement(a, b, n_replicates=50)
    assert comparison.notes == ("r: only in b.csv, so not compared",)
    assert not math.isnan(comparison.differences[1].p_holm)
    c = write_csv(ratings(4, 1, criteria="x"), tmp_path / "c.csv")
    with pytest.raises(UserError, match="no criterion of numbers in common"):
        compare_agreement(a, c)
    with pytest.raises(UserError, match="normalisation 'lg'"):
        compare_agreement(a, b, normalise_b="lg")


def test_items_of_one_context_are_drawn_together() -> None:
    """Each item five times over under one context is no more evidence than once."""
    plain = [ratings(noise, seed, criteria="q") for noise, seed in ((4, 1), (8, 2))]
    copied = [
        [{**row, "item": f"{row['item']} {k}", "context": row["item"]} for row in rows for k in range(5)]
        for rows in plain
    ]
    once, together = (
        compare_agreement(*map(pl.DataFrame, pair), n_replicates=400).differences[0]
        for pair in (plain, copied)
    )
    assert together.n_items_a == together.n_shared == once.n_items_a == 40
    assert together.high - together.low > 0.8 * (once.high - once.low)


def test_few_items_are_noted() -> None:
    pair = [pl.DataFrame(ratings(noise, seed, criteria="q")) for noise, seed in ((4, 1), (8, 2))]
    for n_items, noted in ((19, True), (20, False)):
        few = [frame.filter(pl.col("item").str.slice(1).cast(int) < n_items) for frame in pair]
        [row] = [row for row in compare_agreement(*few, n_replicates=50).differences if row.headline]
        assert any(note.startswith("fewer than 20 items") for note in row.notes) is noted
