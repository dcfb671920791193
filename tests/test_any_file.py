"""Any file in, an answer out: the answers of `any_file.py`, and calls that cannot work."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from palaver.errors import pip_line


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("any_file", Path(__file__).with_name("any_file.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["any_file"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


any_file = _load()


@pytest.mark.filterwarnings("ignore")
def test_every_shape_gives_every_command_the_same_answer() -> None:
    with any_file.workplace():
        rows = any_file.compare_all(quick=True)
        ratings = list(any_file.compare_ratings())
    assert len(rows) > 150
    assert [f"{shape.file}: {words}: {what}" for words, shape, what in rows if what] == []
    assert [f"{file}: {what}" for file, what in ratings if what] == []


@pytest.mark.filterwarnings("ignore")
def test_wrong_calls_are_refused_without_a_traceback() -> None:
    calls = any_file.make_wrong_calls(quick=True)
    assert len({call for call, _ in calls}) == len(calls) >= 120
    assert [f"{call.words}: {what}" for call, what in calls if what] == []


def test_twelve_shapes_and_more() -> None:
    files = [shape.file for shape in (*any_file.SHAPES, *any_file.NAMELESS)]
    assert len(files) >= 12
    there = {path.name for path in any_file.DATA.iterdir()}
    assert there == {*files, *(shape.file for shape in any_file.RESPONSES), "make.py"}


def test_without_optional_packages_there_is_the_pip_line_and_the_rest_works() -> None:
    script = Path(__file__).with_name("without_torch.py")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    calls = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(calls) > 30
    for words, extra, code, said in calls:
        if extra:
            assert (code, said.count("error:"), pip_line(extra) in said) == (1, 1, True), (words, said)
        else:
            assert code == 0, (words, said)
