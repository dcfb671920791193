"""Several metrics of one or more systems' responses: figures, bootstrap intervals and paired tests.

Every metric that has an interval follows from sums over responses. A bootstrap replicate of all metrics of
all systems is therefore one row of weights times one table, and systems that answered the same items are
compared on the same replicates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

from palaver.errors import UserError, check_list, count_of
from palaver.metrics.blocks import ROWS, RowTable, SideBySide
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import METRICS, Floats, Metric, open_metric
from palaver.metrics.tokens import Ints
from palaver.progress import Progress, no_progress
from palaver.schema.dialogue import Turn
from palaver.schema.response import USER
from palaver.statistics.bootstrap import Resampling, least_p, percentile_interval, resample_rows
from palaver.statistics.significance import holm
from palaver.tabular import Tabular, columns_of, few, show_number

_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One row of the table."""

    name: str
    title: str
    better: str
    value: float
    low: float
    high: float
    n: int
    """Responses the figure is based on."""
    n_undefined: int
    """Responses without a score (an empty one has no diversity); left out."""
    reason: str
    """Why the figure or its interval is nan, or the interval has no width; empty otherwise."""
    signature: str
    system: str = ""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """Two systems compared by one metric on the items that both answered."""

    metric: str
    system: str
    other: str
    difference: float
    """`system` minus `other`."""
    low: float
    high: float
    p: float
    """Two-sided, of the paired bootstrap under the shifted null; few items bound it (`least_p`)."""
    p_holm: float
    """Corrected for all pairs of this metric."""
    n: int
    """Items for which both have a score; a test needs two."""


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(Tabular):
    """A table of results and how its intervals were found."""

    rows: tuple[MetricResult, ...]
    n_examples: int
    seed: int
    n_replicates: int
    confidence: float

    def _headline(self) -> str:
        values = few([f"{row.name} = {show_number(row.value)}" for row in self.rows])
        return f"{values}; {count_of(self.n_examples, 'response')}"

    def _tables(self) -> dict[str, Any]:
        return {"metrics": columns_of(MetricResult, self.rows, leave_out=("system",))}

    def __iter__(self) -> Iterator[MetricResult]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> MetricResult:
        return next(row for row in self.rows if row.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def evaluate(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]] | None = None,
    *,
    knowledge: Sequence[str] | None = None,
    context: Sequence[str | Sequence[Turn]] | None = None,
    metrics: Sequence[str | Metric] | None = None,
    seed: int = 0,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    device: str = "auto",
) -> Evaluation:
    """Each metric's figure for `predictions`. Without `metrics`: all that need no model and that the given
    columns allow.

    A reference may be one text or several; an empty `knowledge` sentence is none. A context is the turns
    before the response, or one text. `device` is where the models of metrics run.
    """
    resampling = Resampling.of(confidence, n_replicates, seed)
    for name, texts in (("predictions", predictions), ("references", references), ("metrics", metrics)):
        check_list(name, texts)
    given = {"references": references, "knowledge": knowledge, "context": context}
    _check_lengths(predictions, given)
    chosen = choose_metrics(metrics, {need for need, column in given.items() if column is not None}, device)
    n = len(predictions)
    beside = [()] * n if references is None else references
    if any(metric.of_texts for metric in chosen):
        turns = [()] * n if context is None else [_as_turns(one) for one in context]
        sentences = [""] * n if knowledge is None else knowledge
        several = [_as_tuple(reference) for reference in beside]
        columns = zip(predictions, several, sentences, turns, strict=True)
        examples = Examples.of([Example(*row) for row in columns])
    else:
        examples = Examples.of_columns(predictions, beside, knowledge)
    rows, _ = measure([SystemResponses("", range(n), [examples])], chosen, resampling)
    return Evaluation(rows, n, seed, n_replicates, confidence)


def choose_metrics(
    metrics: Sequence[str | Metric] | None, columns: set[str], device: str = "auto"
) -> list[Metric]:
    """The metrics that are named, or all that need no model and that the columns allow."""
    if metrics is None:
        known = [METRICS.get(name) for name in METRICS]
        return [m for m in known if columns.issuperset(m.needs) and not m.model]
    chosen = list({m if isinstance(m, str) else m.name: open_metric(m, device) for m in metrics}.values())
    problems = [f"{m.name} needs {need}" for m in chosen for need in m.needs if need not in columns]
    if problems:
        needs = {need for m in chosen for need in m.needs} - columns
        raise UserError("something is missing for these metrics:", _where_from(needs), problems)
    return chosen


def _where_from(needs: Collection[str]) -> str:
    """How a user gives what metrics need."""
    names = [need.removesuffix("s") for need in sorted(needs)]
    hint = f"a file has it in a column: {', '.join(names)} (--column {names[0]}=NAME for another name)"
    return f"{hint}; for .txt files: --reference FILE" if "references" in needs else hint


@dataclass(eq=False)
class SystemResponses:
    """What one system answered to which items."""

    name: str
    items: Sequence[Any]
    blocks: Iterable[Examples]
    """Gone through more than once; all in one block where a metric reads texts."""
    table: RowTable = field(default_factory=RowTable)
    """For each metric that has an interval: sums' columns, then whether the response has a score."""
    columns: list[slice] = field(default_factory=list)
    """Of each such metric."""
    total: Floats = field(default_factory=lambda: np.zeros(0))
    """The sums of the columns."""

    def __len__(self) -> int:
        return len(self.items)

    def count(self, metrics: Sequence[Metric], *, keep_rows: bool) -> None:
        """Fill the table, or only its sums; what was counted before goes."""
        self.table.clear()
        self.total = np.zeros(0)
        for block in self.blocks:
            tables = [_with_counts(metric.table(block)) for metric in metrics]
            ends = np.cumsum([table.shape[1] for table in tables]).tolist()
            self.columns = [slice(begin, end) for begin, end in pairwise([0, *ends])]
            totals = np.concatenate([table.sum(axis=0) for table in tables])
            self.total = self.total + totals if self.total.size else totals
            if keep_rows:
                self.table.append(np.hstack(tables))


def measure(
    systems: Sequence[SystemResponses],
    metrics: Sequence[Metric],
    resampling: Resampling,
    progress: Progress = no_progress,
) -> tuple[tuple[MetricResult, ...], tuple[MetricDifference, ...]]:
    """Each metric of each system, and each pair of systems by each metric that has an interval."""
    for metric in metrics:
        if metric.prepare is not None:
            metric.prepare([examples for system in systems for examples in system.blocks], progress)
    sums = [metric for metric in metrics if metric.has_scores]
    if sums:
        for system in systems:
            system.count(sums, keep_rows=resampling.n_replicates > 0)
    replicates = _replicates(systems, sums, resampling)
    rows = []
    for metric in metrics:
        for system, of_system in zip(systems, replicates, strict=True):
            if not metric.has_scores:
                rows.append(_whole_result(metric, system))
            else:
                columns = system.columns[sums.index(metric)]
                of_metric = of_system[:, columns]
                rows.append(_result(metric, system, system.total[columns], of_metric, resampling))
    return tuple(rows), tuple(_differences(systems, sums, replicates, resampling))


def _with_counts(table: Floats) -> Floats:
    defined = ~np.isnan(table[:, :1])
    return np.hstack([np.where(defined, table, 0.0), defined])


def _replicates(
    systems: Sequence[SystemResponses], metrics: Sequence[Metric], resampling: Resampling
) -> list[Floats]:
    """Of each system: the sums of each replicate. Systems with the same items share the draws."""
    if not resampling.n_replicates or not metrics:
        return [np.empty((0, system.total.size)) for system in systems]
    if _same_items(systems):
        return _resample([system.table for system in systems], resampling)
    return [_resample([system.table], resampling)[0] for system in systems]


def _same_items(systems: Sequence[SystemResponses]) -> bool:
    """Whether all systems answered the same items, in the same order."""
    first = systems[0].items
    return all(s.items == first for s in systems[1:])


def _resample(tables: Sequence[RowTable | Floats], resampling: Resampling) -> list[Floats]:
    """The sums of each replicate; row i of every table is about the same item."""
    together = SideBySide(tables)
    varies = together.varying()  # a column that is the same in every row needs no drawing
    sums = np.empty((resampling.n_replicates, together.shape[1]))
    sums[:, ~varies] = together[:1][0, ~varies] * len(together)
    if varies.any():
        drawn = SideBySide(tables, np.flatnonzero(varies))
        sums[:, varies] = resample_rows(drawn, resampling.n_replicates, resampling.rng)
    return np.split(sums, np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)


def _values(metric: Metric, sums: Floats) -> Floats:
    return metric.value(sums[..., :-1], sums[..., -1])


def _result(
    metric: Metric, system: SystemResponses, total: Floats, replicates: Floats, resampling: Resampling
) -> MetricResult:
    n = int(total[-1])
    result = _empty_result(metric, system, n)
    if not n:
        return replace(result, reason="no response has a score")
    value = float(_values(metric, total))
    if not len(replicates):
        return replace(result, value=value, reason="no replicates were asked for")
    if n < 2:
        return replace(result, value=value, reason="an interval needs two responses with a score, found one")
    interval = percentile_interval(_values(metric, replicates), resampling.confidence)
    reason = "all replicates are equal" if interval.low == interval.high else ""
    return replace(result, value=value, low=interval.low, high=interval.high, reason=reason)


def _whole_result(metric: Metric, system: SystemResponses) -> MetricResult:
    value, low, high = metric.pooled(system.blocks)
    result = _empty_result(metric, system, len(system))
    if math.isnan(value):
        return replace(result, reason="no response has a score")
    return replace(result, value=value, low=low, high=high, reason=metric.no_interval)


def _empty_result(metric: Metric, system: SystemResponses, n: int) -> MetricResult:
    return MetricResult(
        name=metric.name,
        title=metric.title,
        better=metric.better,
        value=math.nan,
        low=math.nan,
        high=math.nan,
        n=n,
        n_undefined=len(system) - n,
        reason="",
        signature=metric.signature,
        system=system.name,
    )


def _differences(
    systems: Sequence[SystemResponses],
    metrics: Sequence[Metric],
    replicates: list[Floats],
    resampling: Resampling,
) -> Iterator[MetricDifference]:
    if not metrics or not resampling.n_replicates:
        return
    rows: list[list[MetricDifference]] = [[] for _ in metrics]
    shared = _same_items(systems)
    for a, b in combinations(range(len(systems)), 2):
        pair = (systems[a], systems[b])
        if shared:
            tables: list[RowTable | Floats] = [system.table for system in pair]
            of_pair = [replicates[a], replicates[b]]
            totals = [system.total for system in pair]
        else:
            common = _common_rows(*pair)
            if not common[0].size:
                continue
            tables = [system.table.take(rows) for system, rows in zip(pair, common, strict=True)]
            of_pair = _resample(tables, resampling)
            totals = [table[:].sum(axis=0) for table in tables]
        for place, metric in enumerate(metrics):
            columns = pair[0].columns[place]
            shared_items = _n_of_both(tables, columns)
            of_metric = [sums[:, columns] for sums in of_pair]
            whole = [total[columns] for total in totals]
            rows[place].append(_difference(metric, pair, shared_items, whole, of_metric, resampling))
    for of_metric_rows in rows:
        adjusted = holm([row.p for row in of_metric_rows]).adjusted
        for row, p in zip(of_metric_rows, adjusted, strict=True):
            yield replace(row, p_holm=float(p))


class _Shared(NamedTuple):
    """Items for which both have a score, and those on which they differ."""

    n: int
    n_different: int


def _n_of_both(tables: Sequence[RowTable | Floats], columns: slice) -> _Shared:
    n = n_different = 0
    for begin in range(0, len(tables[0]), ROWS):
        one, other = (table[begin : begin + ROWS][:, columns] for table in tables)
        both = one[:, -1] * other[:, -1] > 0
        n += int(both.sum())
        n_different += int((both & (one != other).any(axis=1)).sum())
    return _Shared(n, n_different)


def _common_rows(one: SystemResponses, other: SystemResponses) -> tuple[Ints, Ints]:
    """The rows of both that are about the same item."""
    places = {item: row for row, item in enumerate(other.items)}
    pairs = [(row, places[item]) for row, item in enumerate(one.items) if item in places]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _difference(
    metric: Metric,
    pair: Sequence[SystemResponses],
    shared: _Shared,
    totals: Sequence[Floats],
    replicates: Sequence[Floats],
    resampling: Resampling,
) -> MetricDifference:
    values = [float(_values(metric, total)) if total[-1] else math.nan for total in totals]
    difference = values[0] - values[1]
    low = high = p = math.nan
    if shared.n >= 2:
        drawn = _values(metric, replicates[0]) - _values(metric, replicates[1])
        drawn = drawn[np.isfinite(drawn)]
        interval = percentile_interval(drawn, resampling.confidence)
        low, high = interval.low, interval.high
        n_as_large = int((np.abs(drawn - difference) >= abs(difference) - _TIE).sum())
        p = max((1 + n_as_large) / (1 + drawn.size), least_p(shared.n_different))
    names = (metric.name, pair[0].name, pair[1].name)
    return MetricDifference(*names, difference, low, high, p, math.nan, shared.n)


def _check_lengths(predictions: Sequence[str], given: dict[str, Any]) -> None:
    if not predictions:
        raise UserError("there are no predictions to evaluate")
    problems = [
        f"{len(column):,} {name} for {len(predictions):,} predictions"
        for name, column in given.items()
        if column is not None and len(column) != len(predictions)
    ]
    if problems:
        raise UserError(
            "predictions and what they are compared with must match one to one:", problems=problems
        )


def _as_tuple(reference: str | Sequence[str]) -> tuple[str, ...]:
    return (reference,) if isinstance(reference, str) else tuple(reference)


def _as_turns(context: str | Sequence[Turn]) -> tuple[Turn, ...]:
    if isinstance(context, str):
        return (Turn(speaker=USER, text=context),) if context.strip() else ()
    return tuple(context)
