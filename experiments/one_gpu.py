"""All trainings whose figures are still missing on the results pages, side by side on one GPU.

    python experiments/one_gpu.py prepare --data DATA --out carry --python 3.12
    python experiments/one_gpu.py run --from carry --work WORK --out OUT --minutes 25

`prepare` needs no GPU. It makes what the jobs read (dialogues as tokens, chosen sentences, weights, the
packages that a machine with torch and transformers may lack) and cuts it into parts of 10 MB, so that it can
be carried in any number of goes to a machine that takes small uploads only; `run` wants all parts in one
folder. It starts every job of `JOBS` as a process of its own, with CUDA's multi-process service where the
machine has it, and packs what there is into OUT/JOB.tar every half minute, so that a run that is cut off
loses little. `status` tells what a run has done so far. Called again, `run` goes on: the jobs keep what they
have.

`run --tiny` tries every job on a CPU with a few steps.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
PART = 10_000_000
"""Bytes of a part."""
PACKED_EVERY = 30
LARGEST = 16_000_000
"""Bytes of a file that is packed; larger ones are checkpoints, which stay."""
PACKAGES = ("pydantic", "gguf", "peft")
"""Beside torch, transformers, accelerate, safetensors, scikit-learn and SciPy."""


@dataclass(frozen=True)
class Job:
    """A script with its options; {made}, {base}, {out} and {minutes} are filled in."""

    name: str
    script: str
    options: str
    tiny: str

    def command(self, made: Path, base: Path, out: Path, minutes: float, *, is_tiny: bool) -> list[str]:
        words = f"{self.options} {self.tiny if is_tiny else ''}".split()
        places = {"made": made, "base": base, "out": out, "minutes": f"{minutes:.1f}"}
        return [sys.executable, str(EXPERIMENTS / self.script), *(word.format(**places) for word in words)]


LANGUAGE_MODEL = (
    "{{made}}/comparator.npz {} --base {{base}} --out {{out}} --minutes {{minutes}} --processes {}"
)
SMOLLM = "run --from {{made}}/smollm --base {{base}} --out {{out}} --minutes {{minutes}} --parts {}"
JOBS = [
    Job(
        "systems",  # what the joined comparator is worth on systems it has not seen
        "comparator/language_model.py",
        LANGUAGE_MODEL.format("systems", 2),
        "--steps 2",
    ),
    Job(
        "cmade",  # the eleven rows of Table 4 (Liang et al. 2020), three seeds
        "comparator/run.py",
        "--prepared {made}/cmade.xz --encoder {made}/minilm --out {out} --minutes {minutes} --jobs 3",
        "--tiny --device cpu --seeds 0 --rows stage-1 cmade",
    ),
    Job(
        "tables",  # Table 3 (Gopalakrishnan et al. 2019) with pre-training
        "responders/topical_chat.py",
        "run --from {made}/tables --out {out} --minutes {minutes}"
        " --rows tf-pretrain modern-pretrain tf-pt tf-knowledge-pt modern-tf-knowledge",
        "--limit 8",
    ),
    Job(
        "characters",  # Speaker and Personality Models whose vectors learn faster
        "topical_chat/smollm.py",
        SMOLLM.format("characters") + " --set optimiser.condition_rate=10",
        "--limit 16",
    ),
    Job("adapter", "topical_chat/smollm.py", SMOLLM.format("lora,tf"), "--limit 16"),
    Job(
        "seeds",  # the adapter that ships, three times, and each quarter of raters held out
        "comparator/language_model.py",
        LANGUAGE_MODEL.format("final", 2),
        "--steps 2",
    ),
]
"""The most valuable first."""


# Here -----------------------------------------------------------------------------------------------------


def prepare(data: Path, out: Path, python: str) -> None:
    """Make what is not there yet, then cut it."""
    made = out / "made"
    made.mkdir(parents=True, exist_ok=True)
    scripts = {
        "comparator.npz": ["comparator/language_model_data.py", "--data", data, "--out"],
        "cmade.xz": ["comparator/run.py", "--data", data, "--prepare"],
        "smollm": ["topical_chat/smollm.py", "prepare", "--data", data, "--characters", "--out"],
        "tables": ["responders/topical_chat.py", "prepare", "--data", data, "--out"],
    }
    for name, (script, *options) in scripts.items():
        if not (made / name).exists():
            unfinished = made / f"unfinished-{name}"
            remove(unfinished)
            command = [sys.executable, EXPERIMENTS / str(script), *options, unfinished]
            subprocess.run(list(map(str, command)), check=True)
            unfinished.rename(made / name)
    from palaver.models.encoders.transformer import minilm_folder
    from palaver.models.packages import folder_of
    from palaver.models.smollm2 import GGUF

    shutil.copy(folder_of("smollm2") / GGUF, made)
    shutil.copytree(minilm_folder(), made / "minilm", dirs_exist_ok=True)
    fetch_packages(made / "packages", python)
    remove(out / "parts")
    (out / "parts").mkdir()
    whole = out / "made.tar"
    with tarfile.open(whole, "w") as tar:
        tar.add(made, "made")
    with whole.open("rb") as file:
        for number, content in enumerate(iter(lambda: file.read(PART), b"")):
            (out / "parts" / f"part-{number:03}").write_bytes(content)
    whole.unlink()
    parts = sorted((out / "parts").iterdir())
    print(f"{len(parts)} parts of {PART / 1e6:.0f} MB at most in {out / 'parts'}")


def fetch_packages(folder: Path, python: str) -> None:
    """The wheels of `PACKAGES` for another Python, unpacked so that they can stand on PYTHONPATH."""
    wheels = folder.with_name("wheels")
    options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--python-version", python]
    pip = [sys.executable, "-m", "pip", "download", *options, "--dest", str(wheels)]
    subprocess.run([*pip, "--no-deps", *PACKAGES], check=True)
    needed = ["pydantic"]  # brings a compiled part of just the right version
    subprocess.run([*pip, *needed], check=True)
    for wheel in wheels.glob("*.whl"):
        shutil.unpack_archive(wheel, folder, "zip")
    remove(wheels)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# There ----------------------------------------------------------------------------------------------------


def unpack(parts: Path, work: Path) -> None:
    """The parts as one folder, work/made."""
    whole = work / "made.tar"
    with whole.open("wb") as file:
        for part in sorted(parts.glob("part-*")):
            file.write(part.read_bytes())
    with tarfile.open(whole) as tar:
        tar.extractall(work, filter="data")
    whole.unlink()


def run(given: argparse.Namespace) -> None:
    """Start all jobs and pack what they write until they have ended or the time is up."""
    began = time.time()
    end = began + 60 * given.minutes
    work, out = given.work.resolve(), given.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    if not (work / "made").is_dir():
        unpack(given.source, work)
    made = work / "made"
    paths = [str(ROOT / "src"), str(made / "packages"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": ":".join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "XDG_CACHE_HOME": str(work / "cache"),
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }
    convert = (
        "import sys; from pathlib import Path; from palaver.models.smollm2 import converted_folder as f;"
    )
    command = [sys.executable, "-c", f"{convert} print(f(Path(sys.argv[1])))", *map(str, made.glob("*.gguf"))]
    base = Path(
        subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    )
    print(f"{time.time() - began:4.0f} s  SmolLM2 is converted", flush=True)
    if shutil.which("nvidia-cuda-mps-control"):
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    wanted = [job for job in JOBS if not given.jobs or job.name in given.jobs]
    running = {}
    for job in wanted:
        folder = work / job.name
        folder.mkdir(exist_ok=True)
        minutes = (end - time.time()) / 60 - given.spare
        words = job.command(made, base, folder / "out", minutes, is_tiny=given.tiny)
        with (folder / "log.txt").open("ab") as log:
            running[job.name] = subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=folder)
    packed = 0.0
    ended: dict[str, str] = {}
    while True:
        for name, process in running.items():
            if name not in ended and process.poll() is not None:
                ended[name] = f"ended with {process.returncode} after {time.time() - began:.0f} s"
                print(f"{time.time() - began:4.0f} s  {name}: {last_line(work / name)}", flush=True)
        is_over = len(ended) == len(running) or time.time() > end
        if is_over or time.time() - packed > PACKED_EVERY:
            for name in running:
                pack(work / name, out / f"{name}.tar")
            packed = time.time()
        if is_over:
            break
        time.sleep(0.5)
    for name, process in running.items():
        if name not in ended:
            process.kill()
            print(f"{name}: stopped for time: {last_line(work / name)}", flush=True)
    print_table(work, ended)


def pack(folder: Path, target: Path) -> None:
    """The log and what a job has written, but for checkpoints; whole at any time."""
    part = target.with_suffix(".part")
    with tarfile.open(part, "w") as tar:
        for path in results(folder):
            tar.add(path, str(path.relative_to(folder)))
    part.rename(target)


def results(folder: Path) -> Iterator[Path]:
    kept = [folder / "log.txt", *sorted((folder / "out").rglob("*"))]
    for path in kept:
        is_whole = path.is_file() and path.suffix not in (".part", ".taken", ".lock")
        if is_whole and path.stat().st_size <= LARGEST and "last" not in path.parts:
            yield path


def last_line(folder: Path) -> str:
    lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line[:200] for line in reversed(lines) if line.strip()), "")


def print_table(work: Path, ended: dict[str, str]) -> None:
    for job in JOBS:
        folder = work / job.name
        if folder.is_dir():
            n_files = sum(1 for _ in results(folder))
            print(f"{job.name:12} {n_files:4} files  {ended.get(job.name, 'runs'):32}  {last_line(folder)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("prepare")
    verb.add_argument("--data", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--python", default="3.12", help="that of the machine with the GPU")
    verb = verbs.add_parser("run")
    verb.add_argument("--from", type=Path, required=True, dest="source", help="the folder of the parts")
    verb.add_argument("--work", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--minutes", type=float, default=25)
    verb.add_argument("--spare", type=float, default=0.5, help="minutes at the end that no job gets")
    verb.add_argument("--jobs", nargs="*", default=[], help=", ".join(job.name for job in JOBS))
    verb.add_argument("--tiny", action="store_true")
    verb = verbs.add_parser("status")
    verb.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.data.resolve(), given.out.resolve(), given.python)
    elif given.verb == "run":
        run(given)
    else:
        print_table(given.work, {})


if __name__ == "__main__":
    main()
