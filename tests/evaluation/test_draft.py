"""`palaver init`: what a first file says for what a person has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palaver.errors import UserError
from palaver.evaluation.draft import Answers, draft_experiment, usual_judges
from palaver.evaluation.experiment import load_experiment


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [
        {"id": "1", "system": s, "context": "Hi.", "response": "Hello.", "reference": "Hey."}
        for s in ("a b", "c")
    ]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    turns = [{"speaker": "user", "text": "Hi."}, {"speaker": "system", "text": "Hello."}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"id": "1", "turns": turns}) + "\n")
    (tmp_path / "questions.txt").write_text("Hi.\n")
    (tmp_path / "people.csv").write_text("item,system,rater,criterion,value\n")
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_kind_of_system(here: Path) -> None:
    systems = [
        "said.jsonl",
        "log.jsonl",
        "https://api.example.com/v1",
        "my_bots:reply",
        "default",
        "runs",
        "smollm2",
        "everyday",
    ]
    answers = Answers(systems=systems, contexts="questions.txt", judges=["words"], people="people.csv")
    (here / "experiment.toml").write_text(draft_experiment(answers))
    experiment = load_experiment("experiment.toml")
    kinds = {name: spec.options.kind for name, spec in experiment.systems.items()}
    assert kinds == {
        "a b": "replay", "c": "replay", "log": "replay", "example": "openai", "reply": "python",
        "shipped": "checkpoint", "runs": "checkpoint", "smollm2": "huggingface",
        "everyday": "written",
    }  # fmt: skip
    assert experiment.judges == ("words",)
    assert experiment.rating_files == [Path("people.csv")]


@pytest.mark.parametrize("people", ["study", "simulate", None])
def test_every_kind_of_people(people: str | None, here: Path) -> None:
    answers = Answers(systems=["said.jsonl"], contexts="said.jsonl", judges=["words"], people=people)
    (here / "experiment.toml").write_text(draft_experiment(answers))
    asked = load_experiment("experiment.toml").people
    assert (asked is not None and getattr(asked, people or "", None) is not None) == (people is not None)


def test_paths_of_a_file_elsewhere_are_whole(here: Path) -> None:
    (here / "there").mkdir()
    text = draft_experiment(
        Answers(systems=["said.jsonl"], contexts="said.jsonl", judges=["words"]), Path("there")
    )
    (here / "there" / "experiment.toml").write_text(text)
    assert load_experiment("there/experiment.toml").contexts_source == str(here / "said.jsonl")


def test_what_is_no_system(here: Path) -> None:
    with pytest.raises(UserError, match="'nonsense' is no file, address, folder"):
        draft_experiment(Answers(systems=["nonsense"], contexts="questions.txt", judges=[]))
    with pytest.raises(UserError, match="two systems would be called c"):
        (here / "c.jsonl").write_text((here / "log.jsonl").read_text())
        draft_experiment(Answers(systems=["said.jsonl", "c.jsonl"], contexts="questions.txt", judges=[]))
    with pytest.raises(UserError, match="at least one system"):
        draft_experiment(Answers(systems=[], contexts="questions.txt", judges=[]))


def test_judges_that_suit_the_contexts(here: Path) -> None:
    assert usual_judges(["said.jsonl"], "said.jsonl")[:2] == ["unigram_f1", "rouge_l"]
    assert "unigram_f1" not in usual_judges(["my:bot"], "questions.txt")
