"""`palaver study new | check | simulate | power`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.readers.rating_files import iter_ratings
from palaver.studies import PRESETS, load_study

Palaver = Callable[..., Any]
ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.filterwarnings("error")


# --- new and check --------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_new_then_check(preset: str, palaver: Palaver) -> None:
    ran = palaver("study", "new", "--preset", preset, "--out", "deep/er/s.toml")
    assert ran.code == 0
    assert "next: put your own items in, then: palaver study check deep/er/s.toml" in ran.out
    checked = palaver("study", "check", "deep/er/s.toml")
    assert checked.code == 0
    assert "deep/er/s.toml is right" in checked.out
    study = load_study("deep/er/s.toml")
    for question in study.questions:
        assert f"  {question.criterion}: " in checked.out
    assert f"{len(study.items)} items" in checked.out


def test_check_counts_images_and_sounds(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    checked = palaver("study", "check", "examples/rich-items/study.toml")
    page = (ROOT / "docs" / "how-to" / "rich-items.md").read_text(encoding="utf-8")
    assert f"$ palaver study check examples/rich-items/study.toml\n{checked.out}```" in page
    facts = json.loads(palaver("study", "check", "examples/rich-items/study.toml", "--json").out)
    assert [file["type"] for file in facts["media"]["files"]] == ["image/png", "image/png", "audio/wav"]
    assert facts["notes"] == []


def test_check_says_what_is_translated_and_what_is_not(palaver: Palaver) -> None:
    page = (ROOT / "docs" / "how-to" / "several-languages.md").read_text(encoding="utf-8")
    example = next(block for block in page.split("```toml\n") if block.startswith('language = "en"'))
    item = '[[items]]\nid = "one"\noutputs = [{ system = "a", text = "x" }, { system = "b", text = "y" }]\n'
    text = f'name = "example"\n{example.partition("```")[0]}{item}'
    Path("s.toml").write_text(text, encoding="utf-8")
    checked = palaver("study", "check", "s.toml")
    assert "languages, by the rater's browser: en, de\n" in checked.out
    assert "not translated" not in checked.out
    Path("part.toml").write_text(text.replace("survey.age =", "# "), encoding="utf-8")
    assert (
        "de: not translated: survey.age.text, survey.age.options\n"
        in palaver("study", "check", "part.toml").out
    )
    Path("typo.toml").write_text(text.replace('language = "en"', 'language = "eng"'), encoding="utf-8")
    ran = palaver("study", "check", "typo.toml")
    assert ran.code == 1
    assert "there is no catalogue 'eng' (did you mean 'en'?)" in ran.err
    Path("plain.toml").write_text(text.partition("[translations.de]")[0] + item, encoding="utf-8")
    for name in ("s", "plain"):  # simulated raters read the study's own texts
        palaver("study", "simulate", f"{name}.toml", "--out", f"{name}.csv")
    assert Path("s.csv").read_text() == Path("plain.csv").read_text()


def test_a_rehearsed_study_finds_its_images(palaver: Palaver) -> None:
    Path("deep").mkdir()
    shutil.copytree(ROOT / "examples" / "rich-items", "deep/rich")
    words = ["deep/rich/study.toml", "--raters", "4", "--out", "r.csv", "--study-out", "here.toml"]
    assert palaver("study", "simulate", *words).code == 0
    assert palaver("study", "check", "here.toml").code == 0
    assert load_study("here.toml").items == load_study("deep/rich/study.toml").items


def test_new_with_images(palaver: Palaver) -> None:
    shutil.copytree(ROOT / "examples" / "rich-items" / "media", "pictures")
    lines = [{"id": "1", "system": s, "context": "What?", "response": f"![{s}](beach.png)"} for s in "ab"]
    Path("said.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    ran = palaver("study", "new", "--from", "said.jsonl", "--media", "pictures", "--out", "s.toml")
    assert ran.code == 0
    assert "1 image from pictures" in palaver("study", "check", "s.toml").out
    refused = palaver("study", "new", "--media", "pictures", "--out", "t.toml")
    assert refused.code == 2
    assert "--media is about responses" in refused.err


def write_responses(path: str, n: int = 12) -> None:
    rows = [
        {"id": f"t{i}#1", "system": s, "context": f"{i}?", "response": f"{s} on {i}", "reference": f"{s}"}
        for i in range(n)
        for s in ("a", "b", "c")
    ]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))


def test_from_responses_to_an_answer(palaver: Palaver) -> None:
    """Every command takes what the one before it wrote, and a judge's ratings join those of people."""
    write_responses("responses.jsonl")
    ran = palaver(
        "study", "new", "--from", "responses.jsonl", "--preset", "pairwise", "--sample", 10, "--out", "s.toml"
    )
    assert ran.code == 0, ran.err
    assert "wrote s.toml and s-items.jsonl: 30 items of 3 systems (a, b, c)" in ran.out
    assert "left out 1: contexts that not all systems answered" in ran.out
    assert "left out 1: contexts that were not drawn" in ran.out
    assert "next: palaver study serve s.toml" in ran.out
    assert palaver("study", "check", "s.toml").code == 0
    simulated = palaver("study", "simulate", "s.toml", "--out", "people.csv")
    assert "next: palaver study analyse people.csv --study s.toml" in simulated.out
    assert palaver("judge", "responses.jsonl", "--by", "words", "--out", "judged.parquet").code == 0
    ran = palaver("study", "analyse", "people.csv", "judged.parquet", "--study", "s.toml", "--replicates", 20)
    assert ran.code == 0, ran.err
    (row,) = json.loads(Path("people-analysis/results.json").read_text())["correlation"]
    assert (row["a"], row["b"], row["n"]) == ("preference", "words", 30)  # ten contexts of three systems


def test_check_and_simulate_for_programs(palaver: Palaver) -> None:
    palaver("study", "new", "--preset", "likert", "--out", "s.toml")
    study = json.loads(palaver("study", "check", "s.toml", "--json").out)
    assert (study["items"], study["systems"]) == (3, ["north", "south", "west"])
    assert study["questions"][0]["scale"]["kind"] == "likert"
    result = json.loads(palaver("study", "simulate", "s.toml", "--out", "r.csv", "--json").out)
    assert result["truth"]["quality"]["north"] > result["truth"]["quality"]["west"]
    assert result["ratings"] == pl.read_csv("r.csv").height


def test_new_from_files_refuses_what_cannot_be(palaver: Palaver) -> None:
    write_responses("r.jsonl")
    assert palaver("study", "new", "--sample", 3, "--out", "s.toml").code == 2
    ran = palaver("study", "new", "--from", "r.jsonl", "--preset", "likert", "--pairs", 1, "--out", "s.toml")
    assert (ran.code, ran.err.splitlines()[0]) == (
        2,
        "error: --pairs is for pairwise studies, found --preset likert",
    )
    assert palaver("study", "new", "--from", "r.jsonl", "--preset", "acute", "--out", "s.toml").code == 1
    assert not Path("s.toml").exists()
    Path("s-items.jsonl").write_text("mine")
    ran = palaver("study", "new", "--from", "r.jsonl", "--preset", "likert", "--out", "s.toml")
    assert "s-items.jsonl is there already" in ran.err


@pytest.mark.parametrize("layout", ["joint", "separate"])
def test_new_in_either_layout(layout: str, palaver: Palaver) -> None:
    assert palaver("study", "new", "--out", "s.toml", "--layout", layout).code == 0
    assert load_study("s.toml").layout == layout


def test_nothing_is_overwritten_unasked(palaver: Palaver) -> None:
    Path("s.toml").write_text("mine")
    ran = palaver("study", "new", "--out", "s.toml")
    assert (ran.code, ran.out) == (1, "")
    assert "s.toml is there already" in ran.err
    assert "--force" in ran.err
    assert Path("s.toml").read_text() == "mine"
    assert palaver("study", "new", "--out", "s.toml", "--force").code == 0
    assert palaver("study", "check", "s.toml").code == 0


def test_new_where_nothing_can_be_written(palaver: Palaver) -> None:
    Path("file").write_text("")
    ran = palaver("study", "new", "--out", "file/s.toml")
    assert ran.code == 1
    assert ran.err.startswith("error: cannot write file/s.toml")
    Path("folder").mkdir()
    assert palaver("study", "new", "--out", "folder", "--force").code == 1


def test_check_lists_every_mistake(palaver: Palaver) -> None:
    palaver("study", "new", "--preset", "likert", "--out", "s.toml")
    text = Path("s.toml").read_text()
    text = text.replace('layout = "separate"', 'layout = "apart"').replace('id = "almond"', 'id = "harbour"')
    Path("s.toml").write_text(text.replace("high = 6", "high = 0", 1))
    ran = palaver("study", "check", "s.toml")
    assert (ran.code, ran.out) == (1, "")
    assert "error: s.toml has 3 mistakes:" in ran.err
    lines = [int(n) for n in re.findall(r"^  - line (\d+):", ran.err, flags=re.M)]
    assert len(lines) == 3
    assert lines == sorted(lines)
    for line, word in zip(lines, ("layout", "scale", "harbour"), strict=True):
        assert word in text.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("content", "said"), [(None, "there is no file"), ("", "is empty"), ("[[[", "not valid TOML")]
)
def test_check_of_what_is_no_study(content: str | None, said: str, palaver: Palaver) -> None:
    if content is not None:
        Path("s.toml").write_text(content)
    ran = palaver("study", "check", "s.toml")
    assert ran.code == 1
    assert said in ran.err
    assert palaver("study", "check", ".").code == 1


# --- simulate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("preset", ["rankme", "pairwise"])
def test_simulate_then_analyse(preset: str, ending: str, palaver: Palaver) -> None:
    file = f"r.{ending}"
    words = ["--preset", preset, "--systems", 3, "--items", 9, "--out", file, "--study-out", "s.toml"]
    ran = palaver("study", "simulate", *words)
    assert ran.code == 0, ran.err
    rows = list(iter_ratings(file))
    by = {"rankme": "20 raters", "pairwise": f"{len({r.rater for r in rows})} of 20 raters"}[preset]
    assert f"wrote {len(rows):,} ratings by {by} to" in ran.out
    assert len({r.item for r in rows}) == 9
    assert len({s for r in rows for s in (r.system, r.against) if s}) == 3
    assert "next: palaver study analyse" in ran.out
    following = ran.out.split("next: palaver ")[1].split()
    assert palaver(*following, "-q", "--replicates", 20).code == 0


def test_simulate_answers_a_study_file(palaver: Palaver) -> None:
    palaver("study", "new", "--preset", "likert", "--out", "s.toml")
    ran = palaver(
        "study", "simulate", "s.toml", "--out", "r.csv", "--raters-per-item", 2, "--layout", "joint"
    )
    assert ran.code == 0
    rows = list(iter_ratings("r.csv"))
    study = load_study("s.toml")
    assert {r.item for r in rows} == {i.id for i in study.items}
    assert {r.system for r in rows} == set(study.systems)
    crews = {(r.item, r.criterion): set() for r in rows}
    for row in rows:
        crews[row.item, row.criterion].add(row.rater)
    assert {len(crew) for crew in crews.values()} == {2}
    assert all(crews[i.id, "quality"] == crews[i.id, "naturalness"] for i in study.items)  # joint
    assert "--study s.toml" in ran.out


def test_simulate_is_seeded(palaver: Palaver) -> None:
    for seed, name in ((1, "a"), (1, "b"), (2, "c")):
        assert palaver("study", "simulate", "--items", 5, "--seed", seed, "--out", f"{name}.csv").code == 0
    a, b, c = (Path(f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_simulate_with_a_truth_of_ones_own(palaver: Palaver) -> None:
    truth = ["--truth", "system-A=0", "--truth", "system-B=2.5"]
    ran = palaver("study", "simulate", "--systems", 2, "--items", 3, "--out", "r.csv", *truth)
    assert ran.code == 0
    assert "truth, quality: system-B +0.94 > system-A −0.94" in ran.out


def test_simulated_truth_has_no_negative_zero(palaver: Palaver) -> None:
    assert "-0.00" not in palaver("study", "simulate", "--items", 2, "--out", "r.csv").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "r.pdf"], "cannot tell the format of 'r.pdf'"),
        (["--raters", 2], "3 raters per item cannot be drawn from 2 raters"),
        (["--careless", 2], "careless and j_shaped are shares"),
        (["--noise", "nan"], "noise is a standard deviation"),
        (["--bias", -1], "bias is a standard deviation"),
        (["--gap", "inf"], "finite"),
        (["--truth", "a"], "expected NAME=NUMBER, found 'a'"),
        (["--truth", "=1"], "expected NAME=NUMBER"),
        (["--truth", "a=x"], "expected NAME=NUMBER"),
        (["--truth", "a=1"], "expected a number for each of system-A"),
        (["nowhere.toml"], "there is no file nowhere.toml"),
    ],
)
def test_simulate_refuses(words: list[Any], said: str, palaver: Palaver) -> None:
    ran = palaver("study", "simulate", "--out", "r.csv", *words)
    assert (ran.code, ran.out) == (1 if "there is no file" in said or "format" in said else 2, "")
    assert said in ran.err
    assert list(Path().iterdir()) == []  # nothing half-written


def test_simulate_does_not_overwrite(palaver: Palaver) -> None:
    Path("s.toml").write_text("mine")
    ran = palaver("study", "simulate", "--items", 2, "--out", "r.csv", "--study-out", "s.toml")
    assert ran.code == 1
    assert "s.toml is there already" in ran.err
    assert not Path("r.csv").exists()


def test_the_written_study_is_the_one_that_was_answered(palaver: Palaver) -> None:
    palaver(
        "study",
        "simulate",
        "--preset",
        "snippet",
        "--items",
        4,
        "--out",
        "r.parquet",
        "--study-out",
        "s.toml",
    )
    study = load_study("s.toml")
    frame = pl.read_parquet("r.parquet")
    assert set(frame["item"]) == {item.id for item in study.items}
    assert set(frame["criterion"]) == {q.criterion for q in study.questions}
    assert palaver("study", "check", "s.toml").code == 0


# --- power ----------------------------------------------------------------------------------------------


def test_power(palaver: Palaver) -> None:
    words = ["--difference", 1.2, "--items", "60,20,20", "--raters", "1,3", "--studies", 30]
    ran = palaver("study", "power", *words)
    assert ran.code == 0
    assert "1 rater " in ran.out
    assert "3 raters" in ran.out
    assert ran.out.index(" 20 ") < ran.out.index(" 60 ")
    assert "Fewest judgements for 80%" in ran.out
    assert "seed 0" in ran.out
    assert palaver("study", "power", *words).out == ran.out


def test_power_that_is_not_reached(palaver: Palaver) -> None:
    ran = palaver("study", "power", "--difference", 1e-9, "--items", "1,5", "--raters", 1, "--studies", 10)
    assert ran.code == 0
    assert "No design reaches 80%" in ran.out
    assert "nan" not in ran.out


def test_power_of_a_pilot(palaver: Palaver) -> None:
    made = ["--items", 30, "--out", "pilot.csv", "--study-out", "s.toml"]
    palaver("study", "simulate", "--preset", "likert", *made)
    ran = palaver("study", "power", "--from", "pilot.csv", "--study", "s.toml", "--points", 1)
    assert ran.code == 0, ran.err
    assert "one of 1 is found with a chance of" in ran.out
    plan = ["trust", "plan", "pilot.csv", "--study", "s.toml", "--points", 1]
    assert palaver(*plan).out == ran.out  # one implementation, said in one way
    ran = palaver("study", "power", "--from", "pilot.csv", "--criterion", "quality", "--json")
    [row] = json.loads(ran.out)["rows"]
    assert row["power"] >= 0.8
    ran = palaver("study", "power", "--from", "pilot.csv", "--difference", 0.7)
    assert (ran.code, "give --points" in ran.err) == (2, True)
    ran = palaver("study", "power", "--from", "pilot.csv", "--items", "10,20")
    assert (ran.code, "every size is tried" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--items", "0"], "--items: expected whole numbers"),
        (["--items", "5,"], "--items"),
        (["--raters", "a,b"], "--raters: expected whole numbers"),
        (["--criterion", "qualty"], "did you mean 'quality'"),
        (["--preset", "pairwise"], "scales of numbers, not for pairwise"),
        (["--criterion", "content"], "scales of numbers, not for checkboxes"),
        (["--difference", "nan"], "a difference of nan cannot be found"),
        (["--difference", "0"], "a difference of 0 cannot be found"),
        (["--difference", "-0.5"], "a difference of -0.5 cannot be found"),
        (["--points", "0"], "--points: a difference of 0 cannot be found"),
        (["--points", "1", "--difference", "1"], "both given"),
        (["--points", "9"], "no system lies 9 points above"),
        (["--points", "1", "--preset", "rankme"], "measures ratios"),
        (["--study", "s.toml"], "--study is about a pilot"),
        (["--from", "p.csv", "--noise", "1"], "the raters are those of the pilot"),
        (["--spread", "-1"], "spread is a standard deviation"),
    ],
)
def test_power_refuses(words: list[Any], said: str, palaver: Palaver) -> None:
    ran = palaver("study", "power", "--studies", 10, *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_one_name_for_two_files(palaver: Palaver) -> None:
    ran = palaver("study", "simulate", "--items", 2, "--out", "r.csv", "--study-out", "r.csv", "--force")
    assert ran.code == 2
    assert "both name r.csv" in ran.err
    assert not Path("r.csv").exists()
