"""The whole path of a response model, as a user walks it: train, be killed, go on, generate, chat."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def palaver(*words: str, at: Path, given: str = "") -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "palaver", *words],
        cwd=at,
        input=given,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_train_be_killed_go_on_generate_and_chat(tmp_path: Path) -> None:
    palaver("train", "new", "--out", "trial", at=tmp_path)
    train = ["train", "responder", "trial/experiment.toml", "--set", "log.checkpoint_every=15"]
    train += ["--set", "optimiser.epochs=3"]
    first = subprocess.Popen(
        [sys.executable, "-m", "palaver", *train],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    last = tmp_path / "runs/trial/last"
    until = time.monotonic() + 100
    while not last.exists() and first.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL  # it had not come to its end by itself
    assert "finished" in palaver(*train, at=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "runs/trial/metrics.jsonl").open(encoding="utf-8")]
    found = [row["valid_ppl"] for row in rows if "valid_ppl" in row]
    assert found[-1] < 0.5 * found[0]  # it has learned something
    steps = [row["step"] for row in rows if row["kind"] == "step"]
    assert steps == sorted(set(steps))  # nothing is logged twice

    (tmp_path / "lines.txt").write_text("Do you like tea?\nShall we talk about chess?\n", encoding="utf-8")
    where = ["--contexts", "lines.txt", "--out", "said.jsonl"]
    palaver("generate", "--system", "runs/trial/best", *where, at=tmp_path)
    said = [json.loads(line) for line in (tmp_path / "said.jsonl").open(encoding="utf-8")]
    assert [row["context"][-1]["text"] for row in said] == ["Do you like tea?", "Shall we talk about chess?"]
    assert all(row["response"] and row["logprob"] < 0 for row in said)
    replies = palaver("chat", "runs/trial/best", at=tmp_path, given="Do you like music?\nWhy?\n")
    assert len(replies.splitlines()) == 2
