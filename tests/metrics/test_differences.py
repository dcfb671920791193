"""Pairs of systems: the exact test of few items, and why an interval has no width."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from palaver.metrics.differences import MOST_EXACT, MetricDifference
from palaver.metrics.file_scores import score_files
from palaver.statistics.significance import permutation_test

REFERENCE = "one two three four five six seven eight"
WORDS = REFERENCE.split()


def compare(tmp_path: Path, a: list[str], b: list[str], metric: str = "unigram_f1") -> MetricDifference:
    rows = [
        {"id": str(i), "system": system, "response": text, "reference": REFERENCE}
        for system, said in (("a", a), ("b", b))
        for i, text in enumerate(said)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    [difference] = score_files(path, [metric], n_replicates=300).differences
    return difference


def test_four_equal_differences_do_not_give_a_tiny_p(tmp_path: Path) -> None:
    pair = compare(tmp_path, [REFERENCE] * 4, ["no"] * 4)
    assert (pair.low, pair.high) == (1, 1)
    assert "all replicates are equal" in pair.reason
    assert pair.test == "exact"
    assert pair.p == 2 / 2**4  # of the 16 ways to swap the two, two are as far apart


def test_few_items_are_tested_as_the_permutation_test_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    said = [[" ".join(WORDS[: 1 + k]) for k in rng.integers(0, 8, 7)] for _ in range(2)]
    pair = compare(tmp_path, *said)
    f1 = [[2 * n / (8 + n) for n in (len(text.split()) for text in of_one)] for of_one in said]
    expected = permutation_test(f1[0], f1[1], paired=True, rng=0)
    assert expected.exact
    assert pair.p == pytest.approx(expected.p)
    assert pair.reason == ""


def test_a_figure_of_sums_is_swapped_row_by_row(tmp_path: Path) -> None:
    from sacrebleu import corpus_bleu

    a = [REFERENCE, "one two three four no", "six seven eight one", "one two three four five"]
    b = ["five six seven eight", "no one two three four", "no", "two three four five six seven"]
    pair = compare(tmp_path, a, b, "bleu")
    gaps = []
    for swaps in product((False, True), repeat=4):
        sides = [(y, x) if swap else (x, y) for x, y, swap in zip(a, b, swaps, strict=True)]
        one, other = (corpus_bleu(list(side), [[REFERENCE] * 4]).score for side in zip(*sides, strict=True))
        gaps.append(abs(one - other))
    assert pair.p == np.mean([gap >= gaps[0] - 1e-9 for gap in gaps])


def test_rows_in_which_both_are_equal_do_not_count_as_many(tmp_path: Path) -> None:
    pair = compare(tmp_path, [REFERENCE] * 40, ["no"] * 3 + [REFERENCE] * 37)
    assert (pair.n, pair.test) == (40, "exact")
    assert pair.p == 2 / 2**3


def test_many_items_are_drawn_and_equal_differences_say_so(tmp_path: Path) -> None:
    n = MOST_EXACT + 1
    pair = compare(tmp_path, [REFERENCE] * n, ["no"] * n)
    assert pair.test == "bootstrap"
    assert pair.p == pytest.approx(1 / 301)
    assert "all replicates are equal" in pair.reason


def test_equal_systems_and_pairs_without_items_say_why(tmp_path: Path) -> None:
    same = compare(tmp_path, ["one"] * 3, ["one"] * 3)
    assert (same.difference, same.p) == (0, 1)
    alone = compare(tmp_path, ["one"], ["two"])
    assert math.isnan(alone.p)
    assert alone.test == ""
    assert "two items" in alone.reason


def test_systems_that_share_no_item_are_named(tmp_path: Path) -> None:
    rows = [
        {"id": f"{i} {name if name == 'c' else ''}", "system": name, "response": "one", "reference": "one"}
        for name in "abc"
        for i in range(3)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = score_files(path, ["unigram_f1"], n_replicates=20).notes
    assert "not compared, for they share no item: a and c, b and c" in notes


def test_too_few_replicates_for_many_pairs_are_said(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "system": f"s{k}", "response": "one " * (k + 1), "reference": "one"}
        for k in range(4)
        for i in range(20)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    [note] = score_files(path, ["words"], n_replicates=99).notes
    assert note == "99 replicates cannot give a p (Holm) below 0.06 with 6 pairs: --replicates 120 or more"
    enough = score_files(path, ["words"], n_replicates=120)
    assert enough.notes == ()
    assert all(pair.p_holm < 0.05 for pair in enough.differences)


def test_too_few_items_for_many_pairs_are_said_and_replicates_are_no_remedy(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "system": f"s{k}", "response": "one " * (k + 1), "reference": "one"}
        for k in range(4)
        for i in range(6)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = score_files(path, ["words"], n_replicates=99)
    assert scores.notes == ("6 items cannot give a p (Holm) below 0.19 with 6 pairs: only more items can",)
    assert {pair.p_holm for pair in scores.differences} == {6 * 2 / 2**6}


def test_a_difference_that_is_rounding_only_proves_nothing(tmp_path: Path) -> None:
    """The same five responses to other items: the means differ by the order in which they are summed."""
    said = ["dogs", "dogs", "dogs cats dogs", "cats cats cats", "sun"]
    turned = ["sun", "dogs", "cats cats cats", "dogs", "dogs cats dogs"]
    rows = [
        {"id": str(i), "system": name, "response": texts[i], "reference": "cats dogs moon"}
        for i in range(5)
        for name, texts in (("a", said), ("b", turned))
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    [pair] = score_files(path, ["unigram_f1"], n_replicates=20).differences
    assert abs(pair.difference) < 1e-12
    assert (pair.test, pair.p) == ("exact", 1.0)


def test_pairs_without_a_test_are_not_counted_among_many(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "system": name, "response": "one " * (k + 1), "reference": "one"}
        for k, name in enumerate("abc")
        for i in range(1 if name == "c" else 6)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = score_files(path, ["words"], n_replicates=99)
    assert scores.notes == ()
    assert [pair.p_holm for pair in scores.differences if pair.test] == [2 / 2**6]
