"""Television scripts: one dialogue a scene."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from palaver.corpora.catalogue import corpus, read_corpus
from palaver.corpora.scripts import main_characters
from palaver.errors import DataError, UserError
from palaver.schema import Dialogue, Turn

HEADER = "show,season,episode,scene,speaker,text\n"


def put(folder: Path, rows: str, name: str = "friends_turns.csv") -> Path:
    path = folder / name
    path.write_bytes(
        gzip.compress((HEADER + rows).encode()) if name.endswith("gz") else (HEADER + rows).encode()
    )
    return path


def test_a_dialogue_is_a_scene(samples: Path) -> None:
    reader = read_corpus("friends", root=samples)
    found = list(reader)
    assert [d.id for d in found] == [
        "friends-s01e01-01",
        "friends-s01e01-02",
        "friends-s01e02-01",
        "friends-s10e02-01",
    ]
    assert found[0] == Dialogue(
        id="friends-s01e01-01",
        turns=(
            Turn(speaker="Ada", text="Is that my umbrella?"),
            Turn(speaker="Bo", text="It was raining, and yours was dry."),
            Turn(speaker="Bo", text="So I thought of us."),
        ),
        source="friends",
        labels={"show": "friends", "season": 1, "episode": 1, "scene": 1},
    )
    assert [t.speaker for t in found[1].turns] == ["Ada", "(unknown)", "#ALL#"]
    assert found[1].turns[0].text == 'He said "us" again.'
    assert found[3].turns[0].text == "Two lines\nin one turn."
    assert (reader.n_dialogues, reader.n_turns) == (4, 8)
    assert reader.notes == ("turns without a speaker, called (unknown) here: 1",)


def test_without_seasons(samples: Path) -> None:
    found = list(read_corpus("big-bang-theory", root=samples))
    assert [d.id for d in found] == ["bbt-e001-00", "bbt-e012-03"]
    assert found[1].labels == {"show": "bbt", "episode": 12, "scene": 3}
    assert found[1].source == "big-bang-theory"


def test_packed_and_by_path(samples: Path, tmp_path: Path) -> None:
    rows = (samples / "scripts/friends_turns.csv").read_text().removeprefix(HEADER)
    path = put(tmp_path, rows, "any-name.csv.gz")
    turns = [d.turns for d in read_corpus("friends", root=samples)]
    assert [d.turns for d in corpus("friends").read(path)] == turns
    assert [d.turns for d in read_corpus(path)] == turns  # known by its columns


def test_a_scene_that_comes_back_and_rows_without_text_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "x,1,1,1,A,one\nx,1,1,2,A,two\nx,1,1,1,B,three\nx,1,1,1,B, \n")
    reader = read_corpus("friends", root=tmp_path)
    assert [d.id for d in reader] == ["x-s01e01-01", "x-s01e01-02", "x-s01e01-01"]
    assert reader.notes == (
        "rows without a text, left out: 1",
        "scenes whose rows do not stand together, read as several dialogues of one id: 1",
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("x,1,1,1,A,fine\nx,1,1,1,A\n", "row 3: expected 6 fields, found 5"),
        ("x,1,1,1,A,fine\nx,one,1,2,A,text\n", "row 3: season: expected a number, found 'one'"),
        ("x,1,,1,A,text\n", "row 2: expected a number of the episode"),
        ('x,1,1,1,A,"open\n', "row 2: not a CSV row"),
    ],
)
def test_a_broken_line_is_named(rows: str, said: str, tmp_path: Path) -> None:
    path = put(tmp_path, rows)
    with pytest.raises(DataError) as found:
        list(read_corpus("friends", root=tmp_path))
    assert f"{path}, {said}" in str(found.value)


def test_there_are_no_splits(samples: Path) -> None:
    with pytest.raises(UserError, match="friends has no splits"):
        read_corpus("friends", root=samples, split="train")


def test_main_characters(samples: Path) -> None:
    found = list(read_corpus("friends", root=samples))
    assert main_characters(found, min_turns=2) == ("Ada", "Bo")
    assert main_characters(found, min_turns=1) == ("Ada", "Bo", "Cy")  # neither (unknown) nor #ALL#
    assert main_characters(found) == ()


def test_the_real_scripts(shared_data: Path) -> None:
    reader = read_corpus("friends", root=shared_data)
    friends = list(reader)
    assert (reader.n_turns, reader.n_dialogues, len({d.id for d in friends})) == (61_298, 3_098, 3_098)
    assert main_characters(friends) == ("Rachel", "Ross", "Chandler", "Monica", "Joey", "Phoebe")
    counts = Counter(t.speaker for d in friends for t in d.turns)
    assert (counts["Rachel"], counts["Phoebe"], counts["(unknown)"]) == (9_307, 7_499, 276)
    theory = list(read_corpus("big-bang-theory", root=shared_data))
    assert len(main_characters(theory)) == 7
    assert sum(len(d.turns) for d in theory) == 51_475
