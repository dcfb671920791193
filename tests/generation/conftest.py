"""Tiny checkpoints of every kind with random weights, dialogues, and a system without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from palaver.generation.system import check_context, request_key
from palaver.schema import Dialogue, Reply, Request, Turn

TEXTS = [
    "hello there , how are you ?",
    "i am fine , thanks .",
    "what do you like to eat ?",
    "i like pizza and cheese .",
    "the moon is far away from the earth .",
] * 4


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plain, speaker, personality and knowledge checkpoints."""
    import torch

    from palaver.models.pretrained import build
    from palaver.text.vocabulary import Vocabulary

    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("checkpoints")
    small = {"model": "seq2seq", "embedding": 12, "hidden": 12, "layers": 2, "max_response": 12}
    transformer = {"model": "knowledge-transformer", "dim": 16, "layers": 1, "feed_forward": 16}
    kinds = {
        "plain": small,
        "speaker": {**small, "conditioning": "speaker", "speakers": ["Joey", "Monica", "Ross"]},
        "personality": {**small, "conditioning": "personality", "ocean": {"Joey": [6, 2, 6, 5, 3]}},
        "knowledge": {**transformer, "positions": "sinusoidal", "max_response": 12, "max_knowledge": 8},
    }
    words = Vocabulary.train(TEXTS, kind="word", size=60)
    for name, config in kinds.items():
        model = build({**config, "vocab_size": len(words)})
        for weights in model.parameters():
            torch.nn.init.normal_(weights, std=0.7)  # random, but not all the same answer
        model.eval().save_pretrained(root / name)
        words.save(root / name)
    return root


Talk = Callable[..., Dialogue]


@pytest.fixture(scope="session")
def talk() -> Talk:
    """`talk("hello", "hi", "how are you?")`: two speakers in turn."""

    def build(*texts: str, id: str = "d") -> Dialogue:
        turns = [Turn(speaker="ab"[i % 2], text=text) for i, text in enumerate(texts)]
        return Dialogue(id=id, turns=tuple(turns))

    return build


class Echo:
    """Replies with the last turn, who speaks, and its key; counts what it was handed."""

    def __init__(self, name: str = "echo", speakers: tuple[str, ...] = ("Joey", "Ross")) -> None:
        self.name = name
        self.speakers = speakers
        self.handed: list[int] = []

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        self.handed.append(len(requests))
        found = []
        for request in requests:
            check_context(request.dialogue)
            who = request.speaker or request.ocean or "nobody"
            text = f"{who} heard {request.dialogue.turns[-1].text} {request_key(request) % 1000}"
            found.append(Reply(text, -1.5, 3))
        return found


@pytest.fixture(scope="session")
def echo() -> Callable[..., Echo]:
    return Echo
