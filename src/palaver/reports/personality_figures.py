"""Figures of distinguishability: the characters' traits, and F1 of each condition beside its controls."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from palaver.drawing import DASHED, PALETTE
from palaver.personality.results import Condition, Distinguishability
from palaver.reports.canvas import (
    ACCENT,
    INK,
    LINE,
    MUTED,
    SMALL,
    TEXT,
    WIDTH,
    canvas,
    draw_value,
    inline_svg,
    room,
    spread_labels,
    write,
    write_below,
)
from palaver.reports.names import short_names
from palaver.reports.numbers import number

TRAITS = ("Openness", "Conscientious.", "Extraversion", "Agreeableness", "Neuroticism")
DASHES = ((), (5, 2), (1, 1.5))
"""Of the lines once all colours are used."""


def trait_lines(result: Distinguishability, prefix: str) -> str:
    """Parallel coordinates: a line for each character, above or below the mean of all on each of five axes.

    Traits differ more from each other than characters do, so each axis has the mean of all in its middle.
    """
    names = short_names((c.name for c in result.characters), 16)
    values = np.array([c.ocean for c in result.characters])  # (characters, 5)
    mean = values.mean(axis=0)
    values = values - mean
    reach = 1.12 * float(np.abs(values).max()) or 1.0
    left, right, height = 38, room(names.values()) + 12, max(190, 16 * len(names))
    chart = canvas(left, right, 10, 60, height)
    chart.set_x(0, 4)
    chart.set_y(-reach, reach)
    step = _step(reach)
    for k in range(-round(reach / step), round(reach / step) + 1):
        if abs(k * step) <= reach:
            chart.horizontal(k * step, LINE, 0.7 if k else 1.4)
            mark = f"{'+' if k > 0 else ''}{number(k * step, 1 if step >= 0.1 else 2)}" if k else "0"
            write(chart, -8, k * step, mark, anchor="end", size=SMALL, colour=MUTED)
    for x, trait in enumerate(TRAITS):
        chart.vertical(x, LINE, 1.2)
        for drop, text, colour in ((8, trait, INK), (21, f"mean {number(mean[x])}", MUTED)):
            write_below(chart, x, text, drop=drop + 27 * (x % 2), colour=colour)
    places = spread_labels(values[:, -1].tolist(), 2 * reach * 14 / height, reach)
    plot = WIDTH - left - right
    for i, (character, line) in enumerate(zip(result.characters, values.tolist(), strict=True)):
        colour = PALETTE[i % len(PALETTE)]
        chart.line(enumerate(line), colour, 1.8, dash=DASHES[i // len(PALETTE) % len(DASHES)])
        for x, value in enumerate(line):
            chart.mark(x, value, colour, 4.5)
        chart.line([(4, line[-1]), (4.12, places[i])], colour, 0.8)
        name = character.name
        write(chart, plot * 1.03 + 4, places[i], names[name], size=SMALL, colour=colour, name=name)
    said = "; ".join(f"{c.name} {', '.join(number(v, 1) for v in c.ocean)}" for c in result.characters[:14])
    label = f"Five traits of each character, openness to neuroticism, from 1 to 7: {said}"
    return inline_svg(chart, prefix=prefix, label=label)


def _step(reach: float) -> float:
    """1, 2 or 5 times a power of ten, about two of them to each side."""
    power = 10.0 ** math.floor(math.log10(reach / 2))
    return next(k * power for k in (5, 2, 1) if k * power <= reach / 2 or k == 1)


def f1_by_condition(splits: Mapping[str, Mapping[str, Condition]], chance: float, prefix: str) -> str:
    """F1 of each condition with the range of its repetitions; a dashed line where guessing would be.

    The characters are filled dots, controls are rings.
    """
    rows: list[tuple[str, Condition | None]] = []
    for split, conditions in splits.items():
        rows += [(split, None), *conditions.items()]
    left, step = room(text for text, condition in rows if condition) + 6, 22
    chart = canvas(left, 40, 6, 36, step * len(rows))
    chart.set_y(len(rows) - 0.5, -0.5)
    for x in (0, 0.25, 0.5, 0.75, 1):
        draw_value(chart, x, number(x))
    chart.vertical(chance, MUTED, 1, dash=DASHED)
    for y, (text, shown) in enumerate(rows):
        if shown is None:
            write(chart, -left + 2, y, text, size=SMALL, colour=MUTED, style="italic")
            continue
        write(chart, -8, y, text, anchor="end", size=SMALL + 0.5)
        control = shown.labels != "characters" or shown.features != "traits"
        low, high = min(shown.repetitions), max(shown.repetitions)
        colour = MUTED if control else ACCENT
        chart.line([(low, y), (high, y)], colour, 2)
        chart.mark(shown.f1, y, colour, 8, hollow=control)
        write(chart, WIDTH - left - 2, y, number(shown.f1), anchor="end", size=TEXT - 1)
    said = "; ".join(f"{text}, {c.split}: {number(c.f1)}" for text, c in rows if c is not None)
    label = f"F1 of each condition, guessing would give {number(chance)}: {said}"
    return inline_svg(chart, prefix=prefix, label=label)
