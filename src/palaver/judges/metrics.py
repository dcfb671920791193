"""A metric as a judge: its score of each response, or one figure for all responses of a system."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from palaver.metrics.examples import Example, Examples
from palaver.metrics.file_scores import ALL_RESPONSES, example_of
from palaver.metrics.metric import Metric
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real


class MetricJudge(Named):
    """Rates responses; those it has no score for (an empty one has no diversity) get no rating."""

    kind: Kind = "metric"
    looks_at: frozenset[Judged] = frozenset({"responses"})

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.name = metric.name
        self.signature = metric.signature
        self.needs: frozenset[Need] = frozenset(metric.needs)
        self.whole = metric.whole is not None
        self.criteria: tuple[Criterion, ...] = (
            Criterion(name=metric.name, scale=Real(), better=metric.better, title=metric.title),
        )

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        responses = [response for response in batch if isinstance(response, Response)]
        if self.metric.whole is not None:
            by_system: dict[str, list[Example]] = {}
            for response in responses:
                by_system.setdefault(response.judged_system, []).append(example_of(response))
            for system, examples in by_system.items():
                yield from self._rating(ALL_RESPONSES, system, self.metric.whole(Examples.of(examples)))
        elif self.metric.scores is not None and responses:
            scores = self.metric.scores(Examples.of([example_of(response) for response in responses]))
            for response, value in zip(responses, scores, strict=True):
                yield from self._rating(response.id, response.judged_system, value)

    def _rating(self, item: str, system: str, value: float) -> Iterator[Rating]:
        if not math.isnan(value):
            yield Rating(
                item=item, system=system, rater=self.name, criterion=self.name, value=float(value),
                kind=self.kind, signature=self.signature,
            )  # fmt: skip
