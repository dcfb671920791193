"""`--method`, `--temperature`, `--top-k` …: the fields of `DecodingOptions`, for verbs that make replies."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from palaver.cli import options
from palaver.cli.fields import Fields, option
from palaver.errors import UsageError, UserError
from palaver.generation.options import DecodingOptions, decoding_options


def _options() -> Iterator[inspect.Parameter]:
    for name, field in DecodingOptions.model_fields.items():
        if name == "seed":  # it has an option of its own, like everywhere
            continue
        text = field.description or ""
        help = f"{text[:1].upper()}{text[1:]}."
        kind, _ = get_args(field.annotation)  # each may be None
        if get_origin(kind) is Literal:
            yield option(name, str | None, help, None, **options.choices(get_args(kind)))
        else:
            yield option(name, kind | None, help, None)


def _make(**given: Any) -> DecodingOptions:
    """Those that were given; `--beam-size 5` is `--method beam` as well."""
    try:
        return decoding_options({name: value for name, value in given.items() if value is not None})
    except UserError as error:
        raise UsageError(error.message, error.hint, error.problems) from None


Decoding = Annotated[DecodingOptions, Fields(_make, tuple(_options()))]
