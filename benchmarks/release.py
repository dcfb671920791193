"""The wheels as a stranger gets them: their sizes, a fresh environment's size, and that what we promise runs.

    python -m benchmarks.release --fresh base           # the base wheel alone, then `palaver demo`
    python -m benchmarks.release --fresh tutorials      # models, probes, data; every tutorial's blocks

Versions are those of requirements.lock. Writes docs/results/release.json; each of the two keeps what the
other wrote. Ends with 1 if a limit was missed or a command failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.documentation import blocks
from tests.test_docs import Model, runs

from benchmarks.harness import machine
from palaver import __version__

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/results/release.json"
EXTRAS = {"base": "", "tutorials": "[models,probes,data]"}
MOST_WHEEL_MB, MOST_ENVIRONMENT_MB = 25, 800
"""Limits of the base: its wheel, and an environment that holds nothing else."""
HEAVIEST = 15
_LIST = """
import importlib.metadata as m, json
paths = {d.name: [f.locate() for f in d.files or ()] for d in m.distributions()}
sizes = {name: sum(p.stat().st_size for p in files if p.is_file()) for name, files in paths.items()}
print(json.dumps({"sizes": sizes, "versions": {d.name: d.version for d in m.distributions()}}))
"""


def build_wheels(folder: Path) -> dict[str, float]:
    """Build both wheels; name -> MB."""
    for root in (ROOT, ROOT / "packages" / "palaver-data"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=root, check=True, capture_output=True)
    return {wheel.name: megabytes(wheel.stat().st_size) for wheel in sorted(folder.glob("*.whl"))}


def megabytes(size: float) -> float:
    return round(size / 1e6, 1)


def make_environment(folder: Path, wheels: Path, extras: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (wheel,) = wheels.glob("palaver-*.whl")
    options = ["--quiet", "--disable-pip-version-check", "--constraint", str(ROOT / "requirements.lock")]
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", *options, "--find-links", str(wheels)]
    subprocess.run([*pip, f"{wheel}{extras}"], check=True)


def describe_environment(folder: Path) -> dict[str, Any]:
    """Its size, as the sum of all files, and which distributions weigh most."""
    listed = subprocess.run(
        [str(folder / "bin" / "python"), "-c", _LIST], check=True, capture_output=True, text=True
    )
    found = json.loads(listed.stdout)
    paths = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    total = sum(path.lstat().st_size for path in paths)
    bytecode = sum(path.lstat().st_size for path in paths if path.suffix == ".pyc")
    heaviest = sorted(found["sizes"].items(), key=lambda one: -one[1])[:HEAVIEST]
    return {
        "megabytes": megabytes(total),
        "of_it_bytecode": megabytes(bytecode),
        "of_it_pip_and_setuptools": megabytes(
            sum(found["sizes"].get(name, 0) for name in ("pip", "setuptools"))
        ),
        "heaviest": {f"{name} {found['versions'][name]}": megabytes(size) for name, size in heaviest},
        "packages": len(found["sizes"]),
    }


def run(environment: Path, script: str, folder: Path, cache: Path) -> dict[str, Any]:
    """Lines of a shell in a folder of its own, with an empty cache and no way to our sources."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"XDG_CACHE_HOME": str(cache), "HF_HUB_OFFLINE": "1"}
    variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    begin = time.perf_counter()
    ran = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    result: dict[str, Any] = {"script": script, "seconds": round(time.perf_counter() - begin, 1)}
    if ran.returncode:
        result |= {"exit": ran.returncode, "said": ran.stderr.strip().splitlines()[-6:]}
    failed = "failed  " if ran.returncode else ""
    print(f"{result['seconds']:>7.1f} s  {failed}{script.strip()}", flush=True)
    return result


def run_tutorials(environment: Path, work: Path) -> dict[str, Any]:
    """Every block of every tutorial that runs in tests/test_docs.py, each page in an empty folder."""
    pages: dict[str, Any] = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
            print(page.stem, flush=True)
            folder = work / page.stem
            folder.mkdir()
            ran = []
            for block in blocks(page):
                if block.file:
                    text = block.text.replace("http://localhost:8080/v1", address)
                    (folder / block.file).write_text(text, encoding="utf-8")
                elif runs(block) and block.language == "sh":
                    ran.append(run(environment, block.text, folder, work / "cache"))
                elif runs(block):
                    script = f"python -c {shlex.quote(block.text)}"
                    ran.append(run(environment, script, folder, work / "cache"))
            pages[page.stem] = {
                "blocks": len(ran),
                "seconds": round(sum(one["seconds"] for one in ran), 1),
                "failed": [one for one in ran if "exit" in one],
            }
        server.shutdown()
    return pages


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fresh", choices=list(EXTRAS), default="base")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--keep", type=Path, help="Make the environment here, and leave it.")
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out.is_file() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        wheels = build_wheels(folder / "wheels")
        environment = options.keep or folder / "environment"
        begin = time.perf_counter()
        make_environment(environment, folder / "wheels", EXTRAS[options.fresh])
        part: dict[str, Any] = {
            "made_by": f"python -m benchmarks.release --fresh {options.fresh}",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "machine": machine(),
            "palaver": __version__,
            "install_seconds": round(time.perf_counter() - begin),
            "environment": describe_environment(environment),
        }
        missed = []
        if options.fresh == "base":
            part["demo"] = run(environment, "palaver demo", folder / "work", folder / "work" / "cache")
            part["limits"] = {"wheel_mb": MOST_WHEEL_MB, "environment_mb": MOST_ENVIRONMENT_MB}
            largest = wheels[f"palaver-{__version__}-py3-none-any.whl"]
            if largest > MOST_WHEEL_MB:
                missed.append(f"the wheel: {largest} MB")
            if part["environment"]["megabytes"] > MOST_ENVIRONMENT_MB:
                missed.append(f"the environment: {part['environment']['megabytes']} MB")
            if "exit" in part["demo"]:
                missed.append("palaver demo failed")
        else:
            part["tutorials"] = run_tutorials(environment, folder / "work")
            missed += [name for name, page in part["tutorials"].items() if page["failed"]]
        part["missed"] = missed
    results |= {"wheels_mb": wheels, options.fresh: part}
    options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({"wheels_mb": wheels, "environment": part["environment"]}, indent=1))
    for line in missed:
        print(f"MISSED {line}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
