"""The recogniser: text -> OCEAN, each trait from 1 to 7.

The default one follows Mairesse et al. (2007): counts of word categories and surface features, a linear
regression for each trait. It is fitted on open features only (docs/reference/recogniser.md is its card).
With a LIWC dictionary that the user owns, the features are those of Mairesse et al. and the regression is
their own.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from palaver.corpora.personalities import TRAITS, trait_values
from palaver.errors import DataError, UserError, check_list, nearest
from palaver.files import TextStream, write_atomically
from palaver.personality.counts import Counter
from palaver.personality.features import Standard, feature_names
from palaver.personality.lexicon import Lexicon, open_lexicon, read_lexicon
from palaver.personality.mairesse import MairesseRecogniser
from palaver.personality.norms import Norms, read_norms
from palaver.registry import Named, Registry, call_plugin, is_object_name
from palaver.tabular import Tabular, show_number

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LOWEST, HIGHEST = 1.0, 7.0
FORMAT = "palaver-recogniser-1"


class Recogniser(Protocol):
    """What distinguishability needs: counts that add up, and scores of totals."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    def count(self, utterances: Sequence[str]) -> csr_matrix:
        """(n, f) additive statistics of each utterance."""

    def score(self, totals: np.ndarray) -> np.ndarray:
        """(k, f) summed rows -> (k, 5) OCEAN from 1 to 7; nan where there are no words."""


@dataclass(frozen=True, repr=False)
class LinearRecogniser(Named):
    """A regression for each trait on standardised rates."""

    name: str
    counter: Counter
    standard: Standard
    weights: np.ndarray  # (features, 5)
    intercepts: np.ndarray  # (5,)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.counter.columns

    @property
    def feature_names(self) -> tuple[str, ...]:
        return feature_names(self.columns)

    def count(self, utterances: Sequence[str]) -> csr_matrix:
        return self.counter.count(utterances)

    def score(self, totals: np.ndarray) -> np.ndarray:
        totals = np.atleast_2d(np.asarray(totals, dtype=np.float64))
        features = self.standard.features(self.counter.complete(totals))
        scores = np.clip(features @ self.weights + self.intercepts, LOWEST, HIGHEST)
        return np.where(totals[:, :1] > 0, scores, np.nan)  # the first column counts words

    def save(self, path: Path) -> None:
        """A small JSON file; the same recogniser gives the same bytes."""
        s = self.standard
        content = {
            "format": FORMAT,
            "name": self.name,
            "lexicon": {"kind": self.counter.lexicon.kind, "signature": self.counter.lexicon.signature},
            "norms": list(self.counter.norms),
            "traits": TRAITS,
            "prior": s.prior,
            "intercepts": _rounded(self.intercepts),
            "columns": {c: _rounded([v])[0] for c, v in zip(s.columns, s.average, strict=True)},
            "features": {
                name: _rounded([s.mean[i], s.sd[i] if np.isfinite(s.sd[i]) else 0.0, *self.weights[i]])
                for i, name in enumerate(self.feature_names)
            },
            "provenance": dict(self.provenance),
        }
        lines = json.dumps(content, indent=1, ensure_ascii=False)
        with write_atomically(path) as file:  # lists of numbers on one line each
            file.write(re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", _one_line, lines) + "\n")


def _one_line(numbers: re.Match[str]) -> str:
    return "[" + re.sub(r",\s+", ", ", numbers.group(1)) + "]"


def _rounded(values: Any) -> list[float]:
    return [float(f"{v:.7g}") for v in values]


class FunctionRecogniser(Named):
    """Any function from texts to five scores: a scikit-learn pipeline, a transformers model, a service.

    It may return an (n, 5) array in the order of OCEAN, or for each text a mapping trait -> score. Its
    scores do not add up over utterances, so `count` is None and samples are joined into texts.
    """

    count = None

    def __init__(self, function: Callable[[list[str]], Any], name: str = "") -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 5); what the function returned is checked."""
        given = call_plugin(self.name, self.function, list(texts))
        if isinstance(given, Mapping):  # trait -> scores of all texts
            given = [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
        rows = [self._row(row) for row in given] if not isinstance(given, np.ndarray) else given
        try:
            scores = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise UserError(
                f"the recogniser {self.name} returned something that is no table of numbers"
            ) from None
        if scores.shape != (len(texts), 5):
            raise UserError(
                f"the recogniser {self.name} should return {len(texts)} x 5 scores, returned "
                f"{' x '.join(map(str, scores.shape))}",
                f"one row for each text: {', '.join(TRAITS)}",
            )
        wrong = ~((scores >= LOWEST) & (scores <= HIGHEST))
        if wrong.any():
            row, trait = np.argwhere(wrong)[0]
            raise UserError(
                f"the recogniser {self.name} should give scores from 1 to 7, gave {scores[row, trait]:g} for "
                f"{TRAITS[trait]} (text {row + 1}; {wrong.sum():,} such scores in all)"
            )
        return scores

    def _row(self, row: Any) -> list[Any]:
        if not isinstance(row, Mapping):
            return list(row) if isinstance(row, Sequence | np.ndarray) else [row]
        values = trait_values(row)
        missing = [trait for trait, value in zip(TRAITS, values, strict=True) if value is None]
        if missing:
            raise UserError(
                f"the recogniser {self.name} gives no {' and no '.join(missing)}",
                f"it gave {', '.join(map(str, row)) or 'nothing'}; needed: {', '.join(TRAITS)}",
            )
        return values


AnyRecogniser = Recogniser | FunctionRecogniser


@dataclass(frozen=True, repr=False, eq=False)
class TraitScores(Tabular):
    """The five traits of each text, from 1 to 7. NumPy takes it for the array of its `values`."""

    texts: tuple[str, ...]
    values: np.ndarray
    """(n, 5), in the order of OCEAN; nan where a text has no words."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def _headline(self) -> str:
        if len(self.values) != 1:
            return f"{', '.join(TRAITS)} of {len(self.values):,} texts"
        return ", ".join(f"{trait} {show_number(v)}" for trait, v in zip(TRAITS, self.values[0], strict=True))

    def _tables(self) -> dict[str, Any]:
        return {"traits": {"text": self.texts, **dict(zip(TRAITS, self.values.T, strict=True))}}


def score_texts(recogniser: str | AnyRecogniser, texts: Sequence[str]) -> TraitScores:
    """The five traits (OCEAN) of whole texts. `recogniser` is a name, or what `load_recogniser` gives."""
    check_list("texts", texts)
    if isinstance(recogniser, str):
        recogniser = load_recogniser(recogniser)
    if getattr(recogniser, "count", None) is None:
        scores = cast(FunctionRecogniser, recogniser).score_texts(texts)
    else:
        counting = cast(Recogniser, recogniser)
        scores = counting.score(counting.count(texts).toarray())
    return TraitScores(tuple(texts), scores)


Opener = Callable[[Path | None, Sequence[Path]], AnyRecogniser]
"""A lexicon and norms of words -> the recogniser."""


def open_default(lexicon: Path | None, norms: Sequence[Path]) -> AnyRecogniser:
    """The recogniser that comes along; with a LIWC dictionary that of Mairesse et al. (2007) itself."""
    words = read_lexicon(lexicon) if lexicon else open_lexicon()
    values = read_norms(*norms)
    if words.kind == "liwc":
        return MairesseRecogniser(words, values)
    if values:
        raise UserError(
            "the default recogniser uses no norms", "fit one that does: palaver personality fit --norms …"
        )
    return _shipped("recogniser.json", "default", words)


def open_self_report(lexicon: Path | None, norms: Sequence[Path]) -> AnyRecogniser:
    """Fitted to what writers of essays said of themselves: weaker than the default one, but it has nothing to
    do with the scores that the default one imitates."""
    if lexicon or norms:
        raise UserError("the recogniser self-report takes no lexicon and no norms")
    return _shipped("self_report.json", "self-report", open_lexicon())


def _shipped(file: str, name: str, words: Lexicon) -> LinearRecogniser:
    text = files("palaver.personality").joinpath(file).read_text(encoding="utf-8")
    return parse_recogniser(text, name, words)


def _plugin(name: str, brought: Any) -> Opener:
    """What a plug-in brings: a function from texts to scores, an object with `predict`, a `Recogniser`, or a
    class of such objects."""

    def opener(lexicon: Path | None, norms: Sequence[Path]) -> AnyRecogniser:
        if lexicon or norms:
            raise UserError(f"a lexicon and norms have no meaning for {name}, which reads the text itself")
        recogniser = call_plugin(name, brought) if inspect.isclass(brought) else brought
        if hasattr(recogniser, "count") and hasattr(recogniser, "score"):
            return cast(Recogniser, recogniser)
        function = getattr(recogniser, "predict", recogniser)
        if not callable(function):
            raise UserError(f"{name} is no function and has no predict()")
        return FunctionRecogniser(function, name)

    return opener


RECOGNISERS: Registry[Opener] = Registry(
    "recogniser",
    {"default": open_default, "self-report": open_self_report},
    group="palaver.recognisers",
    adapt=_plugin,
)


def load_recogniser(
    name_or_path: str | Path = "default", *, lexicon: Path | None = None, norms: Sequence[Path] = ()
) -> AnyRecogniser:
    """The recogniser of that name: "default", a plug-in's, a file of `palaver personality fit`, or
    "module:function".

    With a LIWC dictionary as `lexicon` the default is the recogniser of Mairesse et al. (2007) itself, which
    also makes use of the MRC file among the `norms`.
    """
    name = str(name_or_path)
    if name in RECOGNISERS or (is_object_name(name) and not Path(name).exists()):
        return RECOGNISERS.get(name)(lexicon, norms)
    if not Path(name).exists() and "/" not in name and not name.endswith(".json"):
        raise UserError(
            f"there is no recogniser {name!r}{nearest(name, list(RECOGNISERS))}",
            f"expected {', '.join(RECOGNISERS)}, a file, or module:function",
        )
    words = read_lexicon(lexicon) if lexicon else open_lexicon()
    with TextStream(Path(name)) as stream:
        return parse_recogniser(stream.read().decode(), name, words, read_norms(*norms))


def parse_recogniser(text: str, name: str, lexicon: Lexicon, norms: Norms | None = None) -> LinearRecogniser:
    """A recogniser from the text of its file; it must be used with the lexicon and norms it was fitted
    with."""
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise DataError(f"{name} is of the format {content['format']!r}, expected {FORMAT!r}")
        traits = [t for t in TRAITS if t not in content["traits"]]
        if traits:
            raise DataError(f"{name} has no {' and no '.join(traits)}", f"needed: {', '.join(TRAITS)}")
        if lexicon.signature != content["lexicon"]["signature"]:
            kind = (
                "a LIWC dictionary"
                if content["lexicon"]["kind"] == "liwc"
                else "another version of the open lexicon"
            )
            raise DataError(
                f"{name} was fitted with {kind} (signature {content['lexicon']['signature']}); "
                f"{lexicon.name} has {lexicon.signature}",
                "name the right one with --lexicon, or fit a recogniser: palaver personality fit",
            )
        absent = [norm for norm in content["norms"] if norm not in (norms or {})]
        if absent:
            raise DataError(
                f"{name} was fitted with norms of words: {', '.join(absent)}", "name the file with --norms"
            )
        counter = Counter(lexicon, {norm: (norms or {})[norm] for norm in content["norms"]})
        table = np.array([content["features"][f] for f in feature_names(counter.columns)], dtype=np.float64)
        average = np.array([content["columns"][c] for c in counter.columns], dtype=np.float64)
        order = [2 + content["traits"].index(t) for t in TRAITS]
        intercepts = np.array(content["intercepts"], dtype=np.float64)[[o - 2 for o in order]]
        if not (np.isfinite(table).all() and np.isfinite(average).all() and np.isfinite(intercepts).all()):
            raise ValueError("numbers that are not finite")
        sd = np.where(table[:, 1] > 0, table[:, 1], np.inf)
        standard = Standard(counter.columns, average, float(content["prior"]), table[:, 0], sd)
        return LinearRecogniser(
            name=str(content["name"]),
            counter=counter,
            standard=standard,
            weights=table[:, order],
            intercepts=intercepts,
            provenance=content["provenance"],
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        said = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{name} is not a recogniser: {said}", "expected a file written by: palaver personality fit"
        ) from None
