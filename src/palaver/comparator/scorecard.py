"""How far a comparator can be believed on compared pairs, beside what simpler things reach on the same pairs.

Baselines: which system it is (strengths learnt from other raters' pairs), who says more, and one linear model
of surface features, learnt from other raters' pairs. Columns: all pairs; pairs of one system, where its name
says nothing; pairs within a tier of systems; and dialogues scored by a model that has never seen their system
or anything of their source. A comparator that comes trained has to be trained anew for the last two: their
scores are passed in (`left_out_scores`).

A comparator of two parts gets a row in which their weights are chosen anew on half of the raters and measured
on the others (nested selection), and a row for each part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.evaluation import (
    FEWEST_GROUPS,
    Calibration,
    PairResult,
    calibration,
    connected,
    evaluate_differences,
)
from palaver.comparator.method import log_odds_unit
from palaver.comparator.scorer import RATER_MODEL, JoinedScorer, Scorer
from palaver.comparator.surface import read_turn, surface_features
from palaver.comparator.training_data import USER, Pairs, RatedDialogues, dialogue_digest
from palaver.errors import DataError, UserError, nearest, require
from palaver.progress import Progress, no_progress
from palaver.readers.roles import without_empty_turns
from palaver.schema import Dialogue
from palaver.tabular import Tabular, show_number
from palaver.text.normalisation import normalise

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FOLDS = 10
_FREE = 100.0
"""Inverse of the ridge on two weights: none to speak of."""
_STRENGTH = 1.0
"""Inverse of the ridge on the systems' strengths."""
_SURFACE = 0.01
"""Inverse of the ridge on the surface model's standardised features; fixed, not chosen on any pairs."""
UNSEEN_SYSTEMS, UNSEEN_SOURCE = "unseen systems", "unseen source"
COLUMNS = ("all pairs", "within a system", "within a tier", UNSEEN_SYSTEMS, UNSEEN_SOURCE)
BY_SYSTEM, BY_SURFACE, BY_LENGTH = BASELINES = ("which system it is", "surface model", "longer wins")
NESTED = "its weights chosen on other raters"
_FEWEST_RATERS = 4
"""With fewer there are no halves to choose on."""


@dataclass(frozen=True)
class ScorecardRow:
    """One method: its result in each column, or the reason why there is none."""

    method: str
    results: dict[str, PairResult]
    reasons: dict[str, str]


@dataclass(frozen=True, repr=False)
class Scorecard(Tabular):
    """A comparator, first, and baselines on the same pairs. Tables: accuracy, calibration."""

    comparator: str
    signature: str
    rows: tuple[ScorecardRow, ...]
    calibration: Calibration
    nested_calibration: Calibration | None
    """With the unit of the scores chosen on half of the raters and measured on the others."""
    n_pairs: int
    n_raters: int
    """0 where raters are not known."""
    systems: tuple[str, ...]
    left_out: dict[str, int]
    notes: tuple[str, ...]

    def _headline(self) -> str:
        accuracy = self.rows[0].results[COLUMNS[0]].accuracy
        return f"{self.comparator} agrees with {show_number(accuracy)} of {self.n_pairs:,} comparisons"

    def _tables(self) -> dict[str, Any]:
        cells = [(row.method, column, row.results.get(column)) for row in self.rows for column in COLUMNS]
        table: dict[str, Any] = {
            "method": [method for method, _, _ in cells],
            "pairs": [column for _, column, _ in cells],
        }
        for name in ("accuracy", "low", "high", "kappa", "kappa_se"):
            table[name] = [math.nan if result is None else getattr(result, name) for _, _, result in cells]
        for name in ("n", "n_ties"):
            table[name] = [0 if result is None else getattr(result, name) for _, _, result in cells]
        bins = [bin for bin in self.calibration.bins if bin.n]
        names = ("low", "high", "probability", "rate", "n")
        return {
            "accuracy": table,
            "calibration": {name: [getattr(bin, name) for bin in bins] for name in names},
        }


def evaluate_comparator(
    scorer: Scorer,
    dialogues: RatedDialogues,
    pairs: Pairs,
    *,
    tiers: Sequence[Sequence[str]] = (),
    unseen: Mapping[str, Floats] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Scorecard:
    """Measure a comparator on compared pairs of dialogues. `tiers` are groups of systems of like quality.

    `unseen` are, by column, the scores (N,) of its rater model trained without the system or the source of
    each dialogue; nan where there are none.
    """
    require("sklearn", "models")
    raters = _raters(dialogues, pairs)
    notes = []
    if raters is None:
        groups = connected(pairs)
        notes.append(
            "not every pair has a rater: intervals resample groups of pairs that share dialogues, and "
            "baselines may learn from raters that they are measured on"
        )
    else:
        groups = raters
    system = dialogues.codes("system")
    first, second = system[pairs.first], system[pairs.second]
    known = (first >= 0) & (second >= 0)
    names = tuple(dict.fromkeys(row.system for row in dialogues.rows if row.system is not None))
    tier = _tiers(tiers, names)
    masks = {
        "all pairs": np.ones(len(pairs), bool),
        "within a system": known & (first == second),
        "within a tier": known & (tier[first] >= 0) & (tier[first] == tier[second]),
    }
    why_empty = {
        "within a system": "no pair is of one system",
        "within a tier": "no pair is within a tier" if tiers else "no tiers were named",
    }
    this = f"comparator {scorer.name}"
    differences = _differences_of(scorer, this, dialogues, pairs, progress)
    halves = _halves(groups, seed)
    if halves is not None and len(differences) > 1:
        of_parts = np.stack(list(differences.values())[1:], 1)  # (P, 2)
        differences[NESTED] = _held_out(of_parts, pairs.label, halves, _FREE)
    surface = _surface(dialogues)
    by_surface = surface[pairs.first] - surface[pairs.second]
    by_system = np.zeros((len(pairs), len(names)))
    rows = np.flatnonzero(known)
    by_system[rows, first[rows]] += 1
    by_system[rows, second[rows]] -= 1
    folds = _folds(groups, seed)
    if folds is None:
        why = "all pairs share dialogues" if raters is None else "all pairs are of one rater"
        notes.append(f"{why}: no baseline can be learnt on some of them and measured on others")
    else:
        if len(names) > 1:
            differences[BY_SYSTEM] = _held_out(by_system, pairs.label, folds, _STRENGTH)
        differences[BY_SURFACE] = _held_out(by_surface, pairs.label, folds, _SURFACE)
    length = np.array([_length(row) for row in dialogues.dialogues])
    differences[BY_LENGTH] = length[pairs.first] - length[pairs.second]
    of_unseen = {
        (BY_SURFACE, UNSEEN_SYSTEMS): _unseen_systems(by_surface, pairs.label, first, second, known),
        (BY_LENGTH, UNSEEN_SYSTEMS): np.where(known, differences[BY_LENGTH], math.nan),
        (BY_LENGTH, UNSEEN_SOURCE): differences[BY_LENGTH],
    }
    trained_anew = RATER_MODEL if isinstance(scorer, JoinedScorer) else this
    for column, scores in (unseen or {}).items():
        of_unseen[trained_anew, column] = scores[pairs.first] - scores[pairs.second]
    card = []
    for method, difference in differences.items():
        results, reasons = {}, {}
        for column, mask in masks.items():
            if mask.any():
                results[column] = evaluate_differences(difference[mask], pairs.label[mask], groups[mask])
            else:
                reasons[column] = why_empty[column]
        for column in (UNSEEN_SYSTEMS, UNSEEN_SOURCE):
            said = of_unseen.get((method, column), np.full(len(pairs), math.nan))
            measured = np.isfinite(said)
            if measured.any():
                results[column] = evaluate_differences(
                    said[measured], pairs.label[measured], groups[measured]
                )
            else:
                reasons[column] = _why_unmeasured(method, column)
        card.append(ScorecardRow(method, results, reasons))
    notes += _few_groups(card[0].results, "groups of pairs" if raters is None else "raters")
    notes += _doubts(scorer, [dialogues.dialogues[i] for i in pairs.used])
    difference = differences[this]
    return Scorecard(
        comparator=scorer.name,
        signature=scorer.signature,
        rows=tuple(card),
        calibration=calibration(1 / (1 + np.exp(-difference)), pairs.label),
        nested_calibration=None if halves is None else _calibrate_nested(difference, pairs.label, halves),
        n_pairs=len(pairs),
        n_raters=0 if raters is None else len(np.unique(raters)),
        systems=names,
        left_out=dict(pairs.dropped),
        notes=tuple(notes),
    )


def _few_groups(results: Mapping[str, PairResult], groups: str) -> list[str]:
    """A note where too few raters compared for an interval that resamples them."""
    columns = [name for name, result in results.items() if result.n_groups < min(FEWEST_GROUPS, result.n)]
    if not columns:
        return []
    return [
        f"fewer than {FEWEST_GROUPS} {groups} ({', '.join(columns)}): the intervals there take every "
        "comparison as independent of the others, and are too narrow"
    ]


def _doubts(scorer: Scorer, dialogues: Sequence[Dialogue]) -> list[str]:
    """Notes on dialogues that the comparator has learnt from, and on those that it cannot read."""
    n_seen = sum(dialogue_digest(one) in scorer.trained_on for one in dialogues)
    notes = []
    if n_seen:
        learnt = f"it was trained on {n_seen:,} of the {len(dialogues):,} dialogues compared"
        notes.append(f"{learnt}: on others it agrees less")
    counts = Counter(doubt for one in dialogues for doubt in scorer.doubts(one))
    return [*notes, *(f"{doubt} ({n:,})" for doubt, n in counts.items())]


def _differences_of(
    scorer: Scorer, name: str, dialogues: RatedDialogues, pairs: Pairs, progress: Progress
) -> dict[str, Floats]:
    """(P,) how much better it scores the first of each pair; then the same of its parts, if it has any."""
    used = pairs.used
    some = [dialogues.dialogues[i] for i in used]
    columns = {name: scorer.score(some, progress=progress).score}
    if isinstance(scorer, JoinedScorer):
        columns |= scorer.scores_of_parts(some)
    differences = {}
    for column, scores in columns.items():
        every = np.full(len(dialogues), np.nan)
        every[used] = scores
        differences[column] = every[pairs.first] - every[pairs.second]
        if not np.isfinite(differences[column]).all():
            raise DataError(f"{column} gave scores that are not numbers")
    return differences


def _why_unmeasured(method: str, column: str) -> str:
    if method == BY_SYSTEM:
        return "it knows nothing of a system that it has not seen"
    if method == BY_SURFACE:
        if column == UNSEEN_SOURCE:
            return "it is learnt from these pairs"
        return "there are too few systems"
    if method == BY_LENGTH:
        return "there are too few systems"
    if column == UNSEEN_SOURCE:
        return "it would have to be trained anew on ratings from elsewhere: name them with --other-source"
    return "it would have to be trained anew without them: name its ratings with --trained-on"


def _halves(groups: Ints, seed: int) -> Ints | None:
    """(P,) 0 or 1: the half that the rater of each pair is in; none where there are too few raters."""
    names, codes = np.unique(groups, return_inverse=True)
    if len(names) < _FEWEST_RATERS:
        return None
    half: Ints = (np.random.default_rng((seed, 2)).permutation(len(names)) % 2)[codes]
    return half


def _calibrate_nested(difference: Floats, label: NDArray[np.int8], halves: Ints) -> Calibration:
    probability = np.zeros(len(label))
    for half in (0, 1):
        other, own = halves != half, halves == half
        unit = log_odds_unit(difference[other], label[other].astype(np.float64))
        probability[own] = 1 / (1 + np.exp(-unit * difference[own]))
    return calibration(probability, label)


def _raters(dialogues: RatedDialogues, pairs: Pairs) -> Ints | None:
    """(P,) who compared: as the pair says, or who rated both dialogues; none where a pair has neither."""
    names: list[str | None] = list(pairs.raters) or [None] * len(pairs)
    for i, (a, b) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        rater = dialogues.rows[a].rater
        if names[i] is None and rater == dialogues.rows[b].rater:
            names[i] = rater
    if None in names:
        return None
    codes: Ints = np.unique([str(name) for name in names], return_inverse=True)[1].astype(np.int64)
    return codes


def _tiers(tiers: Sequence[Sequence[str]], systems: Sequence[str]) -> Ints:
    """(systems + 1,) the tier of each system; -1 where it has none, as in the last place."""
    place = {name: i for i, name in enumerate(systems)}
    tier = np.full(len(systems) + 1, -1, np.int64)
    for number, members in enumerate(tiers):
        for name in members:
            if name not in place:
                raise UserError(
                    f"in a tier: there is no system {name!r}{nearest(name, list(systems))}",
                    f"the dialogues are of {', '.join(systems) or 'no named system'}",
                )
            if tier[place[name]] >= 0:
                raise UserError(f"{name!r} is in two tiers")
            tier[place[name]] = number
    return tier


def _surface(dialogues: RatedDialogues) -> Floats:
    """(N, F) surface features, standardised over the dialogues."""
    turns = [
        [
            read_turn(turn.speaker == USER, normalise(turn.text))
            for turn in without_empty_turns(dialogue).turns
        ]
        for dialogue in dialogues.dialogues
    ]
    features = surface_features(turns).astype(np.float64)
    spread = features.std(0)
    standardised: Floats = (features - features.mean(0)) / np.where(spread > 0, spread, 1)
    return standardised


def _length(dialogue: Any) -> float:
    return float(sum(len(turn.text) for turn in dialogue.turns if turn.speaker != USER))


def _folds(groups: Ints, seed: int) -> Ints | None:
    """(P,) the fold of each pair; pairs of one group are in one fold. None where there is one group only."""
    names, codes = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        return None
    order = np.random.default_rng(seed).permutation(len(names))
    folds: Ints = (order % min(_FOLDS, len(names)))[codes]
    return folds


def _held_out(x: Floats, label: NDArray[np.int8], folds: Ints, strength: float) -> Floats:
    """(P,) what a model says that has not seen the fold of the pair."""
    said = np.zeros(len(label))
    for fold in np.unique(folds):
        test = folds == fold
        said[test] = x[test] @ _weights(x[~test], label[~test], strength)
    return said


def _unseen_systems(
    x: Floats, label: NDArray[np.int8], first: Ints, second: Ints, known: NDArray[np.bool_]
) -> Floats:
    """(P,) what a model says that has seen no dialogue of the two systems; nan where no pair is left."""
    said = np.full(len(label), np.nan)
    low, high = np.minimum(first, second), np.maximum(first, second)
    for a, b in {(int(a), int(b)) for a, b in zip(low[known], high[known], strict=True)}:
        test = known & (low == a) & (high == b)
        train = known & ~np.isin(first, (a, b)) & ~np.isin(second, (a, b))
        if train.any():
            said[test] = x[test] @ _weights(x[train], label[train], _SURFACE)
    return said


def _weights(x: Floats, label: NDArray[np.int8], strength: float) -> Floats:
    """A logistic model without intercept: turned round, a pair gets the opposite answer."""
    both = np.vstack([x, -x])  # both ways round: one class alone cannot be learnt from
    sides = np.concatenate([label, -label])
    linear = require("sklearn.linear_model", "models")
    model = linear.LogisticRegression(C=strength, fit_intercept=False, max_iter=1000)
    weights: Floats = model.fit(both, sides).coef_[0]
    return weights
