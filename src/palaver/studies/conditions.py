"""Questions that are asked only if another was answered so: on a screen, and in a table of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from palaver.readers.ratings import ORDER
from palaver.schema import Question, Study
from palaver.studies.results import ConditionRow
from palaver.studies.turns import judged_turns

About = tuple[str, str, int | None]
"""What an answer of a screen is about: criterion, system, and the turn, where it is about one."""


def is_asked(
    question: Question,
    system: str,
    turn: int | None,
    values: Mapping[About, str],
    questions: Sequence[Question],
) -> bool:
    """Whether a screen asks this question, by what is answered so far."""
    condition = question.shown_if
    if condition is None:
        return True
    host = next(q for q in questions if q.criterion == condition.criterion)
    its_turn = turn if host.per == "turn" else None
    return is_asked(host, system, its_turn, values, questions) and condition.holds(
        values.get((host.criterion, system, its_turn)), host.scale
    )


def without_unasked(frame: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Answers to all questions, without those that the others hide."""
    if all(question.shown_if is None for question in study.questions):
        return frame
    questions = {q.criterion: q for q in study.questions}
    turns = frame["turn"] if "turn" in frame.columns else pl.repeat(None, frame.height, eager=True)
    names = frame.select("item", "rater", "criterion", "system", "value").with_columns(turns.alias("turn"))
    values: dict[tuple[str, str], dict[About, str]] = {}
    for item, rater, criterion, system, value, turn in names.iter_rows():
        values.setdefault((item, rater), {})[criterion, system, turn] = value
    kept = [
        is_asked(questions[criterion], system, turn, values[item, rater], study.questions)
        for item, rater, criterion, system, _, turn in names.iter_rows()
    ]
    return frame.filter(pl.Series(kept, dtype=pl.Boolean))


# --- in a table of ratings ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditions:
    """A table without answers to questions that were not asked, and how often each was."""

    table: pl.DataFrame
    rows: tuple[ConditionRow, ...] = ()
    n_dropped: int = 0
    notes: tuple[str, ...] = ()


def apply_conditions(table: pl.DataFrame, study: Study | None) -> Conditions:
    """Leave out answers that a later answer to another question hides, and count who was asked.

    The columns are those of `palaver.readers.ratings`, criteria under their names in the files.
    """
    conditional = [q for q in study.questions if q.shown_if is not None] if study else []
    if study is None or not conditional:
        return Conditions(table)
    questions = {q.criterion: q for q in study.questions}
    met = set(table["criterion"].unique().cast(pl.String))
    outputs = {(item.id, output.system): output for item in study.items for output in item.outputs}
    screens = _screens(table, _involved(conditional, questions))
    rows, notes, hidden = [], [], []
    for question in conditional:
        root = _root(question, questions)
        if root.criterion not in met:
            notes.append(
                f"{question.criterion}: the ratings do not say whether it was asked ({root.criterion})"
            )
            continue
        n_asked = n_answered = n_not_asked = 0
        for (_, item, _, _), answers in screens.items():
            values = {about: value for about, (value, _) in answers.items()}
            systems = {system for criterion, system, _ in answers if criterion == root.criterion}
            for system in systems:
                output = outputs.get((item, system))
                for turn in judged_turns(question, output) if output is not None else (None,):
                    about = (question.criterion, system, turn)
                    if is_asked(question, system, turn, values, study.questions):
                        n_asked += 1
                        n_answered += about in answers
                    else:
                        n_not_asked += 1
                        hidden += [answers[about][1]] if about in answers else []
        rows.append(
            ConditionRow(
                criterion=question.criterion,
                shown_if=question.shown_if.describe() if question.shown_if else "",
                n_asked=n_asked,
                n_answered=n_answered,
                n_missing=n_asked - n_answered,
                n_not_asked=n_not_asked,
            )
        )
    if hidden:
        table = table.filter(~pl.col(ORDER).is_in(hidden))
    return Conditions(table, tuple(rows), len(hidden), tuple(notes))


def _root(question: Question, questions: Mapping[str, Question]) -> Question:
    """The unconditional question at the beginning of a chain of conditions."""
    while question.shown_if is not None:
        question = questions[question.shown_if.criterion]
    return question


def _involved(conditional: Sequence[Question], questions: Mapping[str, Question]) -> set[str]:
    """The criteria that conditions are about, and those that have one."""
    names: set[str] = set()
    for question in conditional:
        names.add(question.criterion)
        while question.shown_if is not None:
            question = questions[question.shown_if.criterion]
            names.add(question.criterion)
    return names


_Screen = tuple[str, str, str, str | None]
"""Kind of rater, item, rater, repeat."""


def _screens(table: pl.DataFrame, criteria: set[str]) -> dict[_Screen, dict[About, tuple[str, int]]]:
    """What each rater answered about each item, with the place of each answer in the table."""
    screens: dict[_Screen, dict[About, tuple[str, int]]] = {}
    text = pl.coalesce(
        pl.col("text").cast(pl.String).str.replace_all("\n", "|"), pl.col("value").cast(pl.String)
    )
    names = pl.col("kind", "item", "rater", "repeat", "criterion", "system").cast(pl.String)
    wanted = table.filter(pl.col("criterion").cast(pl.String).is_in(list(criteria)))
    for row in wanted.select(names, "turn", text.alias("given"), ORDER).iter_rows():
        kind, item, rater, repeat, criterion, system, turn, given, order = row
        screens.setdefault((kind, item, rater, repeat), {})[criterion, system, turn] = (given, order)
    return screens
