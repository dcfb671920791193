"""What the comparator found: tables in the terminal, HTML pages of a training and of cleaned ratings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from palaver.comparator.cleaning import Cleaning
from palaver.comparator.cmade.removal import figure2, halves
from palaver.comparator.cmade.shapley import pair_values
from palaver.comparator.evaluation import Calibration, PairResult, calibration
from palaver.comparator.file_scores import Summary
from palaver.comparator.method import Fit
from palaver.files import write_atomically
from palaver.readers.dialogues import write_dialogues
from palaver.reports import lines, names, numbers, page
from palaver.reports.methods import methods_of
from palaver.schema import RunRecord
from palaver.schema.run import plain

if TYPE_CHECKING:  # what needs torch
    from palaver.comparator.cmade.pipeline import PipelineResult
    from palaver.comparator.training_data import RatedDialogues, TrainingData

_SHOWN = 12
STYLES = {"keep": "", "suspicious": "yellow", "drop": "red"}
_HOW_GOOD = "How good is the comparator?"
_MOST = 20_000
"""Ratings up to which Figure 2 is drawn: it takes seconds there."""


_LONGEST_TURN = 400
"""Characters of a turn in piped text: one of 100 kB would make every line of its table as long."""


def print_scores(summary: Summary, console: Console) -> None:
    """How many and how fast, and the worst dialogues with the turn that costs most."""
    lines.heading(console, "Worst dialogues", "a score of 0 is average; differences of scores are log-odds")
    named = any(row.system is not None for row in summary.lowest)
    heads = (
        ("dialogue", "system", "the turn that costs most")
        if named
        else ("dialogue", "the turn that costs most")
    )
    table = lines.table(heads, ("score", "95%"))
    for row in summary.lowest:
        worst = row.worst_turn
        width = 60 if console.is_terminal else _LONGEST_TURN
        said = f"{worst.turn}: {names.shorten(worst.text, width)}" if worst else numbers.DASH
        between = numbers.interval(row.low, row.high) or numbers.DASH
        system = [lines.name_cell(row.system or numbers.DASH)] if named else []
        table.add_row(lines.name_cell(row.id), *system, Text(said), numbers.number(row.score), between)
    lines.print_table(console, table)
    lines.left_out(console, list(summary.dropped.items()))
    rate = f"{summary.per_second:,.0f}" if summary.per_second >= 10 else f"{summary.per_second:.1f}"
    speed = f"{numbers.some(summary.n, 'dialogue')} in {numbers.seconds(summary.seconds)}: {rate} a second"
    spread = f"scores {numbers.number(summary.mean)} ± {numbers.number(summary.sd)}"
    console.print()
    lines.line(console, f"{speed}; {spread}", "dim")


def print_cleaned(cleaning: Cleaning, console: Console) -> None:
    """Verdicts, reasons, and the raters who are trusted least."""
    lines.heading(console, "Ratings", f"{len(cleaning.ratings):,} by {len(cleaning.raters):,} raters")
    table = lines.table(("verdict",), ("ratings", "share", "raters"))
    for verdict, n in cleaning.counts.items():
        raters = sum(rater.verdict == verdict for rater in cleaning.raters)
        cells = (numbers.count(n), numbers.percent(n / len(cleaning.ratings)), numbers.count(raters))
        table.add_row(Text(verdict, style=STYLES[verdict]), *cells)
    lines.print_table(console, table)
    if cleaning.reasons:
        lines.heading(console, "Reasons", "a rating may have several")
        for reason, n in cleaning.reasons.items():
            lines.indented(console, f"{numbers.count(n):>7}  {names.clean(reason)}")
    doubted = [rater for rater in cleaning.raters if rater.verdict != "keep"][:_SHOWN]
    if doubted:
        scale = "trust 1: as the common rater, 0: rates past the dialogues"
        lines.heading(console, "Least trusted raters", scale)
        table = lines.table(("rater", "verdict", "why"), ("ratings", "trust"))
        for rater in doubted:
            table.add_row(
                lines.name_cell(rater.rater),
                Text(rater.verdict, style=STYLES[rater.verdict]),
                Text("; ".join(rater.reasons)),
                numbers.count(rater.n),
                numbers.number(rater.trust),
            )
        lines.print_table(console, table)
    console.print()
    lines.line(console, _basis(cleaning), "yellow" if cleaning.knows_nothing else "dim")
    for note in cleaning.notes:
        lines.line(console, names.clean(note), "yellow")


def _basis(cleaning: Cleaning) -> str:
    """How much the model that judged knows of these ratings, and what follows where it knows nothing."""
    result = cleaning.agreement
    if result is None:
        return (
            "No two ratings could be compared, so nothing says whether the model that judged knows anything."
        )
    within = "within a sitting" if cleaning.raters else "of ratings"
    low, high = numbers.percent(result.low), numbers.percent(result.high)
    text = (
        f"Judged by a model that saw none of the rater’s own ratings: it agrees with "
        f"{numbers.percent(result.accuracy)} of {numbers.some(result.n, 'comparison')} {within} "
        f"(95%: {low} to {high}; a coin: 50%)."
    )
    if cleaning.knows_nothing:
        text += " It may be no better than a coin: drop nobody for disagreeing with it."
    return text


def write_cleaned(cleaning: Cleaning, rated: RatedDialogues, folder: Path, run: RunRecord) -> Path:
    """`ratings.jsonl` (every rating), `raters.jsonl`, `kept.jsonl` (the dialogues) and `report.html`."""
    for name, rows in (("ratings", cleaning.ratings), ("raters", cleaning.raters)):
        with write_atomically(folder / f"{name}.jsonl") as file:
            for row in rows:
                file.write(json.dumps(plain(row), ensure_ascii=False) + "\n")
    kept = [i for i, row in enumerate(cleaning.ratings) if row.verdict == "keep"]
    if kept:
        write_dialogues(rated.take(kept).labelled(), folder / "kept.jsonl")
    return page.write_page(clean_page(cleaning, run, notes_on(rated)), folder / "report.html")


def notes_on(rated: RatedDialogues) -> list[str]:
    """What was left out of rated dialogues and why, and what was changed, for a page."""
    left_out = [f"{numbers.some(n, 'dialogue')} left out: {reason}" for reason, n in rated.dropped.items()]
    return [*left_out, *rated.notes]


@dataclass(frozen=True)
class Grid:
    """A table: columns of words, then of numbers, then perhaps one of words that may be long."""

    caption: str
    words: Sequence[str]
    numbers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    last: str = ""


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    text: str = ""
    figures: Sequence[tuple[Markup, str]] = ()
    tables: Sequence[Grid] = ()


def clean_page(cleaning: Cleaning, run: RunRecord, notes: Sequence[str] = ()) -> str:
    """Which ratings can be kept, and why not. `notes` are about what was read."""
    from palaver.reports import compare_figures

    kept, dropped, doubtful = (numbers.count(cleaning.counts[k]) for k in ("keep", "drop", "suspicious"))
    whole = numbers.some(len(cleaning.ratings), "rating")
    lead = f"{kept} of {whole} can be kept; {dropped} should be dropped and {doubtful} looked at."
    if cleaning.knows_nothing:
        lead = f"{kept} of {whole} look sound, but the model that judged may be no better than a coin."
    figures = []
    if cleaning.raters:
        caption = (
            "Every mark is a rater, larger with more ratings. Trust joins how well their ratings go with "
            "those a model expects that saw none of them, and how far good and bad dialogues lie apart for "
            "them."
        )
        figures.append((Markup(compare_figures.rater_cloud(cleaning, "f1")), caption))
    doubted = [rater for rater in cleaning.raters if rater.verdict != "keep"]
    rows = [
        (
            page.name_mark(rater.rater), rater.verdict, numbers.count(rater.n), numbers.number(rater.trust),
            numbers.number(rater.correlation), numbers.number(rater.spread, 1), "; ".join(rater.reasons),
        )
        for rater in doubted
    ]  # fmt: skip
    reasons = [(reason, numbers.count(n)) for reason, n in cleaning.reasons.items()]
    sections = [Section("answer", "The answer", _basis(cleaning), figures)]
    if reasons:
        grid = Grid("A rating may have several.", ["Reason"], ["Ratings"], reasons)
        sections.append(Section("reasons", "Reasons", tables=[grid]))
    if rows:
        measures = ["Ratings", "Trust", "Correlation", "Spread"]
        grid = Grid("Raters to drop or to look at.", ["Rater", "Verdict"], measures, rows, "Why")
        text = (
            "Least trusted first; those who are kept are in raters.jsonl, every rating is in ratings.jsonl, "
            "the dialogues whose ratings are kept in kept.jsonl."
        )
        sections.append(Section("raters", "Raters", text, tables=[grid]))
    facts = (whole, numbers.some(len(cleaning.raters), "rater"))
    return compare_page(
        "Which ratings can be kept?", facts, lead, sections, [*notes, *cleaning.notes], ["trust"], run
    )


def method_page(fitted: Fit, run: RunRecord, notes: Sequence[str] = ()) -> str:
    """A training by the method `palaver`. `notes` are about what was read."""
    facts = (
        numbers.some(len(fitted.held_out), "rated dialogue"),
        numbers.some(len(fitted.reliability.raters), "rater"),
    )
    rows = [
        ("ratings of raters it had not seen, within a sitting", fitted.on_ratings),
        ("the same by a rule: the system that says more is better", fitted.longer_on_ratings),
        ("compared pairs, which fix the unit of the scores and no more", fitted.on_pairs),
    ]
    told = fitted.on_pairs or fitted.on_ratings
    sections = [Section("answer", "The answer", tables=[_agreement(rows)]), *_honesty(fitted.calibration)]
    return compare_page(
        _HOW_GOOD, facts, _lead(told), sections, [*notes, *fitted.notes], ["palaver", "agreement"], run
    )


def preset_page(result: PipelineResult, data: TrainingData, run: RunRecord) -> str:
    """A training by the paper's stages."""
    preset, pairs, scores = result.preset, data.pairs, result.dev_scores
    stages = [
        (
            stage.name.replace("+", ", then "),
            numbers.count(stage.about["n_train"]),
            numbers.count(stage.about.get("n_removed") or 0),
            numbers.seconds(stage.about["seconds"]),
            stage.about["device"],
        )
        for stage in result.stages
    ]
    rows = [("compared pairs", result.on_pairs), ("compared pairs, held out", result.on_test)]
    notes = list(result.notes)
    if preset.needs_pairs and result.on_pairs is not None:
        notes.append("The pairs were used in training: measure on others before you trust the accuracy.")
    grid = Grid("Stages.", ["Stage"], ["Dialogues", "Removed", "Time"], stages, "Machine")
    sections = [Section("answer", "The answer", tables=[_agreement(rows), grid])]
    if result.on_pairs is not None and pairs is not None and scores is not None:
        gap = (scores[pairs.first] - scores[pairs.second]).astype(np.float64)
        sections += _honesty(calibration(1 / (1 + np.exp(-gap)), pairs.label))
        if "values" in result.stages[-1].arrays and len(data.ratings) <= _MOST:
            sections += _removal(result, data)
    n = numbers.some(len(data.ratings), "rated dialogue")
    facts = (f"{preset.title}, row {preset.row} of Table 4", n)
    return compare_page(
        _HOW_GOOD, facts, _lead(result.on_pairs), sections, notes, ["stages", "agreement"], run
    )


def _lead(result: PairResult | None) -> str:
    if result is None:
        return "Nothing could be measured: there are no compared pairs, and no rater rated several dialogues."
    low, high = numbers.percent(result.low), numbers.percent(result.high)
    return (
        f"It agrees with {numbers.percent(result.accuracy)} of {numbers.some(result.n, 'comparison')} "
        f"(95%: {low} to {high})."
    )


def _agreement(rows: Sequence[tuple[str, PairResult | None]]) -> Grid:
    cells = [
        (
            name, numbers.number(r.accuracy, 3), numbers.interval(r.low, r.high, 3),
            numbers.number(r.kappa, 3), numbers.number(r.kappa_se, 3), numbers.count(r.n),
        )
        for name, r in rows
        if r is not None
    ]  # fmt: skip
    heads = ["Accuracy", "95% interval", "Cohen’s κ", "its error", "Pairs"]
    return Grid("Agreement with people.", ["Measured on"], heads, cells)


def _honesty(calibrated: Calibration | None) -> list[Section]:
    if calibrated is None:
        return []
    from palaver.reports import compare_figures

    text = (
        f"The expected calibration error is {numbers.number(calibrated.ece, 3)} on "
        f"{numbers.some(calibrated.n, 'pair')}: so far, on average, is the stated probability that one "
        "dialogue is better from how often it was."
    )
    picture = Markup(compare_figures.reliability_curve(calibrated, "f2"))
    caption = "Pairs by the probability that the comparator gave; dots on the dashed line are honest."
    return [Section("probabilities", "Probabilities", text, [(picture, caption)])]


def _removal(result: PipelineResult, data: TrainingData) -> list[Section]:
    """Figure 2: values from the pairs of one half of the raters, accuracy from the others'."""
    from palaver.reports import compare_figures

    assert data.dev is not None
    assert data.pairs is not None
    parts = halves(data.pairs, data.dev.codes("rater")[data.pairs.first])
    if not all(map(len, parts)):
        return []  # one rater only
    arrays, ratings = result.stages[-1].arrays, data.ratings.values
    train, dev = arrays["train_embeddings"], arrays["dev_embeddings"]
    values = pair_values(train, ratings, dev, parts[0], k=result.stages[-1].about["k"])
    curves = figure2(train, ratings, values, dev, parts[1])
    text = (
        "KNN regressors in the network’s space as the ratings of least Shapley value are removed; dashed: as "
        "many at random. The values come from the pairs of one half of the raters, the accuracy from the "
        "others’ (Liang et al. 2020, Figure 2)."
    )
    picture = Markup(compare_figures.removal_plot(curves, "f3"))
    return [Section("removal", "Ratings removed", figures=[(picture, text)])]


def compare_page(
    title: str,
    facts: Sequence[str],
    lead: str,
    sections: Sequence[Section],
    notes: Sequence[str],
    methods: Sequence[str],
    run: RunRecord,
) -> str:
    return page.render(
        "compare.html.j2",
        run,
        title=title,
        facts=facts,
        lead=lead,
        sections=sections,
        notes=notes,
        methods=methods_of("compare", methods),
    )
