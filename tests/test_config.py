"""TOML with line numbers: generated documents in which the line of every key is known by construction."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.config import Lines, Location, config_error, dotted, parse_toml, read_toml
from palaver.errors import ConfigError, DataError

SINGLE = [
    "1",
    "-0.5e3",
    "0xff",
    "inf",
    "true",
    "1979-05-27T07:32:00Z",
    "1979-05-27 07:32:00",
    '""',
    "''",
    r'"\""',
    r'"\\"',
    r'"a # no comment, ] } = [x] \u00e9 \" ="',
    r"""'C:\path\ # [x] "q" ]}'""",
    r"""'ends in \'""",
]
LONG = [
    '"""\nfirst\n[not.a.table]\nkey = 1  # no comment\n"""',
    '"""one"""',
    '""""""',
    '""""in quotes""""',
    '"""\ntwo quotes"""""',
    r'"""an escaped \""" inside' + '\n]"""',
    '"""a line \\\n   goes on \\\\"""',
    "'''\n[[x]]\nkey = \"\"\"\n'''",
    "'''ends in \\''''",
    "'''''two quotes'''''",
]
Places = list[tuple[Location, int]]
"""Where things are inside a value: relative location and lines below its first."""


class Writer:
    """Writes a TOML document and notes the line of everything in it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.text = ""
        self.where: dict[Location, int] = {}
        self.n_names = 0

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def name(self) -> tuple[str, str]:
        """A new key: how it is written and what it is."""
        self.n_names += 1
        n = self.n_names
        return self.rng.choice(
            [
                (f"k{n}", f"k{n}"),
                (f"-{n}_", f"-{n}_"),
                (f"{n}", f"{n}"),
                (f'"k {n}.[x] = #"', f"k {n}.[x] = #"),
                (rf'"k\u00e9\"{n}\\"', f'ké"{n}\\'),
                (rf"'k {n} \" # ]'", rf"k {n} \" # ]"),
            ]
        )

    def key(self) -> tuple[str, Location]:
        parts = [self.name() for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        dot = self.rng.choice([".", " . ", "\t."])
        return dot.join(written for written, _ in parts), tuple(key for _, key in parts)

    def value(self, depth: int) -> tuple[str, Places]:
        choose = self.rng.random()
        if depth > 2 or choose < 0.5:
            return self.rng.choice(SINGLE), []
        if choose < 0.65:
            return self.rng.choice(LONG), []
        return self.array(depth) if choose < 0.85 else self.inline(depth)

    def array(self, depth: int) -> tuple[str, Places]:
        text, places = "[", []
        count = self.rng.randrange(4)
        for i in range(count):
            text += self.rng.choice(["", " ", "\n  ", "\n# ] no end\n\n\t", "  # [\n"])
            inside, found = self.value(depth + 1)
            down = text.count("\n")
            places.append(((i,), down))
            places += [((i, *location), down + below) for location, below in found]
            text += inside + self.rng.choice(["", " ", "\n"])
            text += "," if i < count - 1 or self.rng.random() < 0.3 else ""
        return text + self.rng.choice(["]", " ]", "\n]", " # , ] end\n]"]), places

    def inline(self, depth: int) -> tuple[str, Places]:
        text, places = "{", []
        count = self.rng.randrange(3)
        for i in range(count):
            written, keys = self.key()
            down = text.count("\n")
            places += [(keys[:n], down) for n in range(1, len(keys) + 1)]
            text += f" {written} = "
            inside, found = self.value(depth + 1)
            places += [((*keys, *location), down + below) for location, below in found]
            text += inside + (" ," if i < count - 1 else " ")
        return text + "}", places

    def gap(self) -> None:
        self.text += self.rng.choice(["", "", "\n", "# a = 1\n", "  \t\n", "#[[x]]\n\n"])

    def pair(self, table: Location) -> None:
        self.gap()
        written, keys = self.key()
        for n in range(1, len(keys) + 1):
            self.where[(*table, *keys[:n])] = self.line
        self.text += self.rng.choice(["", "  "]) + written + self.rng.choice(["=", " = ", "\t=\t"])
        inside, places = self.value(0)
        for location, below in places:
            self.where[(*table, *keys, *location)] = self.line + below
        self.text += inside + self.rng.choice(["\n", "  \n", " # comment = [\n"])

    def header(self, written: list[str], location: Location, *, double: bool = False) -> None:
        self.gap()
        for n in range(1, len(location)):
            self.where.setdefault(location[:n], self.line)
        self.where[location] = self.line
        inner = self.rng.choice([".", " . "]).join(written)
        space = self.rng.choice(["", " "])
        left, right = ("[[", "]]") if double else ("[", "]")
        self.text += f"{left}{space}{inner}{space}{right}" + self.rng.choice(["\n", " # [x]\n"])
        for _ in range(self.rng.randrange(3)):
            self.pair(location)

    def table(self) -> None:
        parts = [self.name() for _ in range(self.rng.choice([1, 2, 3]))]
        written, location = [w for w, _ in parts], tuple(k for _, k in parts)
        self.header(written, location)
        if len(parts) > 1 and self.rng.random() < 0.5:  # the table it implied, after it
            self.header(written[:-1], location[:-1])

    def array_of_tables(self) -> None:
        outer, inner, plain = self.name(), self.name(), self.name()
        for i in range(self.rng.choice([1, 2, 3])):
            self.header([outer[0]], (outer[1], i), double=True)
            for j in range(self.rng.randrange(3)):
                self.header([outer[0], inner[0]], (outer[1], i, inner[1], j), double=True)
            if self.rng.random() < 0.5:
                self.header([outer[0], plain[0]], (outer[1], i, plain[1]))

    def write(self) -> None:
        for _ in range(self.rng.randrange(4)):
            self.pair(())
        for _ in range(self.rng.randrange(4)):
            self.rng.choice([self.table, self.array_of_tables])()
        self.gap()
        if self.rng.random() < 0.5:
            self.text = self.text.rstrip("\n")


def locations(value: Any, at: Location = ()) -> list[Location]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inside in pairs for found in [(*at, key), *locations(inside, (*at, key))]]


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_line_of_everything_is_known(seed: int, crlf: bool) -> None:
    writer = Writer(random.Random(seed))
    writer.write()
    text = writer.text.replace("\n", "\r\n") if crlf else writer.text
    data, lines = parse_toml(text, "x.toml")
    assert data == tomllib.loads(text)
    assert set(locations(data)) == set(writer.where), "the test's own bookkeeping"
    for location, line in writer.where.items():
        assert lines.of(location) == line, (location, text)


@given(st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_what_is_missing_is_looked_for_around_the_nearest_thing(seed: int) -> None:
    writer = Writer(random.Random(seed))
    writer.write()
    _, lines = parse_toml(writer.text, "x.toml")
    for location, line in writer.where.items():
        assert lines.of((*location, "missing", 3)) == line
    assert lines.of(("missing",)) is None
    assert lines.of(()) is None


EXAMPLE = '''name = "x"
items.a = 1
items.b = 2

[[questions]]
criterion = "a"
scale = { kind = "likert", low = 1,  labels = ["a",
  "b",
  "c"] }

[[questions]]  # the second
text = """
[[questions]]
"""
criterion = "b"

[deep.down.below]
x = 1
[deep]
y = 2
'''


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("name",), 1),
        (("items",), 2),
        (("items", "b"), 3),
        (("questions",), 5),
        (("questions", 0), 5),
        (("questions", 0, "scale", "labels", 2), 9),
        (("questions", 0, "scale", "low"), 7),
        (("questions", 0, "text"), 5),
        (("questions", 1), 11),
        (("questions", 1, "criterion"), 15),
        (("deep", "down"), 17),
        (("deep",), 19),
        (("deep", "missing"), 19),
    ],
)
def test_lines_of_an_example(location: Location, line: int) -> None:
    for text in (EXAMPLE, EXAMPLE.replace("\n", "\r\n")):
        assert parse_toml(text, "x")[1].of(location) == line


def test_an_empty_document_has_no_lines() -> None:
    for text in ("", "\n", "# only a comment", "\r\n"):
        data, lines = parse_toml(text, "x")
        assert data == {}
        assert lines.of(("a",)) is None
        assert lines.of(("a",)) is None


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ("questions", "a study, which `palaver study serve` takes"),
        ("title test systems judges", "an experiment, which `palaver evaluate` takes"),
        ("systems", "systems, which `palaver generate --systems` takes"),
        ("partners conversation", "a collection, which `palaver collect serve` takes"),
        ("titel", ""),
    ],
)
def test_a_file_of_another_kind_is_recognised(fields: str, says: str) -> None:
    mistakes: list[tuple[Location, str]] = [((name,), "there is no such field") for name in fields.split()]
    mistakes += [(("questions", 0, "scale"), "there is no such field"), (("conversation",), "is missing")]
    assert says in config_error(Path("some.toml"), Lines(""), mistakes).hint
    assert bool(config_error(Path("some.toml"), Lines(""), mistakes).hint) == bool(says)


def test_a_table_is_not_taken_for_settings(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("item,rater,value\n")
    with pytest.raises(ConfigError, match="not valid TOML") as caught:
        read_toml(tmp_path / "people.csv")
    assert caught.value.hint == "expected a file of settings, such as study.toml"
    (tmp_path / "study.toml").write_text("")
    with pytest.raises(DataError, match="is empty") as empty:
        read_toml(tmp_path / "study.toml")
    assert empty.value.hint == ""


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "a = 1\na = 2",
        "[a",
        "a = [1",
        'a = "',
        "a = 1 b = 2",
        "a\r= 1",
        "\0",
        "a = 2020-13-01",
        "a = " + "9" * 5000,
        "a = " + "[" * 10_000 + "]" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_what_is_not_toml_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^study.toml is not valid TOML: "):
        parse_toml(text, "study.toml")


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode(),
        lambda t: b"\xef\xbb\xbf" + t.encode(),
        lambda t: t.encode("utf-16"),
        lambda t: t.encode("cp1252"),
        lambda t: t.replace("\n", "\r\n").encode(),
    ],
)
def test_files_are_read_in_any_encoding(encode: Callable[[str], bytes], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(encode('title = "é"\n\n[a]\nb = 1\n'))
    data, lines = read_toml(path)
    assert data == {"title": "é", "a": {"b": 1}}
    assert lines.of(("a", "b")) == 4
    assert read_toml(str(path))[0] == data


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()
    for name, words in {
        "empty.toml": "is empty",
        "emty.toml": "did you mean 'empty.toml'",
        ".": "directory",
    }.items():
        with pytest.raises(DataError, match=words):
            read_toml(tmp_path / name)


def test_mistakes_stand_in_the_order_of_the_file_and_only_once() -> None:
    _, lines = parse_toml(EXAMPLE, "x")
    error = config_error(
        Path("s.toml"),
        lines,
        [
            (("questions", 1, "criterion"), "is asked twice"),
            (("name",), "too short"),
            (("questions", 0, "scale", "labels", 1), "no"),
            (("name",), "too short"),
            ((), "no items"),
        ],
    )
    assert error.message == "s.toml has 4 mistakes:"
    assert error.problems == (
        "the file: no items",
        "line 1: name: too short",
        "line 8: questions[1].scale.labels[2]: no",
        "line 15: questions[2].criterion: is asked twice",
    )
    assert config_error(Path("s"), lines, [(("name",), "x")]).message == "s has 1 mistake:"


def test_places_are_counted_from_one() -> None:
    assert dotted(("items", 2, "outputs", 0, "text")) == "items[3].outputs[1].text"
    assert dotted((0, "a")) == "[1].a"
    assert dotted(()) == ""


def test_lines_are_found_before_anything_else_was_asked() -> None:
    assert Lines("a = 1\nb = 2\n").of(("b",)) == 2
