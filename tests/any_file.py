"""Any file in, an answer out: every shape through every command.

`python tests/any_file.py` prints a table of shapes and commands, `ok` or what differs, and leaves with 1 if
anything does. The wrong calls of `wrong_calls.py` are made as well. `test_any_file.py` runs it in the suite.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from unittest import mock

import numpy as np

from palaver.cli.main import run

DATA = Path(__file__).parent / "data" / "dialogue-shapes"
IDS = ("101", "102", "103", "104", "105", "106")


@dataclass(frozen=True)
class Shape:
    """A file, and what in it differs from the others by nature."""

    file: str
    columns: tuple[str, ...] = ()
    """FIELD=NAME, for --column."""
    speakers: tuple[str, str] = ("user", "system")
    ids: tuple[str, ...] = IDS
    """Where the file has none, they are made from the place in it."""
    is_response: bool = False
    """Whether commands that take responses read it as those."""


def _made_ids(*places: int) -> tuple[str, ...]:
    return tuple(f"chats:{place}" for place in places)


SHAPES = (
    Shape("turns.jsonl"),
    Shape("messages.jsonl", speakers=("user", "assistant")),
    Shape("parts.jsonl", speakers=("user", "assistant")),
    Shape("sharegpt.json", speakers=("human", "gpt")),
    Shape("history.jsonl", is_response=True),
    Shape("parlai.jsonl", ids=_made_ids(1, 4, 7, 9, 11, 14)),
    Shape("short-keys.jsonl"),
    Shape("own-columns.csv", columns=("dialogue=chat", "speaker=who", "text=said")),
    Shape("semicolon.csv"),
    Shape("tabs.tsv"),
    Shape("json-cells.csv"),
    Shape("dialogues.parquet"),
    Shape("turns.parquet"),
)
NAMELESS = (
    Shape("nameless.jsonl", ids=_made_ids(1, 2, 3, 4, 5, 6)),
    Shape("bare.json", speakers=("user", "assistant"), ids=_made_ids(1, 2, 3, 4, 5, 6)),
)
"""Shapes that hold turns and nothing else: neither ids nor systems nor ratings."""
RESPONSES = (
    Shape("responses.jsonl", ids=("c1", "c2", "c3", "c4", "c5", "c6")),
    Shape("responses.csv", ids=_made_ids(2, 3, 4, 5, 6, 7)),
    Shape("model-prompt-output.csv", ids=_made_ids(2, 3, 4, 5, 6, 7)),
    Shape("responses.parquet", ids=("c1", "c2", "c3", "c4", "c5", "c6")),
    Shape("one-column-a-system.csv", ids=_made_ids(2, 3, 4, 5, 6, 7)),
)
FEW = ("turns.jsonl", "parlai.jsonl", "own-columns.csv", "dialogues.parquet", "responses.csv")


@dataclass(frozen=True)
class Command:
    """A call, and where its answer is. FILE, OUT, COLUMNS, ID1 and ID2 stand for what the shape has."""

    words: str
    written: str = ""
    """The file in OUT that is compared; what is printed, where there is none."""
    needs_labels: bool = False
    takes_responses: bool = False
    code: int = 0
    is_slow: bool = False
    """Whether the test suite tries it on a few shapes only."""


DISTINGUISH = "--samples 10 --size 2 --repetitions 2 --pools 0 --words 0 --workers 1"
COMMANDS = (
    Command("compare score FILE COLUMNS --out OUT/scores.jsonl --all-turns", "scores.jsonl"),
    Command("compare rank FILE COLUMNS --replicates 20", needs_labels=True),
    Command("compare pair FILE#ID1 FILE#ID2 COLUMNS"),
    # Six dialogues are read and found too few, which is enough to see.
    Command("compare clean FILE COLUMNS --out OUT/cleaned", needs_labels=True, code=1),
    Command("compare train --method palaver --ratings FILE COLUMNS --out OUT/run", needs_labels=True, code=1),
    Command("personality score FILE COLUMNS --json", takes_responses=True),
    Command("personality score FILE COLUMNS --json --per speaker --min-words 5"),
    Command(
        f"personality distinguish FILE COLUMNS --min-utterances 3 {DISTINGUISH}",
        takes_responses=True,
        is_slow=True,
    ),
    Command(
        "generate --contexts FILE COLUMNS --every-turn --system echoing:echo --out OUT/r.jsonl", "r.jsonl"
    ),
    Command("corpus show FILE COLUMNS -n 6"),
    Command("corpus convert FILE OUT/d.jsonl COLUMNS", "d.jsonl"),
    Command("judge FILE COLUMNS --by comparator --by user --json", needs_labels=True),
    Command("knowledge agreement --corpus FILE COLUMNS", code=1),  # they have no reading sets
    Command("probe transform not-negation FILE COLUMNS", takes_responses=True),
    Command(
        "probe triplets --text FILE COLUMNS --set-size 2 --workers 1 --out OUT/t.jsonl",
        "t.jsonl",
        takes_responses=True,
    ),
    Command("train responder EXPERIMENT --out OUT/run --device cpu --max-steps 1", is_slow=True),
    # For the integrator: Command("study new --from FILE COLUMNS --preset likert --out OUT/s.toml", "s.toml")
)
RESPONSE_COMMANDS = (
    Command("judge FILE COLUMNS --by unigram_f1 --by comparator --json"),
    Command("compare rank FILE COLUMNS --replicates 20"),
    Command(f"personality distinguish FILE COLUMNS --by system {DISTINGUISH}", is_slow=True),
    Command("personality score FILE COLUMNS --json"),
    Command("probe transform not-negation FILE COLUMNS"),
)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def call(*words: object) -> Ran:
    """`palaver WORDS` as the console script runs it, in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", ["palaver", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    return Ran(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """An empty working folder with a system that replies. Turns are encoded by a toy, which is quick."""
    from palaver.comparator import representation, scorer

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "echoing.py").write_text("def echo(text):\n    return f'You said: {text}'\n")
        for module in (representation, scorer):
            stack.enter_context(mock.patch.object(module, "turn_encoder", return_value=toy_vectors))
        stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "200", "HF_HUB_OFFLINE": "1"}))
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(here)
            sys.modules.pop("echoing", None)


def toy_vectors(texts: list[str]) -> np.ndarray:
    """Words counted in 384 places."""
    vectors = np.zeros((len(texts), 384), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for word in text.lower().split():
            row[zlib.crc32(word.encode()) % 384] += 1
    return vectors


def experiment(shape: Shape, file: Path) -> str:
    """The smallest training there is."""
    pairs = (column.split("=") for column in shape.columns)
    columns = ", ".join(f'{field} = "{name}"' for field, name in pairs)
    source = f'path = "{file}"' + (f", columns = {{ {columns} }}" if columns else "")
    lines = ['preset = "tiny"', "[data]", f"train = [{{ {source} }}]", "valid_examples = 2"]
    lines += ["[model]", "dim = 8", "heads = 2", "layers = 1", "feed_forward = 8", ""]
    return "\n".join(lines)


def ask(command: Command, shape: Shape) -> tuple[int, str]:
    """The exit code, and what the command says or writes, without names that differ by nature."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        out = Path(name).absolute()
        file = out / f"chats{Path(shape.file).suffix}"
        shutil.copyfile(DATA / shape.file, file)
        (out / "experiment.toml").write_text(experiment(shape, file))
        stand_ins = {"FILE": file, "OUT": out, "EXPERIMENT": out / "experiment.toml"}
        stand_ins |= {"ID1": shape.ids[0], "ID2": shape.ids[1]}
        words: list[str] = []
        for word in command.words.split():
            if word == "COLUMNS":
                words += [part for column in shape.columns for part in ("--column", column)]
                continue
            for stand_in, value in stand_ins.items():
                word = word.replace(stand_in, str(value))
            words.append(word)
        ran = call(*words)
        if ran.code != command.code:
            return ran.code, ran.err.strip()
        text = ran.err if ran.code else ran.out
        if command.written:
            text = (out / command.written).read_text(encoding="utf-8")
        return ran.code, plain(text.replace(str(file), "FILE").replace(str(out), "OUT"), shape)


BY_NATURE = (
    "dialogues without an id",
    "lists of texts, taken as said",
    "turns without text",
    "responses without an id",
    "the rows have no id",
    "each of these columns is a system",
    "palaver 0.1.0 | seed",
)
"""Notes about the file itself, and the signature, which names it by its content."""


def plain(text: str, shape: Shape) -> str:
    """What is said, however the file calls its dialogues and its speakers."""
    for id, common in zip(shape.ids, IDS, strict=True):
        text = re.sub(rf"\b{id}\b", common, text)
    for own, common in zip(shape.speakers, ("user", "system"), strict=True):
        text = re.sub(rf"\b{own}\b", common, text)
    if text.startswith("{") and "\n{" not in text:
        content = json.loads(text)
        content.pop("notes", None)
        text = json.dumps(content, ensure_ascii=False)
    text = re.sub(r"[━─│┃┏┓┗┛┡┩└┘├┤┬┴╇┼┳╈┠┨]", " ", text.replace(f"chats{Path(shape.file).suffix}", "chats"))
    lines = (" ".join(line.split()).removeprefix("note: ").removeprefix("- ") for line in text.splitlines())
    kept = [line for line in lines if line and not line.startswith(BY_NATURE)]
    return "\n".join(sorted(kept) if shape in RESPONSES else kept)  # by system, or by context


def applies(command: Command, shape: Shape) -> bool:
    if shape in NAMELESS and command.needs_labels:
        return False
    return not (shape.is_response and command.takes_responses)  # that has another answer


def compare_answers(command: Command, shapes: tuple[Shape, ...]) -> Iterator[tuple[Shape, str]]:
    """What differs from the answer to the first shape, or nothing, for each shape the command is for."""
    expected = None
    for shape in shapes:
        if not applies(command, shape):
            continue
        code, text = ask(command, shape)
        if code != command.code:
            yield shape, f"exit {code}: {text}"
            continue
        expected = text if expected is None else expected
        yield shape, difference(text, expected)


def difference(text: str, expected: str) -> str:
    """The first lines that are not the same."""
    for found, wanted in zip_longest(text.splitlines(), expected.splitlines(), fillvalue=""):
        if found != wanted:
            return f"{found!r} in place of {wanted!r}"
    return ""


def compare_all(*, quick: bool = False) -> list[tuple[str, Shape, str]]:
    """Every command on every shape, with what differs; with `quick` slow ones on some shapes."""
    rows = []
    for shapes, commands in ((SHAPES, COMMANDS), (NAMELESS, COMMANDS), (RESPONSES, RESPONSE_COMMANDS)):
        for command in commands:
            tried = tuple(s for s in shapes if s.file in FEW) if quick and command.is_slow else shapes
            rows += [(command.words, shape, what) for shape, what in compare_answers(command, tried)]
    return rows


def main() -> int:
    with workplace():
        rows = compare_all()
    for words, shape, what in rows:
        print(f"{shape.file:<24} {words.partition(' FILE')[0]:<28} {what or 'ok'}")
    wrong = [row for row in rows if row[2]]
    print(f"{len(rows)} answers, {len(wrong)} differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
