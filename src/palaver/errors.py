"""Errors that are the user's to mend, and the seam for optional parts.

The library raises `UserError`; the command line renders it once (exit 1 or 2, no traceback), the server once.
Messages name options as the command line has them; in Python, where an error shows itself, `in_python` names
the arguments instead.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


class Sentence(str):
    """A text in English that knows its parts, so that a page can say it in the reader's language.

    `Sentence("expected {wanted}, found {found!r}", wanted=…, found=…)`; parts may be sentences, too.
    """

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, **values: Any) -> Sentence:
        sentence = super().__new__(cls, template.format(**values))
        sentence.template, sentence.values = template, values
        return sentence

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


def join_sentences(sentences: Sequence[Sentence]) -> Sentence:
    """Several of them as one, with semicolons."""
    joined = sentences[0]
    for sentence in sentences[1:]:
        joined = Sentence("{first}; {second}", first=joined, second=sentence)
    return joined


class UserError(Exception):
    """Something the user can put right: what was expected, what was found, what to do."""

    def __init__(self, message: str, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return in_python(self._text())

    def _text(self) -> str:
        lines = [self.message, *(f"  - {p}" for p in self.problems)]
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


class DataError(UserError):
    """A file holds something that cannot be used; `problems` lists every place."""


class ConfigError(UserError):
    """A configuration or study file is wrong; `problems` lists every mistake with its line."""


class UsageError(UserError):
    """The command line asks for what cannot be done (exit 2)."""

    def __str__(self) -> str:
        return self._text()


class MissingExtra(UserError):
    """An optional part was used that is not installed."""


_IN_PYTHON = {
    " with --out": "",  # the place is the function's first or second argument, under its own name
    " with --ratings": "",
    "--force to replace it": "force=True to replace it",
    "--force": "fresh=True",
    "--skip-bad to `study analyse`": "skip_bad=True",
    "; other commands take the ratings.parquet that it writes": "",
    "--skip-bad": "skip_bad=True",
    "written to bad-rows.csv": "kept in `.bad`",
    "--no-cache": "cache=None",
    "--no-check": "check=False",
    "--by unigram_f1": 'by=["unigram_f1"]',
    "--by system": 'by="system"',
    "--engine ray:HOST:6379": 'engine="ray:HOST:6379"',
    "--engine ray:auto": 'engine="ray:auto"',
    "--engine local": 'engine="local"',
    "--device cpu": 'device="cpu"',
    "--normalise log": 'normalise="log"',
    "where it is: --data": "where it is: root=",
    "NAME --data FOLDER": 'read_corpus("NAME", root="FOLDER")',
    "--systems": "--file",
    "--column": "--columns",
    "--character": "--characters",
    "--text": "--texts",
    "--from A --from B": 'sources=["A", "B"]',
    "--from": "--copy",
    "--set": "--assignments",
    "--dev-pairs": "--pairs",
    "--dev-dialogues": "--dev",
}
"""What the general rule, `--min-turns` -> `min_turns=`, would get wrong. The first that fits counts."""

_FREE = r"""(?<![\w'"-])"""
"""What a user's file holds stands in quotes and is no option."""
_EXCEPTION = re.compile(
    "|".join(rf"{_FREE if words[0] == '-' else ''}{re.escape(words)}(?![\w-])" for words in _IN_PYTHON)
)
_COMMAND = re.compile(r"(\b(?:palaver|pip|ray|inspect log) [a-z][^`(,;\n]*)")
"""A whole command, which stays as it is."""
_PART = r"""('[^']*'|"[^"]*"|[\w.]+)"""
_LIST = r"""([\w.]+(?:,[\w.]+)+|[A-Z]+(?: [A-Z]+)*\b|"[^"]*")"""
_OPTION = re.compile(rf"{_FREE}--([a-z]+(?:-[a-z]+)*)(?: (?:{_PART}={_PART}|{_LIST}))?")
"""An option with what follows it: FIELD=NAME, FILE, LOW HIGH, a,b or "a text"; any other word is prose."""


def in_python(text: str) -> str:
    """The text with options as arguments: `--column item=NAME` becomes `columns={"item": "NAME"}`."""
    parts = _COMMAND.split(text)
    for place in range(0, len(parts), 2):
        plain = _EXCEPTION.sub(lambda words: _IN_PYTHON[words.group()], parts[place])
        parts[place] = _OPTION.sub(_argument, plain)
    return "".join(parts)


def _argument(option: re.Match[str]) -> str:
    name, key, value, words = option.groups()
    name = name.replace("-", "_")
    if key is not None and name == "assignments":
        return f'{name}=["{key}={value}"]'
    if key is not None:
        return f"{name}={{{_quoted(key)}: {_quoted(value)}}}"
    if words is None:
        return f"{name}="
    if " " in words and words.isupper():
        return f"{name}=({words.replace(' ', ', ')})"
    return f"{name}={_value(words.strip(chr(34)), is_list=name == 'criteria')}"


def _value(text: str, *, is_list: bool = False) -> str:
    """`a,b` is a list, `a=1,b=2` a mapping, and `c:a,b` a mapping from c to one of these."""
    criterion, colon, rest = text.partition(":")
    if colon:
        return f"{{{_quoted(criterion)}: {_value(rest)}}}"
    parts = text.split(",")
    if all("=" in part for part in parts):
        pairs = [part.split("=", 1) for part in parts]
        return f"{{{', '.join(f'{_quoted(word)}: {number}' for word, number in pairs)}}}"
    if is_list or len(parts) > 1:
        return f"[{', '.join(map(_quoted, parts))}]"
    return _quoted(text)


def _quoted(text: str) -> str:
    return f'"{text.strip(chr(39) + chr(34))}"'


def require(module: str, extra: str = "") -> ModuleType:
    """Import `module`, which comes with the optional `extra` or alone, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there; something it needs is broken
        raise MissingExtra(
            f"this needs the Python package {error.name!r}, which is not installed",
            f"install it with: {pip_line(extra) if extra else f'pip install {module}'}",
        ) from error


def pip_line(extra: str) -> str:
    """What installs the optional `extra`, from where Palaver itself came: an index, a folder, a wheel."""
    import importlib.metadata
    import json
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        origin = json.loads(importlib.metadata.distribution("palaver").read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        origin = {}
    url = urlsplit(origin.get("url", ""))
    path = Path(url2pathname(url.path))
    if url.scheme == "file" and path.exists():
        option = "-e " if origin.get("dir_info", {}).get("editable") else ""
        if any(path.parent.glob("palaver_data-*.whl")):  # both wheels in one folder, neither in an index
            option = f'--find-links "{path.parent}" '
        return f'pip install {option}"{path}[{extra}]"'
    if url.scheme in ("http", "https"):
        tool = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        return f'pip install "palaver[{extra}] @ {tool}{url.geturl()}"'
    return f'pip install "palaver[{extra}]"'


def nearest(name: str, known: Sequence[str]) -> str:
    """` (did you mean 'x'?)` for the closest known name, or an empty string."""
    import difflib

    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def check_list(name: str, value: object) -> None:
    """A text is a sequence of letters to Python, and never what was meant."""
    if isinstance(value, str):
        raise UserError(
            f"{name}: expected a list, found the text {short_repr(value)}", "put it into a list: [text]"
        )


def check_kind(value: object, kind: type, where: str) -> None:
    """One thing of another kind than a function takes, said in a sentence."""
    if not isinstance(value, kind):
        raise UserError(f"{where}: expected {kind.__name__}, found {short_repr(value)}")


def count_of(number: int, noun: str) -> str:
    """`1 word`, `1,200 words`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


NO_FIELD = "there is no such field"
_EXPECTED = {
    "string_type": "expected a text",
    "string_too_short": "must not be empty",
    "string_too_long": "expected at most {max_length} characters",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "expected a number"),
    "finite_number": "expected a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "expected a list"),
    "too_short": "expected at least {min_length}",
    "too_long": "expected at most {max_length}",
    **dict.fromkeys(("dict_type", "model_type", "mapping_type"), "expected a table"),
    "scale_type": 'expected a table such as {{ kind = "likert" }}',
    "literal_error": "expected {expected}",
    "greater_than": "expected more than {gt:.15g}",
    "greater_than_equal": "expected at least {ge:.15g}",
    "less_than": "expected less than {lt:.15g}",
    "less_than_equal": "expected at most {le:.15g}",
}
"""Pydantic's types of error; it speaks of tuples and dictionaries, a TOML file of lists and tables."""


def explain_mistake(mistake: Mapping[str, Any], known: Sequence[str] = ()) -> str:
    """One of the errors of pydantic in our words; `known` are the names of the fields there are."""
    kind = mistake["type"]
    if kind == "missing":
        return "is missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{NO_FIELD}{nearest(str(mistake['loc'][-1]), known)}"
    if kind == "value_error":
        return str(mistake["ctx"]["error"])
    expected = _EXPECTED.get(kind, mistake["msg"]).format(**mistake.get("ctx", {}))
    choices = re.findall("'([^']+)'", expected) if kind == "literal_error" else []
    return f"{expected}, found {short_repr(mistake['input'])}{nearest(str(mistake['input']), choices)}"


def short_repr(value: object) -> str:
    """A value as Python shows it, cut to what fits in a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
