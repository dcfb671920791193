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
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from palaver.personality.counts import KNOWN, Counter
from palaver.personality.features import soften
from palaver.personality.lexicon import Lexicon
from palaver.personality.norms import Norms

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_MRC = "AOA BROWN-FREQ CONC FAM IMAG K-F-FREQ K-F-NCATS K-F-NSAMP MEANC MEANP NLET NPHON NSYL T-L-FREQ"
_SURFACE = "WC WPS Qmarks Unique Dic Sixltr Abbreviations Emoticons"
_LIWC = (
    "Pronoun I We Self You Other Negate Assent Article Preps Number Affect Posemo Posfeel Optim Negemo Anx "
    "Anger Sad Cogmech Cause Insight Discrep Inhib Tentat Certain Senses See Hear Feel Social Comm Othref "
    "Humans Time Past Present Future Space Up Down Incl Excl Motion Achieve Relig Sexual Swear Nonfl Fillers"
)
_MARKS = "Period Comma Colon SemiC QMark Exclam Dash Quote Apostro Parenth OtherP AllPct"
MRC = tuple(_MRC.split())
FEATURES = (*MRC, *_SURFACE.split(), *_LIWC.split(), *_MARKS.split())
"""The published order."""
NEVER_PUBLISHED = ("BROWN-FREQ", "K-F-FREQ", "K-F-NCATS", "K-F-NSAMP", "T-L-FREQ")
"""In the list of attributes, but without values and so without weights."""
HELD = ("WC", "Unique", "Abbreviations", "Emoticons")

OPEN_NAMES = {
    "Dic": KNOWN,
    "Sixltr": "long_words",
    "Pronoun": "pronoun",
    "I": "i",
    "Self": "self",
    "Article": "article",
    "Preps": "preposition",
    "Affect": "affect",
    "Posemo": "positive",
    "Cogmech": "cognitive",
    "Time": "time",
    "Present": "present",
    "Incl": "inclusive",
}
"""Our own names of what comes near to a feature: where the search for its mean begins."""

# Later LIWC dictionaries say other things, or say them in parts; the first line of which all parts are there
# is taken.
_ALSO: dict[str, tuple[tuple[str, ...], ...]] = {
    "Self": (("i", "we"),),
    "Other": (("shehe", "they"),),
    "Othref": (("we", "you", "shehe", "they"),),
    "Preps": (("prep",),),
    "Senses": (("percept",), ("see", "hear", "feel")),
    "Cogmech": (("cogproc",),),
    "Humans": (("human",),),
    "Past": (("focuspast",),),
    "Present": (("focuspresent",),),
    "Future": (("focusfuture",),),
    "Excl": (("differ",),),
    "Fillers": (("filler",),),
    "Number": (("numbers",),),
}
_MARK_COLUMNS = {
    "Period": "period",
    "Comma": "comma",
    "Colon": "colon",
    "SemiC": "semicolon",
    "QMark": "question_mark",
    "Exclam": "exclamation_mark",
    "Dash": "dash",
    "Quote": "quote",
    "Apostro": "apostrophe",
    "OtherP": "other_mark",
}
_LIMIT = 6.0


class MairesseRecogniser:
    """Counts with a LIWC dictionary, scores with the published regression."""

    name = "mairesse-2007"

    def __init__(self, lexicon: Lexicon, norms: Norms | None = None) -> None:
        self.counter = Counter(lexicon, {n: v for n, v in (norms or {}).items() if n in MRC})
        self.columns = self.counter.columns
        text = files("palaver.personality").joinpath("mairesse.json").read_text(encoding="utf-8")
        content = json.loads(text)
        self._table = {name: np.array(row) for name, row in content["features"].items()}
        self._intercepts = np.array(content["intercepts"])
        place = {name: i for i, name in enumerate(self.columns)}
        folded = {c.casefold(): place[c] for c in lexicon.categories}
        self._parts = {name: _parts(name, folded, place) for name in FEATURES}
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
                    features[:, i] = words / sentences
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
        for name, (mean, sd, *weights) in self._table.items():
            z = np.nan_to_num(soften((raw[:, FEATURES.index(name)] - mean) / sd, _LIMIT))
            scores += z[:, None] * np.array(weights)
        return np.where(totals[:, :1] > 0, np.clip(scores, 1.0, 7.0), np.nan)


def _parts(name: str, folded: dict[str, int], place: dict[str, int]) -> list[int] | None:
    """The columns that a feature is the sum of; None where it cannot be given."""
    if name in HELD:
        return None
    if name in MRC:
        return [place[f"sum:{name}"]] if f"sum:{name}" in place else None
    if name in ("WPS", "Qmarks"):
        return [place["questions"]]
    if name in ("Dic", "Sixltr"):
        return [place[OPEN_NAMES[name]]]
    if name in _MARK_COLUMNS:
        return [place[_MARK_COLUMNS[name]]]
    if name == "Parenth":
        return [place["parenthesis"]]
    if name == "AllPct":
        return [place[mark] for mark in (*_MARK_COLUMNS.values(), "parenthesis")]
    for parts in ((name.casefold(),), *_ALSO.get(name, ())):
        if all(part in folded for part in parts):
            return [folded[part] for part in parts]
    return None
