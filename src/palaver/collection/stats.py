"""Table 2 of Topical-Chat (Gopalakrishnan et al. 2019) for any conversations: how many, how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.collection.labels import configuration_of, in_split_order, text_label
from palaver.schema import Dialogue
from palaver.tabular import Tabular, columns_of
from palaver.text.words import words

NO_SPLIT = "all"
NO_CONFIGURATION = "–"


@dataclass(frozen=True)
class Size:
    """How much one split holds in one configuration."""

    split: str
    configuration: str | None
    """None: all of them together."""
    conversations: int
    utterances: int
    turns: float
    """Average number of turns per conversation."""
    length: float
    """Average length of an utterance in words between spaces, which is how the paper counts."""
    distinct_words: int
    """Words that differ when case and punctuation are put aside."""


@dataclass(frozen=True, repr=False)
class ConversationStats(Tabular):
    """The sizes, split by split, each split's total last."""

    sizes: tuple[Size, ...]
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        totals = [size for size in self.sizes if size.configuration is None]
        return (
            f"{sum(size.conversations for size in totals):,} conversations, "
            f"{sum(size.utterances for size in totals):,} utterances in {len(totals)} splits"
        )

    def _tables(self) -> Mapping[str, Any]:
        return {"sizes": columns_of(Size, self.sizes)}

    @property
    def splits(self) -> list[str]:
        return in_split_order(size.split for size in self.sizes)

    @property
    def configurations(self) -> list[str]:
        return sorted({size.configuration for size in self.sizes if size.configuration is not None})

    def size(self, split: str, configuration: str | None = None) -> Size | None:
        """None where a split has no conversation in a configuration."""
        wanted = (split, configuration)
        return next((s for s in self.sizes if (s.split, s.configuration) == wanted), None)


@dataclass
class _Count:
    conversations: int = 0
    utterances: int = 0
    spaced_words: int = 0
    words: set[str] = field(default_factory=set)

    def add(self, dialogue: Dialogue, distinct: set[str]) -> None:
        self.conversations += 1
        self.utterances += len(dialogue.turns)
        self.spaced_words += sum(len(turn.text.split()) for turn in dialogue.turns)
        self.words |= distinct

    def size(self, split: str, configuration: str | None) -> Size:
        return Size(
            split=split,
            configuration=configuration,
            conversations=self.conversations,
            utterances=self.utterances,
            turns=self.utterances / self.conversations,
            length=self.spaced_words / self.utterances,
            distinct_words=len(self.words),
        )


def count_conversations(dialogues: Iterable[Dialogue]) -> ConversationStats:
    """The sizes of conversations, by the labels `split` and `config`."""
    counts: dict[str, dict[str | None, _Count]] = {}
    ids: set[str] = set()
    tally: Counter[str] = Counter()
    for dialogue in dialogues:
        if not dialogue.turns:
            tally["left out, without turns"] += 1
            continue
        if dialogue.id in ids:
            tally["counted with the id of an earlier one"] += 1
        ids.add(dialogue.id)
        distinct = {word for turn in dialogue.turns for word in words(turn.text) if _is_word(word)}
        by_configuration = counts.setdefault(text_label(dialogue, "split") or NO_SPLIT, {})
        for name in (configuration_of(dialogue) or NO_CONFIGURATION, None):
            by_configuration.setdefault(name, _Count()).add(dialogue, distinct)
    sizes = [
        counts[split][name].size(split, name)
        for split in in_split_order(counts)
        for name in sorted(counts[split], key=lambda name: (name is None, name))
    ]
    return ConversationStats(tuple(sizes), tuple(f"{what}: {n:,}" for what, n in tally.items()))


def _is_word(token: str) -> bool:
    return any(letter.isalnum() for letter in token)
