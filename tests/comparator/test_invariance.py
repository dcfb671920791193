"""The shipped comparator reads what is said, not how it is spelled."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from palaver.comparator.reading import read_pairs, read_rated
from palaver.comparator.scorer import load_scorer
from palaver.schema import Dialogue
from palaver.text.normalisation import normalise

SPREAD = 1.0
"""Of the scores of the development dialogues: it is a little more."""
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "rated"

EXPANDED = {
    "can't": "cannot", "won't": "will not", "n't": " not", "i'm": "i am", "I'm": "I am", "'re": " are",
    "'ve": " have", "'ll": " will", "it's": "it is", "It's": "It is", "that's": "that is",
    "That's": "That is", "what's": "what is", "What's": "What is", "let's": "let us", "Let's": "Let us",
    "he's": "he is",
}  # fmt: skip


def expand(text: str) -> str:
    for short, long in EXPANDED.items():
        text = re.sub(rf"{short}\b" if short[0] in "'n" else rf"\b{short}\b", long, text)
    return text


def curl(text: str) -> str:
    return re.sub(r'"([^"]*)"', "“\\1”", text.replace("'", "’"))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "lower case": str.lower,
    "upper case": str.upper,
    "expanded contractions": expand,
    "curly quotes": curl,
    "spaces at the end": lambda text: f" {text}  ",
    "emoji": lambda text: f"{text} 😀",
    "Markdown": lambda text: re.sub(r"\b(\w{4,})\b", r"**\1**", f"- {text}", count=1),
    "decomposed letters": lambda text: unicodedata.normalize("NFD", text),
}


def respell(dialogues: Sequence[Dialogue], spell: Callable[[str], str]) -> list[Dialogue]:
    """The dialogues with the system's turns spelled otherwise."""
    return [
        one.model_copy(
            update={
                "turns": tuple(
                    turn if turn.speaker == "user" else turn.model_copy(update={"text": spell(turn.text)})
                    for turn in one.turns
                )
            }
        )
        for one in dialogues
    ]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the rated dialogues in {DATA}")
@pytest.mark.parametrize("name", SPELLINGS)
def test_another_spelling_flips_no_pair_and_moves_no_score(name: str) -> None:
    """Where the normalised text is the same so is the score; only the others have to be scored."""
    rated = read_rated(DATA / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(DATA / "reliable_eval.dev_pairs.jsonl.gz", rated.index)
    respelled = respell(rated.dialogues, SPELLINGS[name])
    moved = [
        i
        for i, (one, other) in enumerate(zip(rated.dialogues, respelled, strict=True))
        if any(normalise(a.text) != normalise(b.text) for a, b in zip(one.turns, other.turns, strict=True))
    ]
    assert len(moved) <= 0.02 * len(rated)
    if not moved:
        return
    scorer = load_scorer()
    in_pairs = np.isin(pairs.first, moved) | np.isin(pairs.second, moved)
    needed = sorted({*moved, *pairs.first[in_pairs].tolist(), *pairs.second[in_pairs].tolist()})
    before, after = np.zeros(len(rated)), np.zeros(len(rated))
    before[needed] = scorer.score([rated.dialogues[i] for i in needed]).score
    after[needed] = scorer.score([respelled[i] for i in needed]).score
    assert np.abs(after - before).max() <= 0.05 * SPREAD
    flipped = np.sign(before[pairs.first] - before[pairs.second]) != np.sign(
        after[pairs.first] - after[pairs.second]
    )
    assert flipped.mean() <= 0.01
