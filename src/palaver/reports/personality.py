"""How distinguishable characters are, shown: tables in the terminal, and one HTML file."""

from __future__ import annotations

from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from palaver.corpora.personalities import TRAITS
from palaver.personality.comparison import SourceComparison
from palaver.personality.results import Condition, Distinguishability
from palaver.personality.verdict import VALIDITY
from palaver.reports import lines, names, numbers, page
from palaver.reports.methods import methods_of

LEARNERS = {
    "svm": "a support vector machine with an RBF kernel",
    "mlp": "a multi-layer perceptron",
    "k-means": "k-means clustering",
    "agglomerative": "agglomerative clustering",
}
LETTERS = ("O", "C", "E", "A", "N")


def title_of(condition: Condition) -> str:
    """A condition in the words of the tables."""
    if condition.features == "traits":
        return {"characters": "characters, by traits"}.get(condition.labels, condition.labels)
    bag = {"words": "frequent words", "words without stop words": "words, no stop words"}
    return bag[condition.features] + ("" if condition.scaled else ", unscaled")


def splits_of(result: Distinguishability) -> dict[str, dict[str, Condition]]:
    """The conditions by their titles, under the title of their split."""
    splits: dict[str, dict[str, Condition]] = {}
    for condition in result.conditions:
        split = f"split by {result.group_noun} (no utterance on both sides)"
        if condition.split == "samples":
            split = "samples of one pool on both sides (the paper’s protocol)"
        splits.setdefault(split, {})[title_of(condition)] = condition
    return splits


def _by_traits(result: Distinguishability) -> list[Condition]:
    return [c for c in result.conditions if c.labels == "characters" and c.features == "traits"]


def print_distinguishability(result: Distinguishability, console: Console) -> None:
    """The verdict first, then what it rests on."""
    facts = (
        numbers.some(len(result.characters), "character"),
        numbers.some(sum(c.n_utterances for c in result.characters), "utterance"),
        f"recogniser {names.clean(result.recogniser)}",
    )
    lines.title(console, result.title, facts)
    lines.heading(console, "Verdict")
    lines.indented(console, result.verdict.text, "bold" if result.verdict.answer == "yes" else "")
    if result.verdict.reason:
        lines.indented(console, result.verdict.reason, "yellow")
    lines.indented(console, VALIDITY, "dim")
    _print_characters(result, console)
    _print_conditions(result, console)
    _print_tests(result, console)
    lines.left_out(console, result.left_out)
    lines.notes(console, result.notes)
    lines.run_record(console, result.run)


def print_comparison(result: SourceComparison, console: Console) -> None:
    """F1 of each source beside its control, then the tests between them."""
    characters = [who.name for who in result.results[0].characters]
    recogniser = names.clean(result.results[0].recogniser)
    facts = (numbers.some(len(characters), "character"), f"recogniser {recogniser}")
    lines.title(console, "Sources compared", facts)
    heads = ("lines", "F1", "pseudo", "F1 by group", "pseudo by group")
    table = lines.table(("source",), heads)
    for one in result.results:
        paper = [one.condition(name) for name in ("characters", "pseudo-characters")]
        cells = [numbers.number(c.f1) if c is not None else "–" for c in paper]
        by_group = (one.verdict.f1, one.verdict.control)
        n_lines = numbers.count(sum(who.n_utterances for who in one.characters))
        table.add_row(lines.name_cell(one.title), n_lines, *cells, *map(numbers.number, by_group))
    lines.print_table(console, table)
    about = "of F1 by group, spread over resampled pools, Holm; last: the paper’s test on repetitions"
    lines.heading(console, "Differences", about)
    table = lines.table(("a", "b"), ("a − b", "interval", "p", "p (Holm)", "paper’s p"))
    for test in result.tests:
        span = (
            f"[{numbers.number(test.low)}, {numbers.number(test.high)}]" if not test.reason else test.reason
        )
        theirs = numbers.p_value(test.repetitions.p) if test.repetitions is not None else "–"
        table.add_row(
            lines.name_cell(test.a),
            lines.name_cell(test.b),
            numbers.number(test.difference),
            span,
            numbers.p_value(test.p),
            numbers.p_value(test.p_holm),
            theirs,
        )
    lines.print_table(console, table)
    lines.notes(console, result.notes)
    lines.indented(console, VALIDITY, "dim")


def _print_characters(result: Distinguishability, console: Console) -> None:
    lines.heading(console, "Characters", "traits from 1 to 7; F1: how well their samples are recovered")
    scores = [{row.character: row for row in c.characters} for c in _by_traits(result)]
    heads = ["F1", f"by {result.group_noun}"][: len(scores)]
    table = lines.table(("character",), ("lines", *LETTERS, *heads))
    for who in result.characters:
        table.add_row(
            lines.name_cell(who.name),
            numbers.count(who.n_utterances),
            *(numbers.number(value) for value in who.ocean),
            *(numbers.number(row[who.name].f1) for row in scores),
        )
    lines.print_table(console, table)


def _print_conditions(result: Distinguishability, console: Console) -> None:
    spreads = "σ over the characters, ± over the repetitions, C as mostly chosen"
    lines.heading(console, "Recovered", f"{spreads}; guessing gives {numbers.number(result.chance)}")
    for split, conditions in splits_of(result).items():
        console.print(Text(split, style="cyan"))
        table = lines.table(("condition",), ("precision", "σ", "recall", "σ", "F1", "±", "C"))
        for title, c in conditions.items():
            values = (c.precision, c.precision_sigma, c.recall, c.recall_sigma, c.f1)
            chosen = max(c.chosen_c, key=lambda key: c.chosen_c[key], default="–")
            table.add_row(Text(title), *map(numbers.number, values), numbers.number(c.f1_sd, 3), chosen)
        lines.print_table(console, table)


def _print_tests(result: Distinguishability, console: Console) -> None:
    if not result.tests:
        return
    lines.heading(console, "Differences of F1", "over the repetitions; Levene, then Student’s or Welch’s t")
    table = lines.table(("a", "b", "test"), ("a − b", "t", "df", "p"))
    for row in result.tests:
        t = row.test
        difference = numbers.number(t.mean_difference, 3)
        cells = (difference, numbers.number(t.statistic, 1), numbers.number(t.df, 1), numbers.p_value(t.p))
        table.add_row(row.a, row.b, t.reason or t.test, *cells)
    lines.print_table(console, table)


def render_personality_report(result: Distinguishability) -> str:
    """The report as HTML text; the same result gives the same text."""
    from palaver.reports import personality_figures as figures

    shown, splits = _by_traits(result), splits_of(result)
    facts = {**result.run.config, "noun": result.group_noun, "learner": LEARNERS[result.classifier]}
    return page.render(
        "personality.html.j2",
        result.run,
        result=result,
        traits=Markup(figures.trait_lines(result, "f1")),
        bars=Markup(figures.f1_by_condition(splits, result.chance, "f2")),
        splits=splits,
        shown=shown,
        scores=[{row.character: row for row in c.characters} for c in shown],
        methods=methods_of("personality", facts=facts),
        validity=VALIDITY,
        letters=[trait.capitalize() for trait in TRAITS],
    )
