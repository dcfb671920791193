"""Responses common to all conditions (Xing & Fernández 2018, section 3.3), against a plain count."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError, UserError
from palaver.generation.common import common_responses, drop_common

pairs = st.lists(
    st.tuples(st.sampled_from("ABC"), st.sampled_from(["i", "you", "no", "yes", ""])), min_size=2
)


def by_hand(given: list[tuple[str, str]], n: int) -> list[tuple[str, int]]:
    conditions = {condition for condition, _ in given}
    said = {c: {text for d, text in given if d == c} for c in conditions}
    common = set.intersection(*said.values())
    totals = Counter(text for _, text in given if text in common)
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:n]


@given(pairs.filter(lambda p: len({c for c, _ in p}) > 1), st.integers(1, 6), st.randoms())
@settings(max_examples=50, deadline=None)
def test_equals_the_plain_count(given: list[tuple[str, str]], n: int, rng: Any) -> None:
    expected = by_hand(given, n)
    assert common_responses(iter(given), n) == expected
    rng.shuffle(given)
    assert common_responses(given, n) == expected


def test_frequency_is_the_total_of_all_conditions() -> None:
    given = [("A", "hm")] * 5 + [("B", "hm")] + [("A", "ok"), ("B", "ok")] * 2 + [("A", "only A")] * 9
    assert common_responses(given, 1) == [("hm", 6)]
    assert common_responses(given, 100) == [("hm", 6), ("ok", 4)]


def test_one_condition_has_nothing_in_common() -> None:
    with pytest.raises(UserError, match="1 condition"):
        common_responses([("A", "x")], 1)
    with pytest.raises(UserError, match="1 response or more"):
        common_responses([("A", "x"), ("B", "x")], 0)


def row(speaker: str | None, response: str | None, **more: Any) -> dict[str, Any]:
    return {"id": "1", "system": "s", "speaker": speaker, "ocean": None, "response": response, **more}


def test_a_file(tmp_path: Path) -> None:
    rows = [row("A", "hm"), row("B", "hm"), row("A", "hello"), row("B", "bye"), row("A", None, skipped="x")]
    path = tmp_path / "out.jsonl"
    lines = [json.dumps(r) + "\n" for r in rows]
    path.write_text("".join(lines))
    dropped = drop_common(path, 100)
    assert dropped.out == tmp_path / "out.cleaned.jsonl"
    assert dropped.out.read_text() == "".join(lines[2:])
    assert dropped.by_condition == {"s, A": (1, 2), "s, B": (1, 1)}
    assert dropped.responses == [("hm", 2)]
    assert json.loads((tmp_path / "out.cleaned.jsonl.json").read_text())["responses"] == [["hm", 2]]


def test_personalities_and_systems_are_conditions(tmp_path: Path) -> None:
    rows = [row(None, "a", ocean=[1, 2, 3, 4, 5.5]), row(None, "a", ocean=[7, 2, 3, 4, 5]), row(None, "a")]
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert list(drop_common(path, 1).by_condition) == ["s", "s, 1,2,3,4,5.5", "s, 7,2,3,4,5"]


@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from(["x", "y", "z", None])), min_size=1),
    st.integers(1, 3),
)
@settings(max_examples=30, deadline=None)
def test_nothing_is_lost_or_made_up(
    tmp_path_factory: Any, given: list[tuple[str, str | None]], n: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "out.jsonl"
    lines = [json.dumps(row(c, text)) for c, text in [("A", "x"), ("B", "x"), *given]]
    path.write_text("\n".join(lines) + "\n")
    dropped = drop_common(path, n)
    unwanted = {text for text, _ in dropped.responses}
    assert "x" in unwanted or len(unwanted) == n
    kept = dropped.out.read_text().splitlines()
    assert kept == [line for line in lines if json.loads(line)["response"] not in unwanted]
    assert sum(a + b for a, b in dropped.by_condition.values()) == len(lines)


@pytest.mark.parametrize("text", ['{"id": 1}\n', "nothing\n", "[1]\n"])
def test_other_files(text: str, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(row("A", "x")) + "\n" + text)
    with pytest.raises(DataError, match="line 2: this is not a generated response"):
        drop_common(path, 1)
