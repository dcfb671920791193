"""A judge's scores in people's units, and whether they may be used where people did not rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from palaver.errors import DataError
from palaver.statistics.calibration import (
    FOLDS,
    audit_transfer,
    cross_calibrate,
    fit_isotonic,
    rogan_gladen,
)
from palaver.studies.ratings import RatingTable
from palaver.studies.trust import (
    People,
    TrustReport,
    Verdicts,
    check_size,
    make_report,
    people_of,
    verdicts_of,
)
from palaver.tabular import show_interval, show_signed


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow:
    """How far calibrated scores are from people, here (by other folds) or in another place."""

    place: str
    judge: str
    verdict: str
    """PASS, FAIL or INCONCLUSIVE against the margin."""
    error: float
    """People minus judge, on average."""
    low: float
    high: float
    margin: float
    raw_error: float
    """The same before calibration."""
    correlation: float
    n_dialogues: int
    n_ratings: int
    confidence: float
    reason: str = ""
    notes: tuple[str, ...] = ()


def trust_calibrate(
    people_table: RatingTable,
    judge_table: RatingTable,
    transfer_table: RatingTable | None = None,
    *,
    criterion: str | None = None,
    judge: str | None = None,
    judge_criterion: str | None = None,
    margin: float = 0.25,
    threshold: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> TrustReport:
    """Calibrate the judge to people, and audit it on the people's ratings of another place, if given.

    With `threshold` also the share of outputs that people would rate as high or higher, corrected for the
    judge's errors (Rogan & Gladen).
    """
    people = people_of(people_table, criterion, judges=judge_table, judge_criterion=judge_criterion)
    check_size(people, margin, "a margin")
    verdicts = verdicts_of(judge_table, people, judge=judge, criterion=judge_criterion)
    scores = verdicts.of_people(people)
    known = np.isfinite(scores) & np.isfinite(people.judged.score)
    value, dialogue = people.judged.score[known], people.dialogue[known]
    if np.unique(scores[known]).size < 2:
        raise DataError(f"{verdicts.judge} gave the same score to everything: nothing can be calibrated")
    try:
        own = cross_calibrate(scores[known], value, dialogue, rng=seed)
    except ValueError as error:
        raise DataError(str(error)) from None
    rows = [_row("here", people, verdicts, known, own, margin, confidence)]
    if transfer_table is not None:
        there = people_of(transfer_table, people.judged.criterion)
        elsewhere = verdicts_of(judge_table, there, judge=verdicts.judge, criterion=verdicts.criterion)
        of_there = elsewhere.of_people(there)
        usable = np.isfinite(of_there) & np.isfinite(there.judged.score)
        calibrated = fit_isotonic(scores[known], value)(of_there[usable])
        rows.append(_row("elsewhere", there, elsewhere, usable, calibrated, margin, confidence))
    words = [_describe(row) for row in rows]
    if threshold is not None:
        words.append(_corrected(people, verdicts, scores, known, own, threshold, confidence))
    config = {
        "criterion": people.judged.criterion,
        "judge": verdicts.judge,
        "judge_criterion": verdicts.criterion,
        "margin": margin,
        "threshold": threshold,
        "folds": FOLDS,
        "confidence": confidence,
    }
    tables = [people_table, judge_table, *([transfer_table] if transfer_table is not None else [])]
    return make_report("calibrate", rows, CalibrationRow, tables, config, words=words, seed=seed)


def _row(
    place: str,
    people: People,
    verdicts: Verdicts,
    known: np.ndarray,
    calibrated: np.ndarray,
    margin: float,
    confidence: float,
) -> CalibrationRow:
    value, dialogue = people.judged.score[known], people.dialogue[known]
    rater = people.judged.rater[known]
    sampling = people.sampling(known)
    audit = audit_transfer(
        value, calibrated, dialogue, rater, margin=margin, confidence=confidence,
        weight=None if sampling is None else 1 / sampling,
    )  # fmt: skip
    varies = calibrated.std() > 0 and value.std() > 0
    return CalibrationRow(
        place=place,
        judge=verdicts.judge,
        verdict=audit.verdict,
        error=audit.error.value,
        low=audit.error.low,
        high=audit.error.high,
        margin=margin,
        raw_error=float((value - verdicts.of_people(people)[known]).mean()),
        correlation=float(np.corrcoef(value, calibrated)[0, 1]) if varies else math.nan,
        n_dialogues=audit.error.n_dialogues,
        n_ratings=int(value.size),
        confidence=confidence,
        reason=audit.error.reason,
        notes=audit.error.notes,
    )


def _describe(row: CalibrationRow) -> str:
    where = "on dialogues it was not fitted to" if row.place == "here" else "in the other place"
    if row.reason:
        return f"{row.verdict}: nothing is known of {row.judge} {where} ({row.reason})"
    ends = f"[{show_signed(row.low)}, {show_signed(row.high)}]"
    error = f"people minus {row.judge} is {show_signed(row.error)} {ends} {where}"
    meaning = {
        "PASS": f"within ±{row.margin:g} on average, so means of its calibrated scores may be used",
        "FAIL": f"more than ±{row.margin:g}: its scores must not be used here",
        "INCONCLUSIVE": f"too few ratings to say whether it is within ±{row.margin:g}",
    }[row.verdict]
    single = f"its correlation with single ratings is {row.correlation:.2f}"
    if math.isnan(row.correlation):
        single = "of single ratings it says nothing, as one side does not vary"
    if row.place == "here":
        single += " (look at this, too: calibration makes the mean error small for any judge)"
    return f"{row.verdict}: {error}, {meaning}; {single}"


def _corrected(
    people: People,
    verdicts: Verdicts,
    scores: np.ndarray,
    known: np.ndarray,
    calibrated: np.ndarray,
    threshold: float,
    confidence: float,
) -> str:
    """The share of all judged outputs that people would call good, by output means."""
    units = people.judged.unit[known]
    _, first, at = np.unique(units, return_index=True, return_inverse=True)
    is_good = np.bincount(at, people.judged.score[known]) / np.bincount(at) >= threshold
    said_good = calibrated[first] >= threshold
    if is_good.all() or not is_good.any():
        raise DataError(f"threshold: people put all outputs on one side of {threshold:g}")
    everything = np.array(list(verdicts.scores.values()))
    all_good = fit_isotonic(scores[known], people.judged.score[known])(everything) >= threshold
    corrected = rogan_gladen(
        positive=int(all_good.sum()), n=all_good.size,
        true_positive=int((is_good & said_good).sum()), n_good=int(is_good.sum()),
        true_negative=int((~is_good & ~said_good).sum()), n_bad=int((~is_good).sum()),
        confidence=confidence,
    )  # fmt: skip
    if corrected.reason:
        return f"share of outputs rated {threshold:g} or more: not corrected ({corrected.reason})"
    ends = show_interval(corrected.interval.low, corrected.interval.high)
    return (
        f"{corrected.observed:.0%} of {all_good.size:,} outputs reach {threshold:g} by {verdicts.judge}; "
        f"corrected for its errors (sensitivity {corrected.sensitivity:.2f}, specificity "
        f"{corrected.specificity:.2f}) it is {corrected.value:.2f} {ends}, outputs taken for independent"
    )
