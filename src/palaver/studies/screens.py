"""A study as the screens raters work through, and the order in which outputs appear on each.

A screen is one item with one group of questions: all of them when the layout is joint; one criterion, and
what stands beside it, when it is separate. Whoever gets a screen judges every output of the item, side by
side or one after the other as the scale demands, so a rater never meets an item twice for one question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from palaver.schema import Question, Study

BLOCK = 10
"""Screens are handed out block by block, so that an early stop leaves whole items and a first agreement."""


@dataclass(frozen=True, slots=True)
class Screen:
    """One thing to hand out."""

    ordinal: int
    item: str
    criteria: tuple[str, ...]
    group: int
    place: int
    """Among the screens of its group."""

    @property
    def block(self) -> int:
        return self.place // BLOCK


def question_groups(study: Study) -> tuple[tuple[Question, ...], ...]:
    """The questions that are asked together."""
    if study.layout == "joint":
        return (study.questions,)
    hosts = [q for q in study.questions if q.beside is None]
    return tuple((h, *(q for q in study.questions if q.beside == h.criterion)) for h in hosts)


def plan_screens(study: Study) -> tuple[Screen, ...]:
    """Every screen of the study; items in an order of the seed's, so that blocks mix what the file sorted."""
    order = sorted(study.items, key=lambda item: draw_key(study.seed, "item", item.id))
    if study.order == "fixed":
        order = list(study.items)
    screens: list[Screen] = []
    for group, questions in enumerate(question_groups(study)):
        for place, item in enumerate(order):
            criteria = tuple(q.criterion for q in questions)
            screens.append(Screen(len(screens), item.id, criteria, group, place))
    return tuple(screens)


def side_by_side(questions: Sequence[Question]) -> bool:
    """Whether the outputs of an item are judged on one page."""
    return any(q.scale.side_by_side for q in questions)


def shown_order(study: Study, screen: Screen, n_outputs: int, turn: int, rater: str) -> tuple[int, ...]:
    """The outputs in the order in which the `turn`-th rater of this screen sees them.

    Counterbalanced: successive raters of a screen, and successive screens, walk through the orders of a
    balanced square, so that over the study every output stands in every place equally often.
    """
    if study.order == "fixed":
        return tuple(range(n_outputs))
    if study.order == "random":
        keys = [draw_key(study.seed, "order", screen.item, rater, str(o)) for o in range(n_outputs)]
        return tuple(sorted(range(n_outputs), key=lambda o: keys[o]))
    # Each screen goes on in the square where the one before it stopped, a half of n rows at a time, as each
    # half has every output in every place. The shift keeps raters who see every screen from meeting the same
    # few orders when the number of raters and the size of the square share a divisor.
    square = balanced_square(n_outputs)
    step = screen.place * study.raters_per_item + turn
    shift = screen.place // (len(square) // gcd(study.raters_per_item, len(square)))
    half = step // n_outputs % (len(square) // n_outputs)
    return square[half * n_outputs + (step + shift) % n_outputs]


def balanced_square(n: int) -> tuple[tuple[int, ...], ...]:
    """Orders of n things: each stands in each place and follows each other equally often (Williams 1949).

    Any n successive rows have each thing in each place once.
    """
    zigzag = [0]
    for step in range(1, n):
        zigzag.append((zigzag[-1] + (step if step % 2 else -step)) % n)
    rows = [tuple((z + shift) % n for z in zigzag) for shift in range(n)]
    if n % 2 and n > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return tuple(rows)


def draw_key(seed: int, *words: str) -> str:
    """A random key of a named stream: the same words have the same place whatever else there is."""
    return hashlib.sha256("\x1f".join((str(seed), *words)).encode()).hexdigest()
