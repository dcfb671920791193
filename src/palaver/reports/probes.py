"""What encoders notice, shown: tables in the terminal, and a leaderboard as one HTML file."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from palaver.probes.recipe import SETS
from palaver.probes.results import ProbeResult, SetScore
from palaver.reports import lines, names, numbers, page
from palaver.reports.methods import methods_of

DESIRED = {
    "negation-detection": "a synonym of the verb should change less than a “not”",
    "negation-variants": "two ways to negate should be nearer to each other than to the original",
    "clause-relatedness": "what was said should be nearer to the report of it than the report negated",
    "argument-sensitivity": "the passive should be nearer than the sentence with its actors swapped",
    "fixed-point-reorder": "a paraphrase should be nearer than the same words in a senseless order",
}
"""What is asked of an encoder, in one line for each set."""
_NAME = 24


def hundred(value: float) -> str:
    """A share or a cosine in hundredths, as the paper prints them."""
    return numbers.number(100 * value, 2)


def print_probe(found: ProbeResult, console: Console, *, n_failures: int = 0) -> None:
    """The leaderboard, then a table for each set."""
    facts = (
        numbers.some(len(found.encoders), "encoder"),
        numbers.some(sum(found.n_triplets.values()), "triplet"),
        f"{numbers.count(found.n_sentences)} different sentences",
    )
    lines.line(console, Text("What sentence encoders notice", style="bold"))
    lines.line(console, Text(" · ".join(facts), style="dim"))
    lines.heading(console, "Accuracy", "% of triplets ordered as desired; mean of the sets, best first")
    table = lines.table(("encoder",), (*(_short(s) for s in found.sets), "mean"))
    for row in found.encoders:
        cells = [hundred(found.score(row.name, s).share.accuracy) for s in found.sets]
        table.add_row(Text(names.shorten(row.name, _NAME)), *cells, hundred(row.mean_accuracy))
    console.print(table)
    for name in found.sets:
        _print_set(found, name, console, n_failures)
    lines.heading(console, "Encoders")
    for row in found.encoders:
        took = f"{numbers.seconds(row.encoder_seconds)} for {numbers.count(row.n_encoded)} new sentences"
        lines.indented(console, Text(f"{names.clean(row.name)}: {names.clean(row.provenance)} ({took})"))
    for note in found.notes:
        lines.indented(console, Text(f"Note: {names.clean(note)}", style="yellow"))
    console.print()
    lines.line(console, Text(names.clean(str(found.run)), style="dim"))


def _short(name: str) -> str:
    """`negation-detection` in a column's width."""
    return "\n".join(part[:11] for part in SETS[name].title.split(" ")[:2]) + (
        "\nReorder" if "fixed" in name else ""
    )


def _print_set(found: ProbeResult, name: str, console: Console, n_failures: int) -> None:
    kind = SETS[name]
    lines.heading(console, kind.title, f"Table {kind.table}; n = {numbers.count(found.n_triplets[name])}")
    lines.indented(console, Text(DESIRED[name], style="dim"))
    table = lines.table(("encoder",), ("S∧S+", "S∧S*", "S+∧S*", "accuracy", "95% interval"))
    for row in found.encoders:
        s = found.score(row.name, name)
        means = map(hundred, (s.plus.mean, s.star.mean, s.between.mean))
        who = Text(names.shorten(row.name, _NAME))
        table.add_row(who, *means, hundred(s.share.accuracy), _interval(s))
    console.print(table)
    for row in found.encoders:
        s = found.score(row.name, name)
        for by in ("case", "corpus"):
            parts = [f"{p.name} {hundred(p.share.accuracy)} (n = {p.share.n})" for p in s.parts if p.by == by]
            if parts:
                lines.indented(
                    console, Text(f"{names.clean(row.name)} by {by}: {', '.join(parts)}", style="dim")
                )
        if s.other_rule is not None:
            said = f"{names.clean(row.name)} by the wording of section 2.2: {hundred(s.other_rule.accuracy)}"
            lines.indented(console, Text(said, style="dim"))
        for failure in s.failures[:n_failures]:
            shown = " / ".join(map(names.clean, (failure.original, failure.plus, failure.star)))
            lines.indented(
                console, Text(f"{names.clean(row.name)} fails by {hundred(-failure.margin)}: {shown}"), 4
            )
    alike = [t for t in found.tests if t.set == name and not t.adjusted <= 0.05]
    if alike and len(found.encoders) > 1:
        told = "; ".join(f"{names.clean(t.a)} – {names.clean(t.b)}" for t in alike[:8])
        more = f" and {len(alike) - 8} more pairs" if len(alike) > 8 else ""
        lines.indented(console, Text(f"no more than chance between: {told}{more}", style="dim"))


def _interval(score: SetScore) -> str:
    return f"[{numbers.number(100 * score.share.low, 1)}, {numbers.number(100 * score.share.high, 1)}]"


def write_probe_report(found: ProbeResult, path: str | Path) -> Path:
    """Write the leaderboard as one HTML file that asks for nothing else."""
    page.check_target(Path(path))
    return page.write_page(render_probe_report(found), path)


def render_probe_report(found: ProbeResult) -> str:
    """The page as HTML text; the same result gives the same text."""
    from palaver.reports import probes_figures as figures

    sets = [
        {
            "kind": SETS[name],
            "id": f"s{n}",
            "desired": DESIRED[name],
            "scores": [found.score(row.name, name) for row in found.encoders],
            "picture": Markup(figures.cosine_spreads(found, name, f"f{n}")),
            "tests": [t for t in found.tests if t.set == name],
        }
        for n, name in enumerate(found.sets, 1)
    ]
    template = _environment(found).get_template("probes.html.j2")
    return template.render(found=found, run=found.run, sets=sets, methods=methods_of("probes"))


def _environment(found: ProbeResult) -> Environment:
    made = page.environment(found.run.signature)
    made.filters.update(hundred=hundred)
    made.globals.update(interval=_interval)
    return made
