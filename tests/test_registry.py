"""Registries: lazy targets, loaded once, and a suggestion for what is misspelled."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from palaver.errors import UserError
from palaver.registry import (
    Registry,
    call_plugin,
    import_object,
    is_object_name,
    parameters_of,
    source_file,
)


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


def plugin(folder: Path, name: str, module: str) -> None:
    """An installed package with one entry point in the group `palaver.nonsense`."""
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[palaver.nonsense]\n{name} = {name}_module:thing\n")
    (folder / f"{name}_module.py").write_text(module)


def test_packages_add_names_but_cannot_take_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(tmp_path, "theirs", "thing = 3\n")
    plugin(tmp_path, "ours", "thing = 4\n")
    plugin(tmp_path, "broken", "thing = 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[int] = Registry("n", {"ours": 1}, "palaver.nonsense", adapt=lambda name, n: 10 * n)
    assert sorted(registry) == ["broken", "ours", "theirs"]
    assert registry.get("ours") == 1
    assert registry.get("theirs") == 30
    assert registry.get("theirs_module:thing") == 30
    with pytest.raises(UserError, match="n 'broken' of broken cannot be loaded: ZeroDivisionError"):
        registry.get("broken")
    with pytest.raises(UserError) as caught:
        registry.get("their")
    assert "did you mean 'theirs'" in caught.value.message
    assert "MODULE:FUNCTION" in caught.value.hint


def test_a_closed_registry_takes_no_objects() -> None:
    with pytest.raises(UserError, match="no n 'json:loads'"):
        Registry("n", {"a": 1}).get("json:loads")


def test_an_object_by_its_name(lazy_module: str) -> None:
    assert import_object("json:loads") is json.loads
    assert import_object("pathlib:Path.cwd") == Path.cwd
    for wrong, message in (
        ("json", "expected MODULE:FUNCTION"),
        ("json:", "expected MODULE:FUNCTION"),
        ("json:loadz", "'loadz' is not in it .did you mean 'load'"),
        ("palaver_absent.x:f", "no Python module 'palaver_absent'"),
    ):
        with pytest.raises(UserError, match=message):
            import_object(wrong)


@pytest.mark.parametrize("text", ["a:b", "a.b:c", "a.b:c.d", "_x:y1"])
def test_what_looks_like_an_object(text: str) -> None:
    assert is_object_name(text)


@pytest.mark.parametrize("text", ["", "a", "a:", ":b", "a/b:c", "http://x", "1a:b", "a:b:c", "a b:c", "a:b "])
def test_what_does_not(text: str) -> None:
    assert not is_object_name(text)


def test_what_a_plugin_raises_is_told_with_its_line() -> None:
    def fails(x: int) -> float:
        return x / 0

    assert call_plugin("p", max, 1, 2) == 2
    with pytest.raises(UserError, match="p failed: ZeroDivisionError") as caught:
        call_plugin("p", fails, 1)
    assert "test_registry.py, line" in caught.value.hint


def test_parameters_and_source_of_a_function() -> None:
    def many(a: int, *, b: int = 0, **more: int) -> None: ...

    assert parameters_of(many) == ["a", "b", "**"]
    assert source_file(many) == Path(__file__)
    assert source_file(len) is None
