"""Known items and broken outputs: are raters reading? (Ji et al. 2022 use degraded systems the same way.)"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence

from palaver.schema import Dialogue, Item, Output, Turn
from palaver.schema.delivery import Expected

_WORD = re.compile(r"!\[[^\]\n]*\]\([^)\s]*\)|\S+")
"""An image of Markdown is one word: half of it would show as text."""


def met(expected: Sequence[Expected], answers: Mapping[tuple[str, str, int | None], str]) -> list[bool]:
    """For each expectation, whether the answer (criterion, system, turn) -> value meets it."""
    given = [answers.get((e.criterion, e.system, e.turn)) for e in expected]
    return [value is not None and e.met_by(value) for e, value in zip(expected, given, strict=True)]


def broken_output(item: Item, seed: int) -> int:
    """Which output of an item is the one to break."""
    digest = hashlib.sha256(f"{seed}\x1fbreak\x1f{item.id}".encode()).digest()
    return digest[0] % len(item.outputs)


def degrade(item: Item, seed: int) -> Item:
    """The item with one output deliberately spoiled: every third word left out, the rest in disorder."""
    which = broken_output(item, seed)
    outputs = list(item.outputs)
    outputs[which] = _spoil(outputs[which], random.Random(f"{seed}{item.id}"))
    return item.model_copy(update={"outputs": tuple(outputs)})


def _spoil(output: Output, rng: random.Random) -> Output:
    if output.dialogue is None:
        return output.model_copy(update={"text": _scramble(output.text or "", rng)})
    turns = [t.model_copy(update={"text": _scramble(t.text, rng)}) for t in output.dialogue.turns]
    spoiled: Dialogue = output.dialogue.model_copy(update={"turns": tuple[Turn, ...](turns)})
    return output.model_copy(update={"dialogue": spoiled})


def can_degrade(item: Item, seed: int) -> bool:
    """Whether spoiling changes what a rater can see: a one-word answer stays what it is."""
    which = broken_output(item, seed)
    return _words(degrade(item, seed).outputs[which]) != _words(item.outputs[which])


def _words(output: Output) -> list[list[str]]:
    turns = [turn.text for turn in output.dialogue.turns] if output.dialogue else [output.text or ""]
    return [text.split() for text in turns]


def _scramble(text: str, rng: random.Random) -> str:
    words = _WORD.findall(text)
    kept = [word for i, word in enumerate(words) if i % 3 != 2]
    rng.shuffle(kept)
    if kept == words[: len(kept)]:  # a shuffle may change nothing
        kept.reverse()
    return " ".join(kept)


def rated_lower(before: Mapping[str, str], after: Mapping[str, str], lowest: Mapping[str, float]) -> bool:
    """Whether the broken output got less than the sound one had: on no criterion more, on one less.

    A criterion on which the sound one was at the bottom of the scale (`lowest`) already cannot go lower and
    does not count against the rater, nor do words (boxes, comparisons). With nothing to compare, nothing
    was failed.
    """
    compared = lower = False
    for criterion in before.keys() & after.keys() & lowest.keys():
        first, second = float(before[criterion]), float(after[criterion])
        if second > first:
            return False
        if first > lowest[criterion]:
            compared = True
            lower = lower or second < first
    return lower or not compared
