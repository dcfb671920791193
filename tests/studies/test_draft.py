"""Studies made of responses and dialogues."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UserError
from palaver.schema import Dialogue
from palaver.schema.rating import pair_context
from palaver.studies import load_study
from palaver.studies.draft import DRAFTS, draft_study
from palaver.studies.screens import plan_screens, shown_order


def put(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    """Ten conversations of four contexts each, answered by three systems."""
    rows = [
        {
            "id": f"talk-{n // 4}#{n % 4 + 1}",
            "system": system,
            "context": [{"speaker": "Ann", "text": f"{n}?"}, {"speaker": "Bob", "text": "Well…"}],
            "response": f"{system} on {n}",
            "reference": f"Real {n}",
            "knowledge": "An octopus has three hearts.",
            "topic": f"topic {n % 3}",
        }
        for n in range(40)
        for system in ("a", "b", "c")
    ]
    return put(tmp_path / "responses.jsonl", rows)


@pytest.mark.parametrize("preset", DRAFTS)
@pytest.mark.parametrize("kind", ["responses", "plain", "dialogues"])
def test_what_is_written_is_the_study(preset: str, kind: str, responses: Path, tmp_path: Path) -> None:
    sources = [responses]
    if kind == "plain":  # neither references nor knowledge
        plain = [json.loads(line) for line in responses.read_text().splitlines()]
        sources = [
            put(tmp_path / "p.jsonl", [{k: r[k] for k in ("id", "system", "response")} for r in plain])
        ]
    if kind == "dialogues":
        turns = [{"speaker": "user", "text": "Hi."}, {"speaker": "bot", "text": "Ho."}]
        sources = [put(tmp_path / f"{s}.jsonl", [{"id": "x", "turns": turns}]) for s in ("one", "two")]
    draft = draft_study(sources, preset=preset, seed=1)
    path, items = draft.write(tmp_path / "deep.er" / "my.study.toml")
    assert (path.name, items.name) == ("my.study.toml", "my.study-items.jsonl")
    assert load_study(path) == draft.study
    criteria = [question.criterion for question in draft.study.questions]
    assert ("knowledge" in criteria) == (kind == "responses" and preset in ("likert", "snippet"))
    shown = {part for question in draft.study.questions for part in question.shows}
    assert ("reference" in shown) == (
        preset == "rankme"
    )  # the standard; elsewhere it would give the answer away
    assert repr(draft).startswith("<StudyDraft: ")


def test_it_is_said_that_knowledge_is_not_asked_about(responses: Path, tmp_path: Path) -> None:
    note = "no item has a background sentence, so nobody is asked how it was used"
    assert note not in draft_study(responses, preset="snippet").notes
    rows = [json.loads(line) for line in responses.read_text().splitlines()]
    own = put(tmp_path / "own.jsonl", [row | {"knowledge": f"Chosen by {row['system']}."} for row in rows])
    draft = draft_study(own, preset="snippet")
    assert "knowledge" not in {question.criterion for question in draft.study.questions}
    assert note in draft.notes


def test_items_have_everything_in_its_place(responses: Path) -> None:
    item = draft_study(responses).study.items[0]
    assert item.id == "talk-0#1"
    assert isinstance(item.context, Dialogue)
    assert [turn.text for turn in item.context.turns] == ["0?", "Well…"]
    assert (item.reference, item.knowledge) == ("Real 0", "An octopus has three hearts.")
    assert [(output.system, output.text) for output in item.outputs] == [
        ("a", "a on 0"),
        ("b", "b on 0"),
        ("c", "c on 0"),
    ]


def test_a_sample_depends_on_the_seed_alone(responses: Path, tmp_path: Path) -> None:
    def ids(path: Path, seed: int, **options: Any) -> list[str]:
        return [item.id for item in draft_study(path, sample=8, seed=seed, **options).study.items]

    assert ids(responses, 1) == ids(responses, 1)
    assert set(ids(responses, 1)) != set(ids(responses, 2))
    lines = responses.read_text().splitlines(keepends=True)
    turned = tmp_path / "turned.jsonl"
    turned.write_text("".join(reversed(lines)))
    assert set(ids(turned, 1)) == set(ids(responses, 1))
    distinct = ids(responses, 1, distinct_by="conversation")
    assert len({id.partition("#")[0] for id in distinct}) == len(distinct) == 8
    draft = draft_study(responses, sample=8, distinct_by="conversation")
    assert draft.left_out == {
        "contexts of a conversation that has one already": 30,
        "contexts that were not drawn": 2,
    }
    draft = draft_study(responses, sample=8, distinct_by="topic")
    assert len(draft.study.items) == 3
    assert draft.notes == ("8 contexts were asked for, there are 3",)


@pytest.mark.parametrize("pairs", [None, 1, 2])
def test_every_pair_of_systems_comes_equally_often(responses: Path, pairs: int | None) -> None:
    items = draft_study(responses, preset="pairwise", pairs=pairs, sample=30).study.items
    assert len(items) == 30 * (pairs or 3)
    shown = Counter(tuple(output.system for output in item.outputs) for item in items)
    assert set(shown.values()) == {10 * (pairs or 3)}
    for item in items:
        first, second = (output.system for output in item.outputs)
        assert isinstance(item.context, Dialogue)
        assert item.id == f"{item.context.id}|{first}|{second}"
        assert pair_context(item.id, first, second) == pair_context(item.id, second, first) == item.context.id


def test_each_system_of_a_pair_stands_on_each_side_equally_often(responses: Path) -> None:
    study = draft_study(responses, preset="pairwise").study
    items = {item.id: item for item in study.items}
    first: Counter[tuple[str, ...]] = Counter()
    for screen in plan_screens(study):
        for turn in range(study.raters_per_item):
            order = shown_order(study, screen, 2, turn, "somebody")
            first[tuple(items[screen.item].outputs[place].system for place in order)] += 1
    assert len(first) == 6
    assert set(first.values()) == {40}


def test_the_context_of_a_pair() -> None:
    assert pair_context("c|1|a|b/x", "b/x", "a") == "c|1"
    assert pair_context("c|a|b", "a", None) is None
    assert pair_context("c", "a", "b") is None
    assert pair_context("|a|b", "a", "b") is None


def test_standards_are_references(responses: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in responses.read_text().splitlines()]
    some = [row if n > 5 else {**row, "reference": None} for n, row in enumerate(rows)]
    draft = draft_study(put(tmp_path / "some.jsonl", some), preset="rankme")
    assert draft.left_out == {"contexts without a reference, which is the standard": 2}
    assert "The standard is worth 100" in draft.study.instructions
    none = put(tmp_path / "none.jsonl", [{**row, "reference": None} for row in rows])
    assert "just acceptable" in draft_study(none, preset="rankme").study.instructions


def test_what_is_refused(responses: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'acute' cannot be put to responses"):
        draft_study(responses, preset="acute")
    with pytest.raises(UserError, match=r"no 'topik' \(did you mean 'topic'\?\)"):
        draft_study(responses, distinct_by="topik")
    one = put(tmp_path / "one.jsonl", [{"id": "x", "system": "a", "context": "Hi", "response": "Ho"}])
    with pytest.raises(UserError, match="pairwise shows several systems on a screen, found one: a"):
        draft_study(one, preset="pairwise")
    assert draft_study(one, preset="likert").study.systems == ("a",)
    with pytest.raises(UserError, match="sample: expected 1 or more"):
        draft_study(one, sample=0)
