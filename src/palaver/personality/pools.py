"""A pool: all utterances of one character, each with the group it belongs to. Several make a question.

Utterances are one flat table; a pool is the rows of its character. The texts themselves are needed only where
a recogniser reads whole texts; otherwise counts are all that is kept.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from palaver.errors import DataError, UserError, nearest
from palaver.personality.samples import Rows, Vectors
from palaver.personality.splits import members


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which utterances of a source are wanted, and what they are told apart by."""

    by: str = "speaker"
    """Or another label of turns and dialogues, or another column of responses: system, ocean."""
    characters: tuple[str, ...] = ()
    """Named, or else all with at least `min_utterances` of them; of responses all."""
    min_utterances: int = 2000
    rename: Mapping[str, str] = field(default_factory=dict)
    """For names spelled in two ways: from -> to."""
    system: str | None = None
    drop_common: int = 0
    """How many of the most frequent responses common to all are dropped (section 3.3: 100)."""


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Who said what, and how samples of it become vectors."""

    characters: tuple[str, ...]
    label: Rows
    """The character of each utterance."""
    group: Rows
    """The group of each utterance, numbered from 0."""
    group_noun: str
    traits: Vectors
    words: Mapping[str, Vectors] = field(default_factory=dict)
    """The controls: name -> bags of words."""
    recogniser: str = ""
    source: str = ""
    left_out: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def members(self) -> list[Rows]:
        """The rows of each character."""
        return members(self.label, len(self.characters))

    @cached_property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1 if self.group.size else 0

    @cached_property
    def n_groups_of(self) -> list[int]:
        """In how many groups each character speaks."""
        return [int(np.unique(self.group[rows]).size) for rows in self.members]

    def only(self, characters: Sequence[str]) -> Pools:
        """The pools of some of the characters, in that order."""
        chosen = [self.characters.index(name) for name in characters]
        rows = np.sort(np.concatenate([self.members[i] for i in chosen]))
        place = np.full(len(self.characters), -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen))
        return replace(
            self,
            characters=tuple(characters),
            label=place[self.label[rows]],
            group=np.unique(self.group[rows], return_inverse=True)[1].astype(np.int32),
            traits=self.traits.take(rows),
            words={name: vectors.take(rows) for name, vectors in self.words.items()},
        )


def check_sizes(pools: Pools, size: int) -> None:
    """Two characters or more, each with enough utterances for a sample."""
    if len(pools.characters) < 2:
        only = f" ({pools.characters[0]})" if pools.characters else ""
        raise UserError(
            f"nothing to tell apart: expected 2 or more characters, found {len(pools.characters)}{only}"
        )
    few = [
        f"{name}: {rows.size:,} utterances"
        for name, rows in zip(pools.characters, pools.members, strict=True)
        if rows.size <= size
    ]
    if few:
        raise DataError(
            f"a sample of {size:,} utterances needs more than {size:,} of each character, found fewer:",
            "leave these characters out, or take smaller samples with --size",
            few,
        )


def choose_characters(
    counts: Mapping[str, int],
    wanted: Sequence[str] = (),
    *,
    least: int = 1,
    never: Sequence[str] = (),
    source: str = "",
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who is looked at, most talkative first, and what looks like a name spelled in two ways.

    Those named, or else all with at least `least` utterances.
    """
    if wanted:
        unknown = [name for name in wanted if name not in counts]
        if unknown:
            common = [name for name, _ in Counter(counts).most_common(12)]
            raise DataError(
                f"{source}: there is nobody of that name",
                f"those who speak most: {', '.join(common)}",
                [f"{name!r}{nearest(name, list(counts))}" for name in unknown],
            )
        chosen = tuple(dict.fromkeys(wanted))
    else:
        often = [name for name, n in counts.items() if n >= least and name not in never]
        chosen = tuple(sorted(often, key=lambda name: (-counts[name], name)))
    if len(chosen) < 2:
        most = [f"{name}: {n:,}" for name, n in Counter(counts).most_common(5) if name not in never]
        needed = f" with {least:,} utterances or more" if least > 1 and not wanted else ""
        raise DataError(
            f"{source}: expected 2 or more characters{needed}, found {len(chosen)}; most utterances:",
            "ask for fewer with --min-utterances (and --size), or name characters with --character",
            most,
        )
    return chosen, tuple(_spellings(chosen, counts, never))


def _spellings(chosen: Sequence[str], counts: Mapping[str, int], never: Sequence[str]) -> list[str]:
    """Names that differ from a character's only in case, spaces or marks are an error if both were chosen."""
    plain = {name: _plain(name) for name in counts if name not in never}
    twice = [
        f"{a!r} ({counts[a]:,}) and {b!r} ({counts[b]:,})"
        for i, a in enumerate(chosen)
        for b in chosen[i + 1 :]
        if plain.get(a) and plain.get(a) == plain.get(b)
    ]
    if twice:
        raise DataError(
            "one character seems to be spelled in two ways, and would be two characters here:",
            "join them with --rename OLD=NEW, or leave one out with --character",
            twice,
        )
    notes = []
    for name in chosen:
        others = {plain[n]: n for n in counts if n not in chosen and n in plain and plain[n]}
        for close in difflib.get_close_matches(plain.get(name, ""), list(others), n=3, cutoff=0.85):
            other = others[close]
            if counts[other] > 1:
                notes.append(
                    f"{other!r} ({counts[other]:,} utterances) is left out: if that is {name}, "
                    f"add --rename {other!r}={name!r}"
                )
    return notes


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
