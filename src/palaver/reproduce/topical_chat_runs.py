"""Runs of response models on Topical-Chat's test sets, from the results files that the experiments write.

Two layouts are read: `{run: {"epochs": […], "test": {split: figures}}}` of experiments/responders, and
`{"table": [{"run", "seed", "split", …}], "training": […]}` of experiments/topical_chat/smollm.py. A figure is
a number or `[value, low, high]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.errors import DataError, UserError, count_of

SPLITS = ("test_freq", "test_rare")
COLUMNS = {"ppl": "ppl_word", "f1": "unigram_f1", "div_1": "diversity_1", "div_2": "diversity_2"}
"""A column of the tables -> its name in results files."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, with its interval where one was kept."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """One checkpoint on the test sets."""

    name: str
    seed: int | None = None
    figures: Mapping[str, Mapping[str, Figure]]
    """Split -> column -> figure."""
    n: Mapping[str, int] = field(default_factory=dict)
    """Split -> how many turns."""
    epochs: int = 0
    best_epoch: int = 0
    minutes: float = 0.0
    end: str = ""
    """Why its training stopped."""

    @property
    def training(self) -> str:
        """How long it was trained, in words."""
        if not self.epochs:
            return "how long it was trained was not kept"
        best = f", best {self.best_epoch}" if 0 < self.best_epoch < self.epochs else ""
        end = f"; {self.end}" if self.end else ""
        return f"{count_of(self.epochs, 'epoch')}{best}, {count_of(round(self.minutes), 'minute')}{end}"


def read_runs(paths: Sequence[str | Path]) -> list[Run]:
    """The runs of all files. The same run twice is refused."""
    runs: list[Run] = []
    places: dict[tuple[str, int | None], Path] = {}
    for path in map(Path, paths):
        for run in _read_file(path):
            key = (run.name, run.seed)
            if key in places:
                named = run.name if run.seed is None else f"{run.name} with seed {run.seed}"
                raise UserError(f"{named} is in {places[key]} and in {path}", "give the file that counts")
            places[key] = path
            runs.append(run)
    return runs


def _read_file(path: Path) -> list[Run]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a results file: {error}") from None
    try:
        runs = list(_of_table(content) if "table" in content else _of_folders(content))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problems = [f"there is no {error}"] if isinstance(error, KeyError) else []
        raise DataError(f"{path} does not have the layout of a results file", _EXPECTED, problems) from None
    if not runs:
        raise DataError(f"{path} holds no figures of test sets", _EXPECTED)
    return runs


_EXPECTED = (
    "expected what experiments/responders/evaluate.py or experiments/topical_chat/smollm.py writes, "
    "not what this command prints"
)


def _of_folders(content: Mapping[str, Any]) -> Iterator[Run]:
    for name, parts in content.items():
        tests = parts.get("test", parts)
        known = {split: tests[split] for split in SPLITS if split in tests}
        if not known:
            continue
        epochs = parts.get("epochs", [])
        yield Run(
            name=name,
            figures={split: _figures(figures) for split, figures in known.items()},
            n={split: int(figures["n"]) for split, figures in known.items()},
            **_training(epochs, parts.get("end", ""), "valid_ppl"),
        )


def _of_table(content: Mapping[str, Any]) -> Iterator[Run]:
    trained = {key: run for training in content["training"] for key, run in training["runs"].items()}
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in content["table"]:
        rows.setdefault((row["run"], row["seed"]), {})[row["split"]] = row
    for (name, seed), by_split in rows.items():
        training = trained.get(f"{name.partition('/')[0]}-{seed}", {})
        yield Run(
            name=name,
            seed=seed,
            figures={split: _figures(row) for split, row in by_split.items()},
            n={split: int(row["n"]) for split, row in by_split.items()},
            **_training(training.get("epochs", []), training.get("end", ""), "valid_ppl_word"),
        )


def _training(epochs: Sequence[Mapping[str, Any]], end: str, criterion: str) -> dict[str, Any]:
    if not epochs:
        return {"end": end}
    best = min(epochs, key=lambda epoch: epoch.get(criterion, 0.0))
    return {
        "epochs": len(epochs),
        "best_epoch": int(best["epoch"]),
        "minutes": epochs[-1]["seconds"] / 60,
        "end": end,
    }


def _figures(row: Mapping[str, Any]) -> dict[str, Figure]:
    figures = {}
    for column, name in COLUMNS.items():
        value = row.get(name)
        if isinstance(value, list):
            figures[column] = Figure(*map(float, value))
        elif value is not None:
            figures[column] = Figure(float(value))
    return figures
