"""Everything that an evaluation reads, by content: a run whose inputs and outputs are unchanged is finished.

Nothing is opened for it: a model is its files, a function the file of its module, a server its options.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from palaver.artefacts import (
    RECORD,
    compare_records,
    digest_files,
    make_record,
    read_fields,
    read_record,
    write_record,
)
from palaver.errors import UserError
from palaver.evaluation.experiment import Experiment
from palaver.evaluation.replies import read_contexts
from palaver.generation.options import CheckpointOptions, HuggingFaceOptions, PythonOptions, ReplayOptions
from palaver.registry import is_object_name
from palaver.schema import RunRecord

RESPONSES = "responses.jsonl"
RATINGS = "ratings.parquet"
RESULTS = "results.json"
PACKAGES = ("palaver", "numpy", "scipy", "polars", "torch", "transformers")


def record_of(experiment: Experiment, data: Path | None = None) -> RunRecord:
    """The record of a run of this experiment, now."""
    inputs = dict(_inputs(experiment, data))
    return make_record(
        "palaver evaluate", experiment.settings(), seed=experiment.seed, data=inputs, packages=PACKAGES
    )


def _inputs(experiment: Experiment, data: Path | None) -> Iterator[tuple[str, str]]:
    source = Path(experiment.contexts_source)
    if source.is_file():
        yield "contexts", digest_files([source])
    else:
        yield "contexts", read_contexts(experiment, data).survey().digest
    if experiment.test.knowledge is not None:
        yield "knowledge", digest_files([experiment.folder / experiment.test.knowledge])
    for path in experiment.rating_files:
        yield f"ratings: {path.name}", digest_files([path])
    for name, spec in experiment.systems.items():
        options = spec.options
        if isinstance(options, PythonOptions):
            yield f"system: {name}", _module_digest(options.function, spec.folder)
        elif isinstance(options, CheckpointOptions | ReplayOptions):
            yield from _files(f"system: {name}", spec.folder / options.path)
        elif isinstance(options, HuggingFaceOptions):
            yield from _files(f"system: {name}", Path(options.model))
    for name in experiment.judges:
        which = name.partition("=")[2]
        if is_object_name(name):
            yield f"judge: {name}", _module_digest(name, experiment.folder)
        elif which:
            yield from _files(f"judge: {name}", Path(which))


def _files(name: str, path: Path) -> Iterator[tuple[str, str]]:
    """A file, or all files of a folder; nothing for a name on a hub."""
    if path.is_file():
        yield name, digest_files([path])
    elif path.is_dir():
        yield name, digest_files([file for file in path.rglob("*") if file.is_file()])


def _module_digest(function: str, folder: Path) -> str:
    """Of the file of MODULE in MODULE:FUNCTION; the module is not run."""
    module = function.partition(":")[0]
    relative = Path(*module.split("."))
    for place in (Path.cwd(), folder):
        for file in (place / relative.with_suffix(".py"), place / relative / "__init__.py"):
            if file.is_file():
                return digest_files([file])
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return digest_files([Path(spec.origin)]) if spec is not None and spec.origin else ""


def outputs_of(folder: Path, names: list[str]) -> dict[str, str]:
    """Name -> digest of the files that a run wrote."""
    return {name: digest_files([folder / name]) for name in names if (folder / name).is_file()}


def is_finished(folder: Path, record: RunRecord, names: list[str]) -> bool:
    """Whether the folder holds the whole outcome of a run with this record, untouched."""
    if not (folder / RECORD).is_file():
        return False
    try:
        before, fields = read_record(folder), read_fields(folder)
    except UserError:
        return False  # it is written again
    if before.versions != record.versions or compare_records(before, record):
        return False
    outputs = fields.get("outputs")
    wanted = set(names)
    return (
        isinstance(outputs, dict) and wanted <= set(outputs) and outputs == outputs_of(folder, list(outputs))
    )


def finish(folder: Path, record: RunRecord, names: list[str]) -> None:
    """Write down that the run is complete."""
    write_record(folder, record, outputs=outputs_of(folder, names))


def unfinish(folder: Path) -> None:
    """What the folder holds is no longer the outcome of a whole run."""
    (folder / RECORD).unlink(missing_ok=True)
