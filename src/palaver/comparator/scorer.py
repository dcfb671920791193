"""A loaded comparator: scores with intervals, P(a is better than b), and the turn that costs most.

Scores are log-odds: sigmoid(a - b) is the probability that dialogue a is better than b; 0 is a dialogue as
they were on average where the comparator was trained. The interval is what other raters might have taught it
(t-distribution over the heads), not what raters may say of one dialogue. A system that says nothing is scored
by a rule, `SILENT`: the model has never seen one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.artefacts import digest_files
from palaver.comparator.language_model import ADAPTER, LanguageModel, why_not_available
from palaver.comparator.model import RECORD, Model, load_model
from palaver.comparator.reading import NOT_ENGLISH, WORDY
from palaver.comparator.representation import (
    NAMES,
    EncodedDialogue,
    encode_dialogues,
    represent_encoded,
    turn_encoder,
)
from palaver.comparator.training_data import USER
from palaver.engine import without_collector
from palaver.errors import UserError, check_kind, count_of, nearest, require
from palaver.models.encoders.encoder import Encode, remember
from palaver.progress import Progress, no_progress
from palaver.readers.dialogues import read_dialogues
from palaver.readers.responses import is_responses, read_responses
from palaver.readers.roles import has_text, is_silent, with_roles, without_empty_turns
from palaver.registry import Named
from palaver.schema import Dialogue, Response
from palaver.tabular import Tabular, show_number
from palaver.text.language import looks_english

Floats = NDArray[np.float64]
DEFAULT, FAST = "default", "fast"
"""The comparator that comes ready; `fast` is the same without its language model."""
SHIPPED = Path(__file__).parent / "default"
RATER_MODEL, LANGUAGE_MODEL = "its rater model", "its language model"
SILENT = -5.0
"""The score of a dialogue whose system says nothing: an average one is better with 99%."""
_FAR = 10.0
"""Words a turn, in spreads above the mean of what was learnt from: one in a thousand of the shipped one's."""
_CONFIDENCE = 0.95
_MOST_REMOVED = 200
"""The costliest turn is looked for among so many, the last ones; among fewer in a very long dialogue."""
_MOST_READ = 200_000
"""Turns that are read again to find it."""
_TURNS_AT_ONCE = 20_000


@dataclass(frozen=True, repr=False)
class Scores(Tabular):
    """(N,) each; `low` and `high` are nan where a comparator has only one head."""

    score: Floats
    low: Floats
    high: Floats
    ids: tuple[str, ...] = ()
    """The dialogues, where they are known."""

    def _headline(self) -> str:
        if not len(self.score):
            return "no dialogues"
        span = f"{show_number(self.score.min())} to {show_number(self.score.max())}"
        return f"{count_of(len(self.score), 'dialogue')}, log-odds from {span}"

    def _tables(self) -> dict[str, Any]:
        ids = self.ids or tuple(map(str, range(1, len(self.score) + 1)))
        return {"scores": {"dialogue": ids, "score": self.score, "low": self.low, "high": self.high}}


@dataclass(frozen=True)
class WorstTurn:
    """The system's turn without which the dialogue would score highest; `gain` is how much higher."""

    turn: int
    """Counted from 1."""
    speaker: str
    text: str
    gain: float


class Scorer(Named, ABC):
    """What every comparator can do. Turns are those of a user and of a system.

    Turns without text weigh nothing, but they count where a turn is numbered.
    """

    name: str
    folder: Path | None = None
    notes: tuple[str, ...] = ()
    """What a user should know of how it scores here."""

    trained_on: frozenset[str] = frozenset()
    """The digests of the dialogues that it has learnt from, where they are known."""

    @cached_property
    def signature(self) -> str:
        """Names the comparator by its content: the same weights have the same signature."""
        if self.folder is None:
            return f"comparator {self.name}"
        return f"comparator {self.name} {digest_files(self._files)}"

    @property
    def _files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()] if self.folder else []

    @without_collector()
    def score(self, dialogues: Sequence[Dialogue], *, progress: Progress = no_progress) -> Scores:
        """The score of each dialogue and its 95% interval; a silent system's is `SILENT` and has none."""
        silent = np.array([is_silent(dialogue) for dialogue in dialogues], bool)
        spoken = [without_empty_turns(one) for one, quiet in zip(dialogues, silent, strict=True) if not quiet]
        scores = self._score(spoken, progress) if spoken else _without_interval(np.zeros(0))
        if not silent.any():
            return scores
        whole = _without_interval(np.full(len(dialogues), SILENT))
        for name in ("score", "low", "high"):
            getattr(whole, name)[~silent] = getattr(scores, name)
        return whole

    def is_wordy(self, dialogue: Dialogue) -> bool:
        """Whether its system says far more at a time than those that the comparator has learnt from."""
        return False

    def doubts(self, dialogue: Dialogue) -> list[str]:
        """Why its score should not be believed."""
        of_language = [] if is_english(dialogue) else [NOT_ENGLISH]
        return [*of_language, WORDY] if self.is_wordy(dialogue) else of_language

    @abstractmethod
    def _score(self, dialogues: Sequence[Dialogue], progress: Progress) -> Scores:
        """The same for one dialogue or more, in which every turn has a text."""

    @abstractmethod
    def _scores_without(
        self, dialogues: Sequence[Dialogue], places: Sequence[list[int]]
    ) -> tuple[Floats, Floats]:
        """The scores of the dialogues, and in order those without each turn that `places` names."""

    @without_collector()
    def worst_turns(self, dialogues: Sequence[Dialogue]) -> list[WorstTurn | None]:
        """For each dialogue its costliest turn of the system, the one with the highest score without it.

        None where the system speaks only once, or where the dialogue is worse without any of its turns.
        """
        spoken = [without_empty_turns(dialogue) for dialogue in dialogues]
        places = [_removable(dialogue) for dialogue in spoken]
        whole, without = self._scores_without(spoken, places)
        worst: list[WorstTurn | None] = []
        each = np.split(without, np.cumsum([len(place) for place in places])[:-1])
        for dialogue, score, place, scores in zip(dialogues, whole, places, each, strict=True):
            if not place:
                worst.append(None)
                continue
            best = int(np.argmax(scores))
            if not scores[best] > score:
                worst.append(None)
                continue
            numbers = [number for number, turn in enumerate(dialogue.turns, start=1) if has_text(turn)]
            number = numbers[place[best]]
            turn = dialogue.turns[number - 1]
            worst.append(WorstTurn(number, turn.speaker, turn.text, float(scores[best] - score)))
        return worst

    def probability(self, a: Dialogue, b: Dialogue) -> float:
        """P(a is better than b); the two orders add up to 1. One half where the two cannot be compared."""
        if not can_compare(a, b):
            return 0.5
        first, second = self.score([a, b]).score
        return float(1 / (1 + np.exp(second - first)))


class PalaverScorer(Scorer):
    """The method `palaver`. `encode` is any function from texts to vectors; by default its own."""

    def __init__(
        self,
        model: Model,
        *,
        name: str = "palaver",
        about: dict[str, Any] | None = None,
        folder: Path | None = None,
        encode: Encode | None = None,
        device: str = "cpu",
    ) -> None:
        self.model, self.name, self.about, self.folder = model, name, about or {}, folder
        self.trained_on = frozenset(self.about.get("data", {}).get("trained_on", ()))
        self.encode = remember(encode or turn_encoder(self.about.get("encoder") or None, device=device))

    def is_wordy(self, dialogue: Dialogue) -> bool:
        place = NAMES.index("system_length")
        longest = self.model.centre[place] + _FAR * self.model.scale[place]
        lengths = [len(turn.text.split()) for turn in dialogue.turns if turn.speaker != USER]
        return bool(sum(lengths) > longest * sum(n > 0 for n in lengths))

    def _score(self, dialogues: Sequence[Dialogue], progress: Progress) -> Scores:
        return self._score_encoded(encode_dialogues(dialogues, self.encode, progress=progress))

    def _score_encoded(self, dialogues: Sequence[EncodedDialogue]) -> Scores:
        if not dialogues:
            return _without_interval(np.zeros(0))
        heads = self.model.heads_of(represent_encoded(dialogues))  # (H, N)
        score = heads.mean(0)
        if len(heads) < 2:
            return _without_interval(score)
        from scipy.special import stdtrit

        half = float(stdtrit(len(heads) - 1, 0.5 + _CONFIDENCE / 2)) * heads.std(0, ddof=1)
        return Scores(score, score - half, score + half)

    def _scores_without(
        self, dialogues: Sequence[Dialogue], places: Sequence[list[int]]
    ) -> tuple[Floats, Floats]:
        encoded = encode_dialogues(dialogues, self.encode)
        without: list[Floats] = []
        shorter: list[EncodedDialogue] = []
        n_turns = 0
        for one, turns in zip(encoded, places, strict=True):
            for i in turns:
                shorter.append(one.without(i))
                n_turns += len(one.turns)
                if n_turns > _TURNS_AT_ONCE:  # each is a copy; long ones must not fill the memory
                    without.append(self._score_encoded(shorter).score)
                    shorter, n_turns = [], 0
        without.append(self._score_encoded(shorter).score)
        return self._score_encoded(encoded).score, np.concatenate(without)

    @property
    def _files(self) -> list[Path]:
        return [path for path in super()._files if path.name != ADAPTER]


@dataclass(frozen=True)
class JoinWeights:
    """What the rater model's score and the language model's count in the joined one, which is log-odds."""

    raters: float
    language: float
    offset: float = 0.0


class JoinedScorer(Scorer):
    """The method `palaver` for what raters see, and a language model for what is said.

    The interval is that of the rater model. So is the costliest turn: reading a dialogue again without each
    of its turns would take the language model too long.
    """

    def __init__(
        self,
        raters: PalaverScorer,
        language: Callable[[], LanguageModel],
        weights: JoinWeights,
        *,
        name: str = DEFAULT,
    ) -> None:
        self.raters, self.weights, self.name, self.folder = raters, weights, name, raters.folder
        self.trained_on = raters.trained_on
        self._open_language = language

    @cached_property
    def language(self) -> LanguageModel:
        return self._open_language()

    def scores_of_parts(self, dialogues: Sequence[Dialogue]) -> dict[str, Floats]:
        """What each of the two says by itself; a silent system gets the same of both."""
        silent = np.array([is_silent(dialogue) for dialogue in dialogues], bool)
        spoken = [without_empty_turns(one) for one, quiet in zip(dialogues, silent, strict=True) if not quiet]
        of_language = np.full(len(dialogues), SILENT)
        of_language[~silent] = self.language.score(spoken)
        return {RATER_MODEL: self.raters.score(dialogues).score, LANGUAGE_MODEL: of_language}

    def is_wordy(self, dialogue: Dialogue) -> bool:
        return self.raters.is_wordy(dialogue)

    def _score(self, dialogues: Sequence[Dialogue], progress: Progress) -> Scores:
        of_raters = self.raters._score(dialogues, progress)
        w = self.weights
        rest = w.language * self.language.score(dialogues, progress=progress) + w.offset
        return Scores(*(w.raters * getattr(of_raters, name) + rest for name in ("score", "low", "high")))

    def _scores_without(
        self, dialogues: Sequence[Dialogue], places: Sequence[list[int]]
    ) -> tuple[Floats, Floats]:
        whole, without = self.raters._scores_without(dialogues, places)
        return self.weights.raters * whole, self.weights.raters * without


class NetworkScorer(Scorer):
    """A network of the paper's pipeline: one number a dialogue and no interval."""

    def __init__(self, folder: Path, *, device: str = "cpu") -> None:
        from palaver.comparator.cmade.network import ComparatorNetwork

        self.network = ComparatorNetwork.load(folder, device=device)
        self.folder, self.name = folder, folder.parent.name or folder.name

    def _score(self, dialogues: Sequence[Dialogue], progress: Progress) -> Scores:
        from palaver.comparator.cmade.network import apply_network

        scores, _ = apply_network(self.network, self.network.inputs(dialogues), progress=progress)
        return _without_interval(scores.astype(np.float64))

    def _scores_without(
        self, dialogues: Sequence[Dialogue], places: Sequence[list[int]]
    ) -> tuple[Floats, Floats]:
        shorter = [
            dialogue.model_copy(update={"turns": dialogue.turns[:i] + dialogue.turns[i + 1 :]})
            for dialogue, turns in zip(dialogues, places, strict=True)
            for i in turns
        ]
        return self.score(dialogues).score, self.score(shorter).score


def load_scorer(name: str | Path = DEFAULT, *, device: str = "cpu", encode: Encode | None = None) -> Scorer:
    """The shipped comparator, one that the method `palaver` wrote, or one of the paper's pipeline."""
    folder = SHIPPED if str(name) in (DEFAULT, FAST) else Path(name)
    if not folder.exists():
        raise UserError(
            f"there is no comparator {str(name)!r}{nearest(str(name), [DEFAULT, FAST])}",
            f"{DEFAULT} and {FAST} come ready; others are folders that `palaver compare train` wrote",
        )
    if not folder.is_dir():
        raise UserError(f"{folder} is a file; a comparator is a folder", "name the folder it lies in")
    for place in (folder, folder / "network"):
        if (place / "model.safetensors").is_file():
            return NetworkScorer(place, device=device)
    for place in (folder, folder / "comparator"):
        if (place / RECORD).is_file():
            model, about = load_model(place)
            called = FAST if str(name) == FAST else folder.name
            raters = PalaverScorer(
                model, name=called, about=about, folder=place, encode=encode, device=device
            )
            return raters if called == FAST or encode is not None else _joined(raters, device)
    stages = [str(network.parents[1]) for network in sorted(folder.glob("*/network/model.safetensors"))]
    hint = f"did you mean {stages[-1]}?" if stages else ""
    raise UserError(f"{folder} holds no comparator", hint, stages[:10])


def is_english(dialogue: Dialogue) -> bool:
    """Whether the whole of it looks English, and so does what the system says."""
    of_system = "\n".join(turn.text for turn in dialogue.turns if turn.speaker != "user")
    return looks_english(of_system) and looks_english("\n".join(turn.text for turn in dialogue.turns))


def can_compare(a: Dialogue, b: Dialogue) -> bool:
    """Whether both look English, or one of the systems says nothing, which is bad in any language."""
    return is_silent(a) or is_silent(b) or (is_english(a) and is_english(b))


def _joined(raters: PalaverScorer, device: str) -> Scorer:
    """With the language model that lies beside the rater model; without, where there is none, and said so."""
    weights = raters.about.get("language_model")
    if weights is None or raters.folder is None or not (raters.folder / ADAPTER).is_file():
        return raters
    missing = why_not_available()
    if missing is not None:
        raters.notes = (f"scored without the language model: {missing}",)
        return raters
    adapter = raters.folder / ADAPTER
    chosen = JoinWeights(**{name: float(weights[name]) for name in ("raters", "language", "offset")})
    return JoinedScorer(raters, lambda: LanguageModel.load(adapter, device=device), chosen, name=raters.name)


def score(
    dialogues: str | Path | Iterable[Dialogue] | Iterable[Response],
    *,
    comparator: str | Path = DEFAULT,
    device: str = "auto",
) -> Scores:
    """The score of each dialogue: differences are log-odds of being the better one.

    `dialogues` are a file of them, or `Dialogue`s; a `Response` is a dialogue with its context.
    """
    require("torch", "models")
    require("transformers", "models")
    from palaver.models.devices import choose_device

    if isinstance(dialogues, str | Path):
        dialogues = read_responses(dialogues) if is_responses(dialogues) else read_dialogues(dialogues)
    whole = [thing.as_dialogue() if isinstance(thing, Response) else thing for thing in dialogues]
    for dialogue in whole:
        check_kind(dialogue, Dialogue, "dialogues")
    sided = [with_roles(dialogue) for dialogue in whole]
    scores = load_scorer(comparator, device=str(choose_device(device))).score(sided)
    return replace(scores, ids=tuple(dialogue.id for dialogue in sided))


def _removable(dialogue: Dialogue) -> list[int]:
    """The system's last turns, if there is more than one: without any the dialogue would be a monologue."""
    places = [i for i, turn in enumerate(dialogue.turns) if turn.speaker != "user"]
    most = min(_MOST_REMOVED, max(2, _MOST_READ // max(1, len(dialogue.turns))))
    return places[-most:] if len(places) > 1 else []


def _without_interval(scores: Floats) -> Scores:
    return Scores(scores, np.full(len(scores), np.nan), np.full(len(scores), np.nan))
