"""Registries: lazy targets, loaded once, and a suggestion for what is misspelled."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from palaver.errors import UserError
from palaver.registry import Registry


@pytest.fixture
def lazy_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lazy_target.py").write_text("import sys\nthing = object()\nurl = 'json:loads'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lazy_target", raising=False)
    return "lazy_target"


def test_a_thing_is_given_as_it_is() -> None:
    assert Registry("metric", {"len": len}).get("len") is len
    assert Registry[str]("word", {"a": "plain"}).get("a") == "plain"


def test_a_target_is_imported_at_first_use_only(lazy_module: str) -> None:
    registry: Registry[object] = Registry("model", {"a": f"{lazy_module}:thing"})
    assert list(registry) == ["a"]
    assert "a" in registry
    assert lazy_module not in sys.modules
    first = registry.get("a")
    assert lazy_module in sys.modules
    assert registry.get("a") is first


def test_a_loaded_text_is_not_taken_for_another_target(lazy_module: str) -> None:
    registry: Registry[str] = Registry("text", {"a": f"{lazy_module}:url"})
    assert [registry.get("a") for _ in range(3)] == ["json:loads"] * 3


def test_an_unknown_name_suggests_and_lists() -> None:
    registry = Registry("metric", {"bleu": 1, "rouge": 2})
    with pytest.raises(UserError) as caught:
        registry.get("blue")
    assert caught.value.message == "there is no metric 'blue' (did you mean 'bleu'?)"
    assert caught.value.hint == "known: bleu, rouge"
    assert "blue" not in registry


def test_the_mapping_it_was_made_from_may_change() -> None:
    targets: dict[str, int | str] = {"a": 1}
    registry: Registry[int] = Registry("n", targets)
    targets["b"] = 2
    assert list(registry) == ["a"]


def test_a_target_that_is_not_there_fails_when_used_not_before() -> None:
    registry: Registry[object] = Registry("n", {"a": "palaver_absent:x", "b": "json:absent"})
    with pytest.raises(ModuleNotFoundError):
        registry.get("a")
    with pytest.raises(AttributeError):
        registry.get("b")
