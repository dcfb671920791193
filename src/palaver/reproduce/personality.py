"""Automatic Evaluation of Neural Personality-based Chatbots (Xing & Fernández 2018).

Tables 1 to 3 beside ours. The recogniser is Palaver's own, not the paper's, so numbers are compared, not
matched: what is checked is that the gold transcripts are recovered at least as well as in the paper. Beside
the paper's rows stand the controls it lacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from palaver.corpora.catalogue import corpus
from palaver.errors import DataError, UserError
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice, Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.results import Condition, Distinguishability
from palaver.personality.sources import read_pools
from palaver.personality.verdict import VALIDITY
from palaver.progress import Progress, no_progress
from palaver.reports import lines
from palaver.reproduce.comparison import load_figures
from palaver.schema.run import plain

PAPER = "Automatic Evaluation of Neural Personality-based Chatbots (Xing & Fernández 2018)"
SHOWS = {"friends": "Friends", "big-bang-theory": "The Big Bang Theory"}
MIN_TURNS = 2000
DROPPED = 100
PROMPT = "Do you love me?"
TRAITS = ("Open", "Conscientious", "Extravert", "Agreeable", "Neurotic")
HIGH, AVERAGE = 6.5, 3.5
EXTREMES = {name: tuple(HIGH if trait == name else AVERAGE for trait in TRAITS) for name in TRAITS}
"""Section 5.2: one trait high, the others average."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Precision and recall with σ over the characters, and F1; what nobody reports is missing."""

    precision: float | None = None
    precision_sigma: float | None = None
    recall: float | None = None
    recall_sigma: float | None = None
    f1: float

    @classmethod
    def of(cls, condition: Condition | None) -> Scores | None:
        """Those of a condition, where it was tried."""
        if condition is None:
            return None
        return cls(**{f.name: getattr(condition, f.name) for f in fields(cls)})


_FIGURES = load_figures("personality")
TABLE_1: dict[str, dict[str, Scores]] = {
    show: {label: Scores(**numbers) for label, numbers in rows.items()}
    for show, rows in _FIGURES["table_1"].items()
}
TABLE_2: dict[str, Scores] = {label: Scores(**numbers) for label, numbers in _FIGURES["table_2"].items()}
TABLE_3: dict[str, str] = _FIGURES["table_3"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of a table: the paper's numbers where it has them, and ours where they were computed."""

    table: str
    label: str
    paper: Scores | None = None
    ours: Scores | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """All tables, and the results they come from."""

    rows: tuple[Row, ...]
    examples: tuple[tuple[str, str, str], ...]
    """Table 3: who, the paper's response, ours."""
    results: Mapping[str, Distinguishability] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """What should be at least the paper's, and is not."""

    def to_json(self) -> str:
        """The rows of all tables, and the whole results they come from."""
        content = {
            "paper": PAPER,
            "rows": plain(self.rows),
            "examples": self.examples,
            "remarks": self.remarks,
            "missed": self.missed,
            "results": {title: json.loads(result.to_json()) for title, result in self.results.items()},
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True, kw_only=True)
class Responses:
    """Files of responses that `palaver generate` wrote, one condition a character."""

    speaker: Path | None = None
    personality: Path | None = None
    extremes: Path | None = None


def reproduce(
    folder: str | Path,
    recogniser: Any,
    *,
    settings: Settings | None = None,
    responses: Responses | None = None,
    examples: Sequence[tuple[str, str, str]] = (),
    progress: Progress = no_progress,
) -> Reproduction:
    """Both shows' transcripts, and what was generated in their characters' names."""
    s = settings or Settings(unscaled_words=True)
    files = responses or Responses()
    _check(Path(folder))
    results: dict[str, Distinguishability] = {}
    generated = {
        name: _read(path, recogniser, s, progress)
        for name, path in (("Speaker", files.speaker), ("Personality", files.personality))
        if path is not None
    }
    rows: list[Row] = []
    for show, title in SHOWS.items():
        choice = Choice(min_utterances=MIN_TURNS)
        pools = read_pools(show, recogniser, choice, root=folder, engine=s.engine, progress=progress)
        results[title] = gold = run_protocol(pools, s, progress=progress)
        for name, all_pools in generated.items():
            of_show = _of_show(all_pools, pools.characters, name)
            results[f"{title}, {name}"] = run_protocol(of_show, s, progress=progress)
        rows += _table_1(show, title, gold, results)
    if files.extremes is not None:
        results["Extremes"] = run_protocol(
            _read(files.extremes, recogniser, s, progress), s, progress=progress
        )
    rows += _table_2(results.get("Extremes"))
    return Reproduction(
        rows=tuple(rows),
        examples=tuple(examples),
        results=results,
        remarks=tuple(_remarks(results)),
        missed=tuple(_missed(results)),
    )


def _check(folder: Path) -> None:
    missing = [
        f"{title}: no file {corpus(show).layouts[0].file}"
        for show, title in SHOWS.items()
        if corpus(show).find(folder) is None
    ]
    if missing:
        raise DataError(
            f"{folder} does not hold the transcripts",
            "see palaver corpus show friends, big-bang-theory, and name their folder with --data",
            missing,
        )


def _read(path: Path, recogniser: Any, settings: Settings, progress: Progress) -> Pools:
    """Responses without the 100 most frequent ones common to all, unless the file is clean already."""
    choice = Choice(drop_common=0 if ".cleaned." in path.name else DROPPED)
    return read_pools(path, recogniser, choice, engine=settings.engine, progress=progress)


def _of_show(pools: Pools, characters: Sequence[str], name: str) -> Pools:
    there = [who for who in characters if who in pools.characters]
    if len(there) < len(characters):
        missing = ", ".join(who for who in characters if who not in there)
        raise UserError(
            f"the {name} responses have none of {missing}", f"they have: {', '.join(pools.characters)}"
        )
    return pools.only(there)


def _table_1(
    show: str, title: str, gold: Distinguishability, results: Mapping[str, Distinguishability]
) -> Iterator[Row]:
    table = f"Table 1: {title}"

    def row(label: str, condition: str, result: Distinguishability | None = gold, note: str = "") -> Row:
        ours = Scores.of(result.condition(condition)) if result is not None else None
        return Row(table=table, label=label, paper=TABLE_1[show].get(label), ours=ours, note=note)

    yield row("Baseline", "shuffled labels", note="shuffled labels")
    yield row("  pseudo-characters", "pseudo-characters", note="utterances dealt out anew")
    yield row("Gold", "characters")
    yield row("  by episode", "characters by group", note=f"no {gold.group_noun} on both sides")
    yield row("  pseudo, by episode", "pseudo-characters by group")
    for name in ("Speaker", "Personality"):
        result = results.get(f"{title}, {name}")
        yield row(name, "characters", result, "" if result else "needs responses")
        if result is not None:
            note = f"distinguishable: {result.verdict.answer}"
            yield row("  pseudo-characters", "pseudo-characters", result)
            yield row("  by context", "characters by group", result, note)
            yield row("  pseudo, by context", "pseudo-characters by group", result)
    for label, features in (("Words", "words"), ("Words, no stop words", "words without stop words")):
        unscaled = f"{features}, unscaled"
        if gold.condition(unscaled) is not None:
            yield row(label, unscaled, note="section 5.1, not scaled")
        else:
            yield row(label, features, note="section 5.1")
        yield row("  scaled", features, note="as the traits are")
    yield row("  scaled, by episode", "words by group")


def _table_2(result: Distinguishability | None) -> Iterator[Row]:
    table = "Table 2: extreme personalities"
    ours: dict[str, Scores | None] = dict.fromkeys(TABLE_2)
    if result is not None:
        ours = {
            "Baseline": Scores.of(result.condition("shuffled labels")),
            "Average": Scores.of(result.condition("characters")),
            "  pseudo-characters": Scores.of(result.condition("pseudo-characters")),
            "  by context": Scores.of(result.condition("characters by group")),
            "  pseudo, by context": Scores.of(result.condition("pseudo-characters by group")),
        }
        ours |= {label: _type_scores(result, label) for label in EXTREMES}
    note = "" if result else "needs responses"
    for label, scores in ours.items():
        paper = TABLE_2.get(label)
        yield Row(table=table, label=label, paper=paper, ours=scores, note=note if paper else "")


def _type_scores(result: Distinguishability, label: str) -> Scores | None:
    condition = result.condition("characters")
    for c in condition.characters if condition is not None else ():
        if _same_type(c.character, label):
            return Scores(precision=c.precision, recall=c.recall, f1=c.f1)
    return None


def _same_type(name: str, label: str) -> bool:
    """ "Open", "openness" or "6.5,3.5,3.5,3.5,3.5"."""
    if name == ",".join(f"{score:g}" for score in EXTREMES[label]):
        return True
    return name.casefold()[:4] == label.casefold()[:4]


def _missed(results: Mapping[str, Distinguishability]) -> Iterator[str]:
    for show, title in SHOWS.items():
        gold = results[title].condition("characters")
        least = TABLE_1[show]["Gold"].f1
        if gold is not None and round(gold.f1, 2) < least:
            yield f"{title}: gold F1 {gold.f1:.3f}, the paper has {least:.2f}"


def _remarks(results: Mapping[str, Distinguishability]) -> Iterator[str]:
    for title, result in results.items():
        yield f"{title}: {result.verdict.text}"
    yield (
        "Words: scaled like the traits (or as relative frequencies), the 200 most frequent words recover "
        "nearly all samples, so the paper’s low bag of words does not show what words can tell. Raw counts, "
        "among which an RBF kernel sees every sample far from every other, come nearest to its figures."
    )


def print_reproduction(tables: Reproduction, console: Console) -> None:
    """Every table with the paper's numbers and ours, then the verdicts in words."""
    lines.line(console, f"{PAPER}\n± σ over the characters", "bold")
    for name in dict.fromkeys(row.table for row in tables.rows):
        heads = [f"{who}\n{head}" for who in ("paper", "ours") for head in ("prec.", "recall", "F1")]
        table = lines.table(("",), heads, title=name)
        rows = [row for row in tables.rows if row.table == name]
        for row in rows:
            table.add_row(Text(row.label), *_cells(row.paper), *_cells(row.ours))
        lines.print_table(console, table)
        for label, note in {row.label.strip(): row.note for row in rows if row.note}.items():
            lines.indented(console, f"{label}: {note}", "dim")
        console.print()
    if tables.examples:
        table = lines.table(("", "paper", "ours"), (), title=f"Table 3: responses to “{PROMPT}”")
        for example in tables.examples:
            table.add_row(*map(Text, example))
        lines.print_table(console, table)
    for remark in (*tables.remarks, VALIDITY):
        lines.indented(console, remark, first=Text("- "))
    for text in tables.missed:
        lines.line(console, f"MISSED: {text}", "bold red")
    for title, result in tables.results.items():
        lines.line(console, f"{title}: {result.run}", "dim")


def _cells(scores: Scores | None) -> list[str]:
    if scores is None:
        return ["", "", ""]
    cells = [_cell(scores.precision, scores.precision_sigma), _cell(scores.recall, scores.recall_sigma)]
    return [*cells, _cell(scores.f1)]


def _cell(value: float | None, sigma: float | None = None) -> str:
    if value is None:
        return ""
    spread = "" if sigma is None else f"±{sigma:.2f}".replace("0.", ".")
    return f"{value:.2f}{spread}"
