"""`palaver train` as people type it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent.parent
Palaver = Callable[..., Any]

QUICK = [
    "--set=data.valid_examples=20",
    "--set=vocabulary.size=330",
    "--set=model.dim=16",
    "--set=model.layers=1",
    "--set=model.feed_forward=16",
    "--set=optimiser.epochs=1",
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def trial(palaver: Palaver) -> Path:
    """An experiment to try, written by the command itself."""
    assert palaver("train", "new", "--out", "trial").code == 0
    return Path("trial/experiment.toml")


def test_train_then_status_then_again(palaver: Palaver, trial: Path) -> None:
    ran = palaver("train", "responder", trial, *QUICK, "--device", "cpu")
    assert ran.code == 0, ran.err
    assert "finished: 1 epoch; best validation perplexity" in ran.out
    assert "1,500 training examples; 300 left out: the first turn" in ran.err
    assert re.search(r"step +10 +epoch 1 +loss [\d.]+ +ppl [\d.]+ +lr [\d.e-]+ +[\d,]+ tokens/s", ran.err)
    assert re.search(r"validation ppl [\d.]+ per token, [\d.]+ per word, the best so far", ran.err)
    status = palaver("train", "status", "runs/trial")
    assert "finished: 1 epoch" in status.out
    assert "▁" in status.out
    again = palaver("train", "responder", trial, *QUICK, "--device", "cpu")
    assert again.code == 0
    assert "going on after step" in again.err
    other = palaver("train", "responder", trial, *QUICK, "--set", "model.dropout=0.5")
    assert other.code == 1
    assert "other settings" in other.err
    assert "model.dropout: was 0.1, is 0.5" in other.err
    fresh = palaver(
        "train", "responder", trial, *QUICK, "--set", "model.dropout=0.5", "--force", "--max-steps", 3
    )
    assert fresh.code == 0, fresh.err
    assert "finished: 3 steps" in fresh.out


@pytest.mark.parametrize("name", ["default", "default-speaker", "default-personality"])
def test_start_from_a_shipped_model(palaver: Palaver, trial: Path, name: str) -> None:
    """Kind and sizes come with it, whatever the preset says."""
    ran = palaver(
        "train", "responder", trial, "--device=cpu", f"--set=model.initialise_from={name}",
        "--set=data.max_examples=40", "--set=data.valid_examples=5", "--max-steps=1",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert re.search(rf"\d+ of \d+ tensors taken from .*{name}$", ran.err, flags=re.M)


def test_a_start_that_is_none(palaver: Palaver, trial: Path) -> None:
    ran = palaver("train", "responder", trial, "--set=model.initialise_from=defualt")
    assert ran.code == 1
    assert (
        "there is no defualt; shipped: default, default-chat, default-knowledge, default-personality, "
        "default-speaker"
    ) in ran.err


def test_json_of_what_is_listed(palaver: Palaver, trial: Path) -> None:
    presets = json.loads(palaver("train", "presets", "--json").out)
    assert presets[0]["name"] == "tiny"
    assert json.loads(palaver("train", "show", "tiny", "--json").out)["model"]["dim"] == 64
    fields = json.loads(palaver("train", "fields", "--json").out)
    assert "initialise_from" in [row["field"] for row in fields["[model]"]]
    palaver("train", "responder", trial, *QUICK, "--device", "cpu", "--max-steps=2")
    status = json.loads(palaver("train", "status", "runs/trial", "--json").out)
    assert (status["step"], status["finished"]) == (2, "2 steps")
    assert status["best"]["valid_ppl"] > 1


def test_out_and_tensorboard(palaver: Palaver, trial: Path) -> None:
    words = ("--out", "elsewhere", "--max-steps", 2, "--set", "log.tensorboard=true", "--set", "log.every=1")
    assert palaver("train", "responder", trial, *QUICK, *words).code == 0
    assert Path("elsewhere/best/model.safetensors").is_file()
    assert list(Path("elsewhere/tensorboard").iterdir())
    assert not Path("runs/trial").exists()


def test_speakers_and_personalities(palaver: Palaver, trial: Path) -> None:
    speaker = palaver(
        "train", "responder", trial, *QUICK, "--max-steps", 2, "--out", "speaker",
        "--set", "model.conditioning=speaker", "--set", "data.min_turns=400",
    )  # fmt: skip
    assert speaker.code == 0, speaker.err
    personality = palaver(
        "train", "responder", trial, *QUICK, "--max-steps", 2, "--out", "personality",
        "--set", "model.conditioning=personality", "--set", "data.ocean=ocean.csv",
    )  # fmt: skip
    assert personality.code == 0, personality.err
    nobody = palaver("train", "responder", trial, *QUICK, "--set", "data.min_turns=99999", "--out", "nobody")
    assert nobody.code == 1
    assert "nobody has 99,999 turns" in nobody.err


def test_mistakes_are_named(palaver: Palaver, trial: Path) -> None:
    assert "there is no file nowhere.toml" in palaver("train", "responder", "nowhere.toml").err
    wrong = palaver("train", "responder", trial, "--set", "optimiser.epoch=3")
    assert wrong.code == 1
    assert "optimiser.epoch: there is no such field (did you mean 'epochs'?)" in wrong.err
    assert "expected FIELD=VALUE" in palaver("train", "responder", trial, "--set", "nonsense").err
    if not torch.cuda.is_available():
        gpu = palaver("train", "responder", trial, "--device", "cuda")
        assert gpu.code == 1
        assert "the GPU 'cuda' was asked for" in gpu.err
    missing = palaver("train", "status", "runs/none")
    assert missing.code == 1
    assert "not the folder of a run" in missing.err
    there = palaver("train", "new", "--out", "trial")
    assert there.code == 1
    assert "--force" in there.err
    corpus = palaver("train", "responder", trial, "--set", 'data.train=[{corpus="frends"}]')
    assert corpus.code == 1
    assert "did you mean 'friends'" in corpus.err


def test_a_broken_line_of_the_corpus_is_named(palaver: Palaver, trial: Path) -> None:
    with Path("trial/dialogues.jsonl").open("a") as file:
        file.write('{"id": "x", "turns": [\n')
    ran = palaver("train", "responder", trial, *QUICK)
    assert ran.code == 1
    assert "line 301" in ran.err
    assert not [p for p in Path("runs/prepared").iterdir() if p.is_dir()]


def test_a_personality_preset_says_that_it_needs_a_table(palaver: Palaver) -> None:
    for preset in ("xing2018-personality", "modern-personality"):
        ran = palaver("train", "show", preset)
        assert ran.code == 0, ran.err
        assert '# ocean = "ocean.csv"' in ran.out
        shown = tomllib.loads(ran.out)
        assert shown["model"]["conditioning"] == "personality"
        assert "ocean" not in shown["data"]
    assert "# ocean" not in palaver("train", "show", "xing2018-speaker").out


def test_presets_and_show(palaver: Palaver) -> None:
    listed = palaver("train", "presets").out
    for name in ("xing2018-speaker", "topicalchat-tf-knowledge", "modern-pretrain", "tiny"):
        assert name in listed
    shown = tomllib.loads(palaver("train", "show", "xing2018-speaker").out)
    assert shown["optimiser"]["batch_size"] == 128
    assert shown["model"]["conditioning"] == "speaker"
    changed = tomllib.loads(palaver("train", "show", "tiny", "--set", "optimiser.epochs=77").out)
    assert changed["optimiser"]["epochs"] == 77
    assert "did you mean 'tiny'" in palaver("train", "show", "tniy").err
    assert "early_stop" in palaver("train", "fields").out


def test_ctrl_c_keeps_the_run_and_says_how_to_go_on(palaver: Palaver, trial: Path) -> None:
    words = [*QUICK, "--set=optimiser.epochs=100000", "--set=optimiser.schedule=constant", "--device=cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "palaver", "train", "responder", str(trial), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = Path("runs/trial/metrics.jsonl")
    deadline = time.monotonic() + 60
    while not (metrics.is_file() and metrics.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "SIGTERM" in out
    assert "run the same command again" in out
    assert "not finished; last checkpoint" in palaver("train", "status", "runs/trial").out


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "experiments").glob("*.toml")), ids=lambda p: p.name
)
def test_examples_are_sound(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from palaver.training.experiment_file import load_experiment

    monkeypatch.chdir(tmp_path)
    for needed in re.findall(r'(?:initialise_from|ocean) = "([^"]+)"', path.read_text()):
        (tmp_path / needed).mkdir(parents=True)
    load_experiment(path)


def test_the_reference_has_every_field() -> None:
    from palaver.training.experiment_file import reference

    parts = []
    for title, fields in reference():
        heading = f"`{title}`" if title.startswith("[") else title[0].upper() + title[1:]
        parts += [f"## {heading}\n", "| field | default | |", "|---|---|---|"]
        for name, default, meaning in fields:
            parts.append(f"| `{name}` | {f'`{default}`' if default else ''} | {meaning} |")
        parts.append("")
    page = (ROOT / "docs" / "reference" / "experiment-file.md").read_text(encoding="utf-8")
    wanted = "\n".join(parts)
    assert wanted in page, "put this into docs/reference/experiment-file.md:\n\n" + wanted


def test_knowledge_that_the_data_does_not_have(palaver: Palaver, trial: Path) -> None:
    words = ("--set", "data.knowledge=tfidf", "--set", "model.knowledge=true")
    ran = palaver("train", "responder", trial, *QUICK, *words)
    assert ran.code == 1
    assert "the dialogues have no reading sets" in ran.err


def test_the_folder_of_the_experiment_is_no_folder_for_the_run(palaver: Palaver, trial: Path) -> None:
    mine = trial.read_text()
    for also in ((), ("--force",)):
        ran = palaver("train", "responder", trial, *QUICK, "--out", trial.parent, *also)
        assert ran.code == 1
        assert "choose another folder with --out" in ran.err
        assert trial.read_text() == mine
    assert "is a file, not a folder" in palaver("train", "new", "--out", trial, "--force").err
