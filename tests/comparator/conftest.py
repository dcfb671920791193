"""A tiny encoder and made-up rated dialogues, so that the whole pipeline runs in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOOD = ["what a lovely idea", "tell me more about your dog", "i love music too", "that is a great question"]
BAD = ["i do not know", "go go go go", "pizza pizza pizza", "no no no"]
USER = ["hello there", "do you like music", "what is your dog called", "that is nice", "why do you say that"]
WORDS = sorted({word for text in (*GOOD, *BAD, *USER) for word in text.split()})


def rated_row(i: int, quality: float, rng: np.random.Generator, **more: Any) -> dict[str, Any]:
    """A dialogue whose system turns are the more often good the higher its quality from 0 to 1."""
    turns = []
    for _ in range(3):
        turns.append({"spk": "user", "text": USER[int(rng.integers(len(USER)))]})
        said = GOOD if rng.random() < quality else BAD
        turns.append({"spk": "bot", "text": said[int(rng.integers(4))]})
    return {"id": f"d{i}", "turns": turns, "worker": f"w{i % 7}", "hit": f"h{i // 6}", "bot": "B", **more}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers, 32 wide, random weights, a WordPiece tokenizer of the words above."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder: Path = tmp_path_factory.mktemp("encoder")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def rated_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """60 rated dialogues (noisy ratings from 1 to 5), 24 development dialogues and their compared pairs."""
    folder = tmp_path_factory.mktemp("rated")
    rng = np.random.default_rng(0)
    quality = rng.random(84)
    noisy = np.clip(np.round(1 + 4 * quality + rng.normal(0, 0.7, 84)), 1, 5)
    rows = [rated_row(i, quality[i], rng, rating=int(noisy[i])) for i in range(84)]
    pairs = [
        {"a": f"d{i}", "b": f"d{j}", "better": "a" if quality[i] > quality[j] else "b"}
        for i in range(60, 84)
        for j in range(i + 1, min(i + 4, 84))
    ]
    return {
        "train": write_rows(folder / "train.jsonl", rows[:60]),
        "dev": write_rows(folder / "dev.jsonl", rows[60:]),
        "pairs": write_rows(folder / "pairs.jsonl", pairs),
    }
