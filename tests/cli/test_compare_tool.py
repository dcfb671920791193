from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("sklearn")

GOOD = ("that sounds like a lovely trip, where did you go?", "i love hiking with my dog near the lake")
BAD = ("pizza pizza pizza", "i do not know what to say")


def encode(texts: list[str], dim: int = 384) -> Any:
    found = np.zeros((len(texts), dim), np.float32)
    for row, text in zip(found, texts, strict=True):
        row += np.random.default_rng(zlib.crc32(text.encode())).normal(size=dim).astype(np.float32)
    return found


@pytest.fixture(autouse=True)
def _fake_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scorer", "representation", "training"):
        monkeypatch.setattr(
            f"palaver.comparator.{module}.turn_encoder", lambda name=None, device="cpu": encode
        )
    monkeypatch.setattr("palaver.comparator.scorer._joined", lambda raters, device: raters)


def rows(n: int = 48, seed: int = 0) -> list[dict[str, Any]]:
    """Chats of the export layout; every fifth rater rates at random."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        quality = rng.random()
        turns = []
        for k in range(4):
            turns.append({"spk": "user", "text": f"tell me about number {k} please"})
            said = GOOD if rng.random() < quality else BAD
            turns.append({"spk": "bot", "text": said[int(rng.integers(2))]})
        rater = i // 6
        rating = rng.uniform(0, 100) if rater % 5 == 4 else 100 * quality
        found.append(
            {"id": f"d{i}", "turns": turns, "rating100": float(rating), "worker": f"w{rater}",
             "hit": f"h{rater}", "bot": "A" if quality > 0.5 else "B"}
        )  # fmt: skip
    return found


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", ["chats.jsonl", "chats.jsonl.gz"])
def test_score_worst_first(palaver: Any, tmp_path: Path, name: str) -> None:
    write(tmp_path / name, rows())
    ran = palaver("compare", "score", name, "--out", "scores.jsonl", "--turns", 3, "--shard-size", 10)
    assert ran.code == 0, ran.err
    found = read(tmp_path / "scores.jsonl")
    scores = [row["score"] for row in found]
    assert len(found) == 48
    assert scores == sorted(scores)
    assert all(row["low"] < row["score"] < row["high"] for row in found)
    assert ["worst_turn" in row for row in found[:5]] == [True, True, True, False, False]
    assert found[0]["worst_turn"]["speaker"] == "system"
    assert "a second" in ran.out


def test_score_dialogue_rows_and_every_turn(palaver: Any, tmp_path: Path) -> None:
    turns = [{"speaker": s, "text": t} for s, t in (("user", "hi"), ("system", "hello"), ("user", "and?"),
                                                    ("system", "pizza pizza"))]  # fmt: skip
    write(tmp_path / "a.jsonl", [{"id": "x", "turns": turns}, {"id": "one", "turns": turns[:1]}])
    ran = palaver("compare", "score", "a.jsonl", "--out", "s.jsonl", "--all-turns")
    assert ran.code == 0, ran.err
    assert [row["id"] for row in read(tmp_path / "s.jsonl")] == ["x"]
    assert "one turn only" in ran.out


def test_dialogues_that_cannot_be_scored_are_said_to_be_there(palaver: Any, tmp_path: Path) -> None:
    turns = [{"speaker": who, "text": "hello you"} for who in ("Ann", "Bob", "Cy")]
    write(tmp_path / "a.jsonl", [*rows(2), {"id": "three", "turns": turns}, {"id": "empty", "turns": []}])
    ran = palaver("compare", "pair", "a.jsonl#three", "a.jsonl#d0")
    assert ran.code == 1
    assert "no dialogue 'three' that can be scored" in ran.err
    assert "left out 1: speakers that are not a user and a system" in ran.err
    assert "left out 1: no turns" in ran.err
    write(tmp_path / "b.jsonl", [{"id": "a", "turns": [{"speaker": "system", "text": "anyone?"}] * 2}])
    ran = palaver("compare", "score", "b.jsonl", "--out", "s.jsonl")
    assert "only one speaker" in ran.err
    assert "each needs at least 2 turns, a user and a system" in ran.err
    write(tmp_path / "b.jsonl", [{"id": "a", "turns": [{"text": "hi"}, {"text": "hello"}]}])
    ran = palaver("compare", "score", "b.jsonl", "--out", "s.jsonl")
    assert "this is not a dialogue" in ran.err  # it needs no rating
    assert "which `palaver compare score` takes" not in ran.err


def test_systems_that_say_far_more_than_was_learnt_from(palaver: Any, tmp_path: Path) -> None:
    """Scored, marked and warned of by score, pair, judge and rank."""
    long_winded = "There are many things to be said about this, and I will say all of them one by one. " * 4
    turns = [{"spk": "user", "text": "Tell me about tea."}, {"spk": "bot", "text": long_winded}]
    write(tmp_path / "a.jsonl", [*rows(4), {"id": "long", "bot": "B", "turns": turns}])
    warning = "say far more at a time than those it learnt from: do not believe their scores"
    warning = warning.replace("say", "dialogues whose system says", 1)
    ran = palaver("compare", "score", "a.jsonl", "--comparator", "fast", "--out", "s.jsonl")
    assert ran.code == 0, ran.err
    assert f"{warning} (1)" in ran.out
    assert [row["id"] for row in read(tmp_path / "s.jsonl") if row.get("wordy")] == ["long"]
    ran = palaver("compare", "pair", "a.jsonl#long", "a.jsonl#d0", "--comparator", "fast")
    assert ran.code == 0, ran.err
    assert "the system of A says far more at a time" in ran.out
    assert "the system of B" not in ran.out
    ran = palaver("judge", "a.jsonl", "--by", "comparator=fast", "--out", "judged.csv")
    assert ran.code == 0, ran.err
    assert warning in ran.out + ran.err
    assert f"1 {warning}" in palaver("compare", "rank", "s.jsonl").out


def test_silence_and_other_languages(palaver: Any, tmp_path: Path) -> None:
    """A silent system is scored and stands last; German is scored and warned of."""
    said = [("user", "Wo hält der Bus?"), ("bot", "Er hält vor dem Rathaus, alle zwanzig Minuten.")]
    german = {"id": "de", "bot": "A", "turns": [{"spk": who, "text": text} for who, text in said]}
    silent = {
        "id": "mute",
        "bot": "B",
        "turns": [{"spk": "user", "text": "hello?"}, {"spk": "bot", "text": ""}],
    }
    write(tmp_path / "a.jsonl", [*rows(4), german, silent])
    ran = palaver("compare", "score", "a.jsonl", "--out", "s.jsonl")
    assert ran.code == 0, ran.err
    assert "do not look English: do not believe their scores (1)" in ran.out
    assert re.search(r"mute +B +", ran.out), "two systems may have answered one context"
    assert "whose system says nothing: put at the bottom by rule (1)" in ran.out
    scores = read(tmp_path / "s.jsonl")
    assert (scores[0]["id"], scores[0]["score"], scores[0]["low"]) == ("mute", -5.0, None)
    assert [row["id"] for row in scores if row.get("english") is False] == ["de"]
    ran = palaver("compare", "pair", "a.jsonl#mute", "a.jsonl#de")
    assert ran.code == 0, ran.err
    assert "the system of A says nothing" in ran.out
    assert "B does not look English" in ran.out
    better = palaver("compare", "pair", "a.jsonl#d0", "a.jsonl#mute").out
    assert "d0 is better than mute with " in better
    assert "100%" not in better
    assert "de is better than mute" in ran.out
    for file in ("a.jsonl", "s.jsonl"):
        ran = palaver("compare", "rank", file)
        assert ran.code == 0, ran.err
        assert "1 dialogues that do not look English" in ran.out


def test_shards_do_not_change_the_scores(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", rows(20))
    for size in (3, 1000):
        assert (
            palaver("compare", "score", "a.jsonl", "--out", f"{size}.jsonl", "--shard-size", size).code == 0
        )
    assert read(tmp_path / "3.jsonl") == read(tmp_path / "1000.jsonl")


def test_score_says_what_is_wrong(palaver: Any, tmp_path: Path) -> None:
    lines = rows(6)
    lines[3]["id"] = "d0"
    path = write(tmp_path / "a.jsonl", lines)
    ran = palaver("compare", "score", "a.jsonl", "--out", "s.jsonl", "--shard-size", 2)
    assert ran.code == 1
    assert "'d0' is already that of a.jsonl, line 1, which differs: give each its own" in ran.err
    path.write_text('{"id": "a", "turns": [\nnonsense\n{"id": "b"}\n')
    ran = palaver("compare", "score", "a.jsonl", "--out", "s.jsonl")
    assert ran.code == 1
    assert all(f"line {n}" in ran.err for n in (1, 2, 3))
    assert palaver("compare", "score", "none.jsonl", "--out", "s.jsonl").code == 1
    write(path, [{**rows(1)[0], "turns": rows(1)[0]["turns"][:1]}])
    ran = palaver("compare", "score", "a.jsonl", "--out", "s.jsonl")
    assert ran.code == 1
    assert "one turn only" in ran.err
    write(path, rows(2))
    assert "itself" in palaver("compare", "score", "a.jsonl", "--out", "a.jsonl").err
    assert "no comparator" in palaver("compare", "score", "a.jsonl", "--out", "s", "--comparator", "x").err
    assert not (tmp_path / "s.jsonl").exists()


def test_pair(palaver: Any, tmp_path: Path) -> None:
    lines = rows(2)
    write(tmp_path / "all.jsonl", lines)
    write(tmp_path / "one.jsonl", lines[:1])
    ran = palaver("compare", "pair", "one.jsonl", "all.jsonl#d1")
    assert ran.code == 0, ran.err
    assert "is better than" in ran.out
    assert "%" in ran.out
    assert palaver("compare", "pair", "d0", "d1", "--dialogues", "all.jsonl").out == ran.out
    assert "the same turns" in palaver("compare", "pair", "one.jsonl", "one.jsonl").out
    ran = palaver("compare", "pair", "all.jsonl", "one.jsonl")
    assert ran.code == 1
    assert "holds 2 dialogues" in ran.err
    ran = palaver("compare", "pair", "d0", "d1")
    assert ran.code == 1
    assert "there is no file d0" in ran.err
    assert "--dialogues FILE" in ran.err
    assert "no dialogue 'd9'" in palaver("compare", "pair", "all.jsonl#d9", "one.jsonl").err


def responses(n: int = 24) -> list[dict[str, Any]]:
    """Two systems on the contexts of a chat between Ann and Bob; every second one is Ann's to answer."""
    rng = np.random.default_rng(1)
    found = []
    for i in range(n):
        context = [{"speaker": "Bob", "text": f"and number {i}?"}]
        if i % 2:
            context = [{"speaker": "Ann", "text": "hello bob"}, *context]
        for system, words in (("good", GOOD), ("bad", BAD)):
            said = words[int(rng.integers(2))]
            found.append({"id": f"talk#{i}", "system": system, "context": context, "response": said})
    return found


def test_score_and_rank_responses(palaver: Any, tmp_path: Path) -> None:
    write(
        tmp_path / "r.jsonl", [*responses(), {"id": "x", "system": "bad", "context": "Hi", "response": None}]
    )
    ran = palaver("compare", "score", "r.jsonl", "--out", "scores.jsonl", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert (summary["n"], summary["n_systems"], summary["dropped"]) == (48, 2, {"no reply": 1})
    assert summary["lowest"][0] == read(tmp_path / "scores.jsonl")[0]
    scores = {(row["id"], row["system"]): row["score"] for row in read(tmp_path / "scores.jsonl")}
    assert len(scores) == 48
    assert all(scores[f"talk#{i}", "good"] != scores[f"talk#{i}", "bad"] for i in range(24))
    of_scores, of_responses = (
        json.loads(palaver("compare", "rank", name, "--replicates", 50, "--json").out)["ranking"]
        for name in ("scores.jsonl", "r.jsonl")
    )
    assert [row["label"] for row in of_scores] == [row["label"] for row in of_responses]
    assert of_scores[0]["n_items"] == 24  # what answers one context is compared within it
    assert "next: palaver compare rank" in palaver("compare", "score", "r.jsonl", "--out", "again.jsonl").out


def test_pair_of_responses(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", responses(4))
    ran = palaver("compare", "pair", "r.jsonl#talk#1@good", "r.jsonl#talk#1@bad")
    assert ran.code == 0, ran.err
    assert re.search(r"talk#1@\w+ is better than talk#1@\w+ with \d+%", ran.out)
    result = json.loads(palaver("compare", "pair", "r.jsonl#talk#1@good", "r.jsonl#talk#1@bad", "--json").out)
    assert (result["A"]["system"], result["B"]["id"]) == ("good", "talk#1")
    assert result["better"] == ("A" if result["probability"] >= 0.5 else "B")
    ran = palaver("compare", "pair", "r.jsonl#talk#1", "r.jsonl#talk#1@bad")
    assert ran.code == 1
    assert "2 responses to 'talk#1', of good, bad" in ran.err
    assert "say whose: r.jsonl#talk#1@good" in ran.err


def test_rank_dialogues_and_their_scores(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", rows())
    ran = palaver("compare", "rank", "a.jsonl", "--replicates", 50)
    assert ran.code == 0, ran.err
    assert "TrueSkill" in ran.out
    assert "bootstrap" in ran.out
    palaver("compare", "score", "a.jsonl", "--out", "s.jsonl")
    assert palaver("compare", "rank", "s.jsonl", "--replicates", 50).code == 0
    write(tmp_path / "b.jsonl", [{**row, "bot": "A"} for row in rows(6)])
    assert "at least two systems" in palaver("compare", "rank", "b.jsonl").err
    (tmp_path / "c.jsonl").write_text('{"id": "a"}\n')
    assert "line 1" in palaver("compare", "rank", "c.jsonl").err
    assert "--confidence" in palaver("compare", "rank", "a.jsonl", "--confidence", 2).err


def test_clean_writes_verdicts_and_a_picture(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", rows(120))
    ran = palaver("compare", "clean", "a.jsonl", "--out", "cleaned")
    assert ran.code == 0, ran.err
    judged = read(tmp_path / "cleaned" / "ratings.jsonl")
    assert len(judged) == 120
    assert {row["verdict"] for row in judged} <= {"keep", "suspicious", "drop"}
    assert len(read(tmp_path / "cleaned" / "raters.jsonl")) == 20
    page = (tmp_path / "cleaned" / "report.html").read_text()
    assert "<svg" in page
    assert "Which ratings can be kept?" in page
    assert not re.findall(r"(?:src|url)\W{1,2}http", page), "the page asks for nothing else"
    kept = [row["id"] for row in judged if row["verdict"] == "keep"]
    again = palaver("compare", "ratings", "cleaned/kept.jsonl", "--json")
    assert json.loads(again.out)["distribution"]["n"] == len(kept) < 120
    assert [row["id"] for row in read(tmp_path / "cleaned" / "kept.jsonl")] == kept


def test_clean_and_presets_for_programs(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", rows(30))
    result = json.loads(palaver("compare", "clean", "a.jsonl", "--out", "cleaned", "--json").out)
    assert sum(result["counts"].values()) == 30
    assert result["report"] == "cleaned/report.html"
    presets = json.loads(palaver("compare", "presets", "--json").out)
    assert "cmade" in [preset["name"] for preset in presets]


def test_clean_refuses_what_it_cannot_judge(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "same.jsonl", [{**row, "rating100": 50} for row in rows(30)])
    assert "all 30 ratings are equal" in palaver("compare", "clean", "same.jsonl", "--out", "c").err
    write(tmp_path / "few.jsonl", rows(7))
    assert "too few" in palaver("compare", "clean", "few.jsonl", "--out", "c").err
    write(tmp_path / "a.jsonl", rows(30))
    assert "go together" in palaver("compare", "clean", "a.jsonl", "--out", "c", "--dev-pairs", "p").err
    out = palaver("compare", "clean", "a.jsonl", "--out", "c", "--drop", 0.9, "--doubt", 0.1)
    assert out.code == 1
    assert "must not lie above" in out.err


@pytest.mark.parametrize("verb", ["score", "pair", "rank", "clean"])
def test_help_has_an_example(palaver: Any, verb: str) -> None:
    assert f"Example: palaver compare {verb}" in palaver("compare", verb, "--help").out


def test_a_very_long_turn_is_named_by_its_ends(palaver: Any, tmp_path: Path) -> None:
    lines = rows(2)
    for row in lines:
        for n, turn in enumerate(row["turns"][1::2]):
            turn["text"] = f"{turn['text']} {n} " * 3000
    write(tmp_path / "a.jsonl", lines)
    scored = palaver("compare", "score", "a.jsonl", "--out", "s.jsonl")
    compared = palaver("compare", "pair", "a.jsonl#d0", "a.jsonl#d1")
    for ran in (scored, compared):
        assert ran.code == 0, ran.err
        assert "…" in ran.out
        assert max(map(len, ran.out.splitlines())) < 1000
    assert max(map(len, (tmp_path / "s.jsonl").read_text().splitlines())) > 100_000  # the file has it whole
