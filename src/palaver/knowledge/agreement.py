"""How near a selector that sees only the history comes to the oracle that has seen the response.

For every turn with a history: is the oracle's sentence the selector's first choice (top-1), among its first
five (top-5), at which rank (mean reciprocal rank), and how similar is the selector's first choice to the
response, as a share of the oracle's similarity? Intervals come from resampling whole dialogues, since the
turns of one dialogue choose among the same sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.errors import DataError, UserError
from palaver.knowledge.corpus import Share, in_blocks, shares_of
from palaver.knowledge.selector import Group, Selector, first_best
from palaver.schema import Dialogue
from palaver.statistics.bootstrap import percentile_interval, resample_sums

Floats = NDArray[np.float64]
_MEASURES = ("top1", "top5", "reciprocal_rank", "cosine", "oracle_cosine")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often and how nearly one selector meets the oracle."""

    selector: str
    top1: Estimate
    top5: Estimate
    reciprocal_rank: Estimate
    cosine_share: Estimate
    """Mean cosine of its choice with the response, divided by that of the oracle's choice."""
    chance_top1: float
    """What guessing would reach: the mean of 1 / number of candidates."""
    n_dialogues: int
    n_turns: int
    mean_candidates: float
    skipped: dict[str, int]
    """Turns left out, with the reason."""
    confidence: float
    n_replicates: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def agreement(
    dialogues: Iterable[Dialogue],
    selectors: Sequence[Selector],
    oracle: Selector,
    *,
    seed: int = 0,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    tell: Callable[[int], None] | None = None,
) -> list[Agreement]:
    """Compare each of `selectors` with `oracle` on the turns of `dialogues`; `tell` hears of every block."""
    sums: list[list[Floats]] = [[] for _ in selectors]  # per selector, per dialogue: _MEASURES
    sizes: list[tuple[int, float, float]] = []  # per dialogue: turns, candidates, 1 / candidates
    skipped = {"no turn before it": 0, "fewer than two sentences to choose from": 0, "nothing in common": 0}
    for block in in_blocks(dialogues):
        for own in _scored(block, selectors, oracle, skipped):
            sizes.append(_sizes(own))
            for i, rows in enumerate(sums):
                rows.append(sum((_measures(part.oracle, part.others[i]) for part in own), np.zeros(5)))
        if tell:
            tell(len(block))
    counts = np.array(sizes, dtype=np.float64).reshape(-1, 3)
    used = counts[:, 0] > 0
    counts = counts[used]
    if not len(counts):
        reasons = [f"{n:,} turns: {reason}" for reason, n in skipped.items() if n]
        raise DataError(
            "no turn can be compared with the oracle",
            "are there reading sets beside the conversations?",
            problems=reasons,
        )
    agreements = []
    for selector, rows in zip(selectors, sums, strict=True):
        table = np.column_stack([np.array(rows)[used], counts[:, 0]])  # (dialogues, measures + turns)
        replicates = resample_sums(table, n_replicates, np.random.default_rng(seed))
        estimates = _estimates(table.sum(0), replicates, confidence)
        agreements.append(
            Agreement(
                selector=selector.name,
                **estimates,
                chance_top1=float(counts[:, 2].sum() / counts[:, 0].sum()),
                n_dialogues=len(counts),
                n_turns=int(counts[:, 0].sum()),
                mean_candidates=float(counts[:, 1].sum() / counts[:, 0].sum()),
                skipped=dict(skipped),
                confidence=confidence,
                n_replicates=n_replicates,
            )
        )
    return agreements


@dataclass(frozen=True, slots=True)
class _Part:
    """Scores of the comparable turns of one speaker; each table is (turns, candidates)."""

    oracle: Floats
    others: list[Floats]


def _scored(
    block: Sequence[Dialogue], selectors: Sequence[Selector], oracle: Selector, skipped: dict[str, int]
) -> list[list[_Part]]:
    """Per dialogue its speakers' scores by the oracle and by each selector."""
    shares = [[_with_history(share, skipped) for share in shares_of(dialogue)] for dialogue in block]
    groups = [group for own in shares for group in own]
    tables = [iter(s.scores(groups)) for s in (oracle, *selectors)]
    scored = []
    for own in shares:
        parts = []
        for group in own:
            truth, *others = [next(t) for t in tables]
            if not group.queries:
                continue
            silent = [s.name for s, o in zip(selectors, others, strict=True) if o is None]
            if truth is None or silent:
                raise UserError(f"{silent or oracle.name}: chooses nothing, so there is nothing to compare")
            met = truth.max(axis=1) > 0
            skipped["nothing in common"] += int((~met).sum())
            if met.any():
                parts.append(_Part(truth[met], [o[met] for o in others if o is not None]))
        scored.append(parts)
    return scored


def _with_history(share: Share, skipped: dict[str, int]) -> Group:
    queries = [query for query in share.group.queries if query.history]
    skipped["no turn before it"] += len(share.group.queries) - len(queries)
    if len(share.group.candidates) < 2:
        skipped["fewer than two sentences to choose from"] += len(queries)
        queries = []
    return Group(queries, share.group.candidates)


def _sizes(parts: Sequence[_Part]) -> tuple[int, float, float]:
    shapes = [part.oracle.shape for part in parts]
    return sum(n for n, _ in shapes), sum(n * k for n, k in shapes), sum(n / k for n, k in shapes)


def _measures(oracle: Floats, scores: Floats) -> Floats:
    """Sums over turns of `_MEASURES`. Equal scores rank in reading order, as selection takes them."""
    rows, columns = np.arange(len(oracle)), np.arange(oracle.shape[1])
    target, choice = first_best(oracle), first_best(scores)  # (turns,)
    at = scores[rows, target][:, None]
    ahead = (scores > at) | ((scores == at) & (columns < target[:, None]))  # (turns, candidates)
    rank = np.where(choice == target, 1, np.maximum(ahead.sum(1) + 1, 2))
    measures = [rank == 1, rank <= 5, 1 / rank, oracle[rows, choice], oracle[rows, target]]
    return np.array([measure.sum() for measure in measures], dtype=np.float64)


def _estimates(sums: Floats, replicates: Floats, confidence: float) -> dict[str, Estimate]:
    """`sums` and the rows of `replicates` hold _MEASURES, then the number of turns."""

    def ratio(above: int, below: int) -> Estimate:
        interval = percentile_interval(replicates[:, above] / replicates[:, below], confidence)
        return Estimate(float(sums[above] / sums[below]), interval.low, interval.high)

    n_turns = len(_MEASURES)
    return {
        "top1": ratio(0, n_turns),
        "top5": ratio(1, n_turns),
        "reciprocal_rank": ratio(2, n_turns),
        "cosine_share": ratio(3, 4),
    }
