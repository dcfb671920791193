"""Results as tables: the line that is printed, the table of a notebook, the frames."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from palaver.errors import MissingExtra, UserError
from palaver.tabular import MOST_ROWS, Tabular, columns_of, few, show_number, show_value


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabular):
    rows: tuple[Row, ...]

    def _headline(self) -> str:
        return f"{len(self.rows)} rows,\n  all <fine>"

    def _tables(self) -> dict[str, Any]:
        return {"rows": columns_of(Row, self.rows), "ready": pl.DataFrame({"x": [1]})}


RESULT = Result((Row("<b>a</b> & co", 0.123456), Row("b", float("nan"))))


def test_it_prints_in_one_line() -> None:
    assert repr(RESULT) == str(RESULT) == "Result(2 rows, all <fine>)"


def test_frames_have_everything() -> None:
    frame = RESULT.to_polars()
    assert frame.columns == ["name", "value", "notes"]
    assert frame["value"][0] == 0.123456
    assert RESULT.to_polars("ready").to_dicts() == [{"x": 1}]
    pytest.importorskip("pandas")
    assert RESULT.to_pandas("rows")["name"].tolist() == ["<b>a</b> & co", "b"]


def test_a_table_without_rows_keeps_its_columns() -> None:
    empty = Result(())
    assert empty.to_polars().columns == ["name", "value", "notes"]
    assert "<th>value</th>" in empty._repr_html_()


def test_an_unknown_table() -> None:
    with pytest.raises(UserError, match=r"Result has no table 'row' \(did you mean 'rows'\?\)") as caught:
        RESULT.to_polars("row")
    assert caught.value.hint == "known: rows, ready"


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[pandas\]"):
        RESULT.to_pandas()


def test_a_notebook_shows_an_escaped_table() -> None:
    shown = RESULT._repr_html_()
    assert "<caption>Result: 2 rows,\n  all &lt;fine&gt;</caption>" in shown
    assert "<td>&lt;b&gt;a&lt;/b&gt; &amp; co</td><td>0.123</td>" in shown
    assert "<td>b</td><td>–</td>" in shown
    assert "notes" not in shown, "nothing is in that column"


def test_long_tables_and_texts_are_cut() -> None:
    shown = Result(tuple(Row("x" * 300, i) for i in range(MOST_ROWS + 5)))._repr_html_()
    assert shown.count("<tr><td>") == MOST_ROWS
    assert "… and 5 more rows" in shown
    assert "x" * 119 + "…" in shown
    assert "x" * 120 not in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"), (-0.12345, "−0.123"), (-12345.6, "−12,346"), (-0.00001234, "−1.2e-05"),
        (4.5, "4.500"), (12.345, "12.35"), (123.45, "123.5"),
        (12345.6, "12,346"), (0.00001234, "1.2e-05"), (float("inf"), "inf"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_numbers_have_sensible_digits(value: float, shown: str) -> None:
    assert show_number(value) == shown


def test_cells() -> None:
    shown = [show_value(value) for value in (None, True, 12345, 0.5, ["a", 0.25], "text")]
    assert shown == ["", "True", "12,345", "0.500", "a, 0.250", "text"]


def test_of_many_names_the_first_few() -> None:
    assert few(["a", "b", "c", "d"]) == "a, b, c, d"
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
