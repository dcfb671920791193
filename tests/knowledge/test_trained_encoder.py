"""The trained selector that compares by meaning as well: its features, its weights, and what it needs."""

from __future__ import annotations

import importlib
import zlib
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from tests.knowledge.conftest import HISTORY, SENTENCES

from palaver.errors import DataError, MissingExtra
from palaver.knowledge.encoder import UnitVectors
from palaver.knowledge.features import FEATURES
from palaver.knowledge.ranker import load_ranker, shipped_ranker
from palaver.knowledge.selector import Group, Query, make_selector
from palaver.knowledge.trained_encoder import (
    ALL_FEATURES,
    MEANINGS,
    WEIGHTS,
    Meanings,
    TrainedEncoderSelector,
)

pytest.importorskip("sklearn")


def encode(texts: list[str]) -> Any:
    """Vectors that depend on the text alone."""
    return np.stack([np.random.default_rng(zlib.crc32(t.encode())).normal(size=8) for t in texts])


def open_selector() -> TrainedEncoderSelector:
    return TrainedEncoderSelector(SENTENCES, vectors=UnitVectors(encode))


def test_features_of_meaning() -> None:
    vectors = UnitVectors(encode)
    heard, sentences = vectors.of(HISTORY), vectors.of(SENTENCES)
    table = Meanings(heard, sentences).of_query([0, 1, 2])
    assert table.shape == (len(SENTENCES), len(MEANINGS))
    columns = dict(zip(MEANINGS, table.T, strict=True))
    cosines = heard @ sentences.T
    np.testing.assert_allclose(columns["meaning_1"], cosines[2], atol=1e-6)
    np.testing.assert_allclose(columns["meaning_2"], cosines[1], atol=1e-6)
    np.testing.assert_allclose(columns["meaning_other"], cosines[0], atol=1e-6)
    assert not columns["meaning_4"].any()
    np.testing.assert_allclose(columns["rank_1"], (-cosines[2]).argsort().argsort() / 4)
    np.testing.assert_allclose(columns["told_own"], np.maximum(cosines[1] - 0.4, 0), atol=1e-6)
    alike = sentences @ sentences.T
    nearest = int(cosines[2].argmax())
    others = [i for i in range(4) if i != nearest]
    np.testing.assert_allclose(columns["like_1"][others], alike[nearest, others], atol=1e-6)


def test_features_of_words_come_first() -> None:
    ((table,),) = open_selector().features([Group([Query(HISTORY)], SENTENCES)])
    assert table.shape == (len(SENTENCES), len(ALL_FEATURES))
    assert ALL_FEATURES[: len(FEATURES)] == FEATURES
    assert len(set(MEANINGS)) == len(MEANINGS)


def test_groups_do_not_depend_on_each_other() -> None:
    selector = open_selector()
    groups = [
        Group([Query(HISTORY), Query(HISTORY[:1]), Query([])], SENTENCES),
        Group([], SENTENCES),
        Group([Query(HISTORY)], []),
        Group([Query(HISTORY[1:])], SENTENCES[:1]),
        Group([Query(["", ""])], ["", "!!!"]),
    ]
    tables = selector.scores(groups)
    for group, table in zip(groups, tables, strict=True):
        assert table is not None
        assert table.shape == (len(group.queries), len(group.candidates))
        assert np.isfinite(table).all()
        (alone,) = open_selector().scores([group])
        np.testing.assert_allclose(table, alone, atol=1e-4)
    assert selector.scores([]) == []


def test_it_does_not_see_the_response() -> None:
    selector = open_selector()
    choice = selector.select(HISTORY, SENTENCES)
    assert choice is not None
    assert selector.select(HISTORY, SENTENCES, SENTENCES[3]) == choice


def test_the_shipped_weights() -> None:
    ranker = shipped_ranker(WEIGHTS, len(ALL_FEATURES))
    assert ranker.card["licence"] == "CDLA-Sharing 1.0"
    assert "Topical-Chat" in ranker.card["data"]
    path = files("palaver.knowledge") / "selector_encoder.npz"
    assert len(path.read_bytes()) < 1_000_000
    with path.open("rb") as file, pytest.raises(DataError, match="other features"):
        load_ranker(file)  # those of the selector without an encoder


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without_models(name: str, package: str | None = None) -> Any:
        if name in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without_models)
    assert make_selector("trained", SENTENCES).select(HISTORY, SENTENCES) is not None
    with pytest.raises(MissingExtra, match="pip install"):
        make_selector("trained-encoder", SENTENCES)
