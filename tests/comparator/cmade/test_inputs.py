"""Dialogues as tokens and roles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from palaver.comparator.cmade.inputs import cut_by_tokens, make_inputs
from palaver.errors import DataError, UserError
from palaver.models.encoders.transformer import load_transformer
from palaver.schema import Dialogue, Turn


def talk(name: str, *texts: str) -> Dialogue:
    turns = [Turn(speaker=("user", "system")[i % 2], text=text) for i, text in enumerate(texts)]
    return Dialogue(id=name, turns=tuple(turns))


def test_the_form_of_the_input(tiny_encoder: Path) -> None:
    tokenizer = load_transformer(tiny_encoder).tokenizer
    made = make_inputs([talk("a", "hello there", "i love music")], tokenizer)
    words = tokenizer.convert_ids_to_tokens(made.tokens.tolist())
    assert words == ["[CLS]", "hello", "there", "[SEP]", "i", "love", "music", "[SEP]"]
    assert made.roles.tolist() == [0, 1, 1, 1, 2, 2, 2, 2]
    assert made.n_cut == 0


def test_of_a_long_dialogue_the_end_is_kept(tiny_encoder: Path) -> None:
    tokenizer = load_transformer(tiny_encoder).tokenizer
    long, short = talk("a", "hello there", "i love music"), talk("b", "hello")
    made = make_inputs([long, short], tokenizer, max_tokens=5)
    assert tokenizer.convert_ids_to_tokens(made.tokens[:5].tolist()) == [
        "[CLS]",
        "i",
        "love",
        "music",
        "[SEP]",
    ]
    assert made.n_cut == 1
    ids, mask, roles = made.padded(np.array([1, 0]))
    assert mask.tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert (ids[0, 3:] == tokenizer.pad_token_id).all()
    assert roles[0].tolist() == [0, 1, 1, 0, 0]
    both = made.joined(made)
    assert both.lengths.tolist() == [5, 3, 5, 3]


def test_strange_speakers_and_limits(tiny_encoder: Path) -> None:
    tokenizer = load_transformer(tiny_encoder).tokenizer
    with pytest.raises(DataError, match="Ann"):
        make_inputs([Dialogue(id="a", turns=(Turn(speaker="Ann", text="hi"),))], tokenizer)
    with pytest.raises(UserError, match="max_tokens"):
        make_inputs([], tokenizer, max_tokens=1)


def test_pieces_hold_everything_and_fit() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, 200)
    pieces = list(cut_by_tokens(lengths, 100))
    assert sorted(np.concatenate(pieces).tolist()) == list(range(200))
    assert all(lengths[p].max() * len(p) <= 100 for p in pieces)
    assert [len(p) for p in cut_by_tokens(np.array([500, 3]), 100)] == [1, 1]
    assert list(cut_by_tokens(np.array([], np.int64), 100)) == []
