"""How far raters agree on a criterion: the measures that fit its level of measurement, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from palaver.schema.scale import Level
from palaver.statistics.alpha import AlphaResult, alpha_long
from palaver.statistics.bootstrap import Resampling
from palaver.statistics.icc import IccForm, icc_long
from palaver.statistics.jackknife import Deletions, Scale, deletion_groups, jackknife_interval, jackknife_p
from palaver.statistics.kappa import (
    KappaResult,
    PairwiseKappa,
    Weights,
    cohen_kappa,
    fleiss_kappa_long,
    pairwise_kappa,
)
from palaver.studies.intervals import MOST_RATINGS
from palaver.studies.judgements import Floats, Ints, Judgements
from palaver.studies.raters import busiest_raters
from palaver.studies.results import AgreementRow
from palaver.tabular import show_fixed

_BOOTSTRAP = "bootstrap over items"
_JACKKNIFE = "jackknife over items where that is wider"
_NORMAL = "normal approximation of atanh"
_MEAN_OF_PAIRS = "mean of pairs"
_NEARLY_ALL = 0.9
"""Raters are crossed if each of them judged at least this share of what was judged."""


@dataclass(frozen=True, slots=True)
class RaterDesign:
    """Who judged what: all raters everything, or other raters from item to item."""

    n_raters: int
    n_items: int
    n_complete: int
    """Items that every rater judged."""
    fewest: int
    most: int
    """Ratings of an item."""

    @classmethod
    def of(cls, judged: Judgements) -> RaterDesign:
        known = np.isfinite(judged.score)
        ratings = np.bincount(judged.unit if known.all() else judged.unit[known])
        ratings = ratings[ratings > 0]
        n_raters = len(judged.raters)
        return cls(
            n_raters=n_raters,
            n_items=int(ratings.size),
            n_complete=int((ratings == n_raters).sum()),
            fewest=int(ratings.min(initial=n_raters)),
            most=int(ratings.max(initial=0)),
        )

    @property
    def is_crossed(self) -> bool:
        return self.n_raters > 1 and 0 < _NEARLY_ALL * self.n_items <= self.n_complete

    def __str__(self) -> str:
        if self.n_raters == 1:
            return "there is one rater"
        if self.is_crossed:
            raters = "both raters" if self.n_raters == 2 else f"all {self.n_raters:,} raters"
            whole = self.n_complete == self.n_items
            return f"{raters} judged {'all' if whole else f'{self.n_complete:,} of {self.n_items:,}'} items"
        each = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
        return f"raters differ from item to item ({self.n_raters:,} raters, {each} per item)"


def agree(judged: Judgements, resampling: Resampling) -> Iterator[AgreementRow]:
    """Rows for one criterion. ICC for numbers, kappa for choices, Krippendorff's alpha for all.

    Which row is the headline follows the design. Of numbers it is the reliability of the mean over raters:
    ICC(2,k) where raters are crossed, ICC(1,k) where they differ from item to item. Of choices it is Cohen's
    kappa for two crossed raters, and otherwise Krippendorff's alpha.

    The intervals of these measures take outputs for independent. Outputs of one item are not, so where items
    have several, intervals and p also come from leaving out groups of items; the wider interval and the
    larger p are shown.
    """
    design = RaterDesign.of(judged)
    is_number = judged.treatment.kind == "number" and judged.treatment.level != "nominal"
    for row in _rows_with_items(judged, resampling):
        if is_number:
            quoted = row.form == ("ICC(2,k)" if design.is_crossed else "ICC(1,k)")
        elif design.is_crossed and design.n_raters == 2:
            quoted = row.measure == "Cohen kappa"
        else:
            quoted = (row.measure, row.form) == ("Krippendorff alpha", "nominal")
        if quoted:
            order = "" if is_number else ", and the answers have no order"
            name = row.form if is_number else row.measure
            row = replace(row, headline=True, headline_reason=f"{design}{order}, so {name} is quoted")
        yield row


def _rows_with_items(judged: Judgements, resampling: Resampling) -> Iterator[AgreementRow]:
    pairs = np.unique(judged.dialogue.astype(np.int64) * judged.n_units + judged.unit).size
    n_dialogues = np.unique(judged.dialogue).size
    if not 1 < n_dialogues < pairs or judged.score.size > MOST_RATINGS:
        yield from _rows(judged, resampling)
        return
    group = deletion_groups(judged.dialogue.astype(np.int64), np.random.default_rng(0))
    plain = replace(resampling, n_replicates=0, rng=np.random.default_rng(0))
    without = [
        _rows(judged.only(group != number), plain, of_pairs=False) for number in range(int(group.max()) + 1)
    ]
    # one row at a time: who wants the first only need not wait for the others
    for row in _rows(judged, resampling, group):
        if row.form.startswith(_MEAN_OF_PAIRS):
            yield row
        else:
            yield _widened(row, np.array([next(rows).value for rows in without]), resampling.confidence)


def _widened(row: AgreementRow, without: Floats, confidence: float) -> AgreementRow:
    # of single ratings it lies between -1 and 1, of means over k raters anywhere below 1
    scale: Scale = "agreement" if row.form.endswith("k)") else "correlation"
    deletions = Deletions(dialogues=without)
    interval = jackknife_interval(row.value, deletions, scale=scale, confidence=confidence)
    if np.isnan(row.low) or np.isnan(interval.low):
        return row
    p = jackknife_p(row.value, deletions, scale=scale)
    if row.measure == "ICC":  # of one side, as that of F
        p = p / 2 if row.value > 0 else 1 - p / 2
    return replace(
        row,
        p=row.p if np.isnan(row.p) else float(np.fmax(row.p, p)),
        low=min(row.low, interval.low),
        high=max(row.high, interval.high),
        interval=f"{row.interval}, {_JACKKNIFE}",
    )


def _rows(
    judged: Judgements, resampling: Resampling, group: Ints | None = None, *, of_pairs: bool = True
) -> Iterator[AgreementRow]:
    """`of_pairs`: means over pairs of raters, too; their intervals leave out each `group` of judgements."""
    level = judged.treatment.level
    if judged.treatment.kind == "number" and level != "nominal":
        yield from _icc_rows(judged, resampling)
        # Logarithms and z-scores of a ratio or ordinal scale are what differences are taken of: interval.
        level = "ordinal" if level == "ordinal" and judged.normalisation == "raw" else "interval"
        yield _alpha_row(judged, judged.score, level, level, resampling)
        if level == "ordinal":  # by draws of its own, so that what comes after does not depend on the level
            yield _fleiss_row(judged, replace(resampling, rng=resampling.rng.spawn(1)[0]))
    else:
        yield _alpha_row(judged, judged.score, "nominal", "nominal", resampling)
        yield _fleiss_row(judged, resampling)
    if of_pairs or len(judged.raters) == 2:
        yield from _cohen_rows(judged, level, resampling, group)
    if judged.treatment.kind == "boxes":
        for option in judged.treatment.options:
            ticked = judged.ticked(option).astype(np.float64)
            yield _alpha_row(judged, ticked, "nominal", f"nominal, box “{option}”", resampling)


def _icc_rows(judged: Judgements, resampling: Resampling) -> Iterator[AgreementRow]:
    result = icc_long(judged.unit, judged.rater, judged.score, confidence=resampling.confidence)
    for form in result.forms:
        row = _row(judged, "ICC", form.form, form, "F distribution")
        yield replace(row, p=form.p, n_raters=form.n_raters)


def _alpha_row(
    judged: Judgements, value: Floats, level: Level, form: str, resampling: Resampling
) -> AgreementRow:
    result = alpha_long(
        judged.unit,
        value,
        level=level,
        confidence=resampling.confidence,
        n_replicates=resampling.n_replicates,
        rng=resampling.rng,
    )
    return _row(judged, "Krippendorff alpha", form, result, _BOOTSTRAP)


def _fleiss_row(judged: Judgements, resampling: Resampling) -> AgreementRow:
    result = fleiss_kappa_long(
        judged.unit,
        judged.score,
        confidence=resampling.confidence,
        n_replicates=resampling.n_replicates,
        rng=resampling.rng,
    )
    row = replace(_row(judged, "Fleiss kappa", "unweighted", result, _NORMAL), p=result.p)
    if result.boot is not None and not result.reason:
        row = replace(row, low=result.boot.low, high=result.boot.high, interval=_BOOTSTRAP)
    return row


def _cohen_rows(
    judged: Judgements, level: Level, resampling: Resampling, group: Ints | None
) -> Iterator[AgreementRow]:
    """Cohen's kappa of two raters; with more of them the mean over every two."""
    if len(judged.raters) < 2 or level in ("interval", "ratio"):
        return
    forms: dict[Weights, str] = {"none": "unweighted"}
    if level == "ordinal":
        forms |= {"linear": "linear weights", "quadratic": "quadratic weights"}
    if len(judged.raters) > 2:
        yield from _rows_of_pairs(judged, forms, resampling, group)
        return
    pair = np.full((judged.n_units, 2), np.nan)
    pair[judged.unit, judged.rater] = judged.score
    for weights, form in forms.items():
        result = cohen_kappa(pair[:, 0], pair[:, 1], weights=weights, confidence=resampling.confidence)
        yield replace(_row(judged, "Cohen kappa", form, result, _NORMAL), p=result.p)


def _rows_of_pairs(
    judged: Judgements, forms: dict[Weights, str], resampling: Resampling, group: Ints | None
) -> Iterator[AgreementRow]:
    busiest = busiest_raters(judged)
    is_busy = np.zeros(len(judged.raters), dtype=bool)
    is_busy[busiest] = True
    rows = is_busy[judged.rater]
    unit, rater, score = judged.unit[rows], judged.rater[rows], judged.score[rows]
    groups = None if group is None else group[rows]
    for weights, form in forms.items():
        result = pairwise_kappa(
            unit, rater, score, weights=weights, confidence=resampling.confidence, group=groups
        )
        notes = result.notes
        if len(busiest) < len(judged.raters):
            notes = (f"pairs of the {len(busiest)} raters with most ratings", *notes)
        if result.values.size > 1 and not np.isnan(result.value):
            lowest, highest = np.nanmin(result.values), np.nanmax(result.values)
            pairs = f"{result.values.size} pairs of raters, {form}"
            notes = (f"Cohen kappa of {pairs}: {show_fixed(lowest)} to {show_fixed(highest)}", *notes)
        row = _row(judged, "Cohen kappa", f"{_MEAN_OF_PAIRS}, {form}", result, _NORMAL)
        row = replace(row, n_raters=result.n_raters, notes=notes)
        yield row if group is None else _widened(row, result.without, resampling.confidence)


def _row(
    judged: Judgements,
    measure: str,
    form: str,
    result: IccForm | AlphaResult | KappaResult | PairwiseKappa,
    interval: str,
) -> AgreementRow:
    return AgreementRow(
        criterion=judged.criterion,
        measure=measure,
        form=form,
        value=result.value,
        low=result.low,
        high=result.high,
        p=np.nan,
        n_items=result.n_items,
        n_raters=len(judged.raters),
        dropped=result.dropped,
        interval=interval,
        reason=result.reason,
        notes=result.notes,
    )
