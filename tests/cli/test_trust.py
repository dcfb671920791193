"""`palaver trust`: from rating files to what they are worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    assert (neither.code, "--reach or --budget" in neither.err) == (1, True)
    free = palaver("trust", "plan", people, "--price", "0", "--budget", "5")
    assert (free.code, "above 0" in free.err) == (1, True)
    wide = palaver("trust", "sequence", people, "--equivalent-within", "40")
    assert (wide.code, "as large as the scale" in wide.err) == (1, True)
    alone = palaver("trust", "plan", people, "--budget", "5", "--study-for-plan", tmp_path / "p.toml")
    assert alone.code == 2
