"""The checkpoints that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

import palaver
from palaver.errors import UserError, nearest

PREFIX = "default"
"""Every shipped name begins with it."""


def shipped() -> dict[str, Path]:
    """Name -> folder."""
    root = Path(palaver.__file__).parent / "generation" / "checkpoints"
    if not root.is_dir():
        return {}
    return {path.name: path for path in sorted(root.iterdir()) if (path / "config.json").is_file()}


def shipped_checkpoint(name: str) -> Path:
    """The folder of a shipped checkpoint."""
    folders = shipped()
    if name not in folders:
        known = "this installation holds no checkpoints at all"
        if folders:
            known = f"shipped: {', '.join(folders)}"
        raise UserError(f"there is no shipped checkpoint {name!r}{nearest(name, list(folders))}", known)
    return folders[name]
