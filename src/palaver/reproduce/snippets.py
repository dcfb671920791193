"""Table 4 of Topical-Chat: what people say about snippets of conversations.

A rating file of the preset `snippet`: comprehensible, on-topic, interesting and continue are yes or no,
knowledge has four steps. As in the paper, agreement is Cohen's kappa for the former (of two raters; of more
than two Fleiss') and Fleiss' kappa for the latter, and where it is below the threshold means are withheld.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from palaver.errors import DataError, count_of
from palaver.reports import lines
from palaver.reproduce.comparison import load_figures
from palaver.schema import Study
from palaver.statistics.bootstrap import Resampling, percentile_interval, resample_sums
from palaver.studies.agreement import agree
from palaver.studies.design import preset_study
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.ratings import read_ratings
from palaver.studies.results import AgreementRow
from palaver.tabular import show_fixed

_TABLE: Mapping[str, Any] = load_figures("topical_chat")["table_4"]
CRITERIA: Mapping[str, str] = _TABLE["criteria"]
THRESHOLD: float = _TABLE["threshold"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far raters agree on a criterion, and whether its means are shown."""

    criterion: str
    measure: str
    paper: float
    value: float
    low: float
    high: float
    is_enough: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Mean:
    """A system's mean rating; nan where it is withheld."""

    system: str
    criterion: str
    paper: float | None
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SnippetTable:
    """Table 4 from a file of ratings."""

    agreements: tuple[Agreement, ...]
    means: tuple[Mean, ...]
    n_snippets: int
    n_raters: int
    threshold: float = THRESHOLD
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, null for what is withheld."""
        from palaver.schema.run import plain

        content: dict[str, Any] = plain(asdict(self))
        return content


def read_snippets(
    path: str | Path, study: Study | None = None, *, seed: int = 0, n_replicates: int = 1000
) -> SnippetTable:
    """Agreement and means of the five questions; questions that were not asked are noted."""
    # Without its study file the ratings may be to other questions, too: these are left out.
    table = read_ratings(path, study=study or preset_study("snippet"), skip_bad=study is None)
    asked = [criterion for criterion in CRITERIA if criterion in table.criteria]
    if not asked:
        raise DataError(f"{path} has none of the questions of a snippet study: {', '.join(CRITERIA)}")
    left_out = [f"{count_of(n, 'row')} left out: {reason}" for reason, n in table.reading.dropped]
    agreements, means = [], []
    judged: Judgements | None = None
    for criterion in asked:
        judged = judgements_of(table, criterion, "raw")
        rng = np.random.default_rng(np.random.SeedSequence([seed, *criterion.encode()]))
        agreement = _agreement(judged, Resampling(0.95, n_replicates, rng))
        agreements.append(agreement)
        means += _means(judged, agreement.is_enough, n_replicates, rng)
    assert judged is not None
    notes = [*left_out, *(f"{criterion} was not asked" for criterion in CRITERIA if criterion not in asked)]
    return SnippetTable(
        agreements=tuple(agreements),
        means=tuple(means),
        n_snippets=len(judged.items),
        n_raters=len(judged.raters),
        notes=tuple(notes),
    )


def _agreement(judged: Judgements, resampling: Resampling) -> Agreement:
    # With raters who differ from snippet to snippet there are too few answers of any two of them.
    measure = "Cohen kappa" if _is_binary(judged) and len(judged.raters) == 2 else "Fleiss kappa"
    rows = [row for row in agree(judged, resampling) if row.measure == measure and _is_plain(row)]
    row = rows[0] if rows else None
    value = row.value if row is not None else math.nan
    return Agreement(
        criterion=judged.criterion,
        measure=measure,
        paper=_TABLE["agreement"][judged.criterion],
        value=value,
        low=row.low if row is not None else math.nan,
        high=row.high if row is not None else math.nan,
        is_enough=value >= THRESHOLD,
        reason=row.reason if row is not None else "two raters of the same replies are needed",
    )


def _is_binary(judged: Judgements) -> bool:
    return judged.criterion != "knowledge"


def _is_plain(row: AgreementRow) -> bool:
    return row.form.endswith("unweighted")


def _means(judged: Judgements, is_shown: bool, n_replicates: int, rng: np.random.Generator) -> list[Mean]:
    """Each system's mean, with an interval from drawing snippets anew."""
    published = {row["system"]: row["paper"] for row in _TABLE["rows"]}
    means = []
    for k, system in enumerate(judged.systems):
        own = (judged.system == k) & np.isfinite(judged.score)
        n_items = len(judged.items)
        totals = np.bincount(judged.item[own], judged.score[own], minlength=n_items)
        counts = np.bincount(judged.item[own], minlength=n_items).astype(np.float64)
        sums = np.column_stack([totals, counts])  # (snippets, 2)
        value = low = high = math.nan
        if is_shown and counts.sum() > 0:
            draws = resample_sums(sums[counts > 0], n_replicates, rng)
            interval = percentile_interval(draws[:, 0] / draws[:, 1], 0.95)
            value, low, high = float(totals.sum() / counts.sum()), interval.low, interval.high
        paper = published.get(system, {}).get(judged.criterion)
        means.append(Mean(system, judged.criterion, paper, value, low, high))
    return means


def print_snippets(table: SnippetTable, console: Console) -> None:
    """Table 4 beside the paper's."""
    labels = {row["system"]: row["label"] for row in _TABLE["rows"]}
    heads = [f"{who}\n{CRITERIA[a.criterion]}" for a in table.agreements for who in ("paper", "ours")]
    title = f"Table 4: {table.n_snippets:,} snippets, {table.n_raters:,} raters"
    shown = lines.table(("",), heads, title=title)
    kappas = [cell for a in table.agreements for cell in (f"κ = {a.paper:.2f}", _kappa(a))]
    shown.add_row("agreement", *kappas)
    means = {(mean.system, mean.criterion): mean for mean in table.means}
    for system in _in_order(dict.fromkeys(mean.system for mean in table.means)):
        cells = []
        for agreement in table.agreements:
            mean = means[system, agreement.criterion]
            cells += ["–" if mean.paper is None else f"{mean.paper:.2f}", _cell(mean, agreement)]
        shown.add_row(Text(labels.get(system, system)), *map(Text, cells))
    lines.print_table(console, shown)
    withheld = [a for a in table.agreements if not a.is_enough]
    for agreement in withheld:
        reason = f" ({agreement.reason})" if agreement.reason else ""
        below = f"{agreement.measure} is not at least {table.threshold:.2f}{reason}"
        text = f"{agreement.criterion}: means withheld, {below}"
        lines.indented(console, text, "yellow")
    for note in table.notes:
        lines.indented(console, note, "yellow")
    measures = ", ".join(f"{CRITERIA[a.criterion]} {a.measure}" for a in table.agreements)
    lines.indented(console, f"agreement: {measures}; in brackets 95% intervals", "dim")
    console.print()


def _in_order(systems: Mapping[str, Any]) -> list[str]:
    """The paper's systems first, as in its table."""
    known = [row["system"] for row in _TABLE["rows"] if row["system"] in systems]
    return [*known, *(system for system in systems if system not in known)]


def _kappa(agreement: Agreement) -> str:
    if math.isnan(agreement.value):
        return "undefined"
    return f"κ = {show_fixed(agreement.value)}\n[{show_fixed(agreement.low)}, {show_fixed(agreement.high)}]"


def _cell(mean: Mean, agreement: Agreement) -> str:
    if not agreement.is_enough:
        return "withheld"
    return "–" if math.isnan(mean.value) else f"{mean.value:.2f}\n[{mean.low:.2f}, {mean.high:.2f}]"
