"""Twelve files of twelve shapes hold the same two dialogues; wrong files give one clear error."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.errors import DataError
from palaver.readers import is_responses, read_dialogues, read_responses
from palaver.readers.roles import with_roles
from palaver.readers.shapes import known_label, labels_of, other_file, take_prompt

TALKS: list[tuple[str, list[tuple[str, str]], dict[str, Any]]] = [
    ("7", [("user", "Hi!"), ("assistant", "Hello, you."), ("user", "")], {"system": "A", "rating": 4}),
    ("8", [("user", "Bye"), ("assistant", "See “you”\nsoon")], {"system": "B", "rating": 2}),
]
ROLES = {"user": "user", "assistant": "system"}


def turns(talk: int, speaker: str = "speaker", text: str = "text") -> list[dict[str, str]]:
    return [{speaker: who, text: said} for who, said in TALKS[talk][1]]


def lines(make: Callable[[int], Any]) -> str:
    return "".join(json.dumps(make(i)) + "\n" for i in range(len(TALKS)))


def table(rows: list[dict[str, Any]], **options: Any) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), **options)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def turn_rows(
    dialogue: str = "dialogue", speaker: str = "speaker", text: str = "text"
) -> list[dict[str, Any]]:
    return [
        {dialogue: id, speaker: who, text: said, "model": labels["system"], "stars": labels["rating"]}
        for id, said_by, labels in TALKS
        for who, said in said_by
    ]


def ours(i: int) -> dict[str, Any]:
    return {"id": TALKS[i][0], "turns": turns(i), "labels": TALKS[i][2]}


def openai(i: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = turns(i, "role", "content")
    messages[0]["content"] = [{"type": "text", "text": messages[0]["content"]}]
    return {
        "id": int(TALKS[i][0]),
        "messages": messages,
        "model": TALKS[i][2]["system"],
        "rating": TALKS[i][2]["rating"],
    }


def sharegpt(i: int) -> dict[str, Any]:
    id, _, labels = TALKS[i]
    return {
        "conversation_id": id,
        "conversations": turns(i, "from", "value"),
        "bot": labels["system"],
        "score": labels["rating"],
    }


def parquet_structs(path: Path) -> None:
    rows = [{"id": int(id), "turns": turns(i), **labels} for i, (id, _, labels) in enumerate(TALKS)]
    pl.DataFrame(rows).write_parquet(path)


def history(i: int) -> dict[str, Any]:
    id, said, labels = TALKS[i]
    rest = [{"speaker": who, "text": text} for who, text in said[:-1]]
    return {"id": id, "history": rest, "response": said[-1][1], **labels}


SHAPES: dict[str, Callable[[Path], Any]] = {
    "ours.jsonl": lambda p: p.write_text(lines(ours)),
    "openai.jsonl": lambda p: p.write_text(lines(openai)),
    "openai.json": lambda p: p.write_text(json.dumps([openai(0), openai(1)], indent=2)),
    "sharegpt.json": lambda p: p.write_text(json.dumps([sharegpt(0), sharegpt(1)])),
    "plain.jsonl.gz": lambda p: p.write_bytes(
        gzip.compress(
            lines(lambda i: {"id": TALKS[i][0], "turns": turns(i, "s", "t"), **TALKS[i][2]}).encode()
        )
    ),
    "export.jsonl": lambda p: p.write_text(
        lines(lambda i: {"id": TALKS[i][0], "chat": turns(i, "spk", "text"), **TALKS[i][2]})
    ),
    "history.jsonl": lambda p: p.write_text(lines(history)),
    "turns.csv": lambda p: p.write_text(table(turn_rows()), newline=""),
    "turns.tsv": lambda p: p.write_text(
        table(turn_rows("conversation_id", "role", "content"), delimiter="\t"), newline=""
    ),
    "dialogues.csv": lambda p: p.write_text(
        table([{"id": id, "log": json.dumps(turns(i)), **labels} for i, (id, _, labels) in enumerate(TALKS)]),
        newline="",
    ),
    "turns.parquet": lambda p: pl.DataFrame(turn_rows()).write_parquet(p),
    "dialogues.parquet": parquet_structs,
}


@pytest.mark.parametrize("name", SHAPES)
def test_one_answer_from_every_shape(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    SHAPES[name](path)
    reader = read_dialogues(path)
    for _ in range(2):
        read = [
            (d.id, [(t.speaker, t.text) for t in d.turns], dict(d.labels)) for d in map(with_roles, reader)
        ]
        assert read == [(id, [(ROLES[who], text) for who, text in said], of) for id, said, of in TALKS]
    assert "turns without text: 1" in reader.notes
    assert not any(t.labels for d in reader for t in d.turns)
    assert is_responses(path) == (name == "history.jsonl")


def test_columns_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(table(turn_rows("thread", "wer", "was")), newline="")
    names = {"dialogue": "thread", "speaker": "wer", "text": "was"}
    assert [d.id for d in read_dialogues(path, columns=names)] == ["7", "8"]
    with pytest.raises(DataError, match="columns are missing") as caught:
        list(read_dialogues(path, columns={**names, "text": "wass"}))
    assert caught.value.problems == ("text: there is no column 'wass'",)


def test_bare_lists_and_instructions(tmp_path: Path) -> None:
    talk = [{"role": "system", "content": "Be kind."}, *turns(0, "role", "content")]
    for name, text in {
        "a.json": json.dumps(talk, indent=1),
        "b.jsonl": f"{json.dumps(talk)}\n{json.dumps(talk)}",
    }.items():
        (tmp_path / name).write_text(text)
        reader = read_dialogues(tmp_path / name)
        first, *others = reader
        assert [(t.speaker, t.text) for t in first.turns] == TALKS[0][1]
        assert first.labels == {"prompt": "Be kind."}
        assert first.id == f"{name[0]}:1"
        assert [d.id for d in others] == (["b:2"] if name == "b.jsonl" else [])
        assert any("without an id" in note for note in reader.notes)


def test_what_tools_say_and_instructions_in_between_are_no_turns(tmp_path: Path) -> None:
    talk = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Is it raining?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": '{"rain": false}'},
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": ""},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": 1, "messages": talk}))
    reader = read_dialogues(path)
    (only,) = reader
    assert [(t.speaker, t.text) for t in only.turns] == [
        ("user", "Is it raining?"),
        ("assistant", "No."),
        ("user", ""),
    ]
    assert only.labels == {"prompt": "Be kind.\nBe brief."}
    assert "messages to and from tools, left out: 2" in reader.notes


def test_who_is_called_system_beside_nobody_else_is_the_bot(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        json.dumps([{"role": "system", "content": "Hi"}, {"role": "user", "content": "Ho"}]) + "\n" * 2
    )
    (only,) = read_dialogues(path)
    assert only.speakers == ("system", "user")


def test_episodes(tmp_path: Path) -> None:
    rows = [
        {"text": "Hi", "labels": ["Ho", "Hm"], "episode_done": False, "topic": "x"},
        {"text": "So?", "labels": ["Bye"], "episode_done": True},
        {"text": "Alone", "eval_labels": ["Yes"]},
        {"text": "Alone again", "labels": []},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = read_dialogues(path)
    assert [(d.id, [t.text for t in d.turns]) for d in reader] == [
        ("t:1", ["Hi", "Ho", "So?", "Bye"]),
        ("t:3", ["Alone", "Yes"]),
        ("t:4", ["Alone again"]),
    ]
    assert next(iter(reader)).labels == {"topic": "x"}
    assert "replies besides the first of an exchange, left out: 1" in reader.notes


def test_texts_and_pairs_without_names(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"dialog": ["a", "b", "c"]}\n{"history": [["a", "b"], ["c", null]], "response": "d"}\n')
    assert [[(t.speaker, t.text) for t in d.turns] for d in read_dialogues(path)] == [
        [("user", "a"), ("system", "b"), ("user", "c")],
        [("user", "a"), ("system", "b"), ("user", "c"), ("system", "d")],
    ]


def test_known_fields_have_one_name(tmp_path: Path) -> None:
    row = {"id": 1, "turns": turns(0), "rating100": 40, "worker": "w", "hit": "h", "bot": "b", "mood": [1]}
    own = {"id": 2, "turns": turns(0), "labels": {"bot": "b", "rating": 1}, "rating100": 3, "src": "s"}
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(own) + "\n")
    first, second = read_dialogues(path)
    assert first.labels == {
        "rating100": 40, "mood": "[1]", "system": "b", "rating": 40, "rater": "w", "group": "h"
    }  # fmt: skip
    assert second.labels == {"bot": "b", "rating": 1, "rating100": 3}
    assert second.source == "s"
    assert (known_label(second.labels, "system"), known_label(second.labels, "rater")) == ("b", None)


def test_a_whole_dialogue_with_fields_named_like_those_of_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"conversation_id": 3, "agent": "x", "text": "small talk", "turns": turns(0)}))
    (only,) = read_dialogues(path)
    assert (only.id, len(only.turns), only.labels) == ("3", 3, {"agent": "x", "text": "small talk"})


def test_arrays_are_read_a_value_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([ours(i % 2) for i in range(50)], indent=3, ensure_ascii=False))
    whole = list(read_dialogues(path))
    for size in (1, 7, 100):
        monkeypatch.setattr("palaver.readers.rows._CHUNK", size)
        assert list(read_dialogues(path)) == whole


WRONG: dict[str, tuple[bytes, str]] = {
    "a.png": (b"\x89PNG\r\n\x1a\n\0\0\0", "is a picture"),
    "b.jsonl": (b"\x89PNG\r\n\x1a\n\0\0\0", "is a picture"),
    "c.pdf": (b"%PDF-1.7\n", "is a PDF"),
    "d.xlsx": (b"PK\x03\x04\0\0", "office document"),
    "e.json": (b'[{"id": "a", "turns": [{"speaker": "u", "te', "entry 1: not JSON"),
    "f.json": (b'{"id": "a",\n "turns": [\n', "line 1: not JSON"),
    "g.json": (b"[" * 100_000, "too deep"),
    "h.jsonl": (b'{"a": ' * 50_000, "too deep"),
    "i.csv": (b"item,value\nx,3\n", "row 2"),
    "j.jsonl": (b'{"foo": 1}\n' * 30, "30 mistakes"),
    "k.jsonl": (b"3\n", "line 1: expected an object"),
    "l.json": (b"[]", "in it"),
    "m.parquet": (b"PAR1 no", "not a Parquet file"),
    "n.csv": (b"", "is empty"),
    "o.jsonl": (b"\xff\xfe", "in it"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("read", [read_dialogues, read_responses])
def test_wrong_files_give_one_clear_error(read: Callable[[Path], Any], name: str, tmp_path: Path) -> None:
    content, words = WRONG[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(read(tmp_path / name))
    assert words in str(caught.value)
    assert name in caught.value.message
    assert len(caught.value.problems) <= 11


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (("item", "system", "rater", "criterion", "value"), "ratings, which `palaver study analyse`"),
        (("id", "score", "low", "high", "system"), "scores, which `palaver compare rank`"),
        (("id", "turns", "labels"), "dialogues, which `palaver compare score`"),
        (("model", "prompt", "output"), "responses, which `palaver judge`"),
        (("rater", "platform", "state", "checks_failed"), "raters without their ratings"),
        (("id", "conversations", "exit", "pay"), "people without what they said"),
        (("id", "dialogue", "participants", "ending"), "dialogues, which `palaver compare score`"),
        (("palaver", "format", "version", "taken_at"), "a backup, which `palaver study restore`"),
        (("sender_id", "slots", "events"), "dialogues, which `palaver compare score`"),
        (("request", "response"), "dialogues, which `palaver compare score`"),
        (("id", "annotations", "data", "meta"), "ratings, which `palaver study analyse`"),
        (("question_id", "model_a", "model_b", "winner"), "ratings, which `palaver study analyse`"),
        (("colour", "shape"), ""),
    ],
)
def test_other_files_are_recognised(columns: tuple[str, ...], says: str) -> None:
    assert says in other_file(columns)
    assert bool(other_file(columns)) == bool(says)


@pytest.mark.parametrize(
    "columns", ["item,output,system,rater,criterion,value", "item,rater,criterion,value"]
)
def test_ratings_are_no_responses(columns: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(columns + "\nt1" + "," * columns.count(",") + "\n")
    for read in (read_responses, is_responses):
        with pytest.raises(DataError, match="neither responses nor dialogues") as caught:
            read(tmp_path / "people.csv")
        assert "palaver study analyse" in str(caught.value.hint)


def test_what_was_rated_may_stand_beside_its_rating(tmp_path: Path) -> None:
    (tmp_path / "rated.csv").write_text(
        "item,system,output,rater,criterion,value\nt1,a,Hello!,ann,quality,3\n"
    )
    (response,) = read_responses(tmp_path / "rated.csv")
    assert response.response == "Hello!"


def test_a_dialogue_beside_what_is_said_about_it(tmp_path: Path) -> None:
    inner = {"id": "7", "turns": [{"speaker": "user", "text": "Hi."}], "labels": {"rating": 4}}
    outer = {"id": "7", "dialogue": inner, "participants": [{"id": "secret"}], "ending": "complete"}
    (tmp_path / "conversations.jsonl").write_text(json.dumps(outer) + "\n")
    (dialogue,) = read_dialogues(tmp_path / "conversations.jsonl")
    assert (dialogue.id, dialogue.turns[0].text, dialogue.labels) == ("7", "Hi.", {"rating": 4})


@pytest.mark.parametrize(("rating", "expected"), [("4", 4), ("3.5", 3.5), ("good", "good"), (2, 2)])
def test_a_rating_is_a_number_wherever_it_can_be(rating: Any, expected: Any) -> None:
    assert labels_of({"stars": rating}, set()) == {"rating": expected}


def test_instructions_without_a_text_say_nothing() -> None:
    source = [{"role": "system", "content": None}, {"role": "assistant", "content": "Hi!"}]
    turns = [{"speaker": "system", "text": None}, {"speaker": "assistant", "text": "Hi!"}]
    assert take_prompt(source, turns, Counter()) == (turns[1:], "")
