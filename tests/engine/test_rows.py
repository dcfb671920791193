"""A row that fails costs one row, and finding it costs few calls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.engine import GIVE_UP, Failures, RowError, batches, in_parts, map_rows
from palaver.errors import UserError

ROWS = st.lists(st.integers(0, 10**6), unique=True, max_size=200)


def squares_without(bad: set[int], calls: list[int]) -> object:
    def squares(rows: Sequence[int]) -> list[int]:
        calls.append(len(rows))
        if bad.intersection(rows):
            raise ValueError("poisoned")
        return [row * row for row in rows]

    return squares


@given(rows=ROWS, data=st.data(), size=st.integers(1, 70))
def test_only_bad_rows_are_missing_whatever_the_batches(
    rows: list[int], data: st.DataObject, size: int
) -> None:
    bad = set(data.draw(st.lists(st.sampled_from(rows), max_size=GIVE_UP - 1) if rows else st.just([])))
    work = squares_without(bad, [])
    made: dict[int, object] = {}
    for _, parts in map_rows(work, batches(rows, size), engine="local"):  # type: ignore[arg-type]
        for some, result in parts:
            if isinstance(result, RowError):
                assert len(some) == 1
                made[some[0]] = result.reason
            else:
                made |= dict(zip(some, result, strict=True))
    assert list(made) == rows, "each row once, in order"
    assert made == {row: "ValueError: poisoned" if row in bad else row * row for row in rows}


@given(n=st.integers(1, 5000), data=st.data())
def test_one_bad_row_is_found_by_halving(n: int, data: st.DataObject) -> None:
    calls: list[int] = []
    bad = data.draw(st.integers(0, n - 1))
    parts = in_parts(squares_without({bad}, calls), range(n))  # type: ignore[arg-type]
    assert [list(some) for some, made in parts if isinstance(made, RowError)] == [[bad]]
    assert len(calls) <= 2 * math.ceil(math.log2(n)) + 1


def test_what_fails_always_is_given_up() -> None:
    calls: list[int] = []
    parts = in_parts(squares_without(set(range(1000)), calls), range(1000))  # type: ignore[arg-type]
    assert len(parts) == 1000
    assert all(isinstance(made, RowError) for _, made in parts)
    assert len(calls) < 40


def test_failures_are_given_up_after_some_in_a_row() -> None:
    failures = Failures()
    for n in range(GIVE_UP - 1):
        failures.note(str(n), RowError(f"reason {n}"))
        failures.check()
    failures.in_a_row = 0
    failures.note("later", RowError("another", "do this"))
    failures.check(at_end=True)  # one alone
    failures.note("last", RowError("again"))
    with pytest.raises(UserError, match="another") as caught:
        failures.check(at_end=True)
    assert caught.value.hint == "do this"
    for n in range(10):
        failures.note(f"more {n}", RowError("gone"))
    assert failures.given_up == "gone"
    assert failures.count == GIVE_UP - 1 + GIVE_UP
    with pytest.raises(UserError, match="another"):
        failures.check()
