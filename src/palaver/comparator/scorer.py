"""A loaded comparator: scores with intervals, P(a is better than b), and the turn that costs most.

Scores are log-odds: sigmoid(a - b) is the probability that dialogue a is better than b; 0 is a dialogue as
they were on average where the comparator was trained. The interval is what other raters might have taught it
(t-distribution over the heads), not what raters may say of one dialogue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.method import Model
from palaver.comparator.representation import (
    Encode,
    Turns,
    read_dialogues,
    represent_turns,
    turn_encoder,
)
from palaver.comparator.stored import RECORD, load_model
from palaver.errors import UserError, nearest
from palaver.progress import Progress
from palaver.schema import Dialogue

Floats = NDArray[np.float64]
DEFAULT = "default"
SHIPPED = Path(__file__).parent / "default"
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scores:
    """(N,) each; `low` and `high` are nan where a comparator has only one head."""

    score: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class WorstTurn:
    """The system's turn without which the dialogue would score highest; `gain` is how much higher."""

    turn: int
    """Counted from 1."""
    speaker: str
    text: str
    gain: float


class Scorer(ABC):
    """What every comparator can do."""

    name: str
    about: dict[str, Any]

    @abstractmethod
    def score(self, dialogues: Sequence[Dialogue], *, progress: Progress | None = None) -> Scores:
        """The score of each dialogue and its interval."""

    @abstractmethod
    def worst_turns(self, dialogues: Sequence[Dialogue]) -> list[WorstTurn | None]:
        """For each dialogue its costliest turn of the system; none where the system speaks only once."""

    def probability(self, a: Dialogue, b: Dialogue) -> float:
        """P(a is better than b); the two orders add up to 1."""
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
        encode: Encode | None = None,
        device: str = "cpu",
    ) -> None:
        self.model, self.name, self.about, self.device = model, name, about or {}, device
        self._encode = encode

    def encode(self, texts: list[str]) -> Any:
        if self._encode is None:
            self._encode = turn_encoder(self.about.get("encoder") or None, device=self.device)
        return self._encode(texts)

    def score(self, dialogues: Sequence[Dialogue], *, progress: Progress | None = None) -> Scores:
        """Scores of each dialogue and their 95% intervals."""
        return self.score_turns(read_dialogues(dialogues, self.encode, progress=progress))

    def score_turns(self, turns: Sequence[Turns]) -> Scores:
        if not turns:
            nothing = np.zeros(0)
            return Scores(nothing, nothing, nothing)
        heads = self.model.heads_of(represent_turns(turns))  # (H, N)
        score = heads.mean(0)
        if len(heads) < 2:
            undefined = np.full(len(score), np.nan)
            return Scores(score, undefined, undefined)
        half = t_quantile(len(heads) - 1) * heads.std(0, ddof=1)
        return Scores(score, score - half, score + half)

    def worst_turns(self, dialogues: Sequence[Dialogue]) -> list[WorstTurn | None]:
        """For each dialogue its costliest turn of the system; none where the system speaks only once."""
        return self.worst_of(dialogues, read_dialogues(dialogues, self.encode))

    def worst_of(self, dialogues: Sequence[Dialogue], turns: Sequence[Turns]) -> list[WorstTurn | None]:
        """`worst_turns` of dialogues that have been read: nothing is encoded again."""
        places = [removable(dialogue) for dialogue in dialogues]
        shorter = [one.without(i) for one, found in zip(turns, places, strict=True) for i in found]
        return pick_worst(dialogues, self.score_turns(turns).score, places, self.score_turns(shorter).score)


class NetworkScorer(Scorer):
    """A network of the paper's pipeline: one number a dialogue and no interval."""

    def __init__(self, folder: Path, *, device: str = "cpu") -> None:
        from palaver.comparator.cmade.network import ComparatorNetwork

        self.network = ComparatorNetwork.load(folder, device=device)
        self.name, self.about = folder.parent.name or folder.name, {"encoder": self.network.config.encoder}

    def score(self, dialogues: Sequence[Dialogue], *, progress: Progress | None = None) -> Scores:
        """Scores of each dialogue; intervals need more than one network."""
        from palaver.comparator.cmade.network import apply_network

        if not dialogues:
            nothing = np.zeros(0)
            return Scores(nothing, nothing, nothing)
        found, _ = apply_network(self.network, self.network.inputs(dialogues), progress=progress)
        undefined = np.full(len(found), np.nan)
        return Scores(found.astype(np.float64), undefined, undefined)

    def worst_turns(self, dialogues: Sequence[Dialogue]) -> list[WorstTurn | None]:
        """Every dialogue is read once more without each of the system's turns."""
        places = [removable(dialogue) for dialogue in dialogues]
        shorter = [
            dialogue.model_copy(update={"turns": dialogue.turns[:i] + dialogue.turns[i + 1 :]})
            for dialogue, found in zip(dialogues, places, strict=True)
            for i in found
        ]
        return pick_worst(dialogues, self.score(dialogues).score, places, self.score(shorter).score)


def load_scorer(name: str | Path = DEFAULT, *, device: str = "cpu", encode: Encode | None = None) -> Scorer:
    """The shipped comparator, one that the method `palaver` wrote, or one of the paper's pipeline."""
    if str(name) == DEFAULT:
        return _palaver(SHIPPED, DEFAULT, device, encode)
    folder = Path(name)
    if not folder.exists():
        raise UserError(
            f"there is no comparator {str(name)!r}{nearest(str(name), [DEFAULT])}",
            f"{DEFAULT} is the one that comes ready; others are folders that `palaver compare train` wrote",
        )
    if not folder.is_dir():
        raise UserError(f"{folder} is a file; a comparator is a folder", "name the folder it lies in")
    for place in (folder, folder / "network"):
        if (place / "model.safetensors").is_file():
            return NetworkScorer(place, device=device)
    for place in (folder, folder / "comparator"):
        if (place / RECORD).is_file():
            return _palaver(place, folder.name, device, encode)
    inside = sorted(p.parent for p in folder.glob("*/network/model.safetensors"))
    listed = [str(p.parent) for p in inside]
    raise UserError(
        f"{folder} holds no comparator", f"did you mean {listed[-1]}?" if listed else "", listed[:10]
    )


def _palaver(folder: Path, name: str, device: str, encode: Encode | None) -> PalaverScorer:
    model, about = load_model(folder)
    return PalaverScorer(model, name=name, about=about, encode=encode, device=device)


def removable(dialogue: Dialogue) -> list[int]:
    """The system's turns, if there is more than one: without any the dialogue would be a monologue."""
    found = [i for i, turn in enumerate(dialogue.turns) if turn.speaker != "user"]
    return found if len(found) > 1 else []


def pick_worst(
    dialogues: Sequence[Dialogue], whole: Floats, places: Sequence[list[int]], without: Floats
) -> list[WorstTurn | None]:
    """The turn with the highest score without it, the first of equals.

    `whole` (N,) are the dialogues' scores, `without` those without each turn of `places`, in order.
    """
    found: list[WorstTurn | None] = []
    each = np.split(without, np.cumsum([len(place) for place in places])[:-1])
    for dialogue, score, place, scores in zip(dialogues, whole, places, each, strict=True):
        if not place:
            found.append(None)
            continue
        best = int(np.argmax(scores))
        turn = dialogue.turns[place[best]]
        found.append(WorstTurn(place[best] + 1, turn.speaker, turn.text, float(scores[best] - score)))
    return found


def t_quantile(df: int, confidence: float = _CONFIDENCE) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + confidence / 2, df))
