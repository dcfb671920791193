"""The whole probe: encoders by name, triplets from wherever they are, the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palaver.models.encoders import Encoder, Places, open_encoders
from palaver.probes.evaluate import evaluate
from palaver.probes.inputs import find_triplets
from palaver.probes.results import ProbeResult
from palaver.progress import Progress


def probe(
    encoders: Sequence[str | Encoder],
    *,
    triplets: Path | None = None,
    data: Path | None = None,
    device: str = "auto",
    cache: Path | None = None,
    seed: int = 0,
    n_replicates: int = 10_000,
    workers: int = 0,
    progress: Progress | None = None,
) -> ProbeResult:
    """Which differences in meaning encoders notice (Zhu et al. 2018).

    Without a file of `triplets` they are made from the corpora in `data`; without these a small sample is
    taken, which the result says. `cache` is a folder that keeps vectors and triplets.
    """
    places = Places(data, device)
    named = open_encoders([one for one in encoders if isinstance(one, str)], places)
    given = [one for one in encoders if isinstance(one, Encoder)]
    source = find_triplets(triplets, places, seed=seed, keep=cache, workers=workers, tell=progress)
    return evaluate(
        [*named, *given],
        source.triplets,
        cache=cache,
        seed=seed,
        n_replicates=n_replicates,
        data=source.data,
        notes=source.notes,
        tell=progress,
    )
