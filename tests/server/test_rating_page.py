"""What a rating page shows: every scale by the widget it names, and none that is not there."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from jinja2 import Environment

from palaver.errors import UserError
from palaver.schema import SCALES, Study
from palaver.schema.scale import Bounds, Numeric
from palaver.server.app import create_app
from palaver.server.assets import environment, static_files
from palaver.server.rating_page import RatingPage, rating_page
from palaver.server.settings import Settings
from palaver.server.study_state import Task


class Stars(Numeric):
    """As another package might have it."""

    kind: Literal["stars"] = "stars"
    level: ClassVar = "ordinal"

    @property
    def bounds(self) -> Bounds:
        return Bounds(0, 5, step=0.5)

    def describe(self) -> str:
        return "a number of stars from 0 to 5, halves too"


class Oracle(Stars):
    kind: Literal["oracle"] = "oracle"  # type: ignore[assignment]
    widget: ClassVar[str] = "crystal-ball"


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two scales above, as if a package brought them."""
    plugins = {name: EntryPoint(name, "", "palaver.scales") for name in ("stars", "oracle")}
    monkeypatch.setitem(vars(SCALES), "plugins", plugins)
    monkeypatch.setitem(SCALES._loaded, "stars", Stars)
    monkeypatch.setitem(SCALES._loaded, "oracle", Oracle)


@pytest.fixture
def templates() -> Environment:
    return environment("", static_files())


def page_of(study: Study, answered: dict[tuple[str, int, int | None], str] | None = None) -> RatingPage:
    task = Task(1, "main", study.items[0], study.questions, (1, 0), answered or {}, 0, 1)
    return rating_page(study, task)


def html_of(page: RatingPage, templates: Environment) -> str:
    widgets: Any = templates.get_template("widgets.html.j2").module
    drawn = [w for output in page.outputs for w in output.widgets] + list(page.shared)
    return "\n".join(getattr(widgets, w.kind)(w, f"w{n}") for n, w in enumerate(drawn))


@pytest.mark.parametrize("kind", list(SCALES))
def test_every_scale_has_its_widget(
    kind: str, make_study: Callable[..., Study], templates: Environment
) -> None:
    n_outputs = 3 if kind == "best-worst" else 2
    page = page_of(make_study(scale={"kind": kind}, n_outputs=n_outputs))
    html = html_of(page, templates)
    expected = 1 if kind == "pairwise" else len(page.outputs)
    assert len(re.findall(r'class="question', html)) == expected
    assert html.count("<input") + html.count("<select") >= expected
    assert "None" not in html


@pytest.mark.parametrize(
    ("scale", "value", "chosen"),
    [
        ({"kind": "likert"}, "4", 'value="4" data-key="4" required checked'),
        ({"kind": "binary"}, "0", 'value="0" data-key="0" required checked'),
        ({"kind": "checkboxes", "exclusive": []}, "added|ok", 'value="ok" data-key="3" checked'),
        ({"kind": "magnitude"}, "150", 'value="150"'),
        ({"kind": "slider"}, "73", 'value="73"'),
        ({"kind": "real"}, "-0.5", 'value="-0.5"'),
        ({"kind": "pairwise"}, "win", 'value="1" data-key="2" required checked'),  # it stood second
    ],
)
def test_what_was_answered_is_there_again(
    scale: dict[str, Any], value: str, chosen: str, make_study: Callable[..., Study], templates: Environment
) -> None:
    page = page_of(make_study(scale=scale), {("quality", 0, None): value, ("quality", 1, None): value})
    assert chosen in html_of(page, templates)


def test_silence_shows(make_study: Callable[..., Study]) -> None:
    study = make_study(scale={"kind": "likert"})
    outputs = [output.model_copy(update={"text": " "}) for output in study.items[0].outputs]
    items = [study.items[0].model_copy(update={"outputs": tuple(outputs)})]
    silent = study.model_copy(update={"items": tuple(items)})
    assert [output.box.text for output in page_of(silent).outputs] == ["(says nothing)"]


def test_a_widget_brings_its_script(make_study: Callable[..., Study]) -> None:
    assert page_of(make_study(scale={"kind": "slider"})).kinds == ["slider"]
    assert "slider.js" in static_files()


@pytest.mark.usefixtures("_installed")
def test_a_scale_of_another_package_is_asked_like_our_own(
    make_study: Callable[..., Study], templates: Environment
) -> None:
    html = html_of(page_of(make_study(scale={"kind": "stars"})), templates)
    assert "a number of stars from 0 to 5, halves too" in html


@pytest.mark.usefixtures("_installed")
def test_a_widget_that_is_not_there_is_said_before_anybody_comes(
    make_study: Callable[..., Study], tmp_path: Path
) -> None:
    from palaver.studies.design import study_toml

    file = tmp_path / "study.toml"
    file.write_text(study_toml(make_study(scale={"kind": "oracle"})), encoding="utf-8")
    with pytest.raises(UserError, match="quality: there is no widget 'crystal-ball' for the scale 'oracle'"):
        create_app(Settings(study_file=file, database=f"sqlite:///{tmp_path / 'study.db'}"))
