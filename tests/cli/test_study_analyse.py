"""`palaver study analyse | describe | convert`."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.readers.rating_files import iter_ratings

Palaver = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings("error")

HEAD = "item,system,rater,criterion,value\n"


def results(folder: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "results.json").read_text(encoding="utf-8"))
    return found


def test_analyse_writes_everything_and_says_where(palaver: Palaver, ratings: Path) -> None:
    ran = palaver("study", "analyse", ratings, "--out", "out", "--replicates", 50)
    assert ran.code == 0
    assert ran.err == ""
    assert {p.name for p in Path("out").iterdir()} == {
        "report.html",
        "tables.tex",
        "results.json",
        "ratings.parquet",
    }
    assert ran.out.rstrip().endswith("report: out/report.html")
    for word in ("alpha", "quality", "ICC(1,k)", "TrueSkill", "rater 0"):
        assert word in ran.out
    found = results("out")
    assert found["signature"] in ran.out
    assert {"agreement", "correlation", "ranking", "raters", "signature"} <= found.keys()
    assert pl.read_parquet("out/ratings.parquet").height == 72
    html = Path("out/report.html").read_text(encoding="utf-8")
    assert found["signature"] in html
    assert not re.search(
        r"<link|<script[^>]*src|@import|(src=[\"']?|url\([\"']?)https?:", html
    )  # self-contained


def test_the_folder_is_named_after_the_file(palaver: Palaver, ratings: Path) -> None:
    assert (
        palaver("study", "analyse", ratings, "-q", "--replicates", 20).out
        == "report: ratings-analysis/report.html\n"
    )
    ratings.rename(ratings.with_name(".hidden.csv"))
    assert "hidden-analysis" in palaver("study", "analyse", ".hidden.csv", "-q", "--replicates", 20).out


def test_the_same_seed_gives_the_same_file(palaver: Palaver, ratings: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        palaver("study", "analyse", ratings, "--out", name, "-q", "--replicates", 50, "--seed", seed)
    a, b, c = (Path(name, "results.json").read_bytes() for name in "abc")
    assert a == b != c
    assert Path("a/report.html").read_bytes() == Path("b/report.html").read_bytes()


def test_threads_of_polars_change_nothing(palaver: Palaver, ratings: Path) -> None:
    """`make test` allows polars one thread; people's machines have many."""
    words = ["study", "analyse", str(ratings), "-q", "--replicates", "50", "--out"]
    for threads in ("1", "4"):
        environment = {**os.environ, "POLARS_MAX_THREADS": threads}
        subprocess.run([sys.executable, "-m", "palaver", *words, threads], env=environment, check=True)
    one, four = (Path(name, "results.json").read_bytes() for name in ("1", "4"))
    assert one == four


def test_options_reach_the_analysis(palaver: Palaver, ratings: Path) -> None:
    words = [
        "--normalise",
        "z",
        "--correlation",
        "kendall",
        "--confidence",
        0.9,
        "--replicates",
        33,
        "--seed",
        7,
    ]
    assert palaver("study", "analyse", ratings, "--out", "out", "-q", *words).code == 0
    run = results("out")["run"]
    assert run["seed"] == 7
    assert {k: run["config"][k] for k in ("normalise", "correlation", "confidence", "replicates")} == {
        "normalise": "z", "correlation": "kendall", "confidence": 0.9, "replicates": 33,
    }  # fmt: skip
    assert all(row["confidence"] == 0.9 for row in results("out")["ranking"])


def test_several_files_and_columns(palaver: Palaver, ratings: Path) -> None:
    lines = ratings.read_text().splitlines()
    head = lines[0].replace("rater", "who").replace("value", "mark")
    Path("one.csv").write_text("\n".join([head, *lines[1:40]]))
    Path("two.csv").write_text("\n".join([head, *lines[40:]]))
    columns = ["--column", "rater=who", "--column", "value=mark"]
    ran = palaver(
        "study", "analyse", "one.csv", "two.csv", "--out", "out", "-q", "--replicates", 20, *columns
    )
    assert ran.code == 0, ran.err
    assert results("out")["reading"]["n_ratings"] == 72
    whole = palaver("study", "analyse", ratings, "--out", "whole", "-q", "--replicates", 20)
    assert whole.code == 0
    for key in ("agreement", "ranking", "raters", "correlation"):
        assert results("out")[key] == results("whole")[key]


def test_people_and_judges_together(palaver: Palaver, ratings: Path) -> None:
    """A judge's file beside people's: its own criteria, named as such in the terminal and the report."""
    people = pl.read_csv(ratings)
    scores = people.unique(["item", "system", "criterion"]).with_columns(rater=pl.lit("length"))
    scores.write_csv("scores.csv")
    words = ("study", "analyse", ratings, "scores.csv", "--out", "out", "--replicates", 20)
    ran = palaver(*words, "--kind", "scores.csv=metric", "--direction", "quality=lower")
    assert ran.code == 0
    summaries = {c["criterion"]: (c["rated_by"], c["direction"]) for c in results("out")["criteria"]}
    assert summaries["quality"] == ("human", "lower")
    assert summaries["quality (metric)"] == ("metric", "lower")
    html = Path("out/report.html").read_text(encoding="utf-8")
    for text in (ran.out.lower(), html.lower()):
        assert "rated by a metric; lower is better" in text
        assert "not mixed" in " ".join(text.split())
    assert "rated by" not in palaver("study", "analyse", ratings, "--out", "o2", "--replicates", 20).out
    described = palaver("study", "describe", "scores.csv", "--kind", "scores.csv=metric").out
    assert "metric" in described


def test_a_study_file(palaver: Palaver) -> None:
    palaver("study", "simulate", "--items", 6, "--out", "r.csv", "--study-out", "s.toml")
    ran = palaver("study", "analyse", "r.csv", "--study", "s.toml", "--out", "out", "--replicates", 20)
    assert ran.code == 0
    assert "How good are these restaurant descriptions?" in ran.out


def test_duplicates_are_counted_aloud(palaver: Palaver, ratings: Path) -> None:
    lines = ratings.read_text().splitlines()
    ratings.write_text("\n".join([*lines, *lines[1:4]]))
    ran = palaver("study", "analyse", ratings, "--out", "out", "--replicates", 20)
    assert "earlier answers replaced by a later one" in ran.out
    assert results("out")["reading"]["dropped"] == [["earlier answers replaced by a later one", 3]]


# --- bad rows -------------------------------------------------------------------------------------------

BAD = HEAD + "i,a,r,q,1\ni,b,r,q,2\nj,a,r,q,nine\nj,b,,q,2\nk,a,r,q\nk,a,r,q,3\n"


def test_bad_rows_are_all_listed(palaver: Palaver) -> None:
    Path("r.csv").write_text(BAD)
    ran = palaver("study", "analyse", "r.csv")
    assert (ran.code, ran.out) == (1, "")
    assert "3 rows of 6 cannot be used" in ran.err
    assert [int(n) for n in re.findall(r"- row (\d+):", ran.err)] == [4, 5, 6]
    assert "--skip-bad" in ran.err
    assert {p.name for p in Path().iterdir()} == {"r.csv"}  # not even an empty folder is left behind


def test_skip_bad_writes_them_to_a_side_file(palaver: Palaver) -> None:
    Path("r.csv").write_text(BAD)
    ran = palaver("study", "analyse", "r.csv", "--skip-bad", "--out", "out", "--replicates", 20)
    assert ran.code == 0, ran.err
    assert "left out 3 rows that cannot be used: out/bad-rows.csv" in ran.out
    with Path("out/bad-rows.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["file"], r["row"], r["column"], r["value"]) for r in rows] == [
        ("r.csv", "4", "value", "nine"),
        ("r.csv", "5", "rater", ""),
        ("r.csv", "6", "", ""),
    ]
    assert results("out")["reading"]["dropped"] == [["ratings that could not be used", 3]]
    Path("r.csv").write_text(HEAD + "i,a,r,q,1\ni,b,r,q,2\n")
    assert (
        palaver("study", "analyse", "r.csv", "--skip-bad", "--out", "out", "-q", "--replicates", 20).code == 1
    )
    assert Path("out/bad-rows.csv").exists()  # another run's folder is not touched unasked
    assert palaver("study", "analyse", "r.csv", "--out", "out", "--force", "-q", "--replicates", 20).code == 0
    assert not Path("out/bad-rows.csv").exists()  # the list of another run would mislead


def test_one_bad_row_is_one_row(palaver: Palaver) -> None:
    Path("r.csv").write_text(HEAD + "i,a,r,q,1\ni,b,r,q,2\n,,r,q,2\n")
    assert (
        "left out 1 row that"
        in palaver("study", "analyse", "r.csv", "--skip-bad", "-q", "--replicates", 20).out
    )


def test_an_unknown_criterion(palaver: Palaver) -> None:
    palaver("study", "new", "--preset", "likert", "--out", "s.toml")
    Path("r.csv").write_text(HEAD + "harbour,north,r,qualty,3\n")
    ran = palaver("study", "analyse", "r.csv", "--study", "s.toml")
    assert ran.code == 1
    assert "row 2: unknown criterion" in ran.err
    assert "did you mean 'quality'" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.csv"], "there is no file nowhere.csv"),
        (["."], "is a directory"),
        (["ratngs.csv"], "did you mean 'ratings.csv'"),
        (["empty.csv"], "empty.csv is empty"),
        (["head.csv"], "no rows"),
        (["picture.png"], "picture.png"),
        (["ratings.csv", "empty.csv"], "empty.csv is empty"),
        (["ratings.csv", "--study", "nowhere.toml"], "there is no file nowhere.toml"),
        (["ratings.csv", "--study", "ratings.csv"], "not valid TOML"),
        (["ratings.csv", "--column", "ratr=rater"], "did you mean 'rater'"),
        (["ratings.csv", "--column", "rater=ratr"], "did you mean 'rater'"),
        (["ratings.csv", "--kind", "rating.csv=llm"], "did you mean 'ratings.csv'"),
        (["ratings.csv", "--kind", "ratings.csv=robot"], "there is no kind 'robot'"),
        (["ratings.csv", "--direction", "qualty=lower"], "did you mean 'quality'"),
        (["ratings.csv", "--out", "ratings.csv"], "ratings.csv is there already"),
        (["ratings.csv", "--out", "ratings.csv", "--force"], "is a file, not a folder"),
        (["ratings.csv", "--out", "ratings.csv/deeper"], "cannot write"),
    ],
)
def test_analyse_refuses(words: list[str], said: str, palaver: Palaver, ratings: Path) -> None:
    Path("empty.csv").write_text("")
    Path("head.csv").write_text(HEAD)
    Path("picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)
    before = sorted(Path().iterdir())
    ran = palaver("study", "analyse", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert said in ran.err
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    "text",
    [
        "i,a,r,q,3\n",
        "i,a,r,q,3\ni,b,r,q,3\n",
        "i,a,r,q,3\nj,a,r,q,4\n",
        "i,a,r,q,3\ni,a,s,q,3\nj,a,r,q,3\nj,a,s,q,3\ni,b,r,q,3\n",
        "i,a,r,q,ok\nj,a,r,q,added\n",
    ],
    ids=["one rating", "one rater and item", "one system", "all equal", "words"],
)
def test_the_edges_make_a_report_too(text: str, palaver: Palaver) -> None:
    Path("r.csv").write_text(HEAD + text)
    ran = palaver("study", "analyse", "r.csv", "--out", "out", "--replicates", 20)
    assert ran.code == 0, ran.err
    assert "nan" not in ran.out.lower().replace("nan-", "")
    assert "NaN" not in Path("out/results.json").read_text()
    assert Path("out/report.html").stat().st_size > 10_000


# --- what the user says about a file ----------------------------------------------------------------------

WORDS = HEAD + "i,a,r,q,Good\ni,b,r,q,poor\nj,a,r,q,Fair\nj,b,r,q,good\n"


def test_words_need_an_order(palaver: Palaver) -> None:
    Path("r.csv").write_text(WORDS)
    ran = palaver("study", "analyse", "r.csv")
    assert ran.code == 1
    assert "q: 'Fair' (1), 'Good' (1), 'good' (1), 'poor' (1)" in ran.err
    assert 'lowest first: --labels "poor,Fair,good"' in ran.err
    assert '--labels "q:nominal"' in ran.err
    mended = palaver("study", "analyse", "r.csv", "--labels", "poor,Fair,good", "--replicates", 20)
    assert mended.code == 0, mended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--labels", "Good"], "at least two words"),
        (["--labels", "Good,,Bad"], "at least two words"),
        (["--labels", "Good=x,Bad=1"], "expected a number after Good="),
        (["--labels", "q:"], "at least two words"),
        (["--labels", "poor,good", "--labels", "good,poor"], "is given two numbers"),
        (["--criteria", "q,"], "--criteria"),
        (["--shape", "form"], "did you mean 'forms'"),
    ],
)
def test_wrong_words_about_a_file(words: list[str], said: str, palaver: Palaver) -> None:
    Path("r.csv").write_text(WORDS)
    for verb in (["analyse", "r.csv"], ["describe", "r.csv"], ["convert", "r.csv", "out.csv"]):
        ran = palaver("study", *verb, *words)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err


def test_bad_cells_are_cells(palaver: Palaver) -> None:
    rows = [
        "item,system,Judge,Fluency,warmth",
        "i,a,r,3,2",
        "i,b,r,x,y",
        "j,a,r,4,z",
        "j,b,r,2,1",
        "k,b,r,2,1",
    ]
    Path("r.csv").write_text("\n".join(rows))
    ran = palaver("study", "analyse", "r.csv")
    assert "3 cells in 2 rows of 5 cannot be used" in ran.err
    assert "row 3, column 'Fluency': expected a finite number" in ran.err
    ran = palaver("study", "analyse", "r.csv", "--skip-bad", "--out", "o", "--replicates", 20)
    assert "left out 3 cells in 2 rows that cannot be used" in ran.out
    bad = pl.read_csv("o/bad-rows.csv").select("row", "column", "value").rows()
    assert bad == [(3, "Fluency", "x"), (3, "warmth", "y"), (4, "warmth", "z")]


def test_columns_that_are_left_are_named_everywhere(palaver: Palaver) -> None:
    Path("r.csv").write_text("item,system,rater,quality,age\ni,a,r,3,31\ni,b,r,4,31\n")
    for verb in (["analyse", "r.csv", "--out", "o"], ["describe", "r.csv"], ["convert", "r.csv", "out.csv"]):
        out = " ".join(palaver("study", *verb).out.split())
        assert "left the column 'age': it looks like an age; add --criteria \"quality,age\" to take it" in out
    assert any("'age'" in note for note in results("o")["reading"]["notes"])
    assert "&#39;age&#39;" in Path("o/report.html").read_text(encoding="utf-8")


# --- describe -------------------------------------------------------------------------------------------


def test_describe(palaver: Palaver, ratings: Path) -> None:
    ran = palaver("study", "describe", ratings)
    assert ran.code == 0
    assert "72 ratings, 8 items, 3 raters" in ran.out
    for system in ("alpha", "beta", "gamma"):
        assert system in ran.out
    frame = pl.read_csv(ratings).filter(pl.col("system") == "alpha")
    assert f"{frame['value'].mean():.4g}" in ran.out


def test_describe_counts_what_it_cannot_use(palaver: Palaver) -> None:
    Path("r.csv").write_text(HEAD + "i,a,r,q,3\ni,a,s,q,good\ni,a\n")
    ran = palaver("study", "describe", "r.csv")
    assert ran.code == 0
    assert "2 ratings, 1 item, 2 raters" in ran.out
    assert "rows that could not be read: 1" in ran.out


def test_describe_one_number_below_nothing(palaver: Palaver) -> None:
    Path("r.csv").write_text(HEAD + "i,a,r,q,-1.5\n")
    row = palaver("study", "describe", "r.csv").out.splitlines()[-1]
    assert row.split()[3:] == ["1", "−1.5", "–", "−1.5", "−1.5", "0"]


def test_describe_names_like_markup(palaver: Palaver) -> None:
    Path("r.csv").write_text(HEAD + "i,[bold]a[/bold],r,[q],3\n")
    out = palaver("study", "describe", "r.csv").out
    assert "[bold]a[/bold]" in out
    assert "[q]" in out


# --- convert --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_convert(ending: str, palaver: Palaver) -> None:
    Path("wide.csv").write_text("item,rater,team1,team2,quality1,quality2\ni,r,a,b,100,250\nj,r,b,a,,50\n")
    ran = palaver("study", "convert", "wide.csv", f"long.{ending}")
    assert ran.code == 0, ran.err
    assert f"wrote 3 ratings to long.{ending}" in ran.out
    assert [(r.item, r.system, r.value) for r in iter_ratings(f"long.{ending}")] == [
        ("i", "a", 100.0),
        ("i", "b", 250.0),
        ("j", "a", 50.0),
    ]


def test_convert_refuses(palaver: Palaver, ratings: Path) -> None:
    ran = palaver("study", "convert", ratings, ratings)
    assert ran.code == 1
    assert "is there already" in ran.err
    assert "--out" not in ran.err  # it has no such option
    assert palaver("study", "convert", ratings, "r.pdf").code == 1
    assert palaver("study", "convert", "nowhere.csv", "r.csv").code == 1
    Path("bad.csv").write_text(HEAD + "i,a,r,q,3\ni,a,r,q,3,4\n")
    ran = palaver("study", "convert", "bad.csv", "good.csv")
    assert ran.code == 1
    assert "row 3: expected 5 fields, found 6" in ran.err
    assert not Path("good.csv").exists()


def test_convert_onto_itself(palaver: Palaver, ratings: Path) -> None:
    before = [(r.item, r.system, r.rater, r.value) for r in iter_ratings(ratings)]
    assert palaver("study", "convert", ratings, ratings, "--force").code == 0
    assert [(r.item, r.system, r.rater, r.value) for r in iter_ratings(ratings)] == before


def test_influence_is_in_every_form_of_the_result(palaver: Palaver, ratings: Path) -> None:
    ran = palaver("study", "analyse", ratings, "--influence", "--out", "out", "--replicates", 20)
    assert ran.code == 0
    assert "Influence" in ran.out
    rows = results("out")["influence"]
    assert {row["left_out"] for row in rows} == {"rater", "item"}
    assert {"criterion", "name", "n_ratings", "value", "without", "change", "reason"} <= rows[0].keys()
    assert 'id="influence"' in Path("out/report.html").read_text(encoding="utf-8")
    plain = palaver("study", "analyse", ratings, "--out", "plain", "--replicates", 20)
    assert "Influence" not in plain.out
    assert 'id="influence"' not in Path("plain/report.html").read_text(encoding="utf-8")
