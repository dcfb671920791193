"""Do raters agree more in one design than in another? Two sets of ratings, criterion by criterion."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from palaver.errors import UserError, count_of
from palaver.schema import RunRecord, record_run
from palaver.schema.run import RunResult
from palaver.statistics.icc_difference import IccDifference, RatedOutputs, compare_icc
from palaver.statistics.significance import holm
from palaver.studies.agreement import RaterDesign
from palaver.studies.analyse import FEW_ITEMS, PACKAGES, check_settings
from palaver.studies.judgements import Judgements, contexts_of, judgements_of, shared_codes
from palaver.studies.ratings import RatingTable, as_rating_table
from palaver.tabular import columns_of, few

_UNEQUAL = 1.1
"""Designs whose ratings per output differ by more than this factor are not compared by their means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementDifference:
    """One criterion, one form of the ICC: its value in both designs, and the difference a - b."""

    criterion: str
    form: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    """Adjusted for the number of criteria (Holm 1979)."""
    n_items_a: int
    n_items_b: int
    n_shared: int
    """Items that both designs judged; these are drawn together."""
    n_raters_a: int
    n_raters_b: int
    scores_a: str
    scores_b: str
    """How ratings became scores: raw, log …"""
    headline: bool
    """The row to quote: of a mean over raters, or of one rating where the designs have unequal numbers."""
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AgreementComparison(RunResult):
    """The agreement of two designs beside each other. Tables: differences."""

    a: str
    b: str
    confidence: float
    n_replicates: int
    differences: tuple[AgreementDifference, ...]
    notes: tuple[str, ...]
    run: RunRecord

    def _headline(self) -> str:
        criteria = few(list(dict.fromkeys(row.criterion for row in self.differences)))
        return f"{self.a} against {self.b}: {criteria}; signature {self.run.signature}"

    def _tables(self) -> dict[str, Any]:
        return {"differences": columns_of(AgreementDifference, self.differences)}


def compare_agreement(
    a: RatingTable | str | Path | Any,
    b: RatingTable | str | Path | Any,
    *,
    normalise: str = "auto",
    normalise_b: str | None = None,
    confidence: float = 0.95,
    n_replicates: int = 10_000,
    seed: int = 0,
) -> AgreementComparison:
    """Whether raters agree more in design `a` than in `b`, for each criterion that both asked for.

    Both are what `analyse` takes. Items are matched by name, and drawn together where both designs judged
    them. `normalise` is as in `analyse`; `normalise_b` is for `b` alone, where its scale needs another one.
    """
    other = normalise if normalise_b is None else normalise_b
    for name in (normalise, other):
        check_settings(name, confidence, n_replicates, seed)
    tables = as_rating_table(a), as_rating_table(b)
    names = [", ".join(table.hashes) or "ratings" for table in tables]
    common = [criterion for criterion in tables[0].criteria if criterion in tables[1].criteria]
    notes = [
        f"{criterion}: only in {name}, so not compared"
        for name, table in zip(names, tables, strict=True)
        for criterion in table.criteria
        if criterion not in common
    ]
    rows: list[AgreementDifference] = []
    contexts = contexts_of(tables[0]) | contexts_of(tables[1])
    for criterion in common:
        judged = [judgements_of(tables[0], criterion, normalise), judgements_of(tables[1], criterion, other)]
        if any(j.treatment.kind != "number" or j.treatment.level == "nominal" for j in judged):
            notes.append(f"{criterion}: choices have no ICC, so not compared")
            continue
        if contexts:  # items of one context are drawn together
            judged = [replace(j, items=j.items.replace(contexts)) for j in judged]
        stream = np.random.SeedSequence([seed, *criterion.encode()])
        rows += _compare(judged, confidence, n_replicates, np.random.default_rng(stream))
    if not rows:
        raise UserError(
            "the two sets of ratings have no criterion of numbers in common",
            "name the criteria alike, or say which column is which",
            [f"{name} has {', '.join(t.criteria)}" for name, t in zip(names, tables, strict=True)],
        )
    config: dict[str, object] = {
        "normalise": [normalise, other],
        "confidence": confidence,
        "replicates": n_replicates,
    }
    hashes = {f"{side}: {n}": h for side, t in zip("ab", tables, strict=True) for n, h in t.hashes.items()}
    return AgreementComparison(
        a=names[0],
        b=names[1],
        confidence=confidence,
        n_replicates=n_replicates,
        differences=tuple(_adjusted(rows)),
        notes=tuple(notes),
        run=record_run("study compare-agreement", seed=seed, config=config, data=hashes, packages=PACKAGES),
    )


def _compare(
    judged: Sequence[Judgements], confidence: float, n_replicates: int, rng: np.random.Generator
) -> Iterator[AgreementDifference]:
    designs = [RaterDesign.of(j) for j in judged]
    places, _ = shared_codes(judged, "item")
    ratings = [
        RatedOutputs(
            output=j.unit.astype(np.int64),
            rater=j.rater.astype(np.int64),
            item=place[j.item],
            value=j.score,
        )
        for j, place in zip(judged, places, strict=True)
    ]
    crossed = all(design.is_crossed for design in designs)
    single, average = compare_icc(
        *ratings, crossed=crossed, confidence=confidence, n_replicates=n_replicates, rng=rng
    )
    means = [np.isfinite(j.score).sum() / design.n_items for j, design in zip(judged, designs, strict=True)]
    unequal = max(means) > _UNEQUAL * min(means)
    notes: list[str] = []
    if unequal:
        notes.append(
            f"{means[0]:.1f} and {means[1]:.1f} ratings per output: a mean over more is more reliable "
            "by itself, so single ratings are compared"
        )
    if average.n_shared == 0:
        notes.append("the designs have no item in common: easy items may pass for agreement")
    elif average.n_shared < max(average.n_items_a, average.n_items_b):
        notes.append(f"{count_of(average.n_shared, 'item')} in common, the others are drawn apart")
    if min(average.n_items_a, average.n_items_b) < FEW_ITEMS:
        notes.append(f"fewer than {FEW_ITEMS} items: equal designs come out different too often")
    for result in (single, average):
        quoted = result is (single if unequal else average)
        yield _row(result, judged, designs, quoted, notes)


def _row(
    result: IccDifference,
    judged: Sequence[Judgements],
    designs: list[RaterDesign],
    quoted: bool,
    notes: list[str],
) -> AgreementDifference:
    return AgreementDifference(
        criterion=judged[0].criterion,
        form=result.form,
        a=result.a,
        b=result.b,
        difference=result.difference,
        low=result.low,
        high=result.high,
        p=result.p,
        p_holm=np.nan,
        n_items_a=result.n_items_a,
        n_items_b=result.n_items_b,
        n_shared=result.n_shared,
        n_raters_a=designs[0].n_raters,
        n_raters_b=designs[1].n_raters,
        scores_a=judged[0].normalisation,
        scores_b=judged[1].normalisation,
        headline=quoted,
        reason=result.reason,
        notes=tuple(notes) if quoted else (),
    )


def _adjusted(rows: list[AgreementDifference]) -> Iterator[AgreementDifference]:
    """The quoted rows with p-values adjusted for their number; the others say the same again."""
    quoted = [row for row in rows if row.headline and np.isfinite(row.p)]
    p = dict(zip((row.criterion for row in quoted), holm([row.p for row in quoted]).adjusted, strict=True))
    for row in rows:
        yield dataclasses.replace(row, p_holm=float(p.get(row.criterion, np.nan)) if row.headline else np.nan)
