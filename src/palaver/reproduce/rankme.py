"""RankME: Reliable Human Ratings for Natural Language Generation (Novikova, Dušek & Rieser 2018).

Tables 2, 3 and 4 from the released ratings. The paper does not say how its numbers were computed; the
conventions below are the ones that give them, and each cell names its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palaver.errors import DataError
from palaver.reproduce.comparison import Cell, Comparison, GroupCell, Groups, NumberCell, print_comparison
from palaver.schema import record_run
from palaver.statistics.contingency import chi_square
from palaver.statistics.correlation import correlate
from palaver.statistics.icc import icc_long
from palaver.statistics.ranking import RankGroup, format_groups, paired_bootstrap
from palaver.statistics.trueskill import trueskill_groups
from palaver.studies.analyse import PACKAGES
from palaver.studies.judgements import Floats, Judgements, judgements_of
from palaver.studies.rankings import STATIC, compare_within_screens, item_means
from palaver.studies.ratings import RatingTable, read_ratings

__all__ = ["print_comparison", "reproduce"]

METHODS = {"Likert": "likert", "Plain ME": "plainME", "RankME": "rankME"}
CRITERIA = {"naturalness": "nat", "quality": "qual", "informativeness": "inf"}
SYSTEMS = {"slug2slug": "Slug2Slug", "baseline": "TGen", "sheffield_v2": "Sheffield NLP"}
SLUG, TGEN, SHEFFIELD = "Slug2Slug", "TGen", "Sheffield NLP"

# (correlation, significant) per method: Setup 1, Setup 2
TABLE_2 = {
    ("naturalness", "quality"): {
        "Likert": ((0.54, True), (-0.01, False)),
        "Plain ME": ((0.44, True), (-0.03, False)),
        "RankME": ((0.28, True), (-0.04, False)),
    },
    ("informativeness", "quality"): {
        "Likert": ((0.00, False), (0.54, True)),
        "Plain ME": ((0.48, True), (0.71, True)),
        "RankME": ((0.55, True), (0.74, True)),
    },
    ("naturalness", "informativeness"): {
        "Likert": ((0.15, True), (-0.18, True)),
        "Plain ME": ((0.03, False), (-0.07, False)),
        "RankME": ((0.09, False), (-0.08, False)),
    },
}

# (ICC, significant) per criterion: Setup 1, Setup 2
TABLE_3 = {
    "Likert": {
        "naturalness": ((0.07, False), (0.12, False)),
        "quality": ((0.02, False), (0.41, True)),
        "informativeness": ((0.93, True), (0.78, True)),
    },
    "Plain ME": {
        "naturalness": ((-0.03, False), (0.27, True)),
        "quality": ((0.22, True), (0.60, True)),
        "informativeness": ((0.59, True), (0.79, True)),
    },
    "RankME": {
        "naturalness": ((0.11, False), (0.42, True)),
        "quality": ((0.10, False), (0.68, True)),
        "informativeness": ((0.72, True), (0.82, True)),
    },
}

_CLEAR: Groups = (frozenset({SLUG}), frozenset({TGEN}), frozenset({SHEFFIELD}))
_TOP_TWO: Groups = (frozenset({SLUG, TGEN}), frozenset({SHEFFIELD}))
_NONE: Groups = (frozenset({SLUG, TGEN, SHEFFIELD}),)
TABLE_4: dict[tuple[str, str], Groups] = {
    ("Likert", "naturalness"): (frozenset({SLUG, SHEFFIELD}), frozenset({TGEN})),
    ("Likert", "quality"): _TOP_TWO,
    ("Likert", "informativeness"): _TOP_TWO,
    ("Plain ME", "naturalness"): _NONE,
    ("Plain ME", "quality"): _TOP_TWO,
    ("Plain ME", "informativeness"): _CLEAR,
    ("RankME", "naturalness"): _NONE,
    ("RankME", "quality"): _CLEAR,
    ("RankME", "informativeness"): _TOP_TWO,
    ("TrueSkill", "naturalness"): _NONE,
    ("TrueSkill", "quality"): _CLEAR,
    ("TrueSkill", "informativeness"): _TOP_TWO,
    ("RankME", "added information"): _CLEAR,
    ("RankME", "missing information"): (frozenset({TGEN}), frozenset({SLUG}), frozenset({SHEFFIELD})),
}

WHY = {
    ("Table 3", "RankME quality", "Setup 2"): (
        "the released file gives about 0.1 however it is normalised, so the published 0.68 "
        "cannot have come from it"
    ),
    ("Table 4", "Plain ME informativeness"): (
        "on the edge: Slug2Slug is ahead of TGen in {share:.3f} of the replicates, just below 0.95"
    ),
}
"""Cells that do not follow from the released files. All the others are known to match."""


@dataclass(frozen=True)
class _Release:
    """The twelve files, read once."""

    folder: Path
    tables: dict[str, RatingTable]

    def judged(self, method: str, setup: int, criterion: str, normalisation: str) -> Judgements:
        name = f"stp{setup}_{METHODS[method]}"
        table = self.tables[name if setup == 1 else f"{name}_{CRITERIA[criterion]}"]
        return judgements_of(table, criterion, normalisation)


def _read(folder: Path) -> _Release:
    names = [f"stp1_{m}" for m in METHODS.values()]
    names += [f"stp2_{m}_{c}" for m in METHODS.values() for c in ("inf", "nat", "qual")]
    missing = [f"{n}.zip" for n in names if not (folder / f"{n}.zip").is_file()]
    if missing:
        raise DataError(
            f"{folder} does not hold the RankME release",
            "get the data folder of github.com/jeknov/RankME and name it with --data",
            [f"no file {name}" for name in missing],
        )
    # One file lacks mr_id, so the meaning representation itself names the item in all of them.
    return _Release(folder, {n: read_ratings(folder / f"{n}.zip", columns={"item": "mr"}) for n in names})


def reproduce(folder: str | Path, *, seed: int = 0, n_replicates: int = 10_000) -> Comparison:
    """Compute every cell of Tables 2 to 4 and the chi-square test of section 3."""
    release = _read(Path(folder))
    cells: list[Cell] = [
        *_table_2(release),
        *_table_3(release),
        *_table_4(release, np.random.default_rng(seed), n_replicates),
    ]
    hashes = {name: digest for table in release.tables.values() for name, digest in table.hashes.items()}
    run = record_run(
        "reproduce rankme", seed=seed, config={"replicates": n_replicates}, data=hashes, packages=PACKAGES
    )
    return Comparison(
        paper="RankME (Novikova, Dušek & Rieser 2018), from the released ratings",
        cells=tuple(cells),
        remarks=tuple(_chi_square_remarks(release)),
        signature=f"palaver {run.versions['palaver']} | seed {seed} | {n_replicates:,} replicates | "
        f"{len(hashes)} files | run {run.signature}",
    )


def _table_2(release: _Release) -> Iterator[NumberCell]:
    for (a, b), methods in TABLE_2.items():
        for method, setups in methods.items():
            for setup, (paper, star) in enumerate(setups, start=1):
                single = setup == 2 and (a, b) == ("naturalness", "quality")
                side = [release.judged(method, setup, c, "raw") for c in (a, b)]
                if single:
                    x, y = (_single_ratings(j) for j in side)
                else:
                    x, y = (_output_means(j) for j in side)
                found = correlate(x, y, method="spearman")
                yield _number(
                    "Table 2", f"{method} {a}–{b}", setup, paper, star, found.value, found.p,
                    "ratings" if single else "item means",
                )  # fmt: skip


def _output_means(judged: Judgements) -> Floats:
    """Items x systems in the order of their names, so that two criteria line up."""
    return item_means(
        judged.score, judged.item, judged.system, len(judged.items), len(judged.systems)
    ).ravel()


def _single_ratings(judged: Judgements) -> Floats:
    """All ratings ordered by item and system, those of one output as they stand in the file."""
    return judged.score[np.argsort(judged.unit, kind="stable")]


def _table_3(release: _Release) -> Iterator[NumberCell]:
    for method, criteria in TABLE_3.items():
        for criterion, setups in criteria.items():
            for setup, (paper, star) in enumerate(setups, start=1):
                raw = method == "Likert" or (setup == 2 and criterion == "informativeness")
                judged = release.judged(method, setup, criterion, "raw" if raw else "log")
                form = icc_long(judged.unit, judged.rater, judged.score)["ICC(1,k)"]
                yield _number(
                    "Table 3", f"{method} {criterion}", setup, paper, star, form.value, form.p,
                    "ICC(1,k), raw" if raw else "ICC(1,k), log",
                )  # fmt: skip


def _number(
    table: str, row: str, setup: int, paper: float, star: bool, ours: float, p: float, how: str
) -> NumberCell:
    why = WHY.get((table, row, f"Setup {setup}"), "")
    return NumberCell(
        table=table,
        row=row,
        column=f"Setup {setup}",
        paper=paper,
        paper_star=star,
        ours=ours,
        p=p,
        convention=how,
        known=not why,
        why=why,
    )


def _table_4(release: _Release, rng: np.random.Generator, n_replicates: int) -> Iterator[GroupCell]:
    for (method, criterion), paper in TABLE_4.items():
        row = f"{method} {criterion}"
        if criterion.endswith(" information"):
            boxes = judgements_of(release.tables["stp2_rankME_qual"], "check", "raw")
            score = (~boxes.ticked(criterion.removesuffix(" information"))).astype(np.float64)
            judged, how = boxes, "bootstrap, RankME’s boxes"
        else:
            judged = release.judged("RankME" if method == "TrueSkill" else method, 2, criterion, "raw")
            score, how = judged.score, "bootstrap over items"
        systems = [SYSTEMS[s] for s in judged.systems]
        if method == "TrueSkill":
            compared, item = compare_within_screens(judged)
            skill = trueskill_groups(
                compared, systems, by=item, n_replicates=n_replicates,
                settings=STATIC, rng=rng,
            )  # fmt: skip
            groups, wins, how = skill.groups, skill.wins, "wins, draws, losses"
        else:
            table = item_means(score, judged.item, judged.system, len(judged.items), len(judged.systems))
            boot = paired_bootstrap(table, systems, n_replicates=n_replicates, rng=rng)
            groups, wins = boot.groups, boot.wins
        why = WHY.get(("Table 4", row), "")
        yield GroupCell(
            table="Table 4",
            row=row,
            paper=paper,
            paper_label=format_groups(_numbered(paper)),
            ours=tuple(frozenset(group.systems) for group in groups),
            ours_label=format_groups(groups),
            convention=how,
            known=not why,
            why=why.format(share=wins[systems.index(SLUG), systems.index(TGEN)]),
        )


def _numbered(groups: Groups) -> list[RankGroup]:
    ranked, place = [], 1
    for group in groups:
        ranked.append(RankGroup(first=place, last=place + len(group) - 1, systems=tuple(sorted(group))))
        place += len(group)
    return ranked


def _chi_square_remarks(release: _Release) -> Iterator[str]:
    """Section 3: systems add and miss information at different rates (p < 0.01)."""
    for method, name in METHODS.items():
        judged = judgements_of(release.tables[f"stp2_{name}_qual"], "check", "raw")
        counts = np.array(
            [
                [int(judged.ticked(box)[judged.system == i].sum()) for box in ("added", "missing")]
                for i in range(len(judged.systems))
            ]
        )
        test = chi_square(counts, rows=judged.systems, columns=("added", "missing"))
        listed = ", ".join(f"{SYSTEMS[s]} {a}/{m}" for s, (a, m) in zip(judged.systems, counts, strict=True))
        yield (
            f"Section 3, χ² on added/missed information ({method}): {listed}; χ²({test.df:g}) = "
            f"{test.statistic:.1f}, p = {test.p:.1g} (paper: p < 0.01)"
        )
