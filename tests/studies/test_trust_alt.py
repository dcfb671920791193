"""The alternative annotator test on rating tables: values, ranks, choices, one criterion or several."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from palaver import UserError, ratings_from_frame
from palaver.studies.trust_alt import _ranks, trust_alt_test


def tables(unit: float = 1.0, kind: str = "llm") -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(0)
    people, judge = [], []
    for criterion in ("fluency", "sense"):
        for i in range(40):
            for system in "abc":
                quality = 3 + rng.standard_normal()
                about = {"item": f"i{i}", "system": system, "criterion": criterion}
                score = unit * np.clip(np.round(quality + 0.2 * rng.standard_normal()), 1, 5)
                judge.append({**about, "rater": "j", "value": float(score), "kind": kind})
                for r in range(3):
                    value = float(np.clip(np.round(quality + 0.7 * rng.standard_normal()), 1, 5))
                    people.append({**about, "rater": f"r{r}", "value": value})
    return pl.DataFrame(people), pl.DataFrame(judge)


def test_every_criterion_and_all_together() -> None:
    people, judge = map(ratings_from_frame, tables())
    report = trust_alt_test(people, judge, n_replicates=50)
    assert [row.criterion for row in report.rows] == ["fluency", "sense", "all"]
    assert {row.compared for row in report.rows} == {"values"}
    assert report.rows[-1].n_dialogues == 40
    assert report.rows[-1].passes
    assert "may stand in for a person" in report.words[-1]
    one = trust_alt_test(people, judge, criterion="sense", n_replicates=50)
    assert [row.criterion for row in one.rows] == ["sense"]
    assert one.rows[0] == report.rows[1]


def test_a_judge_in_another_unit_is_compared_by_ranks() -> None:
    people, judge = map(ratings_from_frame, tables(unit=20))
    ranks = trust_alt_test(people, judge, n_replicates=50)
    assert {row.compared for row in ranks.rows} == {"ranks in a dialogue"}
    other = trust_alt_test(*map(ratings_from_frame, tables(unit=3)), closeness="ranks", n_replicates=50)
    assert [row.winning_rate for row in other.rows] == [row.winning_rate for row in ranks.rows]


def test_ranks_share_ties_and_leave_out_what_stands_alone() -> None:
    ranks = _ranks(np.array([5.0, 3.0, 3.0, 1.0, np.nan, 2.0]), np.array([0, 0, 0, 1, 1, 2]))
    assert ranks[:3].tolist() == [3.0, 1.5, 1.5]
    assert np.isnan(ranks[3:]).all()


def test_epsilon_must_be_a_share() -> None:
    people, judge = map(ratings_from_frame, tables())
    with pytest.raises(UserError, match="epsilon"):
        trust_alt_test(people, judge, epsilon=1.0)
