"""Errors: what they print, that they survive a worker process, and the seam for optional parts."""

from __future__ import annotations

import copy
import importlib.metadata
import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import ConfigError, DataError, MissingExtra, UserError, nearest, pip_line, require


def test_every_problem_gets_its_line_and_the_hint_comes_last() -> None:
    error = UserError("2 rows are wrong", "mend them", ["row 3: x", "row 9: y"])
    assert str(error).splitlines() == ["2 rows are wrong", "  - row 3: x", "  - row 9: y", "mend them"]
    assert str(UserError("no")) == "no"


@pytest.mark.parametrize("kind", [UserError, DataError, ConfigError, MissingExtra])
def test_errors_cross_process_borders_whole(kind: type[UserError]) -> None:
    error = kind("message", "hint", ["a", "b"])
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is kind
        assert (again.message, again.hint, again.problems) == ("message", "hint", ("a", "b"))
        assert str(again) == str(error)


def test_all_are_user_errors() -> None:
    assert all(issubclass(kind, UserError) for kind in (DataError, ConfigError, MissingExtra))


def test_require_gives_the_module_that_is_there() -> None:
    assert require("json.decoder", "models").__name__ == "json.decoder"


@pytest.mark.parametrize("module", ["palaver_absent", "palaver_absent.part.deep"])
def test_require_prints_the_pip_line(module: str) -> None:
    with pytest.raises(MissingExtra) as caught:
        require(module, "probes")
    assert "'palaver_absent'" in str(caught.value)
    assert pip_line("probes") in str(caught.value)


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, 'pip install "palaver[models]"'),
        ("no JSON", 'pip install "palaver[models]"'),
        ('{"url": "file:///gone/palaver"}', 'pip install "palaver[models]"'),
        ('{"url": "URI", "dir_info": {"editable": true}}', 'pip install -e "PATH[models]"'),
        ('{"url": "URI", "dir_info": {}}', 'pip install "PATH[models]"'),
        ('{"url": "URI/palaver-1.whl", "archive_info": {}}', 'pip install "PATH/palaver-1.whl[models]"'),
        (
            '{"url": "https://example.org/p.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}',
            'pip install "palaver[models] @ git+https://example.org/p.git"',
        ),
        (
            '{"url": "https://example.org/p.whl", "archive_info": {}}',
            'pip install "palaver[models] @ https://example.org/p.whl"',
        ),
    ],
)
def test_the_pip_line_goes_the_way_palaver_came(
    origin: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "palaver-1.whl").touch()
    text = origin and origin.replace("URI", folder.as_uri())
    monkeypatch.setattr(importlib.metadata.PathDistribution, "read_text", lambda self, name: text)
    assert pip_line("models") == line.replace("PATH", str(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("has_broken_need", "import palaver_absent_need"),
        ("palaver_absent_needed", "import palaver_absent"),  # begins with the name of what it misses
        ("broken_inside", "import broken_inside.gone"),
    ],
)
def test_require_does_not_blame_the_extra_for_what_is_broken_inside(
    name: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError):
        require(name, "models")
    assert name not in sys.modules


def test_nearest_ignores_case_and_gives_up_on_strangers() -> None:
    assert nearest("Qualty", ["naturalness", "quality"]) == " (did you mean 'quality'?)"
    assert nearest("RATER", ["item", "Rater"]) == " (did you mean 'Rater'?)"
    assert nearest("zebra", ["item", "rater"]) == ""
    assert nearest("x", []) == ""


@given(name=st.text(max_size=20), known=st.lists(st.text(max_size=20), max_size=5))
@settings(max_examples=50, deadline=None)
def test_nearest_only_names_what_is_known(name: str, known: list[str]) -> None:
    said = nearest(name, known)
    assert said == "" or any(said == f" (did you mean {k!r}?)" for k in known)
    if name in known:
        assert said
