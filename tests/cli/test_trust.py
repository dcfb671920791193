"""`palaver trust`: from rating files to what they are worth."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palaver.cli.options import rating_words
from palaver.readers.rating_options import RatingOptions, parse_labels

Palaver = Callable[..., Any]


def test_intervals_in_words_in_json_and_in_a_file(palaver: Palaver, ratings: Path, tmp_path: Path) -> None:
    out = tmp_path / "intervals.json"
    ran = palaver("trust", "interval", ratings, "--out", out)
    assert ran.code == 0, ran.err
    assert "quality: alpha against beta:" in ran.out
    content = json.loads(out.read_text())
    assert json.loads(palaver("trust", "interval", ratings, "--json").out) == content
    assert {row["against"] for row in content["rows"]} == {"", "beta", "gamma"}
    again = palaver("trust", "interval", ratings, "--out", out)
    assert (again.code, "is there already" in again.err) == (1, True)


def test_a_judge_beside_people(palaver: Palaver, tmp_path: Path) -> None:
    people, judge = tmp_path / "people.csv", tmp_path / "judge.csv"
    rows, verdicts = ["item,system,rater,criterion,value"], ["item,system,rater,criterion,value,kind"]
    for i in range(60):
        for s, system in enumerate("ab"):
            quality = 1 + (7 * i + 3 * s) % 5
            verdicts.append(f"i{i},{system},scorer,quality,{quality},llm")
            if i < 20:
                for r in range(3):
                    rows.append(f"i{i},{system},r{r},quality,{min(5, quality + (i + r) % 2)}")
    people.write_text("\n".join(rows) + "\n")
    judge.write_text("\n".join(verdicts) + "\n")
    together = json.loads(palaver("trust", "ppi", people, judge, "--json").out)
    assert {row["what"] for row in together["rows"]} == {"mean", "difference"}
    assert together["rows"][0]["n_unrated"] == 40
    assert "worth" in palaver("trust", "ppi", people, judge).out
    test = json.loads(palaver("trust", "alt-test", people, judge, "--json", "--replicates", "50").out)
    assert test["rows"][0]["n_people"] == 3
    wrong = palaver("trust", "ppi", people, judge, "--judge", "scorers")
    assert (wrong.code, "did you mean 'scorer'?" in wrong.err) == (1, True)
    both = palaver("trust", "ppi", people, judge, "--criteria", "a,b")
    assert both.code == 2


def test_a_plan_and_intervals_as_pages(palaver: Palaver, ratings: Path, tmp_path: Path) -> None:
    ran = palaver("trust", "plan", ratings, "--reach", "0.5", "--out", tmp_path / "plan.html")
    assert ran.code == 0, ran.err
    page = (tmp_path / "plan.html").read_text()
    assert "Cost and certainty of the plans: people alone: cost" in page  # what the picture says
    assert "<svg" in page
    assert palaver("trust", "interval", ratings, "--out", tmp_path / "i.html").code == 0
    assert "Differences of systems" in (tmp_path / "i.html").read_text()


HEAD = "item,system,rater,criterion,value"


@pytest.mark.parametrize(
    ("people", "verb", "said"),
    [
        ("two people", ["interval"], "2 raters: the interval is about them"),
        ("two people", ["sequence"], "2 raters; at least 3 are needed"),
        ("two people", ["plan", "--reach", "0.5"], "how far people differ is not known"),
        ("two people", ["alt-test"], "at least 3 are needed"),
        ("one each", ["plan", "--reach", "0.5"], "how far people differ is hardly known"),
        ("one each", ["alt-test"], "no two people judged the same thing"),
        ("one dialogue", ["interval"], "one dialogue only"),
        ("one dialogue", ["ppi"], "no interval (one dialogue only"),
        ("one dialogue", ["sequence"], "1 dialogue has ratings of both systems"),
        ("one dialogue", ["plan", "--reach", "0.5"], "too few dialogues"),
        ("one dialogue", ["calibrate"], "at least 10 dialogues, found 1"),
        ("no variance", ["interval"], "all ratings are equal"),
        ("no variance", ["ppi"], "no interval (all ratings are equal"),
        ("no variance", ["plan", "--reach", "0.5"], "tells no variances"),
        ("no variance", ["alt-test"], "people gave the same rating to everything"),
        ("no variance", ["calibrate"], "nothing is known of j"),
        ("one system", ["sequence"], "there is only one"),
        ("one system", ["plan", "--reach", "0.5"], "there is only one"),
        ("whole", ["plan", "--reach", "9"], "as large as the scale"),
        ("whole", ["plan", "--points", "9"], "as large as the scale"),
        ("whole", ["calibrate", "--margin", "9"], "as large as the scale"),
    ],
)
def test_what_is_too_little_is_said(
    people: str, verb: list[str], said: str, palaver: Palaver, tmp_path: Path
) -> None:
    n, raters, systems = {
        "two people": (20, 2, "ab"), "one each": (20, 1, "ab"), "one dialogue": (1, 6, "ab"),
        "one system": (20, 4, "a"),
    }.get(people, (20, 4, "ab"))  # fmt: skip
    rows, verdicts = [HEAD], [f"{HEAD},kind"]
    for i in range(40):
        for s, system in enumerate(systems):
            verdicts.append(f"i{i},{system},j,score,{(3 * i + s) % 7},metric")
            for r in range(raters if i < n else 0):
                value = 3 if people == "no variance" else 1 + (7 * i + 2 * s * i + s + 3 * r + i * r) % 5
                rater = i % 5 if people == "one each" else r
                rows.append(f"i{i},{system},r{rater},quality,{value}")
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "judge.csv").write_text("\n".join(verdicts) + "\n")
    files = [tmp_path / "people.csv"]
    if verb[0] in ("ppi", "alt-test", "calibrate"):
        files.append(tmp_path / "judge.csv")
    ran = palaver("trust", verb[0], *files, *verb[1:])
    assert ran.code in (0, 1)
    shown = " ".join((ran.out + ran.err).split())
    assert said in shown
    assert "nan" not in shown
    if people == "one dialogue" and verb == ["interval"]:
        assert ran.out.splitlines()[-1] == f"next: palaver study analyse {files[0]}"


def test_plans_sequences_and_what_they_refuse(palaver: Palaver, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    rows = ["item,system,rater,criterion,value"]
    for i in range(24):
        for s, system in enumerate("ab"):
            for r in range(3):
                rows.append(f"i{i},{system},r{r},quality,{1 + s * 3 + (5 * i + 3 * r + s * i) % 3}")
    people.write_text("\n".join(rows) + "\n")
    plan = json.loads(palaver("trust", "plan", people, "--budget", "50", "--json").out)
    assert plan["rows"][0]["cost"] <= 50
    watched = json.loads(palaver("trust", "sequence", people, "--json").out)
    assert watched["rows"][0]["decision"] == "worse"  # a is the worse one
    neither = palaver("trust", "plan", people)
    assert (neither.code, "--reach, --budget or --points" in neither.err) == (1, True)
    free = palaver("trust", "plan", people, "--price", "0", "--budget", "5")
    assert (free.code, "above 0" in free.err) == (1, True)
    wide = palaver("trust", "sequence", people, "--equivalent-within", "40")
    assert (wide.code, "as large as the scale" in wide.err) == (1, True)
    alone = palaver("trust", "plan", people, "--budget", "5", "--study-for-plan", tmp_path / "p.toml")
    assert alone.code == 2


@pytest.fixture
def below_zero(tmp_path: Path) -> tuple[Path, Path]:
    """People and a judge on a scale around 0; system a is behind."""
    rows, verdicts = [HEAD], [f"{HEAD},kind"]
    for i in range(40):
        for s, system in enumerate("ab"):
            quality = (i + 2 * s * i + i * i // 5) % 3 + 2 * s - 4
            verdicts.append(f"i{i},{system},scorer,quality,{quality},llm")
            rows += [f"i{i},{system},r{r},quality,{quality + (i + r) % 2}" for r in range(3 if i < 20 else 0)]
    files = (tmp_path / "people.csv", tmp_path / "judge.csv")
    for path, lines in zip(files, (rows, verdicts), strict=True):
        path.write_text("\n".join(lines) + "\n")
    return files


@pytest.mark.parametrize(
    ("verb", "words", "next_verb"),
    [
        ("interval", [], r"trust plan PEOPLE --reach 0\.\d+"),
        ("ppi", [], r"trust plan PEOPLE JUDGE --reach 0\.\d+"),
        ("alt-test", ["--replicates", "20"], "trust ppi PEOPLE JUDGE"),
        ("sequence", [], "study analyse PEOPLE"),
        ("plan", ["--reach", "0.5"],
         "trust plan PEOPLE JUDGE --reach 0.5 --study study.toml --study-for-plan plan.toml"),
        ("calibrate", [], "trust ppi PEOPLE JUDGE"),
    ],
)  # fmt: skip
def test_minus_signs_are_real_and_the_next_step_is_named(
    verb: str, words: list[str], next_verb: str, palaver: Palaver, below_zero: tuple[Path, Path]
) -> None:
    people, judge = below_zero
    files = [people] if verb in ("interval", "sequence") else [people, judge]
    ran = palaver("trust", verb, *files, *words)
    assert ran.code == 0, ran.err
    *told, last = ran.out.rstrip().splitlines()
    assert not re.search(r"(?<![\w/.-])-\d", "\n".join(told)), ran.out
    assert "−" in ran.out or verb in ("alt-test", "plan", "calibrate")
    assert "−0.00 " not in ran.out
    wanted = next_verb.replace("PEOPLE", str(people)).replace("JUDGE", str(judge))
    assert re.fullmatch(f"next: palaver {wanted}", last), last
    assert "next:" not in palaver("trust", verb, *files, *words, "--json").out


def test_the_next_plan_is_of_shares_of_wins_and_not_of_log_odds(palaver: Palaver, tmp_path: Path) -> None:
    """Pairs have strengths beside their win rates, and these reach farther: no share of wins reaches 0.5."""
    files = (tmp_path / "people.csv", tmp_path / "judge.csv")
    for path, n_items, raters in zip(files, (12, 30), (("r0", "r1", "r2"), ("scorer",)), strict=True):
        kind = "human" if path == files[0] else "llm"
        lines = [
            f"i{i},a,b,{rater},better,{'win' if (i + k) % 3 else 'loss'},{kind}"
            for i in range(n_items)
            for k, rater in enumerate(raters)
        ]
        path.write_text("item,system,against,rater,criterion,value,kind\n" + "\n".join(lines) + "\n")
    report = json.loads(palaver("trust", "ppi", *files, "--json").out)
    [share] = [row for row in report["rows"] if row["what"] == "win rate"]
    last = palaver("trust", "ppi", *files).out.rstrip().splitlines()[-1]
    assert last.endswith(f" --reach {(share['high'] - share['low']) / 4:.2g}")


def test_the_better_system_is_not_told_with_a_negative_figure_of_its_own(
    palaver: Palaver, below_zero: tuple[Path, Path]
) -> None:
    ran = palaver("trust", "sequence", below_zero[0])
    assert re.search(r"b is better than a \(a against b: −\d\.\d\d \[−", ran.out), ran.out


def test_a_study_cannot_have_fewer_dialogues_than_were_rated(
    palaver: Palaver, below_zero: tuple[Path, Path]
) -> None:
    ran = palaver("trust", "sequence", below_zero[0], "--planned", "5")
    assert (ran.code, "--planned: 20 dialogues are rated already, found 5" in ran.err) == (1, True)


@pytest.mark.parametrize("verb", [["trust", "ppi"], ["meta"], ["study", "analyse"]])
def test_a_file_of_ratings_named_twice_is_said(
    verb: list[str], palaver: Palaver, below_zero: tuple[Path, Path]
) -> None:
    people, judge = below_zero
    files = (people, judge, judge) if verb == ["trust", "ppi"] else (people, people)
    ran = palaver(*verb, *files)
    assert (ran.code, f"named twice: {files[-1]}" in ran.err) == (1, True), ran.err


def test_the_next_step_reads_the_file_as_this_one_did(
    palaver: Palaver, below_zero: tuple[Path, Path], tmp_path: Path
) -> None:
    """Whatever was said about the file, so that the next command can be copied."""
    head, *rows = below_zero[0].read_text().splitlines()
    people = tmp_path / "people with other names.csv"
    said = dict(zip(("item", "rater", "value"), ("zz", "ww", "vv"), strict=True))
    names = [said.get(name, name) for name in head.split(",")]
    people.write_text("\n".join([",".join(names), *rows]) + "\n")
    words = [word for pair in said.items() for word in ("--column", "=".join(pair))]
    ran = palaver("trust", "interval", people, *words, "--missing", "unsure")
    following = shlex.split(ran.out.rstrip().splitlines()[-1].removeprefix("next: palaver "))
    assert following[-8:] == [*words, "--missing", "unsure"]
    planned = palaver(*following, "--price", "0.4", "--each-person", "30")
    assert planned.code == 0, planned.err
    last = shlex.split(planned.out.rstrip().splitlines()[-1])
    assert last[last.index("--price") :][:4] == ["--price", "0.4", "--each-person", "30"]


def test_words_about_a_rating_file_are_said_again_as_they_were_meant() -> None:
    labels = ["Poor,Good", "q:Bad=1,Fine=2.5", "kind:nominal"]
    given = RatingOptions(labels=parse_labels(labels), shape="long", sheet="Round 2")
    words = rating_words(given)
    again = [text for name, text in pairwise(words) if name == "--labels"]
    assert parse_labels(again) == given.labels
    assert words[:2] == ["--shape", "long"]
    assert words[-2:] == ["--sheet", "Round 2"]


def test_the_next_step_says_again_what_was_said(
    palaver: Palaver, below_zero: tuple[Path, Path], tmp_path: Path
) -> None:
    people, _ = below_zero
    odd = tmp_path / "odd names.csv"
    odd.write_text(people.read_text().replace("rater", "the worker", 1))
    about = ["--column", "rater=the worker", "--labels", "quality:Poor,Good", "--missing", "no idea"]
    ran = palaver("trust", "plan", odd, "--budget", "90", "--price", "2", "--target", "0.9", *about)
    step = shlex.split(ran.out.splitlines()[-1].removeprefix("next: palaver "))
    assert step[: step.index("--study")] == [
        *("trust", "plan", str(odd), "--budget", "90", "--target", "0.9", "--price", "2")
    ]
    options = ["--column", "rater=the worker", "--labels", "quality:poor=1,good=2", "--missing", "no idea"]
    assert step[step.index("--column") :] == options
    ran = palaver("trust", "interval", odd, *about)
    step = shlex.split(ran.out.splitlines()[-1].removeprefix("next: palaver "))
    assert palaver(*step).code == 0


def test_no_plan_has_no_next_step(palaver: Palaver, tmp_path: Path) -> None:
    people, study = tmp_path / "people.csv", tmp_path / "study.toml"
    simulated = ["--preset", "likert", "--items", "20", "--study-out", study, "--out", people]
    assert palaver("study", "simulate", *simulated).code == 0
    goal = ["--criteria", "quality"]
    ran = palaver("trust", "plan", people, "--reach", "0.001", *goal)
    assert "no study with" in ran.out
    assert "next:" not in ran.out
    ran = palaver("study", "power", "--from", people, "--points", "0.001", "--criterion", "quality")
    assert "no study with" in ran.out
    assert "next:" not in ran.out
    ran = palaver("trust", "plan", people, "--reach", "0.5", "--study", study, *goal)
    assert re.search(r"^next: put \d+ items into \S+study.toml, then palaver trust plan ", ran.out, re.M)


def test_choices_in_pairs_beside_numbers_say_what_takes_both(
    palaver: Callable[..., Any], tmp_path: Path
) -> None:
    chosen = [f"q{n},a,b,r{n % 3},better,win,human" for n in range(12)]
    scored = [f"q{n},{system},,length,quality,{n % 4},metric" for n in range(12) for system in "ab"]
    for name, lines in (("people", chosen), ("judged", scored)):
        text = "\n".join(["item,system,against,rater,criterion,value,kind", *lines])
        (tmp_path / f"{name}.csv").write_text(text + "\n")
    ran = palaver("trust", "ppi", "people.csv", "judged.csv")
    assert ran.code == 1
    assert "no judge rated in pairs, as people did (better)" in ran.err
    assert "palaver meta" in ran.err
    ran = palaver("meta", "people.csv", "judged.csv")
    assert ran.code == 0, ran.err
