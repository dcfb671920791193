"""`palaver reproduce judges`: the agreement of USR's annotators is the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.errors import DataError
from palaver.reproduce.judges import _agreement, read_usr


def test_annotators_agree_as_the_paper_says(shared_data: Path) -> None:
    cells = list(_agreement(shared_data))
    assert len(cells) == 12
    assert all(abs(cell.ours - cell.paper) < 5e-5 for cell in cells)


def test_the_responses_as_they_were_rated(shared_data: Path) -> None:
    people, responses = read_usr(shared_data)
    assert (people.height, len(responses)) == (6480, 360)
    assert sum(response.knowledge is None for response in responses) == 48
    assert sum(response.reference is None for response in responses) == 60
    assert all(response.context[-1].speaker == "user" for response in responses)


def test_what_is_missing_or_damaged_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not hold USR's ratings"):
        read_usr(tmp_path)
    (tmp_path / "usr_topical_chat.json.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot be read"):
        read_usr(tmp_path)
