"""How a worker gets its model: it opens one itself, once, and never finds one in a shard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

M = TypeVar("M")


class Recipe(Generic[M]):
    """Opens a model at first use and holds it. Only the way to open it is sent to a worker, not the model."""

    def __init__(self, open: Callable[[], M], held: M | None = None) -> None:
        self._open = open
        self._held = held

    def __getstate__(self) -> dict[str, Any]:
        return {"_open": self._open, "_held": None}

    @classmethod
    def of(cls, held: M, open: Callable[[], M] | None = None) -> Recipe[M]:
        """One that is open here. Without a way to open it, a worker is sent the model itself."""
        return cls(open or partial(_itself, held), held)

    @property
    def model(self) -> M:
        if self._held is None:
            self._held = self._open()
        return self._held


def _itself(held: M) -> M:
    return held
