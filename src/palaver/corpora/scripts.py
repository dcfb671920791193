"""Television scripts: Friends and The Big Bang Theory, as in Xing and Fernández (2018), section 3.1.

A CSV with the columns `show, season, episode, scene, speaker, text`. A scene is a dialogue, so that
consecutive turns, which make the pairs of context and response, never cross from one scene into the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from palaver.corpora.reading import UNKNOWN, build, csv_rows
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue

COLUMNS = ("show", "season", "episode", "scene", "speaker", "text")
EVERYBODY = "#ALL#"
"""Who speaks when all do, in the Friends transcripts."""

Scene = tuple[str, str, str, str]


def read_script(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """One dialogue a scene, in the order of the file."""
    seen: set[Scene] = set()
    current: Scene | None = None
    turns: list[dict[str, Any]] = []
    begins = 0
    for number, row in csv_rows(path, COLUMNS, tally):
        scene = (row["show"], row["season"], row["episode"], row["scene"])
        if scene != current:
            if current is not None and turns:
                yield _dialogue(current, turns, f"{path}, row {begins}", tally, seen)
            current, turns, begins = scene, [], number
        if not row["text"].strip():
            tally["rows without a text, left out"] += 1
            continue
        if not row["speaker"].strip():
            tally[f"turns without a speaker, called {UNKNOWN} here"] += 1
        turns.append({"speaker": row["speaker"].strip() or UNKNOWN, "text": row["text"]})
    if current is not None and turns:
        yield _dialogue(current, turns, f"{path}, row {begins}", tally, seen)


def _dialogue(
    scene: Scene, turns: list[dict[str, Any]], place: str, tally: Tally, seen: set[Scene]
) -> Dialogue:
    if scene in seen:
        tally["scenes whose rows do not stand together, read as several dialogues of one id"] += 1
    seen.add(scene)
    show, *numbers = scene
    season, episode, number = (_number(n, word, place) for n, word in zip(numbers, COLUMNS[1:], strict=False))
    if episode is None or number is None:
        raise DataError(f"{place}: expected a number of the episode and of the scene, found none")
    at = f"s{season:02d}e{episode:02d}" if season is not None else f"e{episode:03d}"
    labels = {"show": show, "season": season, "episode": episode, "scene": number}
    return build(f"{show}-{at}-{number:02d}", turns, labels, place)


def _number(cell: str, column: str, place: str) -> int | None:
    if not cell.strip():
        return None  # The Big Bang Theory has no seasons here
    if not cell.strip().isdecimal():
        raise DataError(f"{place}: {column}: expected a number, found {cell!r}")
    return int(cell)


def main_characters(dialogues: Iterable[Dialogue], min_turns: int = 2000) -> tuple[str, ...]:
    """Who has at least `min_turns` turns, most first: the characters that get a vector of their own."""
    counts = Counter(turn.speaker for dialogue in dialogues for turn in dialogue.turns)
    often = [name for name, n in counts.items() if n >= min_turns and name not in (UNKNOWN, EVERYBODY)]
    return tuple(sorted(often, key=lambda name: (-counts[name], name)))
