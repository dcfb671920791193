"""The alternative annotator test by hand, and what clustering by dialogue changes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from palaver.statistics.alternative_annotator import (
    _benjamini_yekutieli,
    _person_minus_judge,
    alternative_annotator,
)


def likert(
    n: int = 40, n_raters: int = 4, noise: float = 0.5, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    quality = rng.standard_normal(n)
    unit, rater = np.repeat(np.arange(n), n_raters), np.tile(np.arange(n_raters), n)
    people = np.clip(np.round(3 + quality[unit] + 0.8 * rng.standard_normal(unit.size)), 1, 5)
    judge = np.clip(np.round(3 + quality + noise * rng.standard_normal(n)), 1, 5)[unit]
    return people, unit, rater, unit, judge


def slow(value: np.ndarray, unit: np.ndarray, rater: np.ndarray, judge: np.ndarray, kind: str) -> np.ndarray:
    """The paper's definition, loop by loop."""
    ahead = np.full(value.size, np.nan)
    for i in range(value.size):
        others = value[(unit == unit[i]) & (rater != rater[i])]
        if not others.size:
            continue
        if kind == "distance":
            person, machine = (-np.sqrt(np.mean((x - others) ** 2)) for x in (value[i], judge[i]))
        else:
            person, machine = (np.mean(x == others) for x in (value[i], judge[i]))
        ahead[i] = float(person >= machine - 1e-12) - float(machine >= person - 1e-12)
    return ahead


@pytest.mark.parametrize("kind", ["distance", "match"])
def test_who_is_closer_to_the_others_is_the_papers_definition(kind: str) -> None:
    people, unit, rater, _, judge = likert(n=30)
    found = _person_minus_judge(people, unit, judge, kind).ahead  # type: ignore[arg-type]
    assert np.array_equal(found, slow(people, unit, rater, judge, kind))


def test_with_one_judgement_a_dialogue_it_is_the_papers_t_test() -> None:
    people, unit, rater, dialogue, judge = likert()
    found = alternative_annotator(people, unit, rater, dialogue, judge, epsilon=0.2, rng=0, n_replicates=50)
    ahead = slow(people, unit, rater, judge, "distance")
    for test in found.people:
        own = ahead[rater == test.rater]
        expected = stats.ttest_1samp(own, 0.2, alternative="less")
        assert test.p == pytest.approx(expected.pvalue)
        assert test.person_ahead - test.judge_ahead == pytest.approx(own.mean())


def test_judgements_of_one_dialogue_count_once() -> None:
    """The same judgement six times is no more evidence than once."""
    people, unit, rater, dialogue, judge = likert()
    once = alternative_annotator(people, unit, rater, dialogue, judge, rng=0, n_replicates=5)
    six = [np.tile(array, 6) for array in (people, rater, dialogue, judge)]
    copies = np.concatenate([unit + 40 * k for k in range(6)])
    often = alternative_annotator(six[0], copies, six[1], six[2], six[3], rng=0, n_replicates=5)
    assert [test.p for test in often.people] == pytest.approx([test.p for test in once.people])


def test_benjamini_yekutieli_is_scipys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(7) ** 3
        expected = stats.false_discovery_control(p, method="by") <= 0.05
        assert np.array_equal(_benjamini_yekutieli(p[None], 0.05)[0], expected)


def test_a_good_judge_passes_and_a_random_one_does_not() -> None:
    people, unit, rater, dialogue, judge = likert(n=150, noise=0.1)
    good = alternative_annotator(people, unit, rater, dialogue, judge, rng=0)
    assert good.passes
    assert good.winning_rate == 1
    assert good.interval.low >= 0.5
    noise = np.random.default_rng(3).integers(1, 6, 150).astype(float)[unit]
    bad = alternative_annotator(people, unit, rater, dialogue, noise, rng=0)
    assert not bad.passes
    assert bad.winning_rate == 0


def test_a_judge_that_always_agrees_is_believed_only_after_enough_dialogues() -> None:
    def perfect(n: int) -> bool:
        unit, rater = np.repeat(np.arange(n), 3), np.tile(np.arange(3), n)
        same = (unit % 5 + 1).astype(float)
        return alternative_annotator(same, unit, rater, unit, same, rng=0, n_replicates=10).passes

    assert not perfect(10)
    assert perfect(200)


def test_what_is_not_enough_is_said() -> None:
    people, unit, rater, dialogue, judge = likert(n_raters=2)
    assert "2 people" in alternative_annotator(people, unit, rater, dialogue, judge, rng=0).reason
    alone = alternative_annotator(people, np.arange(80), rater, dialogue, judge, rng=0)
    assert "no two people" in alone.reason
    few = alternative_annotator(*[array[:60] for array in likert()], rng=0)  # type: ignore[misc]
    assert "fewer than 30 dialogues" in few.notes[0]
    with pytest.raises(ValueError, match="epsilon"):
        alternative_annotator(people, unit, rater, dialogue, judge, epsilon=1.5, rng=0)
