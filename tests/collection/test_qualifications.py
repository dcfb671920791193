"""What a platform says of people, from a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.collection.qualifications import with_qualifications
from palaver.collection.records import Person
from palaver.collection.standards import Qualification
from palaver.errors import DataError

PEOPLE = [Person(id="a", external="worker-1", entered_at=0), Person(id="b", entered_at=0)]
PAPER = Qualification(approved=1000, approval_rate=0.99)


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "workers.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_people_are_found_by_the_platform_s_name_or_ours(tmp_path: Path) -> None:
    path = table(tmp_path, "participant,approved,approval_rate\nworker-1,1500,99.5%\nb,400,0.995\nc,1,1\n")
    first, second = with_qualifications(PEOPLE, path)
    assert PAPER.fault(first.qualifications) == ""
    assert PAPER.fault(second.qualifications) == "approved 400, fewer than 1000"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("participant,approved\nworker-1,many\nb,x\n", "cannot be read"),
        ("participant,approval_rate\nworker-1,99\n", "cannot be read"),
        ("participant,approved\nsomebody,3\n", "nobody in .* took part"),
        ("worker,approved\nworker-1,3\n", "says nothing of people"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        with_qualifications(PEOPLE, table(tmp_path, text))
    if "x" in text:
        assert len(caught.value.problems) == 2
