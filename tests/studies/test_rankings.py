"""Which system is ahead."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import slow_analysis as slow
from hypothesis import given, settings
from study_strategies import Row, tables, write_csv

from palaver.statistics.bootstrap import Resampling
from palaver.statistics.ranking import win_matrix
from palaver.studies import read_ratings
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.rankings import compare_pairs, compare_within_screens, item_means, rank_systems
from palaver.studies.ratings import as_rating_table
from palaver.studies.results import RankingRow

pytestmark = pytest.mark.filterwarnings("error")


def judged_from(text: str, folder: Path, criterion: str = "q") -> Judgements:
    path = folder / "r.csv"
    path.write_text(text, encoding="utf-8")
    return judgements_of(read_ratings(path), criterion, "raw")


def ranking(judged: Judgements, n_replicates: int = 200, seed: int = 0) -> dict[str, RankingRow]:
    found = rank_systems(judged, Resampling(0.95, n_replicates, np.random.default_rng(seed)))
    return {f"{row.criterion} {row.method}": row for row in found}


@given(rows=tables(criteria=("q",)))
@settings(max_examples=60, deadline=None)
def test_means_and_comparisons_by_brute_force(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    judged = judgements_of(read_ratings(write_csv(rows, tmp_path_factory.mktemp("r") / "r.csv")), "q", "raw")
    means = item_means(judged.score, judged.item, judged.system, len(judged.items), len(judged.systems))
    expected = slow.output_means(rows)
    for i, name in enumerate(judged.items):
        for s, system in enumerate(judged.systems):
            assert means[i, s] == pytest.approx(expected.get((name, system), math.nan), nan_ok=True)
    compared, item = compare_within_screens(judged)
    matrix = win_matrix(compared, len(judged.systems))
    wins, ties = slow.comparisons(rows)
    for a, first in enumerate(judged.systems):
        for b, second in enumerate(judged.systems):
            assert matrix.wins[a, b] == wins[first, second]
            assert a == b or matrix.ties[a, b] == ties[frozenset((first, second))]
    assert len(compared) == wins.total() + ties.total()
    assert {judged.items[int(i)] for i in item} <= {row["item"] for row in rows}


@given(rows=tables(criteria=("q",)))
@settings(max_examples=20, deadline=None)
def test_scores_of_every_method_cover_the_systems(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    judged = judgements_of(read_ratings(write_csv(rows, tmp_path_factory.mktemp("r") / "r.csv")), "q", "raw")
    for row in ranking(judged, 20).values():
        named = [score.system for score in row.scores]
        assert len(set(named)) == len(named)
        assert set(named) <= set(judged.systems)
        if row.reason:
            assert row.groups == ()
            assert row.label == ""
        else:
            assert [name for group in row.groups for name in group] == named
            assert row.label.count(".") >= len(row.groups)
        scores = [score.score for score in row.scores]
        assert scores == sorted(scores, reverse=True)
        assert np.shape(row.better) == (len(named), len(named)) or not named
    bootstrap = ranking(judged, 20).get("q bootstrap")
    if bootstrap is not None:
        expected = slow.system_means(rows)
        for score in bootstrap.scores:
            assert score.score == pytest.approx(expected[score.system])
            assert score.n == sum(row["system"] == score.system for row in rows)


def table_text(n_items: int, quality: dict[str, int], raters: int = 3) -> str:
    noise = np.random.default_rng(1)
    rows = [
        f"i{i},{system},r{r},q,{base + noise.integers(4)}"
        for i in range(n_items)
        for system, base in quality.items()
        for r in range(raters)
    ]
    return "\n".join(["item,system,rater,criterion,value", *rows]) + "\n"


def test_clear_differences_are_found_by_every_method(tmp_path: Path) -> None:
    judged = judged_from(table_text(40, {"low": 1, "high": 4, "mid": 2}), tmp_path)
    for row in ranking(judged).values():
        assert row.groups == (("high",), ("mid",), ("low",)), row.method
        assert row.label == "1. high, 2. mid, 3. low"
        assert row.better[0][2] >= 0.95


def test_a_system_that_always_wins_has_no_finite_strength(tmp_path: Path) -> None:
    rows = ranking(judged_from(table_text(25, {"low": 1, "high": 9}), tmp_path))
    assert rows["q bradley-terry"].groups == ()
    assert rows["q bradley-terry"].reason
    assert rows["q trueskill"].groups == rows["q bootstrap"].groups == (("high",), ("low",))


def test_equal_systems_share_a_place(tmp_path: Path) -> None:
    judged = judged_from(table_text(20, {"one": 3, "two": 3}), tmp_path)
    for row in ranking(judged).values():
        assert set(row.groups[0]) == {"one", "two"}, row.method
        assert row.label.startswith("1.–2. ")


def test_systems_that_never_meet_cannot_be_compared(tmp_path: Path) -> None:
    text = "item,system,rater,criterion,value\n" + "".join(
        f"i{n},s{n % 2},r{n},q,{n % 6 + 1}\n" for n in range(12)
    )
    rows = ranking(judged_from(text, tmp_path))
    for method in ("trueskill", "bradley-terry"):
        assert rows[f"q {method}"].groups == ()
        assert rows[f"q {method}"].reason
    assert rows["q bootstrap"].groups  # each system has items of its own


PAIRS = "item,system,against,rater,criterion,value\n"


def pair_text(n: int) -> str:
    """a beats b, b beats c; told now from one side, now from the other."""
    lines = []
    for i in range(n):
        lines.append(f"i{i},a,b,r{i % 3},q,win" if i % 2 else f"i{i},b,a,r{i % 3},q,loss")
        lines.append(f"i{i},b,c,r{i % 3},q,win" if i % 3 else f"i{i},c,b,r{i % 3},q,tie")
    return PAIRS + "\n".join(lines) + "\n"


def test_pairs_are_ranked_from_whichever_side_they_are_told(tmp_path: Path) -> None:
    judged = judged_from(pair_text(24), tmp_path)
    rows = ranking(judged)
    for method in ("bootstrap", "trueskill"):
        assert rows[f"q {method}"].groups == (("a",), ("b",), ("c",))
    rates = {s.system: s.score for s in rows["q bootstrap"].scores}
    # per item: a wins 1; b has the mean of a loss and (a win, or every third time a tie); c the rest
    assert rates["a"] == pytest.approx(1.0)
    assert rates["b"] == pytest.approx((16 * 0.5 + 8 * 0.25) / 24)
    assert rates["c"] == pytest.approx((16 * 0 + 8 * 0.5) / 24)


def test_wins_of_pairs_by_brute_force(tmp_path: Path) -> None:
    judged = judged_from(pair_text(24), tmp_path)
    compared, item = compare_pairs(judged)
    matrix = win_matrix(compared, 3)
    assert matrix.wins.tolist() == [[0, 24, 0], [0, 0, 16], [0, 0, 0]]
    assert matrix.ties[1, 2] == 8
    assert sorted(item.tolist()) == sorted(judged.item.tolist())


def test_the_order_of_rows_does_not_matter_to_trueskill(tmp_path: Path) -> None:
    """Its updates depend on their order, so screens are put in one order first."""
    rng = np.random.default_rng(0)
    for text in (table_text(15, {"a": 2, "bb": 3, "ccc": 3}), pair_text(15)):
        head, *lines = text.splitlines()
        expected = ranking(judged_from(text, tmp_path), 50)
        shuffled = "\n".join([head, *(lines[i] for i in rng.permutation(len(lines)))]) + "\n"
        found = ranking(judged_from(shuffled, tmp_path), 50)
        for name, row in expected.items():
            assert found[name].groups == row.groups
            for a, b in zip(found[name].scores, row.scores, strict=True):
                assert (a.system, a.n) == (b.system, b.n)
                assert (a.score, a.low, a.high) == pytest.approx((b.score, b.low, b.high), nan_ok=True)


def test_boxes_are_ranked_by_what_they_report(tmp_path: Path) -> None:
    lines = [
        f"i{i},{s},r,q,{'added' if i < n else 'ok'}" for s, n in (("good", 0), ("bad", 18)) for i in range(20)
    ]
    rows = ranking(judged_from("item,system,rater,criterion,value\n" + "\n".join(lines), tmp_path))
    assert list(rows) == ["q: added bootstrap"]  # "ok" reports nothing
    row = rows["q: added bootstrap"]
    assert row.groups == (("good",), ("bad",))
    assert [s.score for s in row.scores] == pytest.approx([1.0, 0.1])
    assert "without “added”" in row.unit


UNSURE = "the interval cannot show how sure this is"


def reasons(row: RankingRow) -> dict[str, str]:
    return {score.system: score.reason for score in row.scores}


def test_an_interval_without_width_says_why(tmp_path: Path) -> None:
    lines = ["item,system,against,rater,criterion,value", *(f"i{i},a,b,r,q,win" for i in range(12))]
    rows = ranking(judged_from("\n".join(lines), tmp_path))
    expected = {"a": f"won all 12 comparisons: {UNSURE}", "b": f"lost all 12 comparisons: {UNSURE}"}
    assert reasons(rows["q bootstrap"]) == reasons(rows["q trueskill"]) == expected
    assert "a never lost" in rows["q bradley-terry"].reason


@pytest.mark.parametrize("lines", [1, 3])
def test_ratings_that_never_change_say_so(lines: int, tmp_path: Path) -> None:
    head = "item,system,rater,criterion,value"
    same = [f"i{i},{s},r{r},q,4" for i in range(5) for s in "ab" for r in range(lines)]
    rows = ranking(judged_from("\n".join([head, *same]), tmp_path))
    assert reasons(rows["q bootstrap"])["a"] == f"always rated alike ({5 * lines} ratings): {UNSURE}"
    for method in ("trueskill", "bradley-terry"):
        assert reasons(rows[f"q {method}"])["b"] == f"drew all {5 * lines} comparisons: {UNSURE}"


def test_the_same_mean_on_every_item_and_one_item(tmp_path: Path) -> None:
    head = "item,system,rater,criterion,value"
    balanced = [f"i{i},a,r{r},q,{v}" for i in range(5) for r, v in enumerate((2, 4))]
    rows = ranking(judged_from("\n".join([head, *balanced, "i0,b,r0,q,3"]), tmp_path))
    assert reasons(rows["q bootstrap"]) == {
        "a": f"the same mean on every item: {UNSURE}",
        "b": "one item only, so there is no interval",
    }


def test_three_systems_in_one_order_everywhere(tmp_path: Path) -> None:
    """TrueSkill's intervals then show the order of the comparisons, and nothing about the systems."""
    head = "item,system,rater,criterion,value"
    ordered = [f"i{i},{s},r,q,{v + i % 2}" for i in range(8) for s, v in (("a", 5), ("b", 3), ("c", 1))]
    rows = ranking(judged_from("\n".join([head, *ordered]), tmp_path))
    assert reasons(rows["q trueskill"]) == {
        "a": f"won all 16 comparisons: {UNSURE}",
        "b": f"all comparisons with one and the same system ended alike: {UNSURE}",
        "c": f"lost all 16 comparisons: {UNSURE}",
    }
    assert not any(reasons(rows["q bootstrap"]).values())


def test_one_item_and_items_that_say_the_same_show_nothing_about_others(tmp_path: Path) -> None:
    head = "item,system,rater,criterion,value"
    split = [
        f"i{{i}},{s},r{r},q,{v}"
        for r, ab in enumerate(((4, 2), (2, 4), (3, 2)))
        for s, v in zip("ab", ab, strict=True)
    ]
    alone = ranking(judged_from("\n".join([head, *(line.format(i=0) for line in split)]), tmp_path))
    for method in ("trueskill", "bradley-terry"):
        assert alone[f"q {method}"].reason == "one item: there is nothing to resample"
        assert not alone[f"q {method}"].groups
    assert {*reasons(alone["q bradley-terry"]).values()} == {"one item only, so there is no interval"}
    copies = [line.format(i=i) for i in range(6) for line in split]
    rows = ranking(judged_from("\n".join([head, *copies]), tmp_path))
    assert {*reasons(rows["q bradley-terry"]).values()} == {f"all items say the same: {UNSURE}"}
    assert {*reasons(rows["q bootstrap"]).values()} == {f"the same mean on every item: {UNSURE}"}


def test_items_of_one_context_are_drawn_together(tmp_path: Path) -> None:
    """Comparisons of which four copies are items of one context are no more evidence than before."""
    outcomes = ["win", "win", "loss", "win", "tie", "win", "loss", "win", "win", "loss"]
    head = "item,context,system,against,rater,criterion,value"

    def rank(n_copies: int, context: str) -> dict[str, RankingRow]:
        rows = [
            f"i{i}.{copy},{context.format(i)},a,b,r{copy},q,{outcome}"
            for i, outcome in enumerate(outcomes)
            for copy in range(n_copies)
        ]
        return ranking(judged_from("\n".join([head, *rows]), tmp_path), n_replicates=1000)

    once, together, apart = rank(1, "c{}"), rank(4, "c{}"), rank(4, "")
    assert {row.n_items for row in together.values()} == {10}
    assert {row.n_items for row in apart.values()} == {40}
    for method in ("bootstrap", "bradley-terry"):
        widths = [
            sum(score.high - score.low for score in rows[f"q {method}"].scores)
            for rows in (once, together, apart)
        ]
        assert widths[1] == pytest.approx(widths[0], rel=0.15)
        assert widths[2] < 0.65 * widths[0]


def test_an_interval_that_would_need_a_bound_says_so(tmp_path: Path) -> None:
    head = "item,system,rater,criterion,value"
    rows = [
        f"i{i},{s},r,q,{v}" for i in range(20) for s, v in zip("ab", (1, 2) if i else (2, 1), strict=True)
    ]
    row = ranking(judged_from("\n".join([head, *rows]), tmp_path))["q bradley-terry"]
    assert all(math.isnan(score.low) for score in row.scores)
    assert all(re.match(r"no bound in \d\d% of the draws", reason) for reason in reasons(row).values())


def of_contexts(contexts: dict[str, list[str]]) -> Judgements:
    """Three raters, systems a and b; system -> the context of each of its items."""
    rng = np.random.default_rng(0)
    rows = [
        {"item": f"{context} {i}", "context": context, "system": system, "rater": f"r{r}", "criterion": "q",
         "value": float(rng.normal())}
        for system, names in contexts.items()
        for i, context in enumerate(names)
        for r in range(3)
    ]  # fmt: skip
    return judgements_of(as_rating_table(pl.DataFrame(rows)), "q", "raw")


def test_items_of_one_context_say_so() -> None:
    judged = of_contexts({"a": ["c"] * 6, "b": ["c"] * 6})
    for row in rank_systems(judged, Resampling.of(0.95, 50, np.random.default_rng(0))):
        assert "same context" in row.reason
        assert row.groups == ()
        assert all("same context" in score.reason for score in row.scores)


def test_a_system_of_one_context_says_why_it_has_no_interval() -> None:
    judged = of_contexts({"a": ["c"] * 6, "b": ["c", "d", "e", "c", "d", "e"]})
    row = next(rank_systems(judged, Resampling.of(0.95, 50, np.random.default_rng(0))))
    of = {score.system: score for score in row.scores}
    assert math.isnan(of["a"].low)
    assert "same context" in of["a"].reason
    assert of["b"].low < of["b"].high
    assert not of["b"].reason
