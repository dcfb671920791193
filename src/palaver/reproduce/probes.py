"""Tables 2 to 6 of Zhu, Li & de Melo (2018) beside ours, every row with where it comes from.

The paper's triplets are not published; ours are made by the same rules from the same corpora (Table 1's
sizes), and of the paper's vectors only some can be had. So the rows are comparable, not the same experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from palaver.errors import UserError
from palaver.models.encoders import Encoder, Places, open_encoder
from palaver.probes.evaluate import evaluate
from palaver.probes.inputs import find_triplets
from palaver.probes.recipe import SETS
from palaver.probes.results import ProbeResult, SetScore

Tell = Callable[[str, int, int], None]
Row = tuple[float, float, float, float]
"""S∧S+, S∧S*, S+∧S* and accuracy, in per cent."""

ENCODERS = {
    "glove": "Glove Avg",
    "p-means": "P Means",
    "sent2vec": "Sent2Vec",
    "skipthought": "SkipThought",
    "infersent": "InferSent",
}
"""Our name -> the paper's row."""
MODERN = ("minilm", "wordllama")

PAPER: dict[str, dict[str, Row]] = {
    "negation-detection": {
        "glove": (97.42, 98.80, 96.53, 13.06),
        "p-means": (98.49, 99.47, 98.13, 6.82),
        "sent2vec": (91.28, 93.50, 85.30, 41.99),
        "skipthought": (88.34, 81.95, 73.74, 78.19),
        "infersent": (94.74, 88.64, 85.15, 91.10),
    },
    "negation-variants": {
        "glove": (96.91, 97.99, 97.05, 1.56),
        "p-means": (98.66, 99.07, 98.49, 0.19),
        "sent2vec": (90.53, 90.59, 86.87, 1.56),
        "skipthought": (71.94, 75.40, 73.11, 22.96),
        "infersent": (84.51, 88.45, 91.63, 85.78),
    },
    "clause-relatedness": {
        "glove": (94.76, 99.14, 94.03, 4.58),
        "p-means": (97.40, 99.61, 97.08, 2.46),
        "sent2vec": (86.62, 92.40, 79.23, 32.92),
        "skipthought": (54.94, 84.27, 45.48, 19.51),
        "infersent": (89.47, 95.12, 85.22, 18.45),
    },
    "argument-sensitivity": {
        "glove": (96.17, 99.96, 96.17, 0.00),
        "p-means": (97.94, 99.98, 97.94, 0.00),
        "sent2vec": (89.11, 99.80, 89.13, 0.00),
        "skipthought": (83.44, 95.57, 82.32, 4.71),
        "infersent": (93.70, 97.98, 94.11, 2.24),
    },
    "fixed-point-reorder": {
        "glove": (97.74, 100.00, 97.74, 0.00),
        "p-means": (98.68, 100.00, 98.68, 0.00),
        "sent2vec": (92.88, 100.00, 92.88, 0.00),
        "skipthought": (89.83, 39.75, 37.28, 99.84),
        "infersent": (95.53, 94.26, 90.64, 72.92),
    },
}
CASES: dict[str, tuple[float, float]] = {"skipthought": (36.90, 0.75), "infersent": (28.37, 15.73)}
"""Section 3.3: accuracy on Clause Relatedness in cases a and b."""
CLOSE = 5.0
"""Points of accuracy within which GloVe averages and P-Means should be."""
ALSO_SICK = "negation-detection"
"""Shown for SICK alone too: the paper's examples of this set are from there, and in the longer sentences of
news one verb weighs less in an average. That is our reading after the fact; the whole set is compared."""


@dataclass(frozen=True)
class Reproduction:
    """Ours, what could not be opened, and which of the rows that should be close are not."""

    result: ProbeResult
    names: dict[str, str]
    """Row of the paper, or a modern encoder -> the encoder's name in the result."""
    missing: tuple[str, ...]

    def score(self, key: str, name: str) -> SetScore | None:
        return self.result.score(self.names[key], name) if key in self.names else None

    @property
    def far(self) -> tuple[str, ...]:
        """GloVe and P-Means where, on the whole set, they are more than CLOSE points from the paper."""
        found = []
        for key in ("glove", "p-means"):
            for name in self.result.sets:
                score, paper = self.score(key, name), PAPER[name][key][3]
                if score is not None and abs(100 * score.share.accuracy - paper) > CLOSE:
                    parts = [p for p in score.parts if (p.by, p.name) == ("corpus", "sick")]
                    sick = f" ({100 * parts[0].share.accuracy:.2f} on sentences of SICK)" if parts else ""
                    ours = f"{100 * score.share.accuracy:.2f}{sick}"
                    found.append(f"{SETS[name].title}, {ENCODERS[key]}: {ours}, the paper has {paper:.2f}")
        return tuple(found)


def reproduce(
    places: Places,
    *,
    triplets: Path | None = None,
    given: Sequence[str] = (),
    cache: Path | None = None,
    seed: int = 0,
    n_replicates: int = 10_000,
    tell: Tell | None = None,
) -> Reproduction:
    """The paper's five encoders and today's, as far as they can be had; `given` replaces a default."""
    said = {one.partition("=")[0]: one for one in given}
    opened: list[Encoder] = []
    names: dict[str, str] = {}
    missing = []
    for key in (*ENCODERS, *MODERN, *(k for k in said if k not in ENCODERS and k not in MODERN)):
        try:
            encoder = open_encoder(said.get(key, key), places)
        except UserError as error:
            if key in said:
                raise
            missing.append(f"{ENCODERS.get(key, key)}: {error.message}")
            continue
        opened.append(encoder)
        names[key] = encoder.name
    found = find_triplets(triplets, places, seed=seed, keep=cache, tell=tell)
    result = evaluate(
        opened, found.triplets, cache=cache, seed=seed, n_replicates=n_replicates, data=found.data,
        notes=found.notes, tell=tell,
    )  # fmt: skip
    return Reproduction(result, names, tuple(missing))


def print_reproduction(found: Reproduction, console: Console) -> None:
    """Every table, with the paper's row above ours."""
    console.print(
        "Exploring Semantic Properties of Sentence Embeddings (Zhu, Li & de Melo 2018)",
        style="bold",
        highlight=False,
    )
    for name in found.result.sets:
        kind = SETS[name]
        table = Table(
            title=f"Table {kind.table}: {kind.title}, "
            f"{found.result.n_triplets[name]} triplets (paper {kind.paper_size})",
            title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
            pad_edge=False, show_edge=False,
        )  # fmt: skip
        for heading in ("", ""):
            table.add_column(heading, no_wrap=True)
        for heading in ("S∧S+", "S∧S*", "S+∧S*", "accuracy", "95% interval"):
            table.add_column(heading, justify="right", no_wrap=True)
        for key in found.names | ENCODERS:
            label = ENCODERS.get(key, key)
            if key in PAPER[name]:
                table.add_row(label, "paper", *(f"{v:.2f}" for v in PAPER[name][key]), "")
                label = ""
            score = found.score(key, name)
            if score is not None:
                means = (100 * s.mean for s in (score.plus, score.star, score.between))
                share = score.share
                table.add_row(
                    escape(label), "ours", *(f"{v:.2f}" for v in means), f"{100 * share.accuracy:.2f}",
                    f"[{100 * share.low:.1f}, {100 * share.high:.1f}]".replace("[", r"\["),
                )  # fmt: skip
                _print_parts(table, key, name, score)
        console.print(table)
        console.print()
    console.print("Where our rows come from", style="bold")
    by_name = {row.name: row for row in found.result.encoders}
    for key, encoder in found.names.items():
        console.print(
            f"- {ENCODERS.get(key, key)}: {by_name[encoder].provenance}", highlight=False, markup=False
        )
    for line in found.missing:
        console.print(f"- not here: {line}", style="yellow", highlight=False, markup=False)
    for note in found.result.notes:
        console.print(f"- {note}", style="yellow", highlight=False, markup=False)
    for line in found.far:
        console.print(
            f"more than {CLOSE:g} points apart: {line}", style="bold red", highlight=False, markup=False
        )
    console.print(str(found.result.run), style="dim", highlight=False, markup=False)


def _print_parts(table: Table, key: str, name: str, score: SetScore) -> None:
    """Cases a and b beside the paper's; of the first set SICK alone."""
    for part in score.parts:
        if part.by == "case":
            paper = CASES.get(key, ())
            note = f"paper {paper['ab'.index(part.name)]:.2f}" if paper else ""
            label = f"case {part.name}"
        elif name == ALSO_SICK and part.name == "sick":
            label, note = "of SICK", ""
        else:
            continue
        table.add_row("", label, f"{100 * part.plus:.2f}", f"{100 * part.star:.2f}", "",
                      f"{100 * part.share.accuracy:.2f}", note)  # fmt: skip
