"""`palaver personality table`: what is written, and what is typed wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.test_personality_distinguish import write

from palaver.corpora.personalities import read_ocean_table

TABLE = ("personality", "table", "talk.jsonl", "--min-utterances", "50", "--size", "30")


def test_the_table_is_what_training_reads(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", {"Ann": 0, "Bob": 1})
    ran = palaver(*TABLE, "--out", "ocean.csv")
    assert ran.code == 0, ran.err
    assert "50 samples of 30 utterances" in ran.out
    assert "data.ocean" in ran.out
    table = read_ocean_table(tmp_path / "ocean.csv")
    assert set(table) == {"Ann", "Bob"}
    again = palaver(*TABLE, "--out", "ocean.csv")
    assert (again.code, "--force" in again.err) == (1, True)
    shown = json.loads(palaver(*TABLE, "--out", "ocean.csv", "--force", "--relative", "--json").out)
    assert shown["relative"] is True
    assert [row["speaker"] for row in shown["characters"]] == list(table)
    spread = read_ocean_table(tmp_path / "ocean.csv")
    assert {round(score) for scores in spread.values() for score in scores} <= {3, 4, 5}
    assert [row["estimate"][0] for row in shown["characters"]] != [s[0] for s in spread.values()]


def test_what_is_typed_wrong(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", {"Ann": 0, "Bob": 1})
    few = palaver("personality", "table", "talk.jsonl", "--out", "ocean.csv")
    assert (few.code, "--min-utterances" in few.err) == (1, True)
    name = palaver(*TABLE, "--out", "ocean.json")
    assert (name.code, "end the name in .csv" in name.err) == (1, True)
    two = palaver(*TABLE[:3], "friends", *TABLE[3:], "--character", "Ann", "--out", "ocean.csv")
    assert (two.code, "one source" in two.err) == (2, True)
    assert not (tmp_path / "ocean.csv").exists()
