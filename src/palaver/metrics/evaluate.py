"""Several metrics of one set of responses: a table with percentile bootstrap intervals over responses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from palaver.errors import UserError, check_list, count_of
from palaver.metrics.metric import METRICS, Example, Metric
from palaver.statistics.bootstrap import check_fraction, percentile_interval, resample_sums
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
    """Why the figure or its interval is nan; empty otherwise."""
    signature: str


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
        return {"metrics": columns_of(MetricResult, self.rows)}

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
    metrics: Sequence[str | Metric] | None = None,
    seed: int = 0,
    n_replicates: int = 1000,
    confidence: float = 0.95,
) -> Evaluation:
    """Each metric's figure for `predictions`. Without `metrics`: all that the given columns allow.

    A reference may be one text or several; an empty `knowledge` sentence is none.
    """
    check_fraction("confidence", confidence)
    for name, texts in (("predictions", predictions), ("references", references), ("metrics", metrics)):
        check_list(name, texts)
    given = {"references": references, "knowledge": knowledge}
    _check_lengths(predictions, given)
    columns = {need for need, column in given.items() if column is not None}
    if metrics is None:
        known = [METRICS.get(name) for name in METRICS]
        chosen = [metric for metric in known if columns.issuperset(metric.needs)]
    else:
        chosen = [METRICS.get(m) if isinstance(m, str) else m for m in metrics]
    problems = [f"{m.name} needs {need}" for m in chosen for need in m.needs if need not in columns]
    if problems:
        raise UserError("something is missing for these metrics:", problems=problems)
    examples = [
        Example(
            prediction,
            () if references is None else _as_tuple(references[i]),
            "" if knowledge is None else knowledge[i],
        )
        for i, prediction in enumerate(predictions)
    ]
    rows = tuple(_result(metric, examples, seed, n_replicates, confidence) for metric in chosen)
    return Evaluation(rows, len(examples), seed, n_replicates, confidence)


def _result(
    metric: Metric, examples: Sequence[Example], seed: int, n_replicates: int, confidence: float
) -> MetricResult:
    low = high = math.nan
    n_undefined = 0
    reason = metric.no_interval
    if metric.whole is not None:
        value = metric.whole(examples)
    else:
        assert metric.per_example is not None, metric.name
        scores = np.array([metric.per_example(example) for example in examples], dtype=np.float64)
        defined = scores[~np.isnan(scores)]
        n_undefined = len(scores) - len(defined)
        value = float(defined.mean()) if len(defined) else math.nan
        if len(defined):
            sums = resample_sums(defined[:, None], n_replicates, np.random.default_rng(seed))
            interval = percentile_interval(sums[:, 0] / len(defined), confidence)
            low, high = interval.low, interval.high
    if math.isnan(value):
        reason = "no response has a score"
    return MetricResult(
        name=metric.name,
        title=metric.title,
        better=metric.better,
        value=value,
        low=low,
        high=high,
        n=len(examples) - n_undefined,
        n_undefined=n_undefined,
        reason=reason,
        signature=metric.signature,
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
