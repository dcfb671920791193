"""RankME: Reliable Human Ratings for Natural Language Generation (Novikova, Dušek & Rieser 2018).

Tables 2, 3 and 4 from the released ratings. The paper does not say how its numbers were computed. Each table
has one convention here; cells that only another one gives count as different, and name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palaver.errors import DataError
from palaver.reproduce.comparison import (
    Alternative,
    Cell,
    Comparison,
    GroupCell,
    Groups,
    NumberCell,
    load_figures,
)
from palaver.schema import record_run
from palaver.statistics.contingency import chi_square
from palaver.statistics.correlation import correlate
from palaver.statistics.icc import IccForm, icc_long
from palaver.statistics.influence import leave_one_out
from palaver.statistics.ranking import RankGroup, format_groups, paired_bootstrap
from palaver.statistics.trueskill import trueskill_groups
from palaver.studies.analyse import PACKAGES
from palaver.studies.correlations import correlate_criteria
from palaver.studies.judgements import Floats, Judgements, judgements_of
from palaver.studies.rankings import STATIC, compare_within_screens, item_means
from palaver.studies.ratings import RatingTable, read_ratings

METHODS = {"Likert": "likert", "Plain ME": "plainME", "RankME": "rankME"}
CRITERIA = {"naturalness": "nat", "quality": "qual", "informativeness": "inf"}
SYSTEMS = {"slug2slug": "Slug2Slug", "baseline": "TGen", "sheffield_v2": "Sheffield NLP"}
FIGURES = load_figures("rankme")


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
        remarks=(*_chi_square_remarks(release), *_box_remarks(release, seed, n_replicates)),
        signature=f"palaver {run.versions['palaver']} | seed {seed} | {n_replicates:,} replicates | "
        f"{len(hashes)} files | run {run.signature}",
    )


def _table_2(release: _Release) -> Iterator[NumberCell]:
    for criteria, methods in FIGURES["table_2"].items():
        for method, setups in methods.items():
            for setup, published in enumerate(setups, start=1):
                first, second = (release.judged(method, setup, c, "raw") for c in criteria.split("–"))
                ours = correlate(_output_means(first), _output_means(second), method="spearman")
                others: tuple[Alternative, ...] = ()
                if setup == 2 and criteria == "naturalness–quality":
                    others = (_by_file_order(first, second), _by_rater(first, second))
                place = (f"{method} {criteria}", setup)
                yield _number("Table 2", place, published, ours.value, ours.p, "output means", others)


def _output_means(judged: Judgements) -> Floats:
    """Items x systems in the order of their names, so that two criteria line up."""
    return item_means(
        judged.score, judged.item, judged.system, len(judged.items), len(judged.systems)
    ).ravel()


def _by_file_order(first: Judgements, second: Judgements) -> Alternative:
    """The ratings of an output paired as they stand in the two files: those of different raters."""
    x, y = (judged.score[np.argsort(judged.unit, kind="stable")] for judged in (first, second))
    result = correlate(x, y, method="spearman")
    convention = "ratings of different raters, paired by their order in the files (meaningless)"
    return Alternative(convention=convention, value=result.value, n=result.n)


def _by_rater(first: Judgements, second: Judgements) -> Alternative:
    """The two ratings that one rater gave to one output."""
    [row] = [
        row for row in correlate_criteria([first, second], "spearman", 0.95) if row.over == "single ratings"
    ]
    return Alternative(convention="ratings by the same rater of the same output", value=row.value, n=row.n)


def _table_3(release: _Release) -> Iterator[NumberCell]:
    for method, criteria in FIGURES["table_3"].items():
        for criterion, setups in criteria.items():
            for setup, published in enumerate(setups, start=1):
                scores = "raw" if method == "Likert" else "log"
                judged = release.judged(method, setup, criterion, scores)
                form = _icc(judged)
                place = (f"{method} {criterion}", setup)
                others: list[Alternative] = []
                if FIGURES["why"].get(f"Table 3, {place[0]}, Setup {setup}"):
                    for other in ("raw", "z", "log-z"):
                        judged = release.judged(method, setup, criterion, other)
                        others.append(Alternative(convention=_SCORES[other], value=_icc(judged).value))
                if place == ("RankME quality", 2):
                    others.append(_without_one_rater(release.judged(method, setup, criterion, "z")))
                how = f"ICC(1,k), {scores}"
                yield _number("Table 3", place, published, form.value, form.p, how, tuple(others))


_SCORES = {"raw": "values as given", "z": "z within raters", "log-z": "z of logarithms within raters"}


def _icc(judged: Judgements) -> IccForm:
    return icc_long(judged.unit, judged.rater, judged.score)["ICC(1,k)"]


def _without_one_rater(judged: Judgements) -> Alternative:
    """Without the rater on whom agreement hangs most, who is flagged."""
    result = leave_one_out("ICC(1,k)", judged.unit, judged.rater, judged.item, judged.score)
    worst = int(np.argmax(result.without_rater))
    convention = f"z within raters, without rater {judged.raters[worst]} (flagged: disagrees with the others)"
    return Alternative(convention=convention, value=float(result.without_rater[worst]))


def _number(
    table: str,
    place: tuple[str, int],
    published: tuple[float, bool],
    ours: float,
    p: float,
    how: str,
    alternatives: tuple[Alternative, ...],
) -> NumberCell:
    paper, star = published
    row, setup = place
    return NumberCell(
        table=table,
        row=row,
        column=f"Setup {setup}",
        paper=paper,
        paper_star=star,
        ours=ours,
        p=p,
        convention=how,
        why=FIGURES["why"].get(f"{table}, {row}, Setup {setup}", ""),
        alternatives=alternatives,
    )


def _table_4(release: _Release, rng: np.random.Generator, n_replicates: int) -> Iterator[GroupCell]:
    for published_row, ranking in FIGURES["table_4"].items():
        method, criterion = published_row.split(": ")
        row = f"{method} {criterion}"
        paper = tuple(frozenset(group) for group in ranking)
        if criterion.endswith(" information"):
            boxes = judgements_of(release.tables["stp2_rankME_qual"], "check", "raw")
            score = (~boxes.ticked(criterion.removesuffix(" information"))).astype(np.float64)
            judged, how = boxes, "bootstrap, boxes of stp2_rankME_qual"
        else:
            judged = release.judged("RankME" if method == "TrueSkill" else method, 2, criterion, "raw")
            score, how = judged.score, "bootstrap over items"
        systems = [SYSTEMS[s] for s in judged.systems]
        if method == "TrueSkill":
            compared, item = compare_within_screens(judged)
            skill = trueskill_groups(
                compared, systems, by=item, n_replicates=n_replicates, settings=STATIC, rng=rng
            )
            groups, wins, how = skill.groups, skill.wins, "wins, draws, losses"
        else:
            table = item_means(score, judged.item, judged.system, len(judged.items), len(judged.systems))
            boot = paired_bootstrap(table, systems, n_replicates=n_replicates, rng=rng)
            groups, wins = boot.groups, boot.wins
        share = wins[systems.index("Slug2Slug"), systems.index("TGen")]
        yield GroupCell(
            table="Table 4",
            row=row,
            paper=paper,
            paper_label=format_groups(_numbered(paper)),
            ours=tuple(frozenset(group.systems) for group in groups),
            ours_label=format_groups(groups),
            convention=how,
            why=FIGURES["why"].get(f"Table 4, {row}", "").format(share=share),
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


def _box_remarks(release: _Release, seed: int, n_replicates: int) -> Iterator[str]:
    """Table 4 ranks by RankME's boxes; the two other quality files have boxes, too."""
    for method in ("Likert", "Plain ME"):
        name = f"stp2_{METHODS[method]}_qual"
        judged = judgements_of(release.tables[name], "check", "raw")
        systems = [SYSTEMS[s] for s in judged.systems]
        for box in ("added", "missing"):
            score = (~judged.ticked(box)).astype(np.float64)
            table = item_means(score, judged.item, judged.system, len(judged.items), len(systems))
            boot = paired_bootstrap(
                table, systems, n_replicates=n_replicates, rng=np.random.default_rng(seed)
            )
            yield f"{box} information by the boxes of {name}: {format_groups(boot.groups)}"
