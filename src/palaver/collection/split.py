"""Training, validation and test sets, with *frequent* and *rare* entities (Topical-Chat, section 3.3).

The paper does not say how it split. The rule here: conversations that must stay together (those about one
article, unless said otherwise) are a group. A group's rarity is the mean over its entities of the logarithm
of how many conversations have the entity. The groups with the rarest entities are dealt to `valid_rare` and
`test_rare`. From the others, in random order, groups are dealt to `valid_freq` and `test_freq`, but only
while each of their entities keeps `least_seen` conversations in training. All else is for training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from palaver.collection.labels import (
    SPLITS,
    article_of,
    entities_of,
    in_split_order,
    people_in,
    text_label,
    with_labels,
)
from palaver.errors import UserError, count_of
from palaver.schema import Dialogue
from palaver.tabular import Tabular, columns_of

Together = Literal["article", "participant"]
TOGETHER: tuple[Together, ...] = ("article", "participant")
LEAST_SEEN = 2
TRAIN = SPLITS[0]


@dataclass(frozen=True)
class SplitRow:
    """One split beside the training set."""

    split: str
    conversations: int
    entities: int
    """Distinct ones."""
    seen: float
    """Conversations of the training set that have an entity, on average over the split's conversations and
    their entities."""
    unseen_entities: int
    """Entities of the split that no conversation of the training set has."""
    shared_articles: int | None
    """Conversations about an article that the training set has, too; None where no article is known."""
    shared_people: int | None
    """Conversations with somebody who is in the training set, too; None where nobody is known."""


@dataclass(frozen=True, repr=False)
class SplitReport(Tabular):
    """How frequent the entities of each split are in training, and what leaks from training into it."""

    rows: tuple[SplitRow, ...]
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        sizes = ", ".join(f"{row.split} {row.conversations:,}" for row in self.rows)
        return (
            f"{sizes}; {sum(row.shared_articles or 0 for row in self.rows):,} share an article with training"
        )

    def _tables(self) -> Mapping[str, Any]:
        return {"splits": columns_of(SplitRow, self.rows)}


def describe_split(dialogues: Sequence[Dialogue]) -> SplitReport:
    """The report on conversations that have a label `split`."""
    parts: dict[str, list[Dialogue]] = {}
    for dialogue in dialogues:
        parts.setdefault(text_label(dialogue, "split"), []).append(dialogue)
    training = parts.get(TRAIN, [])
    frequency = count_entities(training)
    articles = {article_of(dialogue) for dialogue in training} - {""}
    people = {name for dialogue in training for name in people_in(dialogue)}
    rows = []
    for name in in_split_order(parts):
        part = parts[name]
        entities = [entity for dialogue in part for entity in entities_of(dialogue)]
        shared_articles: int | None = sum(article_of(dialogue) in articles for dialogue in part)
        shared_people: int | None = sum(not people.isdisjoint(people_in(dialogue)) for dialogue in part)
        rows.append(
            SplitRow(
                split=name or "(none)",
                conversations=len(part),
                entities=len(set(entities)),
                seen=float(np.mean([frequency[entity] for entity in entities])) if entities else float("nan"),
                unseen_entities=len(set(entities) - set(frequency)),
                shared_articles=shared_articles if articles and name != TRAIN else None,
                shared_people=shared_people if people and name != TRAIN else None,
            )
        )
    return SplitReport(tuple(rows), tuple(_gaps(dialogues)))


def _gaps(dialogues: Sequence[Dialogue]) -> list[str]:
    """What the report cannot know."""
    without = {
        "no entities: how rare they are is not known": lambda d: not entities_of(d),
        "no article: whether it is in training is not known": lambda d: not article_of(d),
        "no participants: whether they are in training is not known": lambda d: not people_in(d),
    }
    counts = {text: sum(map(lacks, dialogues)) for text, lacks in without.items()}
    return [f"{count_of(n, 'conversation')} with {text}" for text, n in counts.items() if n]


def count_entities(dialogues: Sequence[Dialogue]) -> Counter[str]:
    """Entity -> in how many conversations it is."""
    return Counter(entity for dialogue in dialogues for entity in entities_of(dialogue))


def split_conversations(
    dialogues: Sequence[Dialogue],
    *,
    share: float = 0.05,
    together: Collection[Together] = TOGETHER[:1],
    least_seen: int = LEAST_SEEN,
    seed: int = 0,
) -> list[Dialogue]:
    """The conversations with a label `split`; `share` is the part of each of the four smaller sets."""
    held = [dialogue for dialogue in dialogues if dialogue.turns]
    _check(held, share)
    size = max(1, round(share * len(held)))
    rng = np.random.default_rng(seed)
    groups = _groups(held, together)
    groups = [groups[place] for place in rng.permutation(len(groups))]
    frequency = count_entities(held)
    groups.sort(key=lambda group: _rarity(group, frequency))  # stable: chance decides between equals
    splits: dict[str, str] = {}
    rare = ("valid_rare", "test_rare")
    left = _deal(groups, rare, size, splits)
    left = [left[place] for place in rng.permutation(len(left))]
    in_training = count_entities([dialogue for group in left for dialogue in group])

    def keeps_enough(group: Sequence[Dialogue]) -> bool:
        taken = count_entities(group)
        if any(in_training[entity] - n < least_seen for entity, n in taken.items()):
            return False
        in_training.subtract(taken)
        return True

    frequent = ("valid_freq", "test_freq")
    candidates = [group for group in left if all(entities_of(dialogue) for dialogue in group)]
    _deal(candidates, frequent, size, splits, keeps_enough)
    short = [name for name in (*rare, *frequent) if name not in splits.values()]
    if short or len(splits) >= len(held):
        raise UserError(
            f"{count_of(len(held), 'conversation')} in {count_of(len(groups), 'group')} cannot be split so: "
            + (f"nothing is left for {', '.join(short)}" if short else "nothing is left for train"),
            f"what shares its {' or '.join(together) or 'nothing'} stays together (--together), and training "
            f"must keep {least_seen} conversations with each entity of the frequent sets (--least-seen); "
            "`palaver collect export` also takes conversations that are not split",
        )
    return [_labelled(dialogue, splits.get(dialogue.id, TRAIN)) for dialogue in held]


def _check(dialogues: Sequence[Dialogue], share: float) -> None:
    if not 0 < share < 0.25:
        raise UserError(f"each of the four smaller sets needs a share between 0 and 0.25, found {share:g}")
    repeated = [id for id, n in Counter(dialogue.id for dialogue in dialogues).items() if n > 1]
    if repeated:
        raise UserError("conversations have the same id", "give each its own", repeated[:10])
    if not any(entities_of(dialogue) for dialogue in dialogues):
        raise UserError(
            "no conversation has a reading set with entities, so none is frequent or rare",
            "expected dialogues with reading sets, such as topical-chat has",
        )


def _labelled(dialogue: Dialogue, split: str) -> Dialogue:
    labels = {name: value for name, value in dialogue.labels.items() if name != "original_split"}
    return with_labels(dialogue, {**labels, "split": split})


def _rarity(group: Sequence[Dialogue], frequency: Mapping[str, int]) -> float:
    """Small for rare entities; a group without entities is never rare."""
    entities = [entity for dialogue in group for entity in entities_of(dialogue)]
    return float(np.mean(np.log([frequency[entity] for entity in entities]))) if entities else np.inf


def _deal(
    groups: Sequence[list[Dialogue]],
    names: Sequence[str],
    size: int,
    splits: dict[str, str],
    may_take: Callable[[Sequence[Dialogue]], bool] = lambda group: True,
) -> list[list[Dialogue]]:
    """Fill the sets, the emptier one first, each up to `size`; the groups that are left."""
    sizes = dict.fromkeys(names, 0)
    left = []
    for group in groups:
        name = min(names, key=lambda name: sizes[name])
        fits = not sizes[name] or sizes[name] + len(group) <= size
        if sizes[name] < size and fits and may_take(group):
            sizes[name] += len(group)
            splits.update({dialogue.id: name for dialogue in group})
        else:
            left.append(group)
    return left


def _groups(dialogues: Sequence[Dialogue], together: Collection[Together]) -> list[list[Dialogue]]:
    """Conversations that share an article or a participant, directly or through others, as one."""
    parent = list(range(len(dialogues)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[tuple[str, str], int] = {}
    for place, dialogue in enumerate(dialogues):
        keys = [("article", article_of(dialogue))] if "article" in together else []
        if "participant" in together:
            keys += [("participant", name) for name in sorted(people_in(dialogue))]
        for key in keys:
            if key[1]:
                parent[root(place)] = root(first.setdefault(key, place))
    groups: dict[int, list[Dialogue]] = {}
    for place, dialogue in enumerate(dialogues):
        groups.setdefault(root(place), []).append(dialogue)
    return list(groups.values())
