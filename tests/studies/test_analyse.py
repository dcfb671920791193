"""The whole analysis: against brute force, against itself under renaming, and at the edges."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import slow_analysis as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, kendalltau
from study_strategies import FIELDS, Row, tables, write_csv

from palaver.errors import UserError
from palaver.schema import Item, Likert, Output, Question, Study
from palaver.statistics.normalise import NORMALISATIONS
from palaver.studies import Analysis, RatingTable, analyse, read_ratings
from palaver.tables import open_frame

pytestmark = pytest.mark.filterwarnings("error")

CRITERIA = ("naturalness", "quality")
STUDY = Study(
    name="s",
    questions=tuple(Question(criterion=c, text="?", scale=Likert()) for c in CRITERIA),
    items=(Item(id="i", outputs=tuple(Output(system=f"sys{s}", text="") for s in range(4))),),
)


def rows_of(
    n_items: int = 12,
    n_systems: int = 3,
    n_raters: int = 4,
    seed: int = 0,
    criteria: tuple[str, ...] = CRITERIA,
) -> list[Row]:
    rng = random.Random(seed)
    return [
        {
            "item": f"item {i}",
            "system": f"sys{s}",
            "rater": f"r{r}",
            "criterion": c,
            "value": min(6, max(1, round(2 + s + rng.gauss(0, 1.2)))),
            "seconds": round(rng.uniform(3, 20), 1),
        }
        for i in range(n_items)
        for s in range(n_systems)
        for r in range(n_raters)
        for c in criteria
        if rng.random() < 0.8
    ]


def run(rows: list[Row], folder: Path, *, study: Study | None = STUDY, **options: Any) -> Analysis:
    path = write_csv(rows, folder / "r.csv", [*FIELDS, "seconds"])
    return analyse(read_ratings(path, study=study), study=study, **{"n_replicates": 50, **options})


def plain(analysis: Analysis) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found: dict[str, Any] = json.loads(analysis.to_json(), parse_constant=refuse)
    return found


def numbers(analysis: Analysis) -> dict[str, Any]:
    """Everything but where it came from."""
    return {k: v for k, v in plain(analysis).items() if k not in ("run", "signature", "reading", "title")}


def same(found: Any, expected: Any, place: str = "") -> None:
    """Equal, numbers up to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key in expected:
            same(found[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for n, (a, b) in enumerate(zip(found, expected, strict=True)):
            same(a, b, f"{place}[{n}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), place
    else:
        assert found == expected, place


# --- against brute force --------------------------------------------------------------------------------


@given(rows=tables(criteria=CRITERIA))
@settings(max_examples=25, deadline=None)
def test_numbers_by_brute_force(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    found = run(rows, tmp_path_factory.mktemp("a"), n_replicates=5)
    for criterion in {row["criterion"] for row in rows}:
        mine = slow.of(rows, criterion)
        (icc,) = (r for r in found.agreement if r.criterion == criterion and r.form == "ICC(1,k)")
        assert icc.value == pytest.approx(slow.icc_1k(mine), nan_ok=True, abs=1e-9)
        (ranked,) = (r for r in found.ranking if r.criterion == criterion and r.method == "bootstrap")
        assert {s.system: s.score for s in ranked.scores} == pytest.approx(slow.system_means(mine))
    keys = {"item means": ("item", "system"), "single ratings": ("item", "system", "rater")}
    for row in found.correlation:
        value, n = slow.criteria_correlation(rows, row.a, row.b, keys[row.over], spearman=True)
        assert row.n == n
        if row.value == row.value:
            assert row.value == pytest.approx(value, abs=1e-9)
        else:
            assert row.reason
            assert n < 3 or math.isnan(value)


@pytest.mark.parametrize("method", ["pearson", "spearman", "kendall"])
def test_correlations_of_every_kind(method: str, tmp_path: Path) -> None:
    rows = rows_of()
    found = run(rows, tmp_path, correlation=method)
    assert [row.over for row in found.correlation] == ["item means", "single ratings"]
    assert all({row.a, row.b} == set(CRITERIA) for row in found.correlation)
    means = [slow.output_means(slow.of(rows, c)) for c in CRITERIA]
    shared = sorted(means[0].keys() & means[1].keys())
    x, y = ([m[k] for k in shared] for m in means)
    expected = {
        "pearson": slow.pearson(x, y),
        "spearman": slow.pearson(slow.ranks(x), slow.ranks(y)),
        "kendall": kendalltau(x, y).statistic,
    }[method]
    row = found.correlation[0]
    assert row.method == method
    assert row.value == pytest.approx(expected)
    assert row.n == len(shared)
    assert row.dropped == len(means[0].keys() ^ means[1].keys())


def test_boxes_are_tested(tmp_path: Path) -> None:
    rng = random.Random(1)
    words = {"sys0": ["added", "ok"], "sys1": ["missing", "missing|added", "ok"]}
    rows = [
        {
            "item": f"i{i}",
            "system": s,
            "rater": f"r{r}",
            "criterion": "content",
            "value": rng.choice(words[s]),
        }
        for i in range(15)
        for s in words
        for r in range(3)
    ]
    found = run(rows, tmp_path, study=None)
    (test,) = found.tests
    counts = [
        [
            sum(box in row["value"].split("|") for row in rows if row["system"] == s)
            for box in ("added", "missing")
        ]
        for s in words
    ]
    peer = chi2_contingency(counts)
    assert (test.statistic, test.p, test.df) == pytest.approx((peer.statistic, peer.pvalue, peer.dof))
    assert {row.criterion for row in found.ranking} == {"content: added", "content: missing"}
    assert found.correlation == ()


# --- invariances ----------------------------------------------------------------------------------------


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    rows = rows_of()
    shuffled = random.Random(7).sample(rows, len(rows))
    first, second = numbers(run(rows, tmp_path)), numbers(run(shuffled, tmp_path))
    for found in (first, second):  # criteria come in the order of the file
        for key in ("criteria", "agreement", "ranking", "rater_matrices", "intervals"):
            found[key].sort(key=lambda row: row["criterion"])
        for row in found["correlation"]:
            row["a"], row["b"] = sorted((row["a"], row["b"]))
    same(second, first)


def rename(value: Any, names: dict[str, str]) -> Any:
    """`names` in every text of a JSON value."""
    if isinstance(value, dict):
        return {k: rename(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [rename(v, names) for v in value]
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
    return value


@pytest.mark.parametrize("field", ["item", "system", "rater"])
def test_new_names_in_the_same_order_change_only_the_names(field: str, tmp_path: Path) -> None:
    rows = rows_of()
    old = sorted({row[field] for row in rows})
    names = {name: f"{n:03d}-neu ü" for n, name in enumerate(old)}
    renamed = [{**row, field: names[row[field]]} for row in rows]
    same(numbers(run(renamed, tmp_path, study=None)), rename(numbers(run(rows, tmp_path, study=None)), names))


@pytest.mark.parametrize("field", ["item", "system", "rater"])
def test_new_names_in_another_order_change_no_estimate(field: str, tmp_path: Path) -> None:
    """Intervals move a little, as the bootstrap draws items by their place; estimates do not."""
    rows = rows_of()
    old = sorted({row[field] for row in rows})
    names = dict(
        zip(old, random.Random(3).sample([f"n{n:02d}" for n in range(len(old))], len(old)), strict=True)
    )
    assert list(names.values()) != sorted(names.values())
    before = run(rows, tmp_path, study=None)
    after = run([{**row, field: names[row[field]]} for row in rows], tmp_path, study=None)
    for a, b in zip(after.agreement, before.agreement, strict=True):
        assert (a.criterion, a.measure, a.form, a.n_items, a.n_raters, a.dropped) == (
            b.criterion, b.measure, b.form, b.n_items, b.n_raters, b.dropped,
        )  # fmt: skip
        assert (a.value, a.p) == pytest.approx((b.value, b.p), nan_ok=True)
    for c, d in zip(after.correlation, before.correlation, strict=True):
        assert (c.value, c.p, c.low, c.high, c.n) == pytest.approx((d.value, d.p, d.low, d.high, d.n))
    known = names if field == "system" else {s: s for s in old}
    for e, f in zip(after.ranking, before.ranking, strict=True):
        if e.method != "trueskill":  # whose updates depend on their order
            expected = {known.get(s.system, s.system): (s.score, s.n) for s in f.scores}
            assert {s.system: (s.score, s.n) for s in e.scores} == {
                name: pytest.approx(pair) for name, pair in expected.items()
            }
    habits = {row.rater: row for row in after.raters}
    for row in before.raters:
        other = habits[names[row.rater] if field == "rater" else row.rater]
        assert (other.n_ratings, other.flags) == (row.n_ratings, row.flags)
        assert (other.spread, other.straight_lining, other.agreement) == pytest.approx(
            (row.spread, row.straight_lining, row.agreement)
        )


def test_another_criterion_does_not_change_the_others(tmp_path: Path) -> None:
    rows = rows_of(criteria=("quality", "naturalness", "a third"))
    alone = numbers(run([row for row in rows if row["criterion"] == "quality"], tmp_path, study=None))
    together = numbers(run(rows, tmp_path, study=None))
    for key in ("criteria", "agreement", "ranking", "rater_matrices", "intervals"):
        assert [row for row in together[key] if row["criterion"] == "quality"] == alone[key]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    rows = rows_of()
    assert run(rows, tmp_path, seed=5).to_json() == run(rows, tmp_path, seed=5).to_json()


def test_another_seed_gives_other_intervals_but_the_same_estimates(tmp_path: Path) -> None:
    one, two = (run(rows_of(), tmp_path, seed=seed) for seed in (0, 1))
    assert one.run.signature != two.run.signature
    assert [r.value for r in one.agreement] == pytest.approx([r.value for r in two.agreement], nan_ok=True)
    assert [r.low for r in one.agreement if "boot" in r.interval] != [
        r.low for r in two.agreement if "boot" in r.interval
    ]
    for a, b in zip(one.ranking, two.ranking, strict=True):
        if a.method != "trueskill":  # which rates in random order
            assert {s.system: s.score for s in a.scores} == pytest.approx(
                {s.system: s.score for s in b.scores}
            )
        assert [s.low for s in a.scores] != [s.low for s in b.scores]


def test_the_signature_knows_everything_that_matters(tmp_path: Path) -> None:
    rows = rows_of()
    base = run(rows, tmp_path).run.signature
    options: list[dict[str, Any]] = [
        {"normalise": "z"},
        {"correlation": "pearson"},
        {"confidence": 0.9},
        {"n_replicates": 51},
        {"seed": 1},
        {"study": None},
    ]
    found = [run(rows, tmp_path, **option).run.signature for option in options]
    changed = [{**rows[0], "value": 7 - rows[0]["value"]}, *rows[1:]]
    found.append(run(changed, tmp_path).run.signature)
    assert len({base, *found}) == len(found) + 1
    assert run(rows, tmp_path).run.signature == base


# --- the contract of results.json -----------------------------------------------------------------------

CONTRACT = {
    "agreement": {
        "criterion",
        "measure",
        "form",
        "value",
        "low",
        "high",
        "p",
        "n_items",
        "n_raters",
        "dropped",
    },
    "correlation": {"a", "b", "method", "over", "value", "p", "low", "high", "n", "dropped"},
    "ranking": {"criterion", "method", "confidence", "groups"},
    "raters": {"rater", "n_ratings", "median_seconds", "spread", "straight_lining", "agreement"},
}


def test_what_others_script_against(tmp_path: Path) -> None:
    found = plain(run(rows_of(), tmp_path))
    assert {"agreement", "correlation", "ranking", "raters", "signature"} <= found.keys()
    for key, fields in CONTRACT.items():
        assert found[key], key
        assert all(fields <= row.keys() for row in found[key])
    assert isinstance(found["signature"], str)
    assert len(found["signature"]) == 10
    for row in found["ranking"]:
        assert row["confidence"] == 0.95
        assert all(
            isinstance(group, list) and all(isinstance(s, str) for s in group) for group in row["groups"]
        )
        assert sorted(itertools.chain(*row["groups"])) == ["sys0", "sys1", "sys2"]
        assert row["groups"][0][0] == "sys2"  # best first
    assert {row["method"] for row in found["ranking"]} == {"bootstrap", "trueskill", "bradley-terry"}
    assert {row["form"] for row in found["agreement"] if row["measure"] == "ICC"} == {
        f"ICC({n},{k})" for n in "123" for k in "1k"
    }


# --- the edges ------------------------------------------------------------------------------------------


def rectangle(
    items: int, systems: int, raters: int, value: Callable[[int, int, int], object], criterion: str = "q"
) -> list[Row]:
    return [
        {
            "item": f"i{i}",
            "system": f"s{s}",
            "rater": f"r{r}",
            "criterion": criterion,
            "value": value(i, s, r),
        }
        for i in range(items)
        for s in range(systems)
        for r in range(raters)
    ]


EDGES: dict[str, list[Row]] = {
    "one rating": rectangle(1, 1, 1, lambda i, s, r: 3),
    "one rater": rectangle(4, 3, 1, lambda i, s, r: 1 + (i + s) % 5),
    "one item": rectangle(1, 3, 4, lambda i, s, r: 1 + (r + s) % 5),
    "one system": rectangle(5, 1, 3, lambda i, s, r: 1 + (i + r) % 5),
    "all equal": rectangle(4, 2, 3, lambda i, s, r: 3),
    "all zero": rectangle(4, 2, 3, lambda i, s, r: 0),
    "no overlap": [
        {"item": f"i{n}", "system": f"s{n}", "rater": f"r{n}", "criterion": "q", "value": n} for n in range(4)
    ],
    "yes and no": rectangle(4, 2, 3, lambda i, s, r: (i + s + r) % 2),
    "each rater one value": rectangle(5, 3, 4, lambda i, s, r: r + 1),
    "raters agree wholly": rectangle(5, 3, 4, lambda i, s, r: 1 + (i + s) % 5),
    "fractions": rectangle(6, 3, 3, lambda i, s, r: 1.5 + (i * 7 + s * 3 + r * 5) % 6),
    "negative": rectangle(4, 2, 2, lambda i, s, r: i - s - 3),
    "large": rectangle(4, 2, 2, lambda i, s, r: (1 + i + s + r) * 1e48),
    "small": rectangle(4, 2, 2, lambda i, s, r: (1 + i + s + r) * 1e-48),
    "words": rectangle(4, 2, 3, lambda i, s, r: ["ok", "added", "missing|added"][(i + s * r) % 3]),
    "one word": rectangle(4, 2, 3, lambda i, s, r: "ok"),
    "criteria of other items": rectangle(4, 2, 2, lambda i, s, r: 1 + (i + r) % 5)
    + [{**row, "item": f"x{row['item']}"} for row in rectangle(4, 2, 2, lambda i, s, r: 1 + i, "p")],
    "one rater has one rating": [
        *rectangle(4, 2, 2, lambda i, s, r: 1 + (i + r) % 5),
        {"item": "i0", "system": "s0", "rater": "once", "criterion": "q", "value": 1},
    ],
    "odd names": [
        {**row, "item": "=1 <b>", "system": f"[red]{row['system']}\n", "rater": "</script>", "criterion": "‮q"}
        for row in rectangle(1, 3, 1, lambda i, s, r: 1 + s)
    ],
}  # fmt: skip


@pytest.mark.parametrize("normalise", ["auto", *NORMALISATIONS])
@pytest.mark.parametrize("name", EDGES)
def test_the_edges_give_reasons_and_no_warnings(name: str, normalise: str, tmp_path: Path) -> None:
    found = run(EDGES[name], tmp_path, study=None, normalise=normalise, n_replicates=10)
    plain(found)  # valid JSON, without NaN
    for row in found.agreement:
        assert not math.isnan(row.value) or row.reason
    for ranked in found.ranking:
        assert ranked.groups or ranked.reason
        for score in ranked.scores:
            assert score.high - score.low > 0 or score.reason
    for correlated in found.correlation:
        assert not math.isnan(correlated.value) or correlated.reason


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one rater", "only one rater"),
        ("one item", "only one item"),
        ("one system", "only one system"),
        ("all equal", "all ratings are equal"),
    ],
)
def test_a_careful_reader_is_warned(name: str, words: str, tmp_path: Path) -> None:
    found = run(EDGES[name], tmp_path, study=None)
    assert any(words in note for note in found.notes)
    others = {"one rater", "one item", "one system", "all equal"} - {name}
    assert not any(words in note for o in others for note in run(EDGES[o], tmp_path, study=None).notes)


def test_items_of_one_context_count_as_one_and_that_is_said() -> None:
    rng = random.Random(0)
    rows = [
        {"item": f"i{i}", "system": s, "rater": f"r{r}", "criterion": "q", "value": rng.randint(1, 5)}
        for i in range(30)
        for s in "ab"
        for r in range(2)
    ]
    frame = pl.DataFrame(rows)
    number = pl.col("item").str.slice(1).cast(pl.Int64)
    apart = analyse(frame, n_replicates=20)
    shared = analyse(frame.with_columns(context=(number // 5).cast(pl.String)), n_replicates=20)
    alone = analyse(frame.with_columns(context=pl.lit("chat")), n_replicates=20)
    assert not apart.notes
    assert any("fewer than 20 items (those of one context count as one)" in note for note in shared.notes)
    assert any("all 30 items have the same context" in note for note in alone.notes)


def test_a_criterion_of_one_system_has_no_ranking_that_is_too_sure() -> None:
    rows = [
        {"item": f"i{i}", "system": system, "rater": rater, "criterion": criterion, "value": 1 + i % 5}
        for criterion, systems, n in (("both", "ab", 30), ("alone", "a", 6))
        for i in range(n)
        for system in systems
        for rater in ("x", "y")
    ]
    notes = analyse(read_ratings(open_frame(pl.DataFrame(rows), "rows")), n_replicates=20).notes
    assert any(note.startswith("alone: there is only one system") for note in notes)
    assert not any("too sure of themselves" in note for note in notes)


def test_one_replicate_is_enough_to_run(tmp_path: Path) -> None:
    found = run(rows_of(), tmp_path, n_replicates=1)
    plain(found)
    assert not any(score.reason for row in found.ranking for score in row.scores if row.method == "bootstrap")


def test_notes_and_reasons_name_their_criterion(tmp_path: Path) -> None:
    rows = rectangle(5, 2, 3, lambda i, s, r: 3) + rectangle(5, 2, 3, lambda i, s, r: 1 + (i + r) % 5, "p")
    found = run(rows, tmp_path, study=None)
    assert all(note.startswith(("q: ", "p, q: fewer than 20 items")) for note in found.notes)
    assert {row.reason for row in found.correlation} == {"all values of q are equal"}


def test_what_the_study_asks_and_nobody_answered(tmp_path: Path) -> None:
    found = run(rows_of(criteria=("quality",)), tmp_path)
    assert any("asks for naturalness, but no such rating" in note for note in found.notes)
    assert found.title == "s"


def test_systems_that_are_not_in_the_study(tmp_path: Path) -> None:
    rows = [{**row, "system": row["system"].replace("sys0", "stranger")} for row in rows_of()]
    assert any(note.startswith("stranger: rated, but not") for note in run(rows, tmp_path).notes)
    assert not any("rated, but not" in note for note in run(rows_of(), tmp_path).notes)


def test_the_title_without_a_study(tmp_path: Path) -> None:
    assert run(rows_of(), tmp_path, study=None).title == "Analysis of r.csv"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"normalise": "lgo"}, "did you mean 'log'"),
        ({"confidence": 0.5}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"n_replicates": 0}, "replicates"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        run(rows_of(), tmp_path, **options)


def test_steps_are_told_in_order(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    run(rows_of(), tmp_path, progress=lambda what, at, of: told.append((what, at, of)))
    assert [at for _, at, _ in told] == list(range(told[0][2] + 1))
    assert told[-1][0] == "done"


def test_zeros_have_no_logarithm_and_that_is_said(tmp_path: Path) -> None:
    rows = [{**row, "value": 0 if n % 5 == 0 else row["value"] * 20} for n, row in enumerate(rows_of())]
    found = run(rows, tmp_path, study=None, normalise="log")
    assert any("zero or below" in note for note in found.notes)
    plain(found)


@given(st.data())
@settings(max_examples=10, deadline=None)
def test_duplicating_every_rater_keeps_the_ranking(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = rows_of(8, 3, 3, seed=data.draw(st.integers(0, 99)))
    twice = [*rows, *({**row, "rater": f"{row['rater']}b"} for row in rows)]
    folder = tmp_path_factory.mktemp("t")
    for a, b in zip(run(twice, folder).ranking, run(rows, folder).ranking, strict=True):
        if a.method == "bootstrap":
            assert a.groups == b.groups
            assert [s.score for s in a.scores] == pytest.approx([s.score for s in b.scores])


# --- kinds, contexts, directions ------------------------------------------------------------------------


def by_judge(rows: list[Row], criterion: str = "", **fields: Any) -> list[Row]:
    """What one judge says of every output that people rated, in its own way."""
    outputs = {(row["item"], row["system"]): row["value"] for row in rows}
    return [
        {
            "item": item,
            "system": system,
            "rater": "judge",
            "criterion": criterion or CRITERIA[0],
            "value": 7 - value,
            **fields,
        }
        for (item, system), value in outputs.items()
    ]


def table_of(*frames: Any) -> RatingTable:
    return read_ratings([open_frame(pl.DataFrame(frame), f"f{n}") for n, frame in enumerate(frames)])


def test_a_judge_beside_people_changes_nothing_of_theirs() -> None:
    rows = rows_of()
    alone = analyse(table_of(rows), n_replicates=50)
    both = analyse(table_of(rows, by_judge(rows, kind="llm")), n_replicates=50)
    label = f"{CRITERIA[0]} (llm)"
    assert {c.criterion: c.rated_by for c in both.criteria} == {
        **dict.fromkeys(CRITERIA, "human"),
        label: "llm",
    }
    for name in ("agreement", "ranking"):
        of_people = [row for row in getattr(both, name) if row.criterion in CRITERIA]
        assert repr(of_people) == repr(list(getattr(alone, name)))
    assert any("not mixed" in note for note in both.reading.notes)
    assert not any("one person" in note for note in both.notes)


def test_pairs_meet_single_outputs_by_their_context() -> None:
    quality = {"a": 5, "b": 3, "c": 1}
    items = [f"i{n}" for n in range(6)]
    single = [
        {"item": i, "system": s, "rater": "ann", "criterion": "quality", "value": v + n % 2}
        for n, i in enumerate(items)
        for s, v in quality.items()
    ]
    pairs = [
        {
            "item": f"{i}|{a}|{b}",
            "context": i,
            "system": a,
            "against": b,
            "rater": "judge",
            "criterion": "preference",
            "value": "win" if quality[a] > quality[b] else "loss",
            "kind": "model",
        }
        for i in items
        for a, b in itertools.combinations(quality, 2)
    ]
    (row,) = analyse(table_of(single, pairs), n_replicates=20).correlation
    assert (row.a, row.b, row.over, row.n, row.dropped) == ("quality", "preference", "item means", 18, 0)
    assert row.value > 0.9
    without = [{k: v for k, v in pair.items() if k != "context"} for pair in pairs]
    assert analyse(table_of(single, without), n_replicates=20).correlation == ()


def test_numbers_meet_by_context_before_item() -> None:
    people = [
        {"item": f"i{n}", "system": "a", "rater": "ann", "criterion": "quality", "value": n % 6 + 1}
        for n in range(12)
    ]
    scores = [
        {
            **row,
            "item": f"other {row['item']}",
            "context": row["item"],
            "criterion": "score",
            "kind": "metric",
        }
        for row in people
    ]
    means = analyse(table_of(people, scores), n_replicates=20).correlation[0]
    assert (means.n, means.value) == (12, pytest.approx(1.0))


def test_where_lower_is_better_the_lowest_comes_first() -> None:
    table = table_of(rows_of(criteria=("errors",)))
    plain_rows = analyse(table, n_replicates=200).ranking
    turned = analyse(table, n_replicates=200, directions={"errors": "lower"})
    assert turned.criteria[0].direction == "lower"
    assert analyse(table, n_replicates=20).criteria[0].direction == "higher"
    for up, down in zip(plain_rows, turned.ranking, strict=True):
        assert [s.system for s in up.scores] == [s.system for s in reversed(down.scores)]
        assert "lower is better" in down.notes
    up, down = plain_rows[0], turned.ranking[0]
    assert {s.system: s.score for s in up.scores} == pytest.approx({s.system: s.score for s in down.scores})
    assert all(s.low <= s.score <= s.high for s in down.scores)
    assert "sys0" in down.groups[0]
    assert down.groups != up.groups
    assert down.better[0][1] > 0.5
    assert turned.run.signature != analyse(table, n_replicates=200).run.signature


def test_a_pair_turned_is_a_loss() -> None:
    rows = [
        {"item": f"i{n}", "system": "a", "against": "b", "rater": "r", "criterion": "ruder", "value": v}
        for n, v in enumerate(["win", "win", "win", "tie", "loss"])
    ]
    row = analyse(table_of(rows), n_replicates=50, directions={"ruder": "lower"}).ranking[0]
    assert [(s.system, s.score) for s in row.scores] == [("b", pytest.approx(0.3)), ("a", pytest.approx(0.7))]


def test_where_neither_end_is_better_there_is_no_ranking() -> None:
    found = analyse(table_of(rows_of()), n_replicates=20, directions={CRITERIA[0]: "neither"})
    assert CRITERIA[0] not in {row.criterion for row in found.ranking}
    assert CRITERIA[0] in {row.criterion for row in found.agreement}
    assert any("neither end is better" in note for note in found.notes)


def test_a_direction_holds_for_every_kind_of_the_criterion() -> None:
    rows = rows_of()
    table = table_of(rows, by_judge(rows, kind="llm"))
    found = analyse(table, n_replicates=20, directions={CRITERIA[0]: "lower"})
    assert {c.criterion: c.direction for c in found.criteria} == {
        CRITERIA[0]: "lower",
        CRITERIA[1]: "higher",
        f"{CRITERIA[0]} (llm)": "lower",
    }


@pytest.mark.parametrize(
    ("directions", "message"),
    [({"qualty": "lower"}, "did you mean"), ({CRITERIA[0]: "down"}, "expected higher or lower or neither")],
)
def test_directions_that_cannot_be(directions: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        analyse(table_of(rows_of()), directions=directions)


def test_the_record_has_the_design_and_not_the_texts() -> None:
    """A report of many items stays small, and may be shown to raters: checks keep their secret."""
    rows = rows_of()
    checks = {
        "items": [
            {
                "item": {"id": "check", "outputs": [{"system": "sys0", "text": "a text of a check"}]},
                "expected": [
                    {"criterion": "quality", "system": "sys0", "low": 1, "high": 1, "feedback": "as expected"}
                ],
            }
        ]
    }
    items = [
        {"id": f"item {i}", "outputs": [{"system": f"sys{s}", "text": f"text {i} of {s}"} for s in range(3)]}
        for i in range(12)
    ]
    document = json.loads(STUDY.model_dump_json())
    study = Study.model_validate({**document, "items": items, "checks": checks})
    table = read_ratings(open_frame(pl.DataFrame(rows), "rows"), study=study)
    analysis = analyse(table, study=study, n_replicates=10)
    from palaver.reports import render_report

    page = render_report(analysis)
    for text in ("a text of a check", "as expected", "text 1 of 2"):
        assert text not in page
        assert text not in json.dumps(analysis.run.model_dump(mode="json"))
    other = Study.model_validate({**document, "items": items})
    assert analyse(table, study=other, n_replicates=10).run.signature != analysis.run.signature


def test_few_items_are_warned_of(tmp_path: Path) -> None:
    few = run(rectangle(6, 2, 3, lambda i, s, r: 1 + (i + s + r) % 5), tmp_path, study=None)
    assert any("fewer than 20 items" in note for note in few.notes)
    many = run(rectangle(20, 2, 3, lambda i, s, r: 1 + (i + s + r) % 5), tmp_path, study=None)
    assert not any("fewer than 20 items" in note for note in many.notes)
