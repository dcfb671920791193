"""Judges write rows of the one rating table, for responses and for dialogues."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaver import analyse, ratings_from_frame
from palaver.comparator.training_data import dialogue_digest
from palaver.errors import DataError, UserError
from palaver.judges import judge, judge_names, open_judge
from palaver.judges.comparator import ComparatorJudge
from palaver.judges.labels import SEEN
from palaver.metrics.metric import METRICS
from palaver.metrics.overlap import unigram_f1
from palaver.schema import Dialogue, Turn

ROWS: list[dict[str, Any]] = [
    {
        "id": str(i),
        "system": system,
        "context": [{"speaker": "user", "text": f"Do you like film {i}?"}],
        "response": said,
        "reference": "yes I like that film a lot",
    }
    for i in range(4)
    for system, said in (("good", f"yes I like film {i} a lot"), ("bad", "no no no"))
]


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_a_metric_rates_every_response_with_its_own_number(responses: Path) -> None:
    result = judge(responses, ["unigram_f1"])
    rows = result.frame.to_dicts()
    assert [(row["item"], row["system"]) for row in rows] == [(r["id"], r["system"]) for r in ROWS]
    assert {row["criterion"] for row in rows} == {row["rater"] for row in rows} == {"unigram_f1"}
    assert {row["kind"] for row in rows} == {"metric"}
    assert {row["signature"] for row in rows} == {METRICS.get("unigram_f1").signature}
    for row, said in zip(rows, ROWS, strict=True):
        assert float(row["value"]) == pytest.approx(unigram_f1(said["response"], said["reference"]))


def test_what_judges_write_is_what_analyse_reads(responses: Path) -> None:
    table = ratings_from_frame(judge(responses, ["unigram_f1", "words"]).frame)
    analysis = analyse(table, directions={"words": "neither"})
    first = next(row for row in analysis.ranking if row.criterion == "unigram_f1")
    assert [score.system for score in first.scores] == ["good", "bad"]
    assert {c.criterion: c.rated_by for c in analysis.criteria} == {"unigram_f1": "metric", "words": "metric"}
    assert not [row for row in analysis.ranking if row.criterion == "words"]


def test_a_figure_of_all_responses_is_one_row_a_system(responses: Path) -> None:
    frame = judge(responses, ["distinct_1"]).frame
    assert frame["system"].to_list() == ["good", "bad"]
    assert frame["item"].n_unique() == 1
    bad = float(frame.filter(frame["system"] == "bad")["value"][0])
    assert bad == pytest.approx(1 / 12)  # one word, twelve times


def test_every_metric_is_a_judge(responses: Path) -> None:
    assert set(METRICS) <= set(judge_names())
    small = {"": "", "minilm": "=glove", "smollm2": "=default"}
    metrics = [METRICS.get(name) for name in METRICS]
    able = [metric.name + small[metric.model] for metric in metrics if "knowledge" not in metric.needs]
    result = judge(responses, able)
    assert set(result.frame["criterion"]) == set(able)


def test_speakers_are_part_of_the_system(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    rows = [{**ROWS[0], "speaker": name} for name in ("Joey", "Ross")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert judge(path, ["words"]).frame["system"].to_list() == ["good/Joey", "good/Ross"]


def test_what_cannot_be_judged_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    without = {key: value for key, value in ROWS[0].items() if key != "reference"} | {"id": "x"}
    path.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(without) + "\n")
    result = judge(path, ["unigram_f1"])
    assert result.frame.height == 1
    assert dict(result.left_out) == {"unigram_f1: responses without a reference": 1}


def test_nothing_to_judge_is_an_error_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    row = {key: value for key, value in ROWS[0].items() if key != "reference"}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="nothing that could be judged") as caught:
        judge(path, ["unigram_f1"])
    assert caught.value.problems == ("unigram_f1: responses without a reference: 1",)


def test_the_comparator_and_the_recogniser_rate_responses_and_dialogues(
    responses: Path, tmp_path: Path
) -> None:
    chats = tmp_path / "chats.jsonl"
    turns = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "Hi, I am fine"}]
    chats.write_text(
        "".join(json.dumps({"id": str(i), "model": f"m{i}", "messages": turns}) + "\n" for i in range(2))
    )
    for path, n in ((responses, len(ROWS)), (chats, 2)):
        frame = judge(path, ["comparator", "personality"], device="cpu").frame
        quality = frame.filter(frame["criterion"] == "quality")
        assert quality.height == n
        assert set(quality["rater"]) == {"comparator"}
        assert set(quality["kind"]) == {"model"}
        traits = frame.filter(frame["rater"] == "personality")
        assert traits["criterion"].n_unique() == 5
        assert traits.height == 5 * n
    assert set(quality["system"]) == {"m0", "m1"}


def test_the_comparator_marks_what_it_was_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = tuple(Turn(speaker=s, text=t) for s, t in (("user", "Hello"), ("system", "Hi "), ("user", " ")))
    known = Dialogue(id="1", turns=turns, labels={"system": "a"})
    other = known.model_copy(update={"id": "2", "turns": (*turns[:1], Turn(speaker="system", text="No"))})
    scorer = SimpleNamespace(
        trained_on={dialogue_digest(known)}, signature="c", notes=(), doubts=lambda dialogue: [],
        score=lambda dialogues: SimpleNamespace(score=np.zeros(len(dialogues))),
    )  # fmt: skip
    monkeypatch.setattr("palaver.judges.comparator.load_scorer", lambda which, device: scorer)
    judge = ComparatorJudge(device="cpu")
    alone = known.model_copy(update={"id": "3", "turns": turns[:1]})  # nobody had the time to answer
    rows = list(judge.judge([known, other, alone]))
    assert judge.left_out == {"dialogues of one turn or none": 1}
    assert [(row.signature or "").endswith(SEEN) for row in rows] == [True, False]


def test_a_function_is_a_judge(responses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judge_of_mine.py").write_text(
        "def politeness(response):\n    return 1.0 if 'like' in response.response else None\n"
        "def broken(response):\n    return 'good'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    frame = judge(responses, ["judge_of_mine:politeness"]).frame
    assert frame["criterion"].to_list() == ["politeness"] * 4
    with pytest.raises(UserError, match="finite number, returned 'good' for response '0'"):
        judge(responses, ["judge_of_mine:broken"])


def test_wrong_names_are_told(responses: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'unigram_f1'"):
        open_judge("unigram_f")
    with pytest.raises(UserError, match="takes nothing after '='"):
        open_judge("words=3")
    with pytest.raises(UserError, match="no judge was named"):
        judge(responses, [])


def test_metrics_do_not_judge_dialogues(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(
        json.dumps({"id": "1", "turns": [{"speaker": "a", "text": "x"}, {"speaker": "b", "text": "y"}]})
    )
    with pytest.raises(UserError, match="words judges responses, but .* holds dialogues"):
        judge(path, ["words"])


def test_labels_are_understood_under_any_of_their_names(tmp_path: Path) -> None:
    turns = [{"speaker": "user", "text": "Hi."}, {"speaker": "bot", "text": "Hello!"}]
    rows = [
        {"id": "a", "turns": turns, "labels": {"model": "A", "stars": 4, "worker": "ann"}},
        {"id": "b", "turns": turns, "bot": "B", "score": 2},
        {"id": "c", "turns": turns, "rating": 3},
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = judge(path, ["user"])
    found = result.frame.select("system", "rater", "value").rows()
    assert [(system, rater, float(value)) for system, rater, value in found] == [
        ("A", "ann", 4.0),
        ("B", "user", 2.0),
        ("chats", "user", 3.0),
    ]
    assert "1 dialogues name no system: taken for chats.jsonl's own" in result.notes


def test_judges_in_other_processes_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "engine")
    rows = [
        {"id": str(n), "system": "a", "context": "x", "response": f"reply {n}", "reference": "reply 1"}
        for n in range(2100)
    ]
    rows[1500]["response"] = "no"
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    by = ["unigram_f1", "engine_work:length", "distinct_1"]
    here = judge(path, by)
    there = judge(path, by, engine="processes:2")
    assert there.frame.equals(here.frame)
    assert here.left_out == {"length: failed: length (response '1500') failed: ValueError: too short": 1}
    assert there.left_out == here.left_out
    assert there.notes == here.notes
    assert here.frame.height == 2100 + 2099 + 1
