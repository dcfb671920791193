"""WordLlama: averages of the token vectors of large language models, made small. Its package carries them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from palaver.artefacts import digest, digest_files
from palaver.errors import UserError, require
from palaver.models.encoders.encoder import Encoder, Places, Vectors

_SIZE = 256


def open_wordllama(arguments: list[str], places: Places) -> Encoder:
    """`wordllama`: the weights inside the Python package (l2_supercat, 256 numbers); never downloads."""
    if arguments:
        raise UserError("wordllama takes nothing after it")
    package = require("wordllama", "probes")
    from importlib.metadata import version

    inside = Path(str(package.__file__)).parent
    content = digest_files(inside.rglob("*.safetensors"))
    loaded: list[Any] = []

    def encode(texts: list[str]) -> Vectors:
        if not loaded:
            try:
                # Its loader looks for its own tokenizer in the wrong folder; told to take the package for
                # the cache, it finds both files there.
                loaded.append(package.WordLlama.load(dim=_SIZE, cache_dir=inside, disable_download=True))
            except (FileNotFoundError, ValueError) as error:
                raise UserError(
                    f"the package wordllama has no weights inside: {error}",
                    "pip install --force-reinstall wordllama",
                ) from None
        vectors: Vectors = np.asarray(loaded[0].embed(texts), dtype=np.float32)
        return vectors

    return Encoder(
        "wordllama",
        digest("wordllama", version("wordllama"), _SIZE),
        f"WordLlama l2_supercat, mean of its token vectors (PyPI wordllama {version('wordllama')}, "
        f"digest {content[:12]}, MIT)",
        encode,
    )
