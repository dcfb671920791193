"""The eleven rows of Table 4 (Liang et al. 2020) on real ratings: docs/results/comparator.md.

    python experiments/comparator/run.py --data DATA --encoder MINILM --out runs/comparator --minutes 9

DATA holds the folder `rated`; without --encoder the installed package of MiniLM is used. Several
rows run at once (--jobs 0: one after the other in this process, for a machine without a GPU, where --set
frozen_layers=4 saves most of the time); rows that begin alike share what they have in common. Whatever is
done is kept: called again with the same options it goes on, and prints the table when nothing is left.

--gather FOLDER … writes the tables of several calls, each with settings of its own, into the file --out.

For a machine that has torch, transformers, scipy, scikit-learn and pydantic and little else (no polars), what
is read can be carried: --prepare FILE here, --prepared FILE there. Open only files that you made yourself.

Stage 3 and "Pairwise + Dev" use the development pairs, so these cannot measure them. As in the paper, the
pairs are cut in two, here by rater and anew for each seed: the stages see one half, the table is about the
other (--dev half). With --dev all they see all pairs, and the rows that used them are marked.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import pickle
import subprocess
import sys
import time
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from palaver.comparator.cmade.presets import PRESETS, Settings, Training, find_preset  # noqa: E402
from palaver.models.devices import has_bfloat16  # noqa: E402

AFTER = {
    "stage-2-3": "stage-2",
    "stage-1-3": "stage-1",
    "stage-1-2": "stage-1",
    "cmade": "stage-1-2",
}
"""Which row has done the stages another one begins with."""
FIRST = ("stage-1", "stage-2", "stage-1-2", "pairwise-dev")
"""Long ones, and those that others wait for."""


def settings_of(given: argparse.Namespace) -> Settings:
    """The defaults with what --set changes."""
    settings = Settings(encoder=given.encoder or "minilm", max_tokens=64 if given.tiny else 512)
    if given.tiny:
        quick = Training(epochs=1, batch_size=16, learning_rate=1e-4)
        settings = replace(settings, k=10, flow_epochs=1, training=quick)
    inner = {f.name for f in fields(Training)}
    for text in given.settings:
        name, _, value = text.partition("=")
        where: Any = settings.training if name in inner else settings
        if not hasattr(where, name) or not value:
            sys.exit(f"--set {text}: no such setting")
        new = {name: type(getattr(where, name))(value)}
        settings = (
            replace(settings, training=replace(where, **new)) if name in inner else replace(settings, **new)
        )
    return settings.check()


class Sources(NamedTuple):
    """What was read: ratings, development dialogues and their pairs, the dialogues of stage 1, and all three
    sources' ratings on one scale where they are wanted."""

    ratings: Any
    dev: Any
    pairs: Any
    flow: Any
    all_ratings: Any


def read_sources(given: argparse.Namespace) -> Sources:
    """From --data, or from the file that --prepare wrote."""
    if given.prepared is not None:
        sources: Sources = pickle.loads(lzma.decompress(given.prepared.read_bytes()))
        return sources
    from palaver.comparator.reading import read_pairs, read_rated

    folder = given.data / "rated"
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    own = folder / "reliable_eval.train.jsonl.gz"
    others = [folder / name for name in ("convai2017_humanbot.jsonl.gz", "convai2_rated.jsonl.gz")]
    return Sources(
        read_rated(own),
        dev,
        read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index),
        read_rated(others, min_turns=6),
        read_rated([own, *others]) if given.all_ratings or given.prepare else None,
    )


def load_sources(given: argparse.Namespace, seed: int) -> Any:
    """Ratings, development dialogues, the pairs for the stages and those for measuring."""
    import numpy as np

    from palaver.comparator.training_data import Pairs, TrainingData

    ratings, dev, pairs, flow, all_ratings = read_sources(given)
    if given.no_convai:
        flow = None
    if given.all_ratings:
        ratings = all_ratings
    if given.tiny:
        ratings = ratings.take(np.random.default_rng(0).permutation(len(ratings))[:100])
        flow = None if flow is None else flow.take(range(20))
        few = slice(None, None, 12)
        used, both = np.unique([pairs.first[few], pairs.second[few]], return_inverse=True)
        first, second = both.reshape(2, -1)
        dev, pairs = dev.take(used), Pairs(first, second, pairs.label[few])
    test = None
    if given.dev == "half":
        from palaver.comparator.cmade.removal import halves

        pairs, test = halves(pairs, dev.codes("rater")[pairs.first], seed)
    return TrainingData.gather(ratings, dev=dev, pairs=pairs, test=test, flow=flow)


def run_one(given: argparse.Namespace) -> None:
    """One row with one seed."""
    result = run_here(given, [find_preset(given.one).name], given.seeds[0])[-1]
    print(json.dumps(result["on_test"] or result["on_pairs"]), flush=True)


def run_here(given: argparse.Namespace, rows: list[str], seed: int) -> list[dict[str, Any]]:
    """These rows with one seed, one after the other in this process."""
    import plain_kernels

    plain_kernels.use_where_needed()
    import torch

    from palaver.comparator.cmade.pipeline import run_pipeline

    if given.device == "cpu" or not torch.cuda.is_available():
        torch.set_num_threads(2)
    sources, known = load_sources(given, seed), {}
    results = []
    for name in rows:
        result = run_pipeline(
            find_preset(name),
            sources,
            given.out / f"seed-{seed}",
            settings_of(given),
            seed=seed,
            device=given.device,
            known=known,
            say=lambda text: print(text, flush=True),
        )
        results.append(result.to_json())
    return results


def result_of(given: argparse.Namespace, name: str, seed: int) -> dict[str, Any] | None:
    path = given.out / f"seed-{seed}" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def check_same(given: argparse.Namespace) -> None:
    """Refuse to mix results of other options into one table."""
    asked = {
        "dev": given.dev,
        "convai": not given.no_convai,
        "all ratings": given.all_ratings,
        "tiny": given.tiny,
        "set": sorted(given.settings),
    }
    path = given.out / "asked.json"
    given.out.mkdir(parents=True, exist_ok=True)
    if path.is_file() and json.loads(path.read_text()) != asked:
        sys.exit(f"{given.out} holds results with other options ({path.read_text()}): choose another --out")
    path.write_text(json.dumps(asked))


def run_all(given: argparse.Namespace) -> None:
    """Every row and seed in processes of their own, until done or out of time."""
    until = time.monotonic() + 60 * given.minutes
    wanted = [(name, seed) for seed in given.seeds for name in given.rows]
    wanted = [key for key in wanted if result_of(given, *key) is None]
    wanted.sort(key=lambda key: (FIRST.index(key[0]) if key[0] in FIRST else len(FIRST), key[1]))
    running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
    failed: set[tuple[str, int]] = set()
    while wanted or running:
        for key in list(wanted):
            before = (AFTER.get(key[0], ""), key[1])
            if before in wanted or before in running:
                continue
            if len(running) >= given.jobs:
                break
            wanted.remove(key)
            running[key] = start(given, *key)
        for key, process in list(running.items()):
            if process.poll() is not None:
                del running[key]
                log = (given.out / f"{key[0]}-{key[1]}.log").read_text(encoding="utf-8", errors="replace")
                tail = log.splitlines()[-1:] if process.returncode == 0 else log.splitlines()[-5:]
                if process.returncode:
                    failed.add(key)
                print(
                    f"{key[0]} seed {key[1]}: ended with {process.returncode}", *tail, sep="\n  ", flush=True
                )
        if time.monotonic() > until:
            for key, process in running.items():
                process.terminate()
                process.wait(30)
                print(f"{key[0]} seed {key[1]}: stopped for time", flush=True)
            break
        time.sleep(0.3)
    if failed:
        print("failed:", ", ".join(f"{name} seed {seed}" for name, seed in sorted(failed)))


def start(given: argparse.Namespace, name: str, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name, "--seeds", str(seed)]
    command += [
        "--data",
        str(given.data),
        "--out",
        str(given.out),
        "--device",
        given.device,
        "--dev",
        given.dev,
    ]
    command += ["--encoder", given.encoder] if given.encoder else []
    command += ["--prepared", str(given.prepared)] if given.prepared else []
    if given.no_convai:
        command.append("--no-convai")
    if given.all_ratings:
        command.append("--all-ratings")
    if given.tiny:
        command.append("--tiny")
    command += ["--set", *given.settings] if given.settings else []
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "true"}
    print(f"{name} seed {seed}: started", flush=True)
    with open(given.out / f"{name}-{seed}.log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def table(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Mean and standard deviation over the seeds that are done; printed, and written as JSON."""
    rows = []
    for name in given.rows:
        preset = PRESETS[name]
        results = [result_of(given, name, seed) for seed in given.seeds]
        done = [result for result in results if result is not None]
        row: dict[str, Any] = {"row": preset.row, "preset": name, "title": preset.title, "n_seeds": len(done)}
        row |= {
            "paper_accuracy": preset.accuracy,
            "paper_kappa": preset.kappa,
            "uses_pairs": preset.needs_pairs,
        }
        for which in ("on_test", "on_pairs"):
            for what in ("accuracy", "low", "high", "kappa", "kappa_se"):
                values = [result[which][what] for result in done if result[which] is not None]
                if values:
                    row[f"{which}_{what}"] = mean(values)
                    row[f"{which}_{what}_sd"] = stdev(values) if len(values) > 1 else None
        if done:
            row |= {"seconds": mean(result["seconds"] for result in done), "device": done[0]["device"]}
            row["n_kept"] = [result["n_kept"] for result in done]
        rows.append(row)
    print(
        f"\n{'row':>3}  {'':<16} {'held-out pairs':>15} {'kappa':>15} {'SE':>6}  {'pairs given':>16}  paper"
    )
    for row in rows:
        shown = " ".join(
            [
                _spread(row, "on_test_accuracy"),
                _spread(row, "on_test_kappa"),
                f"{row['on_test_kappa_se']:6.3f}" if "on_test_kappa_se" in row else " " * 6,
                " " + _spread(row, "on_pairs_accuracy") + ("*" if row["uses_pairs"] else " "),
            ]
        )
        seeds = f"{row['paper_accuracy']:.3f} ({row['n_seeds']} seeds)"
        print(f"{row['row']:>3}  {row['title']:<16} {shown}  {seeds}")
    print("* these pairs were used by the row's stages")
    (given.out / "table.json").write_text(json.dumps(about(given) | {"rows": rows}, indent=1) + "\n")
    return rows


def about(given: argparse.Namespace) -> dict[str, Any]:
    """How the table was made, without this machine's folders."""
    import torch

    encoder = f" --encoder {Path(given.encoder).name}" if given.encoder else ""
    changed = f" --set {' '.join(given.settings)}" if given.settings else ""
    on_gpu = torch.cuda.is_available() and given.device != "cpu"
    machine = torch.cuda.get_device_name() if on_gpu else "no GPU"
    in_half = torch.cuda.is_bf16_supported() if on_gpu else has_bfloat16()
    more = "" if given.no_convai else "; ConvAI 2017 and ConvAI2 for stage 1"
    more += "; ratings of ConvAI 2017 and ConvAI2, too" if given.all_ratings else ""
    return {
        "command": f"python experiments/comparator/run.py --data DATA{encoder} --dev {given.dev}{changed}"
        f"{' --no-convai' if given.no_convai else ''}{' --all-ratings' if given.all_ratings else ''}"
        f"{' --tiny' if given.tiny else ''} --out OUT",
        "date": datetime.now(UTC).date().isoformat(),
        "seeds": given.seeds,
        "settings": asdict(settings_of(given)) | {"encoder": Path(given.encoder).name or "minilm"},
        "data": f"Reliable-Eval (train, development){more}",
        "machine": f"{machine}, torch {torch.__version__}, {os.cpu_count()} cores",
        "precision": "bfloat16" if in_half else "float32",
    }


def _spread(row: dict[str, Any], what: str) -> str:
    if what not in row:
        return " " * 15
    sd = row[f"{what}_sd"]
    return f"{row[what]:.3f}" + (f" ± {sd:.3f}" if sd is not None else " " * 8) + "  "


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PALAVER_DATA", "../shared/data")))
    parser.add_argument("--prepare", type=Path, help="write what --data holds to this file, and end")
    parser.add_argument("--prepared", type=Path, help="such a file, in place of --data")
    parser.add_argument("--out", type=Path, default=Path("runs/comparator"))
    parser.add_argument("--encoder", default="", help="folder of MiniLM, or of another encoder")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="*", default=list(PRESETS), help="names or numbers of rows")
    parser.add_argument("--jobs", type=int, default=6, help="runs at once; 0: in this process")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dev", choices=["half", "all"], default="half")
    parser.add_argument("--no-convai", action="store_true", help="stage 1 on the rated dialogues only")
    parser.add_argument("--all-ratings", action="store_true", help="learn from those of ConvAI, too")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="NAME=VALUE")
    parser.add_argument("--tiny", action="store_true", help="100 dialogues, one epoch: for a CPU")
    parser.add_argument("--gather", type=Path, nargs="+", metavar="FOLDER", help="of earlier calls")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.gather:
        tables = [json.loads((folder / "table.json").read_text(encoding="utf-8")) for folder in given.gather]
        given.out.write_text(json.dumps({"tables": tables}, indent=1) + "\n", encoding="utf-8")
        return
    given.rows = [find_preset(name).name for name in given.rows]
    if given.prepare is not None:
        given.prepare.write_bytes(lzma.compress(pickle.dumps(read_sources(given))))
        return
    if given.one:
        run_one(given)
        return
    settings_of(given)
    check_same(given)
    if given.jobs:
        run_all(given)
    else:
        for seed in given.seeds:
            run_here(given, given.rows, seed)
    table(given)


if __name__ == "__main__":
    main()
