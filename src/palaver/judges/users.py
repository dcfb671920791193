"""The chatter as a judge: the stars that people left at the end of their own conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from palaver.judges.labels import sitting_of, system_of
from palaver.readers.shapes import known_label
from palaver.registry import Named
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real


class UserJudge(Named):
    """Ratings that are in the file already, as rows of the table: who rated is the dialogue's `rater`."""

    name = "user"
    kind: Kind = "user"
    looks_at: frozenset[Judged] = frozenset({"dialogues"})
    needs: frozenset[Need] = frozenset()
    criteria: tuple[Criterion, ...] = (
        Criterion(name="rating", scale=Real(), title="The chatter's own rating"),
    )
    signature = "user"

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        for dialogue in batch:
            value = known_label(dialogue.labels, "rating")
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.left_out["dialogues without a rating"] += 1
            elif isinstance(dialogue, Dialogue):
                yield Rating(
                    item=dialogue.id, context=sitting_of(dialogue), system=system_of(dialogue),
                    rater=str(known_label(dialogue.labels, "rater") or self.name), criterion="rating",
                    value=float(value), kind=self.kind, signature=self.signature,
                )  # fmt: skip
