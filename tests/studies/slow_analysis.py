"""The analysis once more, in plain loops over rows and from the textbook: what the fast one must agree with.

A row is a dict of item, system, rater, criterion and value (a number). Nothing here imports palaver.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Any

Row = dict[str, Any]


def of(rows: Sequence[Row], criterion: str) -> list[Row]:
    return [row for row in rows if row["criterion"] == criterion]


def output_means(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Mean of each output (item, system)."""
    given = defaultdict(list)
    for row in rows:
        given[row["item"], row["system"]].append(row["value"])
    return {output: fmean(values) for output, values in given.items()}


def system_means(rows: Sequence[Row]) -> dict[str, float]:
    """Mean of a system's item means: every item counts once."""
    by_system = defaultdict(list)
    for (_, system), mean in output_means(rows).items():
        by_system[system].append(mean)
    return {system: fmean(means) for system, means in by_system.items()}


def icc_1k(rows: Sequence[Row]) -> float:
    """(MSB - MSW) / MSB of a one-way analysis of variance over outputs (Shrout & Fleiss 1979)."""
    given = defaultdict(list)
    for row in rows:
        given[row["item"], row["system"]].append(row["value"])
    n, total = len(given), sum(map(len, given.values()))
    if n < 2 or total == n:
        return math.nan
    grand = fmean(row["value"] for row in rows)
    between = sum(len(v) * (fmean(v) - grand) ** 2 for v in given.values()) / (n - 1)
    within = sum((x - fmean(v)) ** 2 for v in given.values() for x in v) / (total - n)
    return (between - within) / between if between > 1e-12 else math.nan


def pearson(x: Sequence[float], y: Sequence[float]) -> float:
    mx, my = fmean(x), fmean(y)
    size = math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))
    return sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / size if size > 1e-12 else math.nan


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < v for other in values) + (sum(other == v for other in values) + 1) / 2 for v in values
    ]


def criteria_correlation(
    rows: Sequence[Row], a: str, b: str, keys: tuple[str, ...], *, spearman: bool
) -> tuple[float, int]:
    """Correlation of two criteria over the means of each combination of `keys`, and how many there are."""

    def means(criterion: str) -> dict[tuple[str, ...], float]:
        given = defaultdict(list)
        for row in of(rows, criterion):
            given[tuple(row[k] for k in keys)].append(row["value"])
        return {key: fmean(v) for key, v in given.items()}

    left, right = means(a), means(b)
    shared = [key for key in left if key in right]
    x, y = [left[k] for k in shared], [right[k] for k in shared]
    if len(shared) < 2:
        return math.nan, len(shared)
    return pearson(ranks(x), ranks(y)) if spearman else pearson(x, y), len(shared)


def comparisons(rows: Sequence[Row]) -> tuple[Counter[tuple[str, str]], Counter[frozenset[str]]]:
    """Wins (winner, loser) and ties of every two systems one rater judged on one item."""
    wins: Counter[tuple[str, str]] = Counter()
    ties: Counter[frozenset[str]] = Counter()
    for a, b in combinations(rows, 2):
        if (a["item"], a["rater"]) == (b["item"], b["rater"]):
            if a["value"] == b["value"]:
                ties[frozenset((a["system"], b["system"]))] += 1
            else:
                better, worse = (a, b) if a["value"] > b["value"] else (b, a)
                wins[better["system"], worse["system"]] += 1
    return wins, ties


def raters(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Each rater's habits, criteria pooled after standardising each with all its ratings."""
    standard: list[tuple[Row, float, float]] = []
    for criterion in {row["criterion"] for row in rows}:
        mine = of(rows, criterion)
        mean = fmean(row["value"] for row in mine)
        sd = math.sqrt(fmean((row["value"] - mean) ** 2 for row in mine))
        for row in mine:
            others = [
                (other["value"] - mean) / sd
                for other in mine
                if sd > 0
                and other is not row
                and (other["item"], other["system"]) == (row["item"], row["system"])
            ]
            z = (row["value"] - mean) / sd if sd > 0 else math.nan
            standard.append((row, z, fmean(others) if others else math.nan))
    found = {}
    for rater in {row["rater"] for row in rows}:
        own = [(row, z, rest) for row, z, rest in standard if row["rater"] == rater]
        shared = [(z, rest) for _, z, rest in own if not math.isnan(z) and not math.isnan(rest)]
        modal = squares = known = 0.0
        for criterion in {row["criterion"] for row, _, _ in own}:
            scores = [z for row, z, _ in own if row["criterion"] == criterion]
            modal += max(Counter(row["value"] for row, _, _ in own if row["criterion"] == criterion).values())
            if not any(map(math.isnan, scores)):
                squares += sum((z - fmean(scores)) ** 2 for z in scores)
                known += len(scores)
        seconds = [row["seconds"] for row, _, _ in own if row.get("seconds") is not None]
        found[rater] = {
            "n_ratings": len(own),
            "n_items": len({row["item"] for row, _, _ in own}),
            "n_shared": len(shared),
            "straight_lining": modal / len(own),
            "spread": math.sqrt(squares / known) if known > 1 else math.nan,
            "agreement": pearson(*zip(*shared, strict=True)) if len(shared) >= 5 else math.nan,
            "median_seconds": median(seconds) if seconds else math.nan,
        }
    return found


def counts(rows: Sequence[Row], key: str) -> dict[str, Counter[float]]:
    """How often each value was given, by system or by rater."""
    found: dict[str, Counter[float]] = defaultdict(Counter)
    for row in rows:
        found[row[key]][row["value"]] += 1
    return found
