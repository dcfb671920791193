"""TOML files into values, with the line of every key, so that all mistakes can be shown at once."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from palaver.errors import NO_FIELD, ConfigError
from palaver.files import TextStream, as_path

Location = tuple[str | int, ...]


_TOKEN = re.compile(
    r'''
    """ (?: \\. | [^\\] )*? "{3,5}     # up to two more quotes may belong to the text
    | \'{3} .*? \'{3,5}
    | " (?: \\. | [^"\\] )* "
    | ' [^']* '
    | \# [^\n]*
    | [\n\[\]{}=,.]
    | [^\s\[\]{}=,.#"']+              # a bare key, or a piece of a number or a date
    ''',
    re.DOTALL | re.VERBOSE,
)


class _Token(NamedTuple):
    text: str
    line: int


class Lines:
    """Line of each key and array element of a TOML text that `tomllib` has accepted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[_Token] = []
        """What is left to walk over, the last one first; without blanks and comments."""
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
        line = 1
        for match in _TOKEN.finditer(self._text):
            if not match[0].startswith("#"):
                self._tokens.append(_Token(match[0], line))
            line += match[0].count("\n")
        self._tokens.append(_Token("", line))
        self._tokens.reverse()
        table: Location = ()
        while self._next.text:
            if self._next.text == "\n":
                self._tokens.pop()
            elif self._next.text == "[":
                table = self._header()
            else:
                self._pair(table)

    @property
    def _next(self) -> _Token:
        return self._tokens[-1]

    def _header(self) -> Location:
        start = self._tokens.pop().line
        is_element = self._next.text == "["
        if is_element:
            self._tokens.pop()
        table = self._resolve(self._key(), start, is_element)
        while self._next.text == "]":
            self._tokens.pop()
        self._lines[table] = start  # also when [a.b] further up has implied [a] already
        return table

    def _resolve(self, keys: list[str], line: int, is_element: bool) -> Location:
        """`[[a.b]]` and `[a.b.c]` name the newest element of each array of tables on the way."""
        path: Location = ()
        for i, key in enumerate(keys):
            path = (*path, key)
            self._lines.setdefault(path, line)
            if is_element and i == len(keys) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _key(self) -> list[str]:
        """The parts of a dotted key."""
        word = self._tokens.pop().text
        if word[0] in "\"'":
            word = tomllib.loads(f"key = {word}")["key"]
        if self._next.text != ".":
            return [word]
        self._tokens.pop()
        return [word, *self._key()]

    def _pair(self, table: Location) -> None:
        start = self._next.line
        path = table
        for key in self._key():
            path = (*path, key)
            self._lines.setdefault(path, start)
        self._tokens.pop()  # the equals sign
        self._value(path)

    def _value(self, path: Location) -> None:
        start = self._tokens.pop().text
        if start == "[":
            self._sequence(path, "]")
        elif start == "{":
            self._sequence(path, "}")
        else:
            while self._next.text not in (",", "]", "}", "\n", ""):
                self._tokens.pop()

    def _sequence(self, path: Location, end: str) -> None:
        index = 0
        while self._next.text != end:
            if self._next.text in (",", "\n"):
                self._tokens.pop()
            elif end == "]":
                self._lines[(*path, index)] = self._next.line
                self._value((*path, index))
                index += 1
            else:
                self._pair(path)
        self._tokens.pop()


def read_toml(path: str | Path) -> tuple[dict[str, Any], Lines]:
    """The values of a TOML file and where each stands."""
    with TextStream(as_path(path)) as stream:
        return parse_toml(stream.read().decode(), path)


def parse_toml(text: str, name: str | Path) -> tuple[dict[str, Any], Lines]:
    """The same from a text; `name` is what errors call it."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits or 1,000 brackets in a row, too
        raise ConfigError(f"{name} is not valid TOML: {error}", _settings_wanted(name)) from None
    return data, Lines(text.replace("\r\n", "\n"))


def _settings_wanted(name: str | Path) -> str:
    """The hint where a table or a text was given."""
    return "" if Path(name).suffix in ("", ".toml") else "expected a file of settings, such as study.toml"


def config_error(path: Path, lines: Lines, mistakes: Iterable[tuple[Location, str]]) -> ConfigError:
    """One error that names every mistake with its line and place, in the order of the file."""
    mistakes = list(mistakes)
    placed = sorted({(lines.of(location) or 0, dotted(location), text) for location, text in mistakes})
    listed = [
        f"line {line}: {place}: {text}" if line else f"{place or 'the file'}: {text}"
        for line, place, text in placed
    ]
    count = "1 mistake" if len(listed) == 1 else f"{len(listed)} mistakes"
    return ConfigError(f"{path} has {count}:", _other_file(mistakes), listed)


_FILES = (
    ({"test", "systems"}, "an experiment", "palaver evaluate"),
    ({"questions"}, "a study", "palaver study serve"),
    ({"conversation"}, "a collection", "palaver collect serve"),
    ({"preset", "data"}, "settings of a training", "palaver train responder"),
    ({"systems"}, "systems", "palaver generate --systems"),
)
"""Fields of the files that Palaver knows: what they describe, and which command takes them."""


def _other_file(mistakes: Iterable[tuple[Location, str]]) -> str:
    """What a file with these unknown fields seems to be, and who reads it, in words."""
    unknown = {str(place[0]) for place, text in mistakes if len(place) == 1 and text.startswith(NO_FIELD)}
    for fields, noun, command in _FILES:
        if fields <= unknown:
            return f"it looks like {noun}, which `{command}` takes"
    return ""


def dotted(location: Location) -> str:
    """`items[2].outputs[0].text`: arrays counted from 1, as people count."""
    text = ""
    for part in location:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def toml_value(value: Any) -> str:
    """A value as TOML writes it: tables inline, a list of tables one a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        if any(isinstance(v, dict) for v in value):
            return "[\n  " + ",\n  ".join(map(toml_value, value)) + ",\n]"
        return f"[{', '.join(map(toml_value, value))}]"
    if value is None:
        hint = "keep such values in a JSON-lines file: a study names one with items_from"
        raise ConfigError("a label has no value, and TOML has no word for that", hint)
    # JSON's strings, numbers and truth values are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)
