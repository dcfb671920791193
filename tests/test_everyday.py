"""The conversations that `palaver chat` was taught with: well formed, and far from what it is judged by."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent.parent / "experiments/responders"
FILES = {"train": ("train", "more"), "valid": ("valid",)}
SPLITS: dict[str, list[dict[str, Any]]] = {
    split: [
        json.loads(line)
        for name in names
        for line in (HERE / f"everyday-{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for split, names in FILES.items()
}
DIALOGUES = [*SPLITS["train"], *SPLITS["valid"]]
DEVELOPMENT = (HERE / "everyday-development.txt").read_text(encoding="utf-8").splitlines()
THEMES = {dialogue["id"].rsplit("-", 1)[0] for dialogue in DIALOGUES}


def judged() -> list[str]:
    """The prompts of the evaluation and what follows them, without running the script."""
    tree = ast.parse((HERE / "everyday.py").read_text(encoding="utf-8"))
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if node.targets[0].id == "PROMPTS"
    )
    prompts: dict[str, str] = ast.literal_eval(value)
    return [*prompts, *prompts.values()]


def new() -> list[str]:
    """The lines of the sixty conversations that were written later."""
    rows = map(json.loads, (HERE / "everyday-prompts.jsonl").read_text(encoding="utf-8").splitlines())
    return list(dict.fromkeys(line for row in rows for line in row["lines"]))


def said() -> list[str]:
    """What persons say in the conversations."""
    return [turn["text"] for dialogue in DIALOGUES for turn in dialogue["turns"][::2]]


def trigrams(text: str) -> set[str]:
    spelled = f" {re.sub(r'[^a-z0-9 ]', '', text.lower())} "
    return {spelled[i : i + 3] for i in range(len(spelled) - 2)}


def test_persons_and_the_partner_take_turns() -> None:
    assert (len(SPLITS["train"]), len(SPLITS["valid"]), len(THEMES)) == (711, 82, 28)
    assert len({dialogue["id"] for dialogue in DIALOGUES}) == len(DIALOGUES)
    for dialogue in DIALOGUES:
        speakers = [turn["speaker"] for turn in dialogue["turns"]]
        assert speakers == ["person", "partner"] * (len(speakers) // 2)
        for reply in dialogue["turns"][1::2]:
            assert 1 <= len(re.findall(r"[.!?]+[\"”]?(?: |$)", reply["text"])) <= 4, reply
            assert len(reply["text"].split()) <= 45, reply


def test_every_theme_is_held_out_in_part_and_nothing_is_in_both() -> None:
    assert {dialogue["id"].rsplit("-", 1)[0] for dialogue in SPLITS["train"]} == THEMES
    assert len({dialogue["id"].rsplit("-", 1)[0] for dialogue in SPLITS["valid"]}) >= 25
    first = {split: {d["turns"][0]["text"].lower() for d in SPLITS[split]} for split in SPLITS}
    assert not first["train"] & first["valid"]


@pytest.mark.parametrize("which", ["evaluation", "development", "new"])
def test_no_prompt_is_near_what_was_taught(which: str) -> None:
    prompts = {"evaluation": judged(), "development": DEVELOPMENT, "new": new()}[which]
    assert len(prompts) == (80 if which == "new" else 20)
    assert not set(judged()) & set(DEVELOPMENT)
    taught = [trigrams(text) for text in said()]
    for prompt in prompts:
        own = trigrams(prompt)
        assert max(len(own & other) / len(own | other) for other in taught) < 0.7, prompt
    pytest.importorskip("wordllama")
    from palaver.models.encoders import open_encoder

    encoder = open_encoder("wordllama")
    theirs, ours = (np.asarray(encoder.encode(texts), dtype=float) for texts in (said(), prompts))
    cosines = (theirs @ ours.T) / np.outer(np.linalg.norm(theirs, axis=1), np.linalg.norm(ours, axis=1))
    assert cosines.max() < 0.8, prompts[int(cosines.max(0).argmax())]
