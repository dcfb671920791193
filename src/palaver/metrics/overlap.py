"""Words a response shares with the true response, or with the knowledge it was given.

`unigram_f1` is ParlAI's, which Topical-Chat reports (Gopalakrishnan et al. 2019, section 6): both texts are
lower-cased, every ASCII punctuation mark becomes a space, the articles *a, an, the* are taken out, and the
words left are compared as bags. Curly quotes count as straight ones, which ParlAI does not do.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

from palaver.metrics.diversity import ngrams
from palaver.metrics.metric import Example, Metric
from palaver.text.tfidf import terms

_BLANK = str.maketrans(
    dict.fromkeys(string.punctuation, " ") | dict.fromkeys("‘’“”", " ")
)  # "don't" becomes two words, as in ParlAI
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalised_words(text: str) -> list[str]:
    """The words that `unigram_f1` compares: "The cat's, a dog" -> cat, s, dog."""
    return _ARTICLES.sub(" ", text.lower().translate(_BLANK)).split()


def unigram_f1(prediction: str, reference: str | Sequence[str]) -> float:
    """Harmonic mean of precision and recall of words; the best one if there are several references.

    Nothing in common is 0, also for an empty prediction; without any word in a reference it is nan.
    """
    references = [reference] if isinstance(reference, str) else list(reference)
    scores = [f1 for r in references if not math.isnan(f1 := _f1(normalised_words(prediction), r))]
    return max(scores, default=math.nan)


def _f1(predicted: list[str], reference: str) -> float:
    expected = normalised_words(reference)
    if not expected:
        return math.nan
    n_common = (Counter(predicted) & Counter(expected)).total()
    return 2 * n_common / (len(predicted) + len(expected))


def n_gram_overlap_with_knowledge(prediction: str, knowledge: str, n: int = 1) -> float:
    """Share of the response's word n-grams that the knowledge sentence holds, punctuation left out.

    1 is a copy, or a part of one; nan if the response has fewer than `n` words or there is no knowledge.
    """
    own, known = ngrams(terms(prediction), n), set(ngrams(terms(knowledge), n))
    if not own or not known:
        return math.nan
    return sum(gram in known for gram in own) / len(own)


def _f1_of(example: Example) -> float:
    return unigram_f1(example.prediction, example.references)


def _overlap_1(example: Example) -> float:
    return n_gram_overlap_with_knowledge(example.prediction, example.knowledge, 1)


def _overlap_2(example: Example) -> float:
    return n_gram_overlap_with_knowledge(example.prediction, example.knowledge, 2)


UNIGRAM_F1 = Metric(
    name="unigram_f1",
    title="Unigram F1",
    better="higher",
    needs=("references",),
    settings="case:lower|punctuation:removed|articles:removed|references:best|mean:responses",
    per_example=_f1_of,
)
KNOWLEDGE_OVERLAP_1 = Metric(
    name="knowledge_overlap_1",
    title="Words from the knowledge",
    better="neither",
    needs=("knowledge",),
    settings="words:palaver|punctuation:removed|n:1|mean:responses",
    per_example=_overlap_1,
)
KNOWLEDGE_OVERLAP_2 = Metric(
    name="knowledge_overlap_2",
    title="Word pairs from the knowledge",
    better="neither",
    needs=("knowledge",),
    settings="words:palaver|punctuation:removed|n:2|mean:responses",
    per_example=_overlap_2,
)
