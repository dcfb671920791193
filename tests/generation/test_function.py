"""Python functions and classes as systems."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import ConfigError, UserError
from palaver.generation.function import make_system
from palaver.generation.system import settings, takes
from palaver.generation.systems_file import find_system, load_systems
from palaver.registry import import_object
from palaver.schema import Dialogue, Reply, Request, System

Talk = Callable[..., Dialogue]
MODULE = """
from palaver.schema import Reply

def shout(text, mark="!"):
    return text.upper() + mark

def count(dialogue, *, knowledge=None):
    return f"{len(dialogue.turns)} turns, {knowledge}"

def batch(requests):
    return [Reply(str(len(requests)), logprob=-1.0) for _ in requests]

class Loaded:
    made = 0
    def __init__(self, word="well"):
        Loaded.made += 1
        self.word = word
    def reply(self, requests):
        return [Reply(self.word) for _ in requests]

def free(text, **options):
    return f"{text} {options}"

def broken(text):
    return 1 / 0

number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "systems_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "systems_of_mine", raising=False)
    return "systems_of_mine"


def said(system: System, *requests: Request) -> list[str]:
    return [reply.text for reply in system.reply(requests)]


def test_what_a_function_is_given_depends_on_its_parameter(module: str, talk: Talk) -> None:
    hello = Request(talk("one", "hello"))
    shout = find_system(f"{module}:shout")()
    assert isinstance(shout, System)
    assert shout.name == f"{module}:shout"
    assert said(shout, hello, hello) == ["HELLO!", "HELLO!"]
    assert takes(shout) == frozenset()
    with pytest.raises(UserError, match="takes no knowledge"):
        shout.reply([Request(talk("hello"), knowledge="Owls fly.")])
    count = find_system(f"{module}:count")()
    assert takes(count) == {"knowledge"}
    assert said(count, Request(talk("a", "b"), knowledge="Owls fly.")) == ["2 turns, Owls fly."]
    assert find_system(f"{module}:batch")().reply([hello, hello]) == [Reply("2", logprob=-1.0)] * 2


def test_options_of_the_file_are_handed_on(module: str, tmp_path: Path, talk: Talk) -> None:
    path = tmp_path / "systems.toml"
    path.write_text(
        f'[systems.loud]\nkind = "python"\nfunction = "{module}:shout"\nmark = "?"\n'
        f'[systems.slow]\nkind = "python"\nfunction = "{module}:Loaded"\nword = "hm"\n'
    )
    systems = load_systems(path)
    loud, slow = systems["loud"](), systems["slow"]()
    assert said(loud, Request(talk("hi"))) == ["HI?"]
    assert said(slow, Request(talk("hi"))) == ["hm"]
    assert slow.name == "slow"
    free = make_system("free", import_object(f"{module}:free"), {"depth": 2})
    assert said(free, Request(talk("hi"))) == ["hi {'depth': 2}"]
    assert settings(loud)["mark"] == "?"
    assert settings(loud)["source"]
    assert settings(loud) != settings(find_system(f"{module}:shout")())


def test_the_folder_of_the_file_is_looked_in(
    tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "beside_the_file.py").write_text("def parrot(text):\n    return text\n")
    (folder / "s.toml").write_text('[systems.p]\nkind = "python"\nfunction = "beside_the_file:parrot"\n')
    assert said(find_system("p", folder / "s.toml")(), Request(talk("hi"))) == ["hi"]


def test_what_is_wrong_is_told(module: str, tmp_path: Path, talk: Talk) -> None:
    for name, options, message in (
        ("shout", {"marc": 1}, "there is no such option (did you mean 'mark'?)"),
        ("Loaded", {"wrod": 1}, "there is no such option (did you mean 'word'?)"),
    ):
        with pytest.raises(UserError) as caught:
            make_system("s", import_object(f"{module}:{name}"), options)
        assert message in str(caught.value)
    with pytest.raises(UserError, match="no function and has no method reply"):
        find_system(f"{module}:number")()
    with pytest.raises(UserError, match="ZeroDivisionError") as caught:
        find_system(f"{module}:broken")().reply([Request(talk("hi"))])
    assert "systems_of_mine.py, line" in caught.value.hint
    with pytest.raises(UserError, match="did you mean 'shout'"):
        find_system(f"{module}:shuot")()
    wrong: Any
    for wrong in (lambda text: 3, lambda requests: "text", lambda requests: [1]):
        with pytest.raises(UserError, match="should return"):
            make_system("w", wrong, {}).reply([Request(talk("hi"))])
    path = tmp_path / "keys.toml"
    path.write_text('[systems.k]\nkind = "python"\nfunction = "m:f"\napi_key = "sk-1"\n')
    with pytest.raises(ConfigError, match="keys do not belong") as refused:
        load_systems(path)
    assert "sk-1" not in str(refused.value)
