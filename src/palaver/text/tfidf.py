"""Term weights: TF-IDF and BM25, fitted on documents, as sparse matrices.

Both give a text two vectors, one as a document and one as a query, such that their scalar product is the
score: the cosine for TF-IDF (scikit-learn's smoothed idf), the BM25 sum of Robertson & Zaragoza 2009 with the
idf of Lucene for BM25. Many texts are therefore scored by one sparse product. Terms are the `words` of a text
that hold a letter or a digit; a term that was in no document has no weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError, require
from palaver.text.words import words

Floats = NDArray[np.float64]


def terms(text: str) -> list[str]:
    """The words of `text` without its punctuation."""
    return [w for w in words(text) if w[0].isalnum() or w[-1].isalnum()]


class TermWeights(Protocol):
    """What TF-IDF and BM25 have in common."""

    def documents(self, texts: Sequence[str]) -> Any:
        """One sparse row per text, as something to be found. (texts, terms)"""

    def queries(self, texts: Sequence[str]) -> Any:
        """One sparse row per text, as something to look for. (texts, terms)"""


class Tfidf:
    """TF-IDF vectors of length 1; a product is a cosine."""

    def __init__(self, documents: Iterable[str]) -> None:
        sklearn = require("sklearn.feature_extraction.text", "models")
        self._vectorizer = sklearn.TfidfVectorizer(analyzer=terms, dtype=np.float64)
        _fit(self._vectorizer, documents)

    @property
    def terms(self) -> list[str]:
        """The terms of the columns."""
        return [str(term) for term in self._vectorizer.get_feature_names_out()]

    @property
    def idf(self) -> Floats:
        """The weight of each term. (terms,)"""
        weights: Floats = self._vectorizer.idf_
        return weights

    def documents(self, texts: Sequence[str]) -> Any:
        """One sparse row per text. (texts, terms)"""
        return self._vectorizer.transform(texts)

    queries = documents


class Bm25:
    """BM25: idf · tf / (tf + k1·(1 − b + b·length/mean length)), summed over the words of the query.

    The idf is Lucene's ln(1 + (N − n + ½)/(n + ½)), never negative; like Lucene, and without effect on any
    order, the factor k1 + 1 is left out.
    """

    def __init__(self, documents: Iterable[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise UserError(f"BM25 needs k1 >= 0 and b from 0 to 1, found k1 = {k1} and b = {b}")
        sklearn = require("sklearn.feature_extraction.text", "models")
        self.k1, self.b = k1, b
        self._vectorizer = sklearn.CountVectorizer(analyzer=terms, dtype=np.float64)
        counts = _fit(self._vectorizer, documents)
        n_documents = counts.shape[0]
        n_with_term = np.bincount(counts.indices, minlength=counts.shape[1])
        self._idf = np.log1p((n_documents - n_with_term + 0.5) / (n_with_term + 0.5))  # (terms,)
        self._mean_length = counts.sum() / n_documents

    def documents(self, texts: Sequence[str]) -> Any:
        """One sparse row per text. (texts, terms)"""
        counts = self._vectorizer.transform(texts)
        lengths = np.array([len(terms(text)) for text in texts], dtype=np.float64)  # unknown terms count too
        norms = self.k1 * (1 - self.b + self.b * lengths / self._mean_length)  # (texts,)
        tf = counts.data
        counts.data = self._idf[counts.indices] * tf / (tf + np.repeat(norms, np.diff(counts.indptr)))
        return counts

    def queries(self, texts: Sequence[str]) -> Any:
        """One sparse row of counts per text. (texts, terms)"""
        return self._vectorizer.transform(texts)


def _fit(vectorizer: Any, documents: Iterable[str]) -> Any:
    try:
        return vectorizer.fit_transform(documents)
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise UserError("cannot weigh terms: the documents hold no words", "are there any?") from error
