"""Trait fidelity: does a Personality Model show the traits that it was asked for?

Characters that can be told apart need not have the traits they were given. So a model answers under many
requested personalities, a recogniser measures what its responses show, and requested and measured traits are
correlated over the requests: a matrix of 5 x 5, whose diagonal should be high and whose other cells low.

The recogniser should be another one than that which made the model's labels. Otherwise a model is praised for
having learnt that recogniser's habits. `self-report` is there for that: it was fitted to what writers said of
themselves, not to the scores that the default one imitates. As a control the requests are dealt out anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaver.corpora.personalities import TRAITS, read_ocean_table
from palaver.engine import Engine
from palaver.errors import DataError
from palaver.personality.plan import generator
from palaver.personality.pools import Choice, Pools
from palaver.personality.recogniser import AnyRecogniser, load_recogniser
from palaver.personality.responses import read_responses, requested_scores
from palaver.personality.samples import Floats
from palaver.progress import Progress, no_progress
from palaver.schema import RunRecord, record_run
from palaver.schema.run import RunResult
from palaver.statistics.correlation import correlate
from palaver.statistics.significance import holm
from palaver.tabular import columns_of, show_fixed

INDEPENDENT = "self-report"
"""The recogniser that made no labels."""
LABELS = "default"
"""What `palaver personality table` estimates labels with, unless told otherwise."""
FEWEST = 5
"""Requests below which a correlation says nothing."""
FEW = 20
TOGETHER = 0.5
"""Requested traits that correlate more than this cannot be told apart well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A requested trait against a measured one, over the requests."""

    requested: str
    measured: str
    r: float
    low: float
    high: float
    slope: float
    """Points that the measured trait rises with one point of the requested one."""
    p: float
    """Two-sided, against requests dealt out anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal:
    """A trait against itself."""

    trait: str
    r: float
    low: float
    high: float
    slope: float
    p: float
    p_holm: float
    """Corrected for five traits."""
    largest_other: float
    """The largest correlation, in size, of the measured trait with another requested one."""
    answers: bool
    """Whether the trait rises with its request, more than chance would have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledRequests:
    """The control: the same measurements, the requests dealt out anew many times."""

    mean_r: float
    """Of the diagonal; about 0."""
    high: float
    """What the mean of the diagonal reaches in one of 40 such deals."""
    n_deals: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Fidelity(RunResult):
    """How well measured traits follow requested ones. Tables: matrix (25 cells), diagonal."""

    title: str
    recogniser: str
    n_requests: int
    n_responses: int
    confidence: float
    matrix: tuple[Cell, ...]
    diagonal: tuple[Diagonal, ...]
    mean_r: float
    """Of the diagonal."""
    mean_other: float
    """Mean size of the other correlations."""
    control: ShuffledRequests
    left_out: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    run: RunRecord

    @property
    def text(self) -> str:
        """The result in a sentence."""
        good = [row.trait for row in self.diagonal if row.answers]
        named = ", ".join(good) if good else "none of the five traits"
        return (
            f"Measured traits follow the requested ones for {named}. The mean correlation of a trait with "
            f"its own request is {show_fixed(self.mean_r)}; with requests dealt out anew it is "
            f"{show_fixed(self.control.mean_r)}, and above {show_fixed(self.control.high)} once in 40 times."
        ).replace("-", "−")

    def _headline(self) -> str:
        return f"{self.title!r}: {self.text}"

    def _tables(self) -> dict[str, Any]:
        return {"matrix": columns_of(Cell, self.matrix), "diagonal": columns_of(Diagonal, self.diagonal)}


def measure_fidelity(
    path: str | Path,
    *,
    measured_by: str | AnyRecogniser = INDEPENDENT,
    table: str | Path | None = None,
    choice: Choice | None = None,
    columns: Mapping[str, str] | None = None,
    confidence: float = 0.95,
    n_deals: int = 2000,
    seed: int = 0,
    engine: Engine | str = "processes",
    progress: Progress | None = None,
) -> Fidelity:
    """Requested against measured traits of a file of responses.

    What was requested of each speaker stands in the column `ocean`, or in `table`. `measured_by` is a
    recogniser, or its name.
    """
    path, choice = Path(path), choice or Choice()
    judge = load_recogniser(measured_by) if isinstance(measured_by, str) else measured_by
    tell = progress or no_progress
    pools = read_responses(
        path, judge, choice, source=str(path), columns=columns, n_words=0, engine=engine, progress=tell
    )
    requests = read_ocean_table(table) if table is not None else requested_scores(path, choice, columns)
    return compare_traits(pools, requests, confidence=confidence, n_deals=n_deals, seed=seed)


def compare_traits(
    pools: Pools,
    requests: Mapping[str, Sequence[float]],
    *,
    confidence: float = 0.95,
    n_deals: int = 2000,
    seed: int = 0,
) -> Fidelity:
    """The same for pools of responses: one pool is the answer to one request."""
    missing = [name for name in pools.characters if name not in requests]
    if missing:
        more = " and others" if len(missing) > 5 else ""
        raise DataError(
            f"there are no requested scores of {', '.join(missing[:5])}{more}",
            "name the table that they were generated from with --table",
        )
    n = len(pools.characters)
    if n < FEWEST:
        raise DataError(
            f"a correlation over {n} requested personalities says nothing, expected {FEWEST} or more",
            "generate with a table of more: palaver generate --ocean-table",
        )
    requested = np.array([requests[name] for name in pools.characters], dtype=np.float64)
    flat = [trait for trait, column in zip(TRAITS, requested.T, strict=True) if np.ptp(column) < 1e-9]
    if flat:
        raise DataError(f"all requests ask for the same {', '.join(flat)}", "requests should differ")
    measured = np.concatenate(
        [pools.traits.of([rows], 1, rows.size, [0]) for rows in pools.members]  # all of its responses
    )
    deals = _deal(requested, measured, n_deals, seed)
    matrix = tuple(_cells(requested, measured, deals, confidence))
    own = [cell for cell in matrix if cell.requested == cell.measured]
    others = [cell for cell in matrix if cell.requested != cell.measured]
    adjusted = holm([cell.p for cell in own]).adjusted
    diagonal = tuple(
        _diagonal(cell, float(p), [c.r for c in others if c.measured == cell.measured], confidence)
        for cell, p in zip(own, adjusted, strict=True)
    )
    means = np.einsum("dii->d", deals) / len(TRAITS)
    return Fidelity(
        title=pools.source,
        recogniser=pools.recogniser,
        n_requests=n,
        n_responses=sum(rows.size for rows in pools.members),
        confidence=confidence,
        matrix=matrix,
        diagonal=diagonal,
        mean_r=float(np.mean([cell.r for cell in own])),
        mean_other=float(np.mean([abs(cell.r) for cell in others])),
        control=ShuffledRequests(
            mean_r=float(means.mean()), high=float(np.quantile(means, 0.975)), n_deals=n_deals
        ),
        left_out=pools.left_out,
        notes=(*pools.notes, *_notes(requested, pools.recogniser)),
        run=record_run(
            "personality fidelity",
            seed=seed,
            config={"recogniser": pools.recogniser, "deals": n_deals, "confidence": confidence},
            data=pools.hashes,
        ),
    )


def _standardise(values: Floats) -> Floats:
    centred = values - values.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(centred / np.where(length > 0, length, 1))


def _deal(requested: Floats, measured: Floats, n_deals: int, seed: int) -> Floats:
    """(deals, requested, measured): correlations with the requests dealt out anew."""
    rng = generator(seed, "fidelity")
    a, b = _standardise(requested), _standardise(measured)
    return np.stack([a[rng.permutation(len(a))].T @ b for _ in range(n_deals)])


def _cells(requested: Floats, measured: Floats, deals: Floats, confidence: float) -> Any:
    for i, asked in enumerate(TRAITS):
        for j, shown in enumerate(TRAITS):
            result = correlate(requested[:, i], measured[:, j], confidence=confidence)
            as_large = int((np.abs(deals[:, i, j]) >= abs(result.value) - 1e-12).sum())
            yield Cell(
                requested=asked,
                measured=shown,
                r=result.value,
                low=result.low,
                high=result.high,
                slope=result.value * float(measured[:, j].std() / requested[:, i].std()),
                p=(1 + as_large) / (1 + len(deals)),
            )


def _diagonal(cell: Cell, p_holm: float, others: Sequence[float], confidence: float) -> Diagonal:
    return Diagonal(
        trait=cell.measured,
        r=cell.r,
        low=cell.low,
        high=cell.high,
        slope=cell.slope,
        p=cell.p,
        p_holm=p_holm,
        largest_other=max(others, key=abs),
        answers=bool(cell.r > 0 and p_holm <= 1 - confidence),
    )


def _notes(requested: Floats, recogniser: str) -> list[str]:
    notes = []
    if recogniser == LABELS:
        notes.append(
            f"the recogniser {LABELS!r} is what labels are usually estimated with: a model that learnt its "
            f"habits does well here; {INDEPENDENT} made no labels"
        )
    if len(requested) < FEW:
        notes.append(f"only {len(requested)} requested personalities: the intervals are wide")
    among = np.asarray(np.corrcoef(requested.T))
    pairs = [
        f"{TRAITS[i]} and {TRAITS[j]} (r = {show_fixed(among[i, j])})"
        for i in range(len(TRAITS))
        for j in range(i)
        if abs(among[i, j]) > TOGETHER
    ]
    if pairs:
        notes.append(f"requested traits that go together cannot be told apart: {', '.join(pairs)}")
    return notes
