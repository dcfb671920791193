"""`compare rank` is the analysis of a judge's ratings: the numbers are those of a plain bootstrap."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from palaver.errors import DataError
from palaver.judges.ranking import rank_systems, read_scores


def scored(n: int, *, sittings: bool, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [
        {
            "item": f"{system}-{i}",
            "context": f"s{i}" if sittings else None,
            "system": system,
            "rater": "comparator",
            "criterion": "quality",
            "value": float(rng.normal(level)),
            "kind": "model",
        }
        for system, level in (("good", 1.0), ("middle", 0.0), ("bad", -1.0))
        for i in range(n)
    ]
    return pl.DataFrame(rows, schema_overrides={"context": pl.String})


@pytest.mark.parametrize("sittings", [False, True])
def test_the_better_system_comes_first_with_the_mean_of_its_dialogues(sittings: bool) -> None:
    frame = scored(60, sittings=sittings)
    analysis = rank_systems(frame, n_replicates=200)
    row = next(r for r in analysis.ranking if r.method == "bootstrap")
    assert [s.system for s in row.scores] == ["good", "middle", "bad"]
    for score in row.scores:
        own = frame.filter(pl.col("system") == score.system)["value"]
        assert score.score == pytest.approx(own.mean())
        assert score.n == own.len() == 60
        assert score.low < score.score < score.high
    compared = next(r for r in analysis.ranking if r.method == "trueskill")
    assert bool(compared.groups) is sittings  # without shared sittings nothing was compared
    assert bool(compared.reason) is not sittings


def test_repeated_dialogues_of_a_sitting_all_count() -> None:
    frame = scored(10, sittings=True)
    twice = pl.concat([frame, frame.with_columns(pl.col("item") + "-again", value=pl.col("value") + 1)])
    row = next(r for r in rank_systems(twice, n_replicates=100).ranking if r.method == "bootstrap")
    assert {s.n for s in row.scores} == {20}
    good = twice.filter(pl.col("system") == "good")["value"].mean()
    assert row.scores[0].score == pytest.approx(good)


def test_one_system_is_nothing_to_rank() -> None:
    frame = scored(5, sittings=False).filter(pl.col("system") == "good")
    with pytest.raises(DataError, match="at least two systems, found 1: good"):
        rank_systems(frame)


def test_a_file_of_scores_is_read_as_ratings(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    rows = [{"id": str(i), "system": "ab"[i % 2], "score": i / 10} for i in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = read_scores(path)
    assert scores is not None
    assert scores.notes == ()
    assert scores.ratings["item"].to_list() == [row["id"] for row in rows]
    analysis = rank_systems(scores.ratings, n_replicates=100)
    assert [s.system for s in analysis.ranking[0].scores] == ["b", "a"]
    path.write_text(json.dumps({"id": "1", "turns": []}) + "\n")
    assert read_scores(path) is None
    path.write_text(json.dumps({"id": "1", "score": 1.0}) + "\n")
    with pytest.raises(DataError, match="names no systems"):
        read_scores(path)


def test_scores_of_another_language_are_warned_of_again(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    rows: list[dict[str, object]] = [{"id": "1", "system": "a", "score": 0.1, "english": False}]
    rows.append({"id": "2", "system": "b", "score": 0.2})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = read_scores(path)
    assert scores is not None
    assert scores.notes == ("1 dialogues that do not look English: do not believe their scores",)
