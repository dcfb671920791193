"""Sentence encoders by name. A new one is a function and a line in `ENCODERS`, or an entry point.

What a person types is NAME, NAME=ARGUMENT[,ARGUMENT], a folder or hub name of a Transformer, or
MODULE:FUNCTION for any Python function from a list of texts to an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from palaver.artefacts import digest, digest_files
from palaver.errors import UserError, nearest
from palaver.models.encoders.encoder import Encoder, Opener, Places
from palaver.registry import Registry, call_plugin, is_object_name, source_file


def _plugin(name: str, brought: Any) -> Opener:
    """What a plug-in brings: an `Encoder`, or a function from a list of texts to an array."""
    if not isinstance(brought, Encoder) and not callable(brought):
        raise UserError(f"{name} is not a function", "expected one from a list of texts to an array")

    def opener(arguments: list[str], places: Places) -> Encoder:
        if arguments:
            raise UserError(f"{name} takes nothing after it", f"found: {', '.join(arguments)}")
        return brought if isinstance(brought, Encoder) else _of_function(name, brought)

    return opener


def _of_function(name: str, function: Any) -> Encoder:
    # What the function reads elsewhere cannot be seen, so --no-cache is there for that.
    file = source_file(function)
    sign = digest("function", name, digest_files([file])) if file is not None else ""
    return Encoder(name, sign, f"Python function {name}", partial(call_plugin, name, function))


ENCODERS: Registry[Opener] = Registry(
    "encoder",
    {
        "glove": "palaver.models.encoders.averages:open_glove",
        "glove-100d": "palaver.models.encoders.averages:open_glove_100d",
        "p-means": "palaver.models.encoders.averages:open_p_means",
        "sent2vec": "palaver.models.encoders.networks:open_sent2vec",
        "skipthought": "palaver.models.encoders.networks:open_skipthought",
        "infersent": "palaver.models.encoders.networks:open_infersent",
        "minilm": "palaver.models.encoders.transformer:open_minilm",
        "wordllama": "palaver.models.encoders.wordllama:open_wordllama",
        "bge-small": "palaver.models.encoders.onnx:open_bge_small",
        "answerai-colbert": "palaver.models.encoders.onnx:open_colbert",
        "smollm2": "palaver.models.encoders.hidden_states:open_smollm2",
        "transformer": "palaver.models.encoders.transformer:open_transformer",
        "openai": "palaver.models.encoders.endpoint:open_endpoint",
    },
    group="palaver.encoders",
    adapt=_plugin,
)


def open_encoder(name: str | Path | None = None, places: Places | None = None) -> Encoder:
    """The encoder `name`; without one, MiniLM."""
    places = places or Places()
    text = "minilm" if name is None else str(name)
    kind, equals, rest = text.partition("=")
    if kind in ENCODERS:
        return ENCODERS.get(kind)([part for part in rest.split(",") if part] if equals else [], places)
    is_hub_name = text.count("/") == 1 and not text.startswith((".", "/"))
    if isinstance(name, Path) or Path(text).expanduser().is_dir() or is_hub_name:
        return ENCODERS.get("transformer")([text], places)
    if is_object_name(text):
        return ENCODERS.get(text)([], places)
    raise UserError(
        f"there is no encoder {text!r}{nearest(kind, list(ENCODERS))}",
        f"known: {', '.join(ENCODERS)}; or the folder or hub name (owner/name) of a Transformer; "
        "or MODULE:FUNCTION",
    )


def open_encoders(names: Sequence[str], places: Places | None = None) -> list[Encoder]:
    """Several of them; all that cannot be opened are told together, and no name comes twice."""
    opened: list[Encoder] = []
    problems: list[UserError] = []
    for name in dict.fromkeys(names):
        try:
            opened.append(open_encoder(name, places))
        except UserError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise UserError("several encoders cannot be used", "", [str(p) for p in problems])
    return opened


__all__ = ["ENCODERS", "Encoder", "Opener", "Places", "open_encoder", "open_encoders"]
