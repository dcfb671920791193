"""Pools from transcripts: a turn is an utterance; its group is the episode, or else the dialogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from palaver.corpora.catalogue import CorpusReader
from palaver.corpora.reading import UNKNOWN
from palaver.corpora.scripts import EVERYBODY
from palaver.engine import Engine, map_shards
from palaver.errors import DataError, UserError, nearest
from palaver.personality.bag import Bag
from palaver.personality.pools import Choice, Pools, choose_characters
from palaver.personality.utterances import build_pools, count_texts
from palaver.progress import Progress, no_progress
from palaver.readers.shapes import FIELDS, known_label

SHARD = 200_000
"""Utterances that are counted at a time; fewer are not worth a process of their own."""


def read_transcripts(
    dialogues: CorpusReader,
    recogniser: Any,
    choice: Choice,
    *,
    source: str,
    n_words: int = 200,
    engine: Engine | str = "processes",
    progress: Progress = no_progress,
) -> Pools:
    """Everything the chosen characters say."""
    if choice.drop_common or choice.system:
        asked = "--drop-common" if choice.drop_common else "--system"
        raise UserError(f"{asked} is for generated responses, but {source} holds dialogues")
    turns = _take(dialogues, choice)
    counts = Counter(turns.who)
    chosen, notes = choose_characters(
        counts, choice.characters, least=choice.min_utterances, never=(UNKNOWN, EVERYBODY), source=source
    )
    number = {name: i for i, name in enumerate(chosen)}
    kept = [i for i, name in enumerate(turns.who) if name in number]
    texts = [turns.texts[i] for i in kept]
    bag = Bag(texts, n_words) if n_words else None
    counted = map_shards(
        partial(count_texts, recogniser=recogniser, bag=bag),
        [texts[i : i + SHARD] for i in range(0, len(texts), SHARD)],
        engine=engine,
        what="counting words",
        progress=progress,
    )
    others = f"turns of {len(counts) - len(chosen):,} other speakers"
    return build_pools(
        list(counted),
        recogniser,
        bag,
        characters=chosen,
        label=np.array([number[turns.who[i]] for i in kept], dtype=np.int32),
        groups=np.array([turns.groups[i] for i in kept]),
        group_noun="episode" if turns.episodes else "dialogue",
        source=source,
        path=dialogues.path,
        left_out={others: len(turns.who) - len(kept), **turns.left_out},
        notes=(*notes, *dialogues.notes),
    )


@dataclass
class _Turns:
    """All turns of all speakers, side by side."""

    who: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    episodes: bool = True
    left_out: Counter[str] = field(default_factory=Counter)


def _label(labels: Mapping[str, Any], name: str) -> Any:
    return known_label(labels, name) if name in FIELDS else labels.get(name)


def _take(dialogues: CorpusReader, choice: Choice) -> _Turns:
    turns = _Turns()
    numbers: dict[Any, int] = {}
    known: dict[str, None] = {"speaker": None}
    for dialogue in dialogues:
        labels = dialogue.labels
        key: Any = dialogue.id
        if "episode" in labels:
            key = (labels.get("show"), labels.get("season"), labels["episode"])
        else:
            turns.episodes = False
        group = numbers.setdefault(key, len(numbers))
        for turn in dialogue.turns:
            who: Any = turn.speaker
            if choice.by != "speaker":
                known.update(dict.fromkeys((*labels, *turn.labels)))
                known.update({name: None for name in FIELDS if known_label(labels, name) is not None})
                who = _label(turn.labels, choice.by)
                who = _label(labels, choice.by) if who is None else who
            if not turn.text.strip():
                turns.left_out["empty turns"] += 1
            elif who is None:
                turns.left_out[f"turns without {choice.by!r}"] += 1
            else:
                turns.who.append(choice.rename.get(str(who), str(who)))
                turns.texts.append(turn.text)
                turns.groups.append(group)
    if choice.by not in known:
        hint = f"known: {', '.join(known)}"
        raise UserError(f"no turn has a label {choice.by!r}{nearest(choice.by, tuple(known))}", hint)
    if not turns.who:
        raise DataError(f"{dialogues.path}: there is nothing to look at: all turns are empty")
    return turns
