"""`palaver knowledge build` and `palaver knowledge reading-sets`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palaver = Callable[..., Any]


def test_from_the_sample_to_reading_sets(palaver: Palaver, tmp_path: Path) -> None:
    built = palaver("knowledge", "build", "sample", "--budgets", "all", "--out", tmp_path / "kb.jsonl")
    assert (built.code, built.err) == (0, "")
    assert "wrote 24 entities and 12 articles to" in built.out
    words = ["knowledge", "reading-sets", "--number", 10, "--seed", 5]
    made = palaver(*words, tmp_path / "kb.jsonl", "--out", tmp_path / "sets.jsonl")
    assert (made.code, made.err) == (0, "")
    assert "wrote 10 pairs to" in made.out
    assert "10 articles, none in more than 1 pair\n" in made.out
    same = palaver(*words, "sample", "--out", tmp_path / "same.jsonl", "--json")
    counts = json.loads(same.out)
    assert sorted(counts["configurations"].values()) == [2, 2, 3, 3]
    assert (tmp_path / "same.jsonl").read_bytes() == (tmp_path / "sets.jsonl").read_bytes()
    shown = palaver("corpus", "show", tmp_path / "sets.jsonl", "-n", 1)
    assert "10 dialogues, 0 turns" in shown.out
    back = palaver(
        "knowledge",
        "build",
        tmp_path / "sets.jsonl",
        "--budgets",
        "all",
        "--fewest-facts",
        4,
        "--json",
        "--out",
        tmp_path / "back.jsonl",
    )
    assert json.loads(back.out)["entities"] > 5
    again = palaver(*words, "sample", "--out", tmp_path / "sets.jsonl")
    assert (again.code, "is there already" in again.err) == (1, True)
    more = palaver(
        *("knowledge", "reading-sets", "sample", "--number", 39, "--out", tmp_path / "more.jsonl"),
        *("--accepted", tmp_path / "sets.jsonl"),
    )
    assert more.code == 1
    assert "39 pairs were asked for, the articles allow 38" in more.err
    assert "of which 10 have been held" in more.err
    words = [*words, "sample", "--accepted", tmp_path / "sets.jsonl", "--out", tmp_path / "more.jsonl"]
    same_seed = palaver(*words)
    assert (same_seed.code, "conversations of the same ids" in same_seed.err) == (1, True)
    assert palaver(*words, "--seed", 6, "--json").code == 0


def test_budgets_and_utterances(palaver: Palaver, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(
        "My owl plays the piano.\nOwls!\nDo you drink tea?\nBees, bees and a bee\n"
    )
    words = ["--budgets", "Nature=2,Food=1,Music=1,Inventions=0", "--utterances", tmp_path / "said.txt"]
    ran = palaver("knowledge", "build", "sample", *words, "--out", tmp_path / "kb.jsonl", "--json")
    made = json.loads(ran.out)
    assert (made["entities"], made["articles"]) == (4, 0)
    rows = [json.loads(line) for line in (tmp_path / "kb.jsonl").read_text().splitlines()]
    assert {row["name"]: row["frequency"] for row in rows} == {"Honeybee": 1, "Owl": 2, "Tea": 1, "Piano": 1}
    assert made["refused"]["entities"] == {
        "beyond the budget of its topic": [
            name for names in made["refused"]["entities"].values() for name in names
        ]
    }
    sets = palaver("knowledge", "reading-sets", tmp_path / "kb.jsonl", "--out", tmp_path / "sets.jsonl")
    assert sets.code == 1
    assert "there is no article in" in sets.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["build", "sample", "--budgets", "Nature"],
            2,
            "--budgets: expected paper, all, a number, or TOPIC=N",
        ),
        (["build", "sample", "--budgets", "0"], 2, "--budgets: expected"),
        (["build", "sample", "--budgets", "Nature=1,Nature=2"], 2, "Nature is there twice"),
        (["build", "sample", "--budgets", "Nature=0"], 2, "no topic has an entity"),
        (["build", "sample"], 1, "there is no budget for Nature, Food, Inventions"),
        (["build", "nothing.jsonl"], 1, "there is no nothing.jsonl"),
        (["build", "sample", "--articles", "0"], 2, "--articles"),
        (["reading-sets", "sample", "--number", "49"], 1, "49 pairs were asked for, the articles allow 48"),
        (["reading-sets", "sample", "--number", "0"], 2, "--number"),
        (["reading-sets", "nothing.jsonl"], 1, "nothing.jsonl"),
        (["reading-sets", "sample", "--accepted", "nothing.jsonl"], 1, "nothing.jsonl"),
        (["reading-sets", "sample", "--configurations", "nothing.toml"], 1, "nothing.toml"),
    ],
)
def test_wrong_words(words: list[str], code: int, said: str, palaver: Palaver, tmp_path: Path) -> None:
    ran = palaver("knowledge", *words, "--out", tmp_path / "out.jsonl")
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert not (tmp_path / "out.jsonl").exists()


def test_a_broken_file_is_one_message(palaver: Palaver, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"name": "Tea", "facts": [1]}\n{"text": 5}\nnot json\n')
    ran = palaver("knowledge", "build", tmp_path / "bad.jsonl", "--out", tmp_path / "kb.jsonl")
    assert ran.code == 1
    assert "line 1: facts[1]: expected a table, found 1" in ran.err
    assert "line 2: text: expected a text, found 5" in ran.err
    assert "line 3: not JSON" in ran.err
    assert 'expected {"name": "Tea"' in ran.err


def test_topical_chat_by_its_folder(palaver: Palaver, shared_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    (folder / "conversations").mkdir(parents=True)
    (folder / "reading_sets").mkdir()
    for part in ("conversations", "reading_sets"):
        (folder / part / "valid_freq.json.gz").symlink_to(
            shared_data / f"topical_chat/{part}/valid_freq.json.gz"
        )
    (folder / "entity_to_topic.json").symlink_to(shared_data / "topical_chat/entity_to_topic.json")
    words = ["knowledge", "build", folder, "--fewest-facts", 4, "--out", tmp_path / "kb.jsonl", "--json"]
    made = json.loads(palaver(*words).out)
    assert {one["topic"]: one["budget"] for one in made["coverage"]}["Movies"] == 66
    assert made["entities"] > 10
    assert any("of 11,681" in note for note in made["notes"])
