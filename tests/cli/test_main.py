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
from palaver.cli.lazy import LazyGroup, Noun
from palaver.errors import ConfigError, UserError

Palaver = Callable[..., Any]

SCRIPT = "from palaver.cli.main import run; run()"


def command(*words: object, options: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, *options, "-c", SCRIPT, *map(str, words)]


def commands(group: Any = None, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every verb, as the words that call it and what the parser makes of it."""
    group = group or typer.main.get_command(main.app)
    for name in group.list_commands(None):
        inner = group.get_command(None, name)
        if isinstance(inner, LazyGroup):
            yield from commands(inner, (*way, name))
        else:
            yield (*way, name), inner


VERBS = [words for words, _ in commands()]
GROUPS = [(), *((name,) for name, target in main.COMMANDS.items() if isinstance(target, Noun))]


def test_the_verbs() -> None:
    assert {
        ("chat",),
        ("generate",),
        ("study", "new"),
        ("study", "analyse"),
        ("study", "serve"),
        ("compare", "rank"),
        ("reproduce", "rankme"),
    } <= set(VERBS)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_shows_an_example_of_itself(
    words: tuple[str, ...], option: str, palaver: Palaver
) -> None:
    ran = palaver(*words, option)
    assert ran.code == 0
    assert f"Example: palaver {' '.join(words)} " in " ".join(ran.out.split())
    assert "…" not in ran.out
    assert ran.err == ""


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_lists_of_commands_have_a_whole_line_for_each(words: tuple[str, ...], palaver: Palaver) -> None:
    ran = palaver(*words, "--help")
    assert ran.code == 0
    assert "…" not in ran.out
    listed = ran.out.partition("Commands:")[2].strip().splitlines()
    targets = main.COMMANDS if not words else main.COMMANDS[words[0]].verbs  # type: ignore[union-attr]
    assert [line.split()[0] for line in listed] == list(targets)  # one line each, none runs over
    assert all(len(line.split()) > 2 for line in listed)


def test_the_line_in_the_list_is_the_first_of_the_help(palaver: Palaver) -> None:
    listed = palaver("study", "--help").out
    assert "Serve a study to raters." in listed
    assert "Serve a study to raters." in palaver("study", "serve", "--help").out


OWN_SENSE = {
    "--batch-size",
    "--by",
    "--check",
    "--decisions",
    "--items",
    "--k",
    "--method",
    "--preset",
    "--raters",
}
OWN_SENSE |= {"--format", "--people", "--from", "--pairs", "--selector", "--system", "--systems"}
"""Words that mean something else to another noun."""


def test_an_option_of_one_name_is_one_option() -> None:
    declared: dict[str, dict[Any, list[str]]] = {}
    for words, command in commands():
        for param in command.params:
            if param.param_type_name == "option":
                says = (param.default, param.help, param.min, param.max, param.multiple, param.metavar)
                uses = declared.setdefault(max(param.opts, key=len), {})
                uses.setdefault(repr(says), []).append(" ".join(words))
    several = {name: uses for name, uses in declared.items() if len(uses) > 1}
    assert set(several) == OWN_SENSE, several
    for name in ("--out", "--force", "--seed", "--device", "--data", "--engine", "--json", "--confidence"):
        [uses] = declared[name].values()
        assert len(uses) > 1, name


NO_TABLE = {
    *("init", "chat", "generate", "study new", "study convert", "study serve", "study amend", "study export"),
    *(
        "study backup",
        "study restore",
        "study reset",
        "compare train",
        "corpus get",
        "corpus convert",
        "probe transform",
    ),
    *("probe triplets", "train responder", "train new"),
    *("collect new", "collect serve", "collect amend", "collect decide"),
    *("collect conversations", "collect ratings"),
}
"""Verbs that write files or talk. Every other verb prints a table, and so has --json."""


def test_a_verb_that_prints_a_table_has_json() -> None:
    verbs = {" ".join(words): command for words, command in commands()}
    with_json = {name for name, command in verbs.items() if any("--json" in p.opts for p in command.params)}
    assert set(verbs) >= NO_TABLE
    assert not NO_TABLE & with_json
    assert set(verbs) - with_json - NO_TABLE == set()


def test_what_can_be_replaced_has_force() -> None:
    for words, command in commands():
        names = {name for param in command.params for name in param.opts}
        assert "--out" not in names or "--force" in names, words
        assert "--fresh" not in names


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_an_unknown_option_is_one_message_and_exit_code_2(words: tuple[str, ...], palaver: Palaver) -> None:
    ran = palaver(*words, "--no-such-thing")
    assert ran.code == 2
    assert ran.out == ""
    path = " ".join(words)
    assert ran.err.startswith("error: there is no option --no-such-thing")
    assert ran.err.endswith(f"hint: palaver {path} --help shows what it takes\n")


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_an_unknown_command_is_one_message_and_exit_code_2(words: tuple[str, ...], palaver: Palaver) -> None:
    if words == ("probe",):
        return  # there the verb may be left out
    ran = palaver(*words, "xyzzy")
    assert (ran.code, ran.out) == (2, "")
    path = " ".join(("palaver", *words))
    assert ran.err == f"error: there is no command 'xyzzy'\nhint: {path} --help lists those that are\n"


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_without_a_verb_there_is_help_and_a_failure(words: tuple[str, ...], palaver: Palaver) -> None:
    ran = palaver(*words)
    assert ran.code == 2
    assert "Commands:" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str, palaver: Palaver) -> None:
    assert palaver(option).out == f"palaver {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("studdy",), "there is no command 'studdy' (did you mean 'study'?)"),
        (("study", "analys"), "did you mean 'analyse'?"),
        (("probe", "triplet"), "did you mean 'triplets'?"),
        (("study", "analyse"), "error: RATINGS is missing"),
        (("study", "check", "a.toml", "b.toml"), "got unexpected extra argument"),
        (
            ("study", "analyse", "r.csv", "--confdence", "0.9"),
            "there is no option --confdence (did you mean '--confidence'?)",
        ),
        (("study", "analyse", "r.csv", "--confidence", "95"), "error: --confidence: "),
        (("study", "analyse", "r.csv", "--confidence", "nan"), "--confidence"),
        (("study", "analyse", "r.csv", "--column", "rater"), "--column: expected FIELD=NAME"),
        (("study", "analyse", "r.csv", "--column", "=x"), "--column: expected FIELD=NAME"),
        (
            ("study", "analyse", "r.csv", "--normalise", "lgo"),
            "--normalise: there is no 'lgo' (did you mean 'log'?)",
        ),
        (("study", "analyse", "r.csv", "--seed", "-1"), "--seed"),
        (("study", "analyse", "r.csv", "--replicates", "many"), "--replicates"),
        (("study", "new"), "error: --out is missing"),
        (("study", "new", "--out", "s.toml", "--preset", "rnkme"), "(did you mean 'rankme'?)"),
        (("study", "simulate", "--out", "r.csv", "--systems", "1"), "--systems"),
        (("study", "simulate", "--out", "r.csv", "--items", "0"), "--items"),
        (("study", "power", "--target", "2"), "--target"),
        (("study", "power", "--careless", "2"), "careless"),
        (("chat", "one", "--method", "greedy", "--top-p", "0.5"), "do not go together"),
        (("chat", "one", "--temperature", "0"), "expected more than 0"),
        (("chat", "default", "--method", "beem"), "(did you mean 'beam'?)"),
        (("chat", "default", "--speaker", "Joey", "--ocean", "1,1,1,1,1"), "both given"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(
    words: tuple[str, ...], said: str, palaver: Palaver
) -> None:
    ran = palaver(*words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.startswith("error: ")
    assert ran.out == ""


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Whatever is called fails."""

    def invoke(self: LazyGroup, ctx: Any) -> None:
        raise error

    monkeypatch.setattr(LazyGroup, "invoke", invoke)


def test_user_errors_are_rendered_once_on_stderr(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, ConfigError("the file has 2 mistakes:", "mend them", ["line 1: a", "line 2: b"]))
    ran = palaver("study")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err == "error: the file has 2 mistakes:\n  - line 1: a\n  - line 2: b\nhint: mend them\n"


def test_errors_without_a_hint(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, UserError("no such thing [bold]x[/bold]"))
    assert palaver("study").err == "error: no such thing [bold]x[/bold]\n"


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
    ran = palaver("study")
    assert ran.code == code
    assert said in ran.err


def test_our_own_mistakes_are_not_hidden(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug should show itself with its traceback, not look like the user's mistake."""
    fails(monkeypatch, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        palaver("study")


HEAVY = (
    *("numpy", "scipy", "polars", "pyarrow", "numba", "matplotlib", "jinja2", "rich", "pandas", "torch"),
    *("sqlalchemy", "palaver.cli.study", "palaver.cli.chat", "palaver.cli.options"),
)


@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), *((*words, "--help") for words in GROUPS if words)], ids=" ".join
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


EXTRAS = ("torch", "spacy", "transformers", "sklearn", "accelerate", "tokenizers")


def test_no_verb_needs_an_extra_for_its_help() -> None:
    """The help of a verb must come without torch and spaCy, which a base install does not have.

    One process asks every verb for its help: a start of Python for each would take two minutes.
    """
    script = (
        "import sys\n"
        "from palaver.cli.main import run\n"
        f"for words in {VERBS}:\n"
        "    sys.argv = ['palaver', *words, '--help']\n"
        "    try:\n"
        "        run()\n"
        "    except SystemExit as ended:\n"
        "        assert not ended.code, words\n"
        f"    loaded = [name for name in {EXTRAS} if name in sys.modules]\n"
        "    assert not loaded, (words, loaded)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("Usage: palaver ") == len(VERBS)


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
