"""Results as JSON."""

from __future__ import annotations

import json
import math

import pytest

from palaver.schema import record_run
from palaver.studies.results import AgreementRow, Analysis, RaterRow, Reading

pytestmark = pytest.mark.filterwarnings("error")


def analysis(value: float, name: str = "q") -> Analysis:
    row = AgreementRow(
        criterion=name,
        measure="ICC",
        form="ICC(1,k)",
        value=value,
        low=-math.inf,
        high=math.inf,
        p=math.nan,
        n_items=1,
        n_raters=1,
        dropped=0,
        reason="why",
    )
    rater = RaterRow(
        rater=name,
        n_ratings=1,
        n_items=1,
        median_seconds=math.nan,
        spread=1.0,
        straight_lining=1.0,
        agreement=math.nan,
        n_shared=0,
    )
    return Analysis(
        title=name,
        run=record_run("test", seed=0),
        reading=Reading(files=("f",), layout="", n_rows=1, n_ratings=1),
        confidence=0.95,
        criteria=(),
        agreement=(row,),
        correlation=(),
        ranking=(),
        raters=(rater,),
        rater_matrices=(),
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_undefined_numbers_are_null_and_the_reason_stands_beside(value: float) -> None:
    text = analysis(value).to_json()
    row = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in JSON"))["agreement"][0]
    assert (row["value"], row["low"], row["high"], row["p"]) == (None, None, None, None)
    assert row["reason"] == "why"


@pytest.mark.parametrize("name", ["naïve 😀", 'say "hi"\n\\', "\x00\x1f\x7f", "\u2028"])
def test_names_come_back_as_they_were(name: str) -> None:
    found = json.loads(analysis(0.5, name).to_json().encode())
    assert found["agreement"][0]["criterion"] == found["raters"][0]["rater"] == found["title"] == name


def test_the_signature_is_that_of_the_run() -> None:
    found = json.loads(analysis(0.5).to_json())
    assert found["signature"] == analysis(0.5).run.signature
    assert found["run"]["command"] == "test"
    assert found["run"]["versions"]["palaver"]


def test_one_line_ends_the_file() -> None:
    assert analysis(0.5).to_json().endswith("}\n")


def test_an_analysis_shows_itself_in_one_line() -> None:
    text = repr(analysis(0.5))
    assert "\n" not in text
    assert len(text) < 100
    assert "1 ratings" in text
    assert analysis(0.5).run.signature in text
