"""Names people type -> objects, loaded only when asked for, with "did you mean" when they are misspelled.

A registry knows its own names and, where it has a `group`, those that installed packages add through Python's
entry points; then `MODULE:FUNCTION` is taken wherever a name is.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from palaver.errors import UserError, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """Named things. A target is the thing or "module:attribute", imported at first use.

    `group` is the entry-point group of plug-ins (`palaver.judges`): with one the registry is open, and takes
    `MODULE:FUNCTION` as well. Our own names cannot be taken over. `adapt` makes what a plug-in brings, often
    a plain function, into what the registry holds; it is given the name and the object.
    """

    def __init__(
        self,
        noun: str,
        targets: Mapping[str, T | str],
        group: str | None = None,
        adapt: Callable[[str, Any], T] | None = None,
    ) -> None:
        self.noun = noun
        self.group = group
        self._adapt = adapt
        self._targets = dict(targets)
        self._loaded: dict[str, T] = {}

    @cached_property
    def plugins(self) -> dict[str, EntryPoint]:
        """What installed packages add, by name."""
        if self.group is None:
            return {}
        return {e.name: e for e in entry_points(group=self.group) if e.name not in self._targets}

    def __iter__(self) -> Iterator[str]:
        yield from self._targets
        yield from self.plugins

    def __contains__(self, name: object) -> bool:
        return name in self._targets or name in self.plugins

    def get(self, name: str) -> T:
        """The thing called `name`, or the one that `MODULE:FUNCTION` names."""
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        if name in self._targets:
            target = self._targets[name]
            if isinstance(target, str) and ":" in target:
                module, _, attribute = target.partition(":")
                return cast(T, getattr(importlib.import_module(module), attribute))
            return cast(T, target)
        if name in self.plugins:
            plugin = self.plugins[name]
            try:
                loaded = plugin.load()
            except Exception as error:
                where = f" of {plugin.dist.name}" if plugin.dist is not None else ""
                raise UserError(
                    f"the {self.noun} {name!r}{where} cannot be loaded: {type(error).__name__}: {error}"
                ) from error
            return self._adapted(name, loaded)
        if self.group is not None and ":" in name:
            return self._adapted(name, import_object(name))
        raise self.unknown(name)

    def _adapted(self, name: str, loaded: Any) -> T:
        return cast(T, loaded) if self._adapt is None else self._adapt(name, loaded)

    def unknown(self, name: str) -> UserError:
        """There is nothing of that name; what there is."""
        known = f"known: {', '.join(self)}"
        return UserError(
            f"there is no {self.noun} {name!r}{nearest(name, list(self))}",
            known if self.group is None else f"{known}; or MODULE:FUNCTION",
        )


def import_object(target: str, folder: Path | None = None) -> Any:
    """What `MODULE:NAME` names. Modules of the working directory are found too, and those in `folder`."""
    module_name, _, name = target.partition(":")
    if not is_object_name(target):
        raise UserError(f"expected MODULE:FUNCTION, such as my_module:my_function, found {target!r}")
    for place in (Path.cwd(), (folder or Path()).resolve()):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    try:
        loaded: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"there is no Python module {error.name!r}",
            "is its folder the working directory, or on PYTHONPATH?",
        ) from None
    except Exception as error:  # somebody else's module may raise anything
        raise UserError(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(loaded, part):
            public = [known for known in dir(loaded) if not known.startswith("_")]
            raise UserError(f"{module_name}: {name!r} is not in it{nearest(part, public)}")
        loaded = getattr(loaded, part)
    return loaded


def is_object_name(text: str) -> bool:
    """Whether `text` looks like MODULE:NAME."""
    return re.fullmatch(r"[^\W\d]\w*(\.\w+)*:[^\W\d]\w*(\.\w+)*", text) is not None


def call_plugin(name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call somebody else's function; what it raises is told with the line it comes from."""
    try:
        return function(*arguments, **options)
    except UserError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"{name} failed: {type(error).__name__}: {error}", f"in {last.filename}, line {last.lineno}"
        ) from error


class Named:
    """What a name opens. It is printed as its kind and its name."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, `**` for any; none where Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # something built in
        return []
    return ["**" if p.kind is p.VAR_KEYWORD else name for name, p in parameters.items()]


def source_file(thing: Any) -> Path | None:
    """The file of the module that defines `thing`; none for what is built in or made on the spot."""
    module = sys.modules.get(getattr(thing, "__module__", None) or type(thing).__module__)
    file = getattr(module, "__file__", None)
    return Path(file) if file else None
