"""Automatic metrics of responses: overlap and diversity."""

from palaver.metrics.diversity import distinct_n, diversity_n, diversity_of
from palaver.metrics.evaluate import Evaluation, MetricResult, evaluate
from palaver.metrics.metric import METRICS, Metric
from palaver.metrics.overlap import n_gram_overlap_with_knowledge, unigram_f1

__all__ = [
    "METRICS",
    "Evaluation",
    "Metric",
    "MetricResult",
    "distinct_n",
    "diversity_n",
    "diversity_of",
    "evaluate",
    "n_gram_overlap_with_knowledge",
    "unigram_f1",
]
