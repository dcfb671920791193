"""Several sources told apart in the same way, and tests between them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.personality.conftest import make_pools

from palaver.errors import DataError, UserError
from palaver.personality.comparison import compare_pools
from palaver.personality.plan import Settings

FAST = Settings(samples=20, size=30, repetitions=2, replicates=12, engine="local")


def test_clear_characters_beat_blurred_ones() -> None:
    clear = replace(make_pools([0, 1, 2], strength=0.6), source="clear", words={})
    blurred = replace(make_pools([None, None, None], seed=1), source="blurred", words={})
    result = compare_pools([clear, blurred], FAST)
    test = result.tests[0]
    assert (test.a, test.b) == ("clear", "blurred")
    assert test.low > 0
    assert test.p_holm < 0.01
    assert test.low < test.difference < test.high
    assert test.repetitions is not None
    assert test.repetitions.mean_difference > 0.3
    content = json.loads(result.to_json())
    assert [r["title"] for r in content["results"]] == ["clear", "blurred"]
    assert len(content["results"][0]["resampled"]) == 12
    assert "clear" in repr(result)


def test_a_source_does_not_beat_its_like() -> None:
    one = replace(make_pools([0, 1, 2], seed=1), source="one", words={})
    two = replace(make_pools([0, 1, 2], seed=2), source="two", words={})
    test = compare_pools([one, two], FAST).tests[0]
    assert test.p > 0.01


def test_characters_in_common_are_compared_and_what_differs_is_said() -> None:
    three = replace(make_pools([0, 1, 2]), source="three", words={})
    two = replace(make_pools([0, 1], n=500), source="two", words={}, group_noun="context")
    result = compare_pools([three, two], replace(FAST, replicates=0))
    assert {len(r.characters) for r in result.results} == {2}
    said = " ".join(result.notes)
    assert "left out person 2" in said
    assert "what is unseen differs" in said
    assert "pools differ in size" in said
    assert "resampled pools or more" in result.tests[0].reason


def test_nothing_in_common_or_one_source_is_refused() -> None:
    one = replace(make_pools([0, 1]), source="one")
    other = replace(one, source="other", characters=("somebody", "else"))
    with pytest.raises(DataError, match="0 characters in common"):
        compare_pools([one, other], FAST)
    with pytest.raises(UserError, match="two sources or more"):
        compare_pools([one], FAST)
    with pytest.raises(UserError, match="named twice"):
        compare_pools([one, one], FAST)
