"""The command line as a whole: help, errors, exit codes, and what it costs to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from palaver import __version__
from palaver.cli import main
from palaver.errors import ConfigError, UserError

Palaver = Callable[..., Any]

SCRIPT = "from palaver.cli.main import run; run()"


def command(*words: object, options: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, *options, "-c", SCRIPT, *map(str, words)]


def verbs(group: Any = None, way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, as the words that call it."""
    group = group or typer.main.get_command(main.app)
    for name, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from verbs(inner, (*way, name))
        else:
            yield (*way, name)


def test_the_verbs() -> None:
    assert {
        ("study", "new"),
        ("study", "check"),
        ("study", "simulate"),
        ("study", "power"),
        ("study", "analyse"),
        ("study", "describe"),
        ("study", "convert"),
        ("study", "serve"),
        ("study", "status"),
        ("study", "export"),
        ("study", "backup"),
        ("study", "restore"),
        ("reproduce", "rankme"),
    } <= set(verbs())


@pytest.mark.parametrize("words", list(verbs()), ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_shows_an_example_of_itself(
    words: tuple[str, ...], option: str, palaver: Palaver
) -> None:
    ran = palaver(*words, option)
    assert ran.code == 0
    assert f"Example: palaver {' '.join(words)} " in " ".join(ran.out.split())
    assert ran.err == ""


def test_the_lists_of_commands_are_not_cut_at_an_abbreviation(palaver: Palaver) -> None:
    """Help takes the first sentence, and "et al." looks like the end of one."""
    for words in ((), ("study",), ("reproduce",)):
        listed = palaver(*words, "--help").out.partition("Commands:")[2]
        assert listed.strip()
        assert not any(line.rstrip().endswith("al.") for line in listed.splitlines())


@pytest.mark.parametrize("words", [(), ("study",), ("reproduce",)])
def test_without_a_verb_there_is_help_and_a_failure(words: tuple[str, ...], palaver: Palaver) -> None:
    ran = palaver(*words)
    assert ran.code == 2
    assert "Commands:" in ran.err + ran.out


def test_version(palaver: Palaver) -> None:
    assert palaver("--version").out == f"palaver {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("studdy",), "No such command 'studdy'"),
        (("study", "analys"), "Did you mean 'analyse'"),
        (("study", "analyse"), "Missing argument"),
        (("study", "analyse", "r.csv", "--confdence", "0.9"), "--confidence"),
        (("study", "analyse", "r.csv", "--confidence", "95"), "--confidence"),
        (("study", "analyse", "r.csv", "--confidence", "nan"), "--confidence"),
        (("study", "analyse", "r.csv", "--normalise", "lgo"), "'log'"),
        (("study", "analyse", "r.csv", "--seed", "-1"), "--seed"),
        (("study", "analyse", "r.csv", "--replicates", "many"), "--replicates"),
        (("study", "new"), "--out"),
        (("study", "new", "--out", "s.toml", "--preset", "rnkme"), "'rankme'"),
        (("study", "simulate", "--out", "r.csv", "--systems", "1"), "--systems"),
        (("study", "simulate", "--out", "r.csv", "--items", "0"), "--items"),
        (("study", "power", "--target", "2"), "--target"),
        (("reproduce", "rankme"), "--data"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(
    words: tuple[str, ...], said: str, palaver: Palaver
) -> None:
    ran = palaver(*words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def app() -> None:
        raise error

    monkeypatch.setattr(main, "app", app)


def test_user_errors_are_rendered_once_on_stderr(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, ConfigError("the file has 2 mistakes:", "mend them", ["line 1: a", "line 2: b"]))
    ran = palaver()
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err == "error: the file has 2 mistakes:\n  - line 1: a\n  - line 2: b\nhint: mend them\n"


def test_errors_without_a_hint(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, UserError("no such thing [bold]x[/bold]"))
    assert palaver().err == "error: no such thing [bold]x[/bold]\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "stopped"),
        (MemoryError(), 1, "error: not enough memory"),
        (MemoryError("745 GiB"), 1, "745 GiB"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
    ],
)
def test_other_ends(
    error: BaseException, code: int, said: str, palaver: Palaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, error)
    ran = palaver()
    assert ran.code == code
    assert said in ran.err


def test_our_own_mistakes_are_not_hidden(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug should show itself with its traceback, not look like the user's mistake."""
    fails(monkeypatch, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        palaver()


HEAVY = ("numpy", "scipy", "polars", "pyarrow", "numba", "matplotlib", "jinja2", "rich", "pandas", "torch")


@pytest.mark.parametrize(
    "words", [("--help",), ("study", "--help"), ("study", "analyse", "--help"), ("--version",)]
)
def test_starting_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    script = (
        "import atexit, json, sys\n"
        f"loaded = lambda: json.dumps([m for m in {HEAVY} if m in sys.modules])\n"
        "atexit.register(lambda: print(loaded(), file=sys.stderr))\n"
        f"{SCRIPT}"
    )
    ran = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert ran.returncode == 0
    assert json.loads(ran.stderr) == []


def test_a_reader_that_goes_away_early(ratings: Path) -> None:
    """`palaver study describe … | head -1` ends without a traceback."""
    with subprocess.Popen(
        command("study", "describe", ratings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode in (0, 1)
    assert said == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_the_output() -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(command("--version"), stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode != 0
    assert "Traceback" not in ran.stderr


def test_a_terminal_that_knows_only_ascii(ratings: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        command("study", "analyse", ratings, "--out", tmp_path / "out", "--replicates", "20"),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONWARNINGS": "error"},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == b""
    assert ran.stdout.isascii()
    assert b"alpha" in ran.stdout
