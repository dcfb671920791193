"""How distinguishable characters are, shown: tables in the terminal, and one HTML file."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from palaver.corpora.personalities import TRAITS
from palaver.personality.results import Condition, Distinguishability
from palaver.personality.verdict import VALIDITY
from palaver.reports import lines, names, numbers, page
from palaver.reports.methods import methods_of

LETTERS = ("O", "C", "E", "A", "N")


def title_of(condition: Condition) -> str:
    """A condition in the words of the tables."""
    if condition.features == "traits":
        return {"characters": "characters, by traits"}.get(condition.labels, condition.labels)
    bag = {"words": "frequent words", "words without stop words": "words, no stop words"}
    return bag[condition.features] + ("" if condition.scaled else ", unscaled")


def split_title(split: str, group_noun: str) -> str:
    """What a split is called."""
    from palaver.reports.personality_figures import heading

    return heading(split, group_noun)


def print_distinguishability(found: Distinguishability, console: Console) -> None:
    """The verdict first, then what it rests on."""
    lines.line(console, Text(names.clean(found.title), style="bold"))
    facts = (
        numbers.some(len(found.characters), "character"),
        numbers.some(sum(c.n_utterances for c in found.characters), "utterance"),
        f"recogniser {names.clean(found.recogniser)}",
    )
    lines.line(console, Text(" · ".join(facts), style="dim"))
    lines.heading(console, "Verdict")
    lines.indented(console, Text(found.verdict.text, style="bold" if found.verdict.answer == "yes" else ""))
    if found.verdict.reason:
        lines.indented(console, Text(found.verdict.reason, style="yellow"))
    lines.indented(console, Text(VALIDITY, style="dim"))
    _print_characters(found, console)
    _print_conditions(found, console)
    _print_tests(found, console)
    if found.left_out:
        lines.heading(console, "Left out")
        for reason, n in found.left_out:
            lines.indented(console, Text(f"{numbers.count(n)}  {names.clean(reason)}", style="yellow"))
    if found.notes:
        lines.heading(console, "Notes")
        for note in found.notes:
            lines.indented(console, Text(f"- {names.clean(note)}"))
    console.print()
    lines.line(console, Text(names.clean(str(found.run)), style="dim"))


def _print_characters(found: Distinguishability, console: Console) -> None:
    lines.heading(console, "Characters", "traits from 1 to 7; F1: how well their samples are recovered")
    by_traits = [c for c in found.conditions if c.labels == "characters" and c.features == "traits"]
    scores = [{row.character: row for row in c.characters} for c in by_traits]
    heads = ["F1", f"by {found.group_noun}"][: len(scores)]
    table = lines.table(("character",), ("lines", *LETTERS, *heads))
    for who in found.characters:
        table.add_row(
            lines.short_name(who.name),
            numbers.count(who.n_utterances),
            *(numbers.number(value) for value in who.ocean),
            *(numbers.number(row[who.name].f1) for row in scores),
        )
    console.print(table)


def _print_conditions(found: Distinguishability, console: Console) -> None:
    lines.heading(
        console,
        "Recovered",
        f"σ over the characters, ± over the repetitions, C as mostly chosen; "
        f"guessing gives {numbers.number(found.chance)}",
    )
    for split in dict.fromkeys(c.split for c in found.conditions):
        console.print(Text(split_title(split, found.group_noun), style="cyan"))
        table = lines.table(("condition",), ("precision", "σ", "recall", "σ", "F1", "±", "C"))
        for c in found.conditions:
            if c.split == split:
                pairs = ((c.precision, c.precision_sigma), (c.recall, c.recall_sigma), (c.f1, c.f1_sd))
                cells = [numbers.number(value) for pair in pairs for value in pair]
                chosen = max(c.chosen_c, key=lambda key: c.chosen_c[key])
                table.add_row(Text(title_of(c)), *cells[:5], numbers.number(c.f1_sd, 3), chosen)
        console.print(table)


def _print_tests(found: Distinguishability, console: Console) -> None:
    if not found.tests:
        return
    lines.heading(console, "Differences of F1", "over the repetitions; Levene, then Student’s or Welch’s t")
    table = lines.table(("a", "b", "test"), ("a − b", "t", "df", "p"))
    for row in found.tests:
        t = row.test
        cells = (
            numbers.number(t.mean_difference, 3),
            numbers.number(t.statistic, 1),
            numbers.number(t.df, 1),
        )
        table.add_row(row.a, row.b, t.test if not t.reason else t.reason, *cells, numbers.p_value(t.p))
    console.print(table)


def write_personality_report(found: Distinguishability, path: str | Path) -> Path:
    """Write the report as one HTML file that asks for nothing else."""
    page.check_target(Path(path))
    return page.write_page(render_personality_report(found), path)


def render_personality_report(found: Distinguishability) -> str:
    """The report as HTML text; the same result gives the same text."""
    from palaver.reports import personality_figures as figures

    titles = {c.name: title_of(c) for c in found.conditions}
    shown = [c for c in found.conditions if c.labels == "characters" and c.features == "traits"]
    splits = dict.fromkeys(c.split for c in found.conditions)
    template = page.environment(found.run.signature).get_template("personality.html.j2")
    return template.render(
        found=found,
        run=found.run,
        traits=Markup(figures.trait_lines(found, "f1")),
        bars=Markup(figures.f1_by_condition(found, titles, "f2")),
        titles=titles,
        splits=[(s, split_title(s, found.group_noun)) for s in splits],
        shown=shown,
        scores=[{row.character: row for row in c.characters} for c in shown],
        methods=methods_of("personality", facts={**found.run.config, "noun": found.group_noun}),
        validity=VALIDITY,
        letters=[trait.capitalize() for trait in TRAITS],
    )
