"""Everything that an evaluation reads: a model is its files, a function the file of its module."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from palaver.artefacts import digest_files, make_record
from palaver.evaluation.experiment import Experiment
from palaver.evaluation.replies import read_contexts
from palaver.evaluation.run_record import PACKAGES
from palaver.generation.options import CheckpointOptions, HuggingFaceOptions, PythonOptions, ReplayOptions
from palaver.models.catalogue import PREFIX, shipped_checkpoint
from palaver.registry import is_object_name
from palaver.schema import RunRecord

RESPONSES = "responses.jsonl"
RATINGS = "ratings.parquet"
RESULTS = "results.json"


def record_of(experiment: Experiment, data: Path | None = None) -> RunRecord:
    """The record of a run of this experiment, now."""
    inputs = {name: digest_files(files) for name, files in _files(experiment)}
    if "contexts" not in inputs:
        inputs["contexts"] = read_contexts(experiment, data).survey().digest
    return make_record(
        "palaver evaluate", experiment.settings(), seed=experiment.seed, data=inputs, packages=PACKAGES
    )


def input_files(experiment: Experiment) -> list[Path] | None:
    """All files that a run reads; None where a corpus is read by name, whose files are not known."""
    files = dict(_files(experiment))
    if "contexts" not in files:
        return None
    beside = [experiment.folder / "systems.toml", Path("systems.toml")]
    read = [experiment.path, *(path for path in beside if path.is_file())]
    return [*read, *(path for paths in files.values() for path in paths)]


def _files(experiment: Experiment) -> Iterator[tuple[str, list[Path]]]:
    """What is read -> the files it is read from; nothing for a name on a hub and an address."""
    source = Path(experiment.contexts_source)
    if source.is_file():
        yield "contexts", [source]
    if experiment.test.knowledge is not None:
        yield "knowledge", [experiment.folder / experiment.test.knowledge]
    for path in experiment.rating_files:
        yield f"ratings: {path.name}", [path]
    for name, spec in experiment.systems.items():
        options = spec.options
        files: list[Path] = []
        if isinstance(options, PythonOptions):
            files = _module_file(options.function, spec.folder)
        elif isinstance(options, ReplayOptions):
            files = _all_files(spec.folder / options.path)
        elif isinstance(options, CheckpointOptions):
            is_shipped = options.path.startswith(PREFIX)
            files = _all_files(shipped_checkpoint(options.path) if is_shipped else spec.folder / options.path)
        elif isinstance(options, HuggingFaceOptions):
            files = _all_files(Path(options.model))
        if files:
            yield f"system: {name}", files
    for name in experiment.judges:
        which = name.partition("=")[2]
        files = _module_file(name, experiment.folder) if is_object_name(name) else []
        files = files or (_all_files(Path(which)) if which else [])
        if files:
            yield f"judge: {name}", files


def _all_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    return [path] if path.is_file() else []


def _module_file(function: str, folder: Path) -> list[Path]:
    """The file of MODULE in MODULE:FUNCTION; the module is not run."""
    module = function.partition(":")[0]
    relative = Path(*module.split("."))
    for place in (Path.cwd(), folder):
        for file in (place / relative.with_suffix(".py"), place / relative / "__init__.py"):
            if file.is_file():
                return [file]
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return [Path(spec.origin)] if spec is not None and spec.origin and Path(spec.origin).is_file() else []
