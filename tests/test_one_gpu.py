"""The window on a GPU: parts that are carried, jobs that wait for each other, results that come back."""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("one_gpu", ROOT / "experiments/one_gpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "one_gpu", module)
    spec.loader.exec_module(module)
    return module


def test_parts_are_the_folder_again(one_gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_gpu, "PART", 4096)
    made = tmp_path / "made"
    (made / "deep").mkdir(parents=True)
    (made / "deep/bytes").write_bytes(random.Random(0).randbytes(25_600))
    (made / "text").write_text("said\n")
    assert one_gpu.cut(made, tmp_path / "parts") == len(list((tmp_path / "parts").iterdir())) > 3
    (tmp_path / "work").mkdir()
    one_gpu.unpack(tmp_path / "parts", tmp_path / "work")
    back = {
        p.relative_to(tmp_path / "work"): p.read_bytes()
        for p in (tmp_path / "work").rglob("*")
        if p.is_file()
    }
    assert back == {p.relative_to(tmp_path): p.read_bytes() for p in made.rglob("*") if p.is_file()}


def test_jobs_name_scripts_that_are_there_and_leave_no_place_open(one_gpu: Any) -> None:
    places = {"made": "MADE", "base": "BASE", "out": "OUT", "minutes": "9.0"}
    names = [job.name for job in one_gpu.JOBS]
    for job in one_gpu.JOBS:
        for is_tiny in (True, False):
            command = job.command(places, is_tiny=is_tiny, is_compiled=True)
            assert Path(command[1]).is_file()
            assert not any("{" in word for word in command)
            assert ("--compile" in command) == job.can_compile
        assert not job.after or names.index(job.after) < names.index(job.name)


@pytest.fixture
def window(one_gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A window of so many minutes, with jobs of so many seconds that may wait for another."""
    script = tmp_path / "job.py"
    script.write_text(
        "import sys, time; from pathlib import Path; name, out, seconds = sys.argv[1:];"
        "Path(out).mkdir(); Path(out, f'{name}.json').write_text(str(time.time()));"
        "Path(out, 'checkpoint.bin').write_text('large'); print(f'{name} is done');"
        "time.sleep(float(seconds))"
    )
    monkeypatch.setattr(one_gpu.Window, "convert_base", lambda self: "BASE")
    monkeypatch.setattr(one_gpu.shutil, "which", lambda name: None)
    (tmp_path / "work/made").mkdir(parents=True)

    def make(minutes: float, **jobs: tuple[float, str]) -> Any:
        made = [
            one_gpu.Job(name, str(script), f"{name} {{out}} {seconds}", "", ("*.json",), after=after)
            for name, (seconds, after) in jobs.items()
        ]
        monkeypatch.setattr(one_gpu, "JOBS", made)
        given = {"work": tmp_path / "work", "out": tmp_path / "out", "source": None, "minutes": minutes}
        return one_gpu.Window(argparse.Namespace(**given, spare=0.0, jobs=[], tiny=False, compile=False))

    return make


def test_jobs_run_in_their_order_and_bring_back_what_they_wrote(window: Any, tmp_path: Path) -> None:
    window(10, second=(0, "first"), first=(0.2, "")).run()
    written = {}
    for name in ("first", "second"):
        with tarfile.open(tmp_path / f"out/{name}.tar") as tar:
            assert sorted(tar.getnames()) == ["log.txt", f"out/{name}.json"]
            file = tar.extractfile(f"out/{name}.json")
            assert file is not None
            written[name] = float(file.read())
    assert written["second"] >= written["first"] + 0.2


def test_a_job_is_stopped_when_the_time_is_up(window: Any, capsys: pytest.CaptureFixture[str]) -> None:
    short = window(0.01, endless=(1000, ""))
    short.run()
    assert "endless is stopped: no time is left" in capsys.readouterr().out
    assert short.running["endless"].wait(60) == -9
