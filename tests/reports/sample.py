"""A rich synthetic analysis: plausible numbers, every field filled, any size, hostile names on request."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from palaver.schema import RunRecord
from palaver.studies.results import (
    AgreementRow,
    Analysis,
    CorrelationRow,
    CriterionSummary,
    Distribution,
    RankingRow,
    RaterMatrix,
    RaterRow,
    Reading,
    SystemScore,
    TestRow,
)

NAN = float("nan")
SYSTEMS = ("Slug2Slug", "TGen", "Sheffield NLP", "Baseline (templates)", "Char-RNN")
NUMERIC = ("informativeness", "naturalness", "quality")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[bold]x[/bold] $\\frac{1}{0}$ & {{ 7*7 }}",
    "a-system-" + "with-a-very-long-name-" * 20 + "v2",
    "نظام 系统 \x00\x1b[31m\u202e\ud800 'quoted'\nnewline",
)
BINS = ("1–25", "26–50", "51–75", "76–100", "101–125", "126–150", "151–200", "over 200")


def ahead(a: float, b: float, sd: float) -> float:
    return round(0.5 * (1 + math.erf((a - b) / (2 * sd))), 3)


def ranking(criterion: str, method: str, systems: tuple[str, ...], sd: float, seed: int) -> RankingRow:
    rng = np.random.default_rng(seed)
    true = np.sort(rng.normal(0, 0.6, len(systems)))[::-1]
    better = tuple(tuple(ahead(x, y, sd) for y in true) for x in true)
    groups: list[list[str]] = [[]]
    for k, system in enumerate(systems):
        groups[-1].append(system)
        rest = range(k + 1, len(systems))
        if rest and all(better[i][j] >= 0.95 for i in range(k + 1) for j in rest):
            groups.append([])
    labels, first = [], 1
    for group in groups:
        last = first + len(group) - 1
        labels.append((f"{first}." if first == last else f"{first}.–{last}.") + " " + " + ".join(group))
        first = last + 1
    return RankingRow(
        criterion=criterion,
        method=method,
        confidence=0.95,
        groups=tuple(tuple(g) for g in groups),
        label=", ".join(labels),
        unit={"bootstrap": "mean log magnitude, z per rater"}.get(method, "skill"),
        scores=tuple(
            SystemScore(system=s, score=float(x), low=float(x - 1.96 * sd), high=float(x + 1.96 * sd), n=240)
            for s, x in zip(systems, true, strict=True)
        ),
        better=better,
        n_items=120,
        n_replicates=1000,
    )


def undefined_ranking(criterion: str) -> RankingRow:
    return RankingRow(
        criterion=criterion,
        method="bradley-terry",
        confidence=0.95,
        groups=(),
        label="",
        unit="log strength",
        scores=(),
        better=(),
        n_items=120,
        n_replicates=1000,
        reason="no two systems were compared by one rater",
        notes=("120 items with one output each",),
    )


def agreement(criterion: str, seed: int) -> list[AgreementRow]:
    rng = np.random.default_rng(seed)
    single = float(rng.uniform(0.3, 0.6))
    rows = []
    for form in ("ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k"):
        value = single if not form.endswith("k") else 3 * single / (1 + 2 * single)
        rows.append(
            AgreementRow(
                criterion=criterion,
                measure="ICC",
                form=form,
                value=value,
                low=value - 0.08,
                high=value + 0.06,
                p=1e-9,
                n_items=600,
                n_raters=40,
                dropped=3,
                interval="F distribution",
                headline=form == "ICC2k",
                notes=("3 items with fewer than two ratings",),
            )
        )
    alpha = dataclasses.replace(
        rows[0],
        measure="Krippendorff's alpha",
        form="interval",
        value=single - 0.01,
        p=NAN,
        interval="bootstrap over items",
    )
    return [*rows, alpha]


def checkbox_agreement() -> list[AgreementRow]:
    base = AgreementRow(
        criterion="facts",
        measure="Fleiss' kappa",
        form="nominal",
        value=0.47,
        low=0.38,
        high=0.55,
        p=0.0312,
        n_items=600,
        n_raters=40,
        dropped=0,
        interval="bootstrap over items",
        headline=True,
    )
    undefined = dataclasses.replace(
        base,
        measure="Cohen's kappa",
        form="quadratic",
        value=NAN,
        low=NAN,
        high=NAN,
        p=NAN,
        headline=False,
        reason="more than two raters",
    )
    return [base, undefined]


def summary(
    criterion: str, systems: tuple[str, ...], raters: tuple[str, ...], rng: np.random.Generator
) -> CriterionSummary:
    def counts(middle: float, n: int) -> tuple[int, ...]:
        draws = np.clip(np.round(rng.normal(middle, 1.5, n)), 0, len(BINS) - 1).astype(int)
        return tuple(int(c) for c in np.bincount(draws, minlength=len(BINS)))

    return CriterionSummary(
        criterion=criterion,
        treated_as="magnitude estimates (positive whole numbers up to 999,999), log and z per rater; "
        "guessed from the values: 214 distinct whole numbers, reference 100",
        unit="mean log magnitude, z per rater",
        n_ratings=240 * len(systems),
        n_items=120,
        n_outputs=120 * len(systems),
        n_raters=len(raters),
        minimum=1,
        maximum=100_000,
        bins=BINS,
        systems=tuple(
            Distribution(criterion=criterion, name=s, counts=counts(5 - 3 * k / len(systems), 240))
            for k, s in enumerate(systems)
        ),
        raters=tuple(
            Distribution(criterion=criterion, name=r, counts=counts(rng.uniform(2, 5), 60))
            for r in raters[:30]
        ),
    )


def checkbox_summary(systems: tuple[str, ...], n_raters: int) -> CriterionSummary:
    return CriterionSummary(
        criterion="facts",
        treated_as="checkboxes: added, missing, ok (nominal, from the study file)",
        unit="share of ratings",
        n_ratings=240 * len(systems),
        n_items=120,
        n_outputs=120 * len(systems),
        n_raters=n_raters,
        minimum=NAN,
        maximum=NAN,
        bins=(),
        systems=(),
        raters=(),
        choices=tuple(
            (
                s,
                (
                    ("added", 0.08 + 0.3 * k / len(systems)),
                    ("missing", 0.2),
                    ("ok", 0.8 - 0.5 * k / len(systems)),
                ),
            )
            for k, s in enumerate(systems)
        ),
    )


def rater_rows(raters: tuple[str, ...], rng: np.random.Generator) -> tuple[RaterRow, ...]:
    rows = []
    for k, rater in enumerate(raters):
        careless = k % 9 == 4
        rows.append(
            RaterRow(
                rater=rater,
                n_ratings=180 - 3 * k % 90,
                n_items=60 - k % 30,
                median_seconds=NAN if k == 3 else float(rng.gamma(6, 4)) / (6 if careless else 1),
                spread=0.12 if careless else float(rng.uniform(0.7, 1.3)),
                straight_lining=0.93 if careless else float(rng.uniform(0.1, 0.4)),
                agreement=NAN if k == 5 else float(rng.normal(0.05 if careless else 0.6, 0.1)),
                n_shared=3 if k == 5 else 60,
                flags=("gives one value", "fast") if careless else (),
            )
        )
    return tuple(rows)


def rater_matrix(criterion: str, raters: tuple[str, ...], rng: np.random.Generator) -> RaterMatrix:
    n = min(len(raters), 30)
    values = np.clip(rng.normal(0.5, 0.3, (n, n)), -1, 1)
    values = (values + values.T) / 2
    values[rng.random((n, n)) < 0.03] = NAN
    np.fill_diagonal(values, 1)
    return RaterMatrix(
        criterion=criterion,
        raters=raters[:n],
        values=tuple(tuple(float(v) for v in row) for row in values),
        n_shared=tuple((20,) * n for _ in range(n)),
    )


def correlations(criteria: tuple[str, ...]) -> tuple[CorrelationRow, ...]:
    pairs = [(a, b) for i, a in enumerate(criteria) for b in criteria[i + 1 :]]
    return tuple(
        CorrelationRow(
            a=a,
            b=b,
            method="spearman",
            over=over,
            value=0.62 - 0.4 * k,
            p=(1e-6, 0.0312, 0.4)[k % 3],
            low=0.5 - 0.4 * k,
            high=0.7 - 0.4 * k,
            n=600,
            dropped=2,
        )
        for over in ("item means", "single ratings")
        for k, (a, b) in enumerate(pairs)
    )


def tests() -> tuple[TestRow, ...]:
    done = TestRow(
        criterion="facts",
        test="chi-square",
        question="do the systems differ in the boxes that were ticked?",
        statistic=13.2,
        df=8,
        p=0.0312,
        effect=0.12,
        n=1200,
        notes=("2 cells expect fewer than 5",),
    )
    undone = dataclasses.replace(
        done, question="and the raters?", statistic=NAN, df=NAN, p=NAN, effect=NAN, reason="one choice only"
    )
    return done, undone


def make(
    systems: tuple[str, ...] = SYSTEMS,
    n_raters: int = 40,
    criteria: tuple[str, ...] = NUMERIC,
    title: str = "RankME, five systems",
    rater_names: tuple[str, ...] = (),
) -> Analysis:
    """An analysis of `systems` with every kind of row; the last criterion's methods disagree."""
    rng = np.random.default_rng(7)
    raters = (*rater_names, *(f"worker-{k:03d}" for k in range(len(rater_names), n_raters)))
    ranks = [
        ranking(c, m, systems, 0.1, k) for k, c in enumerate(criteria) for m in ("bootstrap", "trueskill")
    ]
    if ranks:
        ranks[-1] = ranking(criteria[-1], "trueskill", systems, 0.35, len(criteria) - 1)
        ranks.append(undefined_ranking(criteria[0]))
    return Analysis(
        title=title,
        run=RunRecord(
            command="palaver study analyse ratings.csv --out out",
            config={"confidence": 0.95, "normalisation": "log-z", "replicates": 1000},
            seed=1,
            versions={"palaver": "0.1.0", "python": "3.11.2", "numpy": "2.4.6", "scipy": "1.17.1"},
            data={"ratings.csv": "3fa94c" + "0" * 58},
        ),
        reading=Reading(
            files=("ratings.csv",),
            layout="wide: one row per screen",
            n_rows=1210,
            n_ratings=3600,
            dropped=(("value outside the scale", 12), ("rated again later by the same rater", 7)),
            notes=("columns quality1..3 and team1..3 were read as one rating each",),
        ),
        confidence=0.95,
        criteria=(*(summary(c, systems, raters, rng) for c in criteria), checkbox_summary(systems, n_raters)),
        agreement=(*(r for k, c in enumerate(criteria) for r in agreement(c, k)), *checkbox_agreement()),
        correlation=correlations(criteria),
        ranking=tuple(ranks),
        raters=rater_rows(raters, rng),
        rater_matrices=tuple(rater_matrix(c, raters, rng) for c in criteria),
        tests=tests(),
        notes=("facts is nominal: it is described, not ranked",),
    )


def hostile() -> Analysis:
    """Every name and every free text is hostile."""
    base = make(HOSTILE, n_raters=12, criteria=HOSTILE[:3], title=HOSTILE[0], rater_names=HOSTILE)
    bad = HOSTILE[1]
    return dataclasses.replace(
        base,
        notes=HOSTILE,
        reading=dataclasses.replace(
            base.reading, files=HOSTILE, layout=bad, notes=HOSTILE, dropped=((bad, 3),)
        ),
        raters=tuple(dataclasses.replace(r, flags=(bad,)) for r in base.raters),
        tests=tuple(
            dataclasses.replace(r, criterion=bad, test=bad, question=bad, reason=bad, notes=(bad,))
            for r in base.tests
        ),
        agreement=tuple(
            dataclasses.replace(r, reason=bad, notes=HOSTILE, interval=bad, form=bad) for r in base.agreement
        ),
        ranking=tuple(dataclasses.replace(r, unit=bad, reason=bad, notes=(bad,)) for r in base.ranking),
        criteria=tuple(
            dataclasses.replace(c, treated_as=bad, unit=bad, bins=(*HOSTILE, "6", "7", "8") if c.bins else ())
            for c in base.criteria
        ),
    )


def big() -> Analysis:
    """60 systems, 500 raters."""
    return make(tuple(f"system-{k:02d}" for k in range(60)), n_raters=500)


def one_system() -> Analysis:
    """One system, no second criterion to go with it."""
    base = make(SYSTEMS[:1], n_raters=2, criteria=("quality",))
    return dataclasses.replace(base, correlation=())


def empty() -> Analysis:
    """Nothing was found at all."""
    base = make()
    return dataclasses.replace(
        base,
        title="Nothing",
        reading=Reading(files=(), layout="long", n_rows=0, n_ratings=0),
        criteria=(),
        agreement=(),
        correlation=(),
        ranking=(),
        raters=(),
        rater_matrices=(),
        tests=(),
        notes=(),
    )
