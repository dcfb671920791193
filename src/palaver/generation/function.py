"""Python functions and classes as systems: `kind = "python"`, kinds of plug-ins, and MODULE:FUNCTION.

A function is given what its first parameter is called: `dialogue` (a `Dialogue`), `request` (a `Request`),
`requests` (a list of them, and it returns a list); under any other name the text of the last turn. It returns
a text or a `Reply`. It may also have the parameters `speaker`, `ocean` and `knowledge`. A class is made once,
with the options of the systems file, and has a method `reply` as a `System` does, or can be called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from palaver.errors import UserError, nearest
from palaver.files import sha256_of
from palaver.generation.options import PluginOptions, PythonOptions
from palaver.generation.system import CONDITIONS, Notes, check_context, check_takes
from palaver.registry import Named, call_plugin, import_object, parameters_of, source_file
from palaver.schema import Reply, Request, System

Opener = Callable[[str, Any, Path], System]
"""A system's name, its options and the folder its paths start from -> the system."""


class FunctionSystem(Named):
    """A function that replies. `options` are handed to it with every call."""

    def __init__(self, name: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.name = name
        self.notes = Notes()
        self._function, self._options = function, options
        self._first, *others = parameters_of(function) or ["text"]
        _check_options(name, function, options)
        if self._first in ("request", "requests"):
            self.takes = frozenset(CONDITIONS)
            self._conditions = []
        else:
            self._conditions = [c for c in CONDITIONS if c in others and c not in options]
            self.takes = frozenset(self._conditions)

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        for request in requests:
            check_takes(self, request)
            check_context(request.dialogue)
        if self._first != "requests":
            return [self._reply_to(request) for request in requests]
        replies = call_plugin(self.name, self._function, list(requests), **self._options)
        if not isinstance(replies, Sequence) or isinstance(replies, str) or len(replies) != len(requests):
            raise UserError(f"{self.name} should return a list of {len(requests)} replies, one per request")
        return [self._checked(reply) for reply in replies]

    def _reply_to(self, request: Request) -> Reply:
        given: Any = request.dialogue.turns[-1].text
        if self._first == "dialogue":
            given = request.dialogue
        elif self._first == "request":
            given = request
        conditions = {condition: getattr(request, condition) for condition in self._conditions}
        return self._checked(call_plugin(self.name, self._function, given, **conditions, **self._options))

    def _checked(self, reply: Any) -> Reply:
        if isinstance(reply, str):
            return Reply(reply.strip())
        if isinstance(reply, Reply):
            return reply
        raise UserError(f"{self.name} should return a text or a Reply, returned {type(reply).__name__}")


def _check_options(name: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
    known = parameters_of(function)
    if "**" in known:
        return
    problems = [f"{o}: there is no such option{nearest(o, known)}" for o in options if o not in known]
    if problems:
        raise UserError(f"{name} does not take these options:", problems=problems)


def make_system(name: str, brought: Any, options: dict[str, Any]) -> System:
    """The system that a function, a class or an object stands for."""
    system = brought
    if inspect.isclass(brought):
        _check_options(name, brought, options)
        system = call_plugin(name, brought, **options)
    if not hasattr(system, "reply"):
        if not callable(system):
            raise UserError(f"{name} is no function and has no method reply")
        system = FunctionSystem(name, system, {} if inspect.isclass(brought) else options)
    system.name = name
    if not hasattr(system, "settings"):
        file = source_file(brought)
        system.settings = {
            "kind": "python",
            "function": f"{brought.__module__}:{getattr(brought, '__qualname__', '')}",
            "source": sha256_of(file) if file is not None else "",
            **options,
        }
    return cast(System, system)


def open_python(name: str, options: PythonOptions, folder: Path) -> System:
    """The system that `systems.toml` describes."""
    return make_system(name, import_object(options.function, folder), options.own)


def plugin_opener(kind: str, brought: Any) -> Opener:
    """How a system of a plug-in's kind is opened."""

    def opener(name: str, options: PluginOptions, folder: Path) -> System:
        return make_system(name, brought, options.own)

    return opener
