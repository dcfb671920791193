"""What a metric is, and the list of them: name, title, direction, needs and version stand beside the code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from palaver import __version__
from palaver.errors import UserError
from palaver.files import sha256_of
from palaver.registry import Registry, call_plugin, parameters_of, source_file
from palaver.schema.judge import Direction, Need


class Example(NamedTuple):
    """One response to be judged, the true response (or several) and the sentence it was grounded in."""

    prediction: str
    references: tuple[str, ...] = ()
    knowledge: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A figure over a set of responses.

    `per_example` gives the score of one response (nan: undefined, left out of the mean and counted); the
    figure is their mean. A figure that is no mean has `whole` instead, and `no_interval` says why there is no
    bootstrap interval.
    """

    name: str
    title: str
    better: Direction
    needs: tuple[Need, ...] = ()
    settings: str
    """All that changes the figure, for the signature: "words:palaver|n:2|per:response"."""
    per_example: Callable[[Example], float] | None = None
    whole: Callable[[Sequence[Example]], float] | None = None
    no_interval: str = ""

    @property
    def signature(self) -> str:
        """What to print beside a figure so that others can compute the same one."""
        return f"{self.name}|{self.settings}|palaver:{__version__}"


def _plugin(name: str, brought: Any) -> Metric:
    """What a plug-in brings: a `Metric`, or a function that scores one response.

    The function is given the response and, if it has parameters `references` and `knowledge`, those as well.
    Higher is better unless it has the attribute `better`.
    """
    if isinstance(brought, Metric):
        return brought
    if not callable(brought):
        raise UserError(f"{name} is no metric and no function", "expected a function of a response's text")
    needs = tuple(need for need in get_args(Need) if need in parameters_of(brought)[1:])

    def per_example(example: Example) -> float:
        more = {need: getattr(example, need) for need in needs}
        score = call_plugin(name, brought, example.prediction, **more)
        try:
            return float(score)
        except (TypeError, ValueError):
            raise UserError(f"the metric {name} should return a number, returned {score!r}") from None

    file = source_file(brought)
    source = sha256_of(file)[:8] if file is not None else "unknown"
    return Metric(
        name=name,
        title=(inspect.getdoc(brought) or name).splitlines()[0].rstrip("."),
        better=getattr(brought, "better", "higher"),
        needs=needs,
        settings=f"function:{brought.__module__}|source:{source}|mean:responses",
        per_example=per_example,
    )


METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "unigram_f1": "palaver.metrics.overlap:UNIGRAM_F1",
        "knowledge_overlap_1": "palaver.metrics.overlap:KNOWLEDGE_OVERLAP_1",
        "knowledge_overlap_2": "palaver.metrics.overlap:KNOWLEDGE_OVERLAP_2",
        "diversity_1": "palaver.metrics.diversity:DIVERSITY_1",
        "diversity_2": "palaver.metrics.diversity:DIVERSITY_2",
        "diversity_2_ngrams": "palaver.metrics.diversity:DIVERSITY_2_NGRAMS",
        "distinct_1": "palaver.metrics.diversity:DISTINCT_1",
        "distinct_2": "palaver.metrics.diversity:DISTINCT_2",
        "words": "palaver.metrics.length:WORDS",
    },
    group="palaver.metrics",
    adapt=_plugin,
)
