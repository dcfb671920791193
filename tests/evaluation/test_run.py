"""An evaluation from end to end: the same bytes, failures that are marked, people who are waited for."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from palaver.errors import ConfigError, DataError, UserError
from palaver.evaluation.experiment import load_experiment
from palaver.evaluation.plan import plan_run
from palaver.evaluation.run import Options, run_experiment
from palaver.evaluation.run_record import is_finished
from palaver.evaluation.store import Store

from ..server.sham import come_in, work

Write = Callable[..., Path]
OUTPUTS = ("responses.jsonl", "ratings.parquet", "people.parquet", "results.json", "report.html")
JSON = Options(form="json")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in OUTPUTS if (folder / name).is_file()}


def test_the_whole_way(experiment_file: Write, bots_folder: Path) -> None:
    people = "[people.simulate]\nraters = 9\ntruth = { good = 2.0, bad = 0.0 }\n[report]\nreference = 'bad'"
    path = experiment_file("good", "bad", judges=["length", "distinct_1"], more=people)
    out = bots_folder / "out"
    result = run_experiment(path, out)
    assert result.answer == "good is better than bad, 9 simulated people say (quality); the judge agrees."
    assert result.caveats[0].startswith("The people are simulated")
    assert result.errors == ()
    assert result.verdicts[0].title == "simulated people: quality"
    assert {row.judge for row in result.agreement} >= {"length"}
    assert result.n_responses == 12
    assert {example.why for example in result.examples} >= {"best", "worst"}
    ratings = pl.read_parquet(out / "ratings.parquet")
    assert ratings["rater"].unique(maintain_order=True).to_list() == ["length", "distinct_1"]
    assert ratings["given_at"].null_count() == ratings.height
    assert json.loads((out / "results.json").read_text())["answer"] == result.answer
    assert is_finished(out, path, "report.html")
    before = contents(out)
    assert set(before) == set(OUTPUTS)
    run_experiment(path, out)
    assert contents(out) == before
    run_experiment(path, bots_folder / "anew")
    assert contents(bots_folder / "anew") == before, "the same experiment gives the same bytes anywhere"
    (out / "report.html").write_text("changed")
    assert not is_finished(out, path, "report.html")
    assert "everybody" not in repr(result)
    assert result.to_polars("systems")["n_replies"].to_list() == [6, 6]
    assert result.to_polars().columns[:3] == ["judge", "criterion", "system"]


def test_the_plan_counts_cells(experiment_file: Write, bots_folder: Path) -> None:
    path = experiment_file("good", "bad", judges=["length"])
    out = bots_folder / "out"
    plan = plan_run(load_experiment(path), out, JSON)
    assert [(step.name, step.total, step.there) for step in plan.steps] == [
        ("replies of good", 6, 0),
        ("replies of bad", 6, 0),
        ("ratings of length", 12, 0),
    ]
    assert not out.exists(), "a plan touches nothing"
    run_experiment(path, out, options=JSON)
    plan = plan_run(load_experiment(path), out, JSON)
    assert [step.to_do for step in plan.steps] == [0, 0, 0]
    (bots_folder / "questions.txt").open("a").write("One more?\n")
    plan = plan_run(load_experiment(path), out, JSON)
    assert [step.to_do for step in plan.steps[:2]] == [1, 1]


def test_the_plan_counts_what_people_are_shown(experiment_file: Write, bots_folder: Path) -> None:
    study = '[people.study]\npreset = "pairwise"\nsample = 4'
    plan = plan_run(load_experiment(experiment_file("good", "bad", more=study)), bots_folder / "out", JSON)
    assert (plan.steps[-1].name, plan.steps[-1].total) == ("people", 4 * 2), "two people an item"


def test_a_system_and_a_judge_that_fail_are_marked_and_the_rest_goes_on(
    experiment_file: Write, bots_folder: Path
) -> None:
    path = experiment_file("good", "broken", judges=["length", "picky"])
    result = run_experiment(path, bots_folder / "out", options=JSON)
    assert result.systems[1].n_replies == 5
    assert result.systems[1].error == "1 of 6 replies are missing: broken failed: ValueError: no cats"
    assert result.judges[1].error.startswith("ratings of 1 of 11 responses are missing")
    assert any("broken" in caveat for caveat in result.caveats)
    assert not is_finished(bots_folder / "out", path, "results.json"), "it is not complete"
    with Store(bots_folder / "out", read_only=True) as store:
        assert [step.name for step in store.steps() if step.error] == [
            "replies of broken",
            "ratings of picky",
        ]


def test_a_folder_of_something_else_is_not_touched(experiment_file: Write, bots_folder: Path) -> None:
    path = experiment_file("good", "bad")
    with pytest.raises(UserError, match="is no run of an evaluation"):
        run_experiment(path, bots_folder)


def test_what_cannot_be_opened_is_told_before_the_work(
    experiment_file: Write, bots_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = experiment_file("good", "nobody", "nothing")
    with pytest.raises(UserError) as caught:
        run_experiment(path, bots_folder / "out", options=JSON)
    assert len(caught.value.problems) == 2
    path = experiment_file("good", "bad")
    (bots_folder / "questions.txt").write_text("\n\n")
    with pytest.raises(DataError, match="there are no contexts in"):
        run_experiment(path, bots_folder / "out", options=JSON)


def test_people_of_a_file(experiment_file: Write, bots_folder: Path) -> None:
    rows = ["item,system,rater,criterion,value"]
    for item in range(1, 7):
        for rater in ("ann", "bob", "eve"):
            rows.append(f"{item},good,{rater},fun,{4 + (item + len(rater)) % 2}")
            rows.append(f"{item},bad,{rater},fun,{1 + item % 2}")
        rows.append(f"{item},other,ann,fun,3")
    (bots_folder / "people.csv").write_text("\n".join(rows) + "\n")
    path = experiment_file("good", "bad", more='[people]\nratings = "people.csv"')
    result = run_experiment(path, bots_folder / "out", options=JSON)
    assert result.answer.startswith("good is better than bad, 3 people say (fun)")
    assert not result.is_simulated
    assert "6 ratings of other are left out: not in the experiment" in result.notes
    (bots_folder / "people.csv").write_text(
        "item,system,rater,criterion,value\n1,x,ann,fun,3\n2,y,ann,fun,4\n"
    )
    with pytest.raises(DataError, match="none of its ratings is about a system of this experiment"):
        run_experiment(path, bots_folder / "out", options=JSON)
    (bots_folder / "people.csv").write_text(
        "item,system,rater,criterion,value\n91,good,a,fun,3\n92,bad,a,fun,4\n"
    )
    with pytest.raises(DataError, match="none of its items is a context of this experiment"):
        run_experiment(path, bots_folder / "out", options=JSON)


def test_people_are_waited_for(experiment_file: Write, bots_folder: Path) -> None:
    from palaver.studies import load_study, simulate

    path = experiment_file("good", "bad", more='[people.study]\npreset = "likert"\nsample = 4')
    out = bots_folder / "out"
    options = Options(form="json", command="palaver evaluate again.toml")
    result = run_experiment(path, out, options=options)
    assert result.waiting == "4 items wait for 3 people each"
    assert result.next_commands == (
        f"palaver study serve {out / 'study.toml'}",
        "palaver evaluate again.toml",
    )
    with Store(out, read_only=True) as store:
        step = next(step for step in store.steps() if step.name == "people")
    assert (step.done, step.total) == (0, 36), "four items, three people, three questions"
    assert step.error == f"waiting: {result.waiting}"
    assert result.answer.startswith("good is better than bad, length says"), "the judges' answer is there"
    assert not is_finished(out, path, "results.json")
    study = load_study(out / "study.toml")
    served = (out / "study.toml").read_bytes()
    from palaver.readers.rating_files import write_frames

    write_frames([simulate(study, n_raters=6, gap=1.0).frame], out / "people.csv")
    result = run_experiment(path, out, options=options)
    assert result.waiting == ""
    said = "No difference between good and bad can be shown, 6 people say"  # four items separate nobody
    assert result.answer.startswith(said)
    assert (out / "study.toml").read_bytes() == served
    assert is_finished(out, path, "results.json")


def test_a_study_that_is_served_is_read_from_its_database(experiment_file: Write, bots_folder: Path) -> None:
    from palaver.evaluation.people import ScreenCount, _served
    from palaver.server.database import Database, sqlite_url
    from palaver.server.migrations import migrate
    from palaver.server.study_state import StudyState
    from palaver.studies import load_study

    path = experiment_file("good", "bad", more='[people.study]\npreset = "pairwise"\nsample = 2')
    out = bots_folder / "out"
    run_experiment(path, out, options=JSON)
    study = load_study(out / "study.toml")
    database = Database(sqlite_url(out / "study.db"))
    migrate(database)
    state = StudyState.create(database, study, (out / "study.toml").read_text())
    assert _served(out / "study.db") == ScreenCount(0, 4)
    result = run_experiment(path, out, options=JSON)
    assert result.waiting == "0 of 4 screens are done"
    study_text = (out / "study.toml").read_bytes()
    assert run_experiment(path, out, fresh=True, options=JSON).waiting == "0 of 4 screens are done"
    assert (out / "study.toml").read_bytes() == study_text, "what is served is never written over"
    for number in range(2):
        work(state, come_in(state), random.Random(number))
        if number == 0:
            result = run_experiment(path, out, options=JSON)
            export = f"palaver study export {out / 'study.toml'} --out {out / 'people.csv'}"
            assert any(note.endswith(export) for note in result.notes), "they may be enough"
    database.close()
    result = run_experiment(path, out, options=JSON)
    assert result.waiting == ""
    assert result.n_raters == 2
    assert result.verdicts[0].is_by_people, "people first"
    (bots_folder / "questions.txt").write_text("Quite another one?\nAnd another?\n")
    with pytest.raises(UserError, match="have changed since .* was served"):
        run_experiment(path, out, options=JSON)


def test_a_study_changed_by_hand_is_not_written_over(experiment_file: Write, bots_folder: Path) -> None:
    path = experiment_file("good", "bad", more='[people.study]\npreset = "likert"\nsample = 2')
    out = bots_folder / "out"
    run_experiment(path, out, options=JSON)
    study = out / "study.toml"
    study.write_text(study.read_text().replace("raters_per_item = 3", "raters_per_item = 5"))
    assert run_experiment(path, out, options=JSON).waiting == "2 items wait for 5 people each"
    experiment_file("good", "bad", more='[people.study]\npreset = "likert"\nsample = 3')
    with pytest.raises(UserError, match="by hand"):
        run_experiment(path, out, options=JSON)


# Killed --------------------------------------------------------------------------------------------------

KILLED = """
import os, signal
from palaver.schema import Reply

counts = {}

def asked(name):
    counts[name] = counts.get(name, 0) + 1
    with open(os.environ["CALLS"], "a") as file:
        file.write(name + "\\n")
    if os.environ.get("KILL_AT") == f"{name}:{counts[name]}":
        os.kill(os.getpid(), signal.SIGKILL)

class Bot:
    chunk = 4

    def __init__(self, word):
        self.word = word

    def reply(self, requests):
        replies = []
        for request in requests:
            asked(self.word)
            replies.append(Reply(f"{request.dialogue.turns[-1].text} {self.word}"))
        return replies

def judge(response):
    asked("judge")
    return float(len(response.response))
"""
KILL_POINTS = ("good:3", "good:10", "bad:6", "judge:20")


def test_killed_at_any_point_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "killed_bots.py").write_text(KILLED)
    (tmp_path / "questions.txt").write_text("".join(f"question {n}\n" for n in range(12)))
    systems = [
        f'[systems.{w}]\nkind = "python"\nfunction = "killed_bots:Bot"\nword = "{w}"' for w in ("good", "bad")
    ]
    text = '[test]\ncontexts = "questions.txt"\n{}\n[judges]\nby = ["killed_bots:judge"]\n'
    (tmp_path / "experiment.toml").write_text(text.format("\n".join(systems)))

    def run(out: str, kill_at: str = "") -> int:
        environment = {**os.environ, "CALLS": str(tmp_path / f"{out}.calls"), "KILL_AT": kill_at}
        words = [sys.executable, "-m", "palaver", "evaluate", "experiment.toml"]
        words += ["--out", out, "--format", "json"]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True).returncode

    assert run("whole") == 0
    for point in KILL_POINTS:
        assert run("killed", point) == -signal.SIGKILL
    assert run("killed") == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    paid = (tmp_path / "killed.calls").read_text().split()
    once = (tmp_path / "whole.calls").read_text().split()
    assert len(once) == 48
    batch = {"good": 4, "bad": 4, "judge": 24}
    kills = {word: sum(point.startswith(word) for point in KILL_POINTS) for word in batch}
    for word, size in batch.items():
        assert paid.count(word) - once.count(word) <= size * kills[word], "at most a batch is paid twice"


def test_two_runs_do_not_work_in_one_folder(experiment_file: Write, bots_folder: Path) -> None:
    from palaver.artefacts import lock_folder

    path = experiment_file("good", "bad")
    with lock_folder(bots_folder / "out"), pytest.raises(UserError, match="another process"):
        Store(bots_folder / "out").close()
        run_experiment(path, bots_folder / "out", options=JSON)


def test_the_file_may_name_an_engine_and_nothing_depends_on_it(tmp_path: Path) -> None:
    (tmp_path / "engine_bots.py").write_text(
        "def loud(text):\n    return text.upper()\n"
        "def length(response):\n    return float(len(response.response))\n"
    )
    (tmp_path / "questions.txt").write_text("".join(f"question {n}\n" for n in range(300)))
    text = (
        '[systems.loud]\nkind = "python"\nfunction = "engine_bots:loud"\n'
        '[test]\ncontexts = "questions.txt"\n[judges]\nby = ["engine_bots:length"]\n'
    )
    results = {}
    for engine in ("local", "processes:2"):
        path = tmp_path / "experiment.toml"
        path.write_text(f'title = "x"\nengine = "{engine}"\n{text}')
        out = tmp_path / engine.partition(":")[0]
        run_experiment(path, out, options=JSON)
        results[engine] = [
            (out / name).read_bytes() for name in ("responses.jsonl", "ratings.parquet", "results.json")
        ]
    assert results["local"] == results["processes:2"]
    path.write_text(f'engine = "process"\n{text}')
    with pytest.raises(ConfigError, match=r"line 1: engine: there is no engine 'process' \(did you mean"):
        run_experiment(path, tmp_path / "wrong")
