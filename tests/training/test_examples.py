"""Dialogues into examples, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.corpora.personalities import read_ocean_table
from palaver.errors import DataError, UserError
from palaver.schema import Dialogue, Turn
from palaver.training.examples import (
    EMPTY,
    FIRST,
    NO_CONTEXT,
    STRANGER,
    check_speakers,
    choose_cast,
    episodes,
    read_source,
)
from palaver.training.experiment import Data, Source


def talk(*turns: tuple[str, str], name: str = "d") -> Dialogue:
    return Dialogue(id=name, turns=tuple(Turn(speaker=s, text=t) for s, t in turns))


TALK = talk(("A", "one"), ("B", " two "), ("A", ""), ("B", "four"), ("C", "five"))


def test_pairs_of_consecutive_turns() -> None:
    skipped: Counter[str] = Counter()
    (found,) = episodes([TALK], Data(history_turns=1), skipped=skipped)
    assert found.turns == ["one", "two", "", "four", "five"]
    assert list(zip(found.begins, found.responses, strict=True)) == [(0, 1), (3, 4)]
    assert skipped == {FIRST: 1, EMPTY: 1, NO_CONTEXT: 1}


def test_whole_history_and_speakers() -> None:
    skipped: Counter[str] = Counter()
    (found,) = episodes([TALK], Data(), ids={"B": 7}, skipped=skipped)
    assert found.responses == [1, 3]
    assert found.begins == [0, 0]
    assert found.speakers == [7, 7]
    assert skipped == {FIRST: 1, EMPTY: 1, STRANGER: 1}


@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["", "x", "y z"])), max_size=12),
    st.integers(0, 4),
    st.sampled_from([None, {"A": 0}, {"A": 0, "B": 1}]),
)
@settings(max_examples=50, deadline=None)
def test_every_turn_is_learned_or_counted(
    turns: list[tuple[str, str]], history: int, ids: dict[str, int] | None
) -> None:
    skipped: Counter[str] = Counter()
    (found,) = episodes([talk(*turns)], Data(history_turns=history), ids=ids, skipped=skipped)
    assert len(found.responses) + sum(skipped.values()) == len(turns)
    for i, begin, speaker in zip(found.responses, found.begins, found.speakers, strict=True):
        seen = found.turns[begin:i]
        assert any(seen)
        assert len(seen) == (min(i, history) if history else i)
        assert speaker == (-1 if ids is None else ids[turns[i][0]])


def test_knowledge_is_that_of_the_response() -> None:
    def select(dialogues: Iterable[Dialogue]) -> Iterator[tuple[Dialogue, list[str | None]]]:
        for dialogue in dialogues:
            yield dialogue, [None, "k1", "k2", None, "k4"]

    (found,) = episodes([TALK], Data(), select=select)
    assert found.knowledge == ["k1", "", "k4"]
    with pytest.raises(UserError, match="2 knowledge sentences for 5 turns"):
        list(episodes([TALK], Data(), select=lambda ds: ((d, ["a", "b"]) for d in ds)))


def test_main_characters_are_those_of_their_own_show() -> None:
    first = Counter({"Ross": 30, "Amy": 2})
    second = Counter({"Amy": 25, "Howard": 10, "Ross": 1})
    cast = choose_cast(Data(min_turns=20), [first, second])
    assert cast is not None
    assert cast.names == ("Ross", "Amy")
    assert cast.by_source[0] == {"Ross": 0}
    assert cast.by_source[1] == {"Amy": 1}
    assert cast.everyone == {"Ross": 0, "Amy": 1}
    with pytest.raises(DataError, match="nobody has 100 turns"):
        choose_cast(Data(min_turns=100), [first, second])
    assert choose_cast(Data(), [first]) is None
    named = choose_cast(Data(speakers=("Amy", "Ross")), [first, second])
    assert named is not None
    assert named.by_source[0] == named.by_source[1] == {"Amy": 0, "Ross": 1}


def test_sources(sample: Path) -> None:
    found = list(read_source(Source(path=sample / "dialogues.jsonl"), Data()))
    assert len(found) == 40
    assert {turn.speaker for dialogue in found for turn in dialogue.turns} == {"Ada", "Ben", "Cleo"}


def test_ocean_tables(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("N,speaker,openness,C,E,A\n5,Ann,1,2,3,4\n\n")
    assert read_ocean_table(table) == {"Ann": (1, 2, 3, 4, 5)}
    table = tmp_path / "t.json"
    table.write_text('{"Ann": [1, 2, 3, 4, 5], "Bob": [7, 7, 7, 7, 7]}')
    assert list(read_ocean_table(table)) == ["Ann", "Bob"]
    table.write_text('[{"speaker": "Ann", "o": 1, "c": 2, "e": 3, "a": 4, "n": 5}]')
    assert read_ocean_table(table) == {"Ann": (1, 2, 3, 4, 5)}


def test_all_mistakes_of_an_ocean_table(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("speaker,O,C,E,A,N\nAnn,1,2,8,4,x\nAnn,1,1,1,1,1\nAnn,1,1,1,1,1\n,1,1,1,1,nan\n")
    with pytest.raises(DataError) as error:
        read_ocean_table(table)
    assert error.value.problems == (
        "line 2: extraversion should be a number from 1 to 7, found 8",
        "line 2: neuroticism should be a number from 1 to 7, found 'x'",
        "line 4: 'Ann' is there already",
        "line 5: neuroticism should be a number from 1 to 7, found 'nan'",
        "line 5: the speaker's name is missing",
    )
    table.write_text("who,O,C\n")
    with pytest.raises(DataError, match="no column speaker"):
        read_ocean_table(table)
    broken = tmp_path / "t.json"
    broken.write_text('{"Ann": [1, 2]}')
    with pytest.raises(DataError, match="expected five numbers, found 2"):
        read_ocean_table(broken)


def test_an_ocean_table_must_fit_the_data() -> None:
    scores = (1.0, 2.0, 3.0, 4.0, 5.0)
    with pytest.raises(DataError) as error:
        check_speakers(
            {"Joye": scores, "Ross": scores}, ["Ross", "Monica"], ["Joey", "Ross", "Monica"], Path("t")
        )
    assert error.value.problems == (
        "'Monica' has no scores",
        "'Joye' never speaks in the training data (did you mean 'Joey'?)",
    )
