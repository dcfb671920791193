"""The result in words."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaver.personality.verdict import judge


def conditions(real: float, pseudo: float) -> Any:
    values = {"characters": 0.7, "pseudo-characters": 0.3}
    values |= {"characters by group": real, "pseudo-characters by group": pseudo}
    return {name: SimpleNamespace(f1=f1) for name, f1 in values.items()}


def pools(centre: float, spread: float, n: int = 21) -> Any:
    return np.column_stack([centre + spread * np.linspace(-1, 1, n), np.full(n, 0.2)])


@pytest.mark.parametrize(
    ("real", "spread", "answer"), [(0.6, 0.2, "yes"), (0.6, 0.5, "no"), (0.2, 0.1, "no"), (0.1, 0.05, "no")]
)
def test_yes_only_if_all_of_the_interval_is_above_nought(real: float, spread: float, answer: str) -> None:
    verdict = judge(conditions(real, 0.2), pools(0.9, spread), "scene", 0.9, "")
    assert verdict.answer == answer
    assert (verdict.answer == "yes") == (verdict.low > 0)
    # the spread is put around the difference found, wherever the resampled pools lie
    assert verdict.low == pytest.approx(real - 0.2 - 0.9 * spread)
    assert verdict.high == pytest.approx(real - 0.2 + 0.9 * spread)


def test_the_words() -> None:
    verdict = judge(conditions(0.5, 0.2), pools(0.5, 0.08), "episode", 0.5, "")
    assert verdict.text == (
        "Distinguishable beyond chance resampling: yes. On episodes that the classifier has not seen, F1 is "
        "0.50 for the characters and 0.20 for pseudo-characters of the same utterances, a difference of 0.30 "
        "[0.26, 0.34]. Of the F1 of 0.70 under the paper’s protocol, pseudo-characters reach 0.30 already."
    )
    assert "of −0.10 [−0.11, " in judge(conditions(0.1, 0.2), pools(0.5, 0.01), "scene", 0.95, "").text


def test_when_it_cannot_be_said() -> None:
    few = judge(conditions(0.5, 0.2), pools(0.5, 0.1, n=9), "scene", 0.95, "")
    assert few.answer == "cannot say"
    assert math.isnan(few.low)
    assert "10 resampled pools or more, there are 9" in few.reason
    some = conditions(0.5, 0.2)
    some = {name: some[name] for name in ("characters", "pseudo-characters")}
    none = judge(some, np.zeros((0, 2)), "scene", 0.95, "too few scenes")
    assert (none.answer, none.reason) == ("cannot say", "too few scenes")
    assert "F1 is 0.70, and 0.30 for pseudo-characters" in none.text
