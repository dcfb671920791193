"""A file or folder with the record of how it was made: inputs by content, settings, seed, versions.

Work that takes long goes on where an earlier run stopped, if that run had the same record; otherwise every
difference is named. The record of `out.jsonl` is `out.jsonl.json`, that of a folder is `run.json` in it.

    record = make_record("palaver generate", {"decoding": {"top_p": 0.9}}, seed=1, data={"contexts": "3f…"})
    with open_artefact(out, record, force=force) as file:  # rows of an earlier run are in it
        …
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import math
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from palaver.errors import DataError, UserError
from palaver.files import check_writable, write_atomically
from palaver.schema.run import RunRecord, record_run

RECORD = "run.json"
FORMAT = 1
"""Of a record. A later one is refused."""
PART = ".part-"
"""How the name of a folder begins that is being written."""
_LOCK = ".lock"
_WHOLE = 1 << 26
"""Files up to this size are hashed whole, of larger ones the size and both ends."""
_PLAIN_KEY = re.compile(r'[^.\[\]"]+')


# Digests -------------------------------------------------------------------------------------------------


def digest(*parts: Any) -> str:
    """Sixteen hexadecimal digits over values that JSON can hold; several count as a list.

    Bytes that come alone are hashed as they are.
    """
    whole = parts[0] if len(parts) == 1 else parts
    if not isinstance(whole, bytes):
        whole = json.dumps(whole, sort_keys=True, default=_plain).encode()
    return hashlib.sha256(whole).hexdigest()[:16]


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, os.PathLike):
        return str(value)
    raise TypeError(f"a digest needs values that JSON can hold, found {type(value).__name__}")


def digest_files(paths: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits over the names and contents of files, wherever they lie."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                whole.update(f"{path.name} {size}\n".encode())
                if size <= _WHOLE:
                    whole.update(file.read())
                else:
                    whole.update(file.read(_WHOLE // 8))
                    file.seek(size - _WHOLE // 8)
                    whole.update(file.read())
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    return whole.hexdigest()[:16]


# Records -------------------------------------------------------------------------------------------------


def make_record(
    command: str,
    settings: Mapping[str, Any],
    *,
    seed: int | None = None,
    data: Mapping[str, str] | None = None,
    packages: tuple[str, ...] = ("palaver", "numpy"),
) -> RunRecord:
    """The record of a run; `settings` may be nested, `data` are hashes of what is read, by name or path."""
    return record_run(command, seed=seed, config=flatten(settings), data=data, packages=packages)


def flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """{"a": {"b": 1}, "c": [{"d": 2}]} -> {"a.b": 1, "c[0].d": 2}; lists of plain values are JSON text."""
    return dict(_leaves(settings, ""))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and (value or not place):
        for key, inner in value.items():
            name = str(key) if _PLAIN_KEY.fullmatch(str(key)) else json.dumps(str(key))
            yield from _leaves(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, Sequence) and any(isinstance(entry, Mapping) for entry in value):
        for number, entry in enumerate(value):
            yield from _leaves(entry, f"{place}[{number}]")
    elif isinstance(value, str | bool | int | None) or (isinstance(value, float) and math.isfinite(value)):
        yield place, value
    else:
        yield place, json.dumps(value, sort_keys=True, default=str)


def compare_records(before: RunRecord, now: RunRecord, free: Sequence[str] = ()) -> list[str]:
    """Every difference in settings, seed and data, in words.

    Settings that match a pattern of `free` may differ; versions and the command too, and so may the place of
    a file: what is new under one name and gone under another was only moved.
    """
    old, new = dict(before.config), dict(now.config)
    if before.seed is not None or now.seed is not None:
        old["seed"], new["seed"] = before.seed, now.seed
    differences = [
        f"{key}: was {_shown(old.get(key))}, is {_shown(new.get(key))}"
        for key in dict.fromkeys([*old, *new])
        if _shown(old.get(key)) != _shown(new.get(key))
        and not any(fnmatchcase(key, pattern) for pattern in free)
    ]
    names = dict.fromkeys([*before.data, *now.data])
    differences += [
        f"{name}: its content has changed"
        for name in names
        if name in before.data and name in now.data and before.data[name] != now.data[name]
    ]
    gone = {name: content for name, content in before.data.items() if name not in now.data}
    come = {name: content for name, content in now.data.items() if name not in before.data}
    for name, content in list(come.items()):
        moved = next((old_name for old_name, other in gone.items() if other == content), None)
        if moved is not None:
            del gone[moved], come[name]
    differences += [f"{name}: was not read before" for name in come]
    differences += [f"{name}: was read before and is not now" for name in gone]
    return differences


def _shown(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a file may say 1 where the program says 1.0
    if isinstance(value, str) and value.startswith(("[", "{")):  # a list as JSON text
        return value
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def record_path(path: Path) -> Path:
    """Where the record of the file or existing folder `path` lies."""
    return path / RECORD if path.is_dir() else path.with_name(f"{path.name}.json")


def write_record(path: Path, record: RunRecord, **about: Any) -> None:
    """Write the record of `path`; `about` is kept beside it and not compared."""
    fields = {"format": FORMAT, "signature": record.signature, **record.model_dump(mode="json"), **about}
    with write_atomically(record_path(path)) as file:
        json.dump(fields, file, indent=1, ensure_ascii=False)


def read_fields(path: Path) -> dict[str, Any]:
    """Everything that stands in the record of `path`."""
    try:
        fields = json.loads(record_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from None
    if not isinstance(fields, dict):
        raise _damaged(path, "expected a JSON object")
    if isinstance(fields.get("format"), int) and fields["format"] > FORMAT:  # before 1.0.0 there was none
        raise DataError(
            f"{record_path(path)} is of the format {fields['format']}, which is newer than {FORMAT}",
            "update palaver, or choose another place with --out",
        )
    return fields


def read_record(path: Path) -> RunRecord:
    """The record of `path`."""
    fields = read_fields(path)
    try:
        return RunRecord(**{name: fields[name] for name in RunRecord.model_fields})
    except KeyError as error:
        raise _damaged(path, f"it has no {error}") from None
    except ValidationError as error:
        raise _damaged(path, error.errors()[0]["msg"]) from None


def _damaged(path: Path, reason: object) -> DataError:
    return DataError(
        f"{record_path(path)} is damaged: {reason}",
        "choose another place with --out, or add --force to begin anew",
    )


# Going on ------------------------------------------------------------------------------------------------


def can_go_on(path: Path, record: RunRecord, *, force: bool = False, free: Sequence[str] = ()) -> bool:
    """Whether `path` was begun by a run with the same record. Raise `UserError` if it was begun by another.

    Not if nothing is there: no file, an empty one, or a folder without a record. Not with `force`.
    """
    if force or not path.exists():
        return False
    if path.is_dir() and not record_path(path).exists():
        return False
    if path.is_file():
        if not path.stat().st_size:
            return False
        beside = record_path(path)
        if not beside.exists():
            raise UserError(
                f"{path} is there already, and {beside.name}, which would say how it was made, is not",
                "choose another name with --out, or add --force to replace it",
            )
    differences = compare_records(read_record(path), record, free)
    if differences:
        raise UserError(
            f"{path} was begun with other settings:",
            "use the same settings to go on, choose another place with --out, or add --force to begin anew",
            differences,
        )
    return True


@contextlib.contextmanager
def open_artefact(path: Path, record: RunRecord, *, force: bool = False) -> Iterator[IO[bytes]]:
    """The file `path`, locked, at its beginning, with what an earlier run with the same record wrote."""
    if path.exists() and not path.is_file():
        raise UserError(f"cannot write {path}: it is no file")
    if not path.parent.is_dir():
        check_writable(path.parent)
    try:
        # Nothing is cut off before the lock: another run may have begun just now.
        with open(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b") as file:
            if not lock_file(file):
                raise UserError(f"another run is writing to {path}", "wait for it, or choose another file")
            if not can_go_on(path, record, force=force):
                file.truncate(0)
                write_record(path, record)  # before the first row: without it nobody could go on
            yield file
    except OSError as error:
        if error.filename not in (None, str(path)):
            raise
        raise UserError(
            f"cannot write {path}: {error.strerror or error}",
            "is the disk full? what was written so far is kept; the same command goes on",
        ) from None


@contextlib.contextmanager
def write_artefact(path: Path, record: RunRecord) -> Iterator[IO[bytes]]:
    """A file that is written whole or not at all, and its record."""
    path.unlink(missing_ok=True)  # a new record never stands beside an old file
    write_record(path, record)
    with write_atomically(path, "wb") as file:
        yield file


@contextlib.contextmanager
def write_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill with files. It takes its name when everything is on disk, and is gone if that fails.

    A `target` that is there meanwhile stays, unless `replace`. What killed processes of this machine left
    beside it is cleared away.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f"{PART}{platform.node()}-"
    for leftover in target.parent.glob(f"{glob.escape(prefix)}*"):
        try:
            os.kill(int(leftover.name.removeprefix(prefix).split("-")[0]), 0)
        except (ProcessLookupError, ValueError):
            shutil.rmtree(leftover, ignore_errors=True)
        except PermissionError:
            continue  # somebody else's, and alive
    part = target.with_name(f"{prefix}{os.getpid()}-{target.name}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        yield part
        for path in part.iterdir():
            sync(path)
        sync(part)
        if replace and target.exists():
            shutil.rmtree(target)
        with contextlib.suppress(OSError):  # another run made the same folder meanwhile
            part.rename(target)
        if not target.is_dir():
            raise UserError(f"cannot write {target}", "choose another place")
        sync(target.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Locks ---------------------------------------------------------------------------------------------------


def lock_file(file: IO[Any], *, wait: bool = False, shared: bool = False) -> bool:
    """Lock an open file until it is closed; False if another process has it, or (`shared`) has it alone.

    Where there are no locks (Windows, some network drives) everybody gets one.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that knows no locks
        return True
    return True


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """The folder for this process alone; it is made if it is missing, and taken away if it stays empty."""
    existed = folder.is_dir()
    check_writable(folder)
    at = folder / _LOCK
    with open(at, "w") as file:
        if not lock_file(file):
            raise UserError(
                f"another process is writing into {folder}",
                "wait for it, or choose another folder with --out",
            )
        try:
            yield
        finally:
            if not existed and [path.name for path in folder.iterdir()] == [_LOCK]:
                at.unlink()
                folder.rmdir()
