"""What mkdocs does beside rendering: pages made from the code, and files that pages link to.

reference/commands.md   every verb with its help
reference/api.md        every public name with its signature and docstring
changes.md              CHANGELOG.md
files/…                 whatever of the repository a page links to (examples, modules)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")

_FILE = re.compile(r"^(```\w+) (\S+)$", flags=re.M)
_CONSOLE = re.compile(r"^```console", flags=re.M)
_NEEDS = re.compile(r"^(```\w+) (needs .+)$", flags=re.M)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and files that are not in docs/."""
    made = {
        "reference/commands.md": commands_page(),
        "reference/api.md": api_page(),
        "changes.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    pages = [file for file in files if file.is_documentation_page()]
    linked = {path for page in pages for _, path in outside(page.src_uri, page.content_string)}
    for path in sorted(linked):
        files.append(File.generated(config, f"files/{path}", content=(ROOT / path).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to files of the repository lead to copies; a block's title is its file, or what it needs."""
    uri = page.file.src_uri
    copies = {link: _relative(f"files/{path}", uri) for link, path in outside(uri, markdown)}
    markdown = _LINK.sub(lambda link: copies.get(link[1], link[1]), markdown)
    markdown = _CONSOLE.sub("```sh", markdown)  # else commands look like output
    markdown = _NEEDS.sub(r'\1 title="\2"', markdown)
    return _FILE.sub(r'\1 title="\2"', markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's search is a dialogue without a name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def outside(uri: str, markdown: str) -> Iterator[tuple[str, str]]:
    """Links of a page of docs/ that leave docs/: as they are written, and the file of the repository."""
    for link in dict.fromkeys(_LINK.findall(markdown)):
        target = os.path.normpath(os.path.join("docs", os.path.dirname(uri), link))
        if not target.startswith("docs" + os.sep) and (ROOT / target).is_file():
            yield link, Path(target).as_posix()


def _relative(target: str, uri: str) -> str:
    return Path(os.path.relpath(target, os.path.dirname(uri) or ".")).as_posix()


def commands_page() -> str:
    """Every verb with its help."""
    parts = [
        "# Commands\n\nEvery verb, as `--help` shows it. "
        "Exit status: 0 all is well, 1 something in your data or settings, 2 the command line.\n"
    ]
    for words, command, context in verbs():
        parts.append(f"\n## palaver {' '.join(words)}\n\n```text\n{command.get_help(context)}\n```\n")
    return "".join(parts)


def verbs() -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """The words of each verb, its command, and the parser's context for it."""
    import typer.main

    from palaver.cli.lazy import LazyGroup
    from palaver.cli.main import app

    top: Any = typer.main.get_command(app)
    settings = {"terminal_width": 100, "max_content_width": 100}
    above = top.make_context("palaver", ["--help"], resilient_parsing=True, **settings)
    for name in top.list_commands(above):
        command = top.get_command(above, name)
        context = command.context_class(command, info_name=name, parent=above, **settings)
        if not isinstance(command, LazyGroup):
            yield (name,), command, context
            continue
        for verb in command.list_commands(context):
            inner = command.get_command(context, verb)
            yield (name, verb), inner, inner.context_class(inner, info_name=verb, parent=context, **settings)


def api_page() -> str:
    """Every public name, for mkdocstrings to fill in."""
    import palaver

    parts = [
        "# Python, name by name\n\nEverything that `palaver` exports; "
        "[Palaver from Python](python.md) has an example of each.\n"
    ]
    for name in sorted(set(palaver.__all__) - {"__version__"}, key=str.lower):
        thing = getattr(palaver, name)
        parts.append(f"\n::: {thing.__module__}.{name}\n")
    return "".join(parts)
