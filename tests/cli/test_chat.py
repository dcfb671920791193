"""`palaver chat`: replies alone in a pipe, a conversation in a terminal."""

from __future__ import annotations

import builtins
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from palaver.cli import chat as module
from palaver.readers import read_dialogues, write_dialogues
from palaver.schema import Dialogue, Reply, Request, Turn

Palaver = Callable[..., Any]
Typed = Callable[..., None]
TEXTS = [
    "hello there , how are you ?",
    "i am fine , thanks .",
    "i like pizza and cheese .",
    "the moon is far away .",
]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from palaver.models.pretrained import build
    from palaver.text.vocabulary import Vocabulary

    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("checkpoints")
    words = Vocabulary.train(TEXTS * 3, kind="word", size=60)
    small = {"model": "seq2seq", "embedding": 12, "hidden": 12, "layers": 1, "max_response": 10}
    transformer = {"model": "knowledge-transformer", "dim": 16, "layers": 1, "feed_forward": 16}
    for name, config in {
        "plain": small,
        "friends": {**small, "conditioning": "speaker", "speakers": ["Joey", "Ross"]},
        "person": {**small, "conditioning": "personality"},
        "knows": {**transformer, "positions": "sinusoidal", "max_response": 10},
    }.items():
        model = build({**config, "vocab_size": len(words)})
        for weights in model.parameters():
            torch.nn.init.normal_(weights, std=0.7)
        model.eval().save_pretrained(root / name)
        words.save(root / name)
    return root


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Typed:
    """What comes in: through a pipe, or from a person at a terminal."""

    def set_input(*lines: str, terminal: bool = False) -> None:
        pipe = io.StringIO("".join(line + "\n" for line in lines))
        if terminal:
            pipe.isatty = lambda: True  # type: ignore[method-assign]
            left = iter(lines)

            def read(prompt: str = "") -> str:
                try:
                    return next(left)
                except StopIteration:
                    raise EOFError from None

            monkeypatch.setattr(builtins, "input", read)
        monkeypatch.setattr(sys, "stdin", pipe)

    return set_input


@pytest.fixture
def log(tmp_path: Path) -> None:
    """Two logs that are replayed: what is said is known."""
    for name, texts in {
        "one": ("hello", "hi\nyou", "bye", "[bold]so long[/bold]\x1b[31m"),
        "two": ("hello", "hm"),
    }.items():
        turns = tuple(Turn(speaker="ab"[i % 2], text=text) for i, text in enumerate(texts))
        write_dialogues([Dialogue(id="log", turns=turns)], tmp_path / f"{name}.jsonl")
    (tmp_path / "systems.toml").write_text(
        "".join(f'[systems.{n}]\nkind = "replay"\npath = "{n}.jsonl"\n' for n in ("one", "two"))
    )


def test_only_replies_in_a_pipe(palaver: Palaver, typed: Typed, log: None) -> None:
    typed("hello", "", "bye")
    ran = palaver("chat", "one")
    assert ran.code == 0
    assert ran.out == "hi you\n[bold]so long[/bold] [31m\n"
    assert ran.err == ""


def test_several_systems_in_a_pipe(palaver: Palaver, typed: Typed, log: None) -> None:
    typed("hello", "/quit", "never")
    assert palaver("chat", "one", "two", "one").out == "one: hi you\ntwo: hm\n"


def test_in_a_terminal(palaver: Palaver, typed: Typed, log: None) -> None:
    typed("/help", "hello", "bye", "/undo", "/rety", "/undo", "/save chat.jsonl", terminal=True)
    ran = palaver("chat", "one")
    assert ran.code == 0
    assert "Talking with one. /help says" in ran.out
    for command in module.COMMANDS:
        assert command in ran.out
    assert "one › hi\nyou" in ran.out
    assert "one › [bold]so long[/bold] [31m" in ran.out
    assert "\x1b" not in ran.out
    assert "taken back: bye" in ran.out
    assert "there is no command /rety (did you mean '/retry'?)" in ran.err
    assert "there is nothing to save yet" in ran.err


def test_side_by_side_where_there_is_room(
    palaver: Palaver, typed: Typed, log: None, monkeypatch: Any
) -> None:
    typed("hello", terminal=True)
    wide = palaver("chat", "one", "two").out
    heads = next(line for line in wide.splitlines() if line.startswith("one"))
    assert "two" in heads
    monkeypatch.setenv("COLUMNS", "60")
    typed("hello", terminal=True)
    narrow = palaver("chat", "one", "two").out
    assert "one › hi\nyou\ntwo › hm" in narrow


def test_a_failed_turn_in_a_terminal_goes_on(palaver: Palaver, typed: Typed, log: None) -> None:
    typed("something else", "hello", terminal=True)
    ran = palaver("chat", "one")
    assert ran.code == 0
    assert "error: one: the log has no dialogue" in ran.err
    assert "one › hi" in ran.out
    typed("something else", "hello")
    piped = palaver("chat", "one")
    assert (piped.code, piped.out) == (1, "")


def test_save(palaver: Palaver, typed: Typed, log: None, tmp_path: Path) -> None:
    (tmp_path / "there.jsonl").write_text("precious")
    typed("hello", "/save a.jsonl", "/save a.jsonl", "/save there.jsonl", terminal=True)
    ran = palaver("chat", "one", "two", "--seed", "4")
    assert "there.jsonl is there already" in ran.err
    assert (tmp_path / "there.jsonl").read_text() == "precious"
    first, second = read_dialogues(tmp_path / "a.jsonl")
    assert (first.id, second.id) == ("chat-one", "chat-two")
    assert [(t.speaker, t.text) for t in first.turns] == [("you", "hello"), ("one", "hi\nyou")]
    assert first.labels == {"system": "one", "seed": 4}
    typed("hello", "/save", terminal=True)
    assert "/save needs the name of a file" in palaver("chat", "one").err
    typed("hello", "/save x.docx", terminal=True)
    assert "cannot tell the format" in palaver("chat", "one").err


def test_a_slash_that_is_text(palaver: Palaver, typed: Typed, log: None) -> None:
    typed("//quit")
    ran = palaver("chat", "one")
    assert ran.code == 1
    assert "none with these 1 turns" in ran.err


def test_the_same_seed_says_the_same(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    def said(*options: str, lines: tuple[str, ...] = ("hello", "how are you ?")) -> str:
        typed(*lines)
        ran = palaver("chat", checkpoints / "plain", *options)
        assert ran.code == 0, ran.err
        return ran.out

    assert said() == said() == said("--seed", "0")
    assert said() != said("--seed", "1")
    first, again = said(lines=("hello", "/retry")).splitlines()
    assert first != again
    assert said("--method", "greedy") == said("--method", "greedy", "--seed", "5")
    assert said("--beam-size", "3", "--length-penalty", "0.5")


def test_retry_that_cannot_differ_says_so(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    typed("hello", "/retry")
    assert "the same again; --method" in palaver("chat", checkpoints / "plain", "--method", "greedy").err


def test_retry_names_no_option_that_has_no_effect(palaver: Palaver, typed: Typed, log: None) -> None:
    typed("hello", "/retry")
    ran = palaver("chat", "one")
    assert ran.code == 0, ran.err
    assert "(the same again)" in ran.err


def test_a_hint_inside_a_chat_names_the_command(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    typed("hello", "/speaker Joey", "hello", terminal=True)
    ran = palaver("chat", checkpoints / "friends")
    assert "/speaker is one of Joey, Ross" in ran.err
    assert "--speaker" not in ran.err
    typed("hello")
    assert "--speaker is one of Joey, Ross" in palaver("chat", checkpoints / "friends").err


def test_speakers(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    friends = checkpoints / "friends"
    typed("hello")
    assert "needs to know who speaks" in palaver("chat", friends).err
    typed("hello")
    wrong = palaver("chat", friends, "--speaker", "Joy")
    assert "did you mean 'Joey'" in wrong.err
    assert wrong.code == 1
    typed("hello", "/speaker", "/speaker Ross", "/retry", "/speaker off", terminal=True)
    ran = palaver("chat", friends, "--speaker", "Joey")
    assert f"Joey ({friends}) ›" in ran.out.replace("\n", "")
    assert "speaker: Joey; known: Joey, Ross" in ran.out
    assert f"Ross ({friends}) ›" in ran.out.replace("\n", "")
    assert "speaker: none" in ran.out
    typed("hello")
    ran = palaver("chat", checkpoints / "plain", "--speaker", "Joey")
    assert "takes no speaker" in ran.err
    typed("hello")
    both = palaver("chat", checkpoints / "plain", friends, "--speaker", "Joey")
    assert both.code == 0
    assert both.err.count("takes no speaker and goes on without") == 1


def test_personalities(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    person = checkpoints / "person"
    typed("hello")
    wrong = palaver("chat", person, "--ocean", "6.5,3.5,9,x")
    assert wrong.code == 1
    assert wrong.err.count("  - ") == 3
    typed("hello", "/ocean 1,1,1,1,1", "/retry", "/ocean", "/ocean 8")
    ran = palaver("chat", person, "--ocean", "6.5,3.5,3.5,3.5,3.5")
    assert len(ran.out.splitlines()) == 2
    assert "personality: openness 1, conscientiousness 1" in ran.err
    assert ran.code == 1
    typed("hello")
    assert "both given" in palaver("chat", person, "--ocean", "4,4,4,4,4", "--speaker", "x").err


def test_knowledge(palaver: Palaver, typed: Typed, checkpoints: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.txt"
    facts.write_text("The moon is far away. Pizza is flat.\nCheese is made of milk.\n")
    knows = checkpoints / "knows"
    typed("xyzzy")
    assert "knowledge: " not in palaver("chat", knows, "--knowledge", facts, "--verbose").err.split("ln p")[1]
    typed("do you like cheese ?")
    ran = palaver("chat", knows, "--knowledge", facts, "--verbose")
    assert ran.code == 0, ran.err
    used = [line for line in ran.err.splitlines() if "ln p" in line]
    assert used[0].endswith("knowledge: Cheese is made of milk.")
    typed(
        "hello",
        "/knowledge Bread is old.",
        "hello",
        f"/knowledge {facts}",
        "the moon",
        "/knowledge off",
        "/knowledge",
    )
    ran = palaver("chat", knows, "-v")
    assert ran.code == 1
    used = [line for line in ran.err.splitlines() if "ln p" in line]
    assert used[1].endswith("knowledge: Bread is old.")
    assert used[2].endswith("knowledge: The moon is far away.")
    assert "knowledge: 3 sentences" in ran.err
    typed("hello")
    assert "takes no knowledge" in palaver("chat", checkpoints / "plain", "--knowledge", facts).err
    typed("hello")
    assert "there is no file" in palaver("chat", knows, "--knowledge", "nothing.txt").err


def test_strange_and_long_turns(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    typed("日本語 😀", "moon " * 100_000, "\x00\x1b")
    ran = palaver("chat", checkpoints / "plain")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 3
    assert ran.err.count("reads the last 50 tokens") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "there is no system 'nothing'"),
        (("",), "there is no system ''"),
        (("one", "--ocean", ""), "these are not OCEAN scores"),
        (("default-nothing",), "no shipped checkpoint 'default-nothing'"),
        (("one", "--systems", "nothing.toml"), "there is no file nothing.toml"),
    ],
)
def test_clear_errors(words: tuple[str, ...], said: str, palaver: Palaver, typed: Typed, log: None) -> None:
    typed("hello")
    ran = palaver("chat", *words)
    assert ran.code == 1
    assert said in ran.err
    assert ran.out == ""


def test_a_gpu_that_is_not_there(palaver: Palaver, typed: Typed, checkpoints: Path) -> None:
    typed("hello")
    assert (
        "the GPU 'cuda:99' was asked for" in palaver("chat", checkpoints / "plain", "--device", "cuda:99").err
    )


def test_the_defaults_are_possible() -> None:
    from palaver.generation.decode import Decoding

    Decoding(**module.DEFAULTS)


def test_every_field_of_decoding_has_an_option(palaver: Palaver) -> None:
    from dataclasses import fields

    from palaver.generation.decode import Decoding

    shown = palaver("chat", "--help").out
    for field in fields(Decoding):
        assert f"--{field.name.replace('_', '-')} " in shown
    assert "greedy|beam|sample|stochastic-greedy" in shown


def test_bytes_that_are_no_text(tmp_path: Path, log: None) -> None:
    script = "from palaver.cli.main import run; run()"
    ran = subprocess.run(
        [sys.executable, "-c", script, "chat", "one"],
        input=b"\xff\xfe\nhello\n",
        capture_output=True,
        cwd=tmp_path,
    )
    assert ran.returncode == 1
    assert b"Traceback" not in ran.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of Unix")
def test_a_real_terminal(tmp_path: Path, log: None) -> None:
    import pty
    import select

    program = [sys.executable, "-c", "from palaver.cli.main import run; run()", "chat", "one"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["TERM"] = "xterm"
        os.execv(program[0], program)
    seen = b""

    def wait_for(what: str) -> None:
        nonlocal seen
        while what.encode() not in seen:
            ready, _, _ = select.select([terminal], [], [], 30)
            assert ready, seen
            seen += os.read(terminal, 65536)

    wait_for("you ›")
    os.write(terminal, b"hello\r")
    wait_for("hi")
    seen = seen[seen.rindex(b"hi") :]
    wait_for("you ›")
    os.write(terminal, b"\x04")
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/save a\0b.jsonl", "cannot be the name of a file"),
        ("/save " + "x" * 300 + ".jsonl", "cannot be the name of a file: File name too long"),
        ("/save ~nobody-of-that-name/x.jsonl", "cannot be the name of a file"),
        ("/save x.txt", "cannot tell the format"),
        ("/save", "needs the name of a file"),
        ("/knowledge nothing/here.txt", "there is no file nothing/here.txt"),
        ("/knowledge empty.txt", "empty.txt is empty"),
        ("/knowledge binary.txt", "binary.txt is a program"),
        ("/knowledge dots.txt", "there are no sentences in dots.txt"),
        ("/speaker Joey", "takes no speaker"),
        ("/ocean 1,2,3,4,5", "takes no personality"),
        ("/ocean nan,1,1,1,1", "these are not OCEAN scores"),
        ("/QUIT", "did you mean '/quit'?"),
        ("/", "there is no command /"),
    ],
)
def test_a_wrong_command_is_an_error_and_the_chat_goes_on(
    line: str, said: str, palaver: Palaver, typed: Typed, checkpoints: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "binary.txt").write_bytes(b"\x7fELF\0\1\2\n")
    (tmp_path / "dots.txt").write_text("... !!! ???\n")
    typed("hello", line, "hello", terminal=True)
    ran = palaver("chat", checkpoints / "knows")
    assert ran.code == 0
    assert said in ran.err
    assert ran.out.count("knows ›") == 2
    typed("hello", line, "hello")
    ran = palaver("chat", checkpoints / "knows")
    assert (ran.code, len(ran.out.splitlines())) == (1, 1)


class _Streaming:
    """Says its reply in two pieces."""

    name = "slow"

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply("one two") for _ in requests]

    def stream(self, request: Request, say: Callable[[str], None]) -> Reply:
        say("one ")
        say("two")
        return Reply("one two")


def test_without_a_name_it_says_whom_one_talks_to_and_streams(
    palaver: Palaver, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "best_system", lambda: ("slow", "slow, for a test"))
    spec = MagicMock(return_value=_Streaming())
    spec.name = "slow"
    monkeypatch.setattr(module, "find_system", lambda name, file: spec)
    typed("hello", "/retry", terminal=True)
    ran = palaver("chat")
    assert ran.code == 0
    assert ran.out.count("slow › one two\n") == 2
    assert "note: this is slow, for a test" in ran.err
    typed("hello")
    assert palaver("chat").out == "one two\n"


def test_an_empty_reply_is_said_to_be_one(
    palaver: Palaver, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silent.py").write_text("def reply(text):\n    return ''\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    typed("hello", terminal=True)
    assert "(an empty reply)" in palaver("chat", "silent:reply").out
