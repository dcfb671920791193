"""Run records: one signature for one way of computing, another for every other."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.schema import RunRecord, record_run

FIELDS = ("command", "config", "seed", "versions", "data")


@given(st.from_type(RunRecord), st.from_type(RunRecord))
@settings(max_examples=50, deadline=None)
def test_each_field_changes_the_signature(record: RunRecord, other: RunRecord) -> None:
    for field in FIELDS:
        changed = RunRecord(**{**dict(record), field: getattr(other, field)})
        same = json.dumps(getattr(record, field), sort_keys=True) == json.dumps(
            getattr(other, field), sort_keys=True
        )
        assert (changed.signature == record.signature) is same


@given(st.from_type(RunRecord), st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_order_of_keys_does_not_matter(record: RunRecord, rng: random.Random) -> None:
    def shuffled(mapping: Any) -> dict[str, Any]:
        pairs = list(mapping.items())
        rng.shuffle(pairs)
        return dict(pairs)

    fields = {f: shuffled(getattr(record, f)) for f in ("config", "versions", "data")}
    again = RunRecord(command=record.command, seed=record.seed, **fields)
    assert again == record
    assert again.signature == record.signature


def test_the_signature_is_the_hash_of_all_fields_in_one_fixed_form() -> None:
    """Pinned, so that figures printed today can be compared with those of next year."""
    record = RunRecord(command="analyse", config={"b": 1, "a": None}, seed=3, data={"é.csv": "ff"})
    text = '{"command": "analyse", "config": {"a": null, "b": 1}, "data": {"é.csv": "ff"}, '
    text += '"seed": 3, "versions": {}}'
    assert record.signature == hashlib.sha256(text.encode()).hexdigest()[:10]
    assert re.fullmatch("[0-9a-f]{10}", record.signature)


@pytest.mark.parametrize(("a", "b"), [(1, "1"), (1, True), (1, 1.5), (None, "null"), (0, False), ("", None)])
def test_values_of_different_kinds_are_different_runs(a: Any, b: Any) -> None:
    assert (
        RunRecord(command="", config={"x": a}).signature != RunRecord(command="", config={"x": b}).signature
    )


def test_a_key_is_not_a_value_of_the_next_field() -> None:
    first = RunRecord(command="", config={"x": 1})
    second = RunRecord(command="", versions={"x": 1})
    assert first.signature != second.signature


def test_the_line_at_the_foot_of_a_table() -> None:
    record = RunRecord(command="c", seed=0, versions={"palaver": "1.2"}, data={"r.csv": "0123456789abcdef"})
    assert str(record) == f"palaver 1.2 | seed 0 | r.csv 01234567 | run {record.signature}"
    assert str(RunRecord(command="c")).startswith("palaver ? | run ")


def test_record_run_notes_versions_and_takes_any_configuration() -> None:
    record = record_run(
        "x",
        seed=1,
        config={"confidence": 0.95, "names": ("a", "b"), "out": Path("r"), "map": {"z": 1, "a": 2}},
        data={"f": "00"},
        packages=("pydantic", "no-such-package"),
    )
    assert record.config["names"] == '["a", "b"]'
    assert record.config["out"] == '"r"'
    assert record.versions["no-such-package"] == "not installed"
    assert record.versions["pydantic"] != "not installed"
    assert re.match(r"3\.\d+\.\d+", str(record.versions["python"]))
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_the_order_of_keys_does_not_matter_inside_a_value_either() -> None:
    first = record_run("x", config={"map": {"z": 1, "a": 2}})
    assert first.signature == record_run("x", config={"map": {"a": 2, "z": 1}}).signature


def test_one_call_again_gives_one_signature_again() -> None:
    assert record_run("x", seed=1).signature == record_run("x", seed=1).signature
