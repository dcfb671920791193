"""Files scored in shards, whatever their shape."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaver.comparator.file_scores import LONG, DialogueScore, score_file
from palaver.comparator.scorer import Scorer, Scores, WorstTurn
from palaver.errors import DataError

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fake_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(texts: list[str]) -> Any:
        return [np.random.default_rng(zlib.crc32(text.encode())).normal(size=384) for text in texts]

    monkeypatch.setattr("palaver.comparator.scorer.turn_encoder", lambda name=None, device="cpu": encode)
    monkeypatch.setattr("palaver.comparator.scorer._joined", lambda raters, device: raters)


def test_a_very_long_dialogue_costs_no_more_than_what_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []

    def encode(texts: list[str]) -> Any:
        encoded.extend(texts)
        return [[len(text), *[1.0] * 383] for text in texts]

    monkeypatch.setattr("palaver.comparator.scorer.turn_encoder", lambda name=None, device="cpu": encode)
    monkeypatch.setattr("palaver.comparator.scorer._MOST_READ", 30_000)
    texts = [f"this is turn {n}" for n in range(10_000)]
    texts[9_501] = "we like music " * 7_000  # 100 kB
    turns = [{"speaker": ("user", "bot")[n % 2], "text": text} for n, text in enumerate(texts)]
    short = [{"speaker": who, "text": text} for who, text in TURNS]
    rows = [{"id": "long", "turns": turns}, {"id": "short", "turns": short}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = score_file(tmp_path / "d.jsonl", tmp_path / "scores.jsonl")
    assert len(encoded) == 1001 + len(TURNS)  # not again for the costliest turn
    assert summary.notes == {LONG: 1}
    long = next(row for row in summary.lowest if row.id == "long")
    assert long.worst_turn is not None
    assert long.worst_turn.turn > 9_900


TURNS = [("user", "hi"), ("bot", "hello"), ("user", "how are you?"), ("bot", "pizza pizza")]


def test_a_table_is_scored_like_json_lines(tmp_path: Path) -> None:
    rows = [
        {
            "id": name,
            "turns": [{"speaker": who, "text": f"{text} {name}"} for who, text in TURNS],
            "bot": "B",
            "group": "g",
        }
        for name in "abc"
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = [f"{name},{who},{text} {name},B,g" for name in "abc" for who, text in TURNS]
    (tmp_path / "d.csv").write_text("\n".join(["dialogue,speaker,text,system,group", *cells]))
    progress: list[int] = []
    for name in ("d.jsonl", "d.csv"):
        score_file(
            tmp_path / name, tmp_path / f"{name}.scores", turns=2, shard_size=2,
            progress=lambda what, done, total: progress.append(done),
        )  # fmt: skip
    lines, table = ((tmp_path / f"{name}.scores").read_text() for name in ("d.jsonl", "d.csv"))
    assert lines == table
    scores = [json.loads(line) for line in lines.splitlines()]
    assert [row["score"] for row in scores] == sorted(row["score"] for row in scores)
    assert ["worst_turn" in row for row in scores] == [True, True, False]
    assert {(row["system"], row["group"]) for row in scores} == {("B", "g")}
    assert progress == [2, 3, 2, 3]


def test_scores_that_are_written_alike_are_in_the_order_of_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their last bits depend on what was scored beside them."""

    class Fixed(Scorer):
        def _score(self, dialogues: Any, progress: Any) -> Scores:
            score = np.array([0.5 + 1e-9 * (one.id == "a") for one in dialogues])
            return Scores(score, score, score)

        def _scores_without(self, dialogues: Any, places: Any) -> Any:
            raise NotImplementedError

    monkeypatch.setattr("palaver.comparator.file_scores.load_scorer", lambda name, device: Fixed())
    rows = [{"id": name, "turns": [{"speaker": who, "text": t} for who, t in TURNS]} for name in "ba"]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    score_file(tmp_path / "d.jsonl", tmp_path / "s.jsonl", turns=0)
    assert [json.loads(line)["id"] for line in (tmp_path / "s.jsonl").open()] == ["a", "b"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "a", "turns": [{"speaker": "user", "text": "hi"}]}\n')
    with pytest.raises(DataError, match="no dialogue can be scored") as caught:
        score_file(tmp_path / "d.jsonl", tmp_path / "s.jsonl")
    assert caught.value.problems == ("1 one turn only",)


def test_scores_as_json() -> None:
    plain = DialogueScore(3, "a", 0.123456, float("nan"), float("nan"))
    assert plain.to_json() == {"id": "a", "score": 0.1235, "low": None, "high": None}
    worst = DialogueScore(3, "a", 0.5, 0.0, 1.0, "B", "g", WorstTurn(2, "system", "no", 0.33333))
    assert (worst.to_json()["system"], worst.to_json()["group"]) == ("B", "g")
    assert worst.to_json()["worst_turn"] == {"turn": 2, "speaker": "system", "text": "no", "gain": 0.3333}


def test_a_silent_turn_counts_and_weighs_nothing(tmp_path: Path) -> None:
    said = [("user", "hi"), ("bot", ""), ("user", "hello?"), *TURNS[1:], ("bot", "bye")]
    turns = [{"speaker": who, "text": text} for who, text in said]
    spoken = [turn for turn in turns if turn["text"]]
    answers = {}
    for name, rows in {"silent": turns, "spoken": spoken}.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "d", "turns": rows}) + "\n")
        summary = score_file(tmp_path / f"{name}.jsonl", tmp_path / f"{name}-scores.jsonl")
        answers[name] = json.loads((tmp_path / f"{name}-scores.jsonl").read_text())
        assert summary.notes == ({"turns without text": 1} if name == "silent" else {})
    assert answers["silent"]["score"] == answers["spoken"]["score"]
    silent, spoken_only = answers["silent"]["worst_turn"], answers["spoken"]["worst_turn"]
    assert silent["turn"] == spoken_only["turn"] + 1
    assert said[silent["turn"] - 1][1] == silent["text"] == spoken_only["text"]
    assert silent["gain"] == spoken_only["gain"]


def test_columns_taken_for_systems_are_named(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n}?", "a": "yes", "b": "no", "language": "en"} for n in range(2)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = score_file(tmp_path / "r.jsonl", tmp_path / "scores.jsonl")
    assert summary.notes["columns that are a system each: a, b"] == 2
    assert (summary.n, summary.n_systems) == (4, 2)


def test_both_dialogues_of_a_row_are_scored(tmp_path: Path) -> None:
    text = "\n\nHuman: hi\n\nAssistant: hello\n\nHuman: how are you?\n\nAssistant: {}"
    rows = [{side: text.format(f"{side} {n}") for side in ("chosen", "rejected")} for n in range(3)]
    (tmp_path / "hh.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = score_file(tmp_path / "hh.jsonl", tmp_path / "scores.jsonl", shard_size=1)
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert summary.n == 6
    assert {row["id"] for row in scores} == {f"hh:{n}:{side}" for n in (1, 2, 3) for side in rows[0]}
