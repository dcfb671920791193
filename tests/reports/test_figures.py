"""Figures as inline SVG."""

from __future__ import annotations

import dataclasses
import re
import sys
import warnings
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

from palaver.drawing import Canvas
from palaver.reports import figures
from palaver.reports.canvas import inline_svg
from palaver.reports.render import render_report
from palaver.studies.results import IntervalRow

NAN = float("nan")


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in ElementTree.fromstring(svg).iter("text")]


def test_the_same_figure_gives_the_same_bytes(sample: ModuleType) -> None:
    row = sample.make().ranking[0]
    assert figures.rank_plot(row, "f1") == figures.rank_plot(row, "f1")


def test_a_figure_has_one_id_and_points_to_nothing(sample: ModuleType) -> None:
    analysis = sample.make()
    svg = figures.rank_plot(analysis.ranking[0], "f7") + figures.rater_heatmap(
        analysis.rater_matrices[0], "f8"
    )
    assert re.findall(r'\bid="([^"]+)"', svg) == ["f7", "f8"]
    assert "href" not in svg
    assert "url(" not in svg


def test_the_page_decides_on_colours_and_fonts(sample: ModuleType) -> None:
    svg = figures.rank_plot(sample.make().ranking[0], "f1")
    assert "var(--accent)" in svg
    assert not re.search("#[0-9a-f]{6}", svg)
    assert "font-family" not in svg
    assert "<style" not in svg
    assert "http" not in svg


def test_names_are_text_and_long_ones_carry_the_whole(sample: ModuleType) -> None:
    svg = figures.rank_plot(sample.hostile().ranking[0], "f1")
    assert "<script" not in svg
    assert "<img" not in svg
    shown = texts(svg)
    assert any("<script>" in t for t in shown)
    titles = [t.text or "" for t in ElementTree.fromstring(svg).iter("title")]
    assert any(t.startswith("a-system-with") and len(t) > 300 for t in titles)
    assert not any("\\frac" in t and "$" not in t for t in shown)


def test_text_is_never_read_as_mathematics_nor_missed_in_silence(sample: ModuleType) -> None:
    row = sample.ranking("c", "bootstrap", ("$x_1$", "系统"), 0.1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = figures.rank_plot(dataclasses.replace(row, unit="$y$"), "f1")
    assert {"$x_1$", "系统", "$y$"} <= set(texts(svg))


def test_undefined_scores_are_written_out(sample: ModuleType) -> None:
    row = sample.ranking("c", "bootstrap", ("a", "b"), 0.1, 0)
    scores = tuple(dataclasses.replace(s, score=NAN, low=NAN, high=NAN) for s in row.scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = figures.rank_plot(dataclasses.replace(row, scores=scores), "f1")
    assert texts(svg).count("undefined") == 2


def test_one_value_for_all_and_infinite_ends_still_plot(sample: ModuleType) -> None:
    row = sample.ranking("c", "bootstrap", ("a", "b"), 0.1, 0)
    scores = tuple(dataclasses.replace(s, score=0.0, low=-np.inf, high=np.inf) for s in row.scores)
    assert "a" in texts(figures.rank_plot(dataclasses.replace(row, scores=scores), "f1"))


def test_axis_labels_are_the_values_of_their_ticks(sample: ModuleType) -> None:
    row = sample.ranking("c", "bootstrap", ("a", "b"), 0.1, 0)
    ends = ((0.5, 0.45, 0.6), (-0.5, -0.6, -0.45))
    scores = tuple(
        dataclasses.replace(s, score=x, low=low, high=high)
        for s, (x, low, high) in zip(row.scores, ends, strict=True)
    )
    shown = texts(figures.rank_plot(dataclasses.replace(row, scores=scores), "f1"))
    ticks = [float(t.replace("−", "-")) for t in shown if re.fullmatch(r"−?\d+\.?\d*", t)]
    steps = np.diff(sorted(ticks))
    assert len(steps) >= 2
    assert np.allclose(steps, steps[0])


def test_groups_stand_at_the_right(sample: ModuleType) -> None:
    row = sample.ranking("c", "bootstrap", ("a", "b", "c"), 0.1, 0)
    row = dataclasses.replace(row, groups=(("a", "b"), ("c",)))
    assert {"1.–2.", "3."} <= set(texts(figures.rank_plot(row, "f1")))


def test_negative_and_undefined_pairs_are_marked_not_only_coloured(sample: ModuleType) -> None:
    matrix = dataclasses.replace(
        sample.make().rater_matrices[0],
        raters=("a", "b", "c"),
        values=((1.0, -0.5, NAN), (-0.5, 1.0, 0.2), (NAN, 0.2, 1.0)),
    )
    shown = texts(figures.rater_heatmap(matrix, "f1"))
    assert shown.count("−") == 2
    assert shown.count("·") == 2


def test_bars_without_any_rating(sample: ModuleType) -> None:
    summary = sample.make().criteria[0]
    silent = tuple(dataclasses.replace(d, counts=(0,) * len(d.counts)) for d in summary.systems)
    svg = figures.system_bars(dataclasses.replace(summary, systems=silent), "f1")
    assert "Slug2Slug" in texts(svg)


def test_the_darkest_cell_is_told(sample: ModuleType) -> None:
    summary = sample.make().criteria[0]
    one = dataclasses.replace(summary.raters[0], counts=(6, 2, 0, 0, 0, 0, 0, 0))
    only = dataclasses.replace(summary, raters=(one,))
    svg, darkest = figures.rater_strips(only, "f1"), figures.darkest_share(only)
    assert darkest == pytest.approx(0.75)
    opacities = [path.get("stroke-opacity") for path in ElementTree.fromstring(svg).iter("path")]
    assert [opacity for opacity in opacities if opacity] == ["0.3", "0.9"]


def test_label_is_the_text_alternative() -> None:
    chart = Canvas(10, 10, left=0, right=0, top=0, bottom=0)
    svg = ElementTree.fromstring(inline_svg(chart, prefix="f1", label='a "b" <c>'))
    assert svg.get("aria-label") == 'a "b" <c>'
    assert svg.get("role") == "img"


def test_a_report_is_drawn_without_a_plotting_library(
    sample: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "PIL"):
        monkeypatch.setitem(sys.modules, name, None)  # to import it would be an error
    assert "<svg" in render_report(sample.one_system())


def difference(criterion: str, system: str, against: str) -> IntervalRow:
    return IntervalRow(
        criterion=criterion, system=system, against=against, value=0.4, low=0.1, high=0.7, p=0.01,
        adjusted_p=0.02, se=0.1, df=9, n=60, n_dialogues=20, n_raters=3, se_rows=0.1, dialogue_share=0.8,
        rater_share=0.2, confidence=0.95,
    )  # fmt: skip


def test_differences_name_both_systems_and_the_criterion() -> None:
    short = [difference(name, "reply", "server") for name in ("naturalness", "informativeness")]
    shown = texts(figures.difference_plot(short, "f1"))
    assert [t for t in shown if t in ("naturalness", "informativeness")] == ["naturalness", "informativeness"]
    assert shown.count("reply – server") == 2
    one = [difference("quality", "GPT", "DialoGPT-large")]
    assert texts(figures.difference_plot(one, "f1"))[-1] == "GPT – DialoGPT-large", "there is room"
    long = [difference("quality", "DialoGPT-medium-tuned", other) for other in ("BlenderBot-400M", "T5")]
    *_, first, second = texts(figures.difference_plot(long, "f1"))
    assert first.endswith("DialoG…ed – Blende…0M")
    assert second.endswith("DialoG…ed – T5")
