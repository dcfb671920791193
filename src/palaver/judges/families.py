"""Does a judge favour the family that it belongs to?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from palaver.statistics.order_effects import Effect, effect_of

UNKNOWN = Effect(name="", value=math.nan, low=math.nan, high=math.nan, p=math.nan)
_FAMILY = re.compile(r"[a-z]+")
_LEAST_OWN = 10
_ROUNDING = 1e-12
"""A standard error below it means that all items say the same."""


def families_of(names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Name -> family, as given, or the first word of the name."""
    families = {}
    for name in names:
        word = _FAMILY.search(name.rpartition("/")[2].rpartition(":")[2].lower())
        families[name] = given.get(name, word.group() if word else name)
    return families


def own_family(
    judge: str,
    own: pl.DataFrame,
    others: pl.DataFrame,
    people: pl.DataFrame,
    family: Mapping[str, str],
    confidence: float,
) -> tuple[Effect, str]:
    """How much more often outputs of its family win by this judge than by people, on the same comparisons.

    Where no person compared, the other judges stand for them. Places cancel, as only comparisons that a judge
    made in both orders count; the interval is over items.
    """
    mine = family[judge]
    wins = _family_wins(own, family, mine)
    if len(wins) < _LEAST_OWN:
        return UNKNOWN, "too few comparisons with an output of its own family"
    of_others: dict[tuple[str, str, str], list[float]] = {}
    for key, value in _family_wins(people, family, mine, both_orders=False).items():
        of_others[key] = [value]
    if of_others:
        others = others.clear()
    for (other,), frame in others.group_by("judge", maintain_order=True):
        if family[str(other)] != mine:
            for key, value in _family_wins(frame, family, mine).items():
                of_others.setdefault(key, []).append(value)
    shared = [key for key in wins if key in of_others]
    if len(shared) < _LEAST_OWN:
        return UNKNOWN, "neither people nor another judge made these comparisons"
    by_item: dict[str, list[float]] = {}
    for key in shared:
        by_item.setdefault(key[0], []).append(wins[key] - float(np.mean(of_others[key])))
    sums = np.array([sum(values) for values in by_item.values()])
    sizes = np.array([len(values) for values in by_item.values()])
    value = float(sums.sum() / sizes.sum())
    if sums.size < 2:
        return UNKNOWN, "needs comparisons on at least two items"
    error = math.sqrt(sums.size / (sums.size - 1) * float(((sums - value * sizes) ** 2).sum())) / sizes.sum()
    if error <= _ROUNDING:
        return replace(UNKNOWN, value=value), "the same on every item, which does not show how sure this is"
    return effect_of("own", value, error**2, sums.size - 1, confidence), ""


def _family_wins(
    frame: pl.DataFrame, family: Mapping[str, str], mine: str, *, both_orders: bool = True
) -> dict[tuple[str, str, str], float]:
    """(item, output of the family, other) -> how often it won."""
    seen: dict[tuple[str, str, str], dict[bool, list[float]]] = {}
    for item, first, second, outcome in frame.select("item", "first", "second", "outcome").iter_rows():
        if (family[first] == mine) == (family[second] == mine):
            continue
        is_first = family[first] == mine
        key = (item, first, second) if is_first else (item, second, first)
        seen.setdefault(key, {}).setdefault(is_first, []).append(outcome if is_first else 1 - outcome)
    return {
        key: float(np.mean([np.mean(values) for values in sides.values()]))
        for key, sides in seen.items()
        if len(sides) == 2 or not both_orders
    }
