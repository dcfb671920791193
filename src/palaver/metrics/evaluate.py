"""Several metrics of one or more systems' responses: figures, bootstrap intervals and paired tests.

Every metric that has an interval follows from sums over responses. A bootstrap replicate of all metrics of
all systems is therefore one row of weights times one table, and systems that answered the same items are
compared on the same replicates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from palaver.errors import UserError, check_list, count_of
from palaver.metrics.differences import MetricDifference, compare_pairs
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import METRICS, Floats, Metric, open_metric
from palaver.metrics.systems import SystemResponses, replicate_sums, value_of, why_no_width
from palaver.progress import Progress, no_progress
from palaver.schema.dialogue import Turn
from palaver.schema.response import USER
from palaver.statistics.bootstrap import Resampling, percentile_interval
from palaver.tabular import Tabular, columns_of, few, show_number


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
    replicates = replicate_sums(systems, sums, resampling)
    rows = []
    for metric in metrics:
        for system, of_system in zip(systems, replicates, strict=True):
            if not metric.has_scores:
                rows.append(_whole_result(metric, system))
            else:
                columns = system.columns[sums.index(metric)]
                of_metric = of_system[:, columns]
                rows.append(_result(metric, system, system.total[columns], of_metric, resampling))
    return tuple(rows), tuple(compare_pairs(systems, sums, replicates, resampling))


def _result(
    metric: Metric, system: SystemResponses, total: Floats, replicates: Floats, resampling: Resampling
) -> MetricResult:
    n = int(total[-1])
    result = _empty_result(metric, system, n)
    if not n:
        return replace(result, reason="no response has a score")
    value = float(value_of(metric, total))
    if not len(replicates):
        return replace(result, value=value, reason="no replicates were asked for")
    if n < 2:
        return replace(result, value=value, reason="an interval needs two responses with a score, found one")
    interval = percentile_interval(value_of(metric, replicates), resampling.confidence)
    reason = why_no_width(interval)
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
