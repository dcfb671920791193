"""Pools from transcripts and from generated responses, and everything that can be wrong with them."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaver.errors import DataError, UserError
from palaver.personality.bag import Bag
from palaver.personality.pools import Choice, Pools
from palaver.personality.sources import read_pools
from palaver.readers import responses


def write_dialogues(path: Path, dialogues: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(d) + "\n" for d in dialogues))
    return path


def dialogue(number: int, *turns: tuple[str, str], **labels: Any) -> dict[str, Any]:
    said = [{"speaker": who, "text": text} for who, text in turns]
    return {"id": f"d{number}", "turns": said, "labels": labels}


def totals(pools: Pools) -> list[float]:
    """Words of each character."""
    return [float(pools.traits.of([rows], 1, rows.size, [0])[0, 0]) for rows in pools.members]


@pytest.fixture
def counting(known: SimpleNamespace) -> Any:
    """A recogniser whose first trait is the number of words; it can be sent to no other process."""

    class Words(type(known.toy)):  # type: ignore[misc]
        def score(self, totals: Any) -> Any:
            return np.repeat(totals[:, :1], 5, axis=1)

    return Words()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "friends_turns.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["show", "season", "episode", "scene", "speaker", "text"])
        for episode in range(1, 5):
            for scene in (1, 2):
                for who, text in (("Ann", "one two"), ("Bob", "three"), ("#ALL#", "hey"), ("Cy", "x")):
                    rows.writerow(["friends", 1, episode, scene, who, text])
    return path


def test_a_script_is_grouped_by_episode(script: Path, counting: Any) -> None:
    found = read_pools(
        "friends", counting, Choice(min_utterances=5, characters=("Bob", "Ann")), root=script.parent
    )
    assert found.characters == ("Bob", "Ann")
    assert (found.group_noun, found.n_groups, found.n_groups_of) == ("episode", 4, [4, 4])
    assert [rows.size for rows in found.members] == [8, 8]
    assert totals(found) == [8, 16]
    assert dict(found.left_out) == {"turns of 2 other speakers": 16}
    assert list(found.hashes) == ["friends_turns.csv"]


def test_all_who_say_enough_but_not_everybody_at_once(script: Path, counting: Any) -> None:
    found = read_pools(script, counting, Choice(min_utterances=8))
    assert found.characters == ("Ann", "Bob", "Cy")  # equally talkative: by name; #ALL# is nobody


def test_dialogues_are_groups_of_their_own(tmp_path: Path, counting: Any) -> None:
    path = write_dialogues(
        tmp_path / "d.jsonl",
        [
            dialogue(i, ("A", "hello there"), ("B", "oh"), ("A", " "), mood=("mad", "sad")[i % 2])
            for i in range(6)
        ],
    )
    found = read_pools(path, counting, Choice(min_utterances=3))
    assert (found.group_noun, found.n_groups) == ("dialogue", 6)
    assert dict(found.left_out) == {"empty turns": 6}
    by_mood = read_pools(path, counting, Choice(by="mood", min_utterances=3))
    assert by_mood.characters == ("mad", "sad")
    with pytest.raises(UserError, match="no turn has a label 'moood' .did you mean 'mood'"):
        read_pools(path, counting, Choice(by="moood"))


def test_one_name_two_spellings(tmp_path: Path, counting: Any) -> None:
    path = write_dialogues(
        tmp_path / "d.jsonl",
        [
            dialogue(i, ("Rachel", "hi"), ("Ross", "hi"), ("rachel ", "hi"), ("Rachael", "hm"))
            for i in range(4)
        ],
    )
    with pytest.raises(DataError, match="spelled in two ways") as caught:
        read_pools(path, counting, Choice(min_utterances=3))
    assert caught.value.problems == ("'Rachel' (4) and 'rachel ' (4)",)
    found = read_pools(path, counting, Choice(characters=("Rachel", "Ross")))
    assert any("'Rachael' (4 utterances) is left out: if that is Rachel" in note for note in found.notes)
    joined = read_pools(
        path,
        counting,
        Choice(characters=("Rachel", "Ross"), rename={"rachel ": "Rachel", "Rachael": "Rachel"}),
    )
    assert [rows.size for rows in joined.members] == [12, 4]
    assert joined.notes == ()


def test_nobody_and_one_and_too_few(tmp_path: Path, counting: Any) -> None:
    path = write_dialogues(tmp_path / "d.jsonl", [dialogue(i, ("Ann", "a"), ("Bob", "b")) for i in range(9)])
    with pytest.raises(DataError, match="with 2,000 utterances or more, found 0") as caught:
        read_pools(path, counting)
    assert caught.value.problems == ("Ann: 9", "Bob: 9")
    assert "--min-utterances" in caught.value.hint
    with pytest.raises(DataError, match="nobody of that name") as caught:
        read_pools(path, counting, Choice(characters=("Anne", "Bob")))
    assert caught.value.problems == ("'Anne' (did you mean 'Ann'?)",)
    with pytest.raises(DataError, match="2 or more characters, found 1"):
        read_pools(path, counting, Choice(characters=("Bob",)))
    with pytest.raises(UserError, match="drop_common= is for generated responses"):
        read_pools(path, counting, Choice(drop_common=3))
    with pytest.raises(UserError, match="did you mean 'friends'"):
        read_pools("freinds", counting)


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def generated(n: int = 30, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"c{i}", "system": "s", "speaker": who, "ocean": None, "response": f"{who} says {i} [ok]"}
        | more
        for i in range(n)
        for who in ("Ann", "Bob")
    ]


def test_responses_are_grouped_by_context(tmp_path: Path, counting: Any) -> None:
    found = read_pools(write_rows(tmp_path / "r.jsonl", generated()), counting)
    assert found.characters == ("Ann", "Bob")
    assert (found.group_noun, found.n_groups, found.n_groups_of) == ("context", 30, [30, 30])
    for rows in found.members:
        assert sorted(found.group[rows].tolist()) == list(range(30))
    assert totals(found) == [120, 120]


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_shards_change_nothing(
    name: str, tmp_path: Path, known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = generated(80)
    rows[7]["response"] = None
    text = "".join(json.dumps(row) + "\n" for row in rows).rstrip("\n").encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    whole = read_pools(path, known.toy, engine="local")
    monkeypatch.setattr(responses, "SHARD", 999)
    parts = read_pools(path, known.toy, engine="local")
    assert parts.label.tolist() == whole.label.tolist()
    assert parts.group.tolist() == whole.group.tolist()
    assert (parts.traits.counts != whole.traits.counts).nnz == 0
    assert (parts.words["words"].counts != whole.words["words"].counts).nnz == 0
    assert parts.left_out == whole.left_out == (("empty responses", 1),)


def test_odd_rows_are_read_like_plain_ones(tmp_path: Path, counting: Any) -> None:
    plain = read_pools(write_rows(tmp_path / "a.jsonl", generated(9)), counting)
    rows = [{**row, "id": int(row["id"][1:])} for row in generated(9)]  # numbers: not for Arrow's reader
    odd = read_pools(write_rows(tmp_path / "b.jsonl", rows), counting)
    renamed = read_pools(
        write_rows(
            tmp_path / "c.jsonl", [{**row, "speaker": row["speaker"].lower()} for row in generated(9)]
        ),
        counting,
        Choice(rename={"ann": "Ann", "bob": "Bob"}),
    )
    for other in (odd, renamed):
        assert other.characters == plain.characters
        assert other.label.tolist() == plain.label.tolist()
        assert [np.bincount(other.group[rows]).tolist() for rows in other.members] == [[1] * 9] * 2
        assert (other.traits.counts != plain.traits.counts).nnz == 0


def test_personalities_without_names(tmp_path: Path, counting: Any) -> None:
    rows = [
        {"id": i, "system": "p", "speaker": None, "ocean": ocean, "response": "yes"}
        for i in range(5)
        for ocean in ([6.5, 3.5, 3.5, 3.5, 3.5], [3.5, 3.5, 3.5, 3.5, 6.5])
    ]
    found = read_pools(write_rows(tmp_path / "r.jsonl", rows), counting)
    assert found.characters == ("3.5,3.5,3.5,3.5,6.5", "6.5,3.5,3.5,3.5,3.5")


def test_several_systems(tmp_path: Path, counting: Any) -> None:
    rows = [*generated(5), *generated(5, system="t")]
    path = write_rows(tmp_path / "r.jsonl", rows)
    with pytest.raises(DataError, match="responses of 2 systems: s, t"):
        read_pools(path, counting)
    assert read_pools(path, counting, Choice(by="system")).characters == ("s", "t")
    one = read_pools(path, counting, Choice(system="t"))
    assert one.label.size == 10
    assert dict(one.left_out) == {"responses of other systems than t": 10}
    with pytest.raises(DataError, match="no response to look at") as caught:
        read_pools(path, counting, Choice(system="u"))
    assert "s, t" in caught.value.hint
    with pytest.raises(DataError, match="responses without 'speker': 20") as caught:
        read_pools(write_rows(tmp_path / "one.jsonl", generated(10)), counting, Choice(by="speker"))
    assert "did you mean 'speaker'" in caught.value.hint


def test_responses_common_to_all_are_dropped(tmp_path: Path, counting: Any) -> None:
    rows = generated(10)
    for row in rows[:8]:
        row["response"] = "I don't know."
    rows[8]["response"] = "Ann only"
    found = read_pools(write_rows(tmp_path / "r.jsonl", rows), counting, Choice(drop_common=3))
    assert dict(found.left_out) == {"responses among the 1 most frequent ones common to all": 8}
    assert "1 responses are common to all, 3 were to be dropped" in found.notes
    assert found.label.size == 12


def test_tables_and_rows_without_ids(tmp_path: Path, counting: Any) -> None:
    path = tmp_path / "r.csv"
    path.write_text("speaker,response\n" + "Ann,hello you\nBob,hi\n" * 4 + ",lost\nAnn,\n")
    found = read_pools(path, counting)
    assert (found.group_noun, found.n_groups) == ("response", 8)
    assert dict(found.left_out) == {"responses without 'speaker'": 1, "empty responses": 1}
    assert any("no id" in note for note in found.notes)


def test_broken_rows_say_where(tmp_path: Path, counting: Any) -> None:
    path = write_rows(tmp_path / "r.jsonl", generated(3))
    path.write_text(path.read_text() + '{"response": \n')
    with pytest.raises(DataError, match="line 7: not JSON"):
        read_pools(path, counting)
    good = "\n".join(path.read_text().split("\n")[:6])
    path.write_text(good + "\n[1]\n")
    with pytest.raises(DataError, match="line 7: expected an object, found list"):
        read_pools(path, counting)
    path.write_text(good + '\n{"answer": 1, "speaker": "Ann", "system": "s"}\n')
    assert dict(read_pools(path, counting).left_out) == {"empty responses": 1}


def test_some_of_the_characters_of_a_file(tmp_path: Path, counting: Any) -> None:
    rows = [*generated(5), *({**row, "speaker": "Cy"} for row in generated(5)[::2])]
    found = read_pools(write_rows(tmp_path / "r.jsonl", rows), counting, Choice(characters=("Cy", "Ann")))
    assert found.characters == ("Cy", "Ann")
    assert dict(found.left_out) == {"responses of others": 5}
    assert found.traits.counts.shape[0] == 10


def test_a_recogniser_that_cannot_count_keeps_the_texts(tmp_path: Path) -> None:
    whole = SimpleNamespace(
        name="whole", count=None, score_texts=lambda texts: [[len(t), 1, 1, 1, 1] for t in texts]
    )
    found = read_pools(
        write_rows(tmp_path / "r.jsonl", generated(4)), whole, Choice(characters=("Bob", "Ann"))
    )
    assert found.recogniser == "whole"
    assert len(found.traits.texts) == 8
    assert found.traits.of([found.members[0]], 1, 4, [0])[0, 0] == 4 * len("Bob says 0 [ok]") + 3


def test_bags_hold_the_most_frequent_words() -> None:
    texts = ["The cat, the CAT and the dog.", "It’s the dog! Don't you know the dog?", "dog"]
    bag = Bag(texts, 3)
    assert bag.words == ("the", "dog", "cat")
    assert bag.content_words == ("dog", "cat", "know")
    vectors = bag.vectors(bag.count(texts))
    rows = [np.arange(3)]
    assert vectors["words"].of(rows, 1, 3, [0]).tolist() == [[5, 4, 2]]
    assert vectors["words without stop words"].of(rows, 1, 3, [0]).tolist() == [[4, 2, 1]]


def test_without_ids_a_context_is_a_group(tmp_path: Path, counting: Any) -> None:
    path = tmp_path / "r.csv"
    path.write_text(
        "speaker,prompt,output\n" + "".join(f"Ann,q{i},hello you\nBob,q{i},hi\n" for i in range(4))
    )
    found = read_pools(path, counting)
    assert (found.group_noun, found.n_groups) == ("context", 4)


def test_columns_of_ones_own(tmp_path: Path, counting: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("chat,who,said\n" + "".join(f"{i},Ann,hello\n{i},Bob,hi\n" for i in range(3)))
    columns = {"dialogue": "chat", "speaker": "who", "text": "said"}
    found = read_pools(path, counting, Choice(min_utterances=2), columns=columns)
    assert (found.characters, found.n_groups) == (("Ann", "Bob"), 3)
