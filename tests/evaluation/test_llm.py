"""A language model as a judge of an evaluation: asked once, kept, and its failures are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from palaver.errors import UserError
from palaver.evaluation.experiment import load_experiment
from palaver.evaluation.plan import plan_run
from palaver.evaluation.run import Options, run_experiment

from ..judges.scripted_server import Script, ScriptedServer

pytest.importorskip("httpx")
Write = Callable[..., Path]
JSON = Options(form="json")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr("palaver.http._FIRST_PAUSE", 0.001)
    server = ScriptedServer(Script(prefers=lambda text: 5.0 if "see" in text else 2.0))
    yield server
    server.stop()


def test_a_model_rates_and_is_asked_once(
    experiment_file: Write, bots_folder: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f'[systems.mini]\nkind = "openai"\nbase_url = "{server.url}"\nmodel = "scripted-1"\nretries = 0\n'
    (bots_folder / "systems.toml").write_text(table)
    llm = '[[judges.llm]]\nname = "mini"\npreset = "likert"\nsample = 5\ntoken_prices = [1.0, 2.0]'
    path = experiment_file("good", "bad", more=llm)
    out = bots_folder / "out"
    result = run_experiment(path, out, options=JSON)
    asked = len(server.script.requests)
    assert asked > 0
    assert result.errors == ()
    by_mini = [verdict for verdict in result.verdicts if verdict.judge == "mini"]
    assert {verdict.criterion for verdict in by_mini} == {"relevance", "naturalness", "quality"}
    assert all(verdict.best == ("good",) for verdict in by_mini)
    ratings = pl.read_parquet(out / "ratings.parquet").filter(pl.col("rater") == "mini")
    assert ratings["seconds"].null_count() == ratings["given_at"].null_count() == ratings.height
    before = [(out / name).read_bytes() for name in ("ratings.parquet", "results.json")]
    run_experiment(path, out, options=JSON)
    assert len(server.script.requests) == asked, "what was answered is not asked again"
    assert [(out / name).read_bytes() for name in ("ratings.parquet", "results.json")] == before
    for place in ("palaver", "palaver.judges.llm", "palaver.metrics.metric", "palaver.schema.run"):
        monkeypatch.setattr(f"{place}.__version__", "99.0")
    plan = plan_run(load_experiment(path), out, JSON)
    assert [(step.name, step.to_do) for step in plan.steps if step.to_do] == [], "nor by a new version"
    run_experiment(path, out, options=JSON)
    assert len(server.script.requests) == asked
    assert '"palaver": "99.0"' in (out / "results.json").read_text(), "it was gone through again"


def test_a_model_that_is_not_there_is_marked(experiment_file: Write, bots_folder: Path) -> None:
    table = '[systems.mini]\nkind = "openai"\nbase_url = "http://127.0.0.1:9"\nmodel = "m"\nretries = 0\n'
    (bots_folder / "systems.toml").write_text(table)
    path = experiment_file("good", "bad", more='[[judges.llm]]\nname = "mini"\nsample = 2')
    result = run_experiment(path, bots_folder / "out", options=JSON)
    assert result.answer.startswith("good is better than bad, length says")
    assert result.judges[1].error
    assert any(caveat.startswith("mini: ") for caveat in result.caveats)
    assert next(v.reason for v in result.verdicts if v.judge == "mini").startswith("it rated nothing")


@pytest.mark.parametrize("preset", ["likert", "pairwise"])
def test_the_plan_counts_the_calls_that_are_made(
    preset: str, experiment_file: Write, bots_folder: Path, server: ScriptedServer
) -> None:
    table = f'[systems.mini]\nkind = "openai"\nbase_url = "{server.url}"\nmodel = "scripted-1"\nretries = 0\n'
    (bots_folder / "systems.toml").write_text(table)
    llm = f'[[judges.llm]]\nname = "mini"\npreset = "{preset}"\nrepeats = 2\ntoken_prices = [1.0, 2.0]'
    path, out = experiment_file("good", "bad", more=llm), bots_folder / "out"
    before = plan_run(load_experiment(path), out, JSON).steps[-1]
    assert server.script.requests == [], "a plan asks nobody"
    run_experiment(path, out, options=JSON)
    assert (before.name, before.total, before.there) == ("answers of mini", len(server.script.requests), 0)
    assert before.cost is not None
    assert 0 < before.cost < 2 * before.tokens / 1e6
    after = plan_run(load_experiment(path), out, JSON).steps[-1]
    assert (after.to_do, after.tokens, after.cost) == (0, 0, 0)
    anew = plan_run(load_experiment(path), out, JSON, fresh=True).steps[-1]
    assert anew.to_do == before.total


def test_a_limit_is_said_where_it_will_stop_the_judge(
    experiment_file: Write, bots_folder: Path, server: ScriptedServer
) -> None:
    table = f'[systems.mini]\nkind = "openai"\nbase_url = "{server.url}"\nmodel = "scripted-1"\n'
    (bots_folder / "systems.toml").write_text(table)
    llm = '[[judges.llm]]\nname = "mini"\ntoken_limit = 50\ncost_limit = 0.00001\ntoken_prices = [1.0, 2.0]'
    plan = plan_run(load_experiment(experiment_file("good", "bad", more=llm)), bots_folder / "out", JSON)
    assert plan.steps[-1].note == "one call each; stops at 50 tokens; stops at a cost of 1e-05"
    assert "to pay for judges" in repr(plan)


def test_names_and_keys_that_are_missing_are_told_before_the_work(
    experiment_file: Write, bots_folder: Path
) -> None:
    table = '[systems.mini]\nkind = "openai"\nbase_url = "http://127.0.0.1:9"\nmodel = "m"\n'
    table += 'api_key_env = "NO_KEY"\n'
    (bots_folder / "systems.toml").write_text(table)
    names = ("mini", "mimi")
    llm = "".join(f'[[judges.llm]]\nname = "{name}"\n' for name in names)
    path = experiment_file("good", "bad", judges=["length"], more=llm)
    path.write_text(path.read_text().replace(":bad", ":no_such_function"))
    (bots_folder / "questions.txt").write_text("")
    with pytest.raises(UserError) as caught:
        run_experiment(path, bots_folder / "out", options=JSON)
    told = "\n".join([caught.value.message, *caught.value.problems])
    for words in (
        "the environment variable NO_KEY is not set",
        "'mimi'",
        "no_such_function",
        "questions.txt",
    ):
        assert words in told, "four mistakes, all of them named"
