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
from palaver.studies.results import Analysis, InfluenceRow

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
    # The title is printed whole; the terminal itself breaks it.
    long = [line for line in lines if cell_len(line) > 80]
    assert all(line.startswith(("a-system", "<script>")) for line in long)


def test_every_system_has_its_place_mean_and_interval(sample: ModuleType) -> None:
    analysis = sample.make()
    for text in (printed(analysis), without_colour(printed(analysis, terminal=True))):
        rows = re.findall(r"^  (\S+) +(.+?) +(\S+) +(\[.*\]) +240$", text, re.MULTILINE)
        shown = [row for row in analysis.ranking if row.method == "bootstrap" and row.scores]
        assert len(rows) == sum(len(row.scores) for row in shown)
        first = shown[0].scores[0]
        assert rows[0] == ("1.", first.system, f"{first.score:.2f}", f"[{first.low:.2f}, {first.high:.2f}]")


def test_a_pipe_gets_no_colour_and_whole_rankings_of_the_other_methods(sample: ModuleType) -> None:
    analysis = sample.make()
    text = printed(analysis)
    assert "\x1b" not in text
    for row in analysis.ranking:
        assert row.method == "bootstrap" or not row.label or row.label in text


def test_a_pipe_gets_names_whole_without_boxes_and_wrapping(sample: ModuleType) -> None:
    analysis = sample.hostile()
    text = printed(analysis, width=40)
    assert "…" not in text
    assert "─" not in text
    name = next(name for name in sample.HOSTILE if len(name) > 400)
    assert sum(name in line and " 240" in line for line in text.splitlines()) > 0
    assert printed(analysis, width=200) == text


def test_a_pipe_gets_all_correlations_and_a_terminal_those_of_people_first(sample: ModuleType) -> None:
    names = tuple(f"metric-{k}" for k in range(6))
    base = sample.make()
    machine = [
        dataclasses.replace(base.criteria[0], criterion=name, rated_by="metric", direction="higher")
        for name in names
    ]
    rows = sample.correlations((*names, "quality"))
    analysis = dataclasses.replace(base, criteria=(*base.criteria, *machine), correlation=rows)
    per_basis = len(rows) // 2
    assert printed(analysis).count(" – ") >= 2 * per_basis
    shown = printed(analysis, terminal=True, width=100).partition("Correlation")[2].partition("Tests")[0]
    pairs = [line for line in without_colour(shown).splitlines() if " – " in line]
    assert len(pairs) == 20
    assert all("quality" in pair for pair in pairs[:6])
    assert f"{per_basis - 10} more pairs in the report" in shown


def test_what_an_interval_cannot_show_is_said(sample: ModuleType) -> None:
    base = sample.make()
    row = base.ranking[0]
    why = "won all 12 comparisons: the interval cannot show how sure this is"
    first = dataclasses.replace(row.scores[0], low=row.scores[0].score, high=row.scores[0].score, reason=why)
    ranked = dataclasses.replace(row, scores=(first, *row.scores[1:]))
    text = printed(dataclasses.replace(base, ranking=(ranked, *base.ranking[1:])))
    assert f"  {first.system}: {why}\n" in text
    line = next(line for line in text.splitlines() if re.match(rf"  1\. +{first.system} ", line))
    assert "[" not in line


def test_notes_name_their_criterion_once(sample: ModuleType) -> None:
    base = sample.make()
    twice = dataclasses.replace(base, notes=("quality: said twice", "quality: said twice"))
    text = printed(twice)
    assert text.count("quality: said twice") == 1
    for criterion in sample.NUMERIC:
        assert text.count(f"  {criterion}: 3 items with fewer than two ratings\n") == 1


def test_criteria_quoted_for_one_reason_share_a_line(sample: ModuleType) -> None:
    base = sample.make()
    why = "all 4 raters judged all items, so ICC2k is quoted"
    rows = [dataclasses.replace(r, headline_reason=why if r.headline else "") for r in base.agreement]
    text = printed(dataclasses.replace(base, agreement=tuple(r for r in rows if r.criterion != "facts")))
    assert f"  informativeness, naturalness, quality: {why}\n" in text


def test_a_terminal_gets_colour_and_left_out_is_yellow(sample: ModuleType) -> None:
    text = printed(sample.make(), terminal=True)
    assert "\x1b[33m" in text
    line = next(line for line in text.splitlines() if "value outside the scale" in line)
    assert "\x1b[33m" in line


def test_narrow_terminals_wrap_and_lose_nothing(sample: ModuleType) -> None:
    analysis = sample.make()
    for width in (60, 40):
        text = " ".join(without_colour(printed(analysis, terminal=True, width=width)).split())
        for word in set(analysis.ranking[0].label.split()):
            assert word in text
        for row in analysis.agreement[:5]:
            assert f"[{row.low:.2f}, {row.high:.2f}]" in text
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
    text = without_colour(printed(sample.make(n_raters=40), terminal=True))
    assert len(re.findall(r"^worker-\d+", text, re.MULTILINE)) == 10
    assert "30 more raters" in text
    assert text.index("worker-004") < text.index("worker-009")
    few = without_colour(printed(sample.make(n_raters=15), terminal=True))
    piped = printed(sample.make(n_raters=40))
    for all_of_them, n in ((few, 15), (piped, 40)):
        assert len(re.findall(r"^worker-\d+", all_of_them, re.MULTILINE)) == n
        assert "more rater" not in all_of_them


def test_undefined_correlation_gives_its_reason(sample: ModuleType) -> None:
    base = sample.make()
    row = dataclasses.replace(base.correlation[0], value=NAN, low=NAN, high=NAN, p=NAN, reason="no spread")
    text = printed(dataclasses.replace(base, correlation=(row,)))
    assert "informativeness – naturalness: undefined: no spread" in text


def test_nothing_at_all(sample: ModuleType) -> None:
    assert "there is no answer" in printed(sample.empty())


def test_influence_shows_the_largest_changes_and_a_pipe_all(sample: ModuleType) -> None:
    rows = tuple(
        InfluenceRow(criterion="quality", measure="ICC", form="ICC(1,k)", left_out="rater", name=f"[b]r{i}",
                     n_ratings=9, value=0.5, without=0.5 - change, change=-change)
        for i, change in enumerate((0.4, 0.3, 0.02, 0.01))
    )  # fmt: skip
    analysis = dataclasses.replace(sample.make(), influence=rows)
    terminal, pipe = without_colour(printed(analysis, terminal=True)), printed(analysis)
    assert ["[b]r3" in text for text in (terminal, pipe)] == [False, True]
    assert re.search(r"quality +rater +\[b\]r0 +9 +0\.50 +0\.10 +−0\.40", terminal)
    assert "Influence" not in printed(sample.make())
