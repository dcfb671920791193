"""The package under examples/plug-in: installed as a stranger would do it, used by name in every registry."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.catalogue import CORPORA, read_corpus
from palaver.errors import UserError
from palaver.generation.systems_file import SYSTEMS, find_system, load_systems
from palaver.judges import JUDGES, open_judge
from palaver.knowledge.selector import make_selector
from palaver.metrics.evaluate import evaluate
from palaver.metrics.metric import METRICS
from palaver.models.encoders import ENCODERS, open_encoder
from palaver.personality.recogniser import RECOGNISERS, load_recogniser, score_texts
from palaver.registry import Registry
from palaver.schema import Dialogue, Request, Response, Turn
from palaver.schema.scale import SCALES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "plug-in.md"
CONTEXTS = "I like rain!\nWhere is the station, please?\n"


REGISTRIES: list[Registry[Any]] = [SYSTEMS, METRICS, ENCODERS, RECOGNISERS, JUDGES, SCALES, CORPORA]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder the package is installed in, on the path, with registries that look again."""
    pytest.importorskip("pip")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    ran = subprocess.run([*pip, str(ROOT / "examples" / "plug-in")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    sys.path.insert(0, str(folder))
    _look_again()
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("palaver_example", None)
    _look_again()


def _look_again() -> None:
    for registry in REGISTRIES:
        registry.__dict__.pop("plugins", None)  # a cached property
        registry._loaded.clear()


def dialogue(*texts: str) -> Dialogue:
    return Dialogue(id="d", turns=tuple(Turn(speaker="AB"[n % 2], text=t) for n, t in enumerate(texts)))


def test_a_system(installed: Path, tmp_path: Path) -> None:
    assert "parrot" in SYSTEMS
    (reply,) = find_system("parrot")().reply([Request(dialogue("hello"))])
    assert reply.text == "You said: hello"
    file = tmp_path / "systems.toml"
    file.write_text('[systems.polly]\nkind = "parrot"\nprefix = "Polly heard:"\n')
    (reply,) = load_systems(file)["polly"]().reply([Request(dialogue("hello"))])
    assert reply.text == "Polly heard: hello"
    file.write_text('[systems.polly]\nkind = "parrot"\nprefx = "Polly heard:"\n')
    with pytest.raises(UserError, match="did you mean 'prefix'"):
        load_systems(file)["polly"]()
    with pytest.raises(UserError, match="did you mean 'parrot'"):
        find_system("parot")


def test_an_encoder(installed: Path) -> None:
    encoder = open_encoder("letters")
    assert encoder.encode(["abba"])[0][:3] == [2, 2, 0]
    assert encoder.signature
    chosen = make_selector("encoder", encode="letters").select(["zebra"], ["xylophone", "braze"])
    assert chosen is not None
    assert chosen.sentence == "braze"


def test_a_metric(installed: Path) -> None:
    (row,) = evaluate(["Why?", "So."], metrics=["questions"])
    assert (row.name, row.value, row.better) == ("questions", 0.5, "neither")
    assert "questions" in [result.name for result in evaluate(["Why?"])]


def test_a_recogniser(installed: Path) -> None:
    assert score_texts(load_recogniser("punctuation"), ["Hi!!"]).values.tolist() == [[4, 4, 3, 4, 4]]


def test_a_judge(installed: Path) -> None:
    response = Response(id="1", system="s", context=(Turn(speaker="A", text="hi"),), response="Yes, please.")
    assert [(r.criterion, r.value) for r in open_judge("polite").judge([response])] == [("polite", 1.0)]


def test_a_scale(installed: Path) -> None:
    stars: Any = SCALES.get("stars")()
    assert stars.parse("5") == 5
    with pytest.raises(ValueError):
        stars.parse("6")


def test_a_corpus(installed: Path) -> None:
    jokes = list(read_corpus("knock-knock"))
    assert [joke.turns[-1].text for joke in jokes] == ["Owls who?", "Lettuce who?"]


def test_the_commands_of_the_page_run(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "contexts.txt").write_text(CONTEXTS)
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("palaver ")]
    assert len(lines) >= 4
    source = str(Path(importlib.util.find_spec("palaver").origin).parent.parent)  # type: ignore[union-attr, arg-type]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(installed), source]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    for line in lines:
        words = shlex.split(line)[1:]
        ran = subprocess.run(
            [sys.executable, "-m", "palaver", *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"
    assert "You said: I like rain!" in (tmp_path / "responses.jsonl").read_text(encoding="utf-8")
