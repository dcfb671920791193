"""One criterion's ratings as arrays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from study_strategies import Row, tables, write_csv

from palaver.studies import read_ratings
from palaver.studies.judgements import judgements_of

pytestmark = pytest.mark.filterwarnings("error")


def read(folder: Path, text: str) -> object:
    path = folder / "r.csv"
    path.write_text(text, encoding="utf-8")
    return read_ratings(path)


@given(rows=tables())
@settings(max_examples=40, deadline=None)
def test_codes_lead_back_to_the_rows(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    table = read_ratings(write_csv(rows, tmp_path_factory.mktemp("j") / "r.csv"))
    for criterion in table.criteria:
        judged = judgements_of(table, criterion, "raw")
        back = {
            (judged.items[int(i)], judged.systems[s], judged.raters[r], v)
            for i, s, r, v in zip(judged.item, judged.system, judged.rater, judged.value, strict=True)
        }
        mine = [row for row in rows if row["criterion"] == criterion]
        assert back == {(row["item"], row["system"], row["rater"], row["value"]) for row in mine}
        assert judged.items.to_list() == sorted({row["item"] for row in mine})
        units = {}
        for unit, i, s in zip(judged.unit, judged.item, judged.system, strict=True):
            assert units.setdefault(unit, (i, s)) == (i, s)
        assert set(units) == set(range(judged.n_units))
        assert len(set(units.values())) == judged.n_units


NUMBERS = "item,system,rater,criterion,value\n" + "".join(
    f"i{i},s{s},r{r},q,{50 * (1 + i + s + 2 * r)}\n" for i in range(3) for s in range(2) for r in range(2)
)


@pytest.mark.parametrize("method", ["raw", "log", "z", "log-z", "ratio"])
def test_normalisations(method: str, tmp_path: Path) -> None:
    judged = judgements_of(read(tmp_path, NUMBERS), "q", method)  # type: ignore[arg-type]
    assert judged.normalisation == method
    expected = []
    for value, rater in zip(judged.value, judged.rater, strict=True):
        mine = [
            math.log(v) if "log" in method else v
            for v, r in zip(judged.value, judged.rater, strict=True)
            if r == rater
        ]
        x = math.log(value) if "log" in method else value / 100 if method == "ratio" else value
        if "z" in method:
            mean = sum(mine) / len(mine)
            x = (x - mean) / math.sqrt(sum((v - mean) ** 2 for v in mine) / (len(mine) - 1))
        expected.append(x)
    np.testing.assert_allclose(judged.score, expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", "log", "z", "log-z", "ratio"])
def test_choices_are_never_normalised(method: str, tmp_path: Path) -> None:
    """The logarithm of "no" (0) would take half of the answers away."""
    text = "item,system,rater,criterion,value\n" + "".join(f"i{n},s,r,q,{n % 2}\n" for n in range(6))
    judged = judgements_of(read(tmp_path, text), "q", method)  # type: ignore[arg-type]
    assert judged.normalisation == "raw"
    assert judged.score.tolist() == [0, 1, 0, 1, 0, 1]


def test_pairs_speak_of_the_first_system_by_name(tmp_path: Path) -> None:
    head = "item,system,against,rater,criterion,value\n"
    text = head + "i,b,a,r,q,win\ni,a,b,r2,q,win\nj,a,b,r,q,Tie\nj,b,c,r,q,0\n"
    judged = judgements_of(read(tmp_path, text), "q")  # type: ignore[arg-type]
    assert judged.systems == ("a", "b", "c")
    assert judged.value.tolist() == [1, 1, 0.5, 0]
    assert judged.score.tolist() == [0, 1, 0.5, 0]
    assert judged.unit[0] == judged.unit[1]  # the same pair on the same item
    assert judged.n_units == 3


def test_boxes_in_any_order_are_the_same_answer(tmp_path: Path) -> None:
    answers = ("added|missing", '"missing\nadded"', " missing | added ", "ok")
    rows = "".join(f"i{n},s,r,q,{answer}\n" for n, answer in enumerate(answers))
    text = f"item,system,rater,criterion,value\n{rows}"
    judged = judgements_of(read(tmp_path, text), "q")  # type: ignore[arg-type]
    assert judged.texts == ("added|missing", "ok")
    assert judged.ticked("added").tolist() == [True, True, True, False]
    assert judged.ticked("ok").tolist() == [False, False, False, True]
    assert judged.ticked("miss").tolist() == [False] * 4  # part of a name is not the name
