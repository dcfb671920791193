"""Topical-Chat: Tables 3, 4 and 5 of Gopalakrishnan et al. (2019) beside ours.

Tables 3 and 5 are read from results files, since a row is a training of its own. Where there is no run the
row says so. Table 4 comes from the ratings of snippets (`palaver.reproduce.snippets`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from palaver.reports import lines
from palaver.reproduce.comparison import load_figures
from palaver.reproduce.snippets import SnippetTable, print_snippets
from palaver.reproduce.topical_chat_runs import SPLITS, Figure, Run
from palaver.tabular import Tabular

PAPER = "Topical-Chat (Gopalakrishnan et al. 2019)"
FIGURES = load_figures("topical_chat")
NOT_REACHED = "not reached, no run in the results files"
NO_SENTENCE = "no-sentence"
"""In place of a selector: a model that was trained with knowledge gets none."""
HEADS = {"ppl": "PPL", "f1": "F1", "div_1": "Div. 1", "div_2": "Div. 2"}
REMARKS = (
    "ours is perplexity per word: the end of a response counts as a word, and unknown words cost their "
    "spelling; the paper does not say how it counts, so its perplexities are not comparable",
    "in brackets: 95% intervals, over conversations for perplexity, over responses for the others",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of Table 3 or 5: the paper's figures, and those of our runs of it."""

    table: str
    label: str
    run: str
    paper: Mapping[str, Sequence[float]]
    """Column -> frequent, rare; empty for rows that are ours alone."""
    ours: Mapping[str, Mapping[str, Figure]]
    """Split -> column -> figure; of several seeds the mean, and the outermost limits."""
    n: Mapping[str, int]
    seeds: tuple[int, ...] = ()
    note: str = ""
    """How long it was trained and why it stopped; or that it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicalChatTables(Tabular):
    """All rows, and Table 4 where there are ratings."""

    rows: tuple[Row, ...]
    snippets: SnippetTable | None = None
    remarks: tuple[str, ...] = REMARKS

    def to_json(self) -> str:
        """The rows as they are."""
        content: dict[str, Any] = {
            "paper": PAPER,
            "rows": [asdict(row) for row in self.rows],
            "remarks": self.remarks,
        }
        if self.snippets is not None:
            content["table_4"] = self.snippets.as_dict()
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _headline(self) -> str:
        n_reached = sum(bool(row.ours) for row in self.rows)
        return f"{PAPER}: {n_reached} of {len(self.rows)} rows reached"

    def _tables(self) -> dict[str, Any]:
        cells = [
            (row, split, column, figure)
            for row in self.rows
            for split, columns in row.ours.items()
            for column, figure in columns.items()
        ]
        return {
            "figures": {
                "table": [row.table for row, *_ in cells],
                "row": [row.label for row, *_ in cells],
                "split": [split for _, split, *_ in cells],
                "column": [column for *_, column, _ in cells],
                "paper": [_paper(row, split, column) for row, split, column, _ in cells],
                "ours": [figure.value for *_, figure in cells],
                "low": [figure.low for *_, figure in cells],
                "high": [figure.high for *_, figure in cells],
            }
        }


def reproduce(runs: Sequence[Run], snippets: SnippetTable | None = None) -> TopicalChatTables:
    """The tables of the paper with the figures of `runs`."""
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.name, []).append(run)
    rows = []
    for table in ("table_3", "table_5"):
        splits = SPLITS if table == "table_3" else SPLITS[:1]
        for entry in FIGURES[table]:
            own = by_name.get(entry["run"], [])
            if own or not entry.get("optional"):
                rows.append(_row(table, entry["label"], entry["run"], entry.get("paper", {}), own, splits))
            if table == "table_3":
                rows += _with_selectors(entry, by_name, splits)
    return TopicalChatTables(rows=tuple(rows), snippets=snippets)


def _with_selectors(
    entry: Mapping[str, Any], by_name: Mapping[str, list[Run]], splits: Sequence[str]
) -> list[Row]:
    """`tf-knowledge/bm25` is `tf-knowledge` with the sentences that bm25 chose."""
    rows = []
    for name, runs in by_name.items():
        base, _, selector = name.partition("/")
        if selector and base == entry["run"]:
            told = "no sentence" if selector == NO_SENTENCE else f"knowledge by {selector}"
            rows.append(_row("table_3", f"{entry['label']}, {told}", name, {}, runs, splits))
    return rows


def _row(
    table: str,
    label: str,
    name: str,
    paper: Mapping[str, Sequence[float]],
    runs: Sequence[Run],
    splits: Sequence[str],
) -> Row:
    ours = {split: _joined([run.figures[split] for run in runs if split in run.figures]) for split in splits}
    ours = {split: columns for split, columns in ours.items() if columns}
    counts = {split: min(run.n[split] for run in runs if split in run.n) for split in ours}
    seeds = tuple(run.seed for run in runs if run.seed is not None)
    return Row(
        table=table, label=label, run=name, paper=paper, ours=ours, n=counts, seeds=seeds, note=_note(runs)
    )  # fmt: skip


def _note(runs: Sequence[Run]) -> str:
    if not runs:
        return NOT_REACHED
    trained = dict.fromkeys(run.training for run in runs if run.epochs)
    if not trained:
        return "" if runs[0].seed == 0 else runs[0].training
    seeds = f"{len(runs)} seeds: " if len(runs) > 1 else ""
    return seeds + " | ".join(trained)


def _joined(several: Sequence[Mapping[str, Figure]]) -> dict[str, Figure]:
    """The mean over seeds, with the outermost limits of their intervals."""
    columns = {}
    for column in HEADS:
        figures = [figures[column] for figures in several if column in figures]
        if figures:
            lows = [figure.low for figure in figures if figure.low is not None]
            highs = [figure.high for figure in figures if figure.high is not None]
            mean = float(np.mean([figure.value for figure in figures]))
            columns[column] = Figure(mean, min(lows, default=None), max(highs, default=None))
    return columns


def _paper(row: Row, split: str, column: str) -> float | None:
    published = row.paper.get(column, ())
    place = SPLITS.index(split)
    return published[place] if place < len(published) else None


def print_tables(tables: TopicalChatTables, console: Console) -> None:
    """Every table with the paper's figures and ours."""
    lines.line(console, PAPER, "bold")
    shows_runs = tables.snippets is None or any(row.ours for row in tables.rows)
    if shows_runs:
        _print_rows(console, tables, "table_3", "Table 3: test frequent / rare")
    if tables.snippets is not None:
        print_snippets(tables.snippets, console)
    if shows_runs:
        _print_rows(console, tables, "table_5", "Table 5: tokens of the history, TF (w/ k.), test frequent")
        for remark in tables.remarks:
            lines.indented(console, remark, first=Text("- "))


def _print_rows(console: Console, tables: TopicalChatTables, name: str, title: str) -> None:
    rows = [row for row in tables.rows if row.table == name]
    heads = [f"{who}\n{head}" for head in HEADS.values() for who in ("paper", "ours")]
    table = lines.table(("",), (*heads, "turns"), title=title)
    for row in rows:
        cells = [cell for column in HEADS for cell in (_published(row, column), _measured(row, column))]
        turns = " / ".join(f"{n:,}" for n in row.n.values())
        table.add_row(Text(row.label), *map(Text, cells), turns)
    lines.print_table(console, table)
    for row in rows:
        if row.note and row.ours:
            lines.indented(console, f"{row.label}: {row.note}", "dim")
    missing = [row.label for row in rows if not row.ours]
    if missing:
        lines.indented(console, f"{NOT_REACHED}: {', '.join(missing)}", "yellow")
    console.print()


def _published(row: Row, column: str) -> str:
    digits = 1 if column == "ppl" else 2
    return " / ".join(f"{value:.{digits}f}" for value in row.paper.get(column, ())) or "–"


def _measured(row: Row, column: str) -> str:
    digits = 1 if column == "ppl" else 3
    shown = []
    for columns in row.ours.values():
        figure = columns.get(column)
        if figure is None:
            shown.append("–")
            continue
        limits = "" if figure.low is None else f" [{figure.low:.{digits}f}, {figure.high:.{digits}f}]"
        shown.append(f"{figure.value:.{digits}f}{limits}")
    return " /\n".join(shown) or "–"
