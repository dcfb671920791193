"""What a number means, in words, with the convention that says so; and where the methods come from.

Conventions: Koo & Li 2016 (ICC), Krippendorff 2004 (alpha), Landis & Koch 1977 (kappa). They are habits
of a field, not laws, so every reading names its convention and is judged by the interval, not the point.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from palaver.reports.names import clean
from palaver.reports.numbers import DASH, count, decimals, interval, number, p_value, percent, some, statistic
from palaver.studies.ratings import ASKED, BY
from palaver.studies.results import (
    AgreementRow,
    Analysis,
    CorrelationRow,
    CriterionSummary,
    InfluenceRow,
    RankingRow,
    SystemScore,
    TestRow,
)

METHOD_TITLES = {
    "bootstrap": "bootstrap over items",
    "trueskill": "TrueSkill",
    "bradley-terry": "Bradley–Terry",
}


@dataclass(frozen=True, slots=True)
class Convention:
    """Which values of a coefficient are called what: zone i reaches up to cuts[i]."""

    measure: str
    source: str
    cuts: tuple[float, ...]
    words: tuple[str, ...]

    def zone(self, value: float) -> int:
        return bisect_right(self.cuts, value)

    def describe(self) -> str:
        parts = [f"{self.words[0]} below {self.cuts[0]:g}"]
        parts += [f"{word} from {cut:g}" for word, cut in zip(self.words[1:], self.cuts, strict=True)]
        return f"{self.source}: " + ", ".join(parts)


CONVENTIONS = (
    Convention("icc", "Koo & Li 2016", (0.5, 0.75, 0.9), ("poor", "moderate", "good", "excellent")),
    Convention("alpha", "Krippendorff 2004", (0.667, 0.8), ("unreliable", "tentative", "reliable")),
    Convention(
        "kappa",
        "Landis & Koch 1977",
        (0.0, 0.2, 0.4, 0.6, 0.8),
        ("poor", "slight", "fair", "moderate", "substantial", "almost perfect"),
    ),
)


def convention_for(measure: str) -> Convention | None:
    """The convention for a measure as it is named in `AgreementRow`, if its field has one."""
    name = measure.casefold().replace("α", "alpha").replace("κ", "kappa").replace("intraclass", "icc")
    return next((c for c in CONVENTIONS if c.measure in name), None)


def measure_name(row: AgreementRow) -> str:
    """`ICC2k`, `Krippendorff's alpha (interval)`: the form alone where it repeats the measure."""
    measure, form = clean(row.measure), row.form.strip()
    if not form:
        return measure
    if form.casefold().startswith(measure.casefold()):
        return clean(form)
    return f"{measure} ({clean(form)})" if not form.startswith("(") else f"{measure}{clean(form)}"


def value_or_reason(value: float, reason: str) -> str:
    """The coefficient, or `undefined: why`."""
    if math.isfinite(value):
        return statistic(value)
    return f"undefined: {reason}" if reason else "undefined"


def in_words(row: AgreementRow) -> str:
    """What the coefficient is called, from the low to the high end of its interval; empty if nobody says."""
    convention = convention_for(row.measure)
    if convention is None or not math.isfinite(row.value):
        return ""
    ends = [end for end in (row.low, row.high) if math.isfinite(end)]
    if len(ends) < 2:
        return f"{convention.words[convention.zone(row.value)]} (no interval)"
    low, high = (convention.words[convention.zone(end)] for end in ends)
    return low if low == high else f"{low} to {high}"


def in_words_by(row: AgreementRow) -> str:
    """The same with the convention that says so: `moderate to good (Koo & Li 2016)`."""
    words, convention = in_words(row), convention_for(row.measure)
    return f"{words} ({convention.source})" if words and convention else words


def merged(rows: Sequence[AgreementRow]) -> list[tuple[str, AgreementRow]]:
    """Each row under its measure's name; those undefined for one and the same reason share a line."""
    lines: dict[object, tuple[list[str], AgreementRow]] = {}
    for k, row in enumerate(rows):
        defined = math.isfinite(row.value) or not row.reason
        key = k if defined else (row.measure, row.reason, row.n_items, row.dropped)
        lines.setdefault(key, ([], row))[0].append(measure_name(row))
    return [(", ".join(names), row) for names, row in lines.values()]


def agreement_sentence(row: AgreementRow) -> str:
    """`ICC2k 0.83 [0.79, 0.86]: good (Koo & Li 2016)`."""
    name = measure_name(row)
    if not math.isfinite(row.value):
        return f"{name} {value_or_reason(row.value, row.reason)}"
    numbers = f"{name} {statistic(row.value)} {interval(row.low, row.high)}".rstrip()
    words = in_words_by(row)
    return f"{numbers}: {words}" if words else numbers


def headline_reasons(analysis: Analysis) -> list[str]:
    """`fluency, quality: all 4 raters judged all items, so ICC(2,k) is quoted`: a line for each reason."""
    criteria: dict[str, list[str]] = {}
    for row in analysis.agreement:
        if row.headline_reason:
            criteria.setdefault(row.headline_reason, []).append(clean(row.criterion))
    return [f"{', '.join(names)}: {reason}" for reason, names in criteria.items()]


def agreement_notes(analysis: Analysis) -> list[str]:
    """What was left out of a coefficient that is there, or why it has no interval."""
    rows = [row for row in analysis.agreement if math.isfinite(row.value)]
    notes = [f"{clean(row.criterion)}: {clean(note)}" for row in rows for note in row.notes]
    measures: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.reason:
            measures.setdefault((row.criterion, row.reason), []).append(measure_name(row))
    notes += [
        f"{clean(criterion)}: {', '.join(names)}: {clean(reason)}"
        for (criterion, reason), names in measures.items()
    ]
    return list(dict.fromkeys(notes))


def influence_by_kind(analysis: Analysis) -> dict[tuple[str, str], list[InfluenceRow]]:
    """(criterion, "rater" or "item") -> its rows, the largest change first."""
    kinds: dict[tuple[str, str], list[InfluenceRow]] = {}
    for row in analysis.influence:
        kinds.setdefault((row.criterion, row.left_out), []).append(row)
    return kinds


def influence_numbers(row: InfluenceRow) -> tuple[str, str, str]:
    """With all ratings, without the rater or item, and the difference with its sign."""
    change = f"{row.change:+.2f}".replace("-", "−") if math.isfinite(row.change) else DASH
    return statistic(row.value), statistic(row.without), change


def correlations_by_basis(analysis: Analysis) -> dict[str, list[CorrelationRow]]:
    """`spearman over item means` -> its rows, those about what people rated first."""
    asked = {c.criterion for c in analysis.criteria if c.rated_by in ASKED}
    bases: dict[str, list[CorrelationRow]] = {}
    for row in analysis.correlation:
        bases.setdefault(f"{clean(row.method)} over {clean(row.over)}", []).append(row)
    return {
        basis: sorted(rows, key=lambda row: row.a not in asked and row.b not in asked)
        for basis, rows in bases.items()
    }


def test_result(row: TestRow) -> str:
    """`chi-square(8) = 13.20, p = .031, V = 0.12, n = 600`, or why there is no such thing."""
    if not math.isfinite(row.statistic):
        return f"{clean(row.test)} {value_or_reason(math.nan, clean(row.reason) if row.reason else '')}"
    df = f"({row.df:g})" if math.isfinite(row.df) else ""
    p = p_value(row.p)
    parts = [f"{clean(row.test)}{df} = {number(row.statistic)}", f"p {p}" if p[0] in "<>" else f"p = {p}"]
    if math.isfinite(row.effect):
        parts.append(f"V = {statistic(row.effect)}")
    return ", ".join([*parts, f"n = {count(row.n)}"])


def method_title(method: str) -> str:
    return METHOD_TITLES.get(method, clean(method))


def rank_labels(row: RankingRow) -> list[str]:
    """`1.–2.`, `3.` …: the places that each group takes."""
    labels, first = [], 1
    for group in row.groups:
        last = first + len(group) - 1
        labels.append(f"{first}." if first == last else f"{first}.–{last}.")
        first = last + 1
    return labels


def places(row: RankingRow) -> dict[str, str]:
    """System -> the places of its group."""
    labelled = zip(rank_labels(row), row.groups, strict=True)
    return {system: label for label, group in labelled for system in group}


def score_digits(row: RankingRow) -> int:
    """How many decimals the scores of a ranking need: two, or more or none where intervals ask for it."""
    widths = [s.high - s.low for s in row.scores]
    digits = decimals(widths if any(width > 0 for width in widths) else [s.score for s in row.scores])
    return max(2, digits) if digits else 0


def score_name(row: RankingRow) -> str:
    """What a score is, for the head of its column: a mean, or a share (win rates, boxes)."""
    return "mean" if row.unit.startswith("mean") else "share"


def score_interval(score: SystemScore, digits: int) -> str:
    """`[3.9, 4.2]`; a dash where there is none, or where `reason` says that it tells nothing."""
    return DASH if score.reason else interval(score.low, score.high, digits) or DASH


def score_reasons(rows: Sequence[RankingRow]) -> list[str]:
    """`A, B: won all 12 comparisons: …`: what intervals cannot show; systems of one reason together.

    Of several rankings the first that says so about a system is enough.
    """
    reasons: dict[str, str] = {}
    for row in rows:
        for score in row.scores:
            if score.reason:
                reasons.setdefault(clean(score.system), score.reason)
    systems: dict[str, list[str]] = {}
    for system, reason in reasons.items():
        systems.setdefault(reason, []).append(system)
    return [f"{', '.join(names)}: {reason}" for reason, names in systems.items()]


def ranking_text(row: RankingRow) -> str:
    """The groups in words, or why there are none."""
    if row.groups:
        return clean(row.label)
    return f"undefined: {clean(row.reason)}" if row.reason else "undefined"


def ranking_basis(row: RankingRow) -> str:
    """How the groups were found: `bootstrap over items, 95%`."""
    return f"{method_title(row.method)}, {percent(row.confidence)}"


def beaten_within(row: RankingRow) -> int:
    """Pairs of one group of which one beats the other all the same: a group is not a claim of equality."""
    place = _group_numbers(row)
    groups = [place.get(s.system, -1) for s in row.scores]
    return sum(
        groups[i] == groups[j] >= 0 and max(row.better[i][j], row.better[j][i]) >= row.confidence
        for i, j in combinations(range(len(row.better)), 2)
    )


def disagreement(rows: Sequence[RankingRow]) -> str:
    """What the ranking methods say differently about one criterion; empty when they say the same."""
    groups = {method_title(r.method): _group_numbers(r) for r in rows if r.groups}
    shared = [s for s in next(iter(groups.values()), {}) if all(s in g for g in groups.values())]
    opposed: list[str] = []
    loose: dict[str, list[str]] = {}
    for a, b in combinations(shared, 2):
        orders = {method: (g[a] > g[b]) - (g[a] < g[b]) for method, g in groups.items()}
        pair = f"{clean(a)} and {clean(b)}"
        if {-1, 1} <= set(orders.values()):
            opposed.append(f"{pair} ({_ahead(a, b, orders)})")
        elif len(set(orders.values())) > 1:
            apart = enumerated([m for m, order in orders.items() if order])
            together = enumerated([m for m, order in orders.items() if not order])
            loose.setdefault(f"apart by {apart}, but not by {together}", []).append(pair)
    if opposed:
        return f"The methods contradict each other on {_some_of(opposed)}. Take their order as open."
    if loose:
        said = ". ".join(f"{_some_of(pairs)}: {how}" for how, pairs in loose.items())
        return f"The methods do not draw the same lines. {said}."
    return ""


def _group_numbers(row: RankingRow) -> dict[str, int]:
    return {system: place for place, group in enumerate(row.groups) for system in group}


def enumerated(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _ahead(a: str, b: str, orders: dict[str, int]) -> str:
    """Who puts whom ahead; a lower place is better."""
    said = {-1: f"puts {clean(a)} ahead", 1: f"puts {clean(b)} ahead", 0: "leaves them together"}
    return ", ".join(f"{method} {said[order]}" for method, order in orders.items())


def _some_of(texts: Sequence[str]) -> str:
    """All of up to three; two of more."""
    if len(texts) <= 3:
        return "; ".join(texts)
    return f"{'; '.join(texts[:2])}; and {some(len(texts) - 2, 'more pair')}"


def conventions_used(analysis: Analysis) -> list[Convention]:
    measures = {c.measure for row in analysis.agreement if (c := convention_for(row.measure))}
    return [c for c in CONVENTIONS if c.measure in measures]


def criteria_of(analysis: Analysis) -> list[str]:
    """All criteria, in the order of the summaries; those that only other rows know come last."""
    names = [c.criterion for c in analysis.criteria]
    names += [row.criterion for row in analysis.ranking]
    names += [row.criterion for row in analysis.agreement]
    return list(dict.fromkeys(names))


def systems_of(analysis: Analysis) -> list[str]:
    """All systems that were rated or ranked."""
    names = [d.name for c in analysis.criteria for d in c.systems]
    names += [system for c in analysis.criteria for system, _ in c.choices]
    names += [s.system for row in analysis.ranking for s in row.scores]
    return list(dict.fromkeys(names))


def rankings_of(analysis: Analysis, criterion: str) -> list[RankingRow]:
    """The rankings of one criterion, those that could be computed first, the bootstrap ahead of the rest."""
    rows = [row for row in analysis.ranking if row.criterion == criterion]
    return sorted(rows, key=lambda row: (not row.groups, row.method != "bootstrap"))


def circumstances(summary: CriterionSummary | None) -> str:
    """Who rated, if it was not people, and which end is better, if it is not the high one."""
    parts = []
    if summary is not None and summary.rated_by != "human":
        parts.append(f"rated by {BY[summary.rated_by]}")
    if summary is not None and summary.direction != "higher":
        parts.append("neither end is better" if summary.direction == "neither" else "lower is better")
    return "; ".join(parts)


def headline_of(analysis: Analysis, criterion: str) -> AgreementRow | None:
    """The agreement that a reader should see first, if there is one."""
    rows = [row for row in analysis.agreement if row.criterion == criterion]
    return next((row for row in rows if row.headline), rows[0] if rows else None)
