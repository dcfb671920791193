from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from palaver.comparator.cleaning import Cleaning, RaterVerdict, RatingVerdict
from palaver.comparator.cmade.removal import RemovalCurves, halves
from palaver.comparator.evaluation import PairResult, calibration
from palaver.comparator.training_data import Pairs
from palaver.reports.compare import clean_page
from palaver.reports.compare_figures import rater_cloud, reliability_curve, removal_plot
from palaver.schema.run import record_run


def cleaned(name: str = "w1", low: float = 0.7) -> Cleaning:
    raters = (
        RaterVerdict(name, 6, 0.1, -0.2, 20.0, 50.0, 3.0, "drop", ("the rater <b>prefers</b> bad ones",)),
        RaterVerdict("w2", 12, 1.1, 0.6, 15.0, 40.0, 7.0, "keep", ()),
    )
    rows = (
        RatingVerdict("d1", name, 50.0, 40.0, "drop", ("because",), 0.9),
        RatingVerdict("d2", "w2", 50.0, 40.0, "keep", (), 0.0),
    )
    counts = {"keep": 1, "suspicious": 0, "drop": 1}
    agreement = PairResult(0.78, low, 0.9, 0.5, 0.1, 40)
    return Cleaning(rows, raters, counts, {"because": 1}, agreement, ("a note",))


def curves() -> RemovalCurves:
    rng = np.random.default_rng(0)
    return RemovalCurves(
        removed=np.array([0, 5, 9]),
        ks=np.arange(1, 11),
        by_value=rng.random((3, 10)),
        at_random=rng.random((2, 3, 10)),
        n_train=10,
        n_pairs=7,
    )


def test_figures_are_the_same_every_time_and_well_formed() -> None:
    calibrated = calibration([0.1, 0.2, 0.8, 0.9, 0.6], [-1, -1, 1, 1, -1])
    drawn = [
        (rater_cloud(cleaned(), "f"), reliability_curve(calibrated, "f"), removal_plot(curves(), "f"))
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    assert all(ElementTree.fromstring(text).get("aria-label") for text in drawn[0])


def test_the_label_says_what_the_curve_shows() -> None:
    text = reliability_curve(calibration([0.75] * 4, [1, 1, 1, -1]), "f")
    assert "expected calibration error 0.000" in text


def test_the_page_escapes_what_people_typed() -> None:
    page = clean_page(cleaned("<script>alert(1)</script>"), record_run("palaver compare clean"))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "1 of 2 ratings can be kept" in page
    assert "78% of 40 comparisons within a sitting (95%: 70% to 90%; a coin: 50%)" in page


def test_nobody_is_dropped_by_a_coin() -> None:
    notes = ["3 dialogues left out: no rating"]
    page = clean_page(cleaned(low=0.45), record_run("palaver compare clean"), notes)
    assert "should be dropped" not in page
    assert "drop nobody for disagreeing with it" in page
    assert notes[0] in page


def test_pairs_are_halved_by_group_and_none_is_lost() -> None:
    rows = np.arange(40)
    pairs = Pairs(rows, rows + 40, np.ones(40, np.int8))
    groups = rows // 8
    one, other = halves(pairs, groups, seed=1)
    assert sorted([*one.first, *other.first]) == rows.tolist()
    assert not set(groups[one.first]) & set(groups[other.first])
    assert (len(one), len(other)) == (16, 24)
    assert [len(part) for part in halves(pairs, np.zeros(40))] == [0, 40]
