from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("sklearn")


def encode(texts: list[str], dim: int = 384) -> Any:
    vectors = np.zeros((len(texts), dim), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        row += np.random.default_rng(zlib.crc32(text.encode())).normal(size=dim).astype(np.float32)
    return vectors


@pytest.fixture(autouse=True)
def _fake_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.comparator.scorer.turn_encoder", lambda name=None, device="cpu": encode)
    monkeypatch.setattr("palaver.comparator.scorer._joined", lambda raters, device: raters)


def test_audit_of_the_comparator(palaver: Any, tmp_path: Path) -> None:
    ran = palaver("compare", "audit", "--out", "audit.html")
    assert ran.code == 0, ran.err
    assert "Audit of comparator  open part of the pairs" in ran.out
    assert all(word in ran.out for word in ("politeness", "silence", "longer wins", "no opinion"))
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "What does the judge notice?" in page
    assert "Pairs that it got wrong." in page
    assert "without any opinion it would be right about" in page
    assert "Where they differ first" in page
    ran = palaver("compare", "audit", "--out", "audit.html")
    assert ran.code == 1
    assert "--force" in ran.err


def test_audit_of_a_function_and_of_the_held_out_part(palaver: Any, tmp_path: Path) -> None:
    ran = palaver("compare", "audit", "--by", "diversity_1", "--part", "held-out", "--json")
    assert ran.code == 0, ran.err
    result = json.loads(ran.out)
    assert (result["judge"], result["part"], result["pairs"]) == ("diversity_1", "held out", [])
    assert len(result["kinds"]) == 12
    assert palaver("compare", "audit", "--by", "words", "--comparator", "x").code == 2
    assert "palaver judge study.toml --by llm:NAME" in palaver("compare", "audit", "--by", "llm:any").err
    ran = palaver("compare", "audit", "--by", "unigram_f1")
    assert ran.code == 1
    assert "needs references" in ran.err


def responses() -> list[dict[str, Any]]:
    said = {"good": "that sounds like a lovely trip, where did you go", "bad": "pizza pizza", "dull": "ok"}
    return [
        {"id": f"c{i}", "system": system, "context": f"hello number {i}", "response": f"{text} {i}"}
        for i in range(6)
        for system, text in said.items()
    ]


def choices(value: str = "win") -> list[dict[str, Any]]:
    return [
        {"item": f"c{i}|good|{other}", "system": "good", "against": other, "rater": f"r{i % 3}",
         "criterion": "better", "value": "tie" if i == 5 else value}
        for i in range(6)
        for other in ("bad", "dull")
    ]  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_evaluate_on_a_study(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", responses())
    write(tmp_path / "study.jsonl", choices())
    command = ("compare", "evaluate", "r.jsonl", "--pairs", "study.jsonl", "--tier", "good,dull")
    ran = palaver(*command, "--out", "report.html")
    assert ran.code == 0, ran.err
    for text in ("comparator default", "which system it is", "surface model", "longer wins"):
        assert text in ran.out
    assert "2  nobody could tell" in ran.out
    assert "it would have to be trained anew" in ran.out
    assert "calibration error" in ran.out
    assert "How far can it be believed?" in (tmp_path / "report.html").read_text(encoding="utf-8")
    ran = palaver(*command, "--json")
    assert ran.code == 0, ran.err
    card = json.loads(ran.out)
    assert (card["n_pairs"], card["n_raters"]) == (10, 3)
    assert card["rows"][0]["results"]["within a tier"]["n"] == 5


def test_evaluate_says_what_is_wrong(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", responses())
    write(tmp_path / "study.jsonl", choices("better"))
    command = ("compare", "evaluate", "r.jsonl", "--pairs")
    ran = palaver(*command, "study.jsonl")
    assert ran.code == 1
    assert "expected win, tie or loss" in ran.err
    write(tmp_path / "pairs.jsonl", [{"a": "c1", "b": "c9", "better": "a"}])
    ran = palaver(*command, "pairs.jsonl")
    assert ran.code == 1
    assert "the dialogues are missing: c1, c9" in ran.err  # c1 names three responses
    assert "a response is named ID@SYSTEM, such as c1@good" in ran.err
    write(tmp_path / "pairs.jsonl", [{"a": "c1@good", "b": "c1@bad", "better": "a"}])
    ran = palaver(*command, "pairs.jsonl", "--tier", "god")
    assert ran.code == 1
    assert "did you mean 'good'" in ran.err
    assert palaver(*command, "pairs.jsonl", "--tier", ",").code == 2
    assert palaver(*command, "none.jsonl").code == 1
    ran = palaver(*command, "pairs.jsonl")
    assert ran.code == 0, ran.err
    assert "not every pair has a rater" in ran.out
    write(tmp_path / "rated.jsonl", [row | {"rating": 1 + i % 5} for i, row in enumerate(responses())])
    ran = palaver(*command, "pairs.jsonl", "--other-source", "rated.jsonl")
    assert ran.code == 1
    assert "18 of the 18 dialogues from elsewhere are measured, too" in ran.err


def test_ratings_that_people_left(palaver: Any, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"d{i}",
            "turns": [{"spk": "user", "text": "hi"}, {"spk": "bot", "text": "hello"}],
            "rating": r,
        }
        for i, r in enumerate([1, 5, 5, 5, 4])
    ]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [{"a": "d0", "b": "d1", "better": "a"}, {"a": "d0", "b": "d9", "better": "a"}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    ran = palaver("compare", "ratings", "chats.jsonl", "--pairs", "pairs.jsonl")
    assert ran.code == 0, ran.err
    assert "J-shaped: most are the highest there is" in ran.out
    assert "names a dialogue that is not there" in ran.out
    assert [line.split("  ")[1] for line in ran.out.splitlines() if "up to" in line] == [
        "up to 1", "over 1, up to 2", "over 2, up to 3", "over 3, up to 4"
    ]  # fmt: skip
    assert "no rating names its rater" in ran.out
    answer = json.loads(palaver("compare", "ratings", "chats.jsonl", "--json").out)
    assert answer["distribution"]["counts"] == [1, 0, 0, 1, 3]


def test_evaluate_says_that_a_dialogue_of_the_pairs_was_left_out(palaver: Any, tmp_path: Path) -> None:
    turns = {
        "three": ["user", "system", "moderator"],
        "two": ["user", "system", "user"],
    }
    chats = [
        {"id": name, "turns": [{"speaker": speaker, "text": "hello there"} for speaker in speakers]}
        for name, speakers in turns.items()
    ]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, chats)))
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"a": "three", "b": "two", "better": "a"}))
    ran = palaver("compare", "evaluate", "chats.jsonl", "--pairs", "pairs.jsonl")
    assert ran.code == 1
    assert "left out 1: speakers that are not a user and a system" in ran.out
    assert "the dialogues are missing: three" in ran.err


def test_train_says_which_ratings_are_held_back_before_it_finds_too_few(
    palaver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.comparator.training.turn_encoder", lambda name=None, device="cpu": encode)
    said = [{"speaker": "user", "text": "hi"}, {"speaker": "bot", "text": "hello you"}]
    rows = [{"id": f"d{i}", "rater": f"r{i % 2}", "rating": 1 + i % 5, "turns": said} for i in range(24)]
    write(tmp_path / "chats.jsonl", rows)
    write(tmp_path / "pairs.jsonl", [{"a": f"d{i}", "b": f"d{i + 1}", "better": "a"} for i in range(9)])
    line = "compare train --method palaver --ratings chats.jsonl --dev-pairs pairs.jsonl --out mine"
    ran = palaver(*line.split())
    assert ran.code == 1
    assert "too few to learn from" in ran.err
    assert "10 rated dialogues are in the development set and not trained on" in ran.out
