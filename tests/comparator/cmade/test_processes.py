"""Two processes share every batch and come to the scores that one comes to."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

SCRIPT = """
import json, os, sys
import torch
torch.set_num_threads(1)
from palaver.comparator.cmade import network as networks
from palaver.comparator.cmade.network import apply_network, build_network
from palaver.comparator.cmade.presets import Training
from palaver.comparator.cmade.training import Examples, train
from palaver.comparator.reading import read_rated

networks.has_bfloat16 = lambda: False  # so that nothing but the order of sums differs
rated = read_rated(sys.argv[1])
network = build_network(sys.argv[2], seed=1)
for module in network.modules():  # each process drops out its own
    for name in ("p", "attention_dropout"):
        if isinstance(getattr(module, name, None), float):
            setattr(module, name, 0.0)
settings = Training(epochs=2, batch_size=13, learning_rate=1e-3)
history = train(network, network.inputs(rated.dialogues), Examples.rated(rated.values), settings, seed=3)
scores, _ = apply_network(network, network.inputs(rated.dialogues))
rank = os.environ.get("RANK", "0")
with open(f"{sys.argv[3]}-{rank}.json", "w") as file:
    json.dump([*map(float, scores), *(epoch.loss for epoch in history.epochs)], file)
"""


def test_two_processes_are_one(
    rated_files: dict[str, Path], tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    given = [str(script), str(rated_files["train"]), str(tiny_encoder)]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [sys.executable, *several, *given, str(tmp_path / "two")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-2000:]
    monkeypatch.setattr(sys, "argv", [*given, str(tmp_path / "one")])
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    n_threads = torch.get_num_threads()
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        torch.set_num_threads(n_threads)
    one, first, second = (
        json.loads((tmp_path / f"{n}.json").read_text()) for n in ("one-0", "two-0", "two-1")
    )
    assert first == pytest.approx(one, abs=1e-4)  # sums come in another order
    assert second == first
