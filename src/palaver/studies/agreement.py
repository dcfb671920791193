"""How far raters agree on a criterion: the measures that fit its level of measurement, as rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from palaver.schema.scale import Level
from palaver.statistics.alpha import alpha_long
from palaver.statistics.icc import icc_long
from palaver.statistics.kappa import cohen_kappa, fleiss_kappa
from palaver.studies.judgements import Floats, Judgements, Resampling
from palaver.studies.results import AgreementRow

_BOOTSTRAP = "bootstrap over items"


def agree(judged: Judgements, resampling: Resampling) -> Iterator[AgreementRow]:
    """Rows for one criterion. ICC for numbers, kappa for choices, Krippendorff's alpha for all."""
    level = judged.treatment.level
    if judged.treatment.kind == "number" and level != "nominal":
        yield from _icc_rows(judged, resampling)
        # Logarithms and z-scores of a ratio or ordinal scale are what differences are taken of: interval.
        level = "ordinal" if level == "ordinal" and judged.normalisation == "raw" else "interval"
        yield _alpha_row(judged, judged.score, level, level, resampling)
    else:
        yield _alpha_row(judged, judged.score, "nominal", "nominal", resampling, headline=True)
        yield _fleiss_row(judged, resampling)
    yield from _cohen_rows(judged, level, resampling)
    if judged.treatment.kind == "boxes":
        for option in judged.treatment.options:
            ticked = judged.ticked(option).astype(np.float64)
            yield _alpha_row(judged, ticked, "nominal", f"nominal, box “{option}”", resampling)


def _icc_rows(judged: Judgements, resampling: Resampling) -> Iterator[AgreementRow]:
    result = icc_long(judged.unit, judged.rater, judged.score, confidence=resampling.confidence)
    for form in result.forms:
        yield AgreementRow(
            criterion=judged.criterion,
            measure="ICC",
            form=form.form,
            value=form.value,
            low=form.low,
            high=form.high,
            p=form.p,
            n_items=form.n_items,
            n_raters=form.n_raters,
            dropped=form.dropped,
            interval="F distribution",
            headline=form.form == "ICC(1,k)",
            reason=form.reason,
            notes=form.notes,
        )


def _alpha_row(
    judged: Judgements,
    value: Floats,
    level: Level,
    form: str,
    resampling: Resampling,
    *,
    headline: bool = False,
) -> AgreementRow:
    result = alpha_long(
        judged.unit,
        value,
        level=level,
        confidence=resampling.confidence,
        n_replicates=resampling.n_replicates,
        rng=resampling.rng,
    )
    return AgreementRow(
        criterion=judged.criterion,
        measure="Krippendorff alpha",
        form=form,
        value=result.value,
        low=result.low,
        high=result.high,
        p=np.nan,
        n_items=result.n_items,
        n_raters=len(judged.raters),
        dropped=result.dropped,
        interval=_BOOTSTRAP,
        headline=headline,
        reason=result.reason,
        notes=result.notes,
    )


def _fleiss_row(judged: Judgements, resampling: Resampling) -> AgreementRow:
    codes, category = np.unique(judged.score, return_inverse=True)
    counts = np.bincount(judged.unit * codes.size + category, minlength=judged.n_units * codes.size)
    result = fleiss_kappa(
        counts.reshape(judged.n_units, codes.size),
        confidence=resampling.confidence,
        n_replicates=resampling.n_replicates,
        rng=resampling.rng,
    )
    boot = result.boot
    return AgreementRow(
        criterion=judged.criterion,
        measure="Fleiss kappa",
        form="unweighted",
        value=result.value,
        low=boot.low if boot else result.low,
        high=boot.high if boot else result.high,
        p=result.p,
        n_items=result.n_items,
        n_raters=len(judged.raters),
        dropped=result.dropped,
        interval=_BOOTSTRAP if boot else "normal approximation",
        reason=result.reason,
        notes=result.notes,
    )


def _cohen_rows(judged: Judgements, level: Level, resampling: Resampling) -> Iterator[AgreementRow]:
    """Cohen's kappa speaks of two raters; with more there is no such number."""
    if len(judged.raters) != 2 or level in ("interval", "ratio"):
        return
    pair = np.full((judged.n_units, 2), np.nan)
    pair[judged.unit, judged.rater] = judged.score
    for weights in ("none", "linear", "quadratic") if level == "ordinal" else ("none",):
        result = cohen_kappa(
            pair[:, 0],
            pair[:, 1],
            weights=weights,
            confidence=resampling.confidence,
            n_replicates=0,
            rng=resampling.rng,
        )
        yield AgreementRow(
            criterion=judged.criterion,
            measure="Cohen kappa",
            form="unweighted" if weights == "none" else f"{weights} weights",
            value=result.value,
            low=result.low,
            high=result.high,
            p=result.p,
            n_items=result.n_items,
            n_raters=2,
            dropped=result.dropped,
            interval="normal approximation",
            reason=result.reason,
            notes=result.notes,
        )
