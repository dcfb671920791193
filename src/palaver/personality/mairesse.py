"""The recogniser of Mairesse, Walker, Mehl & Moore (2007) itself, for those who own a LIWC dictionary.

Its 84 features are rates of LIWC categories, surface features and, with the MRC file, means of word norms,
in the order of the published attribute list. The regression and the mean and standard deviation of each
feature were recovered from the published features and scores of the essays
(experiments/personality/mairesse.py), so no LIWC word list is involved here.

What cannot be given is held at the mean of the essays, where it has no say: the number of words and the
share of different words (both depend on how much text there is, not on who speaks, and the second does not
add up), abbreviations and emoticons (no essay, or seven of them, had any), norms without the MRC file, and
categories that the dictionary lacks.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from palaver.personality.counts import Counter
from palaver.personality.features import soften
from palaver.personality.lexicon import Lexicon
from palaver.personality.norms import Norms
from palaver.registry import Named

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_TABLE = tomllib.loads(
    files("palaver.personality").joinpath("mairesse_features.toml").read_text(encoding="utf-8")
)
"""Group -> feature -> the lists of columns that it may be the sum of."""
MRC = tuple(_TABLE["norms"])
FEATURES = tuple(name for group in _TABLE.values() for name in group)
"""The published order."""
HELD = tuple(name for name, choices in _TABLE["surface"].items() if not choices)


class MairesseRecogniser(Named):
    """Counts with a LIWC dictionary, scores with the published regression."""

    name = "mairesse-2007"

    def __init__(self, lexicon: Lexicon, norms: Norms | None = None) -> None:
        self.counter = Counter(lexicon, {n: v for n, v in (norms or {}).items() if n in MRC})
        self.columns = self.counter.columns
        text = files("palaver.personality").joinpath("mairesse.json").read_text(encoding="utf-8")
        content = json.loads(text)
        self._regression = {name: np.array(row) for name, row in content["features"].items()}
        self._intercepts = np.array(content["intercepts"])
        place = {name: i for i, name in enumerate(self.columns)}
        categories = {c.casefold(): place[c] for c in lexicon.categories}
        self._parts: dict[str, list[int] | None] = {}
        for group, features in _TABLE.items():
            known = categories if group == "liwc" else place
            for name, choices in features.items():
                columns = next((c for c in choices if all(column in known for column in c)), None)
                self._parts[name] = None if columns is None else [known[column] for column in columns]
        self.missing = tuple(name for name, parts in self._parts.items() if parts is None)
        """Features that are held at the mean of the essays."""

    def count(self, utterances: Sequence[str]) -> csr_matrix:
        return self.counter.count(utterances)

    def features(self, totals: np.ndarray) -> np.ndarray:
        """(k, 84) in the published order and the units of LIWC (per cent of words); nan where not given."""
        totals = np.array(totals, dtype=np.float64, ndmin=2)
        words = totals[:, self.columns.index("words")]
        sentences = totals[:, self.columns.index("sentences")]
        features = np.full((len(totals), len(FEATURES)), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            for i, name in enumerate(FEATURES):
                parts = self._parts[name]
                if parts is None:
                    continue
                total = totals[:, parts].sum(axis=1)
                if name in MRC:
                    features[:, i] = total / totals[:, parts[0] + 1]
                elif name == "WPS":
                    features[:, i] = total / sentences
                elif name == "Qmarks":
                    features[:, i] = 100 * total / sentences
                else:  # LIWC counts pairs of brackets
                    features[:, i] = 100 * total / words / (2 if name == "Parenth" else 1)
        return features

    def score(self, totals: np.ndarray) -> np.ndarray:
        """(k, 5) OCEAN from 1 to 7; nan where there are no words."""
        totals = np.array(totals, dtype=np.float64, ndmin=2)
        raw = self.features(totals)
        scores = np.tile(self._intercepts, (len(totals), 1))
        for name, (mean, sd, *weights) in self._regression.items():
            z = np.nan_to_num(soften((raw[:, FEATURES.index(name)] - mean) / sd))
            scores += z[:, None] * np.array(weights)
        return np.where(totals[:, :1] > 0, np.clip(scores, 1.0, 7.0), np.nan)
