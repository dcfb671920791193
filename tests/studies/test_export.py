"""The long Parquet file that an analysis leaves behind."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from palaver.readers.rating_files import write_frames
from palaver.studies import analyse, example_study, read_ratings, simulate, write_long
from palaver.studies.design import preset_study

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("preset", ["rankme", "plain-me", "likert", "pairwise", "snippet"])
def test_the_export_analyses_to_the_same_numbers(preset: str, tmp_path: Path) -> None:
    study = example_study(preset_study(preset), 3, 12)
    write_frames([simulate(study, n_raters=8).frame], tmp_path / "r.csv")
    table = read_ratings(tmp_path / "r.csv", study=study)
    write_long(table, tmp_path / "long.parquet")
    again = read_ratings(tmp_path / "long.parquet", study=study)
    found = [json.loads(analyse(t, study=study, n_replicates=20).to_json()) for t in (table, again)]
    for key in ("criteria", "agreement", "correlation", "ranking", "raters", "tests", "notes"):
        assert found[0][key] == found[1][key], key


HEAD = "item,system,rater,criterion,value\n"


def test_columns_and_scores(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(HEAD + "i,a,r,q,50\ni,b,r,q,200\nj,a,r,q,100\nj,b,r,q,100\n")
    table = read_ratings(tmp_path / "r.csv")
    write_long(table, tmp_path / "long.parquet", normalise="log")
    frame = pl.read_parquet(tmp_path / "long.parquet")
    assert {"item", "system", "rater", "criterion", "value", "score"} <= set(frame.columns)
    assert frame["value"].dtype == pl.Float64
    assert frame["value"].to_list() == [50, 200, 100, 100]
    assert frame["score"].to_list() == pytest.approx([math.log(v) for v in (50, 200, 100, 100)])


def test_words_make_values_text(tmp_path: Path) -> None:
    text = HEAD + 'i,a,r,q,5\ni,a,r,boxes,"added\nmissing"\ni,b,r,boxes,ok\n'
    (tmp_path / "r.csv").write_text(text)
    write_long(read_ratings(tmp_path / "r.csv"), tmp_path / "long.parquet")
    frame = pl.read_parquet(tmp_path / "long.parquet")
    assert frame["value"].to_list() == ["5", "added|missing", "ok"]
    assert frame["score"].to_list() == [5.0, None, None]


def test_rows_stay_in_the_order_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEAD + "i1,a,r,q,1\ni1,a,r,p,2\ni2,a,r,q,3\n")
    (tmp_path / "b.csv").write_text(HEAD + "i3,a,r,p,4\n")
    table = read_ratings([tmp_path / "a.csv", tmp_path / "b.csv"])
    write_long(table, tmp_path / "long.parquet")
    assert pl.read_parquet(tmp_path / "long.parquet")["value"].to_list() == [1, 2, 3, 4]


def test_names_of_the_files_come_back(tmp_path: Path) -> None:
    head = "item,system,rater,criterion,value,kind,turn,repeat,context,signature\n"
    text = head + "i,a,ann,q,5,,,,,\ni,a,gpt,q,4,llm,1,0,c,x1\ni,b,gpt,q,3,llm,1,1,c,x1\n"
    (tmp_path / "r.csv").write_text(text)
    table = read_ratings(tmp_path / "r.csv")
    write_long(table, tmp_path / "long.parquet")
    frame = pl.read_parquet(tmp_path / "long.parquet").cast({pl.Categorical: pl.String})
    assert frame.select(
        "item", "rater", "criterion", "kind", "turn", "repeat", "context", "signature"
    ).rows() == [
        ("i", "ann", "q", "human", None, None, None, None),
        ("i", "gpt", "q", "llm", 1, 0, "c", "x1"),
        ("i", "gpt", "q", "llm", 1, 1, "c", "x1"),
    ]
    again = read_ratings(tmp_path / "long.parquet")
    assert again.frame.cast({pl.Categorical: pl.String}).equals(table.frame.cast({pl.Categorical: pl.String}))
