"""Which triplets an encoder is probed with: a file, those made from the corpora, or a sample.

Making them takes a minute, so they are kept: under the recipe, the corpora's content and the rules' code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from palaver.artefacts import digest, digest_files
from palaver.errors import UserError
from palaver.files import sha256_of
from palaver.models.encoders.encoder import Places
from palaver.probes.recipe import Recipe, Triplet
from palaver.probes.sources import CORPORA, first_with_corpora
from palaver.probes.triplet_files import read_triplets, write_triplets
from palaver.probes.triplets import generate
from palaver.progress import Progress

SAMPLE = Path(__file__).parent / "sample.jsonl"


@dataclass(frozen=True)
class TripletSource:
    """Triplets, the hash of where they come from, and what should be said about them."""

    triplets: list[Triplet]
    data: dict[str, str]
    notes: tuple[str, ...] = ()


def find_triplets(
    file: Path | None, places: Places, *, seed: int = 0, keep: Path | None = None, workers: int = 0,
    tell: Progress | None = None,
) -> TripletSource:  # fmt: skip
    """Those of `file`; else of the corpora in the data folder; else the sample."""
    if file is not None:
        return TripletSource(read_triplets(file), {file.name: sha256_of(file)})
    folder = first_with_corpora(places.folders())
    if folder is not None:
        return _from_corpora(folder, Recipe(seed=seed), keep, workers, tell)
    if places.data is not None:
        raise UserError(
            f"{places.data} holds none of the corpora",
            f"expected one of {', '.join(CORPORA)}, or give --triplets FILE",
        )
    sample = read_triplets(SAMPLE)
    note = (
        f"these {len(sample)} triplets are a small sample written for Palaver, for a first look only: "
        "give --data FOLDER (SICK, MSR Paraphrase, Treebank) or --triplets FILE for figures to quote"
    )
    return TripletSource(sample, {SAMPLE.name: sha256_of(SAMPLE)}, (note,))


def _from_corpora(
    folder: Path, recipe: Recipe, keep: Path | None, workers: int, tell: Progress | None
) -> TripletSource:
    files = [
        p for p in folder.iterdir() if p.is_file() and p.name.startswith(("SICK", "msr_", "treebank", "sts-"))
    ]
    code = Path(__file__).parent
    sign = digest(
        recipe.signature,
        digest_files(files),
        digest_files(code.glob("*.py")),
        digest_files(code.glob("rules/*.py")),
    )
    path = keep / f"triplets-{sign}.jsonl" if keep is not None else None
    if path is not None and path.is_file():
        triplets = read_triplets(path)
    else:
        triplets = generate(folder, recipe, workers=workers, tell=tell).triplets
        if path is not None:
            write_triplets(triplets, path)
    return TripletSource(triplets, {f"triplets of {folder.name}, recipe {recipe.signature}": sign})
