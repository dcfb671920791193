"""The confidence sequence of a running study as the admin sees it: a picture, and when it will stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from palaver.reports.numbers import number, some
from palaver.studies.trust_sequence import Watch

_WIDE, _HIGH = 320, 96
MOST_DRAWN = 6
"""Pairs with a picture; the table has all."""


def watch_data(pair: Watch) -> dict[str, Any]:
    """For programs."""
    look = pair.decided or pair.looks[-1]
    named = {"system": pair.system, "against": pair.against, "decision": pair.decision}
    return {**named, "value": look.value, "low": look.low, "high": look.high, "forecast": forecast(pair)}


def forecast(pair: Watch) -> int | None:
    """After about how many dialogues the pair would be decided if its difference stayed as it is.

    Intervals shrink about as the square root of the dialogues; None where that says nothing.
    """
    last = pair.looks[-1]
    if pair.decided or not math.isfinite(last.low) or not last.value:
        return None
    reach = (last.high - last.low) / 2
    return math.ceil(last.n_dialogues * (reach / abs(last.value)) ** 2)


def describe_stop(watches: Sequence[Watch], planned: int) -> str:
    """When the study will stop, in a sentence."""
    undecided = [pair for pair in watches if not pair.decided]
    if not undecided:
        return "Every pair is decided: it stops with the next answer."
    expected = [forecast(pair) for pair in undecided]
    known = [dialogues for dialogues in expected if dialogues is not None]
    if len(known) < len(expected):
        return "When it will stop cannot be said yet."
    if max(known) > planned:
        return f"If the differences stay as they are, it goes on to its end ({some(planned, 'dialogue')})."
    return f"If the differences stay as they are, it stops after about {max(known)} of {planned} dialogues."


def sequence_chart(pair: Watch, planned: int) -> dict[str, Any] | None:
    """The course of the interval as coordinates: a band, a line for the difference, and where 0 is."""
    known = [look for look in pair.looks if math.isfinite(look.low) and math.isfinite(look.high)]
    if len(known) < 2:
        return None
    last = known[-1]
    most = max(planned, last.n_dialogues)
    room = 1.5 * (last.high - last.low)  # the first intervals are so long that nothing else would be seen
    top = max(0.0, min(max(look.high for look in known), last.value + room))
    bottom = min(0.0, max(min(look.low for look in known), last.value - room))

    def x(dialogues: int) -> float:
        return round(_WIDE * dialogues / most, 1)

    def y(value: float) -> float:
        return round(_HIGH * (top - min(top, max(bottom, value))) / (top - bottom), 1)

    upper = [f"{x(look.n_dialogues)},{y(look.high)}" for look in known]
    lower = [f"{x(look.n_dialogues)},{y(look.low)}" for look in reversed(known)]
    label = (
        f"{pair.system} minus {pair.against}: {number(last.value)}, surely between {number(last.low)} and "
        f"{number(last.high)}, after {some(last.n_dialogues, 'dialogue')} of {most}"
    )
    return {
        "width": _WIDE,
        "height": _HIGH,
        "band": " ".join([*upper, *lower]),
        "line": " ".join(f"{x(look.n_dialogues)},{y(look.value)}" for look in known),
        "zero": y(0.0),
        "label": label,
        "most": most,
    }
