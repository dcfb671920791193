"""`palaver init` and `palaver evaluate`, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Palaver = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = []
    for n in range(6):
        reference = f"It is number {n} of the day."
        for system, reply in (("new", f"It is number {n} today."), ("old", "No idea."), ("lost", None)):
            rows.append({"id": str(n), "system": system, "context": f"Which is {n}?", "response": reply,
                         "reference": reference})  # fmt: skip
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_a_log_to_a_report(here: Path, palaver: Palaver) -> None:
    ran = palaver("init", "--system", "said.jsonl", "--by", "unigram_f1")
    assert (ran.code, ran.err) == (0, "")
    assert "next: palaver evaluate experiment.toml" in ran.out
    text = (
        (here / "experiment.toml").read_text().replace('system = "lost"', 'system = "lost"\nmissing = "skip"')
    )
    (here / "experiment.toml").write_text(text)
    assert palaver("init", "--system", "said.jsonl").code == 1, "what is there is not replaced"
    plan = palaver("evaluate", "experiment.toml", "--dry-run")
    assert "replies of new" in plan.out
    assert not (here / "experiment-results").exists()
    ran = palaver("evaluate", "experiment.toml")
    assert (ran.code, ran.err) == (0, "")
    assert "new is better than old, unigram_f1 says." in ran.out
    assert "report: experiment-results/report.html" in ran.out
    again = palaver("evaluate", "experiment.toml")
    assert "nothing to do: everything is there and unchanged" in again.out
    as_json = json.loads(palaver("evaluate", "experiment.toml", "--json").out)
    assert as_json["answer"] == "new is better than old, unigram_f1 says."
    assert as_json["systems"][2]["n_skipped"] == 6
    watched = palaver("evaluate", "experiment.toml", "--watch")
    assert "replies of new" in watched.out
    assert "no run is under way" in watched.out
    assert json.loads(palaver("evaluate", "experiment.toml", "--watch", "--json").out)["running"] is False
    ran = palaver("evaluate", "experiment.toml", "--format", "md", "--force")
    assert ran.code == 0
    assert "**new is better than old" in (here / "experiment-results" / "report.md").read_text()


def test_what_fails_is_told_at_the_end(here: Path, palaver: Palaver) -> None:
    palaver("init", "--system", "said.jsonl", "--by", "unigram_f1")
    ran = palaver("evaluate", "experiment.toml", "--out", "out", "--format", "json")
    assert ran.code == 1
    assert "new is better than old" in ran.out, "what is there is shown"
    assert "error: the evaluation is not complete:" in ran.err
    assert "lost: 6 of 6 replies are missing" in ran.err


def test_an_address_leaves_the_name_of_its_model_to_say(here: Path, palaver: Palaver) -> None:
    words = ("--system", "http://localhost:9/v1", "--contexts", "said.jsonl", "--by", "words")
    drafted = palaver("init", *words)
    assert drafted.out.endswith(
        "next: put the models' names for NAME into it, then: palaver evaluate experiment.toml\n"
    )
    own = palaver("init", "--system", "said.jsonl", "--by", "words", "--force")
    assert own.out.endswith("next: palaver evaluate experiment.toml\n")


def test_wrong_words(here: Path, palaver: Palaver) -> None:
    assert palaver("evaluate", "experiment.toml", "--watch", "--dry-run").code == 2
    assert "there is no file experiment.toml" in palaver("evaluate", "experiment.toml").err
    assert "there is no run in" in palaver("evaluate", "experiment.toml", "--watch").err
    ran = palaver("evaluate", "experiment.toml", "--format", "htm")
    assert ran.code == 2
    assert "did you mean 'html'?" in ran.err
    assert "--system is missing" in palaver("init").err
    assert "--contexts is missing" in palaver("init", "--system", "my_bots:reply").err
    ran = palaver("init", "--system", "said.jsonl", "--by", "unigram_f")
    assert "there is no judge 'unigram_f' (did you mean 'unigram_f1'?)" in ran.err


def test_knowledge_of_a_text(here: Path, palaver: Palaver) -> None:
    (here / "facts.txt").write_text("Rome is the capital of Italy. Cats are mammals.\n")
    (here / "questions.txt").write_text("Tell me about Rome.\nDo you like cats?\n")
    functions = ["def fact(text, knowledge=None):", "    return f'I read: {knowledge}'"]
    functions += ["def plain(text):", "    return 'Hm.'"]
    (here / "knowing_bots.py").write_text("\n".join(functions) + "\n")
    tables = [f'[systems.{n}]\nkind = "python"\nfunction = "knowing_bots:{n}"\n' for n in ("fact", "plain")]
    (here / "experiment.toml").write_text(
        '[test]\ncontexts = "questions.txt"\nknowledge = "facts.txt"\n'
        + "".join(tables)
        + '[judges]\nby = ["diversity_1"]\n'
    )
    ran = palaver("evaluate", "experiment.toml", "--out", "out", "--format", "json")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in (here / "out" / "responses.jsonl").read_text().splitlines()]
    assert rows[0]["response"] == "I read: Rome is the capital of Italy."
    assert rows[2]["knowledge"] == "Rome is the capital of Italy.", "judges see it, whoever takes it"


def test_three_questions(here: Path, palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_text("item,system,rater,criterion,value\n0,new,ann,fun,3\n")
    asked: list[tuple[str, object]] = []
    answers = iter(["said.jsonl", "said.jsonl", "unigram_f1, people.csv"])

    def prompt(question: str, default: object = None) -> str:
        asked.append((question, default))
        return next(answers)

    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr("palaver.cli.init.sys", SimpleNamespace(stdin=terminal, stdout=terminal))
    monkeypatch.setattr("typer.prompt", prompt)
    ran = palaver("init", "--out", "mine.toml")
    assert ran.code == 0, ran.err
    assert len(asked) == 3
    assert asked[1][1] == "said.jsonl", "a log answers its own contexts"
    assert str(asked[2][1]).startswith("unigram_f1,rouge_l")
    text = (here / "mine.toml").read_text()
    assert 'by = ["unigram_f1"]' in text
    assert 'ratings = "people.csv"' in text
