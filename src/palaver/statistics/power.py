"""Power by simulation: how many items and raters does a study need to tell two systems apart?

Whole studies are drawn from a model, and in each the second system is separated from the first when it
wins at least `confidence` of the paired bootstrap replicates over items (Koehn 2004, section 4; equal
means count half). Only the right direction counts, so with no difference the rate is about
1 - confidence (somewhat more with fewer than some 20 items, where the bootstrap is too sure of itself).
Power is the share of studies that separate them, with Wilson's (1927) score interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from palaver.progress import Progress
from palaver.statistics.bootstrap import Floats, Rng, check_fraction, resample_sums

Draw = Callable[[int, int, np.random.Generator], Floats]
"""draw(n_items, n_raters, rng) -> (items, 2) mean scores; second column minus first is the difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerResult:
    """The share of simulated studies of one size that find the second system better."""

    power: float
    low: float
    high: float
    """Wilson's interval of the power, at `confidence`: how far `n_studies` settle it."""
    n_items: int
    n_raters: int
    confidence: float
    n_studies: int
    """Simulated studies that could be bootstrapped."""
    n_replicates: int
    mean_difference: float
    """Second minus first, averaged over the simulated studies."""
    dropped: int
    """Items without a score for both systems, over all studies."""
    notes: tuple[str, ...]
    reason: str

    @property
    def judgements(self) -> int:
        """Screens to be judged: items times raters, each showing both systems."""
        return self.n_items * self.n_raters


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerGrid:
    """Power for every combination of items and raters."""

    items: tuple[int, ...]
    raters: tuple[int, ...]
    results: tuple[PowerResult, ...]
    """One per design, raters varying fastest."""

    @property
    def power(self) -> Floats:
        """As a table of (items, raters)."""
        return np.array([r.power for r in self.results]).reshape(len(self.items), len(self.raters))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestDesign:
    """The cheapest design of a grid that reaches the target, or None and the reason."""

    design: PowerResult | None
    target: float
    reason: str


def estimate_power(
    draw: Draw,
    n_items: int,
    n_raters: int,
    *,
    n_studies: int = 200,
    n_replicates: int = 500,
    confidence: float = 0.95,
    rng: Rng,
    progress: Progress | None = None,
) -> PowerResult:
    """Power of a study of `n_items` items with `n_raters` raters each; `progress` hears of each study."""
    if min(n_items, n_raters, n_studies, n_replicates) < 1:
        raise ValueError(
            "n_items, n_raters, n_studies and n_replicates must be at least 1, "
            f"found {n_items}, {n_raters}, {n_studies}, {n_replicates}"
        )
    check_fraction("confidence", confidence)
    generator = np.random.default_rng(rng)
    means, n_separated, dropped = [], 0, 0
    for study in range(n_studies):
        difference = _differences(draw, n_items, n_raters, generator)
        dropped += n_items - difference.size
        if difference.size >= 2:  # with one item every replicate is that item, and any difference "wins"
            means.append(difference.mean())
            n_separated += _second_wins(difference, n_replicates, generator) >= confidence
        if progress is not None:
            progress("simulating studies", study + 1, n_studies)

    notes = [f"{dropped} items without a score for both systems"] if dropped else []
    if 0 < len(means) < n_studies:
        notes.append(f"{n_studies - len(means)} simulated studies with fewer than two usable items")
    power = n_separated / len(means) if means else math.nan
    low, high = wilson_interval(n_separated, len(means), confidence)
    return PowerResult(
        power=power,
        low=low,
        high=high,
        n_items=n_items,
        n_raters=n_raters,
        confidence=confidence,
        n_studies=len(means),
        n_replicates=n_replicates,
        mean_difference=float(np.mean(means)) if means else math.nan,
        dropped=dropped,
        notes=tuple(notes),
        reason="" if means else "no simulated study had two items with scores for both systems",
    )


def power_grid(
    draw: Draw,
    *,
    items: Sequence[int],
    raters: Sequence[int],
    n_studies: int = 200,
    n_replicates: int = 500,
    confidence: float = 0.95,
    rng: Rng,
    progress: Progress | None = None,
) -> PowerGrid:
    """Power for every number of items with every number of raters; `progress` hears of each study."""
    if not len(items) or not len(raters):
        raise ValueError("power_grid needs at least one number of items and one number of raters")
    generator = np.random.default_rng(rng)
    designs = [(n_items, n_raters) for n_items in items for n_raters in raters]
    results = []
    for finished, (n_items, n_raters) in enumerate(designs):
        results.append(
            estimate_power(
                draw,
                n_items,
                n_raters,
                n_studies=n_studies,
                n_replicates=n_replicates,
                confidence=confidence,
                rng=generator,
                progress=_shifted(progress, finished * n_studies, len(designs) * n_studies),
            )
        )
    return PowerGrid(items=tuple(items), raters=tuple(raters), results=tuple(results))


def smallest_design(grid: PowerGrid, target: float = 0.8) -> SmallestDesign:
    """The design of fewest judgements whose estimated power reaches `target`; of equals the strongest."""
    check_fraction("target", target)
    enough = [result for result in grid.results if result.power >= target]
    if enough:
        best = min(enough, key=lambda result: (result.judgements, -result.power))
        return SmallestDesign(design=best, target=target, reason="")
    defined = [result for result in grid.results if not math.isnan(result.power)]
    if not defined:
        return SmallestDesign(design=None, target=target, reason="no design has a defined power")
    most = max(defined, key=lambda result: result.power)
    reason = (
        f"no design reaches a power of {target:g}; the best is {most.power:.2f} "
        f"with {most.n_items} items and {most.n_raters} raters"
    )
    return SmallestDesign(design=None, target=target, reason=reason)


def normal_draw(
    difference: float,
    *,
    sd_item: float = 1.0,
    sd_rater: float = 0.5,
    sd_item_system: float = 0.5,
    sd_noise: float = 1.0,
) -> Draw:
    """A linear model: score = system + item + item x system + rater + noise, all normal.

    The same raters judge every item for both systems, so items' and raters' own levels cancel in the
    difference; per item its variance is 2 * sd_item_system^2 + 2 * sd_noise^2 / n_raters.
    """
    if min(sd_item, sd_rater, sd_item_system, sd_noise) < 0:
        raise ValueError(f"deviations must be 0 or more: {sd_item}, {sd_rater}, {sd_item_system}, {sd_noise}")

    def draw(n_items: int, n_raters: int, rng: np.random.Generator) -> Floats:
        level = sd_item * rng.standard_normal((n_items, 1))
        level += sd_rater * rng.standard_normal(n_raters).mean()
        # the mean of n_raters noises is one normal, so there is no need to draw each judgement
        sd = math.hypot(sd_item_system, sd_noise / math.sqrt(n_raters))
        scores: Floats = level + np.array([0.0, difference]) + sd * rng.standard_normal((n_items, 2))
        return scores

    return draw


def _differences(draw: Draw, n_items: int, n_raters: int, rng: np.random.Generator) -> Floats:
    scores = np.asarray(draw(n_items, n_raters, rng), dtype=np.float64)
    if scores.shape != (n_items, 2):
        raise ValueError(f"draw must give scores of shape {(n_items, 2)}, found {scores.shape}")
    complete = np.isfinite(scores).all(axis=1)
    return np.asarray(scores[complete, 1] - scores[complete, 0])


def _second_wins(difference: Floats, n_replicates: int, rng: np.random.Generator) -> float:
    """Share of bootstrap replicates in which the mean difference is above 0; 0 itself counts half."""
    sums = resample_sums(difference[:, None], n_replicates, rng)
    return float((sums > 0).mean() + (sums >= 0).mean()) / 2


def wilson_interval(successes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's (1927) score interval of a share of n; nan without any."""
    from scipy.special import ndtri

    if n == 0:
        return math.nan, math.nan
    z2 = float(ndtri(0.5 + confidence / 2)) ** 2
    rate = successes / n
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """The same progress, counted over all designs of a grid."""
    if progress is None:
        return None
    return lambda what, done, _: progress(what, before + done, total)
