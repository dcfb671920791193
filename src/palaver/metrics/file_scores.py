"""The metrics of files: every system in them, in one pass over the rows.

A file holds responses in any usual shape, or one response a line (`.txt`), with references beside it. Texts
are turned into numbers as they are read and not kept, and the numbers of a large file lie in a temporary one
(`Blocks`), so a file may be larger than memory. Metrics that read the texts hold them all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from palaver.errors import DataError, UserError, count_of
from palaver.metrics.blocks import Blocks, Ids
from palaver.metrics.differences import ALPHA, MetricDifference
from palaver.metrics.evaluate import MetricResult, choose_metrics, measure
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import Metric
from palaver.metrics.systems import SystemResponses
from palaver.metrics.tokens import Vocabulary
from palaver.progress import Progress, no_progress
from palaver.readers.rating_columns import SCHEMA
from palaver.readers.responses import read_responses
from palaver.readers.rows import file_stem
from palaver.readers.texts import is_plain_text, read_texts
from palaver.schema.judge import Need
from palaver.schema.rating import value_text
from palaver.schema.response import Response
from palaver.statistics.bootstrap import Resampling, least_p
from palaver.tabular import Tabular, columns_of, few, show_number

ALL_RESPONSES = "(all responses)"
"""The item of a figure about everything a system said."""
UNANSWERED = "responses that the system did not give"
CUT = "could not be read whole by the model: the response, its context or its reference was cut"
_FEWEST_FOR_CLUSTERS = 1000
"""Responses; with fewer, a metric that clusters them hangs on which texts happen to fall together."""
_BUFFER = 20_000
"""Responses whose texts are held at a time."""


@dataclass(frozen=True, repr=False)
class FileScores(Tabular):
    """Each metric of each system, and each pair of systems. Tables: scores, differences."""

    scores: tuple[MetricResult, ...]
    differences: tuple[MetricDifference, ...]
    systems: tuple[SystemResponses, ...]
    metrics: tuple[Metric, ...]
    left_out: Mapping[str, int]
    notes: tuple[str, ...]

    def _headline(self) -> str:
        first = few([f"{row.name} of {row.system} = {show_number(row.value)}" for row in self.scores])
        return f"{first}; {count_of(len(self.systems), 'system')}"

    def _tables(self) -> dict[str, Any]:
        return {
            "scores": columns_of(MetricResult, self.scores),
            "differences": columns_of(MetricDifference, self.differences),
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        scores = [
            {
                "metric": row.name,
                "system": row.system,
                "value": row.value,
                "low": row.low,
                "high": row.high,
                "n": row.n,
                "n_undefined": row.n_undefined,
                "better": row.better,
                "reason": row.reason,
                "signature": row.signature,
            }
            for row in self.scores
        ]
        columns = columns_of(MetricDifference, self.differences)
        differences = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "scores": scores,
            "differences": differences,
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }

    def rating_frames(self) -> Iterator[pl.DataFrame]:
        """Each response's score as a row of the table of ratings; a pooled figure is one row a system."""
        for metric in self.metrics:
            for system in self.systems:
                if metric.scores is not None:
                    begin = 0
                    for block in system.blocks:
                        values = metric.scores(block)
                        defined = np.flatnonzero(~np.isnan(values))
                        items = [str(system.items[begin + row]) for row in defined.tolist()]
                        yield _rating_frame(metric, system.name, items, values[defined])
                        begin += len(block)
                else:
                    rows = [r for r in self.scores if (r.name, r.system) == (metric.name, system.name)]
                    figures = np.array([row.value for row in rows if not np.isnan(row.value)])
                    yield _rating_frame(metric, system.name, [ALL_RESPONSES] * len(figures), figures)


def _rating_frame(metric: Metric, system: str, items: list[str], values: np.ndarray) -> pl.DataFrame:
    given = {
        "item": items,
        "system": [system] * len(items),
        "rater": [metric.name] * len(items),
        "criterion": [metric.name] * len(items),
        "value": [value_text(value) for value in values.tolist()],
        "kind": ["metric"] * len(items),
        "signature": [metric.signature] * len(items),
    }
    empty = [None] * len(items)
    columns = {name: given.get(name, [""] * len(items) if name == "study" else empty) for name in SCHEMA}
    return pl.DataFrame(columns, schema=SCHEMA)


@dataclass
class _System:
    """What was read of one system so far."""

    path: Path
    blocks: list[Examples] | Blocks
    items: Ids = field(default_factory=Ids)
    """Their ids; left empty where the number of the line is the id."""
    n_responses: int = 0
    waiting: list[Example] = field(default_factory=list)


def score_files(
    paths: str | Path | Sequence[str | Path],
    metrics: Sequence[str | Metric] | None = None,
    *,
    references: Sequence[str | Path] = (),
    columns: Mapping[str, str] | None = None,
    seed: int = 0,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    device: str = "auto",
    progress: Progress | None = None,
) -> FileScores:
    """The metrics of every system in the files. Without `metrics`: all that need no model and that the files
    allow.

    `references` are text files, one true response a line, for files that have one response a line.
    """
    resampling = Resampling.of(confidence, n_replicates, seed)
    files = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    if not files:
        raise UserError("there is no file to score")
    twice = [str(path) for path, count in Counter(files).items() if count > 1]
    if twice:
        raise UserError(f"named twice: {', '.join(twice)}", "name each file once")
    tell = progress or no_progress
    named = None if metrics is None else choose_metrics(metrics, set(get_args(Need)), device)
    keep_texts = any(metric.of_texts for metric in named or ())
    reading = _Reading(keep_texts, tell)
    plain = [is_plain_text(path) for path in files]
    if references and not all(plain):
        odd = files[plain.index(False)]
        raise UserError(
            f"{odd} is no plain text: its references stand in it",
            "a column 'reference' beside 'response', or --column reference=NAME",
        )
    beside = [Path(reference) for reference in references]
    _check_lines([*(path for path, is_plain in zip(files, plain, strict=True) if is_plain), *beside])
    for path, is_plain in zip(files, plain, strict=True):
        if is_plain:
            reading.read_lines(path, beside)
        else:
            reading.read_responses(path, columns)
    systems = reading.systems()
    chosen = choose_metrics(named, {need for need in get_args(Need) if reading.has[need]})
    scores, differences = measure(systems, chosen, resampling, tell)
    notes = [*reading.notes, *_notes_of_cuts(systems, chosen), *_notes_of_clusters(systems, chosen)]
    if n_replicates and any(metric.has_scores for metric in chosen):
        notes += _notes_of_pairs(systems, differences, n_replicates)
    return FileScores(
        scores, differences, tuple(systems), tuple(chosen), dict(reading.left_out), tuple(notes)
    )


def _check_lines(paths: Sequence[Path]) -> None:
    """Line n of every file of text is about the same item, so all need as many lines."""
    n_lines = {path: sum(1 for _ in read_texts(path)) for path in paths}
    if len(set(n_lines.values())) > 1:
        raise DataError(
            "files of text must match line by line:",
            "line n of each answers the same context; score files about other contexts one at a time",
            [f"{path}: {count_of(n, 'line')}" for path, n in n_lines.items()],
        )


def _notes_of_cuts(systems: Sequence[SystemResponses], metrics: Sequence[Metric]) -> Iterator[str]:
    names: dict[tuple[str, int], list[str]] = {}
    for system in systems:
        for metric in metrics:
            n = sum(map(metric.n_cut, system.blocks)) if metric.n_cut is not None else 0
            if n:
                names.setdefault((system.name, n), []).append(metric.name)
    for (name, n), of_metrics in names.items():
        yield f"{', '.join(of_metrics)}: {count_of(n, 'response')} of {name} {CUT}"


def _notes_of_clusters(systems: Sequence[SystemResponses], metrics: Sequence[Metric]) -> Iterator[str]:
    small = [system.name for system in systems if len(system) < _FEWEST_FOR_CLUSTERS]
    for metric in metrics:
        if metric.runs is not None and small:
            yield f"{metric.name} of fewer than {_FEWEST_FOR_CLUSTERS:,} responses ({few(small)}) says little"


def _notes_of_pairs(
    systems: Sequence[SystemResponses], differences: Sequence[MetricDifference], n_replicates: int
) -> Iterator[str]:
    """Pairs that have no item in common, and whether pairs are too many for the replicates or the items."""
    compared = {(row.system, row.other) for row in differences}
    pairs = combinations([system.name for system in systems], 2)
    apart = [f"{one} and {other}" for one, other in pairs if (one, other) not in compared]
    if apart:
        yield f"not compared, for they share no item: {few(apart)}"
    n_pairs = len({(row.system, row.other) for row in differences if row.test})
    tests = {row.test for row in differences}
    least = n_pairs / (1 + n_replicates)
    if "bootstrap" in tests and least >= ALPHA:
        needed = math.ceil(n_pairs / ALPHA)
        yield (
            f"{count_of(n_replicates, 'replicate')} cannot give a p (Holm) below {least:.2g} "
            f"with {count_of(n_pairs, 'pair')}: --replicates {needed} or more"
        )
    n_items = max((row.n for row in differences), default=0)
    least = n_pairs * least_p(n_items)
    if "exact" in tests and least >= ALPHA:
        yield (
            f"{count_of(n_items, 'item')} cannot give a p (Holm) below {min(1.0, least):.2g} "
            f"with {count_of(n_pairs, 'pair')}: only more items can"
        )


class _Reading:
    """Responses become numbers, system by system."""

    def __init__(self, keep_texts: bool, progress: Progress) -> None:
        self.has: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []
        self._keep_texts = keep_texts
        self._progress = progress
        self._vocabulary = Vocabulary()
        self._systems: dict[str, _System] = {}
        self._n_read = self._n_waiting = 0

    def read_responses(self, path: Path, columns: Mapping[str, str] | None) -> None:
        reader = read_responses(path, columns=columns)
        for response in reader:
            self._n_read += 1
            if response.response is None:
                self.left_out[UNANSWERED] += 1
            else:
                self._add(path, response.judged_system, response.id, example_of(response))
        self.notes += reader.notes

    def read_lines(self, path: Path, references: Sequence[Path]) -> None:
        """One response a line; line n of each reference file, which is as long, belongs to it."""
        beside = [read_texts(file) for file in references]
        for said, *expected in zip(read_texts(path), *beside, strict=True):
            self._n_read += 1
            example = Example(said.text, tuple(text.text for text in expected))
            self._add(path, file_stem(path), None, example)

    def _add(self, path: Path, name: str, item: str | None, example: Example) -> None:
        if name not in self._systems:
            self._systems[name] = _System(path, [] if self._keep_texts else Blocks(self._vocabulary))
        system = self._systems[name]
        if system.path != path:
            raise DataError(
                f"{system.path} and {path} both hold responses of {name!r}",
                "give one another name of its system, or join both into one file if it is the same",
            )
        if item is not None:
            system.items.append(item)
        system.n_responses += 1
        system.waiting.append(example)
        self.has["references"] += bool(example.references)
        self.has["knowledge"] += bool(example.knowledge)
        self.has["context"] += bool(example.context)
        self._n_waiting += 1
        if self._n_waiting == _BUFFER:
            self._flush()

    def _flush(self) -> None:
        self._progress("reading", self._n_read, 0)
        for system in self._systems.values():
            if system.waiting:
                system.blocks.append(Examples.of(system.waiting, self._vocabulary))
                system.waiting = []
        self._n_waiting = 0

    def systems(self) -> list[SystemResponses]:
        """All that was read."""
        self._flush()
        if not self._systems:
            raise DataError("there is no response to score", "the systems gave none")
        return [
            SystemResponses(
                name,
                system.items or range(1, system.n_responses + 1),
                [Examples.join(self._vocabulary, system.blocks)]
                if isinstance(system.blocks, list)
                else system.blocks,
            )
            for name, system in self._systems.items()
        ]


def example_of(response: Response) -> Example:
    """What a metric looks at."""
    return Example(response.response or "", response.references, response.knowledge or "", response.context)
