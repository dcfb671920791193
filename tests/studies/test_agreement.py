"""Which measures of agreement a criterion gets, and that they are the measures they say."""

from __future__ import annotations

import math
import re
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import polars as pl
import pytest
import slow_analysis as slow
from hypothesis import given, settings
from statsmodels.stats.inter_rater import cohens_kappa as peer_cohen
from statsmodels.stats.inter_rater import fleiss_kappa as peer_fleiss
from study_strategies import Row, tables, write_csv

from palaver.schema import Binary, Item, Likert, Output, Question, Study
from palaver.statistics.bootstrap import Resampling
from palaver.statistics.kappa import PairwiseKappa, cohen_kappa, pairwise_kappa
from palaver.studies import read_ratings
from palaver.studies.agreement import agree
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.ratings import as_rating_table
from palaver.studies.results import AgreementRow

pytestmark = pytest.mark.filterwarnings("error")

SCALES = {"likert": Likert(), "binary": Binary()}


def judge(rows: list[Row], folder: Path, scale: str = "likert", normalisation: str = "auto") -> Judgements:
    study = Study(
        name="s",
        questions=(Question(criterion="q", text="?", scale=SCALES[scale]),),
        items=(Item(id="i", outputs=(Output(system="a", text=""),)),),
    )
    return judgements_of(read_ratings(write_csv(rows, folder / "r.csv"), study=study), "q", normalisation)


def measures(judged: Judgements, n_replicates: int = 20) -> dict[str, AgreementRow]:
    found = agree(judged, Resampling(0.95, n_replicates, np.random.default_rng(0)))
    return {f"{row.measure} {row.form}": row for row in found}


def matrix(judged: Judgements) -> np.ndarray:
    table = np.full((len(judged.raters), judged.n_units), np.nan)
    table[judged.rater, judged.unit] = judged.score
    return table


@given(rows=tables(criteria=("q",)))
@settings(max_examples=40, deadline=None)
def test_icc_and_alpha_by_brute_force_and_a_library(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    judged = judge(rows, tmp_path_factory.mktemp("a"))
    found = measures(judged)
    assert found["ICC ICC(1,k)"].value == pytest.approx(slow.icc_1k(rows), nan_ok=True, abs=1e-9)
    table = matrix(judged)
    pairable = (~np.isnan(table)).sum(axis=0) > 1
    alpha = found["Krippendorff alpha ordinal"]
    if pairable.any() and np.unique(table[:, pairable][~np.isnan(table[:, pairable])]).size > 1:
        peer = krippendorff.alpha(table[:, pairable], level_of_measurement="ordinal")
        assert alpha.value == pytest.approx(peer, abs=1e-9)
    else:
        assert math.isnan(alpha.value)
        assert alpha.reason
    assert alpha.n_raters == len({row["rater"] for row in rows})


def crossed(n_outputs: int, n_raters: int, values: int = 5, low: int = 1) -> list[Row]:
    rng = np.random.default_rng(3)
    base = rng.integers(low, low + values, n_outputs)
    return [
        {"item": f"i{o}", "system": "a", "rater": f"r{r}", "criterion": "q",
         "value": int(np.clip(base[o] + rng.integers(-1, 2), low, low + values - 1))}
        for o in range(n_outputs)
        for r in range(n_raters)
    ]  # fmt: skip


PAIRS = [f"Cohen kappa mean of pairs, {w}" for w in ("unweighted", "linear weights", "quadratic weights")]


def test_numbers_get_icc_in_all_forms_and_alpha(tmp_path: Path) -> None:
    found = measures(judge(crossed(30, 4), tmp_path))
    forms = [f"ICC ICC({n},{k})" for k in "1k" for n in "123"]
    assert list(found) == [*forms, "Krippendorff alpha ordinal", "Fleiss kappa unweighted", *PAIRS]
    for row in found.values():
        assert row.low < row.value < row.high
        assert (row.n_items, row.n_raters, row.dropped) == (30, 4, 0)
    assert found["ICC ICC(1,k)"].interval == "F distribution"
    assert found["Krippendorff alpha ordinal"].interval == "bootstrap over items"


def headline(rows: list[Row], folder: Path, scale: str = "likert") -> tuple[str, str]:
    [row] = [row for row in measures(judge(rows, folder, scale)).values() if row.headline]
    return row.form if row.measure == "ICC" else row.measure, row.headline_reason


def test_the_measure_to_quote_follows_the_design(tmp_path: Path) -> None:
    rows = crossed(20, 4)
    assert headline(rows, tmp_path) == ("ICC(2,k)", "all 4 raters judged all items, so ICC(2,k) is quoted")
    nearly = [row for row in rows if (row["item"], row["rater"]) not in {("i3", "r1"), ("i4", "r0")}]
    reason = "all 4 raters judged 18 of 20 items, so ICC(2,k) is quoted"
    assert headline(nearly, tmp_path) == ("ICC(2,k)", reason)
    some = [row for row in rows if (row["rater"] != "r0") == (int(row["item"][1:]) % 2 == 0)]
    reason = "raters differ from item to item (4 raters, 1 to 3 per item), so ICC(1,k) is quoted"
    assert headline(some, tmp_path) == ("ICC(1,k)", reason)
    alone = [row for row in rows if row["rater"] == "r0"]
    assert headline(alone, tmp_path) == ("ICC(1,k)", "there is one rater, so ICC(1,k) is quoted")


def test_choices_are_quoted_by_cohens_kappa_only_of_two_crossed_raters(tmp_path: Path) -> None:
    no_order = "and the answers have no order"
    pair = crossed(20, 2, values=2, low=0)
    reason = f"both raters judged all items, {no_order}, so Cohen kappa is quoted"
    assert headline(pair, tmp_path, "binary") == ("Cohen kappa", reason)
    measure, reason = headline(pair[::2] + pair[1::4], tmp_path, "binary")
    assert (measure, reason[:14]) == ("Krippendorff alpha", "raters differ ")
    three = crossed(20, 3, values=2, low=0)
    reason = f"all 3 raters judged all items, {no_order}, so Krippendorff alpha is quoted"
    assert headline(three, tmp_path, "binary") == ("Krippendorff alpha", reason)


@pytest.mark.parametrize(
    ("normalisation", "level"), [("auto", "ordinal"), ("raw", "ordinal"), ("z", "interval")]
)
def test_scores_that_were_normalised_are_no_steps_any_more(
    normalisation: str, level: str, tmp_path: Path
) -> None:
    found = measures(judge(crossed(10, 3), tmp_path, normalisation=normalisation))
    assert f"Krippendorff alpha {level}" in found


def test_choices_get_alpha_and_fleiss(tmp_path: Path) -> None:
    rows = crossed(40, 3, values=2, low=0)
    judged = judge(rows, tmp_path, "binary")
    found = measures(judged)
    assert list(found) == ["Krippendorff alpha nominal", "Fleiss kappa unweighted", PAIRS[0]]
    assert found["Krippendorff alpha nominal"].headline
    counts = [[sum(r["value"] == v for r in rows if r["item"] == f"i{o}") for v in (0, 1)] for o in range(40)]
    assert found["Fleiss kappa unweighted"].value == pytest.approx(peer_fleiss(counts))


@pytest.mark.parametrize(
    ("scale", "weights"), [("likert", [None, "linear", "quadratic"]), ("binary", [None])]
)
def test_two_raters_get_cohens_kappa(scale: str, weights: list[str | None], tmp_path: Path) -> None:
    rows = crossed(40, 2, 5 if scale == "likert" else 2, 1 if scale == "likert" else 0)
    found = measures(judge(rows, tmp_path, scale))
    cohen = {name: row for name, row in found.items() if row.measure == "Cohen kappa"}
    assert len(cohen) == len(weights)
    first, second = ([r["value"] for r in rows if r["rater"] == name] for name in ("r0", "r1"))
    steps = sorted({*first, *second})
    table = [[sum(pair == (a, b) for pair in zip(first, second, strict=True)) for b in steps] for a in steps]
    for weight, row in zip(weights, cohen.values(), strict=True):
        assert row.form == ("unweighted" if weight is None else f"{weight} weights")
        assert row.value == pytest.approx(peer_cohen(table, wt=weight, return_results=False))
        assert row.n_raters == 2


def test_more_raters_get_the_mean_of_their_pairs_and_its_range(tmp_path: Path) -> None:
    rows = crossed(40, 4, values=4, low=1)
    row = measures(judge(rows, tmp_path))[PAIRS[1]]
    table = np.array([[r["value"] for r in rows if r["rater"] == f"r{n}"] for n in range(4)])
    kappas = [
        cohen_kappa(a, b, weights="linear", categories=range(1, 5)).value for a, b in combinations(table, 2)
    ]
    assert row.value == pytest.approx(np.mean(kappas))
    ends = f"{min(kappas):.2f} to {max(kappas):.2f}"
    assert row.notes == (f"Cohen kappa of 6 pairs of raters, linear weights: {ends}",)
    crowd = [{**r, "rater": f"{r['rater']}-{r['item']}"} for r in rows]
    row = measures(judge(crowd, tmp_path))[PAIRS[1]]
    assert math.isnan(row.value)
    assert row.reason == "no two raters judged 10 items in common"


def test_every_box_has_an_alpha_of_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = np.array(["ok", "added", "added|missing"])
    rows = [
        {
            "item": f"i{o}",
            "system": "a",
            "rater": f"r{r}",
            "criterion": "q",
            "value": str(words[rng.integers(3)]),
        }
        for o in range(20)
        for r in range(3)
    ]
    judged = judgements_of(read_ratings(write_csv(rows, tmp_path / "r.csv")), "q")
    found = measures(judged)
    for box in ("added", "missing", "ok"):
        row = found[f"Krippendorff alpha nominal, box “{box}”"]
        ticked = np.array(
            [[box in r["value"].split("|") for r in rows if r["rater"] == f"r{n}"] for n in range(3)]
        ).astype(float)
        assert row.value == pytest.approx(krippendorff.alpha(ticked, level_of_measurement="nominal"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (crossed(10, 1), "rat"),
        (crossed(1, 3), "item"),
        ([{**row, "value": 3} for row in crossed(10, 3)], "equal|same|vary|constant|varia"),
    ],
    ids=["one rater", "one item", "all equal"],
)
def test_undefined_is_nan_with_a_reason(rows: list[Row], words: str, tmp_path: Path) -> None:
    found = measures(judge(rows, tmp_path))
    icc = found["ICC ICC(1,k)"]
    assert math.isnan(icc.value)
    assert icc.reason
    assert all(row.reason for row in found.values() if math.isnan(row.value))
    assert re.search(words, icc.reason), icc.reason


def shared_items(n_items: int, seed: int) -> list[Row]:
    """Outputs of three systems that are nearly as good as their item makes them."""
    rng = np.random.default_rng(seed)
    quality = 1.2 * rng.normal(size=(n_items, 1)) + 0.4 * rng.normal(size=(n_items, 3))
    ratings = quality[..., None] + rng.normal(size=(n_items, 3, 3))
    return [
        {"item": f"i{i}", "system": f"s{s}", "rater": f"r{r}", "criterion": "q", "value": float(value)}
        for (i, s, r), value in np.ndenumerate(ratings)
    ]


@pytest.mark.parametrize("scale", ["likert", "binary"])
def test_outputs_of_one_item_are_one_observation(scale: str, tmp_path: Path) -> None:
    """Ratings copied to four systems are no more evidence than before."""
    rng = np.random.default_rng(0)
    quality, noise = rng.normal(size=(15, 1)), 0.7 * rng.normal(size=(15, 2))
    values = (quality + noise > 0) + 0 if scale == "binary" else np.clip(np.rint(3 + quality + noise), 1, 5)
    once, copied = (
        [
            {"item": f"i{i}", "system": f"s{s}", "rater": f"r{r}", "criterion": "q", "value": int(value)}
            for s in range(n)
            for (i, r), value in np.ndenumerate(values)
        ]
        for n in (1, 4)
    )
    alone = measures(judge(once, tmp_path, scale), 400)
    together = measures(judge(copied, tmp_path, scale), 400)
    assert len(together) == len(alone) >= 3
    for name, row in together.items():
        assert row.interval.endswith("jackknife over items where that is wider")
        assert row.high - row.low > 0.8 * (alone[name].high - alone[name].low), name


def test_outputs_of_items_of_their_own_have_the_usual_intervals() -> None:
    rows = [{**row, "item": f"{row['item']} {row['system']}"} for row in shared_items(10, 0)]
    judged = judgements_of(as_rating_table(pl.DataFrame(rows)), "q", "raw")
    ways = {row.interval for row in measures(judged).values()}
    assert not any("jackknife" in way for way in ways)


def test_one_disagreement_leaves_sensible_intervals(tmp_path: Path) -> None:
    """Without that item raters agree perfectly, which is no reason to know nothing."""
    rows = [
        {"item": f"i{i}", "system": s, "rater": f"r{r}", "criterion": "q", "value": value}
        for i in range(10)
        for k, s in enumerate("abc")
        for r in range(3)
        for value in [(5 if (i + k) % 3 else 2) - ((i, s, r) == (3, "a", 1))]
    ]
    for name, row in measures(judge(rows, tmp_path)).items():
        assert row.value > 0.9, name
        assert 0.4 < row.low < row.value < row.high <= 1, name


def test_intervals_of_three_items_stay_in_bounds_and_p_follows_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    quality = 3 * rng.normal(size=(3, 1, 1)) + rng.normal(size=(3, 1, 4)) + 0.3 * rng.normal(size=(3, 3, 4))
    rows = [
        {"item": f"i{i}", "system": f"s{s}", "rater": f"r{r}", "criterion": "q", "value": float(value)}
        for (i, s, r), value in np.ndenumerate(quality)
    ]
    judged = judgements_of(as_rating_table(pl.DataFrame(rows)), "q", "raw")
    outputs = [{**row, "item": f"{row['item']} {row['system']}"} for row in rows]
    alone = measures(judgements_of(as_rating_table(pl.DataFrame(outputs)), "q", "raw"))
    for name, row in measures(judged).items():
        if not name.endswith("k)"):
            assert row.low >= -1, name
        if name.startswith("ICC"):
            assert row.p > 3 * alone[name].p, name
            assert (row.p < 0.025) == (row.low > 0), name


def test_the_same_pairs_of_raters_are_looked_at_without_each_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 raters the 30 busiest, with and without an item; and their pairs are found once, not 20 times."""
    rng = np.random.default_rng(5)
    rows = [
        {"item": f"i{i:02}", "system": s, "rater": f"r{r:02}", "criterion": "q", "value": int(value)}
        for i in range(40)
        for s, quality in zip("abc", rng.integers(2, 5, 3), strict=True)
        for r, value in zip(range(40), quality + rng.integers(-1, 2, 40), strict=True)
        if (i + r) % 4
    ]
    calls = []

    def count(*arguments: object, **options: object) -> PairwiseKappa:
        calls.append(options)
        return pairwise_kappa(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("palaver.studies.agreement.pairwise_kappa", count)
    found = measures(judge(rows, tmp_path))
    assert len(calls) == len(PAIRS)
    assert all(name in found for name in PAIRS)
    busiest = [row for row in rows if row["rater"] < "r30"]  # as all have rated as much
    alone = measures(judge(busiest, tmp_path))
    for name in PAIRS:
        assert (found[name].low, found[name].high) == pytest.approx((alone[name].low, alone[name].high)), name


def test_two_items_are_not_surer_than_three(tmp_path: Path) -> None:
    rows = shared_items(3, 0)
    three = measures(judgements_of(as_rating_table(pl.DataFrame(rows)), "q", "raw"))
    fewer = [row for row in rows if row["item"] != "i2"]
    two = measures(judgements_of(as_rating_table(pl.DataFrame(fewer)), "q", "raw"))
    assert two["ICC ICC(1,1)"].interval == three["ICC ICC(1,1)"].interval
