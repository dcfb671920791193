"""An analysis in the terminal and in a pipe."""

from __future__ import annotations

import dataclasses
import io
import re
from types import ModuleType
from typing import Literal

import pytest
from rich.cells import cell_len
from rich.console import Console

from palaver.reports import print_analysis
from palaver.studies.results import Analysis

NAN = float("nan")


def printed(analysis: Analysis, *, terminal: bool = False, width: int = 80) -> str:
    file = io.StringIO()
    colours: Literal["standard", "auto"] = "standard" if terminal else "auto"
    print_analysis(analysis, Console(file=file, force_terminal=terminal, width=width, color_system=colours))
    return file.getvalue()


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("name", ["make", "hostile", "big", "one_system", "empty"])
def test_eighty_columns_are_enough(sample: ModuleType, name: str) -> None:
    lines = without_colour(printed(getattr(sample, name)(), terminal=True)).splitlines()
    # The title and names of criteria are printed whole; the terminal itself breaks them.
    long = [line for line in lines if cell_len(line) > 80]
    assert all(line.startswith(("a-system", "<script>")) for line in long)


def test_a_pipe_gets_no_colour_and_whole_rankings(sample: ModuleType) -> None:
    analysis = sample.make()
    text = printed(analysis)
    assert "\x1b" not in text
    for row in analysis.ranking:
        assert not row.label or row.label in text


def test_a_terminal_gets_colour_and_left_out_is_yellow(sample: ModuleType) -> None:
    text = printed(sample.make(), terminal=True)
    assert "\x1b[33m" in text
    line = next(line for line in text.splitlines() if "value outside the scale" in line)
    assert "\x1b[33m" in line


def test_narrow_terminals_wrap_and_lose_nothing(sample: ModuleType) -> None:
    analysis = sample.make()
    text = " ".join(without_colour(printed(analysis, terminal=True, width=60)).split())
    for word in set(analysis.ranking[0].label.split()):
        assert word in text
    assert "…" not in text


def test_order_of_the_parts(sample: ModuleType) -> None:
    analysis = sample.make()
    text = printed(analysis)
    parts = [
        "RankME",
        "5 systems",
        "Ranking",
        "bootstrap over items, 95%",
        "\nAgreement",
        "\nCorrelation",
        "\nTests",
    ]
    parts += ["\nRaters", "\nLeft out", "value outside the scale", "\nNotes", str(analysis.run)]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.rstrip().endswith(str(analysis.run))


def test_numbers_and_reasons(sample: ModuleType) -> None:
    text = printed(sample.make())
    assert "ICC2k 0.74 [0.66, 0.80]: moderate to good (Koo & Li 2016)" in text
    assert "<.001" in text
    assert "undefined: more than two raters" in text
    assert "chi-square(8) = 13.20, p = .031, V = 0.12, n = 1,200" in text
    assert "chi-square undefined: one choice only" in text
    assert "undefined: no two systems were compared by one rater" in text
    assert "Caution: The methods do not draw the same lines" in text
    assert "nan" not in text


def test_markup_in_names_is_shown_as_it_is(sample: ModuleType) -> None:
    analysis = sample.make(("[bold]x", "[/red]", ":smile:"), n_raters=3, rater_names=("[link=x]r",))
    text = printed(analysis, terminal=True)
    for name in ("[bold]x", "[/red]", ":smile:", "[link=x]r"):
        assert name in without_colour(text)


def test_no_escape_sequence_comes_from_the_data(sample: ModuleType) -> None:
    text = printed(sample.hostile())
    assert "\x1b" not in text
    assert "\u202e" not in text
    text.encode()


def test_many_raters_show_the_worst_ten(sample: ModuleType) -> None:
    text = printed(sample.make(n_raters=40))
    assert len(re.findall(r"^worker-\d+", text, re.MULTILINE)) == 10
    assert "30 more raters" in text
    assert text.index("worker-004") < text.index("worker-009")
    all_of_them = printed(sample.make(n_raters=15))
    assert len(re.findall(r"^worker-\d+", all_of_them, re.MULTILINE)) == 15
    assert "more rater" not in all_of_them


def test_undefined_correlation_gives_its_reason(sample: ModuleType) -> None:
    base = sample.make()
    row = dataclasses.replace(base.correlation[0], value=NAN, low=NAN, high=NAN, p=NAN, reason="no spread")
    text = printed(dataclasses.replace(base, correlation=(row,)))
    assert "informativeness – naturalness: undefined: no spread" in text


def test_nothing_at_all(sample: ModuleType) -> None:
    assert "there is no answer" in printed(sample.empty())
