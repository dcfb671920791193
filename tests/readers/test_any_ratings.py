"""The same ratings in twelve shapes are read to equal values, and through every verb that takes them."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.cli.main import run
from palaver.readers.rating_options import RatingOptions, parse_labels
from palaver.studies import RatingTable, read_ratings
from palaver.studies.ratings import read_rating_table

pytestmark = pytest.mark.filterwarnings("error", "ignore::pytest.PytestUnraisableExceptionWarning")

FOLDER = Path(__file__).parents[1] / "data" / "ratings-shapes"
SHAPES = tomllib.loads((FOLDER / "files.toml").read_text(encoding="utf-8"))
RATING_FILES: dict[str, list[str]] = SHAPES["files"]

Call = Callable[..., str]


def content(table: RatingTable, criterion: str) -> set[tuple[Any, ...]]:
    return set(table.of(criterion).select("item", "system", "rater", "value").rows())


def options_of(words: list[str]) -> RatingOptions:
    """The command line's options as a value."""
    fields: dict[str, Any] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        fields[name.removeprefix("--")] = parse_labels([value]) if name == "--labels" else value.split(",")
    return RatingOptions(**fields)


@pytest.fixture
def palaver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def call(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["palaver", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            run()
        written = capsys.readouterr()
        assert (stopped.value.code or 0) == code, written.out + written.err
        return written.out + written.err

    return call


def test_twelve_files_hold_the_same_ratings() -> None:
    assert len(RATING_FILES) == 12
    expected = read_ratings(FOLDER / "long.csv")
    assert expected.reading.n_ratings == 142
    for name, words in RATING_FILES.items():
        table = read_rating_table(FOLDER / name, options_of(words))
        for criterion in table.criteria:
            assert content(table, criterion) == content(expected, criterion), name
        assert table.criteria == (("quality",) if name == "forms.csv" else ("quality", "warmth")), name
        assert table.reading.dropped == (("no value given", len(table.criteria)),), name


@pytest.mark.parametrize("name", ["words.csv", "forms.csv"])
def test_every_verb_takes_them(name: str, palaver: Call) -> None:
    """What `convert` writes is analysed to the same means and ranking as the file itself."""
    words = RATING_FILES[name]
    palaver("study", "convert", FOLDER / name, "long.csv", *words)
    means = {}
    for file, more in ((FOLDER / name, words + SHAPES["analyse"].get(name, [])), ("long.csv", [])):
        out = palaver("study", "analyse", file, "--out", "o", "--force", "--replicates", 20, *more)
        assert "1. alpha" in out
        results = json.loads(Path("o/results.json").read_text(encoding="utf-8"))
        ranking = next(row for row in results["ranking"] if row["method"] == "bootstrap")
        means[str(file)] = [(row["system"], row["score"]) for row in ranking["scores"]]
    assert len({json.dumps(rows) for rows in means.values()}) == 1
    described = palaver("study", "describe", FOLDER / name, *words)
    assert "left out, no value given" in described
    assert f"{dict(means['long.csv'])['alpha']:.4g}" in described


# --- the page about one's own ratings -----------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "own-ratings.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ") if "```csv" in part}


@pytest.mark.parametrize("title", SECTIONS)
def test_every_example_of_the_page_is_read(title: str, palaver: Call) -> None:
    """With the options of the command that stands in the same section."""
    (example,) = re.findall(r"```csv\n(.*?)```", SECTIONS[title], flags=re.S)
    assert len(example.splitlines()) == 3
    commands = re.findall(r"```console.*\npalaver study analyse \S+(.*)\n```", SECTIONS[title])
    Path("ratings.csv").write_text(example, encoding="utf-8")
    options = shlex.split(commands[0]) if commands else []
    assert re.match(r"\d+ ratings?, ", palaver("study", "describe", "ratings.csv", *options))
    palaver("study", "convert", "ratings.csv", "long.jsonl", *options)


def test_the_page_shows_every_shape() -> None:
    assert len(SECTIONS) >= 9
