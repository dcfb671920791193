"""The measures of a meta-evaluation: of all outputs, within items and of systems, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from palaver.judges.meta_scores import Floats, Ints, PeopleScores
from palaver.statistics.bootstrap import percentile_interval
from palaver.statistics.jackknife import (
    N_GROUPS,
    Deletions,
    Scale,
    deletion_groups,
    jackknife_interval,
)
from palaver.statistics.pairs import (
    calibrate_ties,
    draw_signs,
    rank_correlations,
    soft_pairwise_accuracy,
    system_confidences,
)

OUTPUTS, WITHIN, SYSTEMS = "outputs", "within items", "systems"
MEASURES: dict[tuple[str, str], Scale] = {
    (OUTPUTS, "pearson"): "correlation",
    (OUTPUTS, "spearman"): "correlation",
    (OUTPUTS, "kendall"): "correlation",
    (WITHIN, "spearman"): "correlation",
    (WITHIN, "accuracy"): "share",
}
"""Level and measure -> the scale on which its interval is symmetric."""
OF_SYSTEMS = ("pearson", "spearman", "kendall", "accuracy")
"""Measures of systems' means. They jump from order to order, so their intervals come from a bootstrap."""
_FOLDS = 5
_SAMPLE = 1000
"""Outputs on which intervals are found; of more, whole items are drawn and the variance is scaled."""
_PERMUTATIONS = 1000
_REPLICATES = 200
_MOST_RATER_GROUPS = 50
_THREADS = 2
One = TypeVar("One")
Result = TypeVar("Result")

Values = dict[tuple[str, str], Floats]
"""(level, measure) -> a value of each judge."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements:
    """Values of each judge with intervals."""

    values: Values
    low: Values
    high: Values
    n: dict[str, int]
    """Level -> outputs, pairs, systems."""
    thresholds: Floats
    """The tie threshold of each judge."""
    without_ties: Floats
    on_itself: Floats
    soft_accuracy: Floats
    h: Floats
    scores: Floats


def measure(
    people: PeopleScores,
    judges: Floats,
    shape: tuple[int, int],
    *,
    confidence: float,
    seed: int,
    dialogue: Ints | None = None,
) -> Measurements:
    """All measures of judges (judges, items, systems) that scored the same outputs.

    `dialogue` numbers the dialogue of each item; without it each item is one of its own.
    """
    h = people.means(*shape)
    known = np.isfinite(h) & np.isfinite(judges[0])
    judges = np.where(known, judges, np.nan)
    h = np.where(known, h, np.nan)
    rows = np.flatnonzero(known.any(axis=1))
    columns = np.flatnonzero(known.any(axis=0))
    h, judges = h[np.ix_(rows, columns)], judges[:, rows][:, :, columns]
    people = _recoded(people, known, rows, columns)
    dialogue = rows if dialogue is None else dialogue[rows]
    fold = deletion_groups(dialogue, np.random.default_rng([seed, 1])) % _FOLDS
    ties = _map(lambda scores: calibrate_ties(h, scores, fold=fold), judges)
    tie_of_item = np.array(
        [np.array(t.thresholds)[fold] if len(t.thresholds) == fold.max() + 1 else 0.0 * fold for t in ties]
    )
    parts = np.array_split(np.arange(len(judges)), min(_THREADS, len(judges)))
    values = _joined(_map(lambda part: _values(h, judges[part], tie_of_item[part]), parts))
    low, high = _intervals(people, h, judges, tie_of_item, dialogue, values, confidence, seed)
    values |= _system_values(h, judges)
    for key, drawn in _system_replicates(people, judges, seed).items():
        intervals = [percentile_interval(of_judge, confidence) for of_judge in drawn.T]
        low[key] = np.array([one.low for one in intervals])
        high[key] = np.array([one.high for one in intervals])
    signs = draw_signs(len(h), _PERMUTATIONS, np.random.default_rng([seed, 2]))
    sure = system_confidences(h, signs)
    cells = np.isfinite(h)
    return Measurements(
        values=values,
        low=low,
        high=high,
        n={OUTPUTS: int(cells.sum()), WITHIN: ties[0].n_pairs, SYSTEMS: h.shape[1]},
        thresholds=np.array([t.threshold for t in ties]),
        without_ties=np.array([t.without_ties for t in ties]),
        on_itself=np.array([t.on_itself for t in ties]),
        soft_accuracy=np.array(
            _map(lambda scores: soft_pairwise_accuracy(sure, system_confidences(scores, signs)), judges)
        ),
        h=h[cells],
        scores=judges[:, cells],
    )


def _map(function: Callable[[One], Result], arguments: Iterable[One]) -> list[Result]:
    """In threads: the loops over pairs leave Python alone while they run."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, arguments))


def _joined(parts: Sequence[Values]) -> Values:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _recoded(people: PeopleScores, known: NDArray[np.bool_], rows: Ints, columns: Ints) -> PeopleScores:
    """The ratings of known outputs with items and systems renumbered."""
    people = people.keep(known[people.item, people.system])
    row_of = np.full(known.shape[0], -1)
    row_of[rows] = np.arange(rows.size)
    column_of = np.full(known.shape[1], -1)
    column_of[columns] = np.arange(columns.size)
    return replace(people, item=row_of[people.item], system=column_of[people.system])


def _values(h: Floats, judges: Floats, ties: Floats) -> Values:
    """Each measure of each judge. `ties` are the thresholds (judges, items)."""
    from palaver.statistics._pair_kernels import row_counts

    known = np.isfinite(h) & np.isfinite(judges[0])
    values: Values = {}
    x, y = h[known], judges[:, known]
    ranks_x, ranks_y, tau = rank_correlations(x, y)
    values[OUTPUTS, "pearson"] = correlations(x, y)
    values[OUTPUTS, "spearman"] = correlations(ranks_x, ranks_y)
    values[OUTPUTS, "kendall"] = tau
    item = np.nonzero(known)[0]
    values[WITHIN, "spearman"] = correlations(_centred(ranks_x[None], item)[0], _centred(ranks_y, item))
    accuracy = np.full(len(judges), np.nan)
    for k, scores in enumerate(judges):
        counts = row_counts(h, np.ascontiguousarray(scores), ties[k].astype(np.float64))
        n = counts.sum(axis=1)
        if n.any():
            accuracy[k] = (counts[n > 0][:, [0, 4]].sum(axis=1) / n[n > 0]).mean()
    values[WITHIN, "accuracy"] = accuracy
    return values


def _system_values(h: Floats, judges: Floats) -> Values:
    """Of the systems' means over the outputs that both rated."""
    known = np.isfinite(h)
    n = known.sum(axis=0)
    return of_means(np.where(known, h, 0).sum(axis=0) / n, np.where(known, judges, 0).sum(axis=1) / n)


def of_means(x: Floats, y: Floats) -> Values:
    """People's means of systems (…, systems) beside each judge's (…, judges, systems)."""
    first, second = np.triu_indices(x.shape[-1], 1)
    sign_x = np.sign(x[..., :, None] - x[..., None, :]).astype(np.int8)[
        ..., None, :, :
    ]  # (…, 1, systems, systems)
    sign_y = np.sign(y[..., :, None] - y[..., None, :]).astype(np.int8)
    pairs_x, pairs_y = sign_x[..., first, second], sign_y[..., first, second]
    untied = np.sqrt((pairs_x != 0).sum(axis=-1) * (pairs_y != 0).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        kendall = np.where(untied > 0, (pairs_x * pairs_y).sum(axis=-1) / untied, np.nan)
        accuracy = (pairs_x == pairs_y).mean(axis=-1) if first.size else np.full(y.shape[:-1], np.nan)
    ranks_x, ranks_y = sign_x.sum(axis=-1), sign_y.sum(axis=-1)  # twice the mid-rank, around nought
    return {
        (SYSTEMS, "pearson"): correlations(x[..., None, :], y),
        (SYSTEMS, "spearman"): correlations(ranks_x, ranks_y),
        (SYSTEMS, "kendall"): kendall,
        (SYSTEMS, "accuracy"): accuracy,
    }


def correlations(x: Floats, ys: Floats) -> Floats:
    """Pearson's r of `x` with each row of `ys`; nan where one side is constant or there are fewer than 2."""
    if x.shape[-1] < 2:
        return np.full(ys.shape[:-1], np.nan)
    a = x - x.mean(axis=-1, keepdims=True)
    b = ys - ys.mean(axis=-1, keepdims=True)
    squares = (a * a).sum(axis=-1), (b * b).sum(axis=-1)
    # of equal values the variance may be a rounding error instead of nought
    constant = (squares[0] <= 1e-24 * (x * x).sum(axis=-1)) | (squares[1] <= 1e-24 * (ys * ys).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (a * b).sum(axis=-1) / np.sqrt(squares[0] * squares[1])
    return np.where(constant, np.nan, np.clip(r, -1, 1))


def _centred(values: Floats, item: Ints) -> Floats:
    """Each row minus its mean of the item; of one output an item nothing is left."""
    counts = np.bincount(item)
    means = np.array([np.bincount(item, weights=row) for row in values]) / np.maximum(counts, 1)
    centred: Floats = values - means[:, item]
    return centred


def _intervals(
    people: PeopleScores,
    h: Floats,
    judges: Floats,
    ties: Floats,
    dialogue: Ints,
    values: Values,
    confidence: float,
    seed: int,
) -> tuple[Values, Values]:
    n_items = len(h)
    rng = np.random.default_rng([seed, 3])
    share = min(1.0, max(_SAMPLE / np.isfinite(h).sum(), 2 * N_GROUPS / n_items))
    drawn = np.arange(n_items)
    if share < 1:
        drawn = np.sort(rng.permutation(n_items)[: max(2, round(share * n_items))])
        place = np.full(n_items, -1)
        place[drawn] = np.arange(drawn.size)
        people = people.keep(place[people.item] >= 0)
        people = replace(people, item=place[people.item])
        h, judges, ties = h[drawn], judges[:, drawn], ties[:, drawn]
    groups = deletion_groups(dialogue[drawn], rng)
    kept = [groups != number for number in range(int(groups.max()) + 1)]
    without_items = _map(lambda rows: _values(h[rows], judges[:, rows], ties[:, rows]), kept)

    def beside(means: Floats) -> Values:
        return _values(means, np.where(np.isfinite(means), judges, np.nan), ties)

    without_raters = _map(beside, _without(people, people.rater, h.shape, rng))
    crossing = people.item * (int(people.rater.max()) + 1) + people.rater
    without_crossings = _map(beside, _without(people, crossing, h.shape, rng))
    low: Values = {}
    high: Values = {}
    for key, scale in MEASURES.items():
        low[key], high[key] = np.full(len(judges), np.nan), np.full(len(judges), np.nan)
        for k in range(len(judges)):
            deletions = Deletions(
                dialogues=np.array([one[key][k] for one in without_items]),
                raters=np.array([one[key][k] for one in without_raters]) if without_raters else None,
                crossings=np.array([one[key][k] for one in without_crossings]) if without_raters else None,
            )
            interval = jackknife_interval(
                float(values[key][k]),
                deletions,
                scale=scale,
                share=drawn.size / n_items,
                confidence=confidence,
            )
            low[key][k], high[key][k] = interval.low, interval.high
    return low, high


def _system_replicates(people: PeopleScores, judges: Floats, seed: int) -> Values:
    """Measures of systems' means when items and raters are drawn anew: (replicates, judges)."""
    rng = np.random.default_rng([seed, 4])
    n_judges, n_items, n_systems = judges.shape
    raters = np.unique(people.rater, return_inverse=True)[1]
    n_groups = min(int(raters.max()) + 1, _MOST_RATER_GROUPS)
    group = rng.permutation(int(raters.max()) + 1)[raters] % n_groups
    place = (people.item * n_groups + group) * n_systems + people.system
    size = n_items * n_groups * n_systems
    sums = np.bincount(place, weights=people.score, minlength=size).reshape(n_items, -1)
    counts = np.bincount(place, minlength=size).reshape(n_items, -1).astype(np.float64)
    items = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=_REPLICATES).astype(np.float64)
    who = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_REPLICATES).astype(np.float64)
    if n_groups < 3:  # too few to draw from
        who[:] = 1.0
    shape = (_REPLICATES, n_groups, n_systems)
    totals = (who[..., None] * (items @ sums).reshape(shape)).sum(axis=1)
    weights = (who[..., None] * (items @ counts).reshape(shape)).sum(axis=1)
    known = np.isfinite(judges[0]).astype(np.float64)
    scores = np.where(np.isfinite(judges), judges, 0.0).transpose(1, 0, 2).reshape(n_items, -1)
    of_judges = (items @ scores).reshape(_REPLICATES, n_judges, n_systems)
    n_known = items @ known  # (replicates, systems)
    complete = ((weights > 0) & (n_known > 0)).all(axis=1)  # a draw may miss a system that is seldom rated
    if not complete.any():
        return {(SYSTEMS, name): np.full((1, n_judges), np.nan) for name in OF_SYSTEMS}
    of_judges = of_judges[complete] / n_known[complete][:, None, :]
    people_means = totals[complete] / weights[complete]
    parts = np.array_split(np.arange(len(people_means)), min(_THREADS, len(people_means)))
    return _joined(_map(lambda part: of_means(people_means[part], of_judges[part]), parts))


def _without(
    people: PeopleScores, cluster: Ints, shape: tuple[int, int], rng: np.random.Generator
) -> Iterator[Floats]:
    """People's means without each group of clusters, if there are at least three clusters."""
    if np.unique(cluster).size < 3:
        return
    groups = deletion_groups(cluster, rng)
    for number in range(int(groups.max()) + 1):
        yield people.keep(groups != number).means(*shape)
