"""Names people type -> objects, loaded only when asked for, with "did you mean" when they are misspelled."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast

from palaver.errors import UserError, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """A closed set of named things. A target is the thing or "module:attribute", imported at first use."""

    def __init__(self, noun: str, targets: Mapping[str, T | str]) -> None:
        self.noun = noun
        self._targets = dict(targets)
        self._loaded: dict[str, T] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def get(self, name: str) -> T:
        """The thing called `name`."""
        if name not in self._targets:
            known = ", ".join(self._targets)
            raise UserError(
                f"there is no {self.noun} {name!r}{nearest(name, list(self._targets))}", f"known: {known}"
            )
        if name not in self._loaded:
            self._loaded[name] = self._load(self._targets[name])
        return self._loaded[name]

    def _load(self, target: T | str) -> T:
        if isinstance(target, str) and ":" in target:
            module, _, attribute = target.partition(":")
            return cast(T, getattr(importlib.import_module(module), attribute))
        return cast(T, target)
