"""Figures of distinguishability: the characters' traits, and F1 of each condition beside its controls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from palaver.personality.results import Condition, Distinguishability
from palaver.reports.canvas import SMALL, TEXT, WIDTH, canvas, full_names, room, write
from palaver.reports.names import short_names
from palaver.reports.numbers import number
from palaver.reports.svg import ACCENT, INK, LINE, MUTED, inline_svg

TRAITS = ("Openness", "Conscientious.", "Extraversion", "Agreeableness", "Neuroticism")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe & Ito (2008), without yellow, which is too light for lines. After them come dashes."""
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))


def trait_lines(found: Distinguishability, prefix: str) -> str:
    """Parallel coordinates: a line for each character, above or below the mean of all on each of five axes.

    Traits differ more from each other than characters do, so each axis has the mean of all in its middle.
    """
    names = short_names((c.name for c in found.characters), 16)
    values = np.array([c.ocean for c in found.characters])  # (characters, 5)
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
            axes.annotate(
                text, (x, -reach), xytext=(0, -drop - 27 * (x % 2)), textcoords="offset pixels", ha="center",
                va="top", fontsize=SMALL, color=colour, annotation_clip=False,
            )  # fmt: skip
    places = _spread(values[:, -1].tolist(), 2 * reach * 14 / height, reach)
    plot = WIDTH - left - right
    for i, (character, line) in enumerate(zip(found.characters, values, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(
            range(5), line, color=colour, linestyle=DASHES[i // len(COLOURS) % len(DASHES)], linewidth=1.8,
            marker="o", markersize=3.5, clip_on=False,
        )  # fmt: skip
        axes.plot([4, 4.12], [line[-1], places[i]], color=colour, linewidth=0.8, clip_on=False)
        write(axes, plot * 1.03 + 4, places[i], names[character.name], size=SMALL, color=colour)
    said = "; ".join(f"{c.name} {', '.join(number(v, 1) for v in c.ocean)}" for c in found.characters[:14])
    label = f"Five traits of each character, openness to neuroticism, from 1 to 7: {said}"
    return inline_svg(figure, prefix=prefix, label=label, full_names=full_names(names))


def _step(reach: float) -> float:
    """1, 2 or 5 times a power of ten, about two of them to each side."""
    power = 10.0 ** math.floor(math.log10(reach / 2))
    return next(k * power for k in (5, 2, 1) if k * power <= reach / 2 or k == 1)


def _spread(values: Sequence[float], gap: float, high: float) -> list[float]:
    """Places for labels near `values`, in their order, `gap` apart from each other, none above `high`."""
    order = np.argsort(values, kind="stable")
    places = [values[i] for i in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    places[-1] = min(places[-1], high)
    for i in range(len(places) - 2, -1, -1):
        places[i] = min(places[i], places[i + 1] - gap)
    found = [0.0] * len(places)
    for place, i in zip(places, order, strict=True):
        found[i] = place
    return found


def f1_by_condition(found: Distinguishability, titles: dict[str, str], prefix: str) -> str:
    """F1 of each condition with the range of its repetitions; a dashed line where guessing would be.

    The characters are filled dots, controls are rings.
    """
    split: dict[str, list[Condition]] = {}
    for condition in found.conditions:
        split.setdefault(condition.split, []).append(condition)
    rows: list[tuple[str, Condition | None]] = []
    for kind, conditions in split.items():
        rows.append((heading(kind, found.group_noun), None))
        rows += [(titles[c.name], c) for c in conditions]
    left, step = room(text for text, condition in rows if condition) + 6, 22
    figure, axes = canvas(left, 40, 6, 36, step * len(rows))
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for x in (0, 0.25, 0.5, 0.75, 1):
        axes.axvline(x, color=LINE, linewidth=0.8, zorder=0)
        axes.annotate(
            number(x), (x, len(rows) - 0.5), xytext=(0, -6), textcoords="offset pixels", ha="center",
            va="top", fontsize=SMALL, color=MUTED, annotation_clip=False,
        )  # fmt: skip
    axes.axvline(found.chance, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
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
    said = "; ".join(f"{titles[c.name]}, {c.split}: {number(c.f1)}" for c in found.conditions)
    label = f"F1 of each condition, guessing would give {number(found.chance)}: {said}"
    return inline_svg(figure, prefix=prefix, label=label)


def heading(split: str, group_noun: str) -> str:
    """What a split is called wherever conditions are listed."""
    if split == "samples":
        return "samples of one pool on both sides (the paper’s protocol)"
    return f"split by {group_noun} (no utterance on both sides)"
