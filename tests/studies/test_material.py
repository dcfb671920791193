"""Responses and dialogues of several files joined by what they answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import DataError, UserError
from palaver.readers.responses import REPEATED
from palaver.studies.material import INCOMPLETE, NO_REPLY, UNLIKE, read_material


def put(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def reply(id: str, system: str, response: str | None = "Yes.", **more: Any) -> dict[str, Any]:
    return {"id": id, "system": system, "context": f"Question {id}", "response": response, **more}


def talk(id: str, *texts: str, **more: Any) -> dict[str, Any]:
    turns = [{"speaker": ("user", "bot")[n % 2], "text": text} for n, text in enumerate(texts)]
    return {"id": id, "turns": turns, **more}


def test_contexts_that_all_systems_answered(tmp_path: Path) -> None:
    rows = [
        reply("1", "a", reference=["R.", "S."], knowledge="K."),
        reply("1", "b", reference="R.", knowledge="K."),
        reply("2", "a", knowledge="K."),
        reply("2", "b", "", knowledge="L."),  # a silent system has answered
        reply("3", "a"),
        reply("3", "b", None, skipped="too long"),
        reply("4", "a"),
        reply("5", "a"),
        reply("5", "b", context="Another question"),
        reply("1", "a", "Again."),
    ]
    material = read_material([put(tmp_path / "r.jsonl", rows)])
    assert material.systems == ("a", "b")
    assert [c.id for c in material.candidates] == ["1", "2"]
    first, second = material.candidates
    assert (first.reference, first.knowledge, first.context[0].text) == ("R.", "K.", "Question 1")
    assert [output.text for output in second.outputs] == ["Yes.", ""]
    assert second.knowledge is None
    assert material.left_out == {
        REPEATED: 1,
        NO_REPLY: 1,
        INCOMPLETE: 2,
        UNLIKE: 1,
        "background sentences, where systems drew on different ones": 1,
    }


def test_one_file_a_system_named_as_the_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        rows = [{"prompt": f"Question {n}", "output": f"{name} {n}"} for n in (3, 1, 1, 2)]
        put(tmp_path / f"{name}.jsonl", rows if name == "one" else rows[::-1])
    material = read_material([tmp_path / "one.jsonl", tmp_path / "two.jsonl"])
    assert material.systems == ("one", "two")
    assert len(material.candidates) == 4  # the same question twice is two contexts
    assert [output.text for output in material.candidates[0].outputs] == ["one 3", "two 3"]
    assert any("contexts of the same words were joined" in note for note in material.notes)


def test_nothing_is_joined_by_a_context_that_is_not_there(tmp_path: Path) -> None:
    rows = [
        {"model": name, "frage": f"Question {n}", "answer": "Yes."} for n in (1, 2) for name in ("a", "b")
    ]
    path = put(tmp_path / "r.jsonl", rows)
    with pytest.raises(DataError) as caught:
        read_material([path])
    assert "the responses have no context (--column context=NAME says where it is)" in caught.value.problems
    assert len(read_material([path], columns={"context": "frage"}).candidates) == 2


def test_a_system_that_speaks_as_several(tmp_path: Path) -> None:
    rows = [reply("1", "a", speaker=name) for name in ("Joey", "Ross")]
    assert read_material([put(tmp_path / "r.jsonl", rows)]).systems == ("a/Joey", "a/Ross")


def test_dialogues_by_their_ids(tmp_path: Path) -> None:
    a = put(tmp_path / "a.jsonl", [talk("x", "Hi.", "Ho."), talk("y", "Hi.", "Hm."), talk("z")])
    b = put(tmp_path / "b.jsonl", [talk("y", "Hi.", "Ha."), talk("x", "Hi.", "He.")])
    material = read_material([a, b])
    assert material.dialogues
    assert [c.id for c in material.candidates] == ["x", "y"]
    assert [o.dialogue.turns[-1].text for o in material.candidates[0].outputs if o.dialogue] == ["Ho.", "He."]
    assert material.left_out == {"dialogues without turns": 1}


def test_dialogues_that_share_no_id_are_matched_at_random(tmp_path: Path) -> None:
    a = put(tmp_path / "a.jsonl", [talk(f"a{n}", "Hi.", str(n)) for n in range(9)])
    b = put(tmp_path / "b.jsonl", [talk(f"b{n}", "Hi.", str(n)) for n in range(7)])
    matches = [
        [tuple(o.id for o in c.outputs) for c in read_material([a, b], seed=seed).candidates]
        for seed in (1, 1, 2)
    ]
    assert matches[0] == matches[1] != matches[2]
    assert len({one for pair in matches[0] for one in pair}) == 14
    material = read_material([a, b], seed=1)
    assert material.left_out == {"dialogues without a partner": 2}
    assert material.notes == ("the systems share no dialogue ids: matched at random (seed 1)",)
    named = [{**talk(f"c{n}", "Hi.", str(n)), "context": f"a{n}"} for n in range(3)]
    assert [c.id for c in read_material([a, put(tmp_path / "c.jsonl", named)]).candidates] == [
        "a0",
        "a1",
        "a2",
    ]


def test_what_cannot_be_joined(tmp_path: Path) -> None:
    responses = put(tmp_path / "r.jsonl", [reply("1", "a"), reply("2", "b")])
    with pytest.raises(DataError, match="no context of which all 2 systems have one") as caught:
        read_material([responses])
    assert caught.value.problems == (f"2 {INCOMPLETE}",)
    dialogues = put(tmp_path / "d.jsonl", [talk("x", "Hi.")])
    with pytest.raises(UserError, match=r"r\.jsonl holds responses, .*d\.jsonl holds dialogues"):
        read_material([dialogues, responses])
    with pytest.raises(UserError, match="everything in it is in an earlier file already") as twice:
        read_material([responses, responses])
    assert "called as there (a, b): give them other names in the column system" in twice.value.hint
    with pytest.raises(UserError, match="no file"):
        read_material([])
