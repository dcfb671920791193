"""The method `palaver` trained anew without what it is measured on: a system, or everything of a source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.method import (
    MethodSettings,
    draw_folds,
    fit_model,
    held_out_scores,
    held_out_together,
)
from palaver.comparator.rater_effects import effects, reliability, sittings
from palaver.comparator.representation import Representation, represent
from palaver.comparator.scorecard import UNSEEN_SOURCE, UNSEEN_SYSTEMS
from palaver.comparator.scorer import JoinedScorer, PalaverScorer, Scorer
from palaver.comparator.training_data import RatedDialogues, dialogue_digest
from palaver.errors import UserError
from palaver.progress import Progress, no_progress
from palaver.readers.roles import is_silent, without_empty_turns

Floats = NDArray[np.float64]
_FEWEST = 20
QUICK = MethodSettings(heads=1, rounds=1)
"""A model for each system has to be fitted; heads on resampled raters serve the interval of a score."""


def left_out_scores(
    ratings: RatedDialogues,
    x: Representation,
    names: Sequence[str | None],
    unseen_x: Representation,
    unseen_names: Sequence[str | None],
    settings: MethodSettings | None = None,
    progress: Progress = no_progress,
) -> Floats:
    """(M,) the score of each unseen dialogue by a model that has learnt from no rating of the same name.

    `names` (N,) and `unseen_names` (M,) are systems or sources. The score is nan where a dialogue has no name
    or too few ratings are left.
    """
    scores = np.full(len(unseen_x), np.nan)
    of_rows = np.array([name or "" for name in names])
    of_unseen = np.array([name or "" for name in unseen_names])
    left_out = [name for name in dict.fromkeys(of_unseen.tolist()) if name]
    for number, name in enumerate(left_out):
        kept = np.flatnonzero(of_rows != name)
        if len(kept) >= _FEWEST:
            rows = np.flatnonzero(of_unseen == name)
            scores[rows] = fit_and_score(ratings.take(kept), x.take(kept), unseen_x.take(rows), settings)
        progress(f"without {name}", number + 1, len(left_out))
    return scores


def measure_unseen(
    scorer: Scorer,
    dialogues: RatedDialogues,
    *,
    trained_on: RatedDialogues | None = None,
    other_source: RatedDialogues | None = None,
    progress: Progress = no_progress,
) -> dict[str, Floats]:
    """Column of a scorecard -> the scores of `dialogues` by models that have not seen their system or source.

    `trained_on` are the ratings it was trained on, `other_source` are ratings of other dialogues.
    """
    if trained_on is None and other_source is None:
        return {}
    raters = scorer.raters if isinstance(scorer, JoinedScorer) else scorer
    if not isinstance(raters, PalaverScorer):
        raise UserError(
            f"{scorer.name} cannot be trained anew here: it is not of the method palaver",
            "leave out --trained-on and --other-source",
        )
    spoken = [without_empty_turns(dialogue) for dialogue in dialogues.dialogues]
    keep = np.array([not is_silent(one) for one in spoken])
    unseen_x = represent([one for one, kept in zip(spoken, keep, strict=True) if kept], raters.encode)
    systems = [row.system for row, kept in zip(dialogues.rows, keep, strict=True) if kept]
    columns: dict[str, Floats] = {}
    if trained_on is not None:
        x = represent(trained_on.dialogues, raters.encode, progress=progress)
        names = [row.system for row in trained_on.rows]
        columns[UNSEEN_SYSTEMS] = left_out_scores(trained_on, x, names, unseen_x, systems, progress=progress)
    if other_source is not None:
        measured = set(dialogues.dialogue_digests)
        n_measured = sum(dialogue_digest(one) in measured for one in other_source.dialogues)
        if n_measured:
            raise UserError(
                f"{n_measured:,} of the {len(other_source):,} dialogues from elsewhere are measured, too",
                "--other-source takes ratings of other dialogues",
            )
        x = represent(other_source.dialogues, raters.encode, progress=progress)
        columns[UNSEEN_SOURCE] = fit_and_score(other_source, x, unseen_x)
    for column, scores in columns.items():
        every = np.full(len(dialogues), np.nan)
        every[keep] = scores
        columns[column] = every
    return columns


def fit_and_score(
    ratings: RatedDialogues,
    x: Representation,
    unseen_x: Representation,
    settings: MethodSettings | None = None,
) -> Floats:
    """(M,) the scores of `unseen_x` by a model of these ratings."""
    s = settings or QUICK
    group, _ = held_out_together(ratings)
    rater = ratings.codes("rater")
    sitting = sittings(rater, ratings.codes("group"))
    target, fold = effects(ratings.values, sitting).target, draw_folds(group, s.folds, s.seed)
    linear = MethodSettings(heads=1, trees=0, seed=s.seed)
    weights = np.ones(len(ratings))
    for _ in range(s.rounds):
        held = held_out_scores(x, target, weights, group, fold, linear)
        weights = reliability(ratings.values, held, rater, sitting).weights(rater)
    model = fit_model(x, target, weights, group, s)
    scores: Floats = model.raw(unseen_x).mean(0)
    return scores
