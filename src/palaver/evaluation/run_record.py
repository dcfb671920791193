"""Whether a run is finished and nothing has changed since, without opening anything that takes time.

The record of a whole run (`run.json`) names every file that was read and written by its digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from palaver.artefacts import RECORD, digest_files, write_record
from palaver.errors import UserError
from palaver.schema.run import RunRecord, record_run

PACKAGES = ("palaver", "numpy", "scipy", "polars", "torch", "transformers")


def finish(folder: Path, record: RunRecord, read: Iterable[Path], written: Iterable[str]) -> None:
    """Write down that the run is complete: what was read, and what was written into `folder`."""
    inputs = {str(path.resolve()): digest_files([path]) for path in read}
    outputs = {name: digest_files([folder / name]) for name in written if (folder / name).is_file()}
    write_record(folder, record, inputs=inputs, outputs=outputs)


def unfinish(folder: Path) -> None:
    """What the folder holds is no longer the outcome of a whole run."""
    (folder / RECORD).unlink(missing_ok=True)


def is_finished(folder: Path, experiment: Path, report: str) -> bool:
    """Whether a whole run of this file, by these versions, is in the folder, with nothing changed since."""
    try:
        fields = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        versions, inputs, outputs = fields["versions"], fields["inputs"], fields["outputs"]
        if str(experiment.resolve()) not in inputs or report not in outputs:
            return False
        if versions != dict(record_run("", packages=PACKAGES).versions):
            return False
        is_same = all(digest_files([Path(path)]) == digest for path, digest in inputs.items())
        return is_same and all(digest_files([folder / name]) == digest for name, digest in outputs.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError):
        return False  # it is damaged, or a file is gone: the run is gone through again
