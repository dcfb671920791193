"""Contexts out of files, and tables of personalities."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.personalities import read_ocean_table
from palaver.errors import DataError, UserError
from palaver.generation.contexts import Condition, Contexts, conditions_of
from palaver.readers import write_dialogues
from palaver.schema import Dialogue

Talk = Callable[..., Dialogue]


def test_lines_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress("hello\n\n  how are you?  \r\n \n日本".encode()))
    contexts = Contexts(path)
    found = list(contexts)
    assert [(c.id, c.dialogue.turns[0].text) for c in found] == [
        ("1", "hello"),
        ("3", "how are you?"),
        ("5", "日本"),
    ]
    assert found[0].dialogue == Dialogue.model_validate(found[0].dialogue.model_dump())
    assert contexts.survey().skipped == {"nothing to reply to": 2}
    assert contexts.survey().count == 3


def test_dialogues_whole_and_turn_by_turn(tmp_path: Path, talk: Talk) -> None:
    path = tmp_path / "d.jsonl"
    write_dialogues([talk("a", "b", "c", id="x"), talk(id="empty"), talk(" ", "y", "z", id="y")], path)
    whole = list(Contexts(path))
    assert [(c.id, len(c.dialogue.turns), c.reference) for c in whole] == [("x", 3, None), ("y", 3, None)]
    each = Contexts(path, every_turn=True)
    assert [(c.id, [t.text for t in c.dialogue.turns], c.reference) for c in each] == [
        ("x#1", ["a"], "b"),
        ("x#2", ["a", "b"], "c"),
        ("y#2", [" ", "y"], "z"),
    ]
    assert each.survey().skipped == {"nothing to reply to": 1}
    assert [c.id for c in Contexts(path, every_turn=True, limit=2)] == ["x#1", "x#2"]


def test_repeated_ids_are_made_different(tmp_path: Path, talk: Talk) -> None:
    path = tmp_path / "d.jsonl"
    write_dialogues([talk("a", id="x"), talk("b", id="y"), talk("c", id="x"), talk("d", id="x")], path)
    contexts = Contexts(path)
    assert [c.id for c in contexts] == [c.id for c in contexts] == ["x", "y", "x~2", "x~3"]
    assert contexts.n_repeated == 2


def test_splits(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    rows = [{"id": s, "split": s, "turns": [{"s": "a", "t": "hi"}]} for s in ("train", "valid")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [c.id for c in Contexts(path, split="valid")] == ["valid"]
    with pytest.raises(UserError):
        Contexts(path, split="test").survey()


def test_digests_are_those_of_the_texts(tmp_path: Path, talk: Talk) -> None:
    def digest(*dialogues: Dialogue, name: str = "d.jsonl", **options: Any) -> str:
        write_dialogues(dialogues, tmp_path / name)
        return Contexts(tmp_path / name, **options).survey().digest

    one = talk("a", "b", "c")
    assert digest(one) == digest(one, name="other.jsonl")
    others = [digest(talk("x", "b", "c")), digest(talk("a", "b", "x")), digest(talk("a", "b", "c", id="e"))]
    assert len({digest(one), *others, digest(one, every_turn=True)}) == 5
    turns = {digest(talk("a", x, "c"), every_turn=True) for x in "bcd"}
    assert len(turns) == 3


def test_what_cannot_be_contexts(tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    with pytest.raises(DataError, match="there is no file"):
        Contexts(text)
    text.write_text("\n \n")
    with pytest.raises(DataError, match="no contexts in"):
        Contexts(text).survey()
    with pytest.raises(UserError, match="every_turn= needs dialogues"):
        Contexts(text, every_turn=True)
    broken = tmp_path / "d.jsonl"
    broken.write_text('{"id": "a", "turns": []}\n{broken\n')
    with pytest.raises(DataError, match="line 2"):
        Contexts(broken).survey()


def test_conditions(echo: Callable[..., Any]) -> None:
    system = echo(speakers=("Joey", "Ross"))
    assert conditions_of(system) == [Condition()]
    assert conditions_of(system, "all") == [Condition("Joey"), Condition("Ross")]
    assert conditions_of(system, "Ross,Joey,Ross") == [Condition("Ross"), Condition("Joey")]
    assert conditions_of(system, table={"x": (1.0,) * 5}) == [Condition("x", (1.0,) * 5)]
    with pytest.raises(UserError, match="did you mean 'Ross'"):
        conditions_of(system, ["Ros"])
    with pytest.raises(UserError, match="knows no speakers by name"):
        conditions_of(echo(speakers=()), "all")
    system.takes = frozenset()
    for asked in ({"speakers": "all"}, {"table": {"x": (1.0,) * 5}}):
        with pytest.raises(UserError, match="takes no"):
            conditions_of(system, **asked)


SCORES = {"Joey": (6.0, 2.0, 6.5, 5.0, 3.0), "Ross": (5.0, 6.0, 3.0, 4.0, 6.0)}


@pytest.mark.parametrize(
    "text",
    [
        "speaker,openness,conscientiousness,extraversion,agreeableness,neuroticism\nJoey,6,2,6.5,5,3\nRoss,5,6,3,4,6\n",
        "N,A,E,C,O,speaker\n3,5,6.5,2,6,Joey\n6,4,3,6,5,Ross\n\n",
        "name,v,w,x,y,z\nJoey,6,2,6.5,5,3\nRoss,5,6,3,4,6\n",
        '{"Joey": [6, 2, 6.5, 5, 3], "Ross": {"O": 5, "C": 6, "E": 3, "A": 4, "N": 6}}',
        '[{"speaker": "Joey", "ocean": [6, 2, 6.5, 5, 3]},\n'
        '{"speaker": "Ross", "openness": 5, "conscientiousness": 6, "extraversion": 3, "agreeableness": 4, '
        '"neuroticism": 6}]',
        '{"speaker": "Joey", "scores": [6, 2, 6.5, 5, 3]}\n{"speaker": "Ross", "scores": [5, 6, 3, 4, 6]}\n',
    ],
)
def test_tables_of_scores(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text(text)
    assert read_ocean_table(path) == SCORES


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "speaker,O,C,E,A,N\nJ,1,2,3,4,9\n,1,1,1,1,1\nJ,1,2,3\n",
            ["line 2: neuroticism should", "line 3: the speaker's name", "line 4: neuroticism should"],
        ),
        ("speaker,p,q\nJ,1,2\n", ["expected five numbers, found 2"]),
        ("speaker,O,C,E,A,N\n", ["there are no rows"]),
        ('{"J": [1, 2, 3, 4, "x"]}', ["row 1: neuroticism should be a number from 1 to 7, found 'x'"]),
        (
            '[3, {"speaker": "J", "scores": "high"}]',
            ["row 1: expected an object, found 3", "row 2: expected five numbers, found 1"],
        ),
    ],
)
def test_tables_that_are_wrong(text: str, problems: list[str], tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(DataError, match="not a table of OCEAN scores") as caught:
        read_ocean_table(path)
    for problem in problems:
        assert problem in "\n".join(caught.value.problems)


def test_a_table_without_a_trait_or_not_json(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("speaker,O,C,E,A\nJ,1,1,1,1\n")
    with pytest.raises(DataError) as caught:
        read_ocean_table(path)
    assert caught.value.problems == ("line 1: the header has no column neuroticism",)
    path.write_text('{"J": [')
    with pytest.raises(DataError, match="is not JSON"):
        read_ocean_table(path)


def test_contexts_of_responses(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    history = [{"speaker": "A", "text": "Hi."}, {"speaker": "B", "text": "Hello."}]
    rows = [
        {"id": "c1", "system": "x", "context": history, "response": "One.", "reference": "Really."},
        {"id": "c1", "system": "y", "context": history, "response": "Two."},
        {"id": "c1", "system": "y", "context": history, "response": "Two again."},
        {"id": "c2", "system": "x", "context": "Tea?", "response": None, "reference": ["Yes.", "No."]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    contexts = Contexts(path)
    assert contexts.of_responses
    assert [(c.id, [t.text for t in c.dialogue.turns], c.reference) for c in contexts] == [
        ("c1", ["Hi.", "Hello."], "Really."),
        ("c2", ["Tea?"], ("Yes.", "No.")),
    ]
    assert contexts.survey().count == 2
    assert not Contexts(path, every_turn=True).of_responses, "each turn of a context with its response"


def test_contexts_of_responses_with_columns_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("nr,who,asked,said\n7,a,Hi.,Hello!\n", encoding="utf-8")
    columns = {"id": "nr", "system": "who", "context": "asked", "response": "said"}
    (context,) = Contexts(path, columns=columns)
    assert (context.id, context.dialogue.turns[0].text) == ("7", "Hi.")
