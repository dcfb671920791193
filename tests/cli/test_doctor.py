"""`palaver doctor`: what is missing is named with the line that mends it."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.cli import doctor

Palaver = Callable[..., Any]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "palaver"


def test_every_extra_has_a_purpose() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(doctor.PURPOSES) == set(project["optional-dependencies"]) - {"dev", "all"}


def test_caches_and_their_sizes(cache: Path, palaver: Palaver) -> None:
    (cache / "vectors" / "deep").mkdir(parents=True)
    (cache / "vectors" / "deep" / "a.npy").write_bytes(b"x" * 1500)
    (cache / "vectors" / "b.npy").write_bytes(b"x" * 500)
    found = json.loads(palaver("doctor", "--json").out)
    assert [(folder["use"], folder["size"]) for folder in found["cache"]] == [("vectors", 2000)]
    shown = palaver("doctor").out
    assert "vectors     2 kB" in shown
    assert str(cache / "corpora") in shown


def test_an_empty_cache(cache: Path, palaver: Palaver) -> None:
    assert f"nothing yet in {cache}" in palaver("doctor").out
    assert not cache.exists()


def test_what_an_extra_lacks(monkeypatch: pytest.MonkeyPatch, cache: Path, palaver: Palaver) -> None:
    """Missing, too old, and what comes by another extra; what is in the base is nobody's lack."""
    lines = [
        "numpy>=1.26",
        'nowhere-to-be-found>=1; extra == "models"',
        'numpy>=99; extra == "models"',
        'scipy>=1; extra == "models"',
        'palaver[models]; extra == "llm"',
        'also-nowhere; extra == "llm"',
        'polars; sys_platform == "amiga" and extra == "sheets"',
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    extras = {extra.name: extra.missing for extra in doctor.check_up().extras}
    too_old = f"numpy>=99 (found {importlib.metadata.version('numpy')})"
    assert extras["models"] == ("nowhere-to-be-found", too_old)
    assert set(extras["llm"]) == {"nowhere-to-be-found", too_old, "also-nowhere"}
    assert extras["sheets"] == ()
    shown = palaver("doctor").out
    assert "lacks nowhere-to-be-found" in shown
    assert "for models and the comparator: pip install" in shown.partition("What to do")[2]


def test_models_of_the_data_package(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """A checkout has them all; where one is missing, the package that brings it is named."""
    lines = ['palaver-data==1.0.0; extra == "data"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    assert list(doctor._missing_of("data")) == []
    monkeypatch.setattr("palaver.models.catalogue.models_on", lambda shelf: {})
    assert list(doctor._missing_of("data")) == ["palaver-data"]


def test_little_room_on_the_disk(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**10, 10**10 - 5, 5))
    assert any("little room" in advice for advice in doctor.check_up().advice)
