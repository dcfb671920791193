"""What holds for every noun: JSON and back, nothing changes, nothing unknown is taken, it can be pickled."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict, defaultdict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from palaver import schema
from palaver.schema import Article, Dialogue, Item, Output, Question, Rating, RunRecord, Section, Study, Turn
from palaver.schema.base import FrozenDict, Noun

HOMES = ("dialogue", "response", "knowledge", "run", "scale", "item", "rating", "study")
"""Modules whose nouns `conftest` knows how to draw."""

NOUNS = [
    kind
    for kind in (getattr(schema, name) for name in schema.__all__)
    if isinstance(kind, type) and issubclass(kind, Noun) and kind.__module__.split(".")[2] in HOMES
]
each_noun = pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
relaxed = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


def test_all_nouns_of_the_design_are_there() -> None:
    names = {noun.__name__ for noun in NOUNS}
    assert names >= {"Turn", "Dialogue", "Response", "Question", "Item", "Study", "Rating", "RunRecord"}
    assert names >= {"Likert", "Magnitude", "RankMagnitude", "Pairwise", "Binary", "Ordinal", "Checkboxes"}
    assert names >= {"ReadingSet", "Section", "Entity", "Fact", "Article"}


@each_noun
@relaxed
@given(data=st.data())
def test_json_gives_the_same_value_back(noun: type[Noun], data: st.DataObject) -> None:
    value = data.draw(st.from_type(noun))
    text = value.model_dump_json()
    text.encode()
    assert noun.model_validate_json(text) == value
    assert noun.model_validate(json.loads(text)) == value
    assert noun.model_validate(value.model_dump()) == value
    if noun not in (Question, Study):  # without defaults, their scales lack the `kind` that tells which
        assert noun.model_validate_json(value.model_dump_json(exclude_defaults=True)) == value


@each_noun
@relaxed
@given(data=st.data())
def test_copies_and_pickles_are_equal_and_hash_alike(noun: type[Noun], data: st.DataObject) -> None:
    value = data.draw(st.from_type(noun))
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert again == value
        assert type(again) is type(value)
        assert hash(again) == hash(value)


@each_noun
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nothing_can_be_assigned_or_deleted(noun: type[Noun], data: st.DataObject) -> None:
    value = data.draw(st.from_type(noun))
    before = value.model_dump_json()
    for field in [*noun.model_fields, "something_new"]:
        with pytest.raises((ValidationError, ValueError)):
            setattr(value, field, "x")
        with pytest.raises((ValidationError, ValueError, AttributeError)):
            delattr(value, field)
    assert value.model_dump_json() == before
    _assert_frozen(value)


def _assert_frozen(value: Any) -> None:
    """All the way down there are only nouns, tuples, read-only mappings and single values."""
    if isinstance(value, Noun):
        for field in type(value).model_fields:
            _assert_frozen(getattr(value, field))
    elif isinstance(value, tuple):
        for part in value:
            _assert_frozen(part)
    elif isinstance(value, dict):
        assert isinstance(value, FrozenDict)
    else:
        hash(value)


@each_noun
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_unknown_fields_are_refused(noun: type[Noun], data: st.DataObject) -> None:
    fields = data.draw(st.from_type(noun)).model_dump(mode="json")
    for validate in (noun.model_validate, lambda f: noun.model_validate_json(json.dumps(f))):
        with pytest.raises(ValidationError) as caught:
            validate({**fields, "nonsense": 1})
        assert [e["loc"] for e in caught.value.errors() if e["type"] == "extra_forbidden"] == [("nonsense",)]


def test_unknown_fields_are_refused_deep_inside() -> None:
    with pytest.raises(ValidationError, match="nonsense"):
        Dialogue.model_validate({"id": "a", "turns": [{"speaker": "x", "text": "y", "nonsense": 1}]})


CHANGES = [
    lambda d: d.__setitem__("a", 2),
    lambda d: d.__setitem__("new", 2),
    lambda d: d.__delitem__("a"),
    lambda d: d.update(a=2),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.clear(),
    lambda d: d.setdefault("new", 1),
    lambda d: d.__ior__({"a": 2}),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "labels",
    [
        Turn(speaker="x", text="y", labels={"a": 1}).labels,
        Dialogue(id="x", turns=(), labels={"a": 1}).labels,
        RunRecord(command="x", config={"a": 1}).config,
        copy.deepcopy(Turn(speaker="x", text="y", labels={"a": 1})).labels,
        pickle.loads(pickle.dumps(Turn(speaker="x", text="y", labels={"a": 1}))).labels,
    ],
)
def test_labels_cannot_be_changed(change: Any, labels: Any) -> None:
    with pytest.raises(TypeError, match="frozen"):
        change(labels)
    assert labels == {"a": 1}


def test_the_default_labels_are_as_frozen_as_any() -> None:
    with pytest.raises(TypeError):
        Turn(speaker="x", text="y").labels["a"] = 1  # type: ignore[index]
    assert Turn(speaker="x", text="z").labels == {}


def test_the_mapping_that_was_given_stays_apart() -> None:
    given = {"a": 1}
    turn = Turn(speaker="x", text="y", labels=given)
    given["a"] = 2
    assert turn.labels == {"a": 1}


@pytest.mark.parametrize(
    "kind", [dict, OrderedDict, MappingProxyType, FrozenDict, lambda d: defaultdict(int, d)]
)
def test_any_mapping_will_do(kind: Any) -> None:
    turn = Turn(speaker="x", text="y", labels=kind({"a": 1}))
    assert type(turn.labels) is FrozenDict
    assert turn == Turn(speaker="x", text="y", labels={"a": 1})


def test_labels_keep_their_kind_of_value() -> None:
    labels = {"text": "1", "truth": True, "whole": 1, "real": 1.0, "nothing": None, "big": 10**30}
    turn = Turn.model_validate_json(Turn(speaker="x", text="y", labels=labels).model_dump_json())
    assert repr(dict(turn.labels)) == repr(labels)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), [1], {"a": 1}, (), object()])
def test_labels_are_single_finite_values(bad: Any) -> None:
    with pytest.raises(ValidationError):
        Turn(speaker="x", text="y", labels={"a": bad})


def test_labels_have_text_for_names() -> None:
    with pytest.raises(ValidationError):
        Turn(speaker="x", text="y", labels={1: 1})  # type: ignore[dict-item]


HALF = "\ud800"  # half of a surrogate pair: Python takes it for text, no file does


@pytest.mark.parametrize(
    "make",
    [
        lambda: Turn(speaker=HALF, text="y"),
        lambda: Turn(speaker="x", text=f"a{HALF}"),
        lambda: Turn(speaker="x", text="y", knowledge=(HALF,)),
        lambda: Turn(speaker="x", text="y", labels={"a": HALF}),
        lambda: Turn(speaker="x", text="y", labels={HALF: 1}),
        lambda: Dialogue(id="x", turns=(), source=HALF),
        lambda: Article(id="x", parts=(HALF,)),
        lambda: Section(entity={"id": "e", "name": "n"}, lead=HALF),
        lambda: Item(id="x", context=HALF, outputs=[Output(system="s", text="t")]),
        lambda: Output(system="s", text=HALF),
        lambda: Rating(item="i", system="s", rater="r", criterion="c", value=HALF),
        lambda: Rating(item="i", system="s", rater="r", criterion="c", value=(HALF,)),
        lambda: RunRecord(command=HALF),
    ],
)
def test_text_that_no_file_could_hold_is_refused_at_once(make: Any) -> None:
    with pytest.raises(ValidationError):
        make()


def test_names_are_neither_empty_nor_endless() -> None:
    assert Turn(speaker="x" * 1000, text="").speaker
    for bad in ("", "x" * 1001, None, 5):
        with pytest.raises(ValidationError):
            Turn(speaker=bad, text="")  # type: ignore[arg-type]


def test_equal_values_make_one_member_of_a_set() -> None:
    made = {Turn(speaker="x", text="y", labels={"a": 1, "b": None}) for _ in range(3)}
    assert made == {Turn(speaker="x", text="y", labels={"b": None, "a": 1})}


def test_a_study_is_a_value_that_can_be_a_key() -> None:
    study = Study.model_validate(
        {
            "name": "s",
            "questions": [{"criterion": "c", "text": "t", "scale": {"kind": "likert"}}],
            "items": [{"id": "i", "outputs": [{"system": "a", "text": "x"}]}],
        }
    )
    assert {study: 1}[study.model_copy()] == 1
