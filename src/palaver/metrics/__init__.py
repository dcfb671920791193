"""Automatic metrics of responses: perplexity, overlap, diversity."""

from palaver.metrics.diversity import distinct_n, diversity_n, diversity_of
from palaver.metrics.evaluate import Evaluation, MetricResult, evaluate
from palaver.metrics.metric import METRICS, Metric
from palaver.metrics.overlap import n_gram_overlap_with_knowledge, unigram_f1
from palaver.metrics.perplexity import Perplexity, corpus_perplexity, perplexity

__all__ = [
    "METRICS",
    "Evaluation",
    "Metric",
    "MetricResult",
    "Perplexity",
    "corpus_perplexity",
    "distinct_n",
    "diversity_n",
    "diversity_of",
    "evaluate",
    "n_gram_overlap_with_knowledge",
    "perplexity",
    "unigram_f1",
]
