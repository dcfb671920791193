"""The texts of any file: lines, turns, responses, or a column of texts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from palaver.errors import DataError
from palaver.readers.texts import Text, is_plain_text, read_texts

DIALOGUE = {"id": "d", "turns": [{"speaker": "a", "text": "Hi."}, {"speaker": "b", "text": ""}]}


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plain_text_has_lines(tmp_path: Path) -> None:
    for name in ("t.txt", "README", "t.md"):
        path = put(tmp_path / name, "One.\r\n\nThree, é.\n")
        assert is_plain_text(path)
        assert list(read_texts(path)) == [
            Text("line 1", "One."),
            Text("line 2", ""),
            Text("line 3", "Three, é."),
        ]
    packed = tmp_path / "p.txt.gz"
    packed.write_bytes(gzip.compress(b'{"text": "no row"}\n'))
    assert [text for _, text in read_texts(packed)] == ['{"text": "no row"}']


def test_dialogues_give_their_turns_and_responses_what_was_replied(tmp_path: Path) -> None:
    dialogues = put(tmp_path / "d.jsonl", json.dumps(DIALOGUE))
    assert list(read_texts(dialogues)) == [Text("d, turn 1", "Hi."), Text("d, turn 2", "")]
    responses = put(tmp_path / "r.csv", "id,model,prompt,output\n1,A,Hi,Ho\n1,B,Hi,Hum\n")
    assert list(read_texts(responses)) == [Text("1, A", "Ho"), Text("1, B", "Hum")]
    own = put(tmp_path / "t.csv", "chat,who,said\n1,a,Hi.\n1,b,Ho.\n")
    columns = {"dialogue": "chat", "speaker": "who", "text": "said"}
    assert [text for _, text in read_texts(own, columns=columns)] == ["Hi.", "Ho."]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "id,sentence\n7,One.\n8,Two.\n"),
        ("t.jsonl", '{"text": "One."}\n{"text": "Two."}\n'),
        ("t.json", '[{"content": "One."}, {"content": "Two."}]'),
    ],
)
def test_rows_may_hold_a_text_and_no_more(tmp_path: Path, name: str, content: str) -> None:
    assert [text for _, text in read_texts(put(tmp_path / name, content))] == ["One.", "Two."]


def test_what_has_no_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no text"):
        list(read_texts(put(tmp_path / "t.csv", "sentence\n")))
    with pytest.raises(DataError, match="there are no turns"):
        list(read_texts(put(tmp_path / "n.jsonl", '{"number": 3}\n')))
