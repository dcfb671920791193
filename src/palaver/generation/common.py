"""Responses common to all conditions, which say nothing about who speaks.

Xing & Fernández (2018, section 3.3) remove the 100 most frequent responses common to all characters before
they ask how far the characters differ: of the responses that occur in every condition, those with the highest
total frequency. A file is gone through twice; only counts are held in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import DataError, UserError
from palaver.files import TextStream, write_atomically

Tell = Callable[[int, int], None]


def common_responses(pairs: Iterable[tuple[Hashable, str]], n: int) -> list[tuple[str, int]]:
    """The `n` most frequent of the responses that occur under every condition, each with its total.

    `pairs` are (condition, response). Equal totals are put in the order of the alphabet.
    """
    if n < 1:
        raise UserError(f"expected to drop 1 response or more, found {n}")
    bits: dict[Hashable, int] = {}
    totals: Counter[str] = Counter()
    seen: dict[str, int] = {}
    for condition, response in pairs:
        bit = bits.setdefault(condition, 1 << len(bits))
        totals[response] += 1
        seen[response] = seen.get(response, 0) | bit
    if len(bits) < 2:
        raise UserError(
            f"there are no responses common to all conditions with {len(bits)} condition",
            "generate for two or more speakers, personalities or systems",
        )
    everywhere = (1 << len(bits)) - 1
    common = [(text, total) for text, total in totals.items() if seen[text] == everywhere]
    return sorted(common, key=lambda pair: (-pair[1], pair[0]))[:n]


@dataclass(frozen=True)
class Removal:
    """What was taken out of a file of responses."""

    responses: list[tuple[str, int]]
    by_condition: dict[str, tuple[int, int]]
    """Condition -> rows dropped, rows kept."""
    out: Path


def condition_name(row: dict[str, Any]) -> str:
    """`default-speaker, Joey`: the system and who it spoke as."""
    ocean = row.get("ocean")
    who = row.get("speaker") or (",".join(f"{score:g}" for score in ocean) if ocean else "")
    return f"{row.get('system', '')}, {who}" if who else str(row.get("system", ""))


def drop_common(path: str | Path, n: int, out: str | Path | None = None, tell: Tell | None = None) -> Removal:
    """Copy a file of responses without those common to all conditions, to `OUT.cleaned.jsonl` beside it.

    What was dropped is listed in a `.json` beside the copy.
    """
    path = Path(path)
    target = (
        Path(out) if out is not None else path.with_name(f"{path.name.removesuffix('.jsonl')}.cleaned.jsonl")
    )
    pairs = (
        (condition_name(row), row["response"]) for row, _ in _rows(path, tell) if row["response"] is not None
    )
    common = common_responses(pairs, n)
    unwanted = {text for text, _ in common}
    gone: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    with write_atomically(target, "wb") as file:
        for row, line in _rows(path, tell):
            drop = row["response"] in unwanted
            (gone if drop else kept)[condition_name(row)] += 1
            if not drop:
                file.write(line)
    counts = {name: (gone[name], kept[name]) for name in sorted({*kept, *gone})}
    with write_atomically(target.with_name(target.name + ".json")) as record:
        json.dump(
            {"asked": n, "dropped_and_kept": counts, "responses": common},
            record,
            ensure_ascii=False,
            indent=1,
        )
    return Removal(common, counts, target)


def _rows(path: Path, tell: Tell | None) -> Iterator[tuple[dict[str, Any], bytes]]:
    size = max(1, path.stat().st_size) if path.exists() else 1
    with TextStream(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                row = json.loads(line)
                row["response"]
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{path}, line {number}: this is not a generated response") from None
            yield row, line
            if tell is not None and number % 10_000 == 0:
                tell(min(stream.consumed(), size), size)
