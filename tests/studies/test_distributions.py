"""How often each value was given."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import slow_analysis as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from study_strategies import Row, tables, write_csv

from palaver.schema import Item, Likert, Magnitude, Output, Question, Study
from palaver.studies import read_ratings
from palaver.studies.distributions import MAX_BINS, summarise
from palaver.studies.judgements import judgements_of
from palaver.studies.results import CriterionSummary

pytestmark = pytest.mark.filterwarnings("error")


def summary(
    rows: list[Row], folder: Path, scale: object = None, columns: list[str] | None = None
) -> CriterionSummary:
    path = write_csv(rows, folder / "r.csv", columns or ["item", "system", "rater", "criterion", "value"])
    study = None
    if scale is not None:
        study = Study(
            name="s",
            questions=(Question(criterion="q", text="?", scale=scale),),  # type: ignore[arg-type]
            items=(Item(id="i", outputs=(Output(system="a", text=""),)),),
        )
    return summarise(judgements_of(read_ratings(path, study=study), "q"))


@given(rows=tables(criteria=("q",)))
@settings(max_examples=30, deadline=None)
def test_counts_by_brute_force(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    found = summary(rows, tmp_path_factory.mktemp("d"), Likert())
    assert found.bins == ("1", "2", "3", "4", "5", "6")  # also those nobody chose
    for distributions, key in ((found.systems, "system"), (found.raters, "rater")):
        expected = slow.counts(rows, key)
        assert {d.name for d in distributions} == set(expected)
        for d in distributions:
            assert d.counts == tuple(expected[d.name][value] for value in range(1, 7))
    values = [row["value"] for row in rows]
    assert (found.minimum, found.maximum, found.n_ratings) == (min(values), max(values), len(rows))
    assert found.n_items == len({row["item"] for row in rows})
    assert found.n_outputs == len({(row["item"], row["system"]) for row in rows})
    assert found.n_raters == len({row["rater"] for row in rows})


def numbers(values: list[float]) -> list[Row]:
    return [
        {"item": f"i{n}", "system": "s", "rater": "r", "criterion": "q", "value": value}
        for n, value in enumerate(values)
    ]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_every_number_is_in_a_bin(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    found = summary(numbers(values), tmp_path_factory.mktemp("b"))
    assert sum(found.systems[0].counts) == len(values)
    assert len(found.systems[0].counts) == len(found.bins) <= MAX_BINS


def test_few_values_have_a_bin_each(tmp_path: Path) -> None:
    found = summary(numbers([50, 100, 100, 250.5]), tmp_path)
    assert found.bins == ("50", "100", "250.5")
    assert found.systems[0].counts == (1, 2, 1)


def test_magnitudes_have_bins_of_equal_ratio(tmp_path: Path) -> None:
    found = summary(numbers([float(round(v)) for v in np.geomspace(1, 10_000, 50)]), tmp_path, Magnitude())
    edges = [float(label.split("–")[0]) for label in found.bins]
    ratios = np.array(edges[1:]) / edges[:-1]
    assert len(found.bins) == MAX_BINS
    assert ratios == pytest.approx(np.full(MAX_BINS - 1, ratios[0]), rel=0.1)


def test_one_outlier_does_not_hide_the_others(tmp_path: Path) -> None:
    values = [*np.linspace(80, 120, 200).tolist(), 1e6]
    found = summary(numbers(values), tmp_path)
    assert sum(count > 0 for count in found.systems[0].counts) > 6


def test_pairs_count_for_both_sides(tmp_path: Path) -> None:
    columns = ["item", "system", "against", "rater", "criterion", "value"]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in [
            ("i", "a", "b", "r", "q", "win"),
            ("j", "a", "b", "r", "q", "win"),
            ("k", "b", "a", "r", "q", "tie"),
        ]
    ]
    found = summary(rows, tmp_path, columns=columns)
    assert found.bins == ("loss", "tie", "win")
    assert {d.name: d.counts for d in found.systems} == {"a": (0, 1, 2), "b": (2, 1, 0)}
    assert sum(found.raters[0].counts) == 3
    assert math.isnan(found.minimum)


def test_boxes(tmp_path: Path) -> None:
    rows = [
        {"item": f"i{n}", "system": s, "rater": "r", "criterion": "q", "value": v}
        for s, answers in (("a", ["ok", "ok", "added"]), ("b", ["added|missing", "missing", "ok"]))
        for n, v in enumerate(answers)
    ]
    found = summary(rows, tmp_path)
    shares = {system: dict(by) for system, by in found.choices}
    assert shares["a"] == pytest.approx({"added": 1 / 3, "missing": 0, "ok": 2 / 3})
    assert shares["b"] == pytest.approx({"added": 1 / 3, "missing": 2 / 3, "ok": 1 / 3})
    assert sum(found.systems[0].counts) == 3
