"""Where a number came from: configuration, seed, versions, data hashes, and a short signature of them all."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import Field
from pydantic_core import to_jsonable_python

from palaver import __version__
from palaver.schema.base import FrozenDict, Labels, Noun, Text
from palaver.tabular import Tabular


class RunRecord(Tabular, Noun):
    """Everything needed to get the same number again. Two runs with one signature computed the same thing."""

    command: Text
    config: Labels = Field(default=FrozenDict())
    seed: int | None = None
    versions: Labels = Field(default=FrozenDict())
    data: Labels = Field(default=FrozenDict())
    """File name -> sha256 of what was read."""

    @property
    def signature(self) -> str:
        """Ten hexadecimal digits over all fields."""
        fields = self.model_dump(mode="json")
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def _headline(self) -> str:
        return f"{self.command}; {self}"

    def _tables(self) -> dict[str, Any]:
        fields = [("command", self.command), ("seed", self.seed), ("signature", self.signature)]
        for part in ("config", "versions", "data"):
            fields += [(f"{part}: {name}", value) for name, value in getattr(self, part).items()]
        told = [(name, str(value)) for name, value in fields if value is not None]
        return {"record": {"field": [name for name, _ in told], "value": [value for _, value in told]}}

    def __str__(self) -> str:
        """One line for the foot of a table: `palaver 1.0.0 | seed 1 | ratings.csv 3fa9… | run 0123456789`."""
        parts = [f"palaver {self.versions.get('palaver', '?')}"]
        if self.seed is not None:
            parts.append(f"seed {self.seed}")
        parts += [f"{name} {str(digest)[:8]}" for name, digest in self.data.items()]
        return " | ".join([*parts, f"run {self.signature}"])


class RunResult(Tabular):
    """A result that knows the run it comes from."""

    __slots__ = ()
    run: RunRecord

    def to_json(self) -> str:
        """Every field; undefined numbers are null, beside them stands the reason."""
        fields = [field.name for field in dataclasses.fields(self) if field.name != "run"]  # type: ignore[arg-type]
        record = {"signature": self.run.signature, "run": self.run.model_dump(mode="json")}
        content = {**record, **{name: plain(getattr(self, name)) for name in fields}}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def record_run(
    command: str,
    *,
    seed: int | None = None,
    config: Mapping[str, object] | None = None,
    data: Mapping[str, str] | None = None,
    packages: tuple[str, ...] = ("palaver", "numpy", "scipy"),
) -> RunRecord:
    """A record of this run with the versions of Python and of `packages` as installed."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            # Ours is said by the code itself: a checkout may be newer than what pip wrote down.
            versions[package] = __version__ if package == "palaver" else version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    plain = {
        k: v if isinstance(v, str | bool | int | float | None) else json.dumps(v, sort_keys=True, default=str)
        for k, v in (config or {}).items()
    }
    return RunRecord(command=command, seed=seed, config=plain, versions=versions, data=dict(data or {}))


def plain(value: object) -> Any:
    """A result as JSON has it: records as objects, undefined numbers as null."""
    return to_jsonable_python(value, inf_nan_mode="null")
