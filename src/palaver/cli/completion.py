"""Names that the shell completes. Each list is made when the shell asks for it, not before."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

Complete = Callable[[str], list[str | tuple[str, str]]]
"""From what was typed to names, or (name, what the shell says beside it)."""


def names_from(target: str, shelf: Any = None) -> Complete:
    """Completes with what "module:NAME" holds: names, or a function that gives them.

    Models on `shelf` that are not installed come too, with a word that says so.
    """

    def complete(incomplete: str) -> list[str | tuple[str, str]]:
        module, _, attribute = target.partition(":")
        try:
            held: Any = getattr(importlib.import_module(module), attribute)
            names: Iterable[str] = held() if callable(held) else held
            absent = _not_installed(shelf) if shelf else []
            return [
                (name, "not installed: palaver doctor says how") if name in absent else name
                for name in dict.fromkeys([*names, *absent])
                if name.startswith(incomplete)
            ]
        except Exception:  # a missing extra or a broken file: the shell is no place to say so
            return []

    return complete


def _not_installed(shelf: Any) -> list[str]:
    from palaver.models.catalogue import not_installed

    return not_installed(shelf)


systems = names_from("palaver.generation.systems_file:system_names", "checkpoints")
judges = names_from("palaver.judges.catalogue:judge_names")
metrics = names_from("palaver.metrics.metric:METRICS")
encoders = names_from("palaver.models.encoders:ENCODERS", "encoders")
corpora = names_from("palaver.corpora.catalogue:CORPORA")
recognisers = names_from("palaver.personality.recogniser:RECOGNISERS")
selectors = names_from("palaver.knowledge.selector:SELECTORS")
packages = names_from("palaver.models.packages:PACKAGES")
recipes = names_from("palaver.training.experiment_file:PRESETS")
comparator_recipes = names_from("palaver.comparator.cmade.presets:PRESETS")
