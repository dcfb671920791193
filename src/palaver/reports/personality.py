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
from palaver.reports.methods import Method

LETTERS = ("O", "C", "E", "A", "N")

_PAPER = "Xing & Fernández (2018). Automatic evaluation of neural personality-based chatbots. INLG."
_LINK = "https://aclanthology.org/W18-6524/"


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
        methods=methods(found),
        validity=VALIDITY,
        letters=[trait.capitalize() for trait in TRAITS],
    )


def methods(found: Distinguishability) -> list[Method]:
    """The methods behind the numbers in plain words."""
    s = found.run.config
    noun = found.group_noun
    return [
        Method(
            title="The paper’s protocol",
            text=f"{s['samples']} samples of {s['size']} utterances are drawn of each character (none twice "
            "in a sample), each becomes five trait scores, and a support vector machine with an RBF kernel "
            f"learns to say whose sample it is: {s['folds']}-fold cross-validation, {s['repetitions']} times "
            "with new samples. Scaling and the choice of C happen inside the training folds. Traits of a "
            f"character are the mean of {s['ocean_samples']} samples.",
            reference=_PAPER,
            link=_LINK,
        ),
        Method(
            title="Shuffled labels and pseudo-characters",
            text="Shuffled labels show what guessing gives. Pseudo-characters are the same utterances dealt "
            "out anew, to pools of the same sizes: nobody speaks there, yet samples of one pool share "
            "utterances and can be told from samples of another. What characters have beyond that is theirs.",
            reference="Control added here.",
        ),
        Method(
            title=f"The split by {noun}",
            text=f"Whole {noun}s are dealt to {s['folds']} parts, as evenly for each character as chance "
            "allows. Samples for testing come from one part, those to learn from come from the others, so "
            "that no utterance is on both sides. C is chosen on one of the other parts; pseudo-characters "
            "are dealt out within each part.",
            reference="Control added here.",
        ),
        Method(
            title="The interval",
            text=f"{s['replicates']} times the {noun}s of each character are drawn with replacement, and "
            "both the characters and pseudo-characters are recovered; the spread of the difference is put "
            "around the difference found. The answer is yes if all of the interval is above 0.",
            reference="Efron & Tibshirani (1993). An introduction to the bootstrap.",
        ),
        Method(
            title="Frequent words",
            text="The most frequent words, counted in each sample, in place of the traits. Scaled, they tell "
            "the characters of a script apart better than five numbers can, by names and topics too. (The "
            "paper found the opposite, probably with counts that were not scaled.)",
            reference=_PAPER,
            link=_LINK,
        ),
    ]
