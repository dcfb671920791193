"""Speaker and Personality Models trained on a GPU, and what they say.

    python experiments/personality/prepare.py --data DATA --out carry/characters
    python experiments/personality/models.py --from carry/characters --out OUT --minutes 9

Two bases (the paper's LSTM and a Transformer) learn other talk, then each model learns the scripts from its
base. Trainings run side by side; one that is not done at its time is told to stop, and goes on as it is.
Then every model answers the same contexts: as each character, Personality Models also as the five extreme
types and as requested personalities (`prepare.py`). OUT gets

- `NAME.jsonl.gz` for each model: id (the line of contexts.txt), system, speaker, response;
- `extremes.jsonl.gz`, `requests.jsonl.gz`: the same of all Personality Models, with the scores asked for;
- `training.json`: every epoch of every run, how it ended, and the machine.

Needs torch, accelerate, tokenizers, safetensors and pydantic; no other part of Palaver's dependencies.
Where pydantic is missing, its wheels are taken from the folder. `--tiny` tries everything on a CPU.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "experiments/responders"
SITE = ROOT / "runs/site"
RUNS = Path("runs/characters")
MADE = RUNS / "made"
SHOWS = ("friends", "big-bang-theory")
BASES = {"xing-pretrain": "words", "modern-pretrain": "bpe"}
"""Base -> its vocabulary."""
MODELS = {
    "xing-speaker": "xing-pretrain",
    "xing-personality": "xing-pretrain",
    "xing-personality-wide": "xing-pretrain",
    "modern-speaker": "modern-pretrain",
    "modern-personality": "modern-pretrain",
}
"""Model -> its base."""
WIDE = ("xing-personality-wide", "modern-personality")
"""Personality Models that learn from the scores relative to the cast."""
BASES_UNTIL, MODELS_UNTIL = 0.5, 0.84
"""Shares of the time after which trainings are told to stop."""
SEED = 1
CHUNK = 1000
"""Contexts that are answered at a time."""
REQUEST_CONTEXTS = 500


def settings(name: str, tiny: bool) -> list[str]:
    """What differs from the recipe of the run: data as files, and what fits into some minutes."""
    changes = [f"out={RUNS / name}", f"data.prepared={RUNS / 'prepared'}", "log.checkpoint_every=0"]
    changes.append(f"seed={SEED}")
    if name in BASES:
        changes += [f'data.train=[{{path="{MADE}/talk.jsonl"}}]', f"vocabulary.from={MADE / BASES[name]}"]
        changes += ["optimiser.epochs=1"]
    else:
        scripts = ", ".join(f'{{path="{MADE}/{show}.jsonl"}}' for show in SHOWS)
        changes += [f"data.train=[{scripts}]", f"model.initialise_from={checkpoint(MODELS[name])}"]
        changes += ["optimiser.epochs=5"]
        if "personality" in name:
            table = "ocean-wide.csv" if name in WIDE else "ocean.csv"
            changes.append(f"data.ocean={MADE / table}")
        if name.startswith("modern"):
            changes += ["optimiser.batch_size=256", "optimiser.warmup_steps=100"]
    if name.startswith("modern-pretrain"):
        changes.append("optimiser.warmup_steps=500")
    if tiny:
        size = ["model.hidden=16", "model.embedding=16"]
        if name.startswith("modern"):
            size = ["model.dim=16", "model.heads=2", "model.feed_forward=16"]
        changes += [*size, "model.layers=1", "optimiser.max_steps=3", "data.valid_examples=50"]
        changes += ["data.max_examples=2000"]
    return changes


def checkpoint(name: str) -> Path:
    """The best weights of a run, or the last ones where no epoch came to its end."""
    best = RUNS / name / "best"
    return best if best.exists() else RUNS / name / "last"


class Log:
    """Prints the epochs of a run."""

    def row(self, row: dict[str, Any], done: float) -> None:
        if row["kind"] == "epoch" or row["step"] % 500 == 0:
            seen = {k: round(row[k], 2) for k in ("seconds", "ppl", "valid_ppl_word") if k in row}
            print(f"step {row['step']} {seen}", flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)


def train(name: str, tiny: bool) -> None:
    """One run, in a process of its own."""
    from palaver.training import run
    from palaver.training.experiment_file import load_experiment

    experiment = load_experiment(RECIPES / f"{name}.toml", settings(name, tiny))
    outcome = run.train(experiment, watcher=Log())
    state = {"reason": outcome.reason, "stopped": outcome.stopped, "steps": outcome.step}
    (RUNS / name / "outcome.json").write_text(json.dumps(state), encoding="utf-8")
    print(f"ended: {outcome.reason}", flush=True)


def answer(name: str, until: float) -> None:
    """All responses of one model, chunk by chunk of contexts until the time is up."""
    import torch

    from palaver.corpora.personalities import read_ocean_table
    from palaver.generation.decode import Decoding, decode
    from palaver.models.pretrained import load
    from palaver.models.turns import encode_turns, join_turns

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, vocabulary = load(checkpoint(name), device=device)
    texts = (MADE / "contexts.txt").read_text(encoding="utf-8").splitlines()
    limit = model.config.max_context
    encoded = [join_turns([turns], limit).tokens for turns in encode_turns(vocabulary, texts)]
    how = Decoding(method="stochastic-greedy", k=5, max_length=40, seed=0)
    personal = model.config.conditioning == "personality"
    names = list(model.config.ocean) if personal else list(model.config.speakers)

    def say(contexts: range, who: Sequence[str], scores: Sequence[Sequence[float]] | None) -> Iterator[str]:
        """Rows of the contexts, answered as everybody in `who`."""
        jobs = [(i, k) for i in contexts for k in range(len(who))]
        options: dict[str, Any] = {"speaker": [k for _, k in jobs]}
        if personal:
            table = scores or [model.config.ocean[name] for name in who]
            options = {"ocean": [table[k] for _, k in jobs]}
        keys = [1000 * i + k for i, k in jobs]
        decoded = decode(model, [encoded[i] for i, _ in jobs], how, keys=keys, **options)
        said = vocabulary.decode_batch([d.tokens for d in decoded])
        for (i, k), text in zip(jobs, said, strict=True):
            row: dict[str, Any] = {"id": str(i + 1), "system": name, "speaker": who[k]}
            if scores is not None:
                row["ocean"] = [round(score, 3) for score in scores[k]]
            yield json.dumps({**row, "response": text}, ensure_ascii=False) + "\n"

    extremes = read_ocean_table(MADE / "extremes.csv")
    with gzip.open(RUNS / f"{name}.jsonl.gz", "wt", encoding="utf-8", compresslevel=6) as own:
        if personal:
            wide = "-wide" if name in WIDE else ""
            requests = read_ocean_table(MADE / f"requests{wide}.csv")
            with gzip.open(RUNS / f"requests-{name}.jsonl.gz", "wt", encoding="utf-8") as file:
                file.writelines(
                    say(range(min(REQUEST_CONTEXTS, len(texts))), [*requests], [*requests.values()])
                )
        with gzip.open(RUNS / f"extremes-{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            for begin in range(0, len(texts), CHUNK):
                if time.time() > until:
                    break
                contexts = range(begin, min(begin + CHUNK, len(texts)))
                own.writelines(say(contexts, names, None))
                if personal:
                    file.writelines(say(contexts, [*extremes], [*extremes.values()]))
                print(f"{name}: {contexts.stop:,} contexts", flush=True)


class Processes:
    """Parts of this script that run side by side."""

    def __init__(self, extra: Sequence[str]) -> None:
        self.extra = extra
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        paths = [str(ROOT / "src"), str(SITE), os.environ.get("PYTHONPATH", "")]
        self.environment = os.environ | {
            "PYTHONPATH": ":".join(paths),
            "TOKENIZERS_PARALLELISM": "true",
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, verb: str, name: str, *more: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), verb, name, *more, *self.extra]
        with open(RUNS / f"{verb}-{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)

    def ended(self) -> list[str]:
        """Those that have ended since they were last asked for."""
        names = [name for name, process in self.running.items() if process.poll() is not None]
        for name in names:
            code = self.running.pop(name).returncode
            print(f"{time.strftime('%X')} {name}: ended with {code}", flush=True)
        return names

    def stop(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.running:
                print(f"{time.strftime('%X')} {name}: told to stop", flush=True)
                self.running[name].send_signal(signal.SIGTERM)


def unpack(source: Path) -> None:
    """The carried folder as plain files, and pydantic where it is missing."""
    MADE.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.suffix == ".xz":
            with lzma.open(path) as packed, (MADE / path.stem).open("wb") as file:
                shutil.copyfileobj(packed, file)
        elif path.is_dir():
            shutil.copytree(path, MADE / path.name, dirs_exist_ok=True)
        elif path.suffix in (".csv", ".txt"):
            shutil.copy(path, MADE)
    try:
        import pydantic  # noqa: F401
    except ImportError:
        for wheel in source.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(SITE)


def run_all(source: Path, out: Path, minutes: float, extra: Sequence[str]) -> None:
    """Train, generate, gather."""
    began = time.time()
    out.mkdir(parents=True, exist_ok=True)
    unpack(source)
    print(f"unpacked after {time.time() - began:.0f} s", flush=True)
    processes = Processes(extra)
    for base in BASES:
        processes.start("train", base)
    waiting, done = list(MODELS), set[str]()
    stops = [(began + 60 * minutes * BASES_UNTIL, list(BASES))]
    stops.append((began + 60 * minutes * MODELS_UNTIL, list(MODELS)))
    while processes.running or waiting:
        done |= set(processes.ended())
        for name in [n for n in waiting if MODELS[n] in done]:
            waiting.remove(name)
            if checkpoint(MODELS[name]).exists():
                processes.start("train", name)
        if stops and time.time() > stops[0][0]:
            processes.stop(stops.pop(0)[1])
        if time.time() > began + 60 * minutes * 0.93:  # something hangs: what there is must do
            break
        time.sleep(0.2)
    print(f"trained after {time.time() - began:.0f} s", flush=True)
    trained = [name for name in MODELS if checkpoint(name).exists()]
    for name in trained:
        processes.start("answer", name, str(began + 60 * minutes * 0.97))
    while processes.running:
        processes.ended()
        time.sleep(0.2)
    print(f"answered after {time.time() - began:.0f} s", flush=True)
    gather(out, trained, {"seconds": round(time.time() - began), "minutes": minutes, "seed": SEED})


def gather(out: Path, trained: Sequence[str], about: dict[str, Any]) -> None:
    """Everything that is to be kept, in few files."""
    import torch

    for name in trained:
        shutil.copy(RUNS / f"{name}.jsonl.gz", out)
    for kind in ("extremes", "requests"):
        with (out / f"{kind}.jsonl.gz").open("wb") as joined:  # gzip files one after the other are one
            for name in trained:
                part = RUNS / f"{kind}-{name}.jsonl.gz"
                if part.exists() and "personality" in name:
                    joined.write(part.read_bytes())
    runs = {}
    for name in (*BASES, *MODELS):
        metrics = RUNS / name / "metrics.jsonl"
        rows = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
        epochs = [row for row in map(json.loads, rows) if row["kind"] == "epoch"]
        keys = ("epoch", "step", "seconds", "ppl", "ppl_word", "valid_ppl", "valid_ppl_word", "lr")
        ended = RUNS / name / "outcome.json"
        runs[name] = {
            "settings": settings(name, tiny=False) if checkpoint(name).exists() else [],
            "outcome": json.loads(ended.read_text(encoding="utf-8")) if ended.exists() else None,
            "last_step": json.loads(rows[-1])["step"] if rows else 0,
            "epochs": [{k: round(row[k], 4) for k in keys if k in row} for row in epochs],
        }
        if not checkpoint(name).exists():
            log = RUNS / f"train-{name}.log"
            runs[name]["log"] = (
                log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else ""
            )
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    machine = {
        "gpu": gpu,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    command = f"models.py --from carry/characters --out OUT --minutes {about['minutes']:g}"
    content = {"command": f"experiments/personality/{command}", **about, "machine": machine, "runs": runs}
    (out / "training.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    logs = sorted(RUNS.glob("answer-*.log"))
    print("".join(log.read_text(encoding="utf-8", errors="replace")[-300:] for log in logs), flush=True)


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in ("train", "answer"):
        verb, name, *rest = sys.argv[1:]
        if verb == "train":
            train(name, "--tiny" in rest)
        else:
            answer(name, float(rest[0]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", type=Path, required=True, dest="source")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--tiny", action="store_true", help="a few steps of small models")
    given = parser.parse_args()
    run_all(given.source, given.out, given.minutes, ["--tiny"] if given.tiny else [])


if __name__ == "__main__":
    main()
