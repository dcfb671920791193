"""Who and what the quoted agreement hangs on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from study_strategies import Row, write_csv

from palaver.studies import analyse, read_ratings


def rows_with_a_spoiler(criterion: str = "q", n_raters: int = 5) -> list[Row]:
    """Rater `zoe` turns the scale round; all others agree but for little."""
    rng = np.random.default_rng(2)
    rows: list[Row] = []
    for i in range(30):
        truth = int(rng.integers(1, 7))
        for name in (*"abcdef"[: n_raters - 1], "zoe"):
            value = 7 - truth if name == "zoe" else int(np.clip(truth + rng.integers(-1, 2), 1, 6))
            rows.append({"item": f"i{i}", "system": "ab"[i % 2], "rater": name, "criterion": criterion,
                         "value": value})  # fmt: skip
    return rows


def test_only_without_the_spoiler_agreement_rises_and_the_figure_is_that_of_a_file_without(
    tmp_path: Path,
) -> None:
    rows = rows_with_a_spoiler()
    analysis = analyse(write_csv(rows, tmp_path / "all.csv"), n_replicates=10, influence=True)
    raters = [row for row in analysis.influence if row.left_out == "rater"]
    [spoiler] = [row for row in raters if row.change > 0]
    assert (len(raters), spoiler.name, spoiler.n_ratings) == (5, "zoe", 30)
    others = write_csv([row for row in rows if row["rater"] != "zoe"], tmp_path / "others.csv")
    [quoted] = [row for row in analyse(others, n_replicates=10).agreement if row.headline]
    assert spoiler.without == pytest.approx(quoted.value)
    assert spoiler.change == pytest.approx(quoted.value - spoiler.value)
    items = [row for row in analysis.influence if row.left_out == "item"]
    assert len(items) == 20
    for rows_of_kind in (raters, items):
        assert sorted(rows_of_kind, key=lambda row: -abs(row.change)) == rows_of_kind
    assert analysis.to_polars("influence").height == 25
    assert '"influence": true' in analysis.run.model_dump_json(indent=1)


def test_nothing_is_asked_nothing_is_found(tmp_path: Path) -> None:
    path = write_csv(rows_with_a_spoiler(), tmp_path / "r.csv")
    assert analyse(path, n_replicates=10).influence == ()


def test_two_raters_hang_on_each_other(tmp_path: Path) -> None:
    path = write_csv(rows_with_a_spoiler(n_raters=2), tmp_path / "r.csv")
    analysis = analyse(path, n_replicates=10, influence=True)
    assert analysis.influence == ()
    assert "q: agreement of fewer than three raters hangs on each, so none is left out" in analysis.notes


def test_the_released_quality_file_hangs_on_one_rater(shared_data: Path) -> None:
    """RankME's .68: with z-scores the file gives 0.22, and 0.63 without one rater, who is flagged."""
    table = read_ratings(shared_data / "rankme/stp2_rankME_qual.zip", columns={"item": "mr"})
    analysis = analyse(table, normalise="z", n_replicates=10, influence=True)
    row = next(row for row in analysis.influence if row.criterion == "quality")
    assert (row.name, round(row.value, 2), round(row.without, 2)) == ("43883861", 0.22, 0.63)
    [rater] = [rater for rater in analysis.raters if rater.rater == row.name]
    assert "disagrees" in rater.flags
