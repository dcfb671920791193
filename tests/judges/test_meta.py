"""Judges beside people: figures of simulated judges of known quality, and everything that may be wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from palaver import ratings_from_frame
from palaver.errors import DataError, UserError
from palaver.judges.labels import SEEN
from palaver.judges.meta import meta_evaluate
from palaver.reports import numbers
from palaver.reports.meta import meta_page
from palaver.statistics.alpha import krippendorff_alpha

N_ITEMS, SYSTEMS = 40, ("a", "b", "c", "d")


def rows_of(scores: np.ndarray, rater: str, criterion: str, kind: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"item": f"i{i}", "system": SYSTEMS[j], "rater": rater, "criterion": criterion, "kind": kind,
         "value": float(scores[i, j]), "signature": "", **more}
        for i in range(scores.shape[0])
        for j in range(scores.shape[1])
        if np.isfinite(scores[i, j])
    ]  # fmt: skip


@pytest.fixture(scope="module")
def world() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    quality = rng.normal(size=(N_ITEMS, 4)) + np.array([0, 0.3, 0.6, 0.9])
    people = np.clip(np.rint(quality + 3 + rng.normal(size=(3, N_ITEMS, 4))), 1, 5)
    good = quality + 0.5 * rng.normal(size=quality.shape)
    poor = quality + 4 * rng.normal(size=quality.shape)
    return {"people": people, "good": good, "poor": poor}


def ratings(world: dict[str, np.ndarray], *more: list[dict[str, Any]]) -> Any:
    rows = [
        row
        for k, scores in enumerate(world["people"])
        for row in rows_of(scores, f"p{k}", "overall", "human")
    ]
    for judge in ("good", "poor"):
        rows += rows_of(world[judge], judge, judge, "model")
    return ratings_from_frame(pl.DataFrame([*rows, *(row for part in more for row in part)]))


@pytest.fixture(scope="module")
def result(world: dict[str, np.ndarray]) -> Any:
    return meta_evaluate(ratings(world), n_permutations=300)


def test_figures_are_those_of_scipy(world: dict[str, np.ndarray], result: Any) -> None:
    h = world["people"].mean(axis=0)
    of_good = result.of("overall", "good")
    x, y = h.ravel(), world["good"].ravel()
    assert of_good["outputs", "pearson"].value == pytest.approx(pearsonr(x, y).statistic)
    assert of_good["outputs", "spearman"].value == pytest.approx(spearmanr(x, y).statistic)
    assert of_good["outputs", "kendall"].value == pytest.approx(kendalltau(x, y).statistic)
    means = h.mean(axis=0), world["good"].mean(axis=0)
    assert of_good["systems", "pearson"].value == pytest.approx(pearsonr(*means).statistic)
    assert of_good["systems", "spearman"].value == pytest.approx(spearmanr(*means).statistic)
    assert of_good["systems", "kendall"].value == pytest.approx(kendalltau(*means).statistic)
    for row in of_good.values():
        if math.isfinite(row.low):
            assert row.low - 1e-9 <= row.value <= row.high + 1e-9


def test_the_better_judge_comes_first_and_the_test_says_so(result: Any) -> None:
    assert [row.judge for row in result.ranked("overall")] == ["good", "poor"]
    swap = next(test for test in result.tests if test.test == "permutation")
    assert (swap.a, swap.b) == ("good", "poor")
    assert swap.difference > 0
    assert swap.p <= swap.p_holm < 0.05
    assert {test.test for test in result.tests} == {"permutation"}  # Williams' takes outputs for independent
    of_pearson = next(test for test in result.tests if test.measure == "pearson")
    figures = [result.of("overall", judge)["outputs", "pearson"].value for judge in ("good", "poor")]
    assert of_pearson.difference == pytest.approx(figures[0] - figures[1])
    assert of_pearson.p < 0.05
    said = "good is closer to people than 1 of 1 other (Spearman, permutation test, Holm over all)."
    assert said in meta_page(result)  # one test of two; Pearson's is beside it in the table


def test_one_person_is_measured_beside_the_others(world: dict[str, np.ndarray], result: Any) -> None:
    ceiling = result.ceiling_of("overall")["outputs", "pearson"]
    people = world["people"]
    others = np.array([np.delete(people, k, axis=0).mean(axis=0) for k in range(3)])
    levels = (people - others).mean(axis=(1, 2), keepdims=True)
    assert ceiling.value == pytest.approx(np.corrcoef((people - levels).ravel(), others.ravel())[0, 1])
    assert ceiling.n == people.size


@pytest.mark.parametrize("each", [1, 3])
def test_a_person_who_rated_little_does_not_agree_with_the_others_by_it(each: int) -> None:
    """Of 200 outputs, each with three ratings; a rating and the mean of two others correlate by 0.58."""
    rng = np.random.default_rng(0)
    quality, raters = rng.normal(size=200), rng.permutation(600) // each
    rows = [
        {"item": f"i{i}", "system": "a", "rater": f"r{raters[3 * i + k]}", "criterion": "q", "kind": "human",
         "value": float(quality[i] + rng.normal()), "signature": ""}
        for i in range(200)
        for k in range(3)
    ]  # fmt: skip
    rows += rows_of(quality[:, None], "judge", "judge", "model")
    found = meta_evaluate(ratings_from_frame(pl.DataFrame(rows)), n_permutations=1, n_disagreements=0)
    ceiling = found.ceiling_of("q")["outputs", "pearson"]
    assert ceiling.low < 1 / math.sqrt(2 * 1.5) < ceiling.high
    assert ceiling.value == pytest.approx(1 / math.sqrt(2 * 1.5), abs=0.06)


def test_who_rated_an_output_twice_is_not_beside_themselves() -> None:
    """Two items of one context: a person's ratings of a system there are one, whatever comes first."""
    rng = np.random.default_rng(0)
    rows = [
        {"item": f"i{i}", "context": f"c{i // 2}", "system": "a", "rater": rater, "criterion": "q",
         "kind": kind, "value": float(rng.integers(1, 6))}
        for i in range(24)
        for rater, kind in (("r0", "human"), ("r1", "human"), ("judge", "model"))
    ]  # fmt: skip
    means = {
        rater: np.array([row["value"] for row in rows if row["rater"] == rater]).reshape(12, 2).mean(axis=1)
        for rater in ("r0", "r1")
    }
    ceilings = [
        meta_evaluate(ratings_from_frame(pl.DataFrame(ordered)), n_permutations=1).ceiling_of("q")
        for ordered in (rows, rows[::-1])
    ]
    one, other = (ceiling["outputs", "pearson"] for ceiling in ceilings)
    assert one.n == other.n == 24  # two people, each beside the other, on twelve contexts
    assert one.value == pytest.approx(other.value)
    own, others = np.r_[means["r0"], means["r1"]], np.r_[means["r1"], means["r0"]]
    assert one.value == pytest.approx(np.corrcoef(own, others)[0, 1], abs=0.1)  # but for levels


def test_people_who_differ_by_a_constant_and_one_who_rated_once() -> None:
    """Where levels explain everything, nothing is known of the level of who has no other rating."""
    rows = [
        {"item": f"i{i}", "system": "a", "rater": rater, "criterion": "q", "kind": "human",
         "value": float(i % 4 + above)}
        for i in range(11)
        for rater, above in ((("r0", 1), ("r1", 0)) if i else (("r2", 1), ("r3", 0)))
    ]  # fmt: skip
    rows += rows_of(np.arange(11.0)[:, None] % 4, "judge", "judge", "model")
    found = meta_evaluate(ratings_from_frame(pl.DataFrame(rows, infer_schema_length=None)), n_permutations=1)
    ceiling = found.ceiling_of("q")["outputs", "pearson"]
    assert ceiling.n == 22
    assert 0.5 < ceiling.value < 1


def test_alpha_with_the_judge_is_that_of_one_more_rater(world: dict[str, np.ndarray], result: Any) -> None:
    row = next(row for row in result.joined if row.judge == "good" and row.measure == "alpha")
    people = world["people"].reshape(3, -1)
    good = world["good"].ravel()
    moved = (good - good.mean()) / good.std() * people.std() + people.mean()
    assert row.rescaled
    assert row.people == pytest.approx(krippendorff_alpha(people.T, level="interval").value)
    joined = krippendorff_alpha(np.vstack([people, moved]).T, level="interval")
    assert row.with_judge == pytest.approx(joined.value)


def test_disagreements_come_largest_first(result: Any) -> None:
    gaps = [abs(one.gap) for one in result.disagreements if one.judge == "poor"]
    assert len(gaps) == 10
    assert gaps == sorted(gaps, reverse=True)


def test_intervals_cover_what_more_dialogues_would_show() -> None:
    truth = 1 / math.sqrt(1 + 1 / 3) / math.sqrt(2)  # of the mean of three people, and of the judge
    hits = 0
    rng = np.random.default_rng(1)
    for _ in range(25):
        quality = rng.normal(size=(30, 2))
        rows = [
            row
            for k in range(3)
            for row in rows_of(quality + rng.normal(size=quality.shape), f"p{k}", "q", "human")
        ]
        rows += rows_of(quality + rng.normal(size=quality.shape), "judge", "judge", "model")
        table = ratings_from_frame(pl.DataFrame(rows))
        found = meta_evaluate(table, n_permutations=1, n_disagreements=0)
        row = found.of("q", "judge")["outputs", "pearson"]
        hits += row.low <= truth <= row.high
    assert hits >= 21


def test_match_says_which_criterion_goes_with_which(world: dict[str, np.ndarray]) -> None:
    matched = meta_evaluate(ratings(world), match={"good": "overall"}, n_permutations=10)
    assert matched.judges == ("good",)
    with pytest.raises(UserError, match="did not rate 'overal'.*did you mean 'overall'"):
        meta_evaluate(ratings(world), match={"good": "overal"})
    with pytest.raises(UserError, match="no judge rated 'goood'"):
        meta_evaluate(ratings(world), match={"goood": "overall"})


def test_repeats_of_a_judge_are_averaged(world: dict[str, np.ndarray]) -> None:
    up, down = world["good"] + 1, world["good"] - 1
    twice = [
        *rows_of(up, "llm", "overall", "llm", repeat=0), *rows_of(down, "llm", "overall", "llm", repeat=1)
    ]  # fmt: skip
    result = meta_evaluate(ratings(world, twice), n_permutations=10)
    assert "llm" in result.judges
    one, other = result.of("overall", "llm"), result.of("overall", "good")
    assert one["outputs", "spearman"].value == pytest.approx(other["outputs", "spearman"].value)


def test_lower_is_better_is_turned(world: dict[str, np.ndarray]) -> None:
    turned = rows_of(-world["good"], "cost", "cost", "metric")
    result = meta_evaluate(ratings(world, turned), directions={"cost": "lower"}, n_permutations=10)
    cost, good = result.of("overall", "cost"), result.of("overall", "good")
    assert cost["outputs", "pearson"].value == pytest.approx(good["outputs", "pearson"].value)
    assert any("lower is better" in note for note in result.notes)


def test_a_judge_of_some_outputs_is_compared_on_those(world: dict[str, np.ndarray]) -> None:
    half = world["good"].copy()
    half[20:] = np.nan
    result = meta_evaluate(ratings(world, rows_of(half, "half", "half", "model")), n_permutations=10)
    assert result.of("overall", "half")["outputs", "pearson"].n == 80
    assert any("half rated 80 of the 160 outputs" in note for note in result.notes)


def test_a_figure_a_system_is_compared_with_systems_only(world: dict[str, np.ndarray]) -> None:
    whole = rows_of(world["good"].mean(axis=0)[None], "distinct", "distinct", "metric")
    for row in whole:
        row["item"] = "all responses"
    result = meta_evaluate(ratings(world, whole), n_permutations=10)
    assert {level for level, _ in result.of("overall", "distinct")} == {"systems"}


def test_constant_and_tied_scores_have_a_reason_and_no_figure(world: dict[str, np.ndarray]) -> None:
    flat = rows_of(np.full((N_ITEMS, 4), 2.0), "flat", "flat", "model")
    result = meta_evaluate(ratings(world, flat), n_permutations=10)
    row = result.of("overall", "flat")["outputs", "spearman"]
    assert math.isnan(row.value)
    assert row.reason == "the judge gave one score to all"
    assert "flat" not in {name for test in result.tests for name in (test.a, test.b)}
    assert "flat" not in {row.judge for row in result.disagreements}
    assert meta_page(result)


def test_one_item_and_few_people_are_said(world: dict[str, np.ndarray]) -> None:
    rows = rows_of(world["people"][0][:1], "p0", "overall", "human") + rows_of(
        world["good"][:1], "good", "good", "model"
    )
    result = meta_evaluate(ratings_from_frame(pl.DataFrame(rows)), n_permutations=10)
    told = " ".join(result.notes)
    assert "one person only" in told
    assert "only one item" in told
    assert not result.ceiling


def test_a_judge_of_one_item_is_said(world: dict[str, np.ndarray]) -> None:
    few = np.full_like(world["good"], np.nan)
    few[3] = world["good"][3]
    result = meta_evaluate(ratings(world, rows_of(few, "few", "few", "model")), n_permutations=10)
    assert any("few rated one item only" in note for note in result.notes)


def test_other_items_no_judges_no_people(world: dict[str, np.ndarray]) -> None:
    people = rows_of(world["people"][0], "p0", "overall", "human")
    strangers = rows_of(world["good"], "good", "good", "model")
    for row in strangers:
        row["item"] = "other-" + row["item"]
    with pytest.raises(DataError, match="no judge rated an output that people rated"):
        meta_evaluate(ratings_from_frame(pl.DataFrame([*people, *strangers])))
    with pytest.raises(DataError, match="only by people"):
        meta_evaluate(ratings_from_frame(pl.DataFrame(people)))
    with pytest.raises(DataError, match="nobody's ratings are people's"):
        meta_evaluate(ratings_from_frame(pl.DataFrame(strangers)))


def test_few_systems_say_little_and_the_page_says_so(result: Any) -> None:
    page = meta_page(result)
    assert "There are 4 systems: of judges that guess, one in 24 puts all in people" in page
    row = result.of("overall", "poor")["systems", "spearman"]
    assert numbers.interval(row.low, row.high) in page


def test_a_judge_trained_on_these_ratings_is_refused(world: dict[str, np.ndarray]) -> None:
    seen = rows_of(world["good"], "mine", "mine", "model")
    for row in seen:
        row["signature"] = f"mine|1{SEEN}"
    with pytest.raises(UserError, match="mine: trained on these very ratings"):
        meta_evaluate(ratings(world, seen))


def test_systems_in_the_same_order_have_a_tau_of_1(world: dict[str, np.ndarray]) -> None:
    """Three systems: the root of 3 times the root of 3 is not 3."""
    same = np.arange(3.0) + world["people"].mean(axis=0)[:, :1]
    rows = [row for k in range(3) for row in rows_of(same, f"p{k}", "overall", "human")]
    table = ratings_from_frame(pl.DataFrame([*rows, *rows_of(same, "same", "same", "model")]))
    row = meta_evaluate(table, n_permutations=10).of("overall", "same")["systems", "kendall"]
    assert row.value == row.low == row.high == 1.0
