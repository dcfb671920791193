"""Tables of OCEAN scores that are wrong. (Those that are right: `tests/generation/test_contexts.py`.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.corpora.personalities import read_ocean_table
from palaver.errors import DataError

HEADER = "speaker,o,c,e,a,n\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Ada,1,2,3,4,5\nBen,1,2,3,4,5\n", "line 1: there is no header"),
        ("speaker;o;c;e;a;n\nAda;1;2;3;4;5\n", "line 1: the header has no column speaker"),
        ("speaker,o,o,c,e,a,n\nAda,1,7,2,3,4,5\n", "line 1: the header has 2 columns openness"),
        (HEADER + "Ada,1,2,3,4,5,6\n", "line 2: expected 6 fields, found 7"),
        (HEADER + "Ada,1,2,3,4,nan\n", "line 2: neuroticism should be a number from 1 to 7, found 'nan'"),
        (HEADER + "Ada,1,2,3,4,inf\n", "found 'inf'"),
        (HEADER + "Ada,1,2,3,4,5\nAda,1,2,3,4,5\n", "line 3: 'Ada' is there already"),
        ("\0\1\2", "no column speaker"),
        ('{"Ada": [1, 2, 3, 4, 5], "Ada": [2, 2, 2, 2, 2]}', "'Ada' is there already"),
        ('{"Ada": ["1", 2, 3, 4, 5]}', "row 1: openness should be a number from 1 to 7, found '1'"),
        ('{"Ada": [true, 2, 3, 4, 5]}', "found True"),
        ('{"Ada": [1, 2, 3, 4, 1' + "0" * 400 + "]}", "row 1: neuroticism should"),
        ('[{"speaker": "Ada", "ocean": 5}]', "row 1: expected five numbers, found 1"),
        ('[{"speaker": "Ada", "ocean": "12345"}]', "row 1: expected five numbers, found 1"),
        ('[{"speaker": "Ada", "ocean": null}]', "row 1: expected five numbers, found 1"),
        ('[{"speaker": ["Ada"], "ocean": [1, 2, 3, 4, 5]}]', "row 1: the speaker's name is missing"),
        ("[5]", "row 1: expected an object, found 5"),
        ("{}", "there are no rows"),
    ],
)
def test_wrong_tables(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(text)
    with pytest.raises(DataError) as caught:
        read_ocean_table(tmp_path / "table")
    assert problem in "\n".join(caught.value.problems)


@pytest.mark.parametrize("text", ["[" * 100_000, "5", "null", "{", '"text"'])
def test_json_that_is_no_table(text: str, tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text(text)
    with pytest.raises(DataError, match="is not JSON|expected an object of names"):
        read_ocean_table(tmp_path / "table.json")
