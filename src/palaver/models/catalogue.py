"""The trained models that come with Palaver, by name: in the package itself, or in the package palaver-data.

A wheel of Palaver leaves out what few people need; `palaver-data`, built from the same repository, holds it.
A checkout has everything.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import palaver
from palaver.errors import MissingExtra, UserError, nearest, pip_line

PREFIX = "default"
"""Every shipped name begins with it."""

Shelf = Literal["checkpoints", "encoders"]
SHELVES: dict[Shelf, str] = {
    "checkpoints": "generation/checkpoints",
    "encoders": "models/encoders/trained",
}
"""Kind of model -> its folder inside palaver. In palaver_data the folder has the name of the kind."""
IN_DATA: dict[Shelf, tuple[str, ...]] = {
    "checkpoints": ("default-personality",),
    "encoders": ("infersent", "sent2vec", "skipthought"),
}
"""What palaver-data holds."""


def models_on(shelf: Shelf) -> dict[str, Path]:
    """Name -> folder, of all that is installed."""
    roots = [Path(palaver.__file__).parent / SHELVES[shelf]]
    data = importlib.util.find_spec("palaver_data")  # found, not imported: it holds no code
    if data is not None:
        roots += [Path(place) / shelf for place in data.submodule_search_locations or ()]
    folders = [path for root in roots if root.is_dir() for path in root.iterdir()]
    folders = [path for path in folders if (path / "config.json").is_file()]
    return {path.name: path for path in sorted(folders, key=lambda path: path.name)}


def not_installed(shelf: Shelf) -> list[str]:
    """The names that the package palaver-data would bring."""
    return [name for name in IN_DATA[shelf] if name not in models_on(shelf)]


def missing_data(names: Sequence[str]) -> MissingExtra:
    """The error for models that lie in palaver-data, which is not installed."""
    verb = "is" if len(names) == 1 else "are"
    return MissingExtra(
        f"{', '.join(names)} {verb} in the package palaver-data, which is not installed",
        f"install it with: {pip_line('data')}",
    )


def shipped() -> dict[str, Path]:
    """The checkpoints: name -> folder."""
    return models_on("checkpoints")


def shipped_checkpoint(name: str) -> Path:
    """The folder of a shipped checkpoint."""
    folders = shipped()
    if name not in folders:
        if name in IN_DATA["checkpoints"]:
            raise missing_data([name])
        known = "this installation holds no checkpoints at all"
        if folders:
            known = f"shipped: {', '.join(folders)}"
        raise UserError(f"there is no shipped checkpoint {name!r}{nearest(name, list(folders))}", known)
    return folders[name]
