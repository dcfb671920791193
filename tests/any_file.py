"""Any file in, an answer out: every shape through every command.

`python tests/any_file.py` prints a table of shapes and commands, `ok` or what differs, and leaves with 1 if
anything does. The wrong calls of `wrong_calls.py` are made as well. `test_any_file.py` runs it in the suite.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from unittest import mock

import numpy as np

from palaver import __version__
from palaver.cli.main import run

DATA = Path(__file__).parent / "data" / "dialogue-shapes"
RATINGS = Path(__file__).parent / "data" / "ratings-shapes"
ECHO = "def echo(text):\n    return f'You said: {text}'\n"
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
FEW = ("turns.jsonl", "own-columns.csv", "responses.jsonl", "responses.csv")
"""Shapes that slow commands are tried on in the test suite."""


@dataclass(frozen=True)
class Command:
    """A call, and where its answer is. FILE, OUT, COLUMNS, ID1 and ID2 stand for what the shape has."""

    words: str
    written: str = ""
    """The file in OUT that is compared; what is printed, where there is none."""
    needs_labels: bool = False
    needs_ids: bool = False
    """Whether the answer depends on them: what is drawn at random is."""
    takes_responses: bool = False
    code: int = 0
    is_slow: bool = False
    """Whether the test suite tries it on the shapes of `FEW` only."""


DISTINGUISH = "--samples 10 --size 2 --repetitions 2 --pools 0 --words 0 --engine local"
COMMANDS = (
    Command("compare score FILE COLUMNS --out OUT/scores.jsonl --all-turns", "scores.jsonl"),
    Command("compare rank FILE COLUMNS --replicates 20", needs_labels=True),
    Command("compare pair FILE#ID1 FILE#ID2 COLUMNS"),
    # Six dialogues are read and found too few, which is enough to see.
    Command("compare clean FILE COLUMNS --out OUT/cleaned", needs_labels=True, code=1),
    Command("compare train --method palaver --ratings FILE COLUMNS --out OUT/run", needs_labels=True, code=1),
    Command("personality score FILE COLUMNS --json", takes_responses=True),
    Command("personality score FILE COLUMNS --json --per speaker --min-words 5", is_slow=True),
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
        "probe triplets --text FILE COLUMNS --set-size 2 --engine local --out OUT/t.jsonl",
        "t.jsonl",
        takes_responses=True,
        is_slow=True,
    ),
    Command("train responder EXPERIMENT --out OUT/run --device cpu --max-steps 1", is_slow=True),
    Command(
        "study new --from FILE COLUMNS --preset likert --out OUT/study.toml",
        "study-items.jsonl",
        needs_labels=True,
        needs_ids=True,
        takes_responses=True,
    ),
)
RESPONSE_COMMANDS = (
    Command("judge FILE COLUMNS --by unigram_f1 --by comparator --json"),
    Command("compare rank FILE COLUMNS --replicates 20"),
    Command("compare score FILE COLUMNS --out OUT/scores.jsonl", "scores.jsonl"),
    Command("generate --contexts FILE COLUMNS --system echoing:echo --out OUT/r.jsonl", "r.jsonl"),
    Command("study new --from FILE COLUMNS --preset pairwise --out OUT/study.toml", "study-items.jsonl"),
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
        (folder / "echoing.py").write_text(ECHO)
        for module in (representation, scorer):
            stack.enter_context(mock.patch.object(module, "turn_encoder", return_value=toy_vectors))
        without_language_model = mock.patch.object(scorer, "_joined", lambda raters, device: raters)
        stack.enter_context(without_language_model)
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
    f"palaver {__version__} | seed",
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
    if command.needs_ids and shape.ids != IDS:
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


def compare_ratings() -> Iterator[tuple[str, str]]:
    """Each shape of the same ratings, with nothing or with what `study analyse` ranks otherwise."""
    if not (RATINGS / "files.toml").exists():
        return
    told = tomllib.loads((RATINGS / "files.toml").read_text(encoding="utf-8"))
    expected = None
    for file, words in told["files"].items():
        out = Path(f"ratings-{file}")
        more = told.get("analyse", {}).get(file, [])
        ran = call("study", "analyse", RATINGS / file, *words, *more, "--replicates", 20, "--out", out)
        if ran.code:
            yield file, f"exit {ran.code}: {ran.err}"
            continue
        rankings = json.loads((out / "results.json").read_text(encoding="utf-8"))["ranking"]
        scores = {f"{row['criterion']}, {row['method']}": row["scores"] for row in rankings}
        expected = scores if expected is None else expected
        others = [name for name, found in scores.items() if found != expected.get(name)]
        yield file, "; ".join(others) if scores else "nothing is ranked"  # a form may have one criterion only


@dataclass(frozen=True)
class WrongCall:
    """A call that cannot work, what its message must say, and its exit code: 1 for data, 2 for words."""

    words: str
    says: str
    code: int = 1


READERS = (
    "compare score FILE --out new.jsonl",
    "compare rank FILE",
    "compare pair FILE#a FILE#b",
    "compare clean FILE --out new",
    "compare train --ratings FILE --out new",
    "personality score FILE",
    "personality distinguish FILE",
    "personality fit FILE --out new.json",
    "generate --system echoing:echo --contexts FILE --out new.jsonl",
    "corpus show FILE",
    "corpus convert FILE new.jsonl",
    "judge FILE --by user",
    "knowledge agreement --corpus FILE",
    "probe transform passive FILE",
    "probe triplets --text FILE --out new.jsonl",
    "study analyse FILE --out new",
    "study describe FILE",
)
RUBBISH = ("missing.jsonl", "folder", "empty.jsonl", "photo.png", "photo.jsonl", "photo.txt", "noise.jsonl")
RUBBISH += ("noise.csv", "cut.jsonl.gz", "cut.json", "other.csv", "header.csv", "deep.json", "Zoë ☃.jsonl")
WRONG_CALLS = (
    *(WrongCall(words.replace("FILE", file), file) for words in READERS for file in RUBBISH),
    WrongCall("compare score ratings.csv --out new.jsonl", "palaver study analyse"),
    WrongCall("corpus show ratings.csv", "palaver study analyse"),
    WrongCall("judge ratings.csv --by user", "palaver study analyse"),
    WrongCall("study analyse turns.jsonl --out new", "it looks like dialogues"),
    WrongCall("study analyse responses.jsonl --out new", "it looks like responses"),
    WrongCall("compare rank triplets.jsonl", "palaver probe run"),
    WrongCall("compare scor turns.jsonl", "did you mean 'score'", 2),
    WrongCall("studdy", "did you mean 'study'", 2),
    WrongCall("personality scores x", "did you mean 'score'", 2),
    WrongCall("corpus shows x", "did you mean 'show'", 2),
    WrongCall("train respond x", "did you mean 'responder'", 2),
    WrongCall("judge turns.jsonl --bye user", "did you mean '--by'", 2),
    WrongCall("compare score turns.jsonl --ouut x", "did you mean '--out'", 2),
    WrongCall("corpus show turns.jsonl --colum a=b", "did you mean '--column'", 2),
    WrongCall("corpus show turns.jsonl -n -3", "-n", 2),
    WrongCall("compare score turns.jsonl --out new.jsonl --turns -1", "--turns", 2),
    WrongCall("compare rank turns.jsonl --replicates -5", "--replicates", 2),
    WrongCall("compare rank turns.jsonl --seed -1", "--seed", 2),
    WrongCall("compare rank turns.jsonl --confidence 1.5", "--confidence", 2),
    WrongCall("generate --system default --contexts turns.jsonl --limit 0 --out new.jsonl", "--limit", 2),
    WrongCall("personality score turns.jsonl --min-words 0", "--min-words", 2),
    WrongCall("personality score turns.jsonl --per word", "--per", 2),
    WrongCall("personality distinguish turns.jsonl --size 0", "--size", 2),
    WrongCall("probe triplets --text lines.txt --set-size -1 --out new.jsonl", "--set-size", 2),
    WrongCall("probe transform passive lines.txt --max-words 0", "--max-words", 2),
    WrongCall("compare score turns.jsonl", "--out", 2),
    WrongCall("generate --contexts turns.jsonl --out new.jsonl", "--system", 2),
    WrongCall("judge", "name the file to judge", 2),
    WrongCall("judge turns.jsonl", "no judge was named", 2),
    WrongCall("corpus convert turns.jsonl", "missing", 2),
    WrongCall("compare score turns.jsonl --out taken.jsonl", "taken.jsonl is there already"),
    WrongCall("compare score turns.jsonl --out turns.jsonl --force", "--out", 2),
    WrongCall("compare score turns.jsonl --out folder", "folder"),
    WrongCall("corpus convert turns.jsonl taken.jsonl", "taken.jsonl is there already"),
    WrongCall("corpus convert turns.jsonl taken.jsonl/x.jsonl", "taken.jsonl"),
    WrongCall("corpus convert turns.jsonl turns.jsonl --force", "turns.jsonl is the file that is read", 2),
    WrongCall("corpus convert turns.jsonl new.png", "new.png"),
    WrongCall("judge turns.jsonl --by user --out taken.jsonl", "taken.jsonl is there already"),
    WrongCall("judge turns.jsonl --by user --out new.png", "new.png"),
    WrongCall("generate --system echoing:echo --contexts turns.jsonl --out new.png", "new.png"),
    WrongCall("generate --system echoing:echo --contexts turns.jsonl --out taken.jsonl", "taken.jsonl"),
    WrongCall("probe triplets --text lines.txt --out taken.jsonl", "taken.jsonl is there already"),
    WrongCall("probe transform passive lines.txt --out taken.jsonl", "taken.jsonl is there already"),
    WrongCall("personality distinguish turns.jsonl --out full", "full is there already"),
    WrongCall("study analyse ratings.csv --out full", "full is there already"),
    WrongCall("compare pair turns.jsonl#101 turns.jsonl#1002", "did you mean '102'"),
    WrongCall("compare pair 101 1002 --dialogues turns.jsonl", "did you mean '102'"),
    WrongCall("compare pair turns.jsonl turns.jsonl", "turns.jsonl#101"),
    WrongCall("compare pair turns.jsnl#101 turns.jsonl#102", "did you mean 'turns.jsonl'"),
    WrongCall("compare rank turns.jsonl --comparator defalt", "did you mean 'default'"),
    WrongCall("compare rank turns.jsonl --comparator folder", "folder holds no comparator"),
    WrongCall("compare rank turns.jsonl --device gpu", "gpu"),
    WrongCall("judge turns.jsonl --by comparater", "did you mean 'comparator'"),
    WrongCall("judge turns.jsonl --by nosuch:thing", "nosuch"),
    WrongCall("judge turns.jsonl --by echoing:nothing", "nothing"),
    WrongCall("judge turns.jsonl --by unigram_f1", "turns.jsonl holds dialogues"),
    WrongCall("judge turns.jsonl --by user --column text", "FIELD=NAME", 2),
    WrongCall("judge turns.jsonl --by user --column text=utterance", "utterance"),
    WrongCall("corpus show own-columns.csv --column text=sayed", "did you mean 'said'"),
    WrongCall("compare score own-columns.csv --out new.jsonl --column text=sayed", "did you mean 'said'"),
    WrongCall("corpus show own-columns.csv", "own-columns.csv"),
    WrongCall("corpus show freinds", "did you mean 'friends'"),
    WrongCall("corpus show friends --data folder", "friends"),
    WrongCall("corpus show friends --data turns.jsonl", "turns.jsonl"),
    WrongCall("corpus show turns.jsonl --split trian", "trian"),
    WrongCall("corpus show friends --column text=said --data folder", "--column"),
    WrongCall("corpus get freinds", "did you mean 'friends'"),
    WrongCall("corpus get friends --from missing.csv", "missing.csv"),
    WrongCall("generate --system defalt --contexts turns.jsonl --out new.jsonl", "defalt"),
    WrongCall("generate --system nosuch:reply --contexts turns.jsonl --out new.jsonl", "nosuch"),
    WrongCall(
        "generate --system echoing:echo --contexts lines.txt --every-turn --out new.jsonl", "--every-turn"
    ),
    WrongCall(
        "generate --system echoing:echo --contexts turns.jsonl --speakers A --out new.jsonl", "speaker"
    ),
    WrongCall(
        "generate --system echoing:echo --contexts turns.jsonl --systems missing.toml --out new.jsonl",
        "missing.toml",
    ),
    WrongCall(
        "generate --system echoing:echo --contexts turns.jsonl --knowledge photo.txt --out new.jsonl",
        "photo.txt",
    ),
    WrongCall("chat defalt", "defalt"),
    WrongCall("knowledge agreement --corpus turns.jsonl", "reading sets"),
    WrongCall("knowledge agreement --corpus turns.jsonl --selector tfdif", "did you mean 'tfidf'", 2),
    WrongCall("knowledge agreement --corpus topical-chat --data folder", "folder"),
    WrongCall("personality score turns.jsonl --recogniser defalt", "defalt"),
    WrongCall("personality score turns.jsonl --recogniser photo.png", "photo.png"),
    WrongCall("personality score turns.jsonl --lexicon photo.png", "photo.png"),
    WrongCall("personality score lines.txt --lexicon missing.dic", "missing.dic"),
    WrongCall("personality score turns.jsonl --per speaker --min-words 5000", "--min-words"),
    WrongCall("personality distinguish turns.jsonl --character Usr", "Usr"),
    WrongCall("personality distinguish turns.jsonl --by sytem", "did you mean 'system'"),
    WrongCall("personality distinguish turns.jsonl --rename a", "OLD=NEW", 2),
    WrongCall("personality distinguish responses.jsonl --system gamma", "alpha, beta"),
    WrongCall("probe transform pasive lines.txt", "did you mean 'passive'"),
    WrongCall("probe triplets --data missing --out new.jsonl", "missing"),
    WrongCall("probe triplets --data turns.jsonl --out new.jsonl", "turns.jsonl"),
    WrongCall("probe triplets --text lines.txt --out new.png", "new.png"),
    WrongCall("probe run minilm --triplets missing.jsonl", "missing.jsonl"),
    WrongCall("probe run minilmm --triplets triplets.jsonl", "did you mean 'minilm'"),
    WrongCall("probe run minilm --triplets turns.jsonl", "turns.jsonl"),
    WrongCall("probe run no-such-encoder --triplets triplets.jsonl", "no-such-encoder"),
    WrongCall("train responder missing.toml", "missing.toml"),
    WrongCall("train responder photo.png", "photo.png"),
    WrongCall("train responder folder", "folder"),
    WrongCall("train responder turns.jsonl", "turns.jsonl"),
    WrongCall("train responder wrong.toml", "missing.jsonl"),
    WrongCall("train show tinny", "did you mean 'tiny'"),
    WrongCall("train show tiny --set model.dimm=3", "did you mean 'dim'"),
    WrongCall("train status folder", "folder"),
    WrongCall("train new --out full", "full is there already"),
    WrongCall("study new --preset likret --out new.toml", "did you mean 'likert'", 2),
    WrongCall("study check missing.toml", "missing.toml"),
    WrongCall("study check photo.png", "photo.png"),
    WrongCall("study check turns.jsonl", "turns.jsonl"),
    WrongCall("study simulate photo.png --out new.csv", "photo.png"),
    WrongCall("study power --raters -1", "--raters", 2),
    WrongCall("study export folder --out new.csv", "folder"),
    WrongCall("study status missing.toml", "missing.db"),
    WrongCall("study backup missing.toml --out new.db", "missing.db"),
    WrongCall("study restore missing.db --database new.db", "missing.db"),
    WrongCall("compare clean turns.jsonl --dev-pairs missing.jsonl --out new", "--dev-dialogues", 2),
    WrongCall("compare train --ratings turns.jsonl --preset cmad --out new", "did you mean 'cmade'"),
    WrongCall("compare train --ratings turns.jsonl --method papr --out new", "did you mean 'paper'", 2),
    WrongCall("compare train --ratings turns.jsonl --scale 5 1 --out new", "5 to 1"),
    WrongCall("compare train --ratings nameless.jsonl --out new", "no rating"),
    WrongCall("reproduce rankme --data folder", "folder"),
    WrongCall("reproduce probes --data missing", "missing"),
)


def write_wrong_files(folder: Path) -> None:
    """What the wrong calls name."""
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
    for name in ("photo.png", "photo.jsonl", "photo.txt"):
        (folder / name).write_bytes(picture)
    noise = np.random.default_rng(0).bytes(3000)
    for name in ("noise.jsonl", "noise.csv"):
        (folder / name).write_bytes(noise)
    dialogues = (DATA / "turns.jsonl").read_bytes()
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(dialogues)[:300])
    (folder / "cut.json").write_bytes((DATA / "bare.json").read_bytes()[:900])
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "empty.jsonl").touch()
    (folder / "other.csv").write_text("colour,shape\nred,round\n")
    (folder / "header.csv").write_text("dialogue,speaker,text\n")
    (folder / "Zoë ☃.jsonl").write_text('{"who": "Zoë"}\n', encoding="utf-8")
    (folder / "lines.txt").write_text("The cat chased the dog.\nThe dog ran.\n")
    (folder / "ratings.csv").write_text(
        "item,system,rater,criterion,value\n1,A,ann,quality,3\n1,B,ann,quality,2\n"
    )
    (folder / "wrong.toml").write_text('preset = "tiny"\n[data]\ntrain = [{ path = "missing.jsonl" }]\n')
    triplet = dict.fromkeys(("original", "plus", "star"), "The cat sat.")
    (folder / "triplets.jsonl").write_text(json.dumps({"set": "negation-detection", **triplet}) + "\n")
    (folder / "taken.jsonl").write_text("mine\n")
    (folder / "full").mkdir()
    (folder / "full" / "thesis.txt").write_text("mine\n")
    (folder / "folder").mkdir()
    for name in ("turns.jsonl", "nameless.jsonl", "own-columns.csv", "responses.jsonl"):
        shutil.copyfile(DATA / name, folder / name)


def refuse(wrong: WrongCall) -> str:
    """What is wrong with the answer to a wrong call, or nothing."""
    words = [
        word.replace("_SNOW_", "Zoë ☃.jsonl") for word in wrong.words.replace("Zoë ☃.jsonl", "_SNOW_").split()
    ]
    try:
        ran = call(*words)
    except Exception as error:  # a traceback, to a user
        return f"{type(error).__name__}: {error}"
    if ran.code != wrong.code:
        return f"exit {ran.code}: {ran.err or ran.out}"
    if ran.err.count("error:") != 1 or "Traceback" in ran.err:
        return ran.err
    return "" if wrong.says in ran.err else f"no {wrong.says!r} in {ran.err}"


def make_wrong_calls(*, quick: bool = False) -> list[tuple[WrongCall, str]]:
    """Every wrong call, with what is wrong with the answer; with `quick` a third of those about rubbish."""
    n_rubbish = len(READERS) * len(RUBBISH)
    calls = (*WRONG_CALLS[:n_rubbish:3], *WRONG_CALLS[n_rubbish:]) if quick else WRONG_CALLS
    with workplace() as folder:
        write_wrong_files(folder)
        return [(wrong, refuse(wrong)) for wrong in calls]


def main() -> int:
    with workplace():
        answers = [(shape.file, words.partition(" FILE")[0], what) for words, shape, what in compare_all()]
        answers += [(file, "study analyse", what) for file, what in compare_ratings()]
    for file, words, what in answers:
        print(f"{file:<24} {words:<28} {what or 'ok'}")
    n_different = sum(bool(what) for _, _, what in answers)
    print(f"{len(answers)} answers, {n_different} differ")
    calls = make_wrong_calls()
    accepted = [(wrong, what) for wrong, what in calls if what]
    for wrong, what in accepted:
        print(f"palaver {wrong.words}: {what}")
    print(f"{len(calls)} wrong calls, {len(accepted)} not refused as they should be")
    return int(bool(n_different or accepted))


if __name__ == "__main__":
    sys.exit(main())
