"""Systems that reply: decoding, the kinds of system, and replies for whole files of contexts."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "palaver.schema": ("Reply", "Request", "System"),
    "palaver.generation.system": ("check_ocean", "parse_ocean", "stable_key"),
    "palaver.generation.function": ("FunctionSystem",),
    "palaver.generation.systems_file": (
        "SystemSpec",
        "find_system",
        "load_systems",
        "open_system",
        "shipped",
    ),
    "palaver.generation.decode": ("Decoded", "Decoding"),  # `decode` itself would hide its module
    "palaver.generation.checkpoint": ("CheckpointSystem",),
    "palaver.generation.huggingface": ("HuggingFaceSystem",),
    "palaver.generation.openai": ("OpenAISystem",),
    "palaver.generation.replay": ("ReplaySystem",),
    "palaver.generation.bulk": ("generate", "generate_file"),
    "palaver.generation.common": ("common_responses", "drop_common"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Loaded when first used, so that systems without a model need no torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'palaver.generation' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
