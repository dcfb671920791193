"""TOML files into values, with the line of every key, so that all mistakes can be shown at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from palaver.errors import ConfigError
from palaver.files import TextStream

Location = tuple[str | int, ...]


class Lines:
    """Line of each key and array element of a TOML text that `tomllib` has accepted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._lines: dict[Location, int] = {}
        self._counts: dict[Location, int] = {}

    def of(self, location: Location) -> int | None:
        """The line of `location`, or of the nearest thing around it. The text is walked when first asked."""
        if not self._lines:
            self._walk()
        for size in range(len(location), 0, -1):
            if location[:size] in self._lines:
                return self._lines[location[:size]]
        return None

    def _walk(self) -> None:
        table: Location = ()
        while self._skip_blank(newlines=True):
            start = self._line
            if self._text.startswith("[", self._at):
                double = self._text.startswith("[[", self._at)
                self._advance(2 if double else 1)
                table = self._resolve(self._key(), element=double)
                self._advance(2 if double else 1)
                self._lines[table] = start  # also when [a.b] further up has implied [a] already
            else:
                self._pair(table)

    def _resolve(self, keys: list[str], *, element: bool) -> Location:
        """`[[a.b]]` and `[a.b.c]` name the newest element of each array of tables on the way."""
        path: Location = ()
        for i, key in enumerate(keys):
            path = (*path, key)
            self._lines.setdefault(path, self._line)
            if element and i == len(keys) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _pair(self, table: Location) -> None:
        start = self._line
        path = table
        for key in self._key():
            path = (*path, key)
            self._lines.setdefault(path, start)
        self._advance(1)  # the equals sign
        self._value(path)

    def _key(self) -> list[str]:
        """A dotted key, up to the character that ends it (= or ])."""
        parts: list[str] = []
        while True:
            self._skip_blank()
            if self._text[self._at] in "\"'":
                parts.append(self._string())
            else:
                start = self._at
                while self._text[self._at] not in " \t.=]":
                    self._advance(1)
                parts.append(self._text[start : self._at])
            self._skip_blank()
            if self._text[self._at] != ".":
                return parts
            self._advance(1)

    def _value(self, path: Location) -> None:
        self._skip_blank()
        character = self._text[self._at]
        if character in "\"'":
            self._string()
        elif character == "[":
            self._sequence(path, "]")
        elif character == "{":
            self._sequence(path, "}")
        else:
            while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                self._advance(1)

    def _sequence(self, path: Location, end: str) -> None:
        self._advance(1)
        index = 0
        while True:
            self._skip_blank(newlines=True)
            if self._text[self._at] == end:
                self._advance(1)
                return
            if self._text[self._at] == ",":
                self._advance(1)
                continue
            if end == "]":
                self._lines[(*path, index)] = self._line
                self._value((*path, index))
                index += 1
            else:
                self._pair(path)

    def _string(self) -> str:
        """Step over a string; its text, in which only a key's escapes matter and are resolved."""
        quote, begin = self._text[self._at], self._at
        mark = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        self._advance(len(mark))
        start = self._at
        while not self._text.startswith(mark, self._at):
            self._advance(2 if quote == '"' and self._text[self._at] == "\\" else 1)
        found = self._text[start : self._at]
        self._advance(len(mark))
        while len(mark) == 3 and self._text.startswith(quote, self._at):
            self._advance(1)  # up to two more quotes may belong to the text
        if mark == '"' and "\\" in found:
            found = tomllib.loads(f"key = {self._text[begin : self._at]}")["key"]
        return found

    def _skip_blank(self, *, newlines: bool = False) -> bool:
        """Step over spaces (and line breaks and comments); False at the end of the text."""
        while self._at < len(self._text):
            character = self._text[self._at]
            if newlines and character == "#":
                while self._at < len(self._text) and self._text[self._at] != "\n":
                    self._advance(1)
            elif character in " \t\r" or (newlines and character == "\n"):
                self._advance(1)
            else:
                return True
        return False

    def _advance(self, count: int) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count


def read_toml(path: str | Path) -> tuple[dict[str, Any], Lines]:
    """The values of a TOML file and where each stands."""
    with TextStream(Path(path)) as stream:
        return parse_toml(stream.read().decode(), path)


def parse_toml(text: str, name: str | Path) -> tuple[dict[str, Any], Lines]:
    """The same from a text; `name` is what errors call it."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits or 1,000 brackets in a row, too
        raise ConfigError(f"{name} is not valid TOML: {error}") from None
    return data, Lines(text.replace("\r\n", "\n"))


def config_error(path: Path, lines: Lines, mistakes: Iterable[tuple[Location, str]]) -> ConfigError:
    """One error that names every mistake with its line and place, in the order of the file."""
    placed = sorted({(lines.of(location) or 0, dotted(location), text) for location, text in mistakes})
    listed = [
        f"line {line}: {place}: {text}" if line else f"{place or 'the file'}: {text}"
        for line, place, text in placed
    ]
    count = "1 mistake" if len(listed) == 1 else f"{len(listed)} mistakes"
    return ConfigError(f"{path} has {count}:", problems=listed)


def dotted(location: Location) -> str:
    """`items[2].outputs[0].text`: arrays counted from 1, as people count."""
    text = ""
    for part in location:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
