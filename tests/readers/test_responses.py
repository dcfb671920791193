"""Responses: what `generate` writes, tables of others, one column a system, and files of millions of rows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import DataError
from palaver.readers import is_responses, read_responses, responses
from palaver.readers.responses import ResponseTable
from palaver.schema import Response, Turn


def put(path: Path, content: Any) -> Path:
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_text(content, newline="")
    return path


def generated(**more: Any) -> dict[str, Any]:
    row = {"id": "c1", "system": "A", "speaker": None, "ocean": None, "context": "Hi", "response": "Ho"}
    return {**row, "logprob": -1.5, **more}


@given(drawn=st.lists(st.from_type(Response), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_json_lines_are_read_back(drawn: list[Response], tmp_path_factory: pytest.TempPathFactory) -> None:
    unique = list({(r.id, r.system, r.speaker): r for r in drawn}.values())
    path = tmp_path_factory.mktemp("back") / "t.jsonl"
    for exclude in (True, False):
        path.write_text(
            "".join(r.model_dump_json(exclude_defaults=exclude) + "\n" for r in unique), newline=""
        )
        assert list(read_responses(path)) == unique


def test_rows_of_generate(tmp_path: Path) -> None:
    history = [{"speaker": "Ann", "text": "Hi"}, {"speaker": "Bob", "text": "Well?"}]
    rows = [
        generated(),
        generated(system="B", context=history, reference="Hm", knowledge="Cats purr.", ocean=[1, 2, 3, 4, 5]),
        generated(id="c2", speaker="Joey", response=None, skipped="too long"),
    ]
    path = put(tmp_path / "r.jsonl", rows)
    reader = read_responses(path)
    for _ in range(2):
        first, second, third = reader
    assert first.context == (Turn(speaker="user", text="Hi"),)
    assert [turn.speaker for turn in second.context] == ["Ann", "Bob"]
    assert (second.reference, second.knowledge, second.ocean) == ("Hm", "Cats purr.", (1, 2, 3, 4, 5))
    assert (third.judged_system, third.response, third.labels) == ("A/Joey", None, {"skipped": "too long"})
    dialogue = second.as_dialogue()  # Ann answers: she is the system
    assert [turn.speaker for turn in dialogue.turns] == ["system", "user", "system"]
    assert dialogue.turns[-1] == Turn(speaker="system", text="Ho")
    assert third.as_dialogue().labels["system"] == "A/Joey"
    assert reader.notes == ()
    assert is_responses(path)


LONG = [
    {"model": "A", "prompt": "Hi", "output": "x"},
    {"model": "B", "prompt": "Hi", "output": ""},
    {"model": "A", "prompt": "Bye", "output": "z"},
    {"model": "A", "prompt": "Hi", "output": "again"},
]


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.jsonl", "r.json"])
def test_tables_of_others(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "r.csv":
        pl.DataFrame(LONG).write_csv(path)
    elif name == "r.parquet":
        pl.DataFrame(LONG).write_parquet(path)
    else:
        path.write_text(json.dumps(LONG) if name == "r.json" else "\n".join(map(json.dumps, LONG)))
    reader = read_responses(path)
    read = list(reader)
    first = {"r.csv": "r:2"}.get(name, "r:1")
    third = {"r.csv": "r:4"}.get(name, "r:3")
    assert [(r.id, r.system, r.context[0].text, r.response) for r in read] == [
        (first, "A", "Hi", "x"),
        (first, "B", "Hi", ""),
        (third, "A", "Bye", "z"),
        (f"{first}#2", "A", "Hi", "again"),
    ]
    assert any("without an id" in note for note in reader.notes)
    assert is_responses(path)


def test_one_column_a_system(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "id,prompt,reference,topic,gpt,ours\n1,Hi,ref,x,a,b\n2,Ho,,y,c,\n")
    reader = read_responses(path)
    assert [(r.id, r.system, r.response, r.reference, r.labels["topic"]) for r in reader] == [
        ("1", "gpt", "a", "ref", "x"),
        ("1", "ours", "b", "ref", "x"),
        ("2", "gpt", "c", None, "y"),
        ("2", "ours", None, None, "y"),
    ]
    assert reader.notes == ("each of these columns is a system: gpt, ours",)
    assert is_responses(path)
    rows = [{"context": [{"role": "user", "content": "Hi"}], "gpt": "a", "ours": "b", "length": 3}]
    wide = list(read_responses(put(tmp_path / "w.jsonl", rows)))
    assert [(r.system, r.context[0].text, r.labels["length"]) for r in wide] == [
        ("gpt", "Hi", 3),
        ("ours", "Hi", 3),
    ]


def test_a_file_of_one_system(tmp_path: Path) -> None:
    path = put(
        tmp_path / "mine.csv",
        'id,history,reply,ocean,references\n1,"[""Hi"", ""Ho""]",x,"1, 2,3,4,5","[""a"", ""b""]"\n',
    )
    reader = read_responses(path)
    (only,) = reader
    assert (only.system, only.ocean, only.references) == ("mine", (1, 2, 3, 4, 5), ("a", "b"))
    assert [(t.speaker, t.text) for t in only.context] == [("user", "Hi"), ("system", "Ho")]
    assert "responses that name no system, taken as 'mine': 1" in reader.notes


def test_a_response_twice_is_an_error(tmp_path: Path) -> None:
    rows = [generated(), generated(speaker="J"), generated(response="other"), generated(speaker="J")]
    with pytest.raises(DataError) as caught:
        list(read_responses(put(tmp_path / "r.jsonl", rows)))
    assert caught.value.problems == (
        "line 3: 'A' answers 'c1' already in line 1",
        "line 4: 'A' answers 'c1' as 'J' already in line 2",
    )


def test_columns_of_other_names(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "wer,frage,antwort\nA,Hi,Ho\n")
    (only,) = read_responses(path, columns={"system": "wer", "context": "frage", "response": "antwort"})
    assert (only.system, only.response) == ("A", "Ho")
    with pytest.raises(DataError, match="columns are missing"):
        read_responses(path, columns={"system": "were"})


def test_a_slip_in_the_name_of_a_field(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "system,prompt,response,gold\nA,Hi,Ho,Hello\n")
    for opened in (read_responses, ResponseTable.open):
        with pytest.raises(DataError, match="no field 'contxt' .did you mean 'context'"):
            opened(path, columns={"contxt": "prompt"})
    (only,) = read_responses(path, columns={"mood": "gold"})
    assert only.labels["mood"] == "Hello"
    wide = put(tmp_path / "w.csv", "prompt,x,y\nHi,Ho,Hm\n")
    assert [one.system for one in read_responses(wide, columns={"system1": "x"})] == ["y", "system1"]


def test_samples_of_lm_eval(tmp_path: Path) -> None:
    row = {"doc_id": 3, "doc": {"question": "2 + 2?"}, "target": "4", "resps": [["It is 4."]]}
    path = put(tmp_path / "samples.jsonl", [{**row, "filtered_resps": ["4"]}])
    for name, said in (("resps", "It is 4."), ("filtered_resps", "4")):
        (only,) = read_responses(path, columns={"id": "doc_id", "response": name})
        assert (only.id, only.response, only.reference) == ("3", said, "4")
    with pytest.raises(DataError, match="expected a text, found"):
        list(read_responses(put(tmp_path / "two.jsonl", [{**row, "response": ["a", "b"]}])))


def test_wrong_rows_are_named(tmp_path: Path) -> None:
    rows = [generated(), {"id": "c", "system": "A", "respons": "x"}, [1], generated(id="d", ocean=["x"]), {}]
    with pytest.raises(DataError) as caught:
        list(read_responses(put(tmp_path / "r.jsonl", rows)))
    assert [p.split(": ")[0] for p in caught.value.problems] == [f"line {n}" for n in (2, 3, 4, 5)]
    assert "did you mean 'respons'" in caught.value.problems[0]
    assert caught.value.problems[2].startswith("line 4: ocean[1]: expected a number, found 'x'")
    assert caught.value.hint.startswith("expected one response a row")
    odd = [generated(response=7, reference=5), generated(id="e", reference=["a", 5])]
    with pytest.raises(DataError) as caught:
        list(read_responses(put(tmp_path / "odd.jsonl", odd)))
    assert caught.value.problems == (
        "line 1: response: expected a text, found 7",
        "line 1: reference: expected a text or a list of texts, found 5",
        "line 2: reference: expected a text or a list of texts, found ['a', 5]",
    )


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv", "r.parquet"])
def test_columns_of_a_large_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": i, "model": "AB"[i % 2], "response": f"text {i}"} for i in range(40)]
    if name == "r.jsonl":
        put(tmp_path / name, [{**row, "id": str(row["id"])} for row in rows])
    elif name == "r.csv":
        pl.DataFrame(rows).write_csv(tmp_path / name)
    else:
        pl.DataFrame(rows).write_parquet(tmp_path / name)
    monkeypatch.setattr(responses, "SHARD", 100)
    table = pickle.loads(pickle.dumps(ResponseTable.open(tmp_path / name)))
    parts = [table.read(shard, ("id", "system", "response", "speaker")) for shard in table.shards()]
    assert (len(parts) > 1) == (name == "r.jsonl")
    read = [row for part in parts for row in part.to_dicts()]
    assert read == [
        {"id": str(i), "system": "AB"[i % 2], "response": f"text {i}", "speaker": None} for i in range(40)
    ]


def test_columns_of_odd_rows(tmp_path: Path) -> None:
    rows = [generated(ocean=[3.5, 1, 1, 1, 7]), generated(id=7)]
    table = ResponseTable.open(put(tmp_path / "r.jsonl", rows))
    (shard,) = table.shards()
    read = table.read(shard, ("id", "ocean"))
    assert read.to_dicts() == [{"id": "c1", "ocean": "3.5,1,1,1,7"}, {"id": "7", "ocean": None}]
    wide = ResponseTable.open(put(tmp_path / "w.csv", "prompt,A,B\nHi,x,y\n"))
    (shard,) = wide.shards()
    assert wide.read(shard, ("system", "response")).to_dicts() == [
        {"system": "A", "response": "x"},
        {"system": "B", "response": "y"},
    ]
