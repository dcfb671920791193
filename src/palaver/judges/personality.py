"""The personality recogniser as a judge: the five traits of what a system says, each from 1 to 7."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from palaver import __version__
from palaver.artefacts import digest
from palaver.corpora.personalities import TRAITS
from palaver.judges.labels import system_of
from palaver.personality.recogniser import load_recogniser, score_texts
from palaver.readers.roles import with_roles
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.response import SYSTEM
from palaver.schema.scale import Real


class PersonalityJudge(Named):
    """Rates the text of a response, or all turns of a dialogue's system together.

    One response says little about a personality; means over many do. `which` names another recogniser.
    """

    kind: Kind = "model"
    looks_at: frozenset[Judged] = frozenset({"responses", "dialogues"})
    needs: frozenset[Need] = frozenset()
    criteria: tuple[Criterion, ...] = tuple(
        Criterion(name=trait, scale=Real(low=1, high=7), better="neither", title=trait.capitalize())
        for trait in TRAITS
    )

    def __init__(self, which: str = "default") -> None:
        self.recogniser = load_recogniser(which)
        self.name = "personality" if which == "default" else f"personality={which}"
        weights = getattr(self.recogniser, "weights", None)
        self.signature = digest(self.name, __version__, None if weights is None else weights.tobytes())

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        things: list[Response | Dialogue] = list(batch)
        scores = score_texts(self.recogniser, [_text(thing) for thing in things])  # (n, 5)
        for thing, row in zip(things, scores, strict=True):
            for trait, score in zip(TRAITS, row.tolist(), strict=True):
                if not math.isnan(score):
                    yield Rating(
                        item=thing.id, system=_system(thing), rater=self.name, criterion=trait,
                        value=score, kind=self.kind, signature=self.signature,
                    )  # fmt: skip


def _text(judged: Response | Dialogue) -> str:
    if isinstance(judged, Response):
        return judged.response or ""
    return "\n".join(turn.text for turn in with_roles(judged).turns if turn.speaker == SYSTEM)


def _system(judged: Response | Dialogue) -> str:
    return judged.judged_system if isinstance(judged, Response) else system_of(judged)
