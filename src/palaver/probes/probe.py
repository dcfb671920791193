"""The whole probe: encoders by name, triplets from a file, from the corpora or from a sample, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from palaver.artefacts import digest, digest_files
from palaver.engine import Engine
from palaver.errors import UserError, check_list
from palaver.files import sha256_of
from palaver.models.encoders import Encoder, Places, open_encoder, open_encoders
from palaver.probes.evaluate import evaluate
from palaver.probes.recipe import Recipe, Triplet
from palaver.probes.results import ProbeResult
from palaver.probes.sources import CORPORA, first_with_corpora
from palaver.probes.triplet_files import read_triplets, write_triplets
from palaver.probes.triplets import generate
from palaver.progress import Progress, no_progress

SAMPLE = Path(__file__).parent / "sample.jsonl"


@dataclass(frozen=True)
class TripletSource:
    """Triplets, the hash of where they come from, and what should be said about them."""

    triplets: list[Triplet]
    data: dict[str, str]
    notes: tuple[str, ...] = ()


def probe(
    encoders: Sequence[str | Encoder],
    *,
    triplets: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    cache: str | Path | None = None,
    seed: int = 0,
    n_replicates: int = 10_000,
    engine: Engine | str | None = None,
    progress: Progress = no_progress,
) -> ProbeResult:
    """Which differences in meaning encoders notice (Zhu et al. 2018).

    Without a file of `triplets` they are made from the corpora in `data`; without these a small sample is
    taken, which the result says. `cache` is a folder that keeps vectors and triplets. Without an `engine`
    sentences are parsed in processes and encoded in this one.
    """
    check_list("encoders", encoders)
    triplets, data, cache = (None if place is None else Path(place) for place in (triplets, data, cache))
    places = Places(data, device)
    names = list(dict.fromkeys(one for one in encoders if isinstance(one, str)))
    named = open_encoders(names, places)
    opened = [one for one in encoders if isinstance(one, Encoder)]
    source = find_triplets(
        triplets, places, seed=seed, cache=cache, engine=engine or "processes", progress=progress
    )
    return evaluate(
        [*named, *opened],
        source.triplets,
        cache=cache,
        seed=seed,
        n_replicates=n_replicates,
        data=source.data,
        notes=source.notes,
        engine=engine or "local",
        openers={
            encoder.name: partial(open_encoder, name, places)
            for name, encoder in zip(names, named, strict=True)
        },
        progress=progress,
    )


def find_triplets(
    file: Path | None,
    places: Places,
    *,
    seed: int = 0,
    cache: Path | None = None,
    engine: Engine | str = "processes",
    progress: Progress = no_progress,
) -> TripletSource:
    """Those of `file`; else of the corpora in the data folder; else the sample.

    Making them takes a minute, so `cache` keeps them, by the recipe, the corpora and the code of the rules.
    """
    if file is not None:
        return TripletSource(read_triplets(file), {file.name: sha256_of(file)})
    folder = first_with_corpora(places.folders())
    if folder is None and places.data is not None:
        raise UserError(
            f"{places.data} holds none of the corpora",
            f"expected one of {', '.join(CORPORA)}, or give --triplets FILE",
        )
    if folder is None:
        sample = read_triplets(SAMPLE)
        n_triplets = sum(not triplet.variant for triplet in sample)
        note = (
            f"these {n_triplets} triplets are a small sample written for Palaver, for a first look only: "
            "give --data FOLDER (SICK, MSR Paraphrase, Treebank) or --triplets FILE for figures to quote"
        )
        return TripletSource(sample, {SAMPLE.name: sha256_of(SAMPLE)}, (note,))
    recipe = Recipe(seed=seed)
    prefixes = ("SICK", "msr_", "treebank", "sts-")
    corpora = [path for path in folder.iterdir() if path.is_file() and path.name.startswith(prefixes)]
    here = Path(__file__).parent
    signature = digest(
        recipe.signature, digest_files(corpora), digest_files([*here.rglob("*.py"), here / "words.toml"])
    )
    path = cache / f"triplets-{signature}.jsonl" if cache is not None else None
    if path is not None and path.is_file():
        triplets = read_triplets(path)
    else:
        triplets = generate(folder, recipe, engine=engine, progress=progress).triplets
        if path is not None:
            write_triplets(triplets, path)
    return TripletSource(triplets, {f"triplets of {folder.name}, recipe {recipe.signature}": signature})
