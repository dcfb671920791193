"""Tables 2 to 6 of Zhu, Li & de Melo (2018) beside ours, every row with where it comes from.

The paper's triplets are not published; ours are made by the same rules from the same corpora (Table 1's
sizes), and of the paper's vectors only some can be had. So the rows are comparable, not the same experiment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from palaver.errors import UserError
from palaver.models.encoders import Encoder, Places, open_encoder
from palaver.probes.probe import probe
from palaver.probes.recipe import SETS
from palaver.probes.results import ProbeResult, SetScore
from palaver.progress import Progress, no_progress
from palaver.reports import lines
from palaver.reproduce.comparison import load_figures

ENCODERS = {
    "glove": "Glove Avg",
    "p-means": "P Means",
    "sent2vec": "Sent2Vec",
    "skipthought": "SkipThought",
    "infersent": "InferSent",
}
"""Our name -> the paper's row."""
MODERN = ("minilm", "bge-small", "answerai-colbert", "wordllama", "glove-100d", "smollm2", "smollm2=15")
"""Encoders the paper did not have. `palaver get` brings those that are not here."""

FIGURES = load_figures("probes")
PAPER: dict[str, dict[str, list[float]]] = FIGURES["sets"]
"""Set -> encoder -> S∧S+, S∧S*, S+∧S* and accuracy, in per cent."""
CASES: dict[str, dict[str, float]] = FIGURES["cases"]
"""Section 3.3: accuracy on Clause Relatedness in cases a and b."""
CLOSE = 5.0
"""Points of accuracy within which GloVe averages and P-Means should be."""
KNOWN_FAR = {("negation-detection", "glove"), ("negation-detection", "p-means")}
"""Where they are known to be farther: no pair of verbs has more than a twentieth of Negation Detection, so
news fill it up, in which a "not" moves an average further than a synonym does. On SICK they are close."""
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
        return tuple(self._far_cells().values())

    @property
    def lost(self) -> tuple[str, ...]:
        """Those of `far` that are not known to be."""
        return tuple(text for cell, text in self._far_cells().items() if cell not in KNOWN_FAR)

    def _far_cells(self) -> dict[tuple[str, str], str]:
        far = {}
        for key in ("glove", "p-means"):
            for name in self.result.sets:
                score, paper = self.score(key, name), PAPER[name][key][3]
                if score is not None and abs(100 * score.share.accuracy - paper) > CLOSE:
                    parts = [p for p in score.parts if (p.by, p.name) == ("corpus", "sick")]
                    sick = f" ({100 * parts[0].share.accuracy:.2f} on sentences of SICK)" if parts else ""
                    ours = f"{100 * score.share.accuracy:.2f}{sick}"
                    far[name, key] = f"{SETS[name].title}, {ENCODERS[key]}: {ours}, the paper has {paper:.2f}"
        return far

    def to_json(self) -> str:
        """The paper's figures, which of our encoders stands for which of its rows, and our whole result."""
        content = {
            "paper": {"sets": PAPER, "cases": CASES, "rows": ENCODERS},
            "encoders": self.names,
            "missing": self.missing,
            "far": self.far,
            "result": json.loads(self.result.to_json()),
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def reproduce(
    places: Places,
    *,
    triplets: Path | None = None,
    weights: Sequence[str] = (),
    cache: Path | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Reproduction:
    """The paper's five encoders and today's, as far as they can be had; `weights` replace a default."""
    own = {one.partition("=")[0]: one for one in weights}
    opened: list[Encoder] = []
    names: dict[str, str] = {}
    missing = []
    for key in dict.fromkeys((*ENCODERS, *MODERN, *own)):
        try:
            encoder = open_encoder(own.get(key, key), places)
        except UserError as error:
            if key in own:
                raise
            missing.append(f"{ENCODERS.get(key, key)}: {error.message} ({error.hint})")
            continue
        opened.append(encoder)
        names[key] = encoder.name
    result = probe(opened, triplets=triplets, data=places.data, cache=cache, seed=seed, progress=progress)
    return Reproduction(result, names, tuple(missing))


def print_reproduction(tables: Reproduction, console: Console) -> None:
    """Every table, with the paper's row above ours."""
    result = tables.result
    paper = "Exploring Semantic Properties of Sentence Embeddings (Zhu, Li & de Melo 2018)"
    lines.line(console, paper, "bold")
    for name in result.sets:
        kind = SETS[name]
        sizes = f"{result.n_triplets[name]} triplets (paper {kind.paper_size})"
        title = f"Table {kind.table}: {kind.title}, {sizes}"
        table = lines.table(("", ""), ("S∧S+", "S∧S*", "S+∧S*", "accuracy", "95% interval"), title=title)
        for key in tables.names | ENCODERS:
            label = ENCODERS.get(key, key)
            if key in PAPER[name]:
                table.add_row(label, "paper", *(f"{v:.2f}" for v in PAPER[name][key]), "")
                label = ""
            score = tables.score(key, name)
            if score is not None:
                share = score.share
                shares = (score.plus.mean, score.star.mean, score.between.mean, share.accuracy)
                interval = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
                table.add_row(Text(label), "ours", *(f"{100 * v:.2f}" for v in shares), interval)
                _add_parts(table, key, name, score)
        lines.print_table(console, table)
        console.print()
    lines.line(console, "Where our rows come from", "bold")
    by_name = {row.name: row for row in result.encoders}
    for key, encoder in tables.names.items():
        provenance = f"{ENCODERS.get(key, key)}: {by_name[encoder].provenance}"
        lines.indented(console, provenance, first=Text("- "))
    for line in tables.missing:
        lines.indented(console, f"not here: {line}", "yellow", first=Text("- "))
    for note in result.notes:
        lines.indented(console, note, "yellow", first=Text("- "))
    for line in tables.far:
        lines.line(console, f"more than {CLOSE:g} points apart: {line}", "bold red")
    lines.line(console, str(result.run), "dim")


def _add_parts(table: Table, key: str, name: str, score: SetScore) -> None:
    """The control of case, other variants, cases a and b beside the paper's; of the first set SICK alone."""
    for variant in score.variants:
        label = "other case" if variant.name == "case" else variant.name
        values = (variant.plus, variant.star, variant.share.accuracy)
        plus, star, accuracy = (f"{100 * v:.2f}" for v in values)
        note = "" if variant.name == "case" else f"same sentences {100 * variant.same.accuracy:.2f}"
        table.add_row("", label, plus, star, "", accuracy, note)
    for part in score.parts:
        if part.by == "case":
            label = f"case {part.name}"
            note = f"paper {CASES[key][part.name]:.2f}" if key in CASES else ""
        elif name == ALSO_SICK and part.name == "sick":
            label, note = "of SICK", ""
        else:
            continue
        plus, star, accuracy = (f"{100 * v:.2f}" for v in (part.plus, part.star, part.share.accuracy))
        table.add_row("", label, plus, star, "", accuracy, note)
