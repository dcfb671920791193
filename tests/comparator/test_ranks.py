from __future__ import annotations

import numpy as np
import pytest

from palaver.comparator.ranks import rank_systems
from palaver.errors import DataError


def scores(n: int = 40) -> tuple[np.ndarray, list[str | None]]:
    rng = np.random.default_rng(0)
    names = ["a", "b", "c"] * n
    return rng.normal(size=3 * n) + np.tile([2.0, 0.0, 0.0], n), list(names)


@pytest.mark.parametrize("grouped", [True, False])
def test_the_better_system_comes_first(grouped: bool) -> None:
    values, systems = scores()
    sittings: list[str | None] = [str(i // 3) for i in range(len(values))]
    found = rank_systems(values, systems, sittings if grouped else None, n_replicates=200)
    assert found.systems[0].system == "a"
    assert found.bootstrap.groups[0].systems == ("a",)
    assert found.trueskill.groups[0].systems == ("a",)
    assert found.systems[0].win_rate > 0.8
    assert found.systems[0].low < found.systems[0].mean < found.systems[0].high


def test_means_are_those_of_the_dialogues() -> None:
    values, systems = scores(5)
    found = rank_systems(values, systems, n_replicates=50)
    for row in found.systems:
        own = [v for v, s in zip(values, systems, strict=True) if s == row.system]
        assert np.isclose(row.mean, np.mean(own))
        assert row.n == len(own)


def test_what_cannot_be_ranked_is_counted() -> None:
    values, systems = scores(5)
    systems[0] = None
    values[1] = np.nan
    found = rank_systems([*values, 1.0], [*systems, "alone"], n_replicates=50)
    assert found.dropped == {"names no system": 1, "no score": 1}
    assert any("alone" in note for note in found.notes)
    with pytest.raises(DataError, match="at least two systems"):
        rank_systems([1.0, 2.0], ["a", "a"])
