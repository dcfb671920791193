"""A comparator beside its baselines, on pairs whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from palaver.comparator.scorecard import COLUMNS, Scorecard, evaluate_comparator
from palaver.comparator.scorer import Scorer, Scores
from palaver.comparator.training_data import Pairs, RatedDialogue, RatedDialogues, dialogue_digest
from palaver.errors import UserError
from palaver.reports.scorecard import scorecard_page
from palaver.schema import Dialogue, Turn, record_run

SYSTEMS = ("A", "A2", "B", "B2")
STRENGTH = {"A": 2.0, "A2": 2.0, "B": 0.0, "B2": 0.0}


class Known(Scorer):
    """Scores a dialogue by the number that its system says."""

    name = "known"
    folder: Path | None = None

    def _score(self, dialogues: Any, progress: Any) -> Scores:
        score = np.array([float(dialogue.turns[-1].text.split()[-1]) for dialogue in dialogues])
        return Scores(score, score, score)

    def _scores_without(self, dialogues: Any, places: Any) -> Any:
        raise NotImplementedError


def sample(n_raters: int = 30, named: bool = True) -> tuple[RatedDialogues, Pairs]:
    """Each rater has one dialogue with each system; quality is the system's strength and a bit of its own.

    A good dialogue of a system has a question in it, whatever the system.
    """
    rng = np.random.default_rng(0)
    rows, first, second, label = [], [], [], []
    for rater in range(n_raters):
        quality = []
        for system in SYSTEMS:
            own = int(rng.integers(2))
            quality.append(STRENGTH[system] + 3 * own)
            text = f"well {'? ' * own}{quality[-1]}"
            turns = (Turn(speaker="user", text="hello"), Turn(speaker="system", text=text))
            dialogue = Dialogue(id=f"{rater}-{system}", turns=turns)
            rows.append(RatedDialogue(dialogue, rater=f"r{rater}" if named else None, system=system))
        for i in range(4):
            for j in range(i + 1, 4):
                if quality[i] != quality[j]:
                    first.append(4 * rater + i)
                    second.append(4 * rater + j)
                    label.append(1 if quality[i] > quality[j] else -1)
    pairs = Pairs(np.array(first), np.array(second), np.array(label, np.int8), {"nobody could tell": 3})
    return RatedDialogues(tuple(rows), (0.0, 5.0)), pairs


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return evaluate_comparator(Known(), *sample(100), tiers=[["A", "A2"], ["B", "B2"]])


def accuracy(card: Scorecard, method: str, column: str = COLUMNS[0]) -> float:
    row = next(row for row in card.rows if row.method == method)
    return row.results[column].accuracy


def test_baselines_learn_what_can_be_learnt(card: Scorecard) -> None:
    assert card.n_raters == 100
    assert card.systems == SYSTEMS
    assert card.left_out == {"nobody could tell": 3}
    assert accuracy(card, "comparator known") == 1
    assert 0.5 < accuracy(card, "which system it is") < 0.9
    assert accuracy(card, "surface model") > 0.7  # the question mark, which all systems share
    assert accuracy(card, "surface model", "unseen systems") > 0.7
    assert accuracy(card, "comparator known", "within a tier") == 1


def test_within_a_tier_the_system_says_nothing(card: Scorecard) -> None:
    within = next(row for row in card.rows if row.method == "which system it is").results["within a tier"]
    assert within.n < card.n_pairs
    assert within.accuracy < 0.65


def test_what_cannot_be_measured_has_a_reason(card: Scorecard) -> None:
    reasons = {row.method: row.reasons for row in card.rows}
    assert reasons["comparator known"]["unseen systems"].startswith("it would have to be trained anew")
    assert "not seen" in reasons["which system it is"]["unseen systems"]
    assert all(reason["within a system"] == "no pair is of one system" for reason in reasons.values())
    for row in card.rows:
        assert set(row.results) | set(row.reasons) == set(COLUMNS)
    assert card.to_polars().height == len(card.rows) * len(COLUMNS)
    assert card.to_polars("calibration")["n"].sum() == card.n_pairs


def test_pairs_of_one_system() -> None:
    dialogues, _ = sample(12)
    rows = np.arange(0, 48, 4)  # the dialogues with A, one a rater
    own = Pairs(
        rows[:-1],
        rows[1:],
        np.where(np.arange(11) % 2, 1, -1).astype(np.int8),
        raters=("x", "y") * 5 + ("x",),
    )
    card = evaluate_comparator(Known(), dialogues, own)
    assert accuracy(card, "which system it is", "within a system") == 0.5
    assert next(iter(card.rows)).reasons["within a tier"] == "no tiers were named"


def test_without_raters_it_says_so() -> None:
    card = evaluate_comparator(Known(), *sample(12, named=False))
    assert card.n_raters == 0
    assert any("not every pair has a rater" in note for note in card.notes)


def test_with_few_raters_it_says_what_the_intervals_are_worth() -> None:
    note = "fewer than 10 raters (all pairs, unseen systems)"
    assert not any("fewer than" in text for text in evaluate_comparator(Known(), *sample(12)).notes)
    notes = evaluate_comparator(Known(), *sample(6), unseen={"unseen systems": np.arange(24.0)}).notes
    assert any(text.startswith(note) for text in notes)
    dialogues, pairs = sample(6, named=False)
    assert any(
        "groups of pairs (all pairs)" in text for text in evaluate_comparator(Known(), dialogues, pairs).notes
    )
    one_each = Pairs(pairs.first[:1], pairs.second[:1], pairs.label[:1])
    assert not any("fewer than" in text for text in evaluate_comparator(Known(), dialogues, one_each).notes)


def test_mistakes_in_tiers() -> None:
    dialogues, pairs = sample(4)
    with pytest.raises(UserError, match="no system 'A3'"):
        evaluate_comparator(Known(), dialogues, pairs, tiers=[["A", "A3"]])
    with pytest.raises(UserError, match="in two tiers"):
        evaluate_comparator(Known(), dialogues, pairs, tiers=[["A"], ["A", "B"]])


def test_one_rater_teaches_no_baseline() -> None:
    dialogues, pairs = sample(1)
    card = evaluate_comparator(Known(), dialogues, pairs)
    assert [row.method for row in card.rows] == ["comparator known", "longer wins"]
    assert any("one rater" in note for note in card.notes)


def test_what_was_learnt_from_and_what_is_not_english_is_said() -> None:
    dialogues, pairs = sample(12)
    german = Turn(speaker="user", text="Ich habe heute nichts mit dir und mit den anderen zu tun.")
    first = dialogues.rows[int(pairs.first[0])].dialogue
    rows = [
        replace(row, dialogue=row.dialogue.model_copy(update={"turns": (german, row.dialogue.turns[1])}))
        if row.dialogue.id == first.id
        else row
        for row in dialogues.rows
    ]
    scorer = Known()
    scorer.trained_on = frozenset(dialogue_digest(row.dialogue) for row in rows[4:])
    card = evaluate_comparator(scorer, replace(dialogues, rows=tuple(rows)), pairs)
    n_used = len(pairs.used)
    assert any(f"of the {n_used} dialogues compared: on others it agrees less" in note for note in card.notes)
    assert "dialogues that do not look English: do not believe their scores (1)" in card.notes
    assert "; the best simple rule, " in scorecard_page(card, record_run("palaver compare evaluate"))
    unseen = next(row for row in card.rows if row.method == "comparator known").reasons["unseen source"]
    assert unseen.endswith("name them with --other-source")
