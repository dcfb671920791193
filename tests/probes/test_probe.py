"""Where the triplets of a probe come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UserError
from palaver.models.encoders import Places
from palaver.probes.probe import SAMPLE, find_triplets
from palaver.probes.recipe import SETS
from palaver.probes.triplet_files import read_triplets
from palaver.probes.triplets import TripletCollection


def test_triplets_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PALAVER_DATA", raising=False)
    sample = find_triplets(None, Places())
    assert "sample" in sample.notes[0]
    assert {t.set for t in sample.triplets} == set(SETS)
    assert find_triplets(SAMPLE, Places()).notes == ()
    with pytest.raises(UserError, match="none of the corpora"):
        find_triplets(None, Places(tmp_path))


def test_triplets_of_a_corpus_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "SICK.txt").write_text("x")
    calls = []

    def make(folder: Path, recipe: Any, **_: Any) -> TripletCollection:
        calls.append(recipe.seed)
        return TripletCollection(recipe, triplets=read_triplets(SAMPLE))

    monkeypatch.setattr("palaver.probes.probe.generate", make)
    for seed in (0, 0, 1):
        find_triplets(None, Places(tmp_path), seed=seed, cache=tmp_path / "kept")
    assert calls == [0, 1]
    (tmp_path / "SICK.txt").write_text("y")
    find_triplets(None, Places(tmp_path), cache=tmp_path / "kept")
    assert calls == [0, 1, 0]
