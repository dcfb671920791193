"""Recover the recogniser of Mairesse et al. (2007) from the published features and scores of the essays.

    python experiments/personality/mairesse.py ../shared/data/personality OUT.json

`essays_mairesse_features.csv.gz` has 79 of the 84 features of each essay, standardised, and the five scores.
The scores are a linear function of the features to the sixth decimal, which least squares gives back. What
is missing to use it on other texts is the mean and standard deviation of each feature, and these follow from
whole numbers:

- word counts are whole, so the standardised word counts lie on a grid whose step is 1 / sd;
- a category's rate is 100 * count / words, so (mean + sd * z) * words / 100 must be whole for every essay;
- words / (words per sentence) must be whole, and so must the share of questions * sentences / 100.

A pair (mean, sd) that makes more than 99 in 100 of 2,467 essays whole to within 0.02 is no accident.
(Doubled pairs do so too; the smallest is taken.) Means of MRC norms are no such fractions; they are computed
from the essays themselves.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from fit import FILE, essays  # type: ignore[import-not-found]

from palaver.files import sha256_of, write_atomically
from palaver.personality.counts import KNOWN, Counter
from palaver.personality.lexicon import open_lexicon
from palaver.personality.mairesse import FEATURES, MRC
from palaver.personality.norms import read_norms

PUBLISHED = "essays_mairesse_features.csv.gz"
NEVER_PUBLISHED = ("BROWN-FREQ", "K-F-FREQ", "K-F-NCATS", "K-F-NSAMP", "T-L-FREQ")
"""In the list of attributes, but without values and so without weights."""
OPEN_NAMES = {
    "Dic": KNOWN,
    "Sixltr": "long_words",
    "Pronoun": "pronoun",
    "I": "i",
    "Self": "self",
    "Article": "article",
    "Preps": "preposition",
    "Affect": "affect",
    "Posemo": "positive",
    "Cogmech": "cognitive",
    "Time": "time",
    "Present": "present",
    "Incl": "inclusive",
}
"""Our own names of what comes near to a feature: where the search for its mean begins."""
NAMES = [name for name in FEATURES if name not in NEVER_PUBLISHED]


def published(path: Path) -> tuple[list[str], np.ndarray]:
    """File names of the essays; 79 features and the scores in the order E, (emotional stability), A, C, O."""
    with gzip.open(path) as file:
        rows = list(csv.reader(io.TextIOWrapper(file, encoding="utf-8")))
    return [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def word_counts(z: np.ndarray) -> tuple[float, np.ndarray]:
    """The sd of the number of words, and the numbers themselves up to one constant."""
    values = np.unique(z)
    step = np.median(np.sort(np.diff(values))[:300])
    for _ in range(5):
        step = np.polyfit(np.round((values - values[0]) / step), values, 1)[0]
    shift = np.angle(np.exp(2j * np.pi * z / step).mean()) / (2 * np.pi)
    return 1 / step, np.round(z / step - shift)


def misfit(z: np.ndarray, words: np.ndarray, mean: float, sd: float) -> float:
    """How far from whole numbers the counts are, but for the worst hundredth."""
    counts = (mean + sd * z) * words / 100
    return float(np.percentile(np.abs(counts - np.round(counts)), 99))


def refined(z: np.ndarray, words: np.ndarray, mean: float, sd: float) -> tuple[float, float]:
    for _ in range(30):
        counts = np.round((mean + sd * z) * words / 100)
        sd, mean = np.polyfit(z, 100 * counts / words, 1)
    return float(mean), float(sd)


def from_nought(z: np.ndarray, words: np.ndarray) -> tuple[float, float] | None:
    """For features that some essays lack: the least value is nought, and only the sd is sought."""
    above = z > z.min() + 1e-6
    values = (z[above] - z.min()) * words[above]
    most = np.percentile(values, 1) * 1.3
    steps = np.exp(np.linspace(np.log(most / 12), np.log(most), 20_000))
    fit = np.concatenate(
        [np.cos(2 * np.pi * values[:, None] / part).mean(axis=0) for part in np.array_split(steps, 40)]
    )
    good = np.flatnonzero(fit > 0.97)
    if (~above).sum() < 2 or not len(good):
        return None
    run = good[np.diff(good, append=good[-1] + 2) > 1]  # ends of runs of neighbouring steps
    begin = good[np.searchsorted(good, run[-1]) - 1] if len(run) == 1 else run[-2]
    best = good[(good > begin) & (good <= run[-1])] if len(run) > 1 else good
    sd = 100 / steps[best[np.argmax(fit[best])]]
    return refined(z, words, -z.min() * sd, sd)


def by_search(z: np.ndarray, words: np.ndarray, mean: float, sd: float) -> tuple[float, float]:
    """For features that every essay has: mean and sd together, around a guess."""
    some = np.random.default_rng(0).choice(len(z), 400, replace=False)
    means = np.arange(max(0.4 * mean, 0), 1.8 * mean + 1, 0.03)
    turns = np.exp(2j * np.pi * words[some, None] * means / 100)
    best = (0.0, 0.0, 0.0)
    for trial in np.exp(np.arange(np.log(0.5 * sd), np.log(2 * sd), 0.004)):
        fit = (np.exp(2j * np.pi * trial * z[some] * words[some] / 100) @ turns).real / len(some)
        best = max(best, (float(fit.max()), float(means[fit.argmax()]), float(trial)))
    return refined(z, words, best[1], best[2])


def recover(z: np.ndarray, guesses: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Mean and sd of every published feature that is made of whole numbers."""
    at = {name: i for i, name in enumerate(NAMES)}
    sd, relative = word_counts(z[:, at["WC"]])
    rare = z[:, at["You"]]
    fits = {}
    for constant in range(500, 900):  # the constant is right when a rare category's counts become whole
        found = from_nought(rare, relative + constant) if (relative + constant).min() > 0 else None
        if found:
            fits[constant] = misfit(rare, relative + constant, *found)
    words = relative + min(fits, key=fits.get)  # type: ignore[arg-type]
    found = {"WC": (float((words - z[:, at["WC"]] * sd).mean()), float(sd))}

    per_sentence, spread = guesses["WPS"]
    column = z[:, at["WPS"]]
    trials = [
        (float(np.median(np.abs(n - np.round(n)))), m, s)
        for m in np.arange(per_sentence - 3, per_sentence + 3, 0.02)
        for s in np.arange(0.9 * spread, 1.1 * spread, 0.002 * spread)
        for n in [words / (m + s * column)]
    ]
    _, mean, sd = min(trials)
    for _ in range(30):
        sentences = np.round(words / (mean + sd * column))
        sd, mean = np.polyfit(column, words / sentences, 1)
    found["WPS"] = (float(mean), float(sd))

    for name, i in at.items():
        if name in MRC or name in found or name == "Abbreviations":  # of which no essay has any
            continue
        of = sentences if name == "Qmarks" else words
        pair = from_nought(z[:, i], of)
        if pair is None or misfit(z[:, i], of, *pair) > 0.02:
            pair = by_search(z[:, i], of, *guesses[name])
        frequent = (z[:, i] > z[:, i].min() + 1e-6).mean() > 0.05  # with fewer, any divisor fits 99 in 100
        for divisor in (4, 3, 2) if frequent else ():
            smaller = (pair[0] / divisor, pair[1] / divisor)
            if misfit(z[:, i], of, *smaller) < 0.02:
                pair = smaller
        error = misfit(z[:, i], of, *pair)
        print(f"{name:<14} mean {pair[0]:9.4f}   sd {pair[1]:8.4f}   misfit {error:.4f}")
        if error > 0.02:
            raise SystemExit(f"{name} was not recovered")
        found[name] = pair
    return found


def main(data: Path, out: Path) -> None:
    files, table = published(data / PUBLISHED)
    z, scores = table[:, :79], table[:, 79:]
    design = np.column_stack([z, np.ones(len(z))])
    ocean = scores[:, [4, 3, 0, 2, 1]]  # what is called emotional stability is neuroticism: see fit.py
    weights = np.linalg.lstsq(design, ocean, rcond=1e-9)[0]
    print("largest error of the linear function:", np.abs(design @ weights - ocean).max())

    rows = essays(data / FILE)
    counter = Counter(open_lexicon(), {n: v for n, v in read_norms(data / "mrc2.dct.gz").items() if n in MRC})
    totals = counter.complete(counter.count([row["text"] for row in rows]).toarray())
    column = {name: totals[:, i] for i, name in enumerate(counter.columns)}
    own = z[[files.index(row["filename"]) for row in rows]]
    guesses = {
        feature: (float(rate.mean()), float(rate.std()))
        for feature, name in OPEN_NAMES.items()
        for rate in [100 * column[name] / column["words"]]
    }
    guesses |= {"Unique": (44.0, 7.0), "AllPct": (14.0, 4.5)}
    near = np.abs(own[:, NAMES.index("WPS")]) < 1
    line = np.polyfit(own[near, NAMES.index("WPS")], (column["words"] / column["sentences"])[near], 1)
    guesses["WPS"] = (float(line[1]), float(line[0]))
    moments = recover(z, guesses)
    for name in MRC:
        if name in NAMES:
            mean = column[f"sum:{name}"] / column[f"count:{name}"]
            there = own[:, NAMES.index(name)]
            sd, r = float(mean.std() / there.std()), np.corrcoef(mean, there)[0, 1]
            moments[name] = (float(mean.mean() - sd * there.mean()), sd)
            print(f"{name:<14} mean {moments[name][0]:9.4f}   sd {sd:8.4f}   r {r:.3f}")
    content = {
        "format": "palaver-mairesse-1",
        "intercepts": [float(f"{v:.8g}") for v in weights[79]],
        "features": {
            name: [float(f"{v:.8g}") for v in (*moments[name], *weights[NAMES.index(name)])]
            for name in FEATURES
            if name in moments
        },
        "data": {PUBLISHED: sha256_of(data / PUBLISHED)},
    }
    with write_atomically(out) as file:
        file.write(json.dumps(content, indent=1).replace("\n   ", " ").replace("\n  ]", "]") + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
