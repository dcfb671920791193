"""Networks of the paper's pipeline as scorers; those of the method `palaver` are tested with the method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from palaver.comparator.cmade.network import build_network
from palaver.comparator.coherence import MOST_TURNS, flow
from palaver.comparator.representation import encode_dialogues, represent, represent_encoded
from palaver.comparator.scorer import NetworkScorer, _removable, load_scorer
from palaver.errors import UserError
from palaver.models.encoders.encoder import remember
from palaver.schema import Dialogue, Turn


def dialogue(name: str, *texts: str) -> Dialogue:
    turns = [Turn(speaker="user" if i % 2 == 0 else "system", text=t) for i, t in enumerate(texts)]
    return Dialogue(id=name, turns=tuple(turns))


A = dialogue(
    "a", "hello there", "i love music too", "why do you say that", "no no no", "hello", "go go go go"
)
B = dialogue("b", "hello there", "i do not know")


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("pipeline")
    build_network(tiny_encoder, seed=1).save(out / "stage" / "network")
    return out


def test_a_stage_of_the_pipeline_is_a_comparator(folder: Path) -> None:
    scorer = load_scorer(folder / "stage")
    assert isinstance(scorer, NetworkScorer)
    scores = scorer.score([A, B])
    assert np.isfinite(scores.score).all()
    assert np.isnan(scores.low).all()
    assert np.isclose(scorer.probability(A, B), 1 / (1 + np.exp(scores.score[1] - scores.score[0])))
    assert np.allclose(load_scorer(folder / "stage" / "network").score([A, B]).score, scores.score)
    assert len(scorer.score([]).score) == 0


def test_the_turn_that_costs_most(folder: Path) -> None:
    scorer = load_scorer(folder / "stage")
    worst, none = scorer.worst_turns([A, B])
    assert none is None  # its system speaks only once
    gains = {}
    for i in (1, 3, 5):
        shorter = A.model_copy(update={"turns": A.turns[:i] + A.turns[i + 1 :]})
        gains[i + 1] = float(scorer.score([shorter]).score[0] - scorer.score([A]).score[0])
    assert worst is not None
    assert worst.turn == max(gains, key=lambda k: gains[k])
    assert worst.gain == pytest.approx(gains[worst.turn], abs=1e-4)


def test_the_folder_above_names_what_lies_below(folder: Path) -> None:
    with pytest.raises(UserError, match="did you mean .*stage") as caught:
        load_scorer(folder)
    assert caught.value.problems
    (folder / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        load_scorer(folder / "file")


def test_turns_are_encoded_once() -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> Any:
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts])

    remembering = remember(encode, most=3)
    assert remembering(["a", "bb", "a"])[:, 0].tolist() == [1, 2, 1]
    assert remembering(["bb", "ccc"])[:, 0].tolist() == [2, 3]
    assert asked == ["a", "bb", "ccc"]
    assert remembering(["dddd", "a"])[:, 0].tolist() == [4, 1]  # that was too many: it forgets
    assert remembering(["bb"])[:, 0].tolist() == [2]
    assert asked == ["a", "bb", "ccc", "dddd", "bb"]


def test_the_costliest_turn_of_a_very_long_dialogue_is_among_its_last() -> None:
    turns = tuple(
        Turn(speaker="system" if i % 2 else "user", text=f"this is turn {i}") for i in range(10_000)
    )
    places = _removable(Dialogue(id="long", turns=turns))
    assert len(places) * len(turns) <= 200_000
    assert places[-1] == 9_999


def test_turns_before_those_that_are_looked_at_are_not_encoded() -> None:
    def encode(texts: list[str]) -> Any:
        return np.array([np.random.default_rng(len(text)).normal(size=8) for text in texts])

    long = dialogue("long", *("na" * n + " hey" for n in range(1, MOST_TURNS + 40)))
    (encoded,) = encode_dialogues([long], encode)
    assert len(encoded.vectors) == MOST_TURNS + 1
    whole = np.array([encode([turn.text])[0] for turn in long.turns])
    whole = (whole / np.linalg.norm(whole, axis=1, keepdims=True)).astype(np.float32)
    features, means = flow(whole, np.array([turn.speaker == "user" for turn in long.turns]))
    got = represent_encoded([encoded])
    np.testing.assert_allclose(got.features[0, -len(features) :], features, atol=1e-6)
    np.testing.assert_allclose(got.vectors[0], means, atol=1e-6)
    for i in (3, 39, 500):  # before those that are encoded, the first of them, one of them
        shorter = long.model_copy(update={"turns": long.turns[:i] + long.turns[i + 1 :]})
        without, expected = represent_encoded([encoded.without(i)]), represent([shorter], encode)
        np.testing.assert_array_equal(without.features, expected.features)
        np.testing.assert_array_equal(without.vectors, expected.vectors)


def test_no_turn_costs_where_each_helps(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scorer = load_scorer(folder / "stage")
    n_turns = sum(turn.speaker == "system" for turn in A.turns)
    monkeypatch.setattr(scorer, "_scores_without", lambda d, p: (np.ones(1), np.zeros(n_turns)))
    assert scorer.worst_turns([A]) == [None]
