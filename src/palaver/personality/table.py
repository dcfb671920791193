"""The personality of each character as a table: what training a Personality Model starts from.

Xing & Fernández (2018, section 3.1): the recogniser scores 50 samples of 500 utterances of each character,
and their mean is the character's personality. The file is that of `palaver.corpora.personalities`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaver.corpora.personalities import TRAITS, Scores
from palaver.errors import DataError
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice, check_sizes
from palaver.personality.protocol import estimate_traits
from palaver.personality.recogniser import HIGHEST, LOWEST
from palaver.personality.results import Character
from palaver.personality.sources import read_pools
from palaver.progress import Progress, no_progress
from palaver.tabular import Tabular

MIDDLE = (LOWEST + HIGHEST) / 2


@dataclass(frozen=True, kw_only=True, repr=False)
class PersonalityTable(Tabular):
    """Characters and their scores, from 1 to 7."""

    recogniser: str
    characters: tuple[Character, ...]
    samples: int
    size: int
    """Utterances in a sample."""
    notes: tuple[str, ...] = ()

    def scores(self, *, relative: bool = False) -> dict[str, Scores]:
        """The table that training reads: speaker -> the mean scores.

        `relative` spreads them over the scale: over the characters each trait has mean 4 and standard
        deviation 1. Estimates lie close together, and a model can hardly see what they differ in.
        """
        scores = np.array([character.ocean for character in self.characters])
        if relative:
            spread = scores.std(axis=0)
            scores = MIDDLE + (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1)
            scores = np.clip(scores, LOWEST, HIGHEST)
        return {c.name: tuple(row) for c, row in zip(self.characters, scores.tolist(), strict=True)}

    def _headline(self) -> str:
        return f"{', '.join(TRAITS)} of {len(self.characters):,} characters"

    def _tables(self) -> dict[str, Any]:
        scores = np.array([character.ocean for character in self.characters])
        names = [character.name for character in self.characters]
        return {"characters": {"speaker": names, **dict(zip(TRAITS, scores.T, strict=True))}}


def estimate_table(
    sources: Sequence[str | Path],
    recogniser: Any,
    *,
    choice: Choice | None = None,
    settings: Settings | None = None,
    root: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
) -> PersonalityTable:
    """The characters of all sources, each estimated from its own source."""
    choice, settings = choice or Choice(), settings or Settings()
    characters: dict[str, Character] = {}
    place: dict[str, str] = {}
    notes: list[str] = []
    for source in sources:
        pools = read_pools(
            source,
            recogniser,
            choice,
            root=root,
            columns=columns,
            n_words=0,
            engine=settings.engine,
            progress=progress,
        )
        check_sizes(pools, settings.size)
        twice = [f"{name}: {place[name]} and {source}" for name in pools.characters if name in characters]
        if twice:
            raise DataError(
                "a name stands for one character in a table, and these are in two sources:",
                "give them other names with --rename OLD=NEW, or join the sources into one file",
                twice,
            )
        place |= dict.fromkeys(pools.characters, str(source))
        characters |= {who.name: who for who in estimate_traits(pools, settings)}
        notes += pools.notes
    return PersonalityTable(
        recogniser=str(getattr(recogniser, "name", type(recogniser).__name__)),
        characters=tuple(characters.values()),
        samples=settings.ocean_samples,
        size=settings.size,
        notes=tuple(notes),
    )
