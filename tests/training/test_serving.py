"""A trained model is asked in the form in which it was taught."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from palaver.generation import checkpoint
from palaver.generation.checkpoint import CheckpointSystem
from palaver.generation.decode import Decoded
from palaver.generation.system import Request
from palaver.readers.dialogues import write_dialogues
from palaver.schema import Dialogue, Turn
from palaver.training.experiment import Experiment
from palaver.training.prepare import open_splits, prepare
from palaver.training.run import train
from palaver.training.sample import sample_dialogues

Small = Callable[..., Experiment]
FACT = "  Tea was first planted long ago, people say, and nobody knows by whom.  "


def untidy(dialogue: Dialogue) -> Dialogue:
    """White space around some turns, one turn that is empty, one that is longer than the model can read."""
    texts = [turn.text for turn in dialogue.turns]
    texts[1], texts[2], texts[3] = f" {texts[1]}  ", "", f"{texts[3]}\n" * 10
    turns = [Turn(speaker=t.speaker, text=text) for t, text in zip(dialogue.turns, texts, strict=True)]
    return Dialogue(id=dialogue.id, turns=tuple(turns))


def select(dialogues: Iterable[Dialogue]) -> Iterator[tuple[Dialogue, Sequence[str | None]]]:
    for dialogue in dialogues:
        yield dialogue, [FACT] * len(dialogue.turns)


@pytest.mark.parametrize("history_turns", [0, 1, 2])
def test_what_is_learned_is_what_is_asked(
    history_turns: int, small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialogues = [untidy(dialogue) for dialogue in sample_dialogues(8)]
    write_dialogues(dialogues, tmp_path / "d.jsonl")
    experiment = small(
        f'data.train=[{{path="{tmp_path / "d.jsonl"}"}}]',
        f"data.history_turns={history_turns}",
        "data.valid_examples=0",
        "data.knowledge=oracle",
        "model.knowledge=true",
        "model.max_knowledge=8",
        "optimiser.max_steps=1",
    )
    train(experiment, device="cpu", select=select)
    taught, _ = open_splits(experiment, prepare(experiment, select=select))

    asked: list[Any] = []

    def record(model: Any, contexts: Any, decoding: Any, *, knowledge: Any, **_: Any) -> list[Decoded]:
        asked.extend(zip(contexts, knowledge, strict=True))
        return [Decoded([], 0.0)] * len(contexts)

    monkeypatch.setattr(checkpoint, "decode", record)
    requests = [
        Request(Dialogue(id="d", turns=dialogue.turns[:i]), knowledge=FACT)
        for dialogue in dialogues
        for i in range(1, len(dialogue.turns))
        if dialogue.turns[i].text  # nothing is learned from an empty response
        and any(turn.text for turn in dialogue.turns[max(0, i - (history_turns or i)) : i])
    ]
    CheckpointSystem(experiment.folder / "last", device="cpu").reply(requests)
    assert len(asked) == len(taught.store) > 20
    for number, (context, fact) in enumerate(asked):
        assert taught.store.context[number].tolist() == context
        assert taught.store.knowledge[number].tolist() == fact
