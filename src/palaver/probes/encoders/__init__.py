"""Sentence encoders by name. A new one is a function and a line in `ENCODERS`.

What a person types is NAME, NAME=ARGUMENT[,ARGUMENT], a folder or hub name of a Transformer, or
MODULE:FUNCTION for any Python function from a list of texts to an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palaver.errors import UserError, nearest
from palaver.probes.encoders.encoder import Encoder, Opener, Places
from palaver.registry import Registry

ENCODERS: Registry[Opener] = Registry(
    "encoder",
    {
        "glove": "palaver.probes.encoders.averages:open_glove",
        "p-means": "palaver.probes.encoders.averages:open_p_means",
        "sent2vec": "palaver.probes.encoders.networks:open_sent2vec",
        "skipthought": "palaver.probes.encoders.networks:open_skipthought",
        "infersent": "palaver.probes.encoders.networks:open_infersent",
        "minilm": "palaver.probes.encoders.transformer:open_minilm",
        "wordllama": "palaver.probes.encoders.wordllama:open_wordllama",
        "transformer": "palaver.probes.encoders.transformer:open_transformer",
        "openai": "palaver.probes.encoders.endpoint:open_endpoint",
        "function": "palaver.probes.encoders.function:open_function",
    },
)


def open_encoder(said: str, places: Places | None = None) -> Encoder:
    """The encoder that `said` names."""
    places = places or Places()
    name, equals, rest = said.partition("=")
    if name in ENCODERS:
        return ENCODERS.get(name)([part for part in rest.split(",") if part] if equals else [], places)
    if Path(said).expanduser().is_dir() or (said.count("/") == 1 and not said.startswith((".", "/"))):
        return ENCODERS.get("transformer")([said], places)
    module, colon, function = said.partition(":")
    if colon and module.replace(".", "").isidentifier() and function.isidentifier():
        return ENCODERS.get("function")([said], places)
    raise UserError(
        f"there is no encoder {said!r}{nearest(name, list(ENCODERS))}",
        f"known: {', '.join(ENCODERS)}; or the folder or hub name (owner/name) of a Transformer; "
        "or MODULE:FUNCTION",
    )


def open_encoders(said: Sequence[str], places: Places | None = None) -> list[Encoder]:
    """Several of them; all that cannot be opened are told together, and no name comes twice."""
    found: list[Encoder] = []
    problems: list[UserError] = []
    for one in dict.fromkeys(said):
        try:
            found.append(open_encoder(one, places))
        except UserError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise UserError("several encoders cannot be used", "", [str(p) for p in problems])
    return found


__all__ = ["ENCODERS", "Encoder", "Opener", "Places", "open_encoder", "open_encoders"]
