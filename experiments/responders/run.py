"""All trainings of docs/results/responders.md, several at a time, each after the one it starts from.

    python experiments/responders/run.py --data DATA --minutes 9 --only default --set optimiser.epochs=1

Runs that were stopped go on where they were when this is called again. What is still going after --minutes
is told to stop and keeps its checkpoints. Personality Models first need experiments/personality/prepare.py.
The rows of Topical-Chat's tables are trained by topical_chat.py.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
AFTER = {
    "xing-pretrain": "",
    "modern-pretrain": "",
    "default": "",
    "default-speaker": "",
    "default-personality": "",
    "xing-speaker": "xing-pretrain",
    "xing-personality": "xing-pretrain",
    "xing-personality-wide": "xing-pretrain",
    "modern-speaker": "modern-pretrain",
    "modern-personality": "modern-pretrain",
}
"""Which run each one starts from."""


def finished(name: str) -> bool:
    """Whether the run has come to its end (its log says so)."""
    log = Path("runs") / f"{name}.log"
    return log.is_file() and "finished:" in log.read_text(encoding="utf-8", errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only", nargs="*", default=list(AFTER))
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    given = parser.parse_args()
    Path("runs").mkdir(exist_ok=True)
    environment = os.environ | {"PALAVER_DATA": str(given.data.resolve()), "TOKENIZERS_PARALLELISM": "true"}
    made = Path("runs/made")
    if not (made / "voices.csv").exists() and any("default-" in name for name in given.only):
        made_by = [sys.executable, str(HERE / "characters.py"), "--data", str(given.data), "--out", str(made)]
        subprocess.run(made_by, check=True, env=environment)
    until = time.monotonic() + 60 * given.minutes
    waiting = [name for name in given.only if not finished(name)]
    running: dict[str, subprocess.Popen[bytes]] = {}
    while waiting or running:
        for name in [n for n in waiting if not AFTER[n] or finished(AFTER[n])]:
            waiting.remove(name)
            command = [sys.executable, "-m", "palaver", "train", "responder", str(HERE / f"{name}.toml")]
            command += [part for setting in given.settings for part in ("--set", setting)]
            with open(f"runs/{name}.log", "ab") as log:
                running[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            print(f"{name}: started", flush=True)
        for name, process in list(running.items()):
            if process.poll() is not None:
                del running[name]
                tail = (
                    Path(f"runs/{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
                )
                print(f"{name}: ended with {process.returncode}", *tail, sep="\n  ", flush=True)
        if not running and waiting:
            print("not started, since what they start from did not finish:", ", ".join(waiting))
            break
        if time.monotonic() > until:
            for process in running.values():
                process.send_signal(signal.SIGTERM)
            for name, process in running.items():
                process.wait(60)
                print(f"{name}: stopped for time", flush=True)
            break
        time.sleep(1)


if __name__ == "__main__":
    main()
