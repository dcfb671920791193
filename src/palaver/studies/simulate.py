"""Simulated raters with known truth: for the demo, for tests, and for planning a study.

A judgement starts from the output's quality (system + item + how this system does on this item, in units of
the raters' common yardstick), is perceived with noise, and is reported through the rater's habits: a bias,
a spread (how much of the scale is used), a J-shaped Likert habit (nearly everything gets the top, a few the
bottom, as in user ratings: Liang et al. 2020, section 3), or carelessness (the answer ignores the output).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.errors import count_of
from palaver.readers.rating_files import with_numbers
from palaver.schema import Item, Output, Question, Scale, Study
from palaver.schema.rating import pair_context, value_text
from palaver.schema.scale import Impressions
from palaver.studies.conditions import without_unasked
from palaver.studies.design import load_study
from palaver.studies.screens import plan_screens, question_groups, shown_order
from palaver.studies.turns import judged_turns
from palaver.tabular import Tabular

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
class _Crowd:
    """The raters and their habits: an entry for each rater."""

    names: list[str]
    bias: Floats
    spread: Floats
    careless: NDArray[np.bool_]
    j_shaped: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Judgements:
    """Which output of which item each judgement is about, who gives it, and where the output stands."""

    item: Ints
    output: Ints
    rater: Ints
    position: Ints
    turn: Ints | None = None
    """The turn judged, where it is not the whole output."""

    def by_turn(self, study: Study, question: Question) -> _Judgements:
        """One judgement for each turn that the question asks about."""
        turns = [
            judged_turns(question, study.items[i].outputs[o])
            for i, o in zip(self.item, self.output, strict=True)
        ]
        times = [len(numbers) for numbers in turns]
        return _Judgements(
            np.repeat(self.item, times),
            np.repeat(self.output, times),
            np.repeat(self.rater, times),
            np.repeat(self.position, times),
            np.array([number for numbers in turns for number in numbers], dtype=np.int64),
        )

    def first_outputs(self) -> _Judgements:
        """Those about the first output of an item: a comparison has one value."""
        first = self.output == 0
        return _Judgements(self.item[first], self.output[first], self.rater[first], self.position[first])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Simulation(Tabular):
    """Ratings in the long format, and what is true behind them. Tables: ratings, truth."""

    study: Study
    frame: pl.DataFrame
    truth: Mapping[str, Mapping[str, float]]
    """Criterion -> system -> quality."""
    careless: tuple[str, ...]
    """The raters who answered without reading."""

    def _headline(self) -> str:
        n_raters = self.frame["rater"].n_unique()
        return f"{self.frame.height:,} ratings of {self.study.name!r} by {n_raters:,} simulated raters"

    def _tables(self) -> dict[str, Any]:
        rows = [(c, s, quality) for c, systems in self.truth.items() for s, quality in systems.items()]
        return {
            "ratings": with_numbers(self.frame),
            "truth": {
                "criterion": [criterion for criterion, _, _ in rows],
                "system": [system for _, system, _ in rows],
                "quality": [quality for _, _, quality in rows],
            },
        }


def example_study(preset: Study, n_systems: int, n_items: int, *, raters_per_item: int = 3) -> Study:
    """The questions of `preset` about `n_items` made-up items with an output of every system.

    In a pairwise study every item shows two systems; all pairs take their turn.
    """
    paired = any(q.scale.form == "pair" for q in preset.questions)
    fewest = max(q.scale.fewest_outputs if q.scale.side_by_side else 1 for q in preset.questions)
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
    study: Study | str | Path,
    *,
    n_raters: int = 20,
    truth: Mapping[str, float] | None = None,
    gap: float = 0.4,
    habits: Habits | None = None,
    seed: int = 0,
) -> Simulation:
    """Let `n_raters` simulated raters answer `study`, a `Study` or the file of one.

    `truth` gives each system's quality; without it the systems stand `gap` apart, the first one best. The
    criteria share the order of the systems but not the same distances, as real ones do.
    """
    habits = habits or Habits()
    if not isinstance(study, Study):
        study = load_study(study)
    per_item = study.raters_per_item
    if n_raters < per_item:
        raise ValueError(f"{per_item} raters per item cannot be drawn from {count_of(n_raters, 'rater')}")
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
    crowd = _draw_crowd(n_raters, habits, rng)
    middle = float(np.mean(list(base.values())))
    item_effect = rng.normal(0, habits.item, len(study.items))
    parts: list[pl.DataFrame] = []
    known: dict[str, dict[str, float]] = {}
    judgements: dict[int, _Judgements] = {}
    groups = {q.criterion: n for n, group in enumerate(question_groups(study)) for q in group}
    for q, question in enumerate(study.questions):
        stretch = (1.0, 0.5, 0.75)[q % 3]
        known[question.criterion] = {s: (base[s] - middle) * stretch for s in systems}
        group = groups[question.criterion]
        if group not in judgements:  # criteria of one screen have its raters and its order of outputs
            judgements[group] = _hand_out(study, group, crowd.names, rng)
        answers = _answers(
            study, question, known[question.criterion], item_effect, judgements[group], crowd, habits, rng
        )
        parts.append(answers)
    frame = without_unasked(pl.concat(parts), study)
    careless = tuple(crowd.names[r] for r in np.flatnonzero(crowd.careless))
    return Simulation(study=study, frame=frame, truth=known, careless=careless)


def _truth(systems: list[str], gap: float) -> dict[str, float]:
    return {s: gap * (len(systems) - 1 - i) for i, s in enumerate(systems)}


def _draw_crowd(n: int, habits: Habits, rng: np.random.Generator) -> _Crowd:
    """Exact shares, so that a small study has its careless rater whatever the seed."""
    order = rng.permutation(n)
    n_careless, n_j = round(habits.careless * n), round(habits.j_shaped * n)
    careless, j_shaped = np.zeros(n, bool), np.zeros(n, bool)
    careless[order[:n_careless]] = True
    j_shaped[order[n_careless : n_careless + n_j]] = True
    bias, spread = rng.normal(0, habits.bias, n), np.exp(rng.normal(0, habits.spread, n))
    return _Crowd([f"rater-{r + 1:02d}" for r in range(n)], bias, spread, careless, j_shaped)


def _hand_out(study: Study, group: int, names: list[str], rng: np.random.Generator) -> _Judgements:
    """Every judgement of a group of questions: the screens and the orders that the server hands out."""
    place = {item.id: i for i, item in enumerate(study.items)}
    rows = []
    for screen in (s for s in plan_screens(study) if s.group == group):
        item = place[screen.item]
        n_outputs = len(study.items[item].outputs)
        crew = rng.permutation(len(names))[: study.raters_per_item]
        for turn, rater in enumerate(crew):
            order = shown_order(study, screen, n_outputs, turn, names[rater])
            rows += [(item, output, rater, position) for position, output in enumerate(order)]
    return _Judgements(*np.array(rows, dtype=np.int64).T)


def _answers(
    study: Study,
    question: Question,
    truth: Mapping[str, float],
    item_effect: Floats,
    judgements: _Judgements,
    crowd: _Crowd,
    habits: Habits,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Every answer to one question, in the order the raters meet the items."""
    outputs = [[o.system for o in i.outputs] for i in study.items]
    start = np.cumsum([0, *(len(row) for row in outputs)])
    quality = np.array([truth[s] for row in outputs for s in row])
    quality += np.repeat(item_effect, np.diff(start)) + rng.normal(0, habits.item_system, quality.size)
    scale = question.scale
    if scale.form == "pair":
        judgements = judgements.first_outputs()
    if question.per == "turn":
        judgements = judgements.by_turn(study, question)
    item, rater = judgements.item, judgements.rater
    careless = crowd.careless[rater]
    where = start[item] + judgements.output
    if judgements.turn is not None:  # a system is not equally good in all its turns
        n_turns = int(judgements.turn.max(initial=0)) + 1
        where = where * n_turns + judgements.turn
        quality = np.repeat(quality, n_turns) + rng.normal(0, habits.item_system, quality.size * n_turns)
    if scale.form == "pair":
        felt = quality[where] - quality[where + 1] + rng.normal(0, habits.noise * np.sqrt(2), where.size)
        against = [outputs[i][1] for i in item]
    else:
        noticed = quality[where] + rng.normal(0, habits.noise * scale.noise, where.size)
        felt = crowd.bias[rater] + crowd.spread[rater] * noticed
        against = [None] * item.size
    screen = item * len(crowd.names) + rater
    value = scale.simulate(Impressions(felt, where, careless, crowd.j_shaped[rater], screen), rng)
    seconds = np.exp(rng.normal(np.where(careless, 0.9, 2.6), 0.4)).round(1)
    begin = datetime(2024, 1, 8, 9) + timedelta(days=study.questions.index(question))
    given_at = [begin + timedelta(seconds=float(s)) for s in _clock(rater, seconds)]
    items = [study.items[i].id for i in item]
    systems = [outputs[i][o] for i, o in zip(item, judgements.output, strict=True)]
    contexts = items if judgements.turn is not None else map(pair_context, items, systems, against)
    turn = {}
    if any(q.per == "turn" for q in study.questions):
        numbers = [None] * item.size if judgements.turn is None else judgements.turn
        turn = {"turn": pl.Series(numbers, dtype=pl.Int32)}
    return pl.DataFrame(
        {
            "study": [study.name] * item.size,
            "item": items,
            "system": systems,
            "against": pl.Series(against, dtype=pl.String),
            "rater": [crowd.names[r] for r in rater],
            "criterion": [question.criterion] * item.size,
            "value": pl.Series([value_text(v) for v in value.tolist()], dtype=pl.String),
            "given_at": pl.Series(given_at, dtype=pl.Datetime("ms")),
            "seconds": seconds,
            "shown_position": pl.Series(judgements.position, dtype=pl.Int32),
            "context": pl.Series(contexts, dtype=pl.String),
            **turn,
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


def power_draw(
    scale: Scale, *, difference: float, habits: Habits | None = None, n_pool: int = 1000
) -> Callable[[int, int, np.random.Generator], Floats]:
    """A simulator for `palaver.statistics.power`: mean scores of two systems that lie `difference` apart."""
    habits = habits or Habits()
    if scale.form != "number" or scale.relative:
        raise ValueError(f"power is simulated for scales of numbers, not for {scale.kind}")
    if not math.isfinite(difference):
        raise ValueError(f"difference: expected a finite number, found {difference}")

    def draw(n_items: int, n_raters: int, rng: np.random.Generator) -> Floats:
        crowd = _draw_crowd(n_pool, habits, rng)
        rater = rng.integers(0, n_pool, (n_items, n_raters))[:, None, :]  # the same raters see both outputs
        quality = rng.normal(0, habits.item, (n_items, 1, 1)) + rng.normal(
            0, habits.item_system, (n_items, 2, 1)
        )
        quality = quality + np.array([0.0, difference])[None, :, None]
        noticed = quality + rng.normal(0, habits.noise * scale.noise, (n_items, 2, n_raters))
        who = np.broadcast_to(rater, noticed.shape).ravel()
        felt = crowd.bias[who] + crowd.spread[who] * noticed.ravel()
        output = np.broadcast_to(np.arange(2 * n_items).reshape(n_items, 2, 1), noticed.shape).ravel()
        value = scale.simulate(Impressions(felt, output, crowd.careless[who], crowd.j_shaped[who]), rng)
        return np.asarray(scale.scores(value).reshape(noticed.shape).mean(axis=2))

    return draw


def difference_of_points(scale: Scale, points: float, habits: Habits | None = None) -> float:
    """The difference in rater units that puts the mean ratings of two systems `points` apart.

    Raters who use little of the scale, or only its ends, and the ends themselves draw means together, so it
    is found by simulating many judgements.
    """
    if scale.level == "ratio":
        raise ValueError(f"{scale.kind} measures ratios, not points: give the difference in rater units")

    def mean_difference(units: float) -> float:
        scores = power_draw(scale, difference=units, habits=habits)(20_000, 1, np.random.default_rng(0))
        return float(scores[:, 1].mean() - scores[:, 0].mean())

    low, high = 0.0, 20.0
    most = mean_difference(high)
    if not points < most:
        raise ValueError(
            f"no system lies {points:g} points above one in the middle of the scale ({scale.describe()}): "
            f"at most {most:.2g}"
        )
    for _ in range(12):
        middle = (low + high) / 2
        if mean_difference(middle) < points:
            low = middle
        else:
            high = middle
    return (low + high) / 2
