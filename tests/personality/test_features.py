from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.personality.counts import Counter
from palaver.personality.features import LIMIT, SINGLE, Standard, feature_names, rates, soften
from palaver.personality.lexicon import parse_lexicon

COUNTER = Counter(
    parse_lexicon('[joy]\nwords = "happy"\n[common]\neach = "the"', "x"), {"age": {"cat": 5.0, "happy": 2.0}}
)
TEXTS = ["The happy cat sat. Was it happy?", "No!", "The dog, the cat; the end.", "happy happy happy"] * 3


def totals() -> np.ndarray:
    return COUNTER.complete(COUNTER.count(TEXTS).toarray())


def test_rates_by_hand() -> None:
    found = dict(zip(feature_names(COUNTER.columns), rates(totals(), COUNTER.columns)[0], strict=True))
    assert np.isclose(found["words_per_sentence"], np.log(7 / 2))
    assert np.isclose(found["joy"], 200 / 7)
    assert np.isclose(found["letters"], (3 + 5 + 3 + 3 + 3 + 2 + 5) / 7)
    assert np.isclose(found["questions"], 50)
    assert np.isclose(found["period"], np.sqrt(100 / 7))
    assert np.isclose(found["age"], (2 + 5 + 2) / 3)
    assert "words" not in found
    assert "sentences" not in found


def test_rates_do_not_change_with_size() -> None:
    np.testing.assert_allclose(rates(totals(), COUNTER.columns), rates(7 * totals(), COUNTER.columns))


def test_standardised_on_the_training_texts() -> None:
    standard = Standard.learn(totals(), COUNTER.columns, prior=20)
    found = standard.features(totals())
    names = feature_names(COUNTER.columns)
    varied = np.isfinite(standard.sd)
    scale = np.array([SINGLE if ":" in n else 1.0 for n in names])
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.std(axis=0)[varied], scale[varied])
    assert not found[:, ~varied].any()
    assert not varied[names.index("colon")]


def test_nothing_said_is_the_average_text() -> None:
    standard = Standard.learn(totals(), COUNTER.columns, prior=20)
    nothing = standard.features(np.zeros((1, len(COUNTER.columns))))
    assert np.isfinite(nothing).all()
    short = standard.features(totals()[1:2])
    long = standard.features(100 * totals()[1:2])
    assert np.abs(short - nothing).sum() < np.abs(long - nothing).sum()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_soften_is_rising_odd_and_bounded(values: list[float]) -> None:
    z = np.sort(np.array(values))
    soft = soften(z)
    assert (np.diff(soft) >= 0).all()
    np.testing.assert_allclose(soften(-z), -soft)
    np.testing.assert_array_equal(soft[np.abs(z) <= LIMIT], z[np.abs(z) <= LIMIT])
    assert np.abs(soft).max() < LIMIT + 14
