"""MAUVE beside mauve-text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from palaver.metrics import mauve
from palaver.metrics.evaluate import evaluate
from palaver.metrics.mauve import SEEDS, mauve_of_histograms, mauve_of_vectors
from palaver.metrics.metric import METRICS
from palaver.models.encoders import Encoder

DATA = Path(__file__).parents[1] / "data" / "model-metrics"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["mauve"]
SETS = {"equal": (0.0, 200, 200), "near": (0.6, 300, 300), "far": (1.5, 250, 400), "apart": (6.0, 200, 200)}

LETTERS = Encoder("letters", "s", "", lambda texts: [[t.count(letter) for letter in "abcde"] for t in texts])


def vectors(name: str) -> tuple[np.ndarray, np.ndarray]:
    """As in make.py."""
    shift, n_p, n_q = SETS[name]
    rng = np.random.default_rng(sorted(SETS).index(name))
    return rng.normal(1.0, 1.0, (n_p, 8)), rng.normal(1.0, 1.0, (n_q, 8)) + shift * np.eye(8)[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_area_of_the_same_clusters_is_the_same(name: str) -> None:
    record = EXPECTED[name]
    area = mauve_of_histograms(np.array(record["p"]), np.array(record["q"]))
    assert area == pytest.approx(record["values"][0], abs=1e-9)


@pytest.mark.parametrize("name", EXPECTED)
def test_own_clusters_come_to_what_theirs_do(name: str) -> None:
    theirs = EXPECTED[name]["values"]
    ours = [mauve_of_vectors(*vectors(name), seed) for seed in SEEDS[:2]]
    room = max(np.ptp(theirs), 0.01)
    assert min(theirs) - room < np.mean(ours) < max(theirs) + room
    assert ours[0] == mauve_of_vectors(*vectors(name), 0)


def test_a_figure_has_the_spread_of_its_seeds_and_none_where_sets_are_equal() -> None:
    metric = replace(METRICS.get("mauve"), runs=lambda examples: mauve._runs(examples, LETTERS))
    rng = np.random.default_rng(0)
    said, expected = (
        ["".join(rng.choice(list(letters), 6)) for _ in range(60)] for letters in ("abcd", "bcde")
    )
    row = evaluate(said, expected, metrics=[metric])["mauve"]
    assert 0 < row.low < row.value < row.high < 1
    assert "5 clusterings" in row.reason
    same = evaluate(said, said[::-1], metrics=[metric])["mauve"]
    assert (same.value, same.low, same.high) == pytest.approx((1, 1, 1))
    assert evaluate(["a"], ["a"], metrics=[metric])["mauve"].value == 1
    assert np.isnan(evaluate(["a"], [[]], metrics=[metric])["mauve"].value)
