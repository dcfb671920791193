"""Options made from the fields of a dataclass."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from palaver.cli.fields import Fields, expand
from palaver.errors import UsageError


@dataclass(frozen=True)
class Weather:
    rain: float = 0.5
    """Share of days with rain."""
    wind_speed: int = 3
    """In metres a second."""
    name: str = "here"

    def __post_init__(self) -> None:
        if self.rain > 1:
            raise ValueError("rain is a share")


def walk(days: int, weather: Annotated[Weather, Fields.of(Weather, "rain", "wind_speed")]) -> None:
    """Go out."""
    CALLS.append((days, weather))


CALLS: list[Any] = []


def test_the_verb_gets_the_value() -> None:
    verb: Any = expand(walk)
    assert verb.__doc__ == "Go out."
    parameters = inspect.signature(verb).parameters
    assert list(parameters) == ["days", "rain", "wind_speed"]
    [option] = parameters["wind_speed"].annotation.__metadata__
    assert (option.default, option.help) == ("--wind-speed", "In metres a second.")
    assert parameters["rain"].default == 0.5
    verb(days=2, rain=0.25, wind_speed=9)
    assert CALLS.pop() == (2, Weather(0.25, 9))
    with pytest.raises(UsageError, match="rain is a share"):
        verb(days=2, rain=2.0, wind_speed=9)


def test_a_verb_without_such_a_value_stays_as_it_is() -> None:
    def plain(days: int) -> None: ...

    assert expand(plain) is plain
