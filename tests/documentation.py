"""The documentation's pages and the blocks of code on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(r"^```([\w.]*)(?: needs ([^\n]+)| (\S+))?\n(.*?)^```$", flags=re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block: ```language, ```language FILE or ```language needs SOMETHING."""

    page: str
    line: int
    language: str
    needs: str
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language or 'no language'})"

    @property
    def lines(self) -> list[str]:
        """Lines of commands, each whole."""
        return self.text.replace("\\\n", " ").splitlines()


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(name_of(page), text.count("\n", 0, found.start()) + 1, *(part or "" for part in found.groups()))
        for found in _BLOCK.finditer(text)
    )
