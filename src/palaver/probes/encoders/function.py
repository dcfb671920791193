"""Any Python function as an encoder: `MODULE:FUNCTION`, a list of texts in, an array out."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from palaver.errors import UserError, nearest
from palaver.probes.encoders.encoder import Encoder, Places, fingerprint, signature


def open_function(arguments: list[str], places: Places) -> Encoder:
    """`module:function`; modules of the working directory are found too."""
    module_name, colon, name = (arguments[0] if arguments else "").partition(":")
    if len(arguments) != 1 or not colon or not name:
        raise UserError("expected MODULE:FUNCTION, such as my_encoders:embed")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"there is no Python module {error.name!r}",
            "is its folder the working directory, or on PYTHONPATH?",
        ) from None
    found = getattr(module, name, None)
    if found is None or not callable(found):
        what = "is not a function" if found is not None else f"is not in it{nearest(name, dir(module))}"
        raise UserError(f"{module_name}: {name!r} {what}")

    def encode(texts: list[str]) -> Any:
        try:
            return found(texts)
        except UserError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise UserError(
                f"{arguments[0]} failed: {type(error).__name__}: {error}",
                f"in {last.filename}, line {last.lineno}",
            ) from error

    # What the function reads elsewhere cannot be seen, so --no-cache is there for that.
    file = getattr(module, "__file__", None)
    sign = signature("function", arguments[0], fingerprint([Path(file)])) if file else ""
    return Encoder(arguments[0], sign, f"Python function {arguments[0]}", encode)
