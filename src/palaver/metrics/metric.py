"""What a metric is, and the list of them: name, title, direction, needs and version stand beside the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.registry import Registry

Floats = NDArray[np.float64]
Need = Literal["references", "knowledge"]


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
    better: Literal["higher", "lower", "neither"]
    needs: tuple[Need, ...] = ()
    settings: str
    """All that changes the figure, for the signature: "words:palaver|n:2|per:response"."""
    per_example: Callable[[Example], float] | None = None
    whole: Callable[[Sequence[Example]], float] | None = None
    no_interval: str = ""

    @property
    def signature(self) -> str:
        """What to print beside a figure so that others can compute the same one."""
        from palaver import __version__

        return f"{self.name}|{self.settings}|palaver:{__version__}"


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
)
