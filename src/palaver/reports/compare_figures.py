"""Figures of the comparator: raters by trust, honest probabilities, and Figure 2 of Liang et al. (2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.cleaning import Cleaning
from palaver.comparator.cmade.removal import RemovalCurves
from palaver.comparator.evaluation import Calibration
from palaver.drawing import DASHED, PALETTE
from palaver.reports.canvas import (
    ACCENT,
    LINE,
    MUTED,
    SMALL,
    WIDTH,
    canvas,
    frame,
    inline_svg,
    spread_labels,
    titles,
    write,
)
from palaver.reports.numbers import count, number, percent

VERDICTS = {
    "keep": ("#0072b2", "circle"),
    "suspicious": ("#e69f00", "triangle"),
    "drop": ("#d55e00", "cross"),
}
"""Colour (Okabe & Ito 2008) and mark of each verdict: neither alone carries the meaning."""


def rater_cloud(cleaning: Cleaning, prefix: str) -> str:
    """Every rater: how far they can be trusted against how much their ratings vary; size is their number."""
    chart = canvas(54, 14, 26, 44, 250)
    trust = np.array([rater.trust for rater in cleaning.raters])
    spread = np.array([rater.spread for rater in cleaning.raters])
    most = max((rater.n for rater in cleaning.raters), default=1)
    low, high = _range(trust)
    frame(chart, (low, high), (0.0, max(1e-9, float(spread.max(initial=1.0)) * 1.08)))
    if low <= 1 <= high:
        chart.vertical(1.0, MUTED, 1, dash=DASHED)
    for verdict, (colour, shape) in VERDICTS.items():
        for rater in cleaning.raters:
            if rater.verdict == verdict:
                size = math.sqrt(8 + 30 * math.sqrt(rater.n / most))
                chart.mark(rater.trust, rater.spread, colour, size, shape=shape, opacity=0.6)
    place = 0
    for verdict, (colour, _) in VERDICTS.items():
        text = f"{verdict} {count(cleaning.counts[verdict])} ratings"
        write(chart, place, chart.y.high, text, size=SMALL, colour=colour, rise=9)
        place += 8 + round(6.2 * len(text))
    titles(chart, "trust (1: as the common rater)", "spread of the rater’s ratings")
    raters = {v: sum(r.verdict == v for r in cleaning.raters) for v in VERDICTS}
    said = ", ".join(f"{verdict} {n}" for verdict, n in raters.items())
    return inline_svg(chart, prefix=prefix, label=f"Raters by trust and spread of their ratings: {said}")


def reliability_curve(calibrated: Calibration, prefix: str) -> str:
    """How often what was said with each probability came true; the diagonal is an honest comparator."""
    chart = canvas(54, 14, 12, 44, 250)
    frame(chart, (0.0, 1.0), (0.0, 1.0))
    chart.line([(0, 0), (1, 1)], MUTED, 1, dash=DASHED)
    bins = [b for b in calibrated.bins if b.n]
    largest = max((b.n for b in bins), default=1)
    for b in bins:
        half = 1.96 * math.sqrt(max(b.rate * (1 - b.rate), 0.25 / b.n) / b.n)
        ends = [max(0.0, b.rate - half), min(1.0, b.rate + half)]
        chart.line([(b.probability, end) for end in ends], LINE, 2)
    chart.line([(b.probability, b.rate) for b in bins], ACCENT, 1.5)
    for b in bins:
        chart.mark(b.probability, b.rate, ACCENT, 1.5 + math.sqrt(12 + 60 * b.n / largest))
    write(chart, 8, 0.93, f"ECE {number(calibrated.ece, 3)}, {count(calibrated.n)} pairs", size=SMALL)
    titles(chart, "probability that the first is better", "share in which it was")
    said = "; ".join(f"{percent(b.probability)} came true {percent(b.rate)}" for b in bins)
    label = f"Reliability curve, expected calibration error {number(calibrated.ece, 3)}: {said}"
    return inline_svg(chart, prefix=prefix, label=label)


def removal_plot(curves: RemovalCurves, prefix: str, ks: Sequence[int] = (1, 10, 50, 100)) -> str:
    """Accuracy of KNN regressors as dialogues of low Shapley value are removed; dashes: removed at random."""
    chart = canvas(54, 62, 12, 44, 250)
    shown = [k for k in ks if k in set(curves.ks.tolist())] or [int(curves.ks[-1])]
    columns = [int(np.flatnonzero(curves.ks == k)[0]) for k in shown]
    share = curves.removed / curves.n_train
    random = curves.at_random.mean(0) if len(curves.at_random) else None  # (S, K)
    drawn = [curves.by_value] if random is None else [curves.by_value, random]
    low, high = _range(np.concatenate([values[:, columns] for values in drawn]))
    frame(chart, (0.0, 1.0), (low, high))
    ends = spread_labels(curves.by_value[-1, columns].tolist(), (high - low) * 13 / 250, math.inf)
    for i, (k, column) in enumerate(zip(shown, columns, strict=True)):
        colour = PALETTE[i % len(PALETTE)]
        chart.line(zip(share, curves.by_value[:, column], strict=True), colour, 1.8)
        if random is not None:
            chart.line(zip(share, random[:, column], strict=True), colour, 1, dash=DASHED)
        write(chart, WIDTH - 54 - 62 + 5, ends[i], f"K = {k}", size=SMALL, colour=colour)
    titles(chart, "share of the training dialogues removed", "accuracy")
    best = [float(curves.by_value[:, c].max()) for c in columns]
    said = "; ".join(f"K {k} at best {number(b, 3)}" for k, b in zip(shown, best, strict=True))
    label = f"Accuracy on {count(curves.n_pairs)} pairs as low Shapley values are removed: {said}"
    return inline_svg(chart, prefix=prefix, label=label)


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 0.5
    return low - room, high + room
