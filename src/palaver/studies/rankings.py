"""Which system is ahead, criterion by criterion: paired bootstrap, TrueSkill and Bradley–Terry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from palaver.statistics.bootstrap import Resampling
from palaver.statistics.bradley_terry import bradley_terry_bootstrap
from palaver.statistics.ranking import (
    Comparisons,
    Ranking,
    WinMatrix,
    as_comparisons,
    comparisons_from_scores,
    format_groups,
    paired_bootstrap,
    win_matrix,
)
from palaver.statistics.trueskill import TrueSkillSettings, trueskill_groups
from palaver.studies.judgements import Codes, Floats, Ints, Judgements
from palaver.studies.results import RankingRow, SystemScore

STATIC = TrueSkillSettings(tau=0.0, draw_probability="observed")
"""Systems do not learn from being rated, so skills have no drift; draws are as frequent as in the data."""
_UNSURE = "the interval cannot show how sure this is"
_ONE_ITEM = "one item only, so there is no interval"
_ONE_CONTEXT = "all items have the same context: there is nothing to resample"
_NO_WIDTH = 1e-9
"""Means on items closer than this part of the largest are the same, but for rounding."""


def rank_systems(judged: Judgements, resampling: Resampling) -> Iterator[RankingRow]:
    """One row per method; for boxes one bootstrap row per box that reports something."""
    is_one_context = len(judged.items) > 1 and np.unique(judged.dialogue).size == 1
    for row in _rankings(judged, resampling):
        if is_one_context:
            scores = tuple(replace(score, reason=_ONE_CONTEXT) for score in row.scores)
            row = replace(row, reason=_ONE_CONTEXT, scores=scores)
        yield row


def _rankings(judged: Judgements, resampling: Resampling) -> Iterator[RankingRow]:
    if judged.treatment.kind == "boxes":
        for option in judged.treatment.options:
            if option not in judged.treatment.exclusive:
                clean = (~judged.ticked(option)).astype(np.float64)
                name = f"{judged.criterion}: {option}"
                yield _bootstrap_row(judged, clean, name, f"share of ratings without “{option}”", resampling)
        return
    if judged.treatment.kind == "pair":
        yield _bootstrap_row(judged, judged.value, judged.criterion, "win rate (ties count half)", resampling)
        compared, item = compare_pairs(judged)
    else:
        yield _bootstrap_row(judged, judged.score, judged.criterion, unit_of(judged), resampling)
        compared, item = compare_within_screens(judged)
    dialogue = _dialogue_of_item(judged)[item]
    yield _trueskill_row(judged, compared, dialogue, resampling)
    yield _bradley_terry_row(judged, compared, dialogue, resampling)


def compare_within_screens(judged: Judgements) -> tuple[Comparisons, Codes]:
    """Every two systems that one rater judged on one item, and the item of each such comparison.

    Screens come in the order of their names, as TrueSkill's updates depend a little on the order.
    """
    n_systems, n_raters = len(judged.systems), len(judged.raters)
    key = judged.item.astype(np.int64)
    key *= n_raters
    key += judged.rater
    key *= n_systems
    key += judged.system
    order = np.argsort(key, kind="stable")
    screen = key[order] // n_systems
    del key
    same = screen[1:] == screen[:-1]
    if np.isfinite(judged.score).all():  # a screen of one output has nothing to compare
        several = np.append(same, False) | np.append(False, same)
        order, screen = order[several], screen[several]
        same = screen[1:] == screen[:-1]
    number = np.cumsum(np.append(False, ~same)[: screen.size], dtype=np.int32)
    compared = comparisons_from_scores(number, judged.system[order], judged.score[order])
    if judged.treatment.scale is not None and judged.treatment.scale.ties_are_unsaid:
        said = compared.outcome != 0
        compared = replace(
            compared,
            first=compared.first[said],
            second=compared.second[said],
            outcome=compared.outcome[said],
            screen=compared.screen[said],
        )
    item_of_screen = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int32)
    item_of_screen[number] = screen // n_raters
    return compared, item_of_screen[compared.screen]


def compare_pairs(judged: Judgements) -> tuple[Comparisons, Codes]:
    """The comparisons of a pairwise criterion, each a screen of its own, and the item of each."""
    order = np.lexsort((judged.unit, judged.rater, judged.item))
    outcome = np.sign(judged.value[order] - 0.5).astype(np.int8)
    return as_comparisons(judged.system[order], judged.against[order], outcome), judged.item[order]


def unit_of(judged: Judgements) -> str:
    """What a score of this criterion is, for axes and tables."""
    scale = judged.treatment.scale
    return {
        "raw": "mean rating" if scale is None else scale.unit,
        "log": "mean log rating",
        "z": "mean z-score within raters",
        "log-z": "mean z-score of log ratings within raters",
        "ratio": f"mean ratio to the reference ({judged.treatment.reference:g})",
    }[judged.normalisation]


def item_means(score: Floats, item: Codes, system: Codes, n_items: int, n_systems: int) -> Floats:
    """Mean score of each system on each item (items x systems), nan where there is none."""
    known = ~np.isnan(score)
    cell = item.astype(np.int64)
    cell *= n_systems
    cell += system
    if not known.all():
        cell, score = cell[known], score[known]
    count = np.bincount(cell, minlength=n_items * n_systems)
    total = np.bincount(cell, weights=score, minlength=n_items * n_systems)
    means = np.full(n_items * n_systems, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means.reshape(n_items, n_systems)


def _bootstrap_row(
    judged: Judgements, score: Floats, criterion: str, unit: str, resampling: Resampling
) -> RankingRow:
    item, system = judged.item, judged.system
    if judged.treatment.kind == "pair":  # both sides of a comparison have a score
        item, system = np.r_[item, item], np.r_[system, judged.against]
        score = np.r_[score, 1 - score]
    table = item_means(score, item, system, len(judged.items), len(judged.systems))
    dialogue = _dialogue_of_item(judged)
    result = paired_bootstrap(
        table,
        judged.systems,
        by=dialogue,
        n_replicates=resampling.n_replicates,
        confidence=resampling.confidence,
        rng=resampling.rng,
    )
    known = np.isfinite(score)
    counts = np.bincount(system if known.all() else system[known], minlength=len(judged.systems))
    pair = judged.treatment.kind == "pair"
    reasons = [
        _reason_of_mean(table[:, i], dialogue, score[system == i], pair) for i in range(len(judged.systems))
    ]
    return _row(criterion, "bootstrap", unit, result, result.means, counts, reasons)


def _dialogue_of_item(judged: Judgements) -> Ints:
    """Items of one dialogue are drawn together."""
    dialogue = np.arange(len(judged.items)) + int(judged.dialogue.max(initial=-1)) + 1  # of nobody's item
    dialogue[judged.item] = judged.dialogue
    return dialogue


def _reason_of_mean(item_means: Floats, dialogue: Ints, scores: Floats, pair: bool) -> str:
    """Why the interval of a system's mean is missing or has no width; empty where items differ."""
    known = np.isfinite(item_means)
    means = item_means[known]
    if means.size == 0:
        return ""
    if means.size == 1:
        return _ONE_ITEM
    if np.unique(dialogue[known]).size == 1:
        return "all its items have the same context, so there is no interval"
    if np.ptp(means) > _NO_WIDTH * max(1.0, float(np.abs(means).max())):
        return ""
    scores = scores[np.isfinite(scores)]
    if (scores != scores[0]).any():
        return f"the same mean on every item: {_UNSURE}"
    if not pair:
        return f"always rated alike ({scores.size:,} ratings): {_UNSURE}"
    end = {1.0: "won", 0.0: "lost"}.get(float(scores[0]), "drew")
    return f"{end} all {scores.size:,} comparisons: {_UNSURE}"


def _reasons_of_games(matrix: WinMatrix) -> list[str]:
    """For each system whether its comparisons ended so alike that resampling them changes nothing."""
    won, lost, drawn = matrix.wins > 0, matrix.wins.T > 0, matrix.ties > 0
    reasons = []
    for i, n in enumerate(matrix.games):
        reason = ""
        if n and (won[i].astype(int) + lost[i] + drawn[i] <= 1).all():
            ends = [end for end, seen in (("won", won), ("lost", lost), ("drew", drawn)) if seen[i].any()]
            if len(ends) == 1:
                reason = f"{ends[0]} all {n:,.0f} comparisons: {_UNSURE}"
            else:
                reason = f"all comparisons with one and the same system ended alike: {_UNSURE}"
        reasons.append(reason)
    return reasons


def _trueskill_row(
    judged: Judgements, compared: Comparisons, dialogue: Ints, resampling: Resampling
) -> RankingRow:
    result = trueskill_groups(
        compared,
        judged.systems,
        by=dialogue,
        n_replicates=resampling.n_replicates,
        confidence=resampling.confidence,
        settings=STATIC,
        rng=resampling.rng,
    )
    matrix = win_matrix(compared, len(judged.systems))
    games, reasons = matrix.games.astype(np.int64), _reasons_of_games(matrix)
    row = _row(judged.criterion, "trueskill", "TrueSkill mean (prior 25)", result, result.mu, games, reasons)
    draws = f"{result.n_comparisons:,} comparisons, {result.draw_probability:.0%} draws"
    return replace(row, notes=(draws, *row.notes))


def _bradley_terry_row(
    judged: Judgements, compared: Comparisons, dialogue: Ints, resampling: Resampling
) -> RankingRow:
    result = bradley_terry_bootstrap(
        compared,
        judged.systems,
        by=dialogue,
        n_replicates=resampling.n_replicates,
        confidence=resampling.confidence,
        rng=resampling.rng,
    )
    matrix = win_matrix(compared, len(judged.systems))
    games, reasons = matrix.games.astype(np.int64), _reasons_of_games(matrix)
    strength = result.estimate.strength
    return _row(judged.criterion, "bradley-terry", "log strength", result, strength, games, reasons)


def _reason_of_width(result: Ranking, i: int) -> str:
    """What else may have left a system without an interval, or with one that has no width."""
    low, high = result.intervals[i].low, result.intervals[i].high
    if result.n_items < 2:
        return _ONE_ITEM
    if np.isnan(low) and result.intervals[i].n_undefined < result.n_replicates:
        share = result.intervals[i].n_undefined / result.n_replicates
        return f"no bound in {share:.0%} of the draws of items: too few decided otherwise for an interval"
    if result.n_replicates > 1 and high - low <= _NO_WIDTH * max(1.0, abs(high)):
        return f"all items say the same: {_UNSURE}"
    return ""


def _row(
    criterion: str,
    method: str,
    unit: str,
    result: Ranking,
    score: Floats,
    counts: Ints,
    reasons: Sequence[str],
) -> RankingRow:
    """What the three methods have in common; `counts` is what each system's score rests on."""
    systems, reason = result.systems, result.reason
    if method != "bootstrap" and not counts.any():
        reason = "no rater judged two systems on the same item, so nothing is compared"
    order = [systems.index(name) for group in result.groups for name in group.systems]
    return RankingRow(
        criterion=criterion,
        method=method,
        confidence=result.confidence,
        groups=tuple(group.systems for group in result.groups) if not reason else (),
        label=format_groups(result.groups) if not reason else "",
        unit=unit,
        scores=tuple(
            SystemScore(
                system=systems[i],
                score=float(score[i]),
                low=result.intervals[i].low,
                high=result.intervals[i].high,
                n=int(counts[i]),
                reason=reasons[i] or _reason_of_width(result, i),
            )
            for i in order
        ),
        better=tuple(tuple(float(result.wins[i, j]) for j in order) for i in order),
        n_items=result.n_items,
        n_replicates=result.n_replicates,
        reason=reason,
        notes=result.notes,
    )
