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
from palaver.reproduce.comparison import Cell, Comparison, GroupCell, Groups, NumberCell, load_figures
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
        remarks=tuple(_chi_square_remarks(release)),
        signature=f"palaver {run.versions['palaver']} | seed {seed} | {n_replicates:,} replicates | "
        f"{len(hashes)} files | run {run.signature}",
    )


def _table_2(release: _Release) -> Iterator[NumberCell]:
    for criteria, methods in FIGURES["table_2"].items():
        for method, setups in methods.items():
            for setup, published in enumerate(setups, start=1):
                sides = [release.judged(method, setup, c, "raw") for c in criteria.split("–")]
                if setup == 2 and criteria == "naturalness–quality":
                    how, (x, y) = "ratings", map(_single_ratings, sides)
                else:
                    how, (x, y) = "item means", map(_output_means, sides)
                ours = correlate(x, y, method="spearman")
                yield _number("Table 2", f"{method} {criteria}", setup, published, ours.value, ours.p, how)


def _output_means(judged: Judgements) -> Floats:
    """Items x systems in the order of their names, so that two criteria line up."""
    return item_means(
        judged.score, judged.item, judged.system, len(judged.items), len(judged.systems)
    ).ravel()


def _single_ratings(judged: Judgements) -> Floats:
    """All ratings ordered by item and system, those of one output as they stand in the file."""
    return judged.score[np.argsort(judged.unit, kind="stable")]


def _table_3(release: _Release) -> Iterator[NumberCell]:
    for method, criteria in FIGURES["table_3"].items():
        for criterion, setups in criteria.items():
            for setup, published in enumerate(setups, start=1):
                raw = method == "Likert" or (setup == 2 and criterion == "informativeness")
                scores = "raw" if raw else "log"
                judged = release.judged(method, setup, criterion, scores)
                form = icc_long(judged.unit, judged.rater, judged.score)["ICC(1,k)"]
                row, how = f"{method} {criterion}", f"ICC(1,k), {scores}"
                yield _number("Table 3", row, setup, published, form.value, form.p, how)


def _number(
    table: str, row: str, setup: int, published: tuple[float, bool], ours: float, p: float, how: str
) -> NumberCell:
    paper, star = published
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
    )


def _table_4(release: _Release, rng: np.random.Generator, n_replicates: int) -> Iterator[GroupCell]:
    for published_row, ranking in FIGURES["table_4"].items():
        method, criterion = published_row.split(": ")
        row = f"{method} {criterion}"
        paper = tuple(frozenset(group) for group in ranking)
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
