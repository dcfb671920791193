"""Experiment files: presets below, `--set` on top, every mistake with its line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from palaver.errors import ConfigError, UserError
from palaver.training.experiment_file import (
    PRESETS,
    experiment_toml,
    load_experiment,
    model_table,
    preset_experiment,
    preset_tables,
)

NEEDS = {"conditioning": {"personality": "data.ocean"}}


def write(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def preset(name: str, folder: Path) -> list[str]:
    """What must be given besides: a personality preset needs a table."""
    table = folder / "ocean.csv"
    table.write_text("speaker,o,c,e,a,n\nA,1,2,3,4,5\n")
    return [f'data.ocean="{table}"'] if name.endswith("personality") else []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_sound_and_reads_back(name: str, tmp_path: Path) -> None:
    found = preset_experiment(name, preset(name, tmp_path))
    assert load_experiment(write(tmp_path, experiment_toml(found))) == found
    table = model_table(found.model.kind)
    assert set(found.model_settings) <= set(table.model_fields)


def test_presets_are_the_papers_recipes(tmp_path: Path) -> None:
    speaker = preset_experiment("xing2018-speaker")
    o = speaker.optimiser
    assert (o.name, o.learning_rate, o.schedule, o.halve_after) == ("sgd", 1.0, "halve-after", 6)
    assert (o.clip, o.batch_size, o.epochs) == (5.0, 128, 30)
    assert (speaker.vocabulary.kind, speaker.vocabulary.size) == ("word", 25000)
    assert speaker.model_settings["conditioning"] == "speaker"
    assert (speaker.data.min_turns, speaker.data.history_turns, speaker.data.valid_examples) == (
        2000,
        1,
        2000,
    )
    assert speaker.model_settings["hidden"] == 1024
    assert speaker.model_settings["layers"] == 4
    grounded = preset_experiment("topicalchat-tf-knowledge")
    o = grounded.optimiser
    assert (o.name, o.schedule, o.decay, o.patience, o.clip) == ("sgd", "plateau", 0.5, 3, 0.1)
    assert (o.batch_size, o.early_stop) == (32, 10)
    assert (grounded.data.knowledge, grounded.vocabulary.kind) == ("oracle", "word")
    assert grounded.data.valid[0].split == "valid_freq"
    assert preset_experiment("topicalchat-pretrain").data.task == "windows"
    for name in PRESETS:
        if name.startswith("modern"):
            modern = preset_experiment(name, preset(name, tmp_path))
            assert modern.optimiser.name == "adamw"
            assert modern.optimiser.precision == "bf16"
            assert modern.optimiser.label_smoothing == 0.1
            assert modern.optimiser.schedule.startswith("warmup")
            assert modern.model_settings["norm"] == "pre"
            assert modern.model_settings["tied"] is True


def test_preset_then_file_then_set(tmp_path: Path) -> None:
    path = write(tmp_path, 'preset = "tiny"\n[optimiser]\nepochs = 7\nlearning_rate = 0.5\n')
    found = load_experiment(path, ["optimiser.epochs=9", "name=hello", "model.dim=32"])
    assert found.optimiser.epochs == 9
    assert found.optimiser.learning_rate == 0.5
    assert found.optimiser.batch_size == 32
    assert found.name == "hello"
    assert found.model_settings["dim"] == 32
    assert found.folder == Path("runs/hello")


def test_one_of_two_replaces_the_presets_other(tmp_path: Path) -> None:
    path = write(tmp_path, 'preset = "tiny"\n[optimiser]\nbatch_tokens = 4000\n')
    assert load_experiment(path).optimiser.batch_size is None
    assert load_experiment(path, ["optimiser.batch_size=3"]).optimiser.batch_tokens is None
    named = preset_experiment("xing2018-speaker", ['data.speakers=["Ross"]'])
    assert named.data.min_turns == 0


def test_all_mistakes_with_their_lines(tmp_path: Path) -> None:
    text = """preset = "tiny"
seed = -1
[data]
train = [{ corpus = "x", path = "y" }]
taks = "response"
[model]
dimm = 3
heads = "two"
[optimiser]
schedule = "plateaux"
betas = [0.9]
"""
    with pytest.raises(ConfigError) as error:
        load_experiment(write(tmp_path, text), ["optimiser.epochs=none"])
    problems = "\n".join(error.value.problems)
    assert len(error.value.problems) == 8
    assert "line 2: seed: expected at least 0, found -1" in problems
    assert "line 4: data.train[1]: give either corpus or path" in problems
    assert "line 5: data.taks: there is no such field (did you mean 'task'?)" in problems
    assert "line 7: model.dimm: there is no such field (did you mean 'dim'?)" in problems
    assert "line 8: model.heads: " in problems
    assert "line 10: optimiser.schedule: " in problems
    assert "did you mean 'plateau'?" in problems
    assert "optimiser.epochs: " in problems
    assert "given with --set" in problems


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (["data.knowledge=oracle"], "model.knowledge is false"),
        (["model.conditioning=speaker"], "data.min_turns"),
        (["model.conditioning=personality"], "data.ocean"),
        (["data.task=windows", "data.window=1000"], "more than model.max_context"),
        (["data.ocean=nowhere.csv"], "there is no nowhere.csv"),
        (["model.initialise_from=nowhere"], "there is no nowhere"),
        (["vocabulary.from=nowhere"], "vocabulary.from: there is no nowhere"),
        (['data.train=[{path="nowhere"}]'], "data.train[1].path: there is no nowhere"),
        (["model.vocab_size=3"], "filled in from the data"),
        (["model.dim=33", "model.heads=2"], "dim (33) should be a multiple of heads (2)"),
        (["model.layers=0"], "model.layers: expected at least 1"),
        (["model.layers=true"], "model.layers"),
        (["model.dropout=1"], "model.dropout: expected less than 1"),
        (["optimiser.epochs=true"], "expected a number, found True"),
        (["optimiser.epochs='3'"], "expected a number, found '3'"),
        (["optimiser.betas=[0.9,1.0]"], "optimiser.betas[2]: expected less than 1"),
        (["optimiser.learning_rate=nan"], "expected a finite number"),
        (["optimiser.learning_rate=1e300"], "expected at most 1000000"),
        (["vocabulary.size=1000000000000"], "expected at most 1000000"),
        (["data.speakers=['Ada','Ben','Ada']"], "there twice: 'Ada'"),
        (["data=5"], "data: expected a table, found 5"),
    ],
)
def test_contradictions_and_missing_files(
    assignments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        load_experiment(write(tmp_path, 'preset = "tiny"\n'), assignments)
    assert words in str(error.value)


def test_unknown_preset_and_assignments_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'xing2018-speaker'"):
        preset_tables("xing2018-speker")
    for wrong in ("optimiser.epochs", "=3", "a..b=1"):
        with pytest.raises(UserError, match="expected FIELD=VALUE"):
            load_experiment(write(tmp_path, 'preset = "tiny"\n'), [wrong])


def test_paths_are_found_here_or_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "d.jsonl").write_text("x")
    path = write(tmp_path / "there", 'preset = "tiny"\n[data]\ntrain = [{ path = "d.jsonl" }]\n')
    monkeypatch.chdir(tmp_path / "here")
    assert load_experiment(path).data.train[0].path == tmp_path / "there" / "d.jsonl"
    (tmp_path / "here" / "d.jsonl").write_text("y")
    assert load_experiment(path).data.train[0].path == tmp_path / "here" / "d.jsonl"


def test_toml_of_odd_names() -> None:
    name = 'a "quoted"\\ name \x7f with é'
    found = preset_experiment("tiny").model_copy(update={"name": name})
    assert tomllib.loads(experiment_toml(found))["name"] == name


def test_sizes_come_with_the_start_unless_the_file_gives_them(tmp_path: Path) -> None:
    start = 'preset = "tiny"\n[model]\ninitialise_from = "default"\n'
    model = load_experiment(write(tmp_path, start)).model_settings
    assert (model["dim"], model["positions"], model["max_context"]) == (224, "learned", 96)
    assert (model["knowledge"], model["dropout"]) == (False, 0.1)  # the preset's own
    assert load_experiment(write(tmp_path, start + "layers = 1\n")).model_settings["layers"] == 1
    assert load_experiment(write(tmp_path, start), ["model.initialise_from=default-speaker"]).model.kind == (
        "seq2seq"
    )
    with pytest.raises(ConfigError) as error:
        load_experiment(write(tmp_path, '[model]\nkind = "seq2seq"\ninitialise_from = "default"\n'))
    assert "holds a knowledge-transformer model, not a seq2seq" in error.value.problems[0]
