"""How values are understood, by their scale or by looking at them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from palaver.errors import DataError
from palaver.schema import (
    Binary,
    Likert,
    Magnitude,
    Ordinal,
    Pairwise,
    RankMagnitude,
    Real,
    Scale,
    Slider,
)
from palaver.studies import RatingTable, read_ratings
from palaver.studies.treatment import Treatment, treat

pytestmark = pytest.mark.filterwarnings("error")


def read(values: list[str], folder: Path) -> RatingTable:
    file = folder / "r.csv"
    rows = [f"i{n},s,r,q,{value}" for n, value in enumerate(values)]
    file.write_text("\n".join(["item,system,rater,criterion,value", *rows]), encoding="utf-8")
    return read_ratings(file)


def guess(values: list[str], folder: Path) -> Treatment:
    return read(values, folder).treatments["q"]


@pytest.mark.parametrize(
    ("values", "kind", "level", "scale"),
    [
        (["1", "4", "6"], "number", "ordinal", Likert(low=1, high=6)),
        (["0", "2", "3"], "number", "ordinal", Ordinal(low=0, high=3)),
        (["0", "1", "1"], "number", "nominal", Binary()),
        (["1", "10"], "number", "ordinal", Likert(low=1, high=10)),
        (["1", "11"], "number", "interval", None),
        (["1.5", "2"], "number", "interval", None),
        (["-1", "2"], "number", "interval", None),
        (["100", "250"], "number", "interval", None),
        (["3", "3"], "number", "interval", None),
        (["ok", "added", "missing|added"], "boxes", "nominal", None),
    ],
)
def test_guesses(values: list[str], kind: str, level: str, scale: object, tmp_path: Path) -> None:
    treatment = guess(values, tmp_path)
    assert (treatment.kind, treatment.level, treatment.scale) == (kind, level, scale)
    assert treatment.guessed  # a guess is said aloud
    assert treatment.guessed in treatment.describe("raw")


def test_boxes_that_occur(tmp_path: Path) -> None:
    treatment = guess(["ok", "added", "missing|added"], tmp_path)
    assert treatment.options == ("added", "missing", "ok")
    assert treatment.exclusive == ("ok",)
    assert guess(["ok", "ok"], tmp_path).exclusive == ()


@pytest.mark.parametrize(
    ("values", "n_bad"), [(["nan", "inf"], 1), (["-inf", "ok", "nan"], 2), (["1e999", "1e308"], 2)]
)
def test_infinity_is_no_word(values: list[str], n_bad: int, tmp_path: Path) -> None:
    """It is meant as a number, and so is nan, which means that there is none."""
    with pytest.raises(DataError, match="cannot be used") as caught:
        read(values, tmp_path)
    assert len(caught.value.problems) == n_bad
    assert "expected a finite number" in caught.value.problems[0]


@pytest.mark.parametrize(
    ("scale", "good", "bad"),
    [
        (Slider(), ["0", "55", "100"], ["0.5", "101", "-1"]),
        (Slider(high=1, step=0.1), ["0.3", "0.7", "1"], ["0.35", "1.1"]),
        (Real(low=0), ["0", "0.001", "1e9"], ["-1"]),
        (Binary(), ["0", "1"], ["2", "0.5"]),
    ],
)
def test_a_scale_checks_a_column_as_it_checks_a_cell(scale: Scale, good: list[str], bad: list[str]) -> None:
    rows = pl.DataFrame({"value": [float(v) for v in good + bad]})
    treatment, fits, problem = treat(rows, scale, screens=False)
    assert rows.filter(fits).height == rows.head(len(good)).filter(fits).height == len(good)
    assert (treatment.kind, treatment.level, problem) == (
        "number",
        scale.level,
        f"expected {scale.describe()}",
    )


def test_mostly_numbers(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(["1", "2", "two", "3"], tmp_path)
    assert caught.value.problems == ("row 4: expected a finite number below 1e50, found 'two'",)


def test_mostly_text(tmp_path: Path) -> None:
    """Comments of all sorts are not a choice."""
    with pytest.raises(DataError, match="40 rows of 40"):
        read([f"comment {n}" for n in range(40)], tmp_path)


def screens(values: str, folder: Path) -> Treatment:
    file = folder / "wide.csv"
    file.write_text(f"item,rater,team1,team2,quality1,quality2\nm1,r1,a,b,{values}\n")
    return read_ratings(file).treatments["quality"]


def test_several_on_a_screen_are_rankme(tmp_path: Path) -> None:
    treatment = screens("100,250", tmp_path)
    assert treatment.scale == RankMagnitude()
    assert treatment.default_normalisation == "log"
    assert treatment.reference == 100
    assert screens("0.5,2", tmp_path).scale == RankMagnitude(whole_numbers=False)
    assert screens("-5,2", tmp_path).scale is None
    assert screens("1e20,2", tmp_path).is_magnitude


def test_default_normalisation() -> None:
    magnitude = Treatment(Magnitude(reference=50))
    assert (magnitude.is_magnitude, magnitude.default_normalisation, magnitude.reference) == (True, "log", 50)
    likert = Treatment(Likert())
    assert (likert.is_magnitude, likert.default_normalisation) == (False, "raw")
    assert "scores are z values" in likert.describe("z")
    assert "scores are" not in likert.describe("raw")


def test_pairs_are_recognised(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text(
        "item,system,against,rater,criterion,value\n"
        "i1,a,b,r,q,win\ni2,a,b,r,q,TIE\ni3,b,a,r,q,0\ni4,a,b,r,q,0.5\n"
    )
    table = read_ratings(file)
    assert table.treatments["q"].kind == "pair"
    assert isinstance(table.treatments["q"].scale, Pairwise)
    assert table.frame.height == 4


@pytest.mark.parametrize("line", ["i,a,a,r,q,win", "i,a,,r,q,win", "i,a,b,r,q,0.7", "i,a,b,r,q,better"])
def test_pairs_that_compare_nothing(line: str, tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text(f"item,system,against,rater,criterion,value\ni0,a,b,r,q,win\n{line}\n")
    with pytest.raises(DataError, match="1 row of 2") as caught:
        read_ratings(file)
    assert "row 3: expected win, tie or loss and the other system" in caught.value.problems[0]
