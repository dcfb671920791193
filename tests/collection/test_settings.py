"""Collection files: presets, every mistake with its line, and what follows from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.collection.plans import number_of_plans, plan_conversations
from palaver.collection.records import GRADES, SOURCES
from palaver.collection.settings import PRESETS, Collection, load_collection, parse_collection, preset_text
from palaver.errors import ConfigError, UserError


@pytest.mark.parametrize("name", PRESETS)
def test_presets_can_be_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "collection.toml"
    path.write_text(preset_text(name), encoding="utf-8")
    collection = load_collection(path)
    assert collection.name == name
    assert collection.frame().consent
    assert collection.rules(None).fewest_turns == collection.conversation.fewest_turns


def test_the_paper_s_annotations_are_in_its_preset() -> None:
    collection = parse_collection(preset_text("topical-chat"), "preset")
    sentiment, source = collection.about_own
    assert [c.value for c in sentiment.scale.choices()] == [
        *("Angry", "Disgusted", "Fearful", "Sad", "Happy", "Surprised", "Curious to Dive Deeper", "Neutral")
    ]
    assert tuple(c.value for c in source.scale.choices()) == SOURCES
    assert tuple(c.label for c in collection.about_partner[0].scale.choices()) == GRADES


def test_reading_sets_are_planned_for_both_sides() -> None:
    collection = parse_collection(preset_text("topical-chat"), "preset")
    plans = plan_conversations(collection, Path())
    assert plans is not None
    assert number_of_plans(collection, plans) == len(plans) == 48
    configurations = [str(plan.labels["config"]) for plan in plans]
    assert {configurations.count(name) for name in "ABCD"} == {12}
    assert [kept.id.split("-")[-1] for kept in plans[0].knowledge or ()] == ["agent_1", "agent_2"]
    bots = parse_collection(preset_text("talk-and-rate"), "preset")
    assert plan_conversations(bots, Path()) is None
    with pytest.raises(UserError, match="500 pairs were asked for, the articles allow 48"):
        plan_conversations(
            collection.model_copy(
                update={"conversation": collection.conversation.model_copy(update={"wanted": 500})}
            ),
            Path(),
        )


def test_lineups_meet_every_order() -> None:
    def lineups(compare: str) -> object:
        text = f'name = "x"\n[partners]\nbots = ["a", "b"]\n{compare}'
        return parse_collection(text, "x").lineups

    assert lineups("") == ((("a",),), (("b",),))
    assert lineups('compare = "in turn"') == ((("a",), ("b",)), (("b",), ("a",)))
    assert lineups('compare = "side by side"') == ((("a", "b"),), (("b", "a"),))


WRONG = """name = ""
titel = "A talk"
[partners]
bots = ["a", "a|b"]
compare = "at once"
[conversation]
fewest_turns = 0
wait_minuts = 5
[[about_own]]
criterion = "mood"
text = "?"
scale = { kind = "choise" }
"""


def test_all_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "collection.toml"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_collection(path)
    found = "\n".join(caught.value.problems)
    for said in (
        "line 1: name",
        "line 2: titel: there is no such field (did you mean 'title'?)",
        "line 4: partners.bots[2]",
        "line 5: partners.compare: expected 'in turn' or 'side by side', found 'at once'",
        "line 7: conversation.fewest_turns: expected at least 1, found 0",
        "line 8: conversation.wait_minuts: there is no such field (did you mean 'wait_minutes'?)",
        "line 12: about_own[1].scale: kind: expected one of",
    ):
        assert said in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[partners]\nbots = ["a"]\ncompare = "in turn"',
            "compare: to compare bots takes two",
        ),
        (
            '[partners]\nbots = ["a"]\nsubstitute = "b"',
            "this is for conversations between people",
        ),
        ('[[about_pair]]\ncriterion="b"\ntext="?"\nscale={kind="pairwise"}', "nothing is compared"),
        (
            '[[about_own]]\ncriterion="b"\ntext="?"\nscale={kind="pairwise"}',
            "line 5: about_own[1].scale: a pairwise question belongs under [[about_pair]]",
        ),
        (
            '[[about_own]]\ncriterion="b"\ntext="?"\nscale={kind="binary"}\n'
            '[[about_whole]]\ncriterion="b"\ntext="?"\nscale={kind="binary"}',
            "line 7: about_whole[1].criterion: criterion 'b' is asked twice",
        ),
        (
            '[knowledge]\n[[about_own]]\ncriterion="knowledge_source"\ntext="?"\nscale={kind="binary"}',
            "expected checkboxes among FS1",
        ),
    ],
)
def test_parts_that_do_not_fit_together(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_collection(f'name = "x"\n{text}', "collection.toml")
    assert said in "\n".join(caught.value.problems)


def test_a_collection_is_a_value() -> None:
    collection = parse_collection(preset_text("arena"), "preset")
    assert Collection.model_validate_json(collection.model_dump_json()) == collection
