"""Errors that are the user's to mend, and the seam for optional parts.

The library raises `UserError`; the command line renders it once (exit 1 or 2, no traceback), the server once.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType


class UserError(Exception):
    """Something the user can put right: what was expected, what was found, what to do."""

    def __init__(self, message: str, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problems = tuple(problems)

    def __str__(self) -> str:
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


class MissingExtra(UserError):
    """An optional part was used that is not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, which comes with the optional `extra`, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there; something it needs is broken
        raise MissingExtra(
            f"this needs the Python package {error.name!r}, which is not installed",
            f'install it with: pip install "palaver[{extra}]"',
        ) from error


def nearest(name: str, known: Sequence[str]) -> str:
    """` (did you mean 'x'?)` for the closest known name, or an empty string."""
    import difflib

    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""
