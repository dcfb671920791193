"""What a metric is, and the list of them: name, title, direction, needs and version stand beside the code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from palaver import __version__
from palaver.errors import UserError
from palaver.files import sha256_of
from palaver.metrics.examples import Example, Examples
from palaver.progress import Progress
from palaver.registry import Registry, call_plugin, parameters_of, source_file
from palaver.schema.judge import Direction, Need

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A figure over a set of responses.

    `scores` gives each response's score (nan: undefined, left out and counted); the figure is their mean. A
    figure that is no mean, but follows from sums over responses, has `statistics` (responses, columns) and
    `figure`, which takes their sums (…, columns). A figure that does not has `whole` instead, which goes
    through blocks of examples as often as it likes; `no_interval` says why there is no bootstrap interval. A
    metric that needs a model is opened with one by `open_metric`; what stands in `METRICS` is its
    declaration.
    """

    name: str
    title: str
    better: Direction
    needs: tuple[Need, ...] = ()
    settings: str
    """All that changes the figure, for the signature: "words:palaver|n:2|per:response"."""
    scores: Callable[[Examples], Floats] | None = None
    statistics: Callable[[Examples], Floats] | None = None
    figure: Callable[[Floats], Floats] | None = None
    whole: Callable[[Iterable[Examples]], float] | None = None
    no_interval: str = ""
    runs: Callable[[Examples], Floats] | None = None
    """Of a figure that depends on chance: its values in several runs. Their mean is the figure; the lowest
    and the highest stand in place of an interval."""
    of_texts: bool = False
    """Whether it reads the texts themselves (`Examples.rows`)."""
    together: bool = False
    """Whether a response's score depends on the other responses."""
    model: str = ""
    """The model it is computed with unless another is named after "="."""
    with_model: Callable[[str, str], Metric] | None = None
    """Where there is one: the metric with the model of that name on that device."""
    prepare: Callable[[Sequence[Examples], Progress], None] | None = None
    """Computes for several systems at once what `scores` then finds done."""
    n_cut: Callable[[Examples], int] | None = None
    """How many responses were longer than the model reads, or were compared with something that was."""

    @property
    def signature(self) -> str:
        """What to print beside a figure so that others can compute the same one."""
        return f"{self.name}|{self.settings}|palaver:{__version__}"

    @property
    def has_scores(self) -> bool:
        """Whether the figure follows from scores of single responses."""
        return self.whole is None and self.runs is None

    def pooled(self, blocks: Iterable[Examples]) -> tuple[float, float, float]:
        """The figure of a metric without scores; the lowest and the highest where there are several runs."""
        if self.runs is not None:
            (examples,) = blocks  # it reads texts, which are held in one block
            values = self.runs(examples)
            return float(values.mean()), float(values.min()), float(values.max())
        assert self.whole is not None, self.name
        return float(self.whole(blocks)), np.nan, np.nan

    def table(self, examples: Examples) -> Floats:
        """What adds up over responses, (responses, columns); a row of nan where there is no score."""
        assert self.scores is not None, self.name
        return self.scores(examples)[:, None] if self.statistics is None else self.statistics(examples)

    def value(self, sums: Floats, counts: Floats) -> Floats:
        """The figure, given the sums over so many responses. (…, columns), (…) -> (…)"""
        if self.figure is not None:
            return self.figure(sums)
        return divide(sums[..., 0], counts, counts > 0)


def divide(shares: NDArray[Any], wholes: NDArray[Any], where: NDArray[np.bool_]) -> Floats:
    """shares / wholes; nan elsewhere."""
    quotients: Floats = np.divide(shares, wholes, out=np.full(np.shape(wholes), np.nan), where=where)
    return quotients


def text_metric(
    score: Callable[[Example], float], *, name: str, title: str, better: Direction, settings: str,
    needs: tuple[Need, ...] = (),
) -> Metric:  # fmt: skip
    """A metric that scores one response at a time, from its text."""

    def scores(examples: Examples) -> Floats:
        assert examples.rows is not None, name
        return np.array([score(row) for row in examples.rows], dtype=np.float64)

    return Metric(
        name=name, title=title, better=better, needs=needs, settings=settings, scores=scores, of_texts=True
    )


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

    def score(example: Example) -> float:
        more = {need: getattr(example, need) for need in needs}
        value = call_plugin(name, brought, example.prediction, **more)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise UserError(f"the metric {name} should return a number, returned {value!r}") from None

    file = source_file(brought)
    source = sha256_of(file)[:8] if file is not None else "unknown"
    return text_metric(
        score,
        name=name,
        title=(inspect.getdoc(brought) or name).splitlines()[0].rstrip("."),
        better=getattr(brought, "better", "higher"),
        needs=needs,
        settings=f"function:{brought.__module__}|source:{source}|mean:responses",
    )


def open_metric(said: str | Metric, device: str = "auto") -> Metric:
    """The metric that `said` names: NAME, NAME=MODEL where it needs a model, or MODULE:FUNCTION."""
    if isinstance(said, Metric):
        return said
    name, _, which = said.partition("=")
    metric = METRICS.get(name)
    if metric.with_model is not None:
        return replace(metric.with_model(which or metric.model, device), name=said)
    if which:
        raise UserError(f"{name} takes nothing after '=', found {which!r}")
    return metric


METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "unigram_f1": "palaver.metrics.overlap:UNIGRAM_F1",
        "bleu": "palaver.metrics.bleu:BLEU",
        "chrf": "palaver.metrics.chrf:CHRF",
        "rouge_1": "palaver.metrics.rouge:ROUGE_1",
        "rouge_2": "palaver.metrics.rouge:ROUGE_2",
        "rouge_l": "palaver.metrics.rouge:ROUGE_L",
        "knowledge_f1": "palaver.metrics.overlap:KNOWLEDGE_F1",
        "knowledge_overlap_1": "palaver.metrics.overlap:KNOWLEDGE_OVERLAP_1",
        "knowledge_overlap_2": "palaver.metrics.overlap:KNOWLEDGE_OVERLAP_2",
        "copy_rate": "palaver.metrics.overlap:COPY_RATE",
        "diversity_1": "palaver.metrics.diversity:DIVERSITY_1",
        "diversity_2": "palaver.metrics.diversity:DIVERSITY_2",
        "diversity_2_ngrams": "palaver.metrics.diversity:DIVERSITY_2_NGRAMS",
        "distinct_1": "palaver.metrics.diversity:DISTINCT_1",
        "distinct_2": "palaver.metrics.diversity:DISTINCT_2",
        "entropy_1": "palaver.metrics.diversity:ENTROPY_1",
        "entropy_2": "palaver.metrics.diversity:ENTROPY_2",
        "entropy_4": "palaver.metrics.diversity:ENTROPY_4",
        "self_bleu": "palaver.metrics.bleu:SELF_BLEU",
        "top_1_share": "palaver.metrics.diversity:TOP_1_SHARE",
        "top_10_share": "palaver.metrics.diversity:TOP_10_SHARE",
        "words": "palaver.metrics.length:WORDS",
        "empty": "palaver.metrics.length:EMPTY",
        "over_long": "palaver.metrics.length:OVER_LONG",
        "embedding_average": "palaver.metrics.embedding:AVERAGE",
        "embedding_greedy": "palaver.metrics.embedding:GREEDY",
        "embedding_extrema": "palaver.metrics.embedding:EXTREMA",
        "bertscore": "palaver.metrics.embedding:BERTSCORE",
        "bertscore_precision": "palaver.metrics.embedding:BERTSCORE_PRECISION",
        "bertscore_recall": "palaver.metrics.embedding:BERTSCORE_RECALL",
        "bertscore_idf": "palaver.metrics.embedding:BERTSCORE_IDF",
        "mauve": "palaver.metrics.mauve:MAUVE",
        "perplexity": "palaver.metrics.likelihood:PERPLEXITY",
        "word_perplexity": "palaver.metrics.likelihood:WORD_PERPLEXITY",
        "likelihood": "palaver.metrics.likelihood:LIKELIHOOD",
        "context_gain": "palaver.metrics.likelihood:CONTEXT_GAIN",
    },
    group="palaver.metrics",
    adapt=_plugin,
)
