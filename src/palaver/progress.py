"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is in all."""


def no_progress(what: str, done: int, total: int) -> None:
    """For callers who do not want to know."""
