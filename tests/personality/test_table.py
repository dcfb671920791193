"""The table of personalities that training reads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.personality.conftest import Toy, speak

from palaver.corpora.personalities import read_ocean_table, write_ocean_table
from palaver.errors import DataError, UserError
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice
from palaver.personality.table import estimate_table

HOW: dict[str, Any] = {
    "choice": Choice(min_utterances=50),
    "settings": Settings(size=40, ocean_samples=20),
}


def write_talk(path: Path, likes: dict[str, int | None]) -> Path:
    rng = np.random.default_rng(0)
    said = {name: speak(rng, favourite, 100) for name, favourite in likes.items()}
    lines = ["dialogue,speaker,text"]
    lines += [f"{i},{name},{said[name][i]}" for i in range(100) for name in said]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_mean_over_samples_is_written_as_training_reads_it(tmp_path: Path) -> None:
    talk = write_talk(tmp_path / "talk.csv", {"Ann": 0, "Bob": 4})
    table = estimate_table([talk], Toy(), **HOW)
    assert {c.name: c.n_utterances for c in table.characters} == {"Ann": 100, "Bob": 100}
    scores = table.scores()
    assert scores["Ann"][0] > scores["Bob"][0] + 1
    assert scores["Bob"][4] > scores["Ann"][4] + 1
    write_ocean_table(tmp_path / "ocean.csv", scores)
    read = read_ocean_table(tmp_path / "ocean.csv")
    assert list(read) == ["Ann", "Bob"]
    assert np.allclose(read["Ann"], scores["Ann"], atol=5e-4)


def test_relative_scores_have_mean_4_and_deviation_1(tmp_path: Path) -> None:
    talk = write_talk(tmp_path / "talk.csv", {"Ann": 0, "Bob": 4, "Cyd": None})
    scores = np.array(list(estimate_table([talk], Toy(), **HOW).scores(relative=True).values()))
    assert np.allclose(scores.mean(axis=0), 4)
    assert np.allclose(scores.std(axis=0), 1)


def test_a_name_in_two_sources_is_refused(tmp_path: Path) -> None:
    one = write_talk(tmp_path / "one.csv", {"Ann": 0, "Bob": 4})
    two = write_talk(tmp_path / "two.csv", {"Ann": 0, "Cyd": 4})
    with pytest.raises(DataError, match="in two sources") as caught:
        estimate_table([one, two], Toy(), **HOW)
    assert "Ann" in str(caught.value)
    renamed = estimate_table(
        [two], Toy(), choice=Choice(min_utterances=50, rename={"Ann": "Zoe"}), settings=HOW["settings"]
    )
    assert [c.name for c in renamed.characters] == ["Cyd", "Zoe"]


def test_the_file_must_be_named_csv(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="end the name in"):
        write_ocean_table(tmp_path / "ocean.json", {"Ann": (1, 2, 3, 4, 5)})


def test_it_shows_itself(tmp_path: Path) -> None:
    table = estimate_table([write_talk(tmp_path / "talk.csv", {"Ann": 0, "Bob": 4})], Toy(), **HOW)
    assert "2 characters" in repr(table)
    assert SimpleNamespace(**table.to_polars().to_dict(as_series=False)).speaker == ["Ann", "Bob"]
