"""A group of commands that imports a verb when it is used, not before.

Lists of commands are made without importing anything: their lines are read from the verbs' docstrings.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup

from palaver.errors import UsageError, nearest


@dataclass(frozen=True)
class Noun:
    """A group: one line of help and its verbs, name -> "module:function"."""

    help: str
    verbs: Mapping[str, str]
    usual: str | None = None
    """The verb that is meant where none is named."""


class LazyGroup(TyperGroup):
    """Commands by name, of a noun or of `palaver` itself."""

    targets: Mapping[str, Noun | str] = {}
    usual: str | None = None

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.targets)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        target = self.targets.get(cmd_name)
        if target is not None and cmd_name not in self.commands:
            load = _group if isinstance(target, Noun) else _verb
            self.commands[cmd_name] = load(cmd_name, target)
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.targets:
            if self.usual is None or difflib.get_close_matches(name, self.targets, cutoff=0.75):
                raise UsageError(
                    f"there is no command {name!r}{nearest(name, list(self.targets))}",
                    f"{ctx.command_path} --help lists those that are",
                )
            args = [self.usual, *args]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(target)) for name, target in self.targets.items()])


def _group(name: str, noun: Any) -> Any:
    settings = typer.Typer(cls=LazyGroup, name=name, help=noun.help, rich_markup_mode=None)
    group: Any = typer.main.get_group(settings)
    group.targets = noun.verbs
    group.usual = noun.usual
    return group


def _verb(name: str, target: Any) -> Any:
    from palaver.cli.fields import expand

    module, _, function = target.partition(":")
    verb = typer.Typer(rich_markup_mode=None, add_completion=False)
    verb.command(name)(expand(getattr(importlib.import_module(module), function)))
    return typer.main.get_command(verb)


def _summary(target: Noun | str) -> str:
    if isinstance(target, Noun):
        return target.help
    module, _, function = target.partition(":")
    return _summaries(module)[function]


@cache
def _summaries(module: str) -> dict[str, str]:
    """The first paragraph of each function's docstring, in one line."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    source = spec.loader.get_source(module)  # type: ignore[union-attr]
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    paragraphs = {node.name: (ast.get_docstring(node) or "").partition("\n\n")[0] for node in functions}
    return {name: " ".join(paragraph.split()) for name, paragraph in paragraphs.items()}
