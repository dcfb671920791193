"""Requested against measured traits: a model that obeys, one that does not, and the control."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.personality.conftest import MARKERS, Toy

from palaver.corpora.personalities import TRAITS
from palaver.errors import DataError
from palaver.personality.fidelity import measure_fidelity
from palaver.personality.pools import Choice


def write_responses(path: Path, *, obeys: tuple[int, ...], n_requests: int = 24, **more: Any) -> Path:
    """A model that says a trait's marker as often as it was asked to, for the traits that it obeys."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(n_requests):
        asked = rng.uniform(2, 6, 5)
        for context in range(8):
            p = np.full(len(MARKERS), 2.0)
            for trait in obeys:
                p[trait] = asked[trait]
            words = rng.choice([*MARKERS, "and"], 12, p=[*(p / p.sum() / 1.2), 1 / 6])
            row = {"id": str(context), "system": "m", "speaker": f"r{k}", "response": " ".join(words)}
            rows.append({**row, "ocean": [round(float(v), 3) for v in asked], **more})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_model_that_obeys_has_a_high_diagonal_and_only_there(tmp_path: Path) -> None:
    path = write_responses(tmp_path / "said.jsonl", obeys=(0, 1, 2, 3, 4))
    result = measure_fidelity(path, measured_by=Toy(), n_deals=300)
    assert (result.n_requests, result.n_responses) == (24, 192)
    assert len(result.matrix) == 25
    assert all(row.answers for row in result.diagonal)
    assert result.mean_r > 0.6 > 2 * result.mean_other
    for cell in result.matrix:
        assert -1 <= cell.low <= cell.r <= cell.high <= 1
    assert abs(result.control.mean_r) < 0.1
    assert result.control.high < result.mean_r


def test_only_traits_that_follow_their_request_answer(tmp_path: Path) -> None:
    path = write_responses(tmp_path / "said.jsonl", obeys=(2,))
    result = measure_fidelity(path, measured_by=Toy(), n_deals=300)
    assert [row.trait for row in result.diagonal if row.answers] == ["extraversion"]
    assert "for extraversion." in result.text
    nobody = measure_fidelity(
        write_responses(tmp_path / "not.jsonl", obeys=()), measured_by=Toy(), n_deals=300
    )
    assert "none of the five traits" in nobody.text


def test_a_table_says_what_was_requested_where_the_rows_do_not(tmp_path: Path) -> None:
    path = write_responses(tmp_path / "said.jsonl", obeys=(0, 1, 2, 3, 4))
    asked = {row["speaker"]: row["ocean"] for row in map(json.loads, path.read_text().splitlines())}
    plain = write_responses(tmp_path / "plain.jsonl", obeys=(0, 1, 2, 3, 4), ocean=None)
    with pytest.raises(DataError, match="no row says which personality"):
        measure_fidelity(plain, measured_by=Toy())
    table = tmp_path / "requests.json"
    table.write_text(json.dumps(asked), encoding="utf-8")
    by_table = measure_fidelity(plain, measured_by=Toy(), table=table, n_deals=300)
    by_rows = measure_fidelity(path, measured_by=Toy(), n_deals=300)
    assert [cell.r for cell in by_table.matrix] == pytest.approx([cell.r for cell in by_rows.matrix])
    table.write_text(json.dumps({"r0": asked["r0"]}), encoding="utf-8")
    with pytest.raises(DataError, match="no requested scores of"):
        measure_fidelity(plain, measured_by=Toy(), table=table)


def test_too_few_or_equal_requests_are_refused(tmp_path: Path) -> None:
    few = write_responses(tmp_path / "few.jsonl", obeys=(0,), n_requests=4)
    with pytest.raises(DataError, match="over 4 requested personalities"):
        measure_fidelity(few, measured_by=Toy())
    flat = write_responses(tmp_path / "flat.jsonl", obeys=(), n_requests=6, ocean=[4, 4, 4, 4, 4])
    with pytest.raises(DataError, match="same openness"):
        measure_fidelity(flat, measured_by=Toy())


def test_the_recogniser_of_the_labels_is_named_as_such(tmp_path: Path) -> None:
    path = write_responses(tmp_path / "said.jsonl", obeys=(), n_requests=6)
    by_default = measure_fidelity(path, measured_by="default", n_deals=100)
    assert any("labels are usually estimated with" in note for note in by_default.notes)
    independent = measure_fidelity(path, choice=Choice(system="m"), n_deals=100)
    assert independent.recogniser == "self-report"
    assert not any("labels" in note for note in independent.notes)
    content = json.loads(independent.to_json())
    assert [row["trait"] for row in content["diagonal"]] == list(TRAITS)
    assert content["run"]["command"] == "personality fidelity"
