"""A metric as a judge: its score of each response, or one figure for all responses of a system."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from palaver.metrics.examples import Examples
from palaver.metrics.file_scores import ALL_RESPONSES, CUT, example_of
from palaver.metrics.metric import Metric
from palaver.progress import no_progress
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
        self.whole = metric.together or not metric.has_scores
        self.criteria: tuple[Criterion, ...] = (
            Criterion(name=metric.name, scale=Real(), better=metric.better, title=metric.title),
        )
        self.notes: Counter[str] = Counter()

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        responses = [response for response in batch if isinstance(response, Response)]
        rows_of: dict[str, list[int]] = {}
        for row, response in enumerate(responses):
            rows_of.setdefault(response.judged_system, []).append(row)
        systems = {
            system: Examples.of([example_of(responses[row]) for row in rows])
            for system, rows in rows_of.items()
        }
        if self.metric.prepare is not None:
            self.metric.prepare(list(systems.values()), no_progress)
        scores = np.full(len(responses), np.nan)
        for system, examples in systems.items():
            if self.metric.n_cut is not None and (n_cut := self.metric.n_cut(examples)):
                self.notes[f"responses {CUT}"] += n_cut
            if self.metric.scores is None:
                yield from self._rating(ALL_RESPONSES, system, self.metric.pooled([examples])[0])
            else:
                scores[rows_of[system]] = self.metric.scores(examples)
        for response, value in zip(responses, scores, strict=True):
            yield from self._rating(response.id, response.judged_system, value)

    def _rating(self, item: str, system: str, value: float) -> Iterator[Rating]:
        if not math.isnan(value):
            yield Rating(
                item=item, system=system, rater=self.name, criterion=self.name, value=float(value),
                kind=self.kind, signature=self.signature,
            )  # fmt: skip
