"""The pairs that the comparator's language model learns from."""

from __future__ import annotations

import sys
from collections import Counter
from importlib import util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def minimal_pairs() -> Any:
    path = Path(__file__).parents[2] / "experiments" / "comparator" / "minimal_pairs.py"
    spec = util.spec_from_file_location("minimal_pairs", path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules["minimal_pairs"] = module  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def material(minimal_pairs: Any) -> Any:
    shown = [
        ("user", "hello, a table for 4 at Luigi please"),
        ("system", "sure, when would you like to come?"),
        ("user", "at 7 tonight, is that fine?"),
        ("system", "yes, a table for 4 at Luigi is free."),
    ]
    others = [("user", "is the match at 9 in Boston or not?"), ("system", "no, it begins at 3 in Chicago")]
    long = [
        ("user", "what about the boat trip?"),
        ("system", "it leaves the harbour at dawn and comes back in the evening."),
    ]
    elsewhere = ("have a nice day then.",)
    parts = [minimal_pairs.Part(turns, elsewhere) for turns in (shown, others, long)]
    articles = [("cheese", "Cheese is made of milk. " * 20), ("chess", "Chess is a game of two. " * 20)]
    return minimal_pairs.Material(parts, articles, held_out=False)


def test_every_kind_is_made_and_the_sides_differ(minimal_pairs: Any, material: Any) -> None:
    pairs = minimal_pairs.make_pairs(material, 10, seed=1)
    expected = {kind: 20 if kind in minimal_pairs.HARD else 10 for kind in minimal_pairs.MAKERS}
    assert Counter(pair.kind for pair in pairs) == expected
    assert all(pair.good != pair.bad for pair in pairs)
    assert pairs == minimal_pairs.make_pairs(material, 10, seed=1)
    longer = [sum(len(text) for _, text in pair.good) for pair in pairs if pair.kind == "detail"]
    shorter = [sum(len(text) for _, text in pair.bad) for pair in pairs if pair.kind == "detail"]
    assert all(good > bad for good, bad in zip(longer, shorter, strict=True))
    fewer = minimal_pairs.make_pairs(material, 10, seed=1, without=("detail", "explanation"))
    assert {pair.kind for pair in pairs} - {pair.kind for pair in fewer} == {"detail", "explanation"}


def test_a_changed_word_is_of_the_same_sort(minimal_pairs: Any, material: Any) -> None:
    pairs = minimal_pairs.make_pairs(material, 40, seed=2)
    replies = {dict(pair.bad)["system"] for pair in pairs if pair.kind == "changed word"}
    assert replies <= {
        f"yes, a table for {number} at {place} is free."
        for number, place in (("9", "Luigi"), ("3", "Luigi"), ("4", "Boston"), ("4", "Chicago"))
    }


def test_templates_held_out_are_not_learnt_from(minimal_pairs: Any, material: Any) -> None:
    held_out = minimal_pairs.Material(material.parts, material.articles, held_out=True)
    asked = []
    for source in (material, held_out):
        pairs = minimal_pairs.make_pairs(source, 60, seed=3)
        facts = [pair for pair in pairs if pair.kind == "fact"]
        asked.append({text for pair in facts for who, text in pair.good if text.endswith("?")})
    shown = {text for part in material.parts for _, text in part.turns}
    assert not (asked[0] & asked[1]) - shown


def test_no_template_is_a_text_of_the_audit(minimal_pairs: Any) -> None:
    from palaver.judges.audit import read_audit_pairs
    from palaver.text.normalisation import normalise

    texts = {
        normalise(turn.text)
        for part in ("open", "held out", "second")
        for pair in read_audit_pairs(part)
        for side in (pair.a, pair.b)
        for turn in side.turns
        if len(turn.text.split()) > 3
    }
    kinds = ("facts", "replies", "memory", "consistency")
    written = {
        normalise(text) for kind in kinds for row in minimal_pairs.TEMPLATES[kind]["turns"] for text in row
    }
    assert not texts & written
