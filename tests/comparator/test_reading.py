"""Rated dialogues and pairs: both layouts, and everything that can be wrong with a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.comparator.reading import read_pairs, read_rated
from palaver.errors import DataError, UserError
from palaver.schema import Dialogue, Turn

INDEX = {name: i for i, name in enumerate("uvwxyz")}


def row(name: str, rating: Any = 3, **more: Any) -> dict[str, Any]:
    turns = [{"spk": "user", "text": "hello"}, {"spk": "bot", "text": f"i am {name}"}]
    return {"id": name, "rating": rating, "turns": turns, **more}


def write(path: Path, rows: list[Any]) -> Path:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in rows]
    text = "\n".join(lines) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["chats.jsonl", "chats.jsonl.gz"])
def test_the_layout_of_chat_exports(tmp_path: Path, name: str) -> None:
    extra = {"worker": "w1", "hit": "h1", "bot": "B", "passed_qc": False}
    rated = read_rated(write(tmp_path / name, [row("a", 1, **extra), row("b", 5)]))
    first = rated.rows[0]
    assert (first.rating, first.rater, first.group, first.system) == (1.0, "w1", "h1", "B")
    assert first.dialogue.speakers == ("user", "system")
    assert first.dialogue.labels["passed_qc"] is False
    assert rated.scale == (1.0, 5.0)
    assert rated.rows[1].rater is None
    assert rated.codes("rater").tolist() == [0, -1]
    assert rated.index == {"a": 0, "a@B": 0, "b": 1}


def test_every_shape_of_the_reader(tmp_path: Path) -> None:
    """A table with one turn a row, a JSON array of messages: what the reader takes can be trained on."""
    table = tmp_path / "t.csv"
    table.write_text(
        "dialogue,speaker,text,rating,rater,system\n"
        "a,user,hello,4,w,S\na,bot,hi,4,w,S\nb,user,hey,2,v,S\nb,bot,what,2,v,S\n"
    )
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    array = tmp_path / "m.json"
    array.write_text(json.dumps([{"id": "c", "messages": messages, "stars": 5, "model": "M"}]))
    rated = read_rated([table, array])
    assert rated.ids == ("a", "b", "c")
    assert rated.values.tolist() == [4.0, 2.0, 5.0]
    assert [row.rater for row in rated.rows] == ["w", "v", None]
    assert [row.system for row in rated.rows] == ["S", "S", "M"]
    assert all(row.dialogue.speakers == ("user", "system") for row in rated.rows)
    pairs = tmp_path / "p.csv"
    pairs.write_text("a,b,better\na,b,a\nb,c,b\n")
    assert read_pairs(pairs, rated.index).better.tolist() == [0, 2]


def test_dialogue_rows_with_labels_or_fields(tmp_path: Path) -> None:
    turns = (Turn(speaker="Ann", text="hi"), Turn(speaker="Zed-9", text="beep"))
    labelled = Dialogue(id="a", turns=turns, labels={"rating": 2, "rater": "r", "system": "s"})
    beside = json.loads(Dialogue(id="b", turns=turns).model_dump_json()) | {"rating": 4.5, "group": "g"}
    rated = read_rated(write(tmp_path / "d.jsonl", [labelled.model_dump_json(), beside]))
    assert rated.values.tolist() == [2.0, 4.5]
    assert (rated.rows[0].rater, rated.rows[0].system, rated.rows[1].group) == ("r", "s", "g")
    assert [t.speaker for t in rated.rows[0].dialogue.turns] == ["user", "system"]
    assert rated.notes == ("dialogues whose first speaker was taken for the user (2)",)


def test_the_name_we_know_decides_the_other(tmp_path: Path) -> None:
    turns = [{"speaker": "assistant", "text": "hi"}, {"speaker": "Ann", "text": "hey"}]
    rated = read_rated(write(tmp_path / "d.jsonl", [{"id": "a", "turns": turns}]), need_rating=False)
    assert [t.speaker for t in rated.rows[0].dialogue.turns] == ["system", "user"]
    assert rated.notes == ()


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    alone = row("alone") | {"turns": [{"spk": "user", "text": "a"}, {"spk": "user", "text": "b"}]}
    short = row("short") | {"turns": [{"spk": "user", "text": "a"}]}
    silent = row("silent") | {"turns": [{"spk": "user", "text": "a"}, {"spk": "bot", "text": "  "}]}
    three = row("three") | {"turns": [{"spk": s, "text": "a"} for s in ("user", "bot", "Eve")]}
    rows = [row("a", 1), row("b", 2), alone, short, silent, three, row("c", None), row("a", 1)]
    rated = read_rated(write(tmp_path / "d.jsonl", rows))
    assert rated.ids == ("a", "b")
    assert rated.dropped == {
        "only one speaker": 2,
        "one turn only": 1,
        "speakers that are not a user and a system": 1,
        "no rating": 1,
        "the same row again": 1,
    }
    assert rated.notes[0] == "turns without text, left out (1)"


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    rows = [
        row("a", 1),
        "{not json",
        "[1]",
        row("b", "four"),
        row("c", "True"),
        {"id": "d", "rating": 2},
        row("e") | {"turns": [{"spk": "user", "text": 3}, {"spk": "bot", "text": "x"}]},
        row("a", 2),
        row("h") | {"labels": [1]},
    ]
    with pytest.raises(DataError) as caught:
        read_rated(write(tmp_path / "d.jsonl", rows))
    problems = caught.value.problems
    assert [int(p.split(":")[0].removeprefix("line ")) for p in problems] == list(range(2, 10))
    assert "already that of d.jsonl, line 1" in problems[6]
    assert "expected a number (or up or down), found 'four'" in problems[2]


def test_many_problems_are_cut(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_rated(write(tmp_path / "d.jsonl", ["x"] * 100))
    assert caught.value.problems[-1] == "… and 90 more"
    assert "100 mistakes" in caught.value.message


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([row("a", 3), row("b", 3)], {}, "all 2 ratings are equal (3)"),
        ([row("a", None), row("b", None)], {}, "no dialogue can be used"),
        ([row("a", 1), row("b", 9)], {"scale": (1, 5)}, "line 2: this is not a rating from 1 to 5"),
        ([row("a", -3), row("b", 1000)], {}, "no scale we know"),
        ([row("a", 1), row("b", 2)], {"scale": (5, 1)}, "from a lower to a higher"),
        ([row("a", 1), row("b", 2)], {"min_turns": 3}, "no dialogue can be used"),
        ([row("a", 1e300), row("b", 2)], {}, "line 1: this is not a rated dialogue"),
    ],
)
def test_ratings_that_cannot_be(tmp_path: Path, rows: list[Any], options: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read_rated(write(tmp_path / "d.jsonl", rows), **options)
    assert message in caught.value.message
    if options.get("scale") == (1, 5):
        assert caught.value.problems == ("line 2: the rating 9 is outside 1 to 5",)


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read_rated(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="no file of ratings"):
        read_rated([])
    (tmp_path / "blank.jsonl").write_text("\n\n")
    with pytest.raises(DataError, match="there is no dialogue in it"):
        read_rated(tmp_path / "blank.jsonl")


def test_files_are_brought_onto_the_first_scale(tmp_path: Path) -> None:
    hundred = [{**row(n), "rating100": r} for n, r in (("a", 0.0), ("b", 57.5))]
    for one in hundred:
        del one["rating"]
    paths = [write(tmp_path / "h.jsonl", hundred), write(tmp_path / "s.jsonl", [row("c", 1), row("d", 5)])]
    rated = read_rated(paths)
    assert rated.scale == (0.0, 100.0)
    assert rated.values.tolist() == [0.0, 57.5, 0.0, 100.0]
    assert rated.notes == ("s.jsonl: ratings from 1 to 5 brought onto 0 to 100",)
    with pytest.raises(DataError, match="the id 'c' is already that of s.jsonl, line 1"):
        read_rated([paths[1], write(tmp_path / "t.jsonl", [row("c", 2)])])


def test_pairs_are_read_and_odd_ones_counted(tmp_path: Path) -> None:
    rows = [
        {"a": "v", "b": "u", "better": "a"},
        {"a": "w", "b": "x", "better": "x"},
        {"a": "x", "b": "w", "better": "a"},
        {"a": "y", "b": "z", "better": "a"},
        {"a": "z", "b": "y", "better": "a"},
        {"a": "u", "b": "nobody", "better": "b"},
        {"a": "u", "b": "u", "better": "b"},
        {"a": "u", "b": "w", "better": "tie"},
        {"a": "u", "b": "w", "better": None},
    ]
    compared = read_pairs(write(tmp_path / "p.jsonl", rows), INDEX)
    assert (compared.first.tolist(), compared.second.tolist(), compared.label.tolist()) == (
        [1, 2],
        [0, 3],
        [1, -1],
    )
    assert compared.better.tolist() == [1, 3]
    assert compared.unknown == ("nobody",)
    assert compared.dropped == {
        "names a dialogue that is not there": 1,
        "a dialogue compared with itself": 1,
        "nobody could tell": 2,
        "the same comparison again": 1,
        "contradicts another comparison of the same pair": 2,
    }


def choice(context: str, a: str, b: str, value: Any, **more: Any) -> dict[str, Any]:
    """A row of a pairwise study's export."""
    pair = {"item": f"{context}|{a}|{b}", "system": a, "against": b, "value": value}
    return {**pair, "rater": "r1", "criterion": "better", "kind": "human", **more}


def test_the_ratings_of_a_pairwise_study_are_pairs(tmp_path: Path) -> None:
    index = {"c@x": 0, "c@y": 1, "c@z": 2}
    rows = [
        choice("c", "x", "y", "win"),
        choice("c", "x", "y", "loss", rater="r2"),
        choice("c", "y", "z", "tie"),
        choice("c", "y", "z", "loss") | {"context": "c"},
        choice("c", "x", "z", "win", kind="llm"),
        choice("d", "x", "z", "win"),
    ]
    path = write(tmp_path / "study.jsonl", rows)
    votes = read_pairs(path, index, every_vote=True)
    assert (votes.first.tolist(), votes.second.tolist()) == ([0, 0, 1], [1, 1, 2])
    assert votes.label.tolist() == [1, -1, -1]
    assert votes.raters == ("r1", "r2", "r1")
    assert votes.unknown == ("d@x", "d@z")
    assert votes.dropped == {
        "nobody could tell": 1,
        "a judgement that no person made": 1,
        "names a dialogue that is not there": 1,
    }
    assert len(read_pairs(path, index)) == 1  # two raters disagree about x and y
    rows[1]["criterion"] = "fluent"
    write(path, rows)
    with pytest.raises(DataError, match="several criteria: better, fluent"):
        read_pairs(path, index)
    assert len(read_pairs(path, index, criteria=["fluent"])) == 1
    with pytest.raises(DataError, match="nobody compared by dull"):
        read_pairs(path, index, criteria=["dull"])
    write(path, [choice("c", "x", "y", "better")])
    with pytest.raises(DataError, match="not a choice of a pairwise study") as caught:
        read_pairs(path, index)
    assert "expected win, tie or loss, found 'better'" in caught.value.problems[0]


def test_pairs_keep_their_raters_and_votes(tmp_path: Path) -> None:
    rows = [
        {"a": "v", "b": "u", "better": "a", "worker": "w1"},
        {"a": "v", "b": "u", "better": "b", "worker": "w2"},
    ]
    path = write(tmp_path / "p.jsonl", rows)
    assert read_pairs(path, INDEX, every_vote=True).raters == ("w1", "w2")
    with pytest.raises(DataError, match="no compared pair can be used"):
        read_pairs(path, INDEX)


def test_broken_pairs_come_at_once(tmp_path: Path) -> None:
    rows = [{"a": "u", "beter": "a"}, {"a": "u", "b": "v", "better": "c"}, "nonsense"]
    with pytest.raises(DataError) as caught:
        read_pairs(write(tmp_path / "p.jsonl", rows), INDEX)
    assert len(caught.value.problems) == 4
    assert "did you mean 'beter'?" in caught.value.problems[1]
    with pytest.raises(DataError) as caught:
        read_pairs(write(tmp_path / "r.jsonl", rows[1:2]), INDEX)
    assert "looks like" not in str(caught.value)  # it is what was wanted
    with pytest.raises(DataError, match="no compared pair can be used"):
        read_pairs(write(tmp_path / "q.jsonl", [{"a": "1", "b": "2", "better": "a"}]), INDEX)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1, max_size=30),
)
@settings(max_examples=50, deadline=None)
def test_no_pair_is_lost_uncounted(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    names = list(INDEX)
    rows = [{"a": names[i], "b": names[j], "better": "a" if k else "b"} for i, j, k in drawn]
    path = write(tmp_path_factory.mktemp("p") / "p.jsonl", rows)
    winners: dict[frozenset[str], set[str]] = {}
    for r in rows:
        winners.setdefault(frozenset((r["a"], r["b"])), set()).add(r[r["better"]])
    clear = {key: next(iter(v)) for key, v in winners.items() if len(v) == 1 and len(key) == 2}
    if not clear:
        with pytest.raises(DataError):
            read_pairs(path, INDEX)
        return
    compared = read_pairs(path, INDEX)
    pairs = zip(compared.better.tolist(), compared.worse.tolist(), strict=True)
    assert {frozenset((names[b], names[w])): names[b] for b, w in pairs} == clear
    assert len(compared) + sum(compared.dropped.values()) == len(rows)


def test_the_real_files(shared_data: Path) -> None:
    folder = shared_data / "rated"
    dev = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dev.index)
    assert (len(dev), len(pairs), dev.scale, dev.dropped) == (648, 698, (0.0, 100.0), {})
    assert (dev.values[pairs.better] > dev.values[pairs.worse]).all()
    files = [folder / f"{name}.jsonl.gz" for name in ("convai2017_humanbot", "convai2_rated")]
    # 3,498 by the count of those who say something or send an empty line; 3 of them do the latter only.
    assert len(read_rated(files, min_turns=6)) == 3495


@pytest.mark.parametrize(
    ("thumbs", "expected"),
    [
        (["up", "Down", None, "👍"], [1, 0, 1]),
        ([True, False, None, True], [1, 0, 1]),
        ([1, 0, None, 1], [1, 0, 1]),
    ],
)
def test_thumbs_are_ratings(tmp_path: Path, thumbs: list[Any], expected: list[float]) -> None:
    rows = [row(f"d{i}", thumb) for i, thumb in enumerate(thumbs)]
    rated = read_rated(write(tmp_path / "d.jsonl", rows))
    assert (rated.values.tolist(), rated.scale) == (expected, (0, 1))
    assert rated.dropped == {"no rating": 1}


def test_thumbs_and_stars_are_not_mixed(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", [row("a", 5), row("b", True), row("c", 3)])
    with pytest.raises(DataError, match="some ratings are thumbs, others numbers"):
        read_rated(path)


def test_a_scale_that_was_guessed_is_doubted_where_its_top_is_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", [row("a", 0), row("b", 5), row("c", 3)])
    assert "no rating above 5, taken for a scale from 0 to 10" in read_rated(path).notes[-1]
    assert not read_rated(path, scale=(0, 5)).notes


def test_both_ratings_of_a_preference_make_the_scale(tmp_path: Path) -> None:
    said = {
        side: [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": side}] for side in SIDES
    }
    rows = [{**said, "score_chosen": 8.5, "score_rejected": low} for low in (2, 4)]
    rated = read_rated(write(tmp_path / "p.jsonl", rows))
    assert rated.scale == (1, 10)
    assert sorted(row.rating or 0 for row in rated.rows) == [2, 4, 8.5, 8.5]
    with pytest.raises(DataError, match="2 mistakes") as caught:
        read_rated(tmp_path / "p.jsonl", scale=(1, 5))
    assert "line 1: the rating 8.5 is outside 1 to 5" in caught.value.problems[0]


SIDES = ("chosen", "rejected")


def test_a_rating_in_the_last_row_is_that_of_the_dialogue(tmp_path: Path) -> None:
    """Chat exports name the bot in its own rows only, and the stars where the talk ends."""
    path = tmp_path / "t.csv"
    path.write_text(
        "dialogue,speaker,text,system,stars\n"
        "a,user,Hi,,\na,bot,Ho,A,\na,user,Bye,,4\n"
        "b,user,Hi,,2\nb,bot,Ho,B,\nb,user,Bye,,\n"
        "c,user,Hi,,\nc,bot,Ho,B,1\nc,user,So?,,\nc,bot,No,B,5\n"
    )
    rated = read_rated(path)
    assert [(r.rating, r.system) for r in rated.rows] == [(4, "A"), (2, "B")]
    assert rated.dropped == {"no rating of the whole, only of turns": 1}
    assert any("taken for the whole of it (2)" in note for note in rated.notes)
