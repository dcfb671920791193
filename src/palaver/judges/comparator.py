"""The trained comparator as a judge of dialogues: log-odds of being better than an average dialogue."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from palaver.comparator.reading import SILENT_NOTE
from palaver.comparator.scorer import can_compare, load_scorer
from palaver.comparator.training_data import dialogue_digest
from palaver.errors import require
from palaver.judges.labels import SEEN, SEEN_NOTE, sitting_of, system_of
from palaver.readers.roles import is_silent, with_roles, without_empty_turns
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.response import SYSTEM, USER
from palaver.schema.scale import Real


class ComparatorJudge(Named):
    """Rates dialogues between a user and a system. `which` names another comparator than the shipped one."""

    kind: Kind = "model"
    log_odds = True
    """A difference of its scores is the log-odds that one dialogue is better."""
    looks_at: frozenset[Judged] = frozenset({"dialogues"})
    needs: frozenset[Need] = frozenset()
    criteria: tuple[Criterion, ...] = (
        Criterion(name="quality", scale=Real(), title="Comparator's score (log-odds)"),
    )

    def __init__(self, which: str = "default", device: str = "auto") -> None:
        require("transformers", "models")
        require("torch", "models")
        from palaver.models.devices import choose_device

        self.scorer = load_scorer(which, device=str(choose_device(device)))
        self.name = "comparator" if which == "default" else f"comparator={which}"
        self.signature = self.scorer.signature
        self.left_out: Counter[str] = Counter()
        self.notes: Counter[str] = Counter(dict.fromkeys(self.scorer.notes, 0))

    def has_opinion(self, a: Dialogue, b: Dialogue) -> bool:
        """Whether it can compare the two: both have to look English."""
        return can_compare(a, b)

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        conversations = []
        for dialogue in batch:
            if isinstance(dialogue, Dialogue):
                sided = with_roles(without_empty_turns(dialogue))
                if len(dialogue.turns) < 2:
                    self.left_out["dialogues of one turn or none"] += 1
                elif is_silent(dialogue):
                    conversations.append(with_roles(dialogue))
                    self.notes[SILENT_NOTE] += 1
                elif set(sided.speakers) == {USER, SYSTEM}:
                    conversations.append(sided)
                else:
                    self.left_out["dialogues that are not between a user and a system"] += 1
        for dialogue in conversations:
            self.notes.update(self.scorer.doubts(dialogue))
        scores = self.scorer.score(conversations).score
        for dialogue, score in zip(conversations, scores.tolist(), strict=True):
            if math.isfinite(score):
                seen = dialogue_digest(dialogue) in self.scorer.trained_on
                if seen:
                    self.notes[SEEN_NOTE] += 1
                yield Rating(
                    item=dialogue.id, context=sitting_of(dialogue), system=system_of(dialogue),
                    rater=self.name, criterion="quality", value=score,
                    kind=self.kind, signature=self.signature + (SEEN if seen else ""),
                )  # fmt: skip
