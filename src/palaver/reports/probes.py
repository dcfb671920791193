"""What encoders notice, shown: tables in the terminal, and a leaderboard as one HTML file."""

from __future__ import annotations

from markupsafe import Markup
from rich.console import Console

from palaver.probes.recipe import SETS, VARIANTS
from palaver.probes.results import ProbeResult, SetScore
from palaver.reports import lines, numbers, page
from palaver.reports.methods import methods_of
from palaver.reports.names import clean
from palaver.reports.numbers import hundred

DESIRED = {
    "negation-detection": "a synonym of the verb should change less than a “not”",
    "negation-variants": "two ways to negate should be nearer to each other than to the original",
    "clause-relatedness": "what was said should be nearer to the report of it than the report negated",
    "argument-sensitivity": "the passive should be nearer than the sentence with its actors swapped",
    "fixed-point-reorder": "a paraphrase should be nearer than the same words in a senseless order",
}
"""What is asked of an encoder, in one line for each set."""


def print_probe(result: ProbeResult, console: Console, *, n_failures: int = 0) -> None:
    """The leaderboard, then a table for each set."""
    facts = (
        numbers.some(len(result.encoders), "encoder"),
        numbers.some(sum(result.n_triplets.values()), "triplet"),
        f"{numbers.count(result.n_sentences)} different sentences",
    )
    lines.title(console, "What sentence encoders notice", facts)
    lines.heading(console, "Accuracy", "% of triplets ordered as desired; mean of the sets, best first")
    table = lines.table(("encoder",), (*(SETS[s].title.replace(" ", "\n") for s in result.sets), "mean"))
    for row in result.encoders:
        cells = [hundred(result.score(row.name, s).share.accuracy) for s in result.sets]
        table.add_row(lines.name_cell(row.name), *cells, hundred(row.mean_accuracy))
    lines.print_table(console, table)
    for name in result.sets:
        _print_set(result, name, console, n_failures)
    lines.heading(console, "Encoders")
    for row in result.encoders:
        took = f"{numbers.seconds(row.encoder_seconds)} for {numbers.count(row.n_encoded)} new sentences"
        lines.indented(console, f"{clean(row.name)}: {clean(row.provenance)} ({took})")
    for note in result.notes:
        lines.indented(console, f"Note: {clean(note)}", "yellow")
    lines.run_record(console, result.run)


def _print_set(result: ProbeResult, name: str, console: Console, n_failures: int) -> None:
    kind = SETS[name]
    lines.heading(console, kind.title, f"Table {kind.table}; n = {numbers.count(result.n_triplets[name])}")
    lines.indented(console, DESIRED[name], "dim")
    scores = [result.score(row.name, name) for row in result.encoders]
    columns = ("S∧S+", "S∧S*", "S+∧S*", "accuracy", "95% interval", "other case")
    table = lines.table(("encoder",), columns)
    for s in scores:
        values = (s.plus.mean, s.star.mean, s.between.mean, s.share.accuracy)
        interval = numbers.interval(100 * s.share.low, 100 * s.share.high, 1)
        control = hundred(s.variant("case").share.accuracy)
        table.add_row(lines.name_cell(s.encoder), *map(hundred, values), interval, control)
    lines.print_table(console, table)
    _print_variants(scores, console)
    for s in scores:
        encoder = clean(s.encoder)
        for by in ("case", "corpus", "relation"):
            parts = [f"{p.name} {hundred(p.share.accuracy)} (n = {p.share.n})" for p in s.parts if p.by == by]
            if parts:
                lines.indented(console, f"{encoder} by {by}: {', '.join(parts)}", "dim")
        if s.pairs is not None:
            interval = numbers.interval(100 * s.pairs.low, 100 * s.pairs.high, 1)
            mean = f"mean of the pairs {hundred(s.pairs.mean)}"
            text = f"{encoder} with {s.pairs.n_pairs} pairs of verbs as the unit: {interval}, {mean}"
            lines.indented(console, text, "dim")
        if s.other_rule is not None:
            share = hundred(s.other_rule.accuracy)
            lines.indented(console, f"{encoder} by the wording of section 2.2: {share}", "dim")
        for failure in s.failures[:n_failures]:
            triplet = " / ".join(map(clean, (failure.original, failure.plus, failure.star)))
            lines.indented(console, f"{encoder} fails by {hundred(-failure.margin)}: {triplet}", indent=4)
    alike = [t for t in result.tests if t.set == name and not t.adjusted <= 0.05]
    if alike and len(result.encoders) > 1:
        pairs = "; ".join(f"{clean(t.a)} – {clean(t.b)}" for t in alike[:8])
        more = f" and {len(alike) - 8} more pairs" if len(alike) > 8 else ""
        lines.indented(console, f"no more than chance between: {pairs}{more}", "dim")


def _print_variants(scores: list[SetScore], console: Console) -> None:
    """Accuracy on triplets made in another way, each beside the paper's triplets of the same sentences."""
    names = [v.name for v in scores[0].variants if v.name != "case"]
    if not names:
        return
    columns = [text for name in names for text in (f"{name}\nn = {scores[0].variant(name).share.n}", "same")]
    table = lines.table(("made in another way",), columns)
    for s in scores:
        shares = [share for name in names for share in (s.variant(name).share, s.variant(name).same)]
        table.add_row(lines.name_cell(s.encoder), *(hundred(share.accuracy) for share in shares))
    lines.print_table(console, table)
    for name in names:
        meaning = VARIANTS.get(name, name).removeprefix(f"{SETS[scores[0].set].title}: ")
        lines.indented(console, f"{name}: {meaning}", "dim")


def render_probe_report(result: ProbeResult) -> str:
    """The page as HTML text; the same result gives the same text."""
    from palaver.reports import probes_figures as figures

    sets = [
        {
            "kind": SETS[name],
            "id": f"s{n}",
            "desired": DESIRED[name],
            "scores": [result.score(row.name, name) for row in result.encoders],
            "picture": Markup(figures.cosine_spreads(result, name, f"f{n}")),
            "tests": [t for t in result.tests if t.set == name],
            "variants": VARIANTS,
        }
        for n, name in enumerate(result.sets, 1)
    ]
    return page.render("probes.html.j2", result.run, result=result, sets=sets, methods=methods_of("probes"))
