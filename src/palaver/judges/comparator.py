"""The trained comparator as a judge of dialogues: log-odds of being better than an average dialogue."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from palaver.comparator.scorer import load_scorer
from palaver.models.devices import choose_device
from palaver.readers.roles import with_roles
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real


class ComparatorJudge:
    """Rates dialogues between a user and a system. `which` names another comparator than the shipped one."""

    kind: Kind = "model"
    looks_at: frozenset[Judged] = frozenset({"dialogues"})
    needs: frozenset[Need] = frozenset()
    criteria = (Criterion(name="quality", scale=Real(), title="Comparator's score (log-odds)"),)

    def __init__(self, which: str = "default", device: str = "auto") -> None:
        self.scorer = load_scorer(which, device=str(choose_device(device)))
        self.name = "comparator" if which == "default" else f"comparator={which}"
        self.signature = self.scorer.signature
        self.left_out: Counter[str] = Counter()

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        dialogues = [d for d in batch if isinstance(d, Dialogue) and self._is_conversation(d)]
        sided = [without_empty_turns(with_roles(dialogue)) for dialogue in dialogues]
        scores = self.scorer.score(sided).score
        for dialogue, score in zip(dialogues, scores, strict=True):
            if math.isfinite(score):
                yield Rating(
                    item=dialogue.id, context=_sitting(dialogue), system=system_of(dialogue),
                    rater=self.name, criterion="quality", value=float(score),
                    kind=self.kind, signature=self.signature,
                )  # fmt: skip
