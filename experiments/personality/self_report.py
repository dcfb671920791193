"""Fit the recogniser `self-report` on what the writers of the essays said of themselves.

    python experiments/personality/self_report.py DATA/personality src/palaver/personality/self_report.json

The labels are the five binary labels of each essay of Pennebaker & King (1999), from the writers' own answers
to a questionnaire; "no" is taken as 3 and "yes" as 5. The scores of Mairesse et al. (2007), which the default
recogniser imitates, play no part. It is weak (`docs/results/recogniser.json` says how weak), but it made no
labels, so `palaver personality fidelity` measures with it.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np

from palaver.files import sha256_of
from palaver.personality.counts import Counter
from palaver.personality.fit import RecogniserFit, fit
from palaver.personality.lexicon import open_lexicon

FILE = "essays.csv.gz"
LABELS = ("cOPN", "cCON", "cEXT", "cAGR", "cNEU")


def labelled_essays(path: Path) -> tuple[list[str], np.ndarray]:
    """Texts, and (n, 5) labels of 0 and 1 in the order of OCEAN. Each essay has a writer of its own."""
    csv.field_size_limit(1 << 30)
    with gzip.open(path) as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", errors="replace")))
    labels = [[float(row[label].strip().lower() in ("y", "1", "1.0")) for label in LABELS] for row in rows]
    return [row["text"] for row in rows], np.array(labels)


def fit_self_report(data: Path) -> tuple[RecogniserFit, np.ndarray]:
    """The recogniser with its predictions held out, and the labels."""
    texts, labels = labelled_essays(data / FILE)
    facts = {
        "labels": "what the writers of the essays of Pennebaker & King (1999) said of themselves",
        "data": {FILE: sha256_of(data / FILE)},
    }
    counter = Counter(open_lexicon())
    return fit(texts, 3 + 2 * labels, counter, name="self-report", provenance=facts), labels


def main(data: Path, out: Path) -> None:
    fitted, _ = fit_self_report(data)
    fitted.recogniser.save(out)
    print("correlations with the labels, held out:", [round(r, 3) for r in fitted.correlations])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
