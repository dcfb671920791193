"""An evaluation in the terminal: the answer, the plan before it, and how far a run is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from palaver.artefacts import lock_file
from palaver.evaluation.plan import Plan
from palaver.evaluation.results import ExperimentResult
from palaver.evaluation.store import Step
from palaver.evaluation.verdict_view import VerdictView
from palaver.reports import lines, numbers
from palaver.reports.names import clean

_STANCES = {"agrees": "agrees", "undecided": "undecided", "disagrees": "disagrees", "": ""}


def print_evaluation(evaluation: ExperimentResult, console: Console) -> None:
    """The answer first, then who says what."""
    lines.line(console, clean(evaluation.title), "bold")
    lines.line(console, clean(evaluation.answer), "bold green")
    for caveat in evaluation.caveats:
        lines.line(console, clean(caveat), "yellow")
    confidence = numbers.percent(evaluation.confidence)
    lines.heading(
        console, "Who says what", f"{confidence} intervals; systems of one place are not told apart"
    )
    table = lines.table(("judge", "place", "system", "beside the answer"), ("score", "interval"))
    for verdict in evaluation.verdicts:
        view = VerdictView(verdict)
        scores = verdict.ranking.scores if verdict.ranking and verdict.ranking.groups else ()
        for number, score in enumerate(scores):
            is_first = number == 0
            table.add_row(
                Text(clean(verdict.title) if is_first else ""),
                view.places.get(score.system, ""),
                Text(clean(score.system)),
                _STANCES[verdict.stance] if is_first else "",
                numbers.number(score.score, view.digits),
                view.interval(score),
            )
        for number, (system, mean) in enumerate(verdict.means or ((("", math.nan),) if not scores else ())):
            reason = Text(verdict.reason) if number == 0 else ""
            title = Text(clean(verdict.title)) if number == 0 else ""
            table.add_row(title, "", Text(clean(system) if system else ""), reason, numbers.number(mean), "")
    lines.print_table(console, table)
    if evaluation.agreement:
        lines.heading(console, "Judges beside people", "Spearman over single responses")
        table = lines.table(("people's criterion", "judge"), ("Spearman", "interval", "one person"))
        for row in evaluation.agreement:
            table.add_row(
                Text(clean(row.criterion)), Text(clean(row.judge)), numbers.number(row.spearman),
                numbers.interval(row.low, row.high) or numbers.DASH, numbers.number(row.one_person),
            )  # fmt: skip
        lines.print_table(console, table)
    for sentence in evaluation.worth[:4]:
        lines.indented(console, sentence, indent=0)
    lines.notes(console, evaluation.notes)
    lines.run_record(console, evaluation.run)


def print_plan(plan: Plan, console: Console) -> None:
    """The steps, what is there, what is to do, and what it may cost."""
    lines.heading(console, "Plan", plan._headline())
    table = lines.table(("step", "note"), ("cells", "there", "to do", "tokens", "cost"))
    for step in plan.steps:
        cost = numbers.number(step.cost) if step.cost is not None else ""
        counts = (numbers.count(step.total), numbers.count(step.there), numbers.count(step.to_do))
        tokens = numbers.count(round(step.tokens)) if step.tokens else ""
        table.add_row(Text(clean(step.name)), Text(step.note), *counts, tokens, cost)
    lines.print_table(console, table)


def print_steps(steps: Sequence[Step], console: Console) -> None:
    """How far each step of a run is."""
    table = lines.table(("step", "note"), ("done", "of", "left"))
    for step in steps:
        left = step.seconds_left
        table.add_row(
            Text(clean(step.name)), Text(step.error), numbers.count(step.done), numbers.count(step.total),
            numbers.seconds(left) if left is not None else "",
        )  # fmt: skip
    lines.print_table(console, table)


def is_running(folder: Path) -> bool:
    """Whether a process is working in the folder."""
    path = folder / ".lock"
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return not lock_file(file)
