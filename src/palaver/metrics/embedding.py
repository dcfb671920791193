"""Responses compared with their references by vectors of their tokens, from any encoder that has such.

`embedding_average`, `embedding_greedy` and `embedding_extrema` (Liu et al. 2016) were made for word vectors:
the cosine of the mean vectors; the mean cosine of each token with its nearest one, both ways; the cosine of
the vectors of the most extreme value in each dimension. `bertscore` (Zhang et al. 2020) is the harmonic mean
of precision and recall of greedy matches. It equals the package bert_score on the same encoder and layer:
the marks around a text can be matched, but do not count.

Each distinct text is encoded once for all systems and all metrics of one encoder; texts of like length share
a batch.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError
from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric
from palaver.models.encoders import Encoder, Places, open_encoder
from palaver.models.encoders.encoder import TokenVectors
from palaver.progress import Progress, no_progress

COLUMNS = ("average", "greedy", "extrema", "precision", "recall", "f", "cut")
"""What is found of each pair of texts; `cut`: whether one was longer than the encoder reads."""
MAX_TOKENS = 512
_PAIRS = 4096
"""Pairs of texts whose vectors are looked up at a time."""
_CACHE_BYTES = 1 << 30


class TextVectors(NamedTuple):
    """One text, ready to be compared; all vectors have length 1."""

    ids: NDArray[np.int64]  # (T,)
    units: NDArray[np.float32]  # (T, C)
    is_text: NDArray[np.bool_]  # (T,)
    average: NDArray[np.float32]  # (C,)
    extrema: NDArray[np.float32]  # (C,)
    is_cut: bool

    @property
    def n_tokens(self) -> int:
        """Without the marks around the text."""
        return int(self.is_text.sum())


class TokenEncoder:
    """An encoder's vectors of texts; those asked for lately are kept."""

    def __init__(self, encoder: Encoder) -> None:
        if encoder.tokens is None:
            raise UserError(
                f"the encoder {encoder.name} has no vectors of tokens, which this metric compares",
                "use minilm, glove, smollm2, bge-small, or the folder of a Transformer",
            )
        self.name = f"{encoder.name}@{encoder.signature[:8]}"
        self._encode = encoder.tokens
        self._kept: OrderedDict[str, TextVectors] = OrderedDict()
        self._n_bytes = 0

    def vectors(self, texts: Sequence[str]) -> dict[str, TextVectors]:
        """Of each distinct text."""
        distinct = list(dict.fromkeys(texts))
        found = {text: self._kept[text] for text in distinct if text in self._kept}
        new = [text for text in distinct if text not in found]
        for text, tokens in zip(new, self._encode(new) if new else (), strict=True):
            found[text] = self._kept[text] = _ready(tokens)
            self._n_bytes += found[text].units.nbytes
        for text in distinct:
            self._kept.move_to_end(text)
        while self._n_bytes > _CACHE_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._n_bytes -= dropped.units.nbytes
        return found


def _ready(tokens: TokenVectors) -> TextVectors:
    of_text = tokens.vectors[tokens.is_text]
    if len(of_text):
        lowest, highest = of_text.min(axis=0), of_text.max(axis=0)
        extrema = np.where(np.abs(lowest) > highest, lowest, highest)
        average = of_text.mean(axis=0, dtype=np.float64)
    else:
        average = extrema = np.zeros(tokens.vectors.shape[1], np.float32)
    return TextVectors(
        tokens.ids, _unit(tokens.vectors), tokens.is_text, _unit(average), _unit(extrema), tokens.is_cut
    )


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: NDArray[np.float32] = (vectors / np.where(length > 0, length, 1)).astype(np.float32)
    return units


def compare(
    own: TextVectors, reference: TextVectors, weights: Mapping[int, float] | None = None
) -> tuple[float, ...]:
    """The figures of `COLUMNS`. nan without a token in the reference, 0 without one in the response."""
    is_cut = float(own.is_cut or reference.is_cut)
    if not reference.n_tokens:
        return (np.nan,) * 6 + (is_cut,)
    if not own.n_tokens:
        return (0.0,) * 6 + (is_cut,)
    cosines = own.units @ reference.units.T  # (T, S)
    of_text = cosines[own.is_text][:, reference.is_text]
    greedy = (of_text.max(axis=1).mean() + of_text.max(axis=0).mean()) / 2
    near = cosines.clip(min=0)  # bert_score pads with zeros, so that no best match is below 0
    precision = _weighted(near.max(axis=1), own, weights)
    recall = _weighted(near.max(axis=0), reference, weights)
    f = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    average, extrema = own.average @ reference.average, own.extrema @ reference.extrema
    return float(average), float(greedy), float(extrema), precision, recall, f, is_cut


def _weighted(best: NDArray[np.float32], text: TextVectors, weights: Mapping[int, float] | None) -> float:
    if weights is None:
        return float(best[text.is_text].mean())
    of_tokens = np.array([weights[token] for token in text.ids[text.is_text].tolist()])
    total = of_tokens.sum()
    return float(best[text.is_text] @ of_tokens / total) if total else 0.0


def rarity(references: Sequence[str], encoder: TokenEncoder) -> Mapping[int, float]:
    """The idf of each token: log((N + 1) / (n + 1)), where n of N references hold it."""
    n_with: Counter[int] = Counter()
    distinct = Counter(references)
    texts = sorted(distinct)
    for begin in range(0, len(texts), _PAIRS):
        for text, vectors in encoder.vectors(texts[begin : begin + _PAIRS]).items():
            for token in set(vectors.ids.tolist()):
                n_with[token] += distinct[text]
    size = len(references)
    weights: defaultdict[int, float] = defaultdict(lambda: math.log(size + 1))
    weights.update({token: math.log((size + 1) / (n + 1)) for token, n in n_with.items()})
    return weights


class Matches:
    """The figures of every response and reference by one encoder, with or without idf weights."""

    def __init__(self, encoder: TokenEncoder, idf: bool) -> None:
        self.encoder = encoder
        self.idf = idf
        self._key = ("matches", encoder.name, str(idf))

    def prepare(self, systems: Sequence[Examples], progress: Progress = no_progress) -> None:
        """Compare all pairs of all systems; with idf those with the same references at a time."""
        groups: dict[tuple[str, ...], list[Examples]] = {}
        for examples in systems:
            if self._key not in examples.by_models:
                of_group = tuple(_references(examples)) if self.idf else ()
                groups.setdefault(of_group, []).append(examples)
        for references, group in groups.items():
            weights = rarity(references, self.encoder) if self.idf else None
            self._compare(group, weights, progress)

    def _compare(
        self, systems: Sequence[Examples], weights: Mapping[int, float] | None, progress: Progress
    ) -> None:
        pairs_of = [_pairs(examples) for examples in systems]
        # pairs with the same reference stand together, so that it is encoded once
        distinct = sorted({pair for pairs in pairs_of for pair in pairs}, key=lambda pair: pair[::-1])
        found: dict[tuple[str, str], tuple[float, ...]] = {}
        for begin in range(0, len(distinct), _PAIRS):
            progress("comparing vectors", begin, len(distinct))
            part = distinct[begin : begin + _PAIRS]
            vectors = self.encoder.vectors([text for pair in part for text in pair])
            for own, reference in part:
                found[own, reference] = compare(vectors[own], vectors[reference], weights)
        for examples, pairs in zip(systems, pairs_of, strict=True):
            table = np.array([found[pair] for pair in pairs]).reshape(-1, len(COLUMNS))
            examples.by_models[self._key] = table

    def column(self, examples: Examples, name: str) -> Floats:
        """The best of each response's references."""
        self.prepare([examples])
        return examples.best(examples.by_models[self._key][:, COLUMNS.index(name)])

    def n_cut(self, examples: Examples) -> int:
        """Responses that were not read whole, or had such a reference."""
        return int(np.nansum(self.column(examples, "cut")))


def _pairs(examples: Examples) -> list[tuple[str, str]]:
    assert examples.rows is not None
    return [(row.prediction, reference) for row in examples.rows for reference in row.references]


def _references(examples: Examples) -> list[str]:
    return [reference for _, reference in _pairs(examples)]


@lru_cache(maxsize=4)
def token_encoder(name: str, device: str) -> TokenEncoder:
    """The encoder, which all metrics that name it share."""
    return TokenEncoder(open_encoder(name, Places(device=device, max_tokens=MAX_TOKENS)))


@lru_cache(maxsize=8)
def _matches(name: str, device: str, idf: bool) -> Matches:
    return Matches(token_encoder(name, device), idf)


def _declare(name: str, title: str, column: str, settings: str, *, idf: bool = False) -> Metric:
    def with_model(which: str, device: str) -> Metric:
        matches = _matches(which, device, idf)
        return replace(
            metric,
            settings=f"encoder:{matches.encoder.name}|{settings}",
            scores=lambda examples: matches.column(examples, column),
            prepare=matches.prepare,
            n_cut=matches.n_cut,
        )

    metric = Metric(
        name=name,
        title=title,
        better="higher",
        needs=("references",),
        settings=settings,
        scores=lambda examples: _matches("minilm", "auto", idf).column(examples, column),
        of_texts=True,
        together=idf,
        model="minilm",
        with_model=with_model,
    )
    return metric


_MEAN = "references:best|mean:responses"
_BERTSCORE = f"idf:no|rescale:no|{_MEAN}"
AVERAGE = _declare("embedding_average", "Cosine of the mean vectors", "average", f"tokens:all|{_MEAN}")
GREEDY = _declare("embedding_greedy", "Mean cosine of the nearest tokens", "greedy", f"both-ways|{_MEAN}")
EXTREMA = _declare("embedding_extrema", "Cosine of the extreme vectors", "extrema", f"tokens:all|{_MEAN}")
BERTSCORE = _declare("bertscore", "BERTScore, F", "f", _BERTSCORE)
BERTSCORE_PRECISION = _declare("bertscore_precision", "BERTScore, precision", "precision", _BERTSCORE)
BERTSCORE_RECALL = _declare("bertscore_recall", "BERTScore, recall", "recall", _BERTSCORE)
BERTSCORE_IDF = _declare(
    "bertscore_idf",
    "BERTScore, F, rare tokens count more",
    "f",
    f"idf:references|rescale:no|{_MEAN}",
    idf=True,
)
