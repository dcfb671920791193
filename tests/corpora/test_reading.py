"""What the loaders share: the place of every mistake, splits, merged turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.corpora.reading import (
    alternate,
    build,
    csv_rows,
    field,
    in_split,
    load_json,
    merge_turns,
    normal_split,
    split_labels,
    text_lines,
)
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue, Turn


@pytest.mark.parametrize(
    ("name", "normal"),
    [("dev", "valid"), ("Validation", "valid"), ("val", "valid"), ("train", "train"), ("valid_rare",) * 2],
)
def test_splits_have_one_name(name: str, normal: str) -> None:
    assert normal_split(name) == normal
    assert split_labels(name)["split"] == normal
    assert split_labels(name).get("original_split", normal) == name


def test_a_split_may_be_a_part_of_the_wanted_one() -> None:
    assert in_split("valid_rare", "valid")
    assert in_split("valid_rare", "valid_rare")
    assert not in_split("valid", "valid_rare")
    assert not in_split("validity", "valid")
    assert not in_split(None, "valid")
    assert in_split(None, None)


def test_a_dialogue_built_from_plain_values_is_the_one_of_the_constructors() -> None:
    turns = [{**turn, "labels": {"n": 1}} for turn in alternate(["x", "y", "z"], ("A", "B"), first=1)]
    built = build("d", turns, {"split": "train", "topic": None}, "here")
    said = tuple(Turn(speaker=s, text=t, labels={"n": 1}) for s, t in [("B", "x"), ("A", "y"), ("B", "z")])
    assert built == Dialogue(id="d", turns=said, labels={"split": "train"})
    assert (built.speakers, type(built.turns), type(built.labels)) == (
        ("B", "A"),
        tuple,
        type(said[0].labels),
    )


def test_everything_wrong_with_a_dialogue_is_said() -> None:
    with pytest.raises(DataError) as found:
        build("", [{"speaker": "A", "text": 3}], {}, "f.json, dialogue 7")
    assert found.value.message == "f.json, dialogue 7: this is not a dialogue"
    assert [p.partition(":")[0] for p in found.value.problems] == ["id", "turns[1].text"]


@given(st.from_type(Dialogue))
@settings(max_examples=50, deadline=None)
def test_merging_keeps_all_words_and_leaves_nobody_speaking_twice(dialogue: Dialogue) -> None:
    merged, n_joined = merge_turns(dialogue)
    assert len(merged.turns) == len(dialogue.turns) - n_joined
    assert " ".join(t.text for t in merged.turns) == " ".join(t.text for t in dialogue.turns)
    assert all(a.speaker != b.speaker for a, b in zip(merged.turns, merged.turns[1:], strict=False))
    assert {k for t in merged.turns for k in t.knowledge} == {k for t in dialogue.turns for k in t.knowledge}
    assert Dialogue.model_validate(merged.model_dump()) == merged
    assert merge_turns(merged) == (merged, 0)


def test_merged_labels_are_those_all_agree_on() -> None:
    said = (
        Turn(speaker="A", text="x", labels={"doc": 1, "act": "q"}, knowledge=("k",)),
        Turn(speaker="A", text="y", labels={"doc": 1, "act": "s"}, knowledge=("k", "l")),
        Turn(speaker="B", text="z"),
    )
    merged, n_joined = merge_turns(Dialogue(id="d", turns=said))
    assert n_joined == 1
    assert merged.turns[0] == Turn(speaker="A", text="x y", labels={"doc": 1}, knowledge=("k", "l"))


def test_lines_are_numbered_and_odd_encodings_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"one\r\n\ntw\xf6\n\xe2\x80\xa6")
    tally = Tally()
    assert list(text_lines(path, tally)) == [(1, "one"), (2, ""), (3, "twö"), (4, "…")]
    assert tally == {"lines that were not UTF-8, read as Windows-1252": 1}


def test_rows_are_numbered_as_in_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"x\ny"\n\n2,z\n')
    assert list(csv_rows(path, ["a"], Tally())) == [(2, {"a": "1", "b": "x\ny"}), (4, {"a": "2", "b": "z"})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3\n", ", row 3: expected 2 fields, found 1"),
        ("a,b\n1,2,3\n", ", row 2: expected 2 fields, found 3"),
        ('a,b\n1,"2\n', ", row 2: not a CSV row"),
        ("a,c\n1,2\n", ": columns are missing"),
    ],
)
def test_a_broken_row_is_found_in_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError) as found:
        list(csv_rows(path, ["a", "b"], Tally()))
    assert f"{path}{said}" in found.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6: not JSON"),
        ('{"a": [1, 2', "line 1, column 12: not JSON"),
        ("[]", "expected an object, found list"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_broken_json_is_found_in_line_and_column(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(DataError) as found:
        load_json(path, dict)
    assert said in found.value.message
    assert str(path) in found.value.message


def test_fields_that_are_missing_or_of_another_kind(tmp_path: Path) -> None:
    record = json.loads('{"turns": 3, "textt": ""}')
    with pytest.raises(DataError, match="place: there is no 'text' .did you mean 'textt'"):
        field(record, "text", str, "place")
    with pytest.raises(DataError, match="place: turns: found int"):
        field(record, "turns", list, "place")
    with pytest.raises(DataError, match="place: expected an object, found list"):
        field([], "turns", list, "place")
