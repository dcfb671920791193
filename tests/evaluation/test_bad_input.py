"""What goes wrong around a run: full disks, older stores, missing keys, judges that count in other units."""

from __future__ import annotations

import contextlib
import resource
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palaver.errors import UserError
from palaver.evaluation.run import Options, run_experiment

from .conftest import module_of

Write = Callable[..., Path]
JSON = Options(form="json")


@contextlib.contextmanager
def no_file_above(n_bytes: int) -> Iterator[None]:
    """Writes that would make a file larger fail, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(("n_bytes", "file"), [(2_000, "cells.db"), (600_000, "responses.jsonl")])
def test_a_full_disk_costs_nothing_but_time(
    n_bytes: int, file: str, experiment_file: Write, bots_folder: Path
) -> None:
    path, out = experiment_file("good", "bad"), bots_folder / "out"
    if file == "responses.jsonl":  # it holds the context of each reply, the store does not
        (bots_folder / "questions.txt").write_text(f"First? {'x' * 300_000}\nSecond?\n")
    with no_file_above(n_bytes), pytest.raises(UserError) as caught:
        run_experiment(path, out, options=JSON)
    assert file in caught.value.message
    assert "disk full" in (caught.value.hint or "")
    assert not (out / file).is_file() or file == "cells.db", "no half of a file is left"
    result = run_experiment(path, out, options=JSON)
    assert result.errors == ()
    assert (out / "results.json").is_file()


def test_a_store_of_an_older_version_is_not_read_and_not_lost(
    experiment_file: Write, bots_folder: Path
) -> None:
    path, out = experiment_file("good", "bad"), bots_folder / "out"
    run_experiment(path, out, options=JSON)
    with sqlite3.connect(out / "cells.db") as database:
        database.execute("PRAGMA user_version = 0")
    before = (out / "cells.db").read_bytes()
    with pytest.raises(UserError, match="another version of Palaver: format 0") as caught:
        run_experiment(path, out, options=JSON)
    assert "--force" in (caught.value.hint or "")
    assert (out / "cells.db").read_bytes() == before
    assert run_experiment(path, out, fresh=True, options=JSON).errors == ()


def test_judges_of_different_scales_are_told_in_their_own_units(
    experiment_file: Write, bots_folder: Path
) -> None:
    module = bots_folder / f"{module_of(bots_folder)}.py"
    module.write_text(
        module.read_text() + "\ndef letters(response):\n    return 1000 * length(response) - 7\n"
    )
    path = experiment_file("good", "bad", judges=["length", f"{module_of(bots_folder)}:letters"])
    result = run_experiment(path, bots_folder / "out", options=JSON)
    words, letters = result.verdicts
    assert words.best == letters.best == ("good",)
    assert words.ranking is not None
    assert letters.ranking is not None
    first, second = words.ranking.scores[0], letters.ranking.scores[0]
    assert second.score == pytest.approx(1000 * first.score - 7)
    for example in result.examples:
        assert example.values[0].standard == pytest.approx(example.values[1].standard), "but compared alike"
        assert example.spread == pytest.approx(0, abs=1e-6)


def test_an_empty_test_set(experiment_file: Write, bots_folder: Path) -> None:
    (bots_folder / "questions.txt").write_text("\n\n")
    with pytest.raises(UserError, match=r"no contexts in .*questions\.txt|questions\.txt is empty"):
        run_experiment(experiment_file("good", "bad"), bots_folder / "out", options=JSON)


def test_a_system_whose_key_is_missing_is_told_before_the_others_are_asked(
    experiment_file: Write, bots_folder: Path
) -> None:
    server = '[systems.mini]\nkind = "openai"\nbase_url = "http://127.0.0.1:9"\nmodel = "m"\n'
    path = experiment_file("good", "bad", more=f'{server}api_key_env = "NO_SUCH_KEY"')
    with pytest.raises(UserError) as caught:
        run_experiment(path, bots_folder / "out", options=JSON)
    assert "the environment variable NO_SUCH_KEY is not set" in "\n".join(caught.value.problems)
    assert "export NO_SUCH_KEY=" in (caught.value.hint or "")
    assert not (bots_folder / "out" / "responses.jsonl").exists()
