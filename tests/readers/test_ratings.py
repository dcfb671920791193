"""Rating files as typed frames: whatever the types a column comes with, the frame is the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from study_strategies import ratings

from palaver.errors import UserError
from palaver.readers.rating_columns import SCHEMA
from palaver.readers.rating_files import write_ratings
from palaver.readers.ratings import RatingFrame, read_rating_frame
from palaver.schema import Rating
from palaver.tables import open_frame, open_table

pytestmark = pytest.mark.filterwarnings("error", "ignore::pytest.PytestUnraisableExceptionWarning")

HEAD = "item,system,rater,criterion,value"
WHOLE = {"item": ["1", "1", "2"], "system": ["a", "b", "a"], "rater": ["r", "s", "r"]}


def content(ratings: RatingFrame) -> pl.DataFrame:
    return ratings.frame.drop("row").cast({pl.Categorical: pl.String})


def columns(**more: Any) -> dict[str, Any]:
    return {**WHOLE, "criterion": ["q"] * 3, "value": [1, 2, 3], **more}


@given(many=st.lists(ratings, min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_every_file_and_every_frame_is_read_alike(
    tmp_path_factory: pytest.TempPathFactory, many: list[Rating]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    frames = []
    for ending in ("csv", "jsonl", "parquet"):
        write_ratings(many, folder / f"r.{ending}")
        frames.append(content(read_rating_frame(folder / f"r.{ending}")))
    typed = pl.read_parquet(folder / "r.parquet")
    assert typed.schema == SCHEMA
    names = ["item", "system", "against", "rater", "criterion", "signature", "context", "version"]
    frames.append(content(read_rating_frame(open_frame(typed))))
    frames.append(content(read_rating_frame(open_frame(typed.cast(dict.fromkeys(names, pl.Categorical))))))
    typed.cast(dict.fromkeys(names, pl.Categorical)).write_parquet(folder / "coded.parquet")
    frames.append(content(read_rating_frame(folder / "coded.parquet")))
    for frame in frames[1:]:
        assert_frame_equal(frame, frames[0])


SECONDS = [0.1, 2.5, None]
MOMENTS = [datetime(2024, 1, 1, 12), datetime(2024, 1, 2, 12, 30, 1, 250), None]


@pytest.mark.parametrize(
    "typed",
    [
        {"value": pl.Series([1, 2, 3], dtype=pl.Int8)},
        {"value": pl.Series([1, 2, 3], dtype=pl.UInt64)},
        {"value": [0.1, 2.0, 1e300]},
        {"value": pl.Series([0.1, 2.0, 3.3], dtype=pl.Float32)},
        {"value": [1.0, float("nan"), float("inf")]},
        {"value": [True, False, True]},
        {"value": pl.Series(["1.5", "2", "3"]).cast(pl.Decimal(10, 2))},
        {"value": [["ok"], ["added", "missing"], ["x"]]},
        {"value": pl.Series(["win", "tie", "loss"], dtype=pl.Categorical)},
        {"value": [" 1 ", "2", "three"]},
        {"item": [1, 2, 3]},
        {"item": [1.0, 2.5, 3.0]},
        {"item": pl.Series([" 1", "2 ", "3"], dtype=pl.Categorical)},
        {"rater": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"]))},
        {"given_at": MOMENTS},
        {"given_at": pl.Series(MOMENTS, dtype=pl.Datetime("ns"))},
        {"given_at": pl.Series(MOMENTS).dt.replace_time_zone("Asia/Tokyo")},
        {"given_at": pl.Series(MOMENTS).dt.date()},
        {"seconds": SECONDS},
        {"seconds": pl.Series([timedelta(seconds=s) if s else None for s in SECONDS])},
        {"shown_position": [0.0, 1.0, None], "turn": [0, 1, None], "repeat": [0.0, 1.0, None]},
        {"kind": pl.Series(["llm", None, "metric"], dtype=pl.Categorical)},
        {"probability": pl.Series([0.25, None, 1.0], dtype=pl.Float32)},
        {"signature": [None, "", " "]},
    ],
    ids=lambda typed: ", ".join(typed),
)
def test_typed_columns_mean_what_their_text_means(typed: dict[str, Any], tmp_path: Path) -> None:
    frame = pl.DataFrame(columns(**typed))
    frame.write_parquet(tmp_path / "typed.parquet")
    (text,) = open_table(tmp_path / "typed.parquet").frames()
    text.drop("row").write_parquet(tmp_path / "text.parquet")
    expected = content(read_rating_frame(tmp_path / "text.parquet"))
    assert_frame_equal(content(read_rating_frame(tmp_path / "typed.parquet")), expected)
    assert_frame_equal(content(read_rating_frame(open_frame(frame))), expected)


def test_times_with_a_zone_are_taken_to_utc() -> None:
    moments = pl.Series([datetime(2024, 1, 1, 12, tzinfo=UTC)] * 3).dt.convert_time_zone("Asia/Tokyo")
    frame = read_rating_frame(open_frame(pl.DataFrame(columns(given_at=moments)))).frame
    assert frame["given_at"].to_list() == [datetime(2024, 1, 1, 12)] * 3


# --- who rated ------------------------------------------------------------------------------------------


def file(folder: Path, text: str, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_nobody_named_means_people(tmp_path: Path) -> None:
    ratings = read_rating_frame(file(tmp_path, f"{HEAD},kind\ni,a,r,q,1,\ni,b,r,q,2,llm\n"))
    assert ratings.frame["kind"].to_list() == ["human", "llm"]
    assert set(read_rating_frame(file(tmp_path, f"{HEAD}\ni,a,r,q,1\n")).frame["kind"]) == {"human"}


def test_a_kind_that_is_none_and_a_turn_that_is_no_number_are_bad_rows(tmp_path: Path) -> None:
    text = (
        f"{HEAD},kind,turn,repeat\ni,a,r,q,1,robot,,\ni,b,r,q,2,,last,\ni,c,r,q,3,,-1,0.5\ni,d,r,q,4,,2,1\n"
    )
    ratings = read_rating_frame(file(tmp_path, text))
    assert ratings.frame["system"].to_list() == ["d"]
    assert ratings.frame.select("turn", "repeat").rows() == [(2, 1)]
    assert ratings.n_bad == 3
    kind = "kind: expected human, user, metric, model or llm"
    assert ratings.bad.sort("row", "column").rows() == [
        ("r.csv", 2, "kind", "robot", kind),
        ("r.csv", 3, "turn", "", "turn: expected a whole number from 0"),
        ("r.csv", 4, "repeat", "", "repeat: expected a whole number from 0"),
        ("r.csv", 4, "turn", "", "turn: expected a whole number from 0"),
    ]


def test_the_user_overrules_the_column_file_by_file(tmp_path: Path) -> None:
    people = file(tmp_path, f"{HEAD}\ni,a,r,q,1\n", "people.csv")
    scores = file(tmp_path, f"{HEAD},kind\ni,a,m,q,0.5,llm\n", "scores.csv")
    for named in ("scores.csv", str(scores)):
        ratings = read_rating_frame([people, scores], kinds={named: "metric"})
        assert ratings.frame["kind"].to_list() == ["human", "metric"]


def test_kinds_of_files_that_are_not_read_and_kinds_that_do_not_exist(tmp_path: Path) -> None:
    path = file(tmp_path, f"{HEAD}\ni,a,r,q,1\n", "scores.csv")
    with pytest.raises(UserError, match=r"'score.csv'.*did you mean 'scores.csv'"):
        read_rating_frame(path, kinds={"score.csv": "metric"})
    with pytest.raises(UserError, match="did you mean 'metric'"):
        read_rating_frame(path, kinds={"scores.csv": "metrics"})  # type: ignore[dict-item]


# --- wide files -----------------------------------------------------------------------------------------


def test_mistakes_in_wide_files_name_the_column_of_the_file(tmp_path: Path) -> None:
    screens = "mr_id,_worker_id,team1,team2,quality1,quality2\nm1,,a,b,1,2\nm1,r,a,,1,2\n"
    bad = read_rating_frame(file(tmp_path, screens)).bad
    assert bad.sort("row").select("row", "column", "problem").rows() == [
        (2, "_worker_id", "no rater given"),
        (3, "team2", "no system given"),
    ]


def test_wide_files_keep_their_criteria_whatever_they_are_called(tmp_path: Path) -> None:
    text = "item,system,rater,quality,probability,turn\ni,a,r,3,0.5,2\n"
    frame = read_rating_frame(file(tmp_path, text)).frame
    assert frame["criterion"].to_list() == ["quality", "probability", "turn"]
    assert frame["turn"].null_count() == 3


def test_a_frame_in_a_wide_layout(tmp_path: Path) -> None:
    frame = pl.DataFrame({**WHOLE, "quality": [1, 2, None], "check": [["ok"], ["added", "missing"], ["ok"]]})
    ratings = read_rating_frame(open_frame(frame, "mine"))
    assert list(ratings.files) == ["mine"]
    assert ratings.frame.select("criterion", "value", "text").rows() == [
        ("quality", 1.0, None),
        ("check", None, "ok"),
        ("quality", 2.0, None),
        ("check", None, "added|missing"),
        ("check", None, "ok"),
    ]
    assert ratings.n_missing == 1


def test_the_digest_of_a_frame_is_that_of_its_content() -> None:
    first = open_frame(pl.DataFrame(columns())).digest()
    assert open_frame(pl.DataFrame(columns())).digest() == first
    assert open_frame(pl.DataFrame(columns(value=[1, 2, 4]))).digest() != first


def test_a_context_that_is_a_list_of_turns_does_no_harm(tmp_path: Path) -> None:
    turns = [[{"speaker": "user", "text": "hi"}], [{"speaker": "user", "text": "hi"}], []]
    pl.DataFrame(columns(context=turns)).write_parquet(tmp_path / "r.parquet")
    contexts = read_rating_frame(tmp_path / "r.parquet").frame["context"].to_list()
    assert contexts[0] == contexts[1] == '[{"speaker": "user", "text": "hi"}]'


def test_the_probability_of_being_drawn_is_a_number_above_0_up_to_1(tmp_path: Path) -> None:
    path = tmp_path / "drawn.csv"
    path.write_text(
        "item,system,rater,criterion,value,sampling_probability\n"
        "i,a,r,q,3,0.25\nj,a,r,q,3,1\nk,a,r,q,3,\nl,a,r,q,3,0\nm,a,r,q,3,often\nn,a,r,q,3,1.5\n"
    )
    ratings = read_rating_frame(path)
    assert ratings.frame["sampling_probability"].to_list() == [0.25, 1.0, None]
    assert ratings.bad["row"].to_list() == [5, 6, 7]
    assert set(ratings.bad["problem"]) == {"sampling_probability: expected a number above 0, at most 1"}
