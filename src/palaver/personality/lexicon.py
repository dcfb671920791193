"""Categories of words: the open lexicon that ships with Palaver, and LIWC dictionaries the user owns.

Counting words by category is the method of Pennebaker & King (1999). The open lexicon (lexicon.toml) was
written for this project. In it a word belongs to every category one of whose patterns fits; in a `.dic` file
the most particular entry decides (the word itself, or else the longest beginning), as each entry lists all
of its categories.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from palaver.artefacts import digest
from palaver.errors import DataError, nearest
from palaver.files import TextStream

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SHAPES = {"=": _WORD, "^": re.compile(rf"{_WORD.pattern}'?"), "$": re.compile(rf"'?{_WORD.pattern}")}
_Categories = frozenset[int]
_NONE: _Categories = frozenset()


@dataclass(frozen=True)
class Lexicon:
    """Which categories a word belongs to. `exact`, `begins` and `ends` map patterns to category numbers."""

    name: str
    kind: Literal["open", "liwc"]
    categories: tuple[str, ...]
    exact: Mapping[str, _Categories]
    begins: Mapping[str, _Categories]
    ends: Mapping[str, _Categories] = field(default_factory=dict)
    not_exact: Mapping[str, _Categories] = field(default_factory=dict)
    not_begins: Mapping[str, _Categories] = field(default_factory=dict)
    includes: Mapping[int, _Categories] = field(default_factory=dict)
    """Category -> the categories that hold it, themselves among them."""
    titles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What of the file could not be used, and why."""

    def match(self, word: str) -> tuple[int, ...]:
        """The categories of a lower-cased word. "peter's" is taken as "peter" where it has none of its
        own."""
        categories = self._match(word)
        if not categories and word.endswith("'s"):
            categories = self._match(word[:-2])
        key = frozenset(categories)
        if key not in self._closed:  # the same few thousand sets come again and again
            held = key.union(*(self.includes.get(c, _NONE) for c in key))
            self._closed[key] = tuple(sorted(held))
        return self._closed[key]

    def _match(self, word: str) -> set[int]:
        if self.kind == "liwc":
            if word in self.exact:
                return set(self.exact[word])
            for size in range(min(len(word), self._longest), 0, -1):
                if word[:size] in self.begins:
                    return set(self.begins[word[:size]])
            return set()
        categories = set(self.exact.get(word, ()))
        longest = min(len(word), self._longest)
        parts = [word[:size] for size in range(1, longest + 1)]
        for part in parts:
            if part in self.begins:
                categories |= self.begins[part]
        for size in self._endings:
            if word[-size:] in self.ends and size <= len(word):
                categories |= self.ends[word[-size:]]
        if not categories:
            return categories
        categories -= self.not_exact.get(word, _NONE)
        for part in parts:
            if part in self.not_begins:
                categories -= self.not_begins[part]
        return categories

    @cached_property
    def _closed(self) -> dict[_Categories, tuple[int, ...]]:
        return {}

    @cached_property
    def singles(self) -> dict[str, int]:
        """Words that are a category by themselves -> its number."""
        return {
            c.partition(":")[2]: i for i, c in enumerate(self.categories) if ":" in c and self.kind == "open"
        }

    @cached_property
    def _longest(self) -> int:
        return max((len(p) for group in (self.begins, self.not_begins) for p in group), default=0)

    @cached_property
    def _endings(self) -> tuple[int, ...]:
        return tuple(sorted({len(p) for p in self.ends}))

    @cached_property
    def signature(self) -> str:
        """A short hash of everything that decides what a word counts as."""
        parts = (self.exact, self.begins, self.ends, self.not_exact, self.not_begins, self.includes)
        rows = [sorted((key, sorted(value)) for key, value in part.items()) for part in parts]
        text = repr((self.kind, self.categories, rows))
        return digest(text.encode())[:12]


def open_lexicon() -> Lexicon:
    """The lexicon that ships with Palaver."""
    text = files("palaver.personality").joinpath("lexicon.toml").read_text(encoding="utf-8")
    return parse_lexicon(text, "open")


def read_lexicon(path: Path) -> Lexicon:
    """A LIWC dictionary (`.dic`), or a lexicon in the layout of our own (`.toml`)."""
    with TextStream(path) as stream:
        text = stream.read().decode()
    if path.name.lower().removesuffix(".gz").endswith(".toml"):
        return parse_lexicon(text, str(path))
    return parse_dic(text, str(path))


def parse_lexicon(text: str, name: str) -> Lexicon:
    """A lexicon from TOML: a table for each category with `title`, `words` and `includes`."""
    try:
        tables = _each_apart(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{name} is not TOML: {error}") from None
    number = {category: i for i, category in enumerate(tables)}
    groups: dict[str, dict[str, set[int]]] = {key: {} for key in ("=", "^", "$", "!=", "!^")}
    problems: list[str] = []
    for category, table in tables.items():
        if not isinstance(table, dict) or not isinstance(table.get("words", ""), str):
            problems.append(f'[{category}]: expected a table with words = "…"')
            continue
        problems += [f"[{category}]: unknown key {k!r}" for k in set(table) - {"title", "words", "includes"}]
        for other in table.get("includes", ()):
            if other not in number:
                problems.append(
                    f"[{category}] includes {other!r}, which is no category{nearest(other, list(number))}"
                )
        for pattern in table.get("words", "").split():
            kind, bare = _pattern(pattern)
            if kind not in groups or not _SHAPES[kind[-1]].fullmatch(bare):
                problems.append(f"[{category}]: {pattern!r} is no word, beginning* or *ending")
                continue
            groups[kind].setdefault(bare, set()).add(number[category])
    if problems:
        raise DataError(f"{name} has {_count(problems)}:", problems=problems)
    if not tables:
        raise DataError(f"{name} names no category")
    frozen = {key: {p: frozenset(c) for p, c in group.items()} for key, group in groups.items()}
    return Lexicon(
        name=name,
        kind="open",
        categories=tuple(tables),
        exact=frozen["="],
        begins=frozen["^"],
        ends=frozen["$"],
        not_exact=frozen["!="],
        not_begins=frozen["!^"],
        includes=_holders({c: t.get("includes", ()) for c, t in tables.items()}, number),
        titles=tuple(str(t.get("title", c)) for c, t in tables.items()),
    )


def _each_apart(tables: dict[str, Any]) -> dict[str, Any]:
    """A table with `each` becomes as many tables as it has words."""
    apart: dict[str, Any] = {}
    for category, table in tables.items():
        if isinstance(table, dict) and isinstance(table.get("each"), str):
            apart |= {f"{category}:{word}": {"words": word} for word in table["each"].split()}
        else:
            apart[category] = table
    return apart


def _pattern(pattern: str) -> tuple[str, str]:
    """`!happi*` -> ("!^", "happi")."""
    bare = pattern.removeprefix("!")
    sign = "!" if bare != pattern else ""
    if bare.endswith("*"):
        kind, bare = "^", bare[:-1]
    elif bare.startswith("*"):
        kind, bare = "$", bare[1:]
    else:
        kind = "="
    return sign + kind, bare.lower()


def _holders(includes: Mapping[str, Iterable[str]], number: Mapping[str, int]) -> dict[int, _Categories]:
    """Category -> itself and all that include it, directly or through others."""
    holders = {i: {i} for i in number.values()}
    for _ in number:
        before = sum(map(len, holders.values()))
        for category, others in includes.items():
            for other in others:
                for held in holders.values():
                    if number[other] in held:
                        held.add(number[category])
        if sum(map(len, holders.values())) == before:
            break
    return {i: frozenset(held) for i, held in holders.items()}


def parse_dic(text: str, name: str) -> Lexicon:
    """A LIWC dictionary: numbered categories between two lines of `%`, then words with category numbers.

    The opening `%` may be missing, columns may be parted by tabs or spaces, and category names may be
    followed by a description. All broken lines are reported together.
    """
    lines = list(enumerate(text.splitlines(), start=1))
    marks = [number for number, line in lines if line.strip() == "%"]
    if not marks:
        raise DataError(
            f"{name}: expected numbered categories, then a line with %, then words; found no line with %",
            "is this a LIWC dictionary (.dic)?",
        )
    begin, end = (marks[0], marks[1]) if len(marks) > 1 else (0, marks[0])
    problems = [
        f"line {n}: expected nothing before the first %, found {line.strip()!r}"
        for n, line in lines[: max(begin - 1, 0)]
        if line.strip()
    ]
    problems += [f"line {n}: a third %" for n in marks[2:]]
    ids, names = _dic_header(lines[begin : end - 1], problems)
    exact: dict[str, set[int]] = {}
    begins: dict[str, set[int]] = {}
    unusable: dict[str, int] = {}
    for number, line in lines[end:]:
        if line.strip() and line.strip() != "%":
            _dic_entry(number, line, ids, exact, begins, unusable, problems)
    if not problems and not exact and not begins:
        problems.append("after the categories: no words")
    if problems:
        raise DataError(f"{name} has {_count(problems)}:", problems=problems)
    return Lexicon(
        name=name,
        kind="liwc",
        categories=tuple(names),
        exact={w: frozenset(c) for w, c in exact.items()},
        begins={w: frozenset(c) for w, c in begins.items()},
        titles=tuple(names),
        notes=tuple(f"{count:,} {reason}" for reason, count in unusable.items()),
    )


def _dic_header(lines: list[tuple[int, str]], problems: list[str]) -> tuple[dict[int, int], list[str]]:
    """LIWC's own number of a category -> ours, and the names."""
    ids: dict[int, int] = {}
    first: dict[int, int] = {}
    names: list[str] = []
    for number, line in lines:
        if not line.strip():
            continue
        parts = line.split(maxsplit=2)
        if len(parts) < 2 or not parts[0].isdecimal():
            problems.append(f"line {number}: expected a number and a category, found {line.strip()!r}")
            continue
        own = int(parts[0])
        if own in ids:
            problems.append(f"line {number}: category {own} is there already, in line {first[own]}")
        elif parts[1] in names:
            problems.append(f"line {number}: the name {parts[1]!r} is there already")
        else:
            ids[own], first[own] = len(names), number
            names.append(parts[1])
    if not names:
        problems.append("between the % lines: no categories")
    return ids, names


def _dic_entry(
    number: int,
    line: str,
    ids: Mapping[int, int],
    exact: dict[str, set[int]],
    begins: dict[str, set[int]],
    unusable: dict[str, int],
    problems: list[str],
) -> None:
    parts = line.replace("’", "'").lower().split()
    while (
        len(parts) > 1
        and not parts[0].isdecimal()
        and not parts[1][0].isdecimal()
        and parts[1][0] not in "(<"
    ):
        parts[:2] = [f"{parts[0]} {parts[1]}"]
    pattern, listed = parts[0], parts[1:]
    if any(mark in cell for cell in listed for mark in "(<>/)"):
        # "like (02 134)125/464 253": categories that hang on the words beside it, which nobody else reads
        unusable["entries with conditions, taken without them"] = (
            unusable.get("entries with conditions, taken without them", 0) + 1
        )
        listed = re.findall(r"\d+", re.sub(r"[(<][^)>]*[)>]\d*(?:/\d+)?", " ", " ".join(listed)))
    if not listed:
        problems.append(f"line {number}: {pattern!r} has no categories")
        return
    wrong = [cell for cell in listed if not cell.isdecimal() or int(cell) not in ids]
    if wrong:
        known = "which the head does not name" if all(w.isdecimal() for w in wrong) else "expected numbers"
        problems.append(f"line {number}: {pattern!r} has categories {', '.join(wrong)}, {known}")
        return
    bare = pattern.removesuffix("*")
    if "*" in bare or not bare:
        problems.append(f"line {number}: {pattern!r}: * may only stand at the end of a word")
    elif not _WORD.fullmatch(bare.rstrip("'") if pattern != bare else bare):
        reason = (
            "entries of several words, left out"
            if re.search(r"[\s-]", bare)
            else "entries that are no words, left out"
        )
        unusable[reason] = unusable.get(reason, 0) + 1
    else:
        group = begins if pattern != bare else exact
        group.setdefault(bare, set()).update(ids[int(cell)] for cell in listed)


def _count(problems: list[str]) -> str:
    return "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
