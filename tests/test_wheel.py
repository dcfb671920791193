"""The wheels: what is in them, how large they are, and that Palaver runs from an unpacked one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from palaver import __version__
from palaver.models.catalogue import IN_DATA, SHELVES

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "palaver"
DATA = ROOT / "packages" / "palaver-data"
LIMIT = 25_000_000


def build(root: Path, folder: Path) -> zipfile.ZipFile:
    (wheel,) = WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(ROOT, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(DATA, tmp_path_factory.mktemp("data"))


def files_in(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def left_out() -> set[str]:
    """The folders of palaver that palaver-data holds."""
    return {f"palaver/{SHELVES[shelf]}/{name}/" for shelf, names in IN_DATA.items() for name in names}


def test_the_base_wheel_is_small_and_whole(base: zipfile.ZipFile) -> None:
    assert Path(str(base.filename)).stat().st_size <= LIMIT
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src/palaver"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    everything = {name.removeprefix("src/") for name in tracked if name and (ROOT / name).exists()}
    expected = {name for name in everything if not name.startswith(tuple(left_out()))}
    assert files_in(base) == expected
    assert len(expected) < len(everything)
    for part in ("server/migrations/", "server/static/", "presets/", "evaluation/demo/", "py.typed"):
        assert any(part in name for name in expected), part


def test_the_data_wheel_holds_what_the_base_leaves_out(data: zipfile.ZipFile) -> None:
    expected = {"palaver_data/__init__.py", "palaver_data/LICENSE"}
    for shelf, names in IN_DATA.items():
        for name in names:
            folder = SOURCE / SHELVES[shelf] / name
            expected |= {f"palaver_data/{shelf}/{name}/{path.name}" for path in folder.iterdir()}
    assert files_in(data) == expected


def test_sizes_are_those_of_the_results_file() -> None:
    """`benchmarks/release.py` measured them; pages say them in round numbers."""
    wheels = json.loads((ROOT / "docs/results/release.json").read_text())["wheels_mb"]
    said = f"{wheels[f'palaver-{__version__}-py3-none-any.whl']:.0f} MB"
    assert f"the wheel has {said}" in (ROOT / "README.md").read_text()
    assert f"The wheel has {said}" in (ROOT / "CHANGELOG.md").read_text()


def test_one_version(base: zipfile.ZipFile, data: zipfile.ZipFile) -> None:
    for wheel in (base, data):
        (metadata,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        assert f"\nVersion: {__version__}\n" in wheel.read(metadata).decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["data"] == [f"palaver-data=={__version__}"]
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[0]
    assert newest == __version__


ANALYSE = """
import sys
sys.modules["torch"] = None  # the base has none, and doctor would load it
from palaver import analyse
from palaver.cli.main import run

rows = ["item,system,rater,criterion,value"]
for i in range(6):
    for r in range(3):
        rows += [f"{i},a,{r},quality,{1 + (i + r) % 2}", f"{i},b,{r},quality,{4 + (i + r) % 2}"]
open("ratings.csv", "w").write("\\n".join(rows))
print(analyse("ratings.csv", n_replicates=20).ranking[0].label)
sys.argv = ["palaver", "doctor", "--json"]
run()
"""
FIND = """
import json
import palaver
from palaver.errors import UserError
from palaver.models.catalogue import SHELVES, models_on, shipped_checkpoint

try:
    missing = str(shipped_checkpoint("default-personality") and "")
except UserError as error:
    missing = error.hint
print(json.dumps([palaver.__file__, missing, {shelf: sorted(models_on(shelf)) for shelf in SHELVES}]))
"""


def run_from(folder: Path, script: str, tmp_path: Path) -> str:
    """What the script prints, with Palaver from that folder."""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_palaver_runs_from_the_wheel(base: zipfile.ZipFile, tmp_path: Path) -> None:
    base.extractall(tmp_path / "site")
    label, _, rest = run_from(tmp_path / "site", ANALYSE, tmp_path).partition("\n")
    assert label.startswith("1. b")
    assert json.loads(rest)["palaver"] == __version__


def test_models_are_found_in_either_package(
    base: zipfile.ZipFile, data: zipfile.ZipFile, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    base.extractall(site)
    place, missing, models = json.loads(run_from(site, FIND, tmp_path))
    assert place.startswith(str(site))
    assert "pip install" in missing
    assert "[data]" in missing
    checkpoints = ["default", "default-chat", "default-knowledge", "default-speaker"]
    assert models == {"checkpoints": checkpoints, "encoders": []}
    data.extractall(site)
    _, missing, models = json.loads(run_from(site, FIND, tmp_path))
    assert all(set(names) <= set(models[shelf]) for shelf, names in IN_DATA.items())
    assert missing == ""
