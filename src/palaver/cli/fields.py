"""Options made from the fields of a value, which say their name, type, default and meaning once.

A verb declares `habits: Annotated[Habits, Fields.of(Habits, "bias", "noise")]` and is called with the value;
on the command line stand `--bias` and `--noise`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import typer

from palaver.errors import UsageError


@dataclass(frozen=True)
class Fields:
    """The options in place of a parameter, and what makes its value from theirs."""

    make: Callable[..., Any]
    options: tuple[inspect.Parameter, ...]

    @classmethod
    def of(cls, model: type, *names: str) -> Fields:
        """Fields of a dataclass; the string below a field is the help of its option."""
        types, help_of = get_type_hints(model), _help_of(model)
        defaults = inspect.signature(model).parameters
        return cls(model, tuple(option(n, types[n], help_of[n], defaults[n].default) for n in names))

    @classmethod
    def among(cls, make: Callable[..., Any], **options: tuple[Any, Any]) -> Fields:
        """Options that are declared elsewhere, each as (annotation, default); `make` takes them by name."""
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        ]
        return cls(make, tuple(parameters))

    def value(self, given: dict[str, Any]) -> Any:
        try:
            return self.make(**given)
        except ValueError as error:
            raise UsageError(str(error)) from None


def option(name: str, kind: Any, help: str, default: Any, **more: Any) -> inspect.Parameter:
    """A parameter of a verb that typer makes an option of."""
    annotation = Annotated[kind, typer.Option(f"--{name.replace('_', '-')}", help=help, **more)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def expand(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` with the options of its `Fields` in place of them."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Fields] = {}
    for parameter in inspect.signature(verb, eval_str=True).parameters.values():
        metadata = getattr(parameter.annotation, "__metadata__", ())
        fields = next((m for m in metadata if isinstance(m, Fields)), None)
        if fields is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = fields
            parameters += fields.options
    if not groups:
        return verb

    def expanded(**given: Any) -> None:
        for name, fields in groups.items():
            given[name] = fields.value({option.name: given.pop(option.name) for option in fields.options})
        verb(**given)

    expanded.__doc__ = verb.__doc__
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _help_of(model: type) -> dict[str, str]:
    """The string below each field of a class."""
    declaration = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(declaration, ast.ClassDef)
    texts = {}
    for field, below in pairwise(declaration.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            texts[ast.unparse(field.target)] = ast.literal_eval(below.value)
    return texts
