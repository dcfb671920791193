"""Figures of distinguishability: the characters' traits, and F1 of each condition beside its controls."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from palaver.personality.results import Condition, Distinguishability
from palaver.reports.canvas import (
    DASHED,
    PALETTE,
    SMALL,
    TEXT,
    WIDTH,
    canvas,
    draw_value,
    room,
    spread_labels,
    write,
    write_below,
)
from palaver.reports.names import short_names
from palaver.reports.numbers import number
from palaver.reports.svg import ACCENT, INK, LINE, MUTED, inline_svg

TRAITS = ("Openness", "Conscientious.", "Extraversion", "Agreeableness", "Neuroticism")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))
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
    figure, axes = canvas(left, right, 10, 60, height)
    axes.set_xlim(0, 4)
    axes.set_ylim(-reach, reach)
    step = _step(reach)
    for k in range(-round(reach / step), round(reach / step) + 1):
        if abs(k * step) <= reach:
            axes.axhline(k * step, color=LINE, linewidth=0.7 if k else 1.4, zorder=0)
            mark = f"{'+' if k > 0 else ''}{number(k * step, 1 if step >= 0.1 else 2)}" if k else "0"
            write(axes, -8, k * step, mark, ha="right", size=SMALL, color=MUTED)
    for x, trait in enumerate(TRAITS):
        axes.axvline(x, color=LINE, linewidth=1.2, zorder=0)
        for drop, text, colour in ((8, trait, INK), (21, f"mean {number(mean[x])}", MUTED)):
            write_below(axes, x, -reach, text, drop=drop + 27 * (x % 2), color=colour)
    places = spread_labels(values[:, -1].tolist(), 2 * reach * 14 / height, reach)
    plot = WIDTH - left - right
    for i, (character, line) in enumerate(zip(result.characters, values, strict=True)):
        colour = PALETTE[i % len(PALETTE)]
        axes.plot(
            range(5), line, color=colour, linestyle=DASHES[i // len(PALETTE) % len(DASHES)], linewidth=1.8,
            marker="o", markersize=3.5, clip_on=False,
        )  # fmt: skip
        axes.plot([4, 4.12], [line[-1], places[i]], color=colour, linewidth=0.8, clip_on=False)
        write(axes, plot * 1.03 + 4, places[i], names[character.name], size=SMALL, color=colour)
    said = "; ".join(f"{c.name} {', '.join(number(v, 1) for v in c.ocean)}" for c in result.characters[:14])
    label = f"Five traits of each character, openness to neuroticism, from 1 to 7: {said}"
    return inline_svg(figure, prefix=prefix, label=label, shorts=names)


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
    figure, axes = canvas(left, 40, 6, 36, step * len(rows))
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for x in (0, 0.25, 0.5, 0.75, 1):
        draw_value(axes, x, number(x))
    axes.axvline(chance, color=MUTED, linewidth=1, linestyle=DASHED, zorder=1)
    for y, (text, shown) in enumerate(rows):
        if shown is None:
            write(axes, -left + 2, y, text, size=SMALL, color=MUTED, style="italic")
            continue
        write(axes, -8, y, text, ha="right", size=SMALL + 0.5)
        control = shown.labels != "characters" or shown.features != "traits"
        low, high = min(shown.repetitions), max(shown.repetitions)
        axes.plot([low, high], [y, y], color=MUTED if control else ACCENT, linewidth=2, zorder=2)
        axes.plot(
            [shown.f1], [y], "o", color=MUTED if control else ACCENT, markersize=7,
            fillstyle="none" if control else "full", zorder=3, clip_on=False,
        )  # fmt: skip
        write(axes, WIDTH - left - 2, y, number(shown.f1), ha="right", size=TEXT - 1)
    said = "; ".join(f"{text}, {c.split}: {number(c.f1)}" for text, c in rows if c is not None)
    label = f"F1 of each condition, guessing would give {number(chance)}: {said}"
    return inline_svg(figure, prefix=prefix, label=label)
