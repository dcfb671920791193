"""Simulated raters with known truth: for the demo, for tests, and for planning a study.

A judgement starts from the output's quality (system + item + how this system does on this item, in units of
the raters' common yardstick), is perceived with noise, and is reported through the rater's habits: a bias,
a spread (how much of the scale is used), a J-shaped Likert habit (nearly everything gets the top, a few the
bottom, as in user ratings: Liang et al. 2020, section 3), or carelessness (the answer ignores the output).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.schema import (
    Checkboxes,
    Item,
    Magnitude,
    Output,
    Pairwise,
    Question,
    RankMagnitude,
    Scale,
    Study,
)
from palaver.schema.rating import value_text

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How the simulated raters differ. Standard deviations are in units of the latent quality."""

    bias: float = 0.5
    """How far raters differ in leniency."""
    spread: float = 0.25
    """How far raters differ in how much of the scale they use (standard deviation of its logarithm)."""
    noise: float = 0.7
    """How far one rater differs from one judgement to the next."""
    careless: float = 0.05
    """Share of raters who answer without reading."""
    j_shaped: float = 0.1
    """Share of raters who put nearly everything at the top of a Likert scale."""
    item: float = 0.4
    """How far items differ in difficulty, for all systems alike."""
    item_system: float = 0.5
    """How far a system's quality varies from item to item."""

    def __post_init__(self) -> None:
        for name in ("bias", "spread", "noise", "item", "item_system"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(
                    f"{name} is a standard deviation: expected 0 or more, found {getattr(self, name)}"
                )
        if not (self.careless >= 0 and self.j_shaped >= 0 and self.careless + self.j_shaped <= 1):
            raise ValueError(
                "careless and j_shaped are shares of the raters: each from 0, together at most 1; "
                f"found {self.careless} and {self.j_shaped}"
            )


@dataclass(frozen=True, slots=True)
class _Raters:
    bias: Floats
    spread: Floats
    careless: NDArray[np.bool_]
    j_shaped: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Ratings in the long format, and what is true behind them."""

    study: Study
    frame: pl.DataFrame
    truth: Mapping[str, Mapping[str, float]]
    """Criterion -> system -> quality."""
    careless: tuple[str, ...]
    """The raters who answered without reading."""


def example_study(preset: Study, n_systems: int, n_items: int, *, raters_per_item: int = 3) -> Study:
    """The questions of `preset` about `n_items` made-up items with an output of every system.

    In a pairwise study every item shows two systems; all pairs take their turn.
    """
    paired = any(isinstance(q.scale, Pairwise) for q in preset.questions)
    fewest = 2 if paired or any(isinstance(q.scale, RankMagnitude) for q in preset.questions) else 1
    if n_systems < fewest or n_items < 1 or raters_per_item < 1:
        raise ValueError(
            f"expected at least {fewest} systems, 1 item and 1 rater per item, "
            f"found {n_systems}, {n_items} and {raters_per_item}"
        )
    names = [f"system-{chr(ord('A') + i)}" if i < 26 else f"system-{i + 1}" for i in range(n_systems)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    items = tuple(
        Item(
            id=f"item-{i + 1:03d}",
            context=f"Simulated item {i + 1}",
            outputs=tuple(
                Output(system=s, text=f"What {s} says about item {i + 1}")
                for s in (pairs[i % len(pairs)] if paired else names)
            ),
        )
        for i in range(n_items)
    )
    return preset.model_copy(
        update={"name": f"simulated-{preset.name}", "items": items, "raters_per_item": raters_per_item}
    )


def simulate(
    study: Study,
    *,
    n_raters: int = 20,
    truth: Mapping[str, float] | None = None,
    gap: float = 0.4,
    habits: Habits | None = None,
    seed: int = 0,
) -> Simulated:
    """Let `n_raters` simulated raters answer `study`.

    `truth` gives each system's quality; without it the systems stand `gap` apart, the first one best. The
    criteria share the order of the systems but not the same distances, as real ones do.
    """
    habits = habits or Habits()
    per_item = study.raters_per_item
    if n_raters < per_item:
        raise ValueError(f"{per_item} raters per item cannot be drawn from {n_raters} raters")
    if seed < 0:
        raise ValueError(f"seed: expected 0 or more, found {seed}")
    rng = np.random.default_rng(seed)
    systems = list(study.systems)
    base = _truth(systems, gap) if truth is None else truth
    if set(systems) != set(base):
        raise ValueError(
            f"truth: expected a number for each of {', '.join(systems)}; found {', '.join(base) or 'none'}"
        )
    if not all(math.isfinite(quality) for quality in base.values()):
        raise ValueError(f"truth: expected finite numbers, found {dict(base)}")
    raters = _draw_raters(n_raters, habits, rng)
    names = [f"rater-{r + 1:02d}" for r in range(n_raters)]
    middle = float(np.mean(list(base.values())))
    item_effect = rng.normal(0, habits.item, len(study.items))
    parts: list[pl.DataFrame] = []
    known: dict[str, dict[str, float]] = {}
    screens: dict[str, tuple[Ints, Ints, Ints, Ints]] = {}
    for q, question in enumerate(study.questions):
        stretch = (1.0, 0.5, 0.75)[q % 3]
        known[question.criterion] = {s: (base[s] - middle) * stretch for s in systems}
        host = (
            study.questions[0].criterion if study.layout == "joint" else question.beside or question.criterion
        )
        if host not in screens:  # criteria of one screen have its raters and its order of outputs
            crews = np.stack([rng.permutation(n_raters)[:per_item] for _ in study.items])
            screens[host] = _screens(study, crews, rng)
        answers = _answers(
            study, question, known[question.criterion], item_effect, screens[host], raters, names, habits, rng
        )
        parts.append(answers)
    frame = pl.concat(parts)
    careless = tuple(names[r] for r in np.flatnonzero(raters.careless))
    return Simulated(study=study, frame=frame, truth=known, careless=careless)


def _truth(systems: list[str], gap: float) -> dict[str, float]:
    return {s: gap * (len(systems) - 1 - i) for i, s in enumerate(systems)}


def _draw_raters(n: int, habits: Habits, rng: np.random.Generator) -> _Raters:
    """Exact shares, so that a small study has its careless rater whatever the seed."""
    order = rng.permutation(n)
    n_careless, n_j = round(habits.careless * n), round(habits.j_shaped * n)
    careless, j_shaped = np.zeros(n, bool), np.zeros(n, bool)
    careless[order[:n_careless]] = True
    j_shaped[order[n_careless : n_careless + n_j]] = True
    return _Raters(rng.normal(0, habits.bias, n), np.exp(rng.normal(0, habits.spread, n)), careless, j_shaped)


def _answers(
    study: Study,
    question: Question,
    truth: Mapping[str, float],
    item_effect: Floats,
    screens: tuple[Ints, Ints, Ints, Ints],
    raters: _Raters,
    names: list[str],
    habits: Habits,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Every answer to one question, in the order the raters meet the items."""
    item, output, rater, position = screens
    outputs = [[o.system for o in i.outputs] for i in study.items]
    quality = np.array([truth[s] for row in outputs for s in row])
    start = np.cumsum([0, *(len(row) for row in outputs)])
    quality += np.repeat(item_effect, np.diff(start)) + rng.normal(0, habits.item_system, quality.size)
    where = start[item] + output
    scale = question.scale
    against: list[str | None] = [None] * item.size
    if isinstance(scale, Pairwise):
        first = output == 0
        item, output, rater, position, where = (x[first] for x in (item, output, rater, position, where))
        felt = quality[where] - quality[where + 1] + rng.normal(0, habits.noise * np.sqrt(2), where.size)
        value: NDArray[np.object_] | Floats = _compare(felt, scale, raters.careless[rater], rng)
        against = [outputs[i][1] for i in item]
    else:
        felt = quality[where] + rng.normal(0, _noise(scale, habits), where.size)
        reported = raters.bias[rater] + raters.spread[rater] * felt
        if isinstance(scale, Checkboxes):
            fault = rng.integers(0, len(scale.options), quality.size)[where]
            value = _tick(reported, fault, scale, raters.careless[rater], rng)
        else:
            value = report(reported, scale, raters.careless[rater], raters.j_shaped[rater], rng)
    careless = raters.careless[rater]
    seconds = np.exp(rng.normal(np.where(careless, 0.9, 2.6), 0.4)).round(1)
    begin = datetime(2024, 1, 8, 9) + timedelta(
        days=[q.criterion for q in study.questions].index(question.criterion)
    )
    clock = _clock(rater, seconds)
    return pl.DataFrame(
        {
            "study": [study.name] * item.size,
            "item": [study.items[i].id for i in item],
            "system": [outputs[i][o] for i, o in zip(item, output, strict=True)],
            "against": pl.Series(against[: item.size], dtype=pl.String),
            "rater": [names[r] for r in rater],
            "criterion": [question.criterion] * item.size,
            "value": pl.Series([value_text(v) for v in value.tolist()], dtype=pl.String),
            "given_at": pl.Series(
                [begin + timedelta(seconds=float(s)) for s in clock], dtype=pl.Datetime("ms")
            ),
            "seconds": seconds,
            "shown_position": pl.Series(position, dtype=pl.Int32),
        }
    )


def _clock(rater: Ints, seconds: Floats) -> Floats:
    """Seconds since the rater began, at the end of each answer."""
    order = np.argsort(rater, kind="stable")
    running = np.cumsum(seconds[order])
    new = np.r_[True, np.diff(rater[order]) != 0]
    before = np.repeat((running - seconds[order])[new], np.diff(np.r_[np.flatnonzero(new), rater.size]))
    clock = np.empty(rater.size)
    clock[order] = running - before
    return clock


def _screens(study: Study, crews: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    """Item, output, rater and shown position of every judgement."""
    orders = {n: _orders(study.order, n, rng) for n in {len(item.outputs) for item in study.items}}
    rows = [
        (i, o, r, p)
        for i, item in enumerate(study.items)
        for r in crews[i]
        for p, o in enumerate(next(orders[len(item.outputs)]))
    ]
    item, output, rater, position = np.array(rows, dtype=np.int64).T
    return item, output, rater, position


def _orders(how: str, n: int, rng: np.random.Generator) -> Iterator[Ints]:
    """In which order the `n` outputs of a screen are shown, screen after screen."""
    while True:
        order = np.arange(n) if how == "fixed" else rng.permutation(n)
        if how == "counterbalanced":  # a Latin square: in n screens every output stands once in every place
            yield from (np.roll(order, turn) for turn in range(n))
        else:
            yield order


def _noise(scale: Scale, habits: Habits) -> float:
    """Judging all outputs on one screen steadies the yardstick, which is RankME's point."""
    return habits.noise * (0.7 if isinstance(scale, RankMagnitude) else 1.0)


def report(
    felt: Floats,
    scale: Scale,
    careless: NDArray[np.bool_],
    j_shaped: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Floats:
    """What raters write down when an output feels `felt` standard steps above the middle."""
    n = felt.size
    if isinstance(scale, Checkboxes | Pairwise):
        raise ValueError(f"a {scale.kind} scale does not report one number")
    if isinstance(scale, Magnitude):
        guess = np.where(careless, rng.normal(0, 0.3, n), 0.3 * felt)
        value = scale.reference * np.exp(np.clip(guess, -300, 300))
        if scale.whole_numbers:
            step = np.where(value >= 20, 5, 1)  # people write round numbers
            value = np.round(value / step) * step
        return np.asarray(np.clip(value, max(scale.minimum, 1e-6), scale.maximum))
    low, high = scale.minimum, scale.maximum
    middle, half = (low + high) / 2, (high - low) / 2
    honest = middle + half * felt / 1.8
    top_heavy = np.where(felt > -0.6, high, np.where(felt < -1.6, low, middle + half * 0.5))
    value = np.where(j_shaped & (high - low > 1), top_heavy, honest)
    value = np.where(careless, rng.integers(int(low), int(high) + 1, n), value)
    return np.clip(np.round(value), low, high)


def _tick(
    felt: Floats, fault: Ints, scale: Checkboxes, careless: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.object_]:
    """A bad output has one fault, which those who notice it agree on; what is fine gets the exclusive box."""
    reports = [o for o in scale.options if o not in scale.exclusive] or list(scale.options)
    fine = scale.exclusive[0] if scale.exclusive else scale.options[-1]
    noticed = np.where(careless, rng.random(felt.size) < 0.5, felt < -0.7)
    named = np.where(careless, rng.integers(0, len(reports), felt.size), fault % len(reports))
    return np.where(noticed, np.array(reports, dtype=object)[named], fine)


def _compare(
    felt: Floats, scale: Pairwise, careless: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.object_]:
    felt = np.where(careless, rng.normal(0, 1, felt.size), felt)
    margin = 0.3 if scale.ties else 0.0
    if not scale.ties:  # who feels no difference at all has to toss a coin
        felt = np.where(felt == 0, rng.normal(0, 1, felt.size), felt)
    return np.where(felt > margin, "win", np.where(felt < -margin, "loss", "tie")).astype(object)


def power_draw(
    scale: Scale, *, difference: float, habits: Habits | None = None, n_pool: int = 1000
) -> Callable[[int, int, np.random.Generator], Floats]:
    """A simulator for `palaver.statistics.power`: mean scores of two systems that lie `difference` apart."""
    habits = habits or Habits()
    if not scale.numeric:
        raise ValueError(f"power is simulated for scales of numbers, not for {scale.kind}")
    if not math.isfinite(difference):
        raise ValueError(f"difference: expected a finite number, found {difference}")

    def draw(n_items: int, n_raters: int, rng: np.random.Generator) -> Floats:
        crowd = _draw_raters(n_pool, habits, rng)
        rater = rng.integers(0, n_pool, (n_items, n_raters))[:, None, :]  # the same raters see both outputs
        quality = rng.normal(0, habits.item, (n_items, 1, 1)) + rng.normal(
            0, habits.item_system, (n_items, 2, 1)
        )
        quality = quality + np.array([0.0, difference])[None, :, None]
        felt = quality + rng.normal(0, _noise(scale, habits), (n_items, 2, n_raters))
        who = np.broadcast_to(rater, felt.shape)
        said = crowd.bias[who] + crowd.spread[who] * felt
        value = report(
            said.ravel(), scale, crowd.careless[who].ravel(), crowd.j_shaped[who].ravel(), rng
        ).astype(np.float64)
        if isinstance(scale, Magnitude):
            value = np.log(value / scale.reference)
        return np.asarray(value.reshape(felt.shape).mean(axis=2))

    return draw
