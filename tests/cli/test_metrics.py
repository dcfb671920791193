"""`palaver metrics`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palaver = Callable[..., Any]
KEYS = {"metric", "system", "value", "low", "high", "n", "signature"}


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    lines = [
        {
            "id": str(i),
            "system": system,
            "context": "Hi",
            "response": said,
            "reference": "I like that film a lot",
        }
        for i in range(5)
        for system, said in (("good", f"I like film {i} a lot"), ("bad", "no no no"))
    ]
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_json_holds_scores_and_differences(responses: Path, palaver: Palaver) -> None:
    ran = palaver("metrics", responses, "--by", "bleu", "--by", "distinct_1", "--json", "--replicates", "50")
    assert ran.code == 0, ran.err
    content = json.loads(ran.out)
    assert [(row["metric"], row["system"]) for row in content["scores"]] == [
        ("bleu", "good"), ("bleu", "bad"), ("distinct_1", "good"), ("distinct_1", "bad"),
    ]  # fmt: skip
    assert all(set(row) >= KEYS for row in content["scores"])
    assert 0 < content["scores"][0]["value"] < 100
    assert content["scores"][2]["low"] is None  # no interval, and a reason
    assert content["scores"][2]["reason"]
    [pair] = content["differences"]
    assert (pair["metric"], pair["system"], pair["other"], pair["n"]) == ("bleu", "good", "bad", 5)
    again = palaver(
        "metrics", responses, "--by", "bleu", "--by", "distinct_1", "--json", "--replicates", "50"
    )
    assert again.out == ran.out


def test_what_it_writes_is_what_study_analyse_reads(
    responses: Path, tmp_path: Path, palaver: Palaver
) -> None:
    out = tmp_path / "scores.csv"
    ran = palaver("metrics", responses, "--out", out, "--replicates", "20")
    assert ran.code == 0, ran.err
    assert "rouge_l" in ran.out
    assert "tok:13a" in ran.out
    judged = palaver("study", "analyse", out, "--criteria", "bleu,rouge_l", "--replicates", "20", "--json")
    assert judged.code == 0, judged.err
    assert palaver("metrics", responses, "--out", out).code == 1  # it is there already


def test_judge_gives_the_same_scores(responses: Path, tmp_path: Path, palaver: Palaver) -> None:
    by = ("--by", "bleu", "--by", "self_bleu")
    assert palaver("metrics", responses, *by, "--out", tmp_path / "a.jsonl").code == 0
    assert palaver("judge", responses, *by, "--out", tmp_path / "b.jsonl").code == 0
    rows = [
        {(r["criterion"], r["item"], r["system"]): r["value"] for r in map(json.loads, path.open())}
        for path in (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    ]
    assert rows[0] == pytest.approx(rows[1])
    assert len(rows[0]) == 12


def test_metrics_with_a_model_are_judges_too(responses: Path, tmp_path: Path, palaver: Palaver) -> None:
    names = ("bertscore_idf=glove", "embedding_average=glove", "likelihood=default", "context_gain=default")
    lines = [json.loads(line) for line in responses.open()]
    for line in lines:
        line["context"] = f"Did you like film {line['id']}?"
    responses.write_text("".join(json.dumps(line) + "\n" for line in lines))
    by = [word for name in names for word in ("--by", name)]
    told = palaver("metrics", responses, *by, "--out", tmp_path / "a.jsonl", "--replicates", "20", "--json")
    assert told.code == 0, told.err
    scores = json.loads(told.out)["scores"]
    assert [row["metric"] for row in scores] == [name for name in names for _ in range(2)]
    assert "bos:<s>" in scores[4]["signature"]
    assert palaver("judge", responses, *by, "--out", tmp_path / "b.jsonl").code == 0
    rows = [
        {(r["criterion"], r["item"], r["system"]): r["value"] for r in map(json.loads, path.open())}
        for path in (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    ]
    assert rows[0] == pytest.approx(rows[1], abs=1e-4)
    assert len(rows[0]) == 4 * 10
    judged = palaver("study", "analyse", tmp_path / "b.jsonl", "--replicates", "20", "--json")
    assert judged.code == 0, judged.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("responses.jsonl", "--by", "bertscore=minlm"), 1, "there is no encoder 'minlm'"),
        (("responses.jsonl", "--by", "perplexity=nowhere"), 1, "'nowhere' cannot be loaded"),
        (("responses.jsonl", "--by", "bleu=4"), 1, "bleu takes nothing after '='"),
        ((), 2, "name the file to score"),
        (("responses.jsonl", "--by", "blue"), 1, "did you mean 'bleu'"),
        (("responses.jsonl", "--by", "copy_rate"), 1, "copy_rate needs knowledge"),
        (("nowhere.jsonl",), 1, "nowhere.jsonl"),
    ],
)
def test_what_is_wrong_is_said(
    words: tuple[str, ...], code: int, said: str, responses: Path, palaver: Palaver
) -> None:
    ran = palaver("metrics", *(responses if word == "responses.jsonl" else word for word in words))
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


@pytest.mark.parametrize("verb", ["metrics", "judge"])
def test_where_to_write_is_looked_at_before_the_work(
    verb: str, responses: Path, tmp_path: Path, palaver: Palaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = ("--by", "nowhere:at_all")  # not looked for: the name of the file is wrong already
    wrong = palaver(verb, responses, *by, "--out", tmp_path / "scores.doc")
    assert (wrong.code, "cannot tell the format of 'scores.doc'" in wrong.err) == (1, True)
    assert ".xlsx" in wrong.err
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    missing = palaver(verb, responses, *by, "--out", tmp_path / "scores.xlsx")
    assert (missing.code, "[sheets]" in missing.err) == (1, True)


def test_scores_as_a_sheet_are_what_analyse_reads(responses: Path, tmp_path: Path, palaver: Palaver) -> None:
    out = tmp_path / "scores.xlsx"
    assert palaver("metrics", responses, "--by", "words", "--by", "chrf", "--out", out).code == 0
    judged = palaver("study", "describe", out, "--json")
    assert judged.code == 0, judged.err


def test_the_metrics_are_listed(palaver: Palaver) -> None:
    listed = palaver("metrics", "--list").out.split()
    assert {"bleu", "chrf", "rouge_l", "knowledge_f1"} <= set(listed)
    assert json.loads(palaver("metrics", "--list", "--json").out) == listed


def test_notes_name_the_systems_they_are_about(tmp_path: Path, palaver: Palaver) -> None:
    said = {"a": ["yes, I like it", "no, I do not", "well"], "b": ["", "it is", ""], "c": ["I am here"] * 3}
    rows = [
        {"id": str(i), "system": name, "response": text}
        for name, texts in said.items()
        for i, text in enumerate(texts)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = palaver("metrics", path, "--by", "diversity_2", "--by", "empty")
    assert ran.code == 0, ran.err
    assert "diversity_2: responses without a score: 1 of a, 2 of b" in ran.out
    assert "diversity_2 of a and c, empty of a and c: all replicates are equal" in ran.out
    assert "diversity_2 of b: an interval needs two responses" in ran.out
    assert "differences by diversity_2 (a minus c), empty (a minus c): all replicates are equal" in ran.out
    assert "diversity_2 (a minus b, b minus c): a test needs two items" in ran.out
