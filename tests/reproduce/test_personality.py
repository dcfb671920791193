"""Xing & Fernández (2018) reproduced: on made-up shows whose truth is known, and on the real scripts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from palaver.errors import DataError, UserError
from palaver.personality.plan import Settings
from palaver.personality.recogniser import load_recogniser
from palaver.reproduce.personality import EXTREMES, SHOWS, TABLE_2, Responses, print_reproduction, reproduce
from palaver.reproduce.personality_examples import examples, generate_responses, ocean_of_scripts
from palaver.schema import Reply

CAST = {"friends": ("Joey", "Ross"), "bbt": ("Raj", "Amy")}
LINES = 2_000
SMALL = Settings(samples=20, size=40, repetitions=2, replicates=10, ocean_samples=5, unscaled_words=True)
FAVOURITES = (
    "lovely dear friend",
    "actually because however",
    "great party fun",
    "kind thank you",
    "afraid alas",
)
FILLERS = ("well", "the", "door", "is", "there", "now", "and", "a", "table")


def say(rng: np.random.Generator, likes: int) -> str:
    words = [*rng.choice(FILLERS, 4), *rng.choice(FAVOURITES[likes].split(), 1 + likes % 3)]
    return " ".join(words) + ("!" if likes % 2 else ".")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    rng = np.random.default_rng(0)
    for show, cast in CAST.items():
        with (folder / f"{show}_turns.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("show", "season", "episode", "scene", "speaker", "text"))
            for i in range(LINES):
                episode, scene = divmod(i, 100)
                for number, name in enumerate(cast):
                    rows.writerow((show, 1, episode + 1, scene + 1, name, say(rng, number)))
    return folder


def write_responses(path: Path, names: Sequence[str], n: int = 200) -> Path:
    rng = np.random.default_rng(1)
    rows = [
        {"id": str(i), "system": "toy", "speaker": name, "response": say(rng, k % 5)}
        for i in range(n)
        for k, name in enumerate(names)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def shown(found: Any, width: int = 80) -> str:
    text = io.StringIO()
    print_reproduction(found, Console(file=text, width=width))
    return text.getvalue()


@pytest.fixture(scope="module")
def found(scripts: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("responses")
    given = Responses(
        speaker=write_responses(
            folder / "speaker.cleaned.jsonl", [name for cast in CAST.values() for name in cast]
        ),
        extremes=write_responses(folder / "extremes.cleaned.jsonl", list(EXTREMES)),
    )
    return reproduce(scripts, load_recogniser(), settings=SMALL, responses=given)


def test_table_1_has_the_papers_rows_and_the_controls(found: Any) -> None:
    rows = [row for row in found.rows if row.table == "Table 1: Friends"]
    by_label = {row.label: row for row in rows}
    assert by_label["Gold"].paper.f1 == 0.61
    assert by_label["Gold"].ours.f1 > 0.9
    assert by_label["Baseline"].ours.f1 < 0.75
    assert by_label["  by episode"].ours.f1 > 0.9
    assert by_label["Speaker"].ours.f1 > 0.9
    assert by_label["Personality"].ours is None
    assert by_label["Personality"].note == "needs responses"
    assert not found.missed
    assert set(found.results) == {
        *SHOWS.values(),
        *(f"{title}, Speaker" for title in SHOWS.values()),
        "Extremes",
    }


def test_table_2_has_a_row_for_each_type(found: Any) -> None:
    rows = {row.label: row for row in found.rows if row.table.startswith("Table 2")}
    assert set(TABLE_2) <= set(rows)
    assert rows["Average"].ours.f1 == pytest.approx(np.mean([rows[name].ours.f1 for name in EXTREMES]))
    assert rows["Average"].ours.f1 > rows["Baseline"].ours.f1


@pytest.mark.parametrize("width", [80, 200])
def test_no_number_is_cut_off_in_the_terminal(found: Any, width: int) -> None:
    text = shown(found, width)
    assert "…" not in text
    assert "0.61±.12" in text
    assert "Personality: needs responses" in text
    assert "Distinguishable is not the same as having the traits" in text.replace("\n", " ")


def test_poorer_than_the_paper_is_said(scripts: Path, tmp_path: Path) -> None:
    for path in scripts.iterdir():  # names dealt out at random: nobody can be told apart
        rng = np.random.default_rng(2)
        rows = list(csv.reader(path.open(encoding="utf-8")))
        names = rng.permutation([row[4] for row in rows[1:]])
        with (tmp_path / path.name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                [rows[0], *([*r[:4], n, r[5]] for r, n in zip(rows[1:], names, strict=True))]
            )
    quick = Settings(samples=20, size=40, repetitions=2, replicates=0, ocean_samples=5)
    poor = reproduce(tmp_path, load_recogniser(), settings=quick)
    assert [text.split(":")[0] for text in poor.missed] == ["The Big Bang Theory"] or len(poor.missed) == 2
    assert "MISSED: The Big Bang Theory: gold F1" in shown(poor)


def test_no_scripts_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not hold the transcripts") as error:
        reproduce(tmp_path, load_recogniser(), settings=SMALL)
    assert "friends_turns.csv" in str(error.value.problems)


def test_responses_of_other_people(scripts: Path, tmp_path: Path) -> None:
    wrong = Responses(speaker=write_responses(tmp_path / "a.cleaned.jsonl", ("Joey", "Raj", "Amy")))
    with pytest.raises(UserError, match="the Speaker responses have none of Ross"):
        reproduce(scripts, load_recogniser(), settings=SMALL, responses=wrong)


class Actor:
    """A system that says who it was asked to be."""

    name = "actor"
    takes = frozenset({"speaker", "ocean"})

    def __init__(self, *speakers: str) -> None:
        self.speakers = speakers

    def reply(self, requests: Sequence[Any]) -> list[Any]:
        return [Reply(text=f"{r.speaker} {r.ocean}") for r in requests]


def test_table_3_asks_each_model_as_it_should_be_asked() -> None:
    ocean = {"Joey": (1.0,) * 5, "Raj": (2.0,) * 5}
    rows = examples(Actor("Joey"), Actor("Raj"), ocean)
    said = {who: ours for who, _, ours in rows}
    assert said["Joey (Speaker)"] == "Joey None"
    assert said["Joey (Personality)"] == "None (1.0, 1.0, 1.0, 1.0, 1.0)"
    assert said["Raj (Personality)"] == "Raj None"  # the scores that it was trained with
    assert said["Open (Personality)"] == "None (6.5, 3.5, 3.5, 3.5, 3.5)"
    assert "Raj (Speaker)" not in said


def test_responses_are_made_for_every_condition(tmp_path: Path) -> None:
    (tmp_path / "contexts.txt").write_text("Hello!\nDo you love me?\n", encoding="utf-8")
    ocean = {"Joey": (1.0,) * 5, "Raj": (2.0,) * 5}
    made = generate_responses(Actor("Joey", "Raj"), Actor(), ocean, str(tmp_path / "contexts.txt"), tmp_path)
    rows = {
        name: [json.loads(line) for line in getattr(made, name).read_text(encoding="utf-8").splitlines()]
        for name in ("speaker", "personality", "extremes")
    }
    assert [len(rows[name]) for name in rows] == [4, 4, 10]
    assert {row["response"] for row in rows["personality"]} == {
        "None (1.0, 1.0, 1.0, 1.0, 1.0)",
        "None (2.0, 2.0, 2.0, 2.0, 2.0)",
    }
    assert {row["speaker"] for row in rows["extremes"]} == set(EXTREMES)


def test_gold_on_the_real_scripts_is_at_least_the_papers(shared_data: Path) -> None:
    quick = Settings(samples=100, repetitions=2, replicates=0, ocean_samples=5)
    real = reproduce(shared_data / "scripts", load_recogniser(), settings=quick)
    assert not real.missed
    table = ocean_of_scripts(shared_data / "scripts", load_recogniser(), quick)
    assert len(table) == 13
    assert table["Sheldon"][2] < table["Penny"][2]  # extraversion
