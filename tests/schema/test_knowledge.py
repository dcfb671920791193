"""Knowledge: reading sets as Topical-Chat has them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from palaver.schema import Article, Entity, Fact, ReadingSet, Section

ENTITY = Entity(id="Q1", name="Radio", topic="Music")


def test_the_least_that_each_needs() -> None:
    assert ReadingSet(id="r").sections == ()
    assert Section(entity=ENTITY).lead_form == "full"
    assert Article(id="a").parts == ()
    assert Fact(id="f", text="x").entity is None


@pytest.mark.parametrize("configuration", ["A", "B", "C", "D", "wizard", None])
def test_a_configuration_is_a_name(configuration: str | None) -> None:
    given = ReadingSet(id="r", configuration=configuration)
    assert given.configuration == configuration


def test_what_is_refused() -> None:
    for bad in (
        lambda: ReadingSet(id="r", configuration=""),
        lambda: Section(entity=ENTITY, lead_form="half"),  # type: ignore[arg-type]
        lambda: Fact(id="f", text=""),
        lambda: Entity(id="", name="x"),
        lambda: Section(lead="no entity"),  # type: ignore[call-arg]
    ):
        with pytest.raises(ValidationError):
            bad()


def test_a_fact_may_be_as_long_as_people_write() -> None:
    assert len(Fact(id="f", text="x" * 5000).text) == 5000
