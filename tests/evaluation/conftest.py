"""Systems and judges that count how often they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from palaver.errors import UserError
from palaver.schema import Reply, Request


@dataclass
class Bot:
    """Says what `say` makes of the last turn; fails on turns that hold `fails_on`."""

    name: str = "bot"
    say: Callable[[str], str] = str.upper
    settings: dict[str, object] = field(default_factory=lambda: {"version": 1})
    chunk: int = 4
    fails_on: str | None = None
    asked: list[str] = field(default_factory=list)

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        replies = []
        for request in requests:
            text = request.dialogue.turns[-1].text
            self.asked.append(text)
            if self.fails_on is not None and self.fails_on in text:
                raise UserError(f"cannot say {text!r}")
            replies.append(Reply(self.say(text)))
        return replies


@pytest.fixture
def bot() -> Callable[..., Bot]:
    return Bot


MODULE = """
def good(text):
    return f"I see: {text} What makes you say that?"

def bad(text):
    return "Yes."

def broken(text):
    if "cat" in text:
        raise ValueError("no cats")
    return "Well."

def length(response):
    return len(response.response.split())

def picky(response):
    if "cat" in response.context[-1].text:
        raise ValueError("no cats")
    return 1.0
"""
QUESTIONS = [
    "I lost my job today.",
    "Do you like movies?",
    "What is your favourite food?",
    "I am going to Rome next week.",
    "My cat is ill.",
    "How do birds fly?",
]


@pytest.fixture
def bots_folder(tmp_path: Path) -> Path:
    """A folder with a module of bots; its name is the folder's, so that tests do not meet each other's."""
    (tmp_path / f"{module_of(tmp_path)}.py").write_text(MODULE)
    (tmp_path / "questions.txt").write_text("\n".join(QUESTIONS) + "\n")
    return tmp_path


def module_of(folder: Path) -> str:
    return "bots_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name)


@pytest.fixture
def experiment_file(bots_folder: Path) -> Callable[..., Path]:
    """Write an experiment of functions in the module."""
    module = module_of(bots_folder)

    def write(*systems: str, judges: Sequence[str] = ("length",), more: str = "", head: str = "") -> Path:
        lines = [head, "seed = 1", "[test]", 'contexts = "questions.txt"']
        for system in systems:
            lines += [f"[systems.{system}]", 'kind = "python"', f'function = "{module}:{system}"']
        named = [f'"{module}:{name}"' if name in ("length", "picky") else f'"{name}"' for name in judges]
        lines += ["[judges]", f"by = [{', '.join(named)}]", more]
        path = bots_folder / "experiment.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
