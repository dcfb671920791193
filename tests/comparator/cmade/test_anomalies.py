"""Stage 1: what is spoilt and what cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from palaver.comparator.cmade.anomalies import spoil
from palaver.comparator.reading import read_rated
from palaver.errors import DataError
from palaver.schema import Dialogue, Turn


def test_spoilt_dialogues(rated_files: dict[str, Path]) -> None:
    dialogues = read_rated(rated_files["train"]).dialogues
    anomalies = spoil(dialogues, seed=3)
    assert len(anomalies.dialogues) == 2 * len(dialogues)
    assert np.bincount(anomalies.real).tolist() == [2] * len(dialogues)
    pool = {
        role: {t.text for d in dialogues for t in d.turns if t.speaker == role} for role in ("user", "system")
    }
    roles = []
    for spoilt, row in zip(anomalies.dialogues, anomalies.real, strict=True):
        turns = zip(spoilt.turns, dialogues[row].turns, strict=True)
        [(changed, real)] = [(turn, real) for turn, real in turns if turn != real]
        assert changed.speaker == real.speaker
        assert changed.text in pool[changed.speaker]
        roles.append(changed.speaker)
    assert roles == ["user", "system"] * len(dialogues)
    assert spoil(dialogues, seed=3).dialogues == anomalies.dialogues
    assert spoil(dialogues, seed=4).dialogues != anomalies.dialogues


def test_what_cannot_be_spoilt() -> None:
    turns = (Turn(speaker="user", text="hello"), Turn(speaker="system", text="no"))
    same = [Dialogue(id=name, turns=turns) for name in "ab"]
    with pytest.raises(DataError, match="no dialogue can be spoilt"):
        spoil(same)
    anomalies = spoil([*same, Dialogue(id="c", turns=(Turn(speaker="user", text="why"),))])
    assert anomalies.dropped == {"no other turn of the system": 3}
