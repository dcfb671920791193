"""Watching systems answer by answer."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from palaver import UserError, ratings_from_frame
from palaver.studies.trust import people_of
from palaver.studies.trust_sequence import trust_sequence, watch


def ratings(gap: float, n: int = 40, systems: str = "ab") -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        [
            {
                "item": f"i{i:03}",
                "system": system,
                "rater": f"r{r}",
                "criterion": "quality",
                "value": round(float(4 + gap * (system == "a") + 0.6 * rng.standard_normal()), 2),
            }
            for i in range(n)
            for r in rng.permutation(6)[:3]
            for system in systems
        ]
    )


def test_a_clear_difference_is_decided_before_the_end_and_stays_decided() -> None:
    table = ratings_from_frame(ratings(1.0))
    report = trust_sequence(table)
    [row] = report.rows
    assert row.decision == "better"
    assert row.decided_after_ratings is not None
    assert row.decided_after_ratings < row.n_ratings == 240
    assert "a is better than b" in report.words[0]
    [whole] = watch(people_of(table), planned=40)
    early = ratings_from_frame(ratings(1.0).head(row.decided_after_ratings + 30))
    [part] = watch(people_of(early), planned=40)
    assert part.decided == whole.decided  # more ratings change nothing about what was decided


def test_equal_systems_are_equivalent_within_a_margin_or_go_on() -> None:
    table = ratings_from_frame(ratings(0.0, n=80))
    assert trust_sequence(table).rows[0].decision == "go on"
    assert trust_sequence(table, within=0.5).rows[0].decision == "equivalent"


def test_pairs_of_systems_share_the_error() -> None:
    report = trust_sequence(ratings_from_frame(ratings(1.0, systems="abc")))
    assert [row.alpha for row in report.rows] == pytest.approx([0.05 / 3] * 3)
    assert any("3 pairs share the error" in note for note in report.notes)


@pytest.mark.parametrize(("within", "why"), [(0.0, "above 0"), (50.0, "as large as the scale")])
def test_a_margin_that_makes_no_sense_is_refused(within: float, why: str) -> None:
    with pytest.raises(UserError, match=why):
        trust_sequence(ratings_from_frame(ratings(0.0)), within=within)


def test_betting_needs_a_scale_and_takes_no_judge() -> None:
    table = ratings_from_frame(ratings(1.0))
    with pytest.raises(UserError, match="lowest and a highest value"):
        trust_sequence(table, method="betting")
    with pytest.raises(UserError, match="takes no judge"):
        trust_sequence(
            table, ratings_from_frame(ratings(1.0).with_columns(rater=pl.lit("j"))), method="betting"
        )


def test_criteria_that_are_not_looked_at_are_named() -> None:
    quality = ratings(0.0)
    both = pl.concat([quality, quality.with_columns(pl.lit("fluency").alias("criterion"))])
    report = trust_sequence(ratings_from_frame(both))
    assert {row.criterion for row in report.rows} == {"quality"}
    assert "this is about quality; people rated fluency, too" in report.notes
    assert not any("this is about" in note for note in trust_sequence(ratings_from_frame(quality)).notes)


def test_one_rater_is_not_called_raters() -> None:
    alone = ratings(0.0).with_columns(pl.lit("r0").alias("rater"))
    alone = alone.unique(["item", "system"], maintain_order=True)
    assert "(1 rater; at least 3 are needed)" in trust_sequence(ratings_from_frame(alone)).words[0]
