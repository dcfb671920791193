"""Fit the recogniser that ships with Palaver on the published recogniser scores of the essays.

    python experiments/personality/fit.py ../shared/data/personality src/palaver/personality/recogniser.json

The labels are the scores that the recogniser of Mairesse et al. (2007) gave to the essays of Pennebaker &
King (1999); only rows whose text is surely that of the scored essay are used (`match_ok`). The column that
is called emotional stability there is neuroticism: it rises with the writers' own neuroticism (r = .24 with
the binary label) and with words of anxiety and sadness (r = .47 and .41). It is taken as it is.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np

from palaver.corpora.personalities import TRAITS
from palaver.files import sha256_of
from palaver.personality.counts import Counter
from palaver.personality.fit import fit
from palaver.personality.lexicon import open_lexicon

FILE = "essays_with_mairesse_scores.csv.gz"


def essays(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    with gzip.open(path) as file:
        rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))
        return [row for row in rows if row["match_ok"].lower() == "true"]


def recogniser_scores(rows: list[dict[str, str]]) -> np.ndarray:
    """(n, 5) in the order of OCEAN."""
    return np.array([[float(row[f"mair_{k}"]) for k in ("O", "C", "E", "A", "ES")] for row in rows])


def main(data: Path, out: Path) -> None:
    rows = essays(data / FILE)
    lexicon = open_lexicon()
    fitted = fit(
        [row["text"] for row in rows],
        recogniser_scores(rows),
        Counter(lexicon),
        name="default",
        provenance={
            "labels": "recogniser of Mairesse et al. (2007) on the essays of Pennebaker & King (1999)",
            "data": {FILE: sha256_of(data / FILE)},
        },
    )
    fitted.recogniser.save(out)
    for trait, r, error, slope, penalty in zip(
        TRAITS, fitted.correlations, fitted.mean_errors, fitted.slopes, fitted.penalties, strict=True
    ):
        print(f"{trait:<18} r {r:.3f}   mean error {error:.3f}   slope {slope:.3f}   penalty {penalty:.4g}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
