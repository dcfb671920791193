"""Dialogue files: what is written is read back, in every format, and what is wrong is found in its row."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import palaver
from palaver import files
from palaver.errors import DataError, UserError
from palaver.readers import read_dialogues, write_dialogues
from palaver.schema import Dialogue, ReadingSet, Turn

ENDINGS = ["jsonl", "jsonl.gz", "csv", "csv.gz", "tsv", "parquet"]
each_ending = pytest.mark.parametrize("ending", ENDINGS)


def put(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def dialogue(id: str = "d", *texts: str, **fields: Any) -> Dialogue:
    turns = tuple(Turn(speaker="ab"[i % 2], text=text) for i, text in enumerate(texts))
    return Dialogue(id=id, turns=turns, **fields)


@each_ending
@given(drawn=st.lists(st.from_type(Dialogue), min_size=1, max_size=4), twice=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_written_is_read_back(
    ending: str, drawn: list[Dialogue], twice: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = drawn + drawn[-1:] * twice
    path = tmp_path_factory.mktemp("back") / f"t.{ending}"
    assert write_dialogues(iter(written), path) == len(written)
    reader = read_dialogues(path)
    back = list(reader)
    assert back == written
    assert [repr(d.labels) for d in back] == [repr(d.labels) for d in written]  # 1, 1.0 and true are equal
    assert [[repr(t.labels) for t in d.turns] for d in back] == [
        [repr(t.labels) for t in d.turns] for d in written
    ]
    assert reader.n_dialogues == len(written)
    assert reader.tally["dialogues with the id of an earlier one"] == len(written) - len(
        {d.id for d in written}
    )
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@given(drawn=st.lists(st.from_type(Dialogue), min_size=1, max_size=3), chunk=st.integers(1, 50))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_reading_does_not_depend_on_where_chunks_end(
    ending: str, drawn: list[Dialogue], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("chunks") / f"t.{ending}"
    write_dialogues(drawn, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_CHUNK", chunk)
        assert list(read_dialogues(path)) == drawn


@each_ending
def test_all_that_belongs_to_a_whole_dialogue_survives(ending: str, tmp_path: Path) -> None:
    silent = dialogue(
        "d",
        "x",
        "y",
        speakers=("silent", "b", "a"),
        source="s|",
        labels={"split": "test", "n": 1, "no": None},
        knowledge=(ReadingSet(id="r", configuration="B"),),
    )
    empty = Dialogue(id="e", turns=(), speakers=("waits",), knowledge=())
    path = tmp_path / f"t.{ending}"
    write_dialogues([silent, empty, empty], path)
    assert list(read_dialogues(path)) == [silent, empty, empty]


@each_ending
def test_long_texts_and_many_turns(ending: str, tmp_path: Path) -> None:
    long = dialogue("long", "x" * 300_000, *map(str, range(3000)))
    path = tmp_path / f"t.{ending}"
    write_dialogues([long], path)
    assert list(read_dialogues(path)) == [long]


@each_ending
def test_nothing_to_write_is_an_error_and_leaves_nothing(ending: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no dialogues to write"):
        write_dialogues([], tmp_path / f"t.{ending}")
    assert os.listdir(tmp_path) == []


@each_ending
def test_an_error_while_writing_leaves_the_old_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    write_dialogues([dialogue("old", "x")], path)
    before = path.read_bytes()

    def breaks() -> Iterator[Dialogue]:
        yield dialogue("new", "y")
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        write_dialogues(breaks(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@each_ending
def test_a_file_can_be_rewritten_from_itself(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    made = [dialogue(str(i), "x", "y") for i in range(2500)]
    write_dialogues(made, path)
    assert write_dialogues((d for d in read_dialogues(path) if int(d.id) % 2), path) == 1250
    assert list(read_dialogues(path)) == made[1::2]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_reading_and_writing_go_through_constant_memory(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK", 1 << 16)
    path = tmp_path / f"t.{ending}"

    def peak_of(count: int) -> int:
        tracemalloc.start()
        write_dialogues((dialogue(str(i), "x" * 200, "y" * 200) for i in range(count)), path)
        assert sum(1 for _ in read_dialogues(path)) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_of(10)  # imports
    small, large = peak_of(2000), peak_of(6000)
    assert large < small + 4000 * 250  # ids are remembered; texts, of 400 bytes a dialogue and more, are not


def test_the_format_must_be_in_the_name(tmp_path: Path) -> None:
    for name in ("t", "t.txt", "t.xml", "t.parquet.gz"):
        with pytest.raises(UserError, match="cannot"):
            write_dialogues([dialogue("d", "x")], tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_public_names_lead_here() -> None:
    assert palaver.read_dialogues is read_dialogues
    assert palaver.write_dialogues is write_dialogues


# --- what is wrong ---------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        list(read_dialogues(path))
    return str(caught.value)


GOOD = '{"id": "g", "turns": [{"speaker": "a", "text": "x"}]}\n'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 3: "),
        ("[]", "line 3: expected an object or a list of turns, found list"),
        ("[1]", "line 3: expected an object or a list of turns, found list"),
        ("null", "line 3: expected an object or a list of turns, found NoneType"),
        ("x" * 100, "line 3: not JSON"),
        ("{}", "line 3: there are no turns; found nothing"),
        ('{"id": "d", "turn": 3}', "line 3: there are no turns (did you mean 'turn'?); found id, turn"),
        ('{"id": "", "turns": []}', "line 3: id: "),
        ('{"id": true, "turns": []}', "line 3: id: "),
        ('{"id": "d", "turns": [], "labels": [1]}', "line 3: labels: "),
        (
            '{"id": "d", "turns": [{"speaker": "a", "text": "x"}, {"speaker": "a"}]}',
            "line 3: turns[2].text: ",
        ),
        (
            '{"id": "d", "turns": [{"speaker": "a", "text": "x"}], "speakers": ["b"]}',
            "not among the speakers",
        ),
        ('{"id": "d", "turns": [{"speaker": "a", "text": "\\ud800"}]}', "line 3: "),
        ('{"id": "d", "turns": [{"s": "a"}]}', "line 3: turns[1].text"),
        ('{"id": "d", "turns": [{"t": "x"}]}', "line 3: turns[1].speaker"),
        ('{"id": "d", "turns": [{"t": "x", "s": "a"}, 5]}', "line 3: turns[2]: "),
        ('{"id": "d", "turns": [], "labels": {"a": NaN}}', "line 3: labels.a"),
        ('{"split": "x", "turns": 5, "id": "d"}', "line 3: there are no turns"),
        ('{"a": ' * 50_000, "line 3: "),
    ],
    ids=lambda v: v[:40],
)
def test_wrong_lines_are_named(line: str, words: str, tmp_path: Path) -> None:
    message = refused(put(tmp_path / "t.jsonl", GOOD + "\n" + line + "\n" + GOOD))
    assert words in message
    assert "t.jsonl, line 3: " in message


def test_all_mistakes_of_a_line_are_listed(tmp_path: Path) -> None:
    line = '{"id": "", "turns": [{"speaker": "", "text": "x"}, {"speaker": "a", "text": 1}], "x": 1}'
    with pytest.raises(DataError) as caught:
        list(read_dialogues(put(tmp_path / "t.jsonl", line)))
    assert [p.split(": ")[1] for p in caught.value.problems] == ["id", "turns[1].speaker", "turns[2].text"]
    assert caught.value.hint.startswith("expected one dialogue a row")
    assert 'found {"id": "", "turns"' in caught.value.hint


def test_mistakes_come_together_after_the_last_row(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", GOOD + "{\n" * 7 + "{}\n" * 7 + GOOD)
    with pytest.raises(DataError) as caught:
        list(read_dialogues(path))
    assert caught.value.message == f"{path}: 14 mistakes, so it cannot be read"
    assert [p.split(":")[0] for p in caught.value.problems[:-1]] == [f"line {n}" for n in range(2, 12)]
    assert caught.value.problems[-1] == "… and 4 more"
    lenient = read_dialogues(path, skip_bad=True)
    assert [number for number, _ in lenient.numbered()] == [1, 16]
    assert lenient.tally["rows that are no dialogues"] == 14
    assert "rows that are no dialogues: 14" in lenient.notes


def test_a_file_of_something_else_is_not_read_to_its_end(tmp_path: Path) -> None:
    reader = read_dialogues(put(tmp_path / "t.jsonl", '{"id": "", "turns": []}\n' * 5000))
    with pytest.raises(DataError):
        list(reader)
    assert len(reader.problems) == 1000


def test_what_comes_before_a_mistake_is_given(tmp_path: Path) -> None:
    reader = read_dialogues(put(tmp_path / "t.jsonl", GOOD + GOOD + "{"))
    for _ in range(2):  # it can be gone through again, and counts anew
        dialogues = iter(reader)
        assert next(dialogues).id == "g"
        assert next(dialogues).id == "g"
        with pytest.raises(DataError, match="line 3"):
            next(dialogues)
        assert (reader.n_dialogues, reader.tally["dialogues with the id of an earlier one"]) == (2, 1)
        assert reader.notes[0] == "dialogues with the id of an earlier one: 1"


HEADER = "dialogue,turn,speaker,text,knowledge,labels,source,about\n"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("d,1,a,x,,,\n", "row 2: expected 8 fields, found 7"),
        ("d,1,a,x,,,,,\n", "row 2: expected 8 fields, found 9"),
        ("d,1,a,x,,,,\n\nd,3,a,x,,,,\n", "row 4: turn: expected 2 of dialogue 'd', found 3"),
        ("d,2,a,x,,,,\n", "row 2: turn: expected 1 of dialogue 'd', found 2"),
        ("d,1,a,x,,,,\ne,2,a,x,,,,\n", "row 3: turn: expected 1 of dialogue 'e', found 2"),
        ("d,one,a,x,,,,\n", "row 2: turn: expected a number, found 'one'"),
        ("d,-1,a,x,,,,\n", "row 2: turn: expected a number, found '-1'"),
        ("d,,a,x,,,,\n", "row 2: turn: expected a number"),
        (",1,a,x,,,,\n", "row 2: id: "),
        ("d,1,a,x,,,,\nd,2,,x,,,,\n", "row 3: turns[2].speaker: "),
        ("d,1,a,x,,5,,\n", "row 2: labels: expected a JSON object, found '5'"),
        ("d,1,a,x,,{,,\n", "row 2: labels: expected a JSON object"),
        ('d,1,a,x,,"{""a"": [1]}",,\n', "row 2: turns[1].labels.a"),
        ("d,1,a,x,[,,,\n", "row 2: knowledge: expected ids joined by |"),
        ("d,1,a,x,[1],,,\n", "row 2: knowledge: expected ids joined by |"),
        ("d,1,a,x,,,,[]\n", "row 2: about: expected a JSON object"),
        ('d,1,a,x,,,,"{""id"": ""e""}"\n', "row 2: about: expected speakers, labels, knowledge, found id"),
        ("d,1,a,x,,,,\nd,2,a,x,,,,{}\n", "row 3: about: expected nothing"),
        ('d,1,a,x,,,,\nd,2,a,"x\ny,,,,\n', "row 3: not a CSV row"),
        ('d,1,a,"x"y,,,,\n', "row 2: not a CSV row"),
        ("", "there is no dialogue in it"),
        ("\n\n", "there is no dialogue in it"),
    ],
)
def test_wrong_rows_are_named(rows: str, words: str, tmp_path: Path) -> None:
    assert words in refused(put(tmp_path / "t.csv", HEADER + rows))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("dialogue,text\nd,x\n", "row 2: there are no turns; found dialogue, text"),
        ("dialogue,speaker,text,text\nd,a,x,y\n", "stands twice"),
        ("\n", "is empty"),
    ],
)
def test_wrong_headers(content: str, words: str, tmp_path: Path) -> None:
    assert words in refused(put(tmp_path / "t.csv", content))


def test_what_is_no_file_is_found_at_once(tmp_path: Path) -> None:
    put(tmp_path / "talks.jsonl", GOOD)
    put(tmp_path / "empty.jsonl", "")
    for name, words in {
        "talk.jsonl": "did you mean",
        ".": "is a directory",
        "empty.jsonl": "is empty",
    }.items():
        with pytest.raises(DataError, match=words):
            read_dialogues(tmp_path / name)
    assert "there is no dialogue in it" in refused(put(tmp_path / "blank.jsonl", "\n \n"))


def test_damaged_files(tmp_path: Path) -> None:
    packed = gzip.compress((GOOD * 1000).encode())
    assert "damaged, cut short" in refused(put(tmp_path / "t.jsonl.gz", packed[:-10]))
    assert "is not a Parquet file" in refused(put(tmp_path / "t.parquet", GOOD))
    whole = tmp_path / "whole.parquet"
    write_dialogues([dialogue(str(i), os.urandom(20).hex()) for i in range(500)], whole)
    raw = whole.read_bytes()
    assert "damaged" in refused(put(tmp_path / "x.parquet", raw[:60] + b"\xff" * 3000 + raw[3060:]))


# --- files made elsewhere --------------------------------------------------------------------------------


def test_the_plain_layout(tmp_path: Path) -> None:
    rows = [
        {
            "id": "1",
            "split": "train",
            "topic": ["a", "b"],
            "rating": 2,
            "turns": [{"s": "A", "t": "hi", "doc": 0}, {"s": "B", "t": ""}],
        },
        {"id": "2", "turns": [{"s": "A", "t": "x", "act": {"k": 1}}]},
        {"id": "3", "split": "test", "turns": []},
        {"id": "4", "turns": [{"speaker": "A", "text": "the other layout"}]},
    ]
    path = put(tmp_path / "t.jsonl", "\n".join(json.dumps(row) for row in rows))
    expected = [
        Dialogue(
            id="1",
            turns=(Turn(speaker="A", text="hi", labels={"doc": 0}), Turn(speaker="B", text="")),
            labels={"split": "train", "topic": '["a", "b"]', "rating": 2},
        ),
        Dialogue(id="2", turns=(Turn(speaker="A", text="x", labels={"act": '{"k": 1}'}),)),
        Dialogue(id="3", turns=(), labels={"split": "test"}),
        Dialogue(id="4", turns=(Turn(speaker="A", text="the other layout"),)),
    ]
    assert list(read_dialogues(path)) == expected
    pq.write_table(pa.Table.from_pylist(rows[:1]), tmp_path / "t.parquet")
    assert list(read_dialogues(tmp_path / "t.parquet")) == expected[:1]


@pytest.mark.parametrize(
    "content",
    [
        "dialogue,speaker,text\nd,a,x\nd,b,y\ne,a,z\n",
        "text;speaker;dialogue\nx;a;d\ny;b;d\nz;a;e\n",
        "dialogue\tturn\tspeaker\ttext\nd\t0\ta\tx\nd\t1\tb\ty\ne\t0\ta\tz\n",
        "\ufeffdialogue,turn,speaker,text\r\nd,1,a,x\r\nd,2,b,y\r\n\r\ne,1,a,z",
        ",dialogue,speaker,text,\n0,d,a,x,\n1,d,b,y,\n2,e,a,z,\n",
        "\n\ndialogue,speaker,text\rd,a,x\rd,b,y\re,a,z\r",
    ],
)
def test_simple_tables_from_elsewhere(content: str, tmp_path: Path) -> None:
    assert list(read_dialogues(put(tmp_path / "t.csv", content))) == [
        dialogue("d", "x", "y"),
        dialogue("e", "z"),
    ]
    assert list(read_dialogues(put(tmp_path / "u.csv", content.encode("utf-16"))))


def test_further_columns_become_labels(tmp_path: Path) -> None:
    content = 'dialogue,speaker,text,mood,labels\nd,a,x,glad,"{""n"": 1}"\nd,b,y,,\n'
    (found,) = read_dialogues(put(tmp_path / "t.csv", content))
    assert [dict(turn.labels) for turn in found.turns] == [{"mood": "glad", "n": 1}, {}]


def test_two_dialogues_of_one_id_one_after_the_other(tmp_path: Path) -> None:
    reader = read_dialogues(
        put(tmp_path / "t.csv", "dialogue,turn,speaker,text\nd,1,a,x\nd,1,a,y\nd,2,a,z\n")
    )
    assert [len(found.turns) for found in reader] == [1, 2]
    assert reader.tally["dialogues with the id of an earlier one"] == 1


def test_rows_of_other_sources_are_other_dialogues(tmp_path: Path) -> None:
    content = "dialogue,speaker,text,source\nd,a,x,one\nd,a,y,two\n"
    assert [d.source for d in read_dialogues(put(tmp_path / "t.csv", content))] == ["one", "two"]


def test_encodings_are_noted(tmp_path: Path) -> None:
    content = "dialogue,speaker,text\nd,a,é\n".encode() + "d,b,é\n".encode("cp1252")
    reader = read_dialogues(put(tmp_path / "t.csv", content))
    (only,) = reader
    assert [turn.text for turn in only.turns] == ["é", "é"]
    assert reader.notes == ("lines that were not UTF-8, read as Windows-1252: 1",)


def test_zipped(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("talks.jsonl", GOOD)
    assert [d.id for d in read_dialogues(tmp_path / "t.zip")] == ["g"]


def test_parquet_from_elsewhere_may_leave_things_out(tmp_path: Path) -> None:
    rows = [
        {"id": "d", "turns": [{"speaker": "a", "text": "x"}, {"speaker": "b", "text": "y"}], "source": None}
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert list(read_dialogues(tmp_path / "t.parquet")) == [dialogue("d", "x", "y")]
    for extra, words in [
        ({"labels": "{"}, "row 1: labels: expected JSON, found '{'"),
        ({"labels": "[]"}, "row 1: labels: "),
        ({"turns": "["}, "row 1: turns: expected JSON"),
    ]:
        pq.write_table(pa.Table.from_pylist([{**rows[0], **extra}]), tmp_path / "t.parquet")
        assert words in refused(tmp_path / "t.parquet")


# --- what others see -------------------------------------------------------------------------------------


def test_parquet_has_plain_types(tmp_path: Path) -> None:
    """Lists of structs of text, as Hugging Face `datasets` writes its own; other readers agree."""
    path = tmp_path / "t.parquet"
    write_dialogues([dialogue(str(i), "x", "y", labels={"n": i}) for i in range(2500)], path)
    schema = pq.read_schema(path)
    text, texts = pa.large_string(), pa.large_list(pa.large_string())
    turn = pa.struct({"speaker": text, "text": text, "knowledge": texts, "labels": text})
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "id": text,
        "turns": pa.large_list(turn),
        "speakers": texts,
        "source": text,
        "knowledge": text,
        "labels": text,
    }
    frame = pl.read_parquet(path)
    assert frame["turns"].list.len().to_list() == [2] * 2500
    assert json.loads(frame["labels"][7]) == {"n": 7}
    assert json.loads(frame["turns"][0][0]["labels"]) == {}
    assert frame["knowledge"].null_count() == 2500


def test_csv_is_read_by_others(tmp_path: Path) -> None:
    write_dialogues([dialogue("d", "one\ntwo", 'say "x"'), Dialogue(id="e", turns=())], tmp_path / "t.csv")
    frame = pl.read_csv(tmp_path / "t.csv")
    assert frame.columns == ["dialogue", "turn", "speaker", "text", "knowledge", "labels", "source", "about"]
    assert frame["text"].to_list() == ["one\ntwo", 'say "x"', None]
    assert frame["turn"].to_list() == [1, 2, None]


def test_ids_are_joined_where_that_can_be_undone(tmp_path: Path) -> None:
    cases = {
        ("f1", "f2"): "f1|f2",
        ("f",): "f",
        (): "",
        ("a|b",): '["a|b"]',
        ("",): '[""]',
        ("[", "b"): '["[", "b"]',
    }
    turns = tuple(Turn(speaker="a", text="", knowledge=ids) for ids in cases)
    write_dialogues([Dialogue(id="d", turns=turns)], tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["knowledge"] for row in csv.DictReader(file)] == list(cases.values())


def test_tsv_has_tabs(tmp_path: Path) -> None:
    write_dialogues([dialogue("d", "a\tb,c")], tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_bytes().startswith(b"dialogue\tturn\t")


def test_json_lines_leave_out_what_is_not_there(tmp_path: Path) -> None:
    write_dialogues([dialogue("d", "é")], tmp_path / "t.jsonl")
    assert (tmp_path / "t.jsonl").read_text(encoding="utf-8") == (
        '{"id":"d","turns":[{"speaker":"a","text":"é"}],"speakers":["a"]}\n'
    )


# --- real data -------------------------------------------------------------------------------------------


def test_the_shared_dialogues(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "dialogue"
    if not folder.is_dir():
        pytest.skip(f"real data needed: {folder} is missing")
    counted = {
        "dealornodeal.jsonl.gz": (6087, 0),
        "commonsense_dialogues.jsonl.gz": (2315, 0),
        "taskmaster4.jsonl.gz": (3710, 0),
        "cmu_dog.jsonl.gz": (4221, 110),
    }
    for name, (n_dialogues, n_duplicates) in counted.items():
        reader = read_dialogues(folder / name)
        splits = {found.labels["split"] for found in reader}
        assert (reader.n_dialogues, reader.tally["dialogues with the id of an earlier one"]) == (
            n_dialogues,
            n_duplicates,
        ), name
        assert splits <= {"train", "dev", "valid", "validation", "test"}
    first = [found for found, _ in zip(read_dialogues(folder / "cmu_dog.jsonl.gz"), range(50), strict=False)]
    for ending in ENDINGS:
        write_dialogues(first, tmp_path / f"t.{ending}")
        assert list(read_dialogues(tmp_path / f"t.{ending}")) == first
