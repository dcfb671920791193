"""Where the files of the runs of SmolLM2 stand, and the turns of the test sets."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUNS = Path("runs/smollm")
MADE = RUNS / "made"
SPLITS = ("train", "valid_freq", "test_freq", "test_rare")
TESTS = SPLITS[2:]
SHOWS = ("friends", "big-bang-theory")
NO_SENTENCE = "no-sentence"
"""In place of a selector: the model is told nothing."""


def unpack(source: Path) -> None:
    """What was carried, where a run reads it."""
    MADE.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.suffix == ".xz":
            with lzma.open(path) as packed, (MADE / path.stem).open("wb") as file:
                shutil.copyfileobj(packed, file)
        else:
            shutil.copy(path, MADE)


def chosen_sentences(splits: Iterable[str], selector: str = "oracle") -> dict[str, list[str]]:
    """Dialogue -> the sentence of each turn."""
    sentences: dict[str, list[str]] = {}
    for split in splits:
        with (MADE / f"{split}.{selector}.jsonl").open(encoding="utf-8") as file:
            sentences |= dict(map(json.loads, file))
    return sentences


def read_turns(split: str, selector: str = "oracle", limit: int = 0) -> list[dict[str, Any]]:
    """Every turn but the first of each conversation, with its history and its sentence."""
    sentences = {} if selector == NO_SENTENCE else chosen_sentences([split], selector)
    turns = []
    with (MADE / f"{split}.jsonl").open(encoding="utf-8") as file:
        for dialogue in map(json.loads, file):
            texts = [turn["t"].strip() for turn in dialogue["turns"]]
            for i in range(1, len(texts)):
                if texts[i] and any(texts[:i]):
                    fact = "" if selector == NO_SENTENCE else sentences[dialogue["id"]][i]
                    turn = {"id": f"{dialogue['id']}:{i}", "split": split, "history": texts[:i]}
                    turns.append({**turn, "response": texts[i], "knowledge": fact})
    return turns[: limit or None]


def without_folders(text: str) -> str:
    """A results file names no machine's folders: of an absolute path the last part stays."""
    head, equals, path = text.rpartition("=")
    return f"{head}{equals}{Path(path).name}" if path.startswith("/") else text
