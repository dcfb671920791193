from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from palaver.comparator.surface import FEATURES, read_turn, surface_features
from palaver.text.normalisation import normalise


def surface(*texts: str) -> NDArray[np.float32]:
    """(F,) the features of a dialogue in which user and system take turns."""
    return surface_features([[read_turn(i % 2 == 0, normalise(text)) for i, text in enumerate(texts)]])[0]


def value(name: str, *texts: str) -> float:
    return float(surface(*texts)[FEATURES.index(name)])


def test_names_are_unique_and_as_many_as_columns() -> None:
    assert len(set(FEATURES)) == len(FEATURES)
    assert surface("hi", "hello").shape == (len(FEATURES),)
    assert surface_features([]).shape == (0, len(FEATURES))


def test_lengths_and_repetition() -> None:
    turns = ("hi", "I like cats a lot.", "really?", "I like cats a lot.")
    assert value("system_length", *turns) == 5
    assert value("system_repeat_turn", *turns) == 0.5
    assert value("system_repeat_2", *turns) == 0.5
    assert value("system_repeat_2_max", *turns) == 1
    assert value("user_length", *turns) == 1
    assert value("user_short_question", *turns) == 0.5
    assert value("system_stopped", *turns) == 1


def test_what_users_say() -> None:
    assert value("user_puzzled_turns", "hi", "yes", "what do you mean", "no", "ok", "no") == np.float32(1 / 3)
    assert value("user_rude", "you stupid thing", "no") == np.float32(1 / 3)
    assert value("system_does_not_know", "hi", "I don’t know", "ok", "fine") == 0.5
    assert value("system_greets_late", "hi", "hello", "ok", "hello again") == 1


def test_an_unknown_word_is_a_word() -> None:
    assert value("system_unknown", "hi", "the <unk> is here") == 1
    assert value("system_unknown", "hi", "he was drunk on the trunk") == 0


def test_answers() -> None:
    assert value("question_for_question", "how old are you?", "why do you ask?") == 1
    assert value("answers_directly", "how old are you?", "i am ten") == 1
    assert value("system_overlap", "cats sleep", "cats eat") == 0.5


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8))
def test_any_text_gives_finite_numbers(texts: list[str]) -> None:
    assert np.isfinite(surface(*texts)).all()
