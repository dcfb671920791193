"""The loop: its loss, its perplexity, when it ends, what it says when it cannot go on."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from palaver.errors import ConfigError, UserError
from palaver.models.pretrained import TokenLoss, load
from palaver.schema import Dialogue
from palaver.text.vocabulary import PAD, Vocabulary
from palaver.training.batches import pad
from palaver.training.experiment import Experiment
from palaver.training.experiment_file import load_experiment
from palaver.training.folder import read_metrics
from palaver.training.interruptions import out_of_memory
from palaver.training.loop import Loop, make_optimiser
from palaver.training.prepare import open_splits, prepare
from palaver.training.run import initialise, make_model, train

Small = Callable[..., Experiment]


def loop_of(experiment: Experiment) -> Loop:
    prepared = prepare(experiment)
    vocabulary = Vocabulary.load(prepared.vocabulary)
    torch.manual_seed(0)
    model, _ = make_model(experiment, prepared, vocabulary)
    return Loop(experiment, model, vocabulary, *open_splits(experiment, prepared), Accelerator(cpu=True))


def test_validation_is_exact_and_counts_every_example_once(small: Small) -> None:
    loop = loop_of(small())
    totals = loop.validate()
    assert totals is not None
    assert loop.valid is not None
    assert loop.core.training
    loop.core.eval()
    nll, n_tokens, n_words = 0.0, 0, 0
    store = loop.valid.store
    for i in loop.valid.ids:
        one = np.array([i])
        inputs = {name: torch.from_numpy(pad(getattr(store, name), one)) for name in ("context", "response")}
        with torch.no_grad():
            nll += float(loop.core(**inputs).nll)
        n_tokens += int((inputs["response"] != PAD).sum())
        n_words += int(store.n_words[i])
    assert (totals.tokens, totals.words) == (n_tokens, n_words)
    assert totals.nll == pytest.approx(nll, rel=1e-5)
    assert totals.perplexity.per_token == pytest.approx(math.exp(nll / n_tokens), rel=1e-5)
    assert totals.perplexity.per_word == pytest.approx(math.exp(nll / n_words), rel=1e-5)


def test_held_out_examples_are_not_trained_on(small: Small) -> None:
    loop = loop_of(small())
    assert loop.valid is not None
    assert len(loop.valid.ids) == 20
    assert sorted([*loop.train.ids, *loop.valid.ids]) == list(range(len(loop.train.store)))
    again = loop_of(small()).valid
    assert again is not None
    assert np.array_equal(again.ids, loop.valid.ids)
    other = loop_of(small("seed=2")).valid
    assert other is not None
    assert not np.array_equal(other.ids, loop.valid.ids)
    with pytest.raises(UserError, match="only 200"):
        loop_of(small("data.valid_examples=200"))


@pytest.mark.parametrize("per", ["token", "example"])
def test_a_step_is_the_textbook_one(small: Small, per: str) -> None:
    """One step of SGD with clipping, computed by hand from the sum of the losses."""
    experiment = small(
        "model.dropout=0",
        "optimiser.name=sgd",
        "optimiser.learning_rate=0.5",
        "optimiser.schedule=constant",
        "optimiser.clip=0.01",
        f"optimiser.loss_per={per}",
        "optimiser.label_smoothing=0.1",
    )
    loop = loop_of(experiment)
    batch = loop.collate(loop.train.ids[loop.plan(epoch=0)[0]])
    before = {name: p.detach().clone() for name, p in loop.core.named_parameters()}
    loop.core.zero_grad()
    loss = loop.core(**batch.inputs, label_smoothing=0.1).loss
    (loss / (batch.n_tokens if per == "token" else batch.n_examples)).backward()
    gradients = {name: p.grad.clone() for name, p in loop.core.named_parameters() if p.grad is not None}
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients.values()))
    loop.core.zero_grad()
    loop._step(batch)
    for name, parameter in loop.core.named_parameters():
        expected = before[name] - 0.5 * gradients[name] * min(1.0, 0.01 / norm)
        assert torch.allclose(parameter, expected, atol=1e-7), name


def test_learning_lowers_the_perplexity_and_leaves_a_record(small: Small) -> None:
    experiment = small("optimiser.epochs=3")
    outcome = train(experiment, device="cpu", command="test")
    rows = read_metrics(outcome.folder)
    epochs = [row for row in rows if row["kind"] == "epoch"]
    assert [row["epoch"] for row in epochs] == [1, 2, 3]
    assert epochs[-1]["valid_ppl"] < 0.5 * epochs[0]["ppl"]
    steps = [row for row in rows if row["kind"] == "step"]
    expected = {
        "kind",
        "step",
        "epoch",
        "loss",
        "nll",
        "ppl",
        "ppl_word",
        "lr",
        "grad_norm",
        "seconds",
        "memory_mb",
    }
    assert set(steps[0]) == expected | {"tokens_per_second"}
    assert steps[-1]["step"] == outcome.step == 3 * -(-180 // 16)
    assert outcome.best_nll == min(row["valid_nll"] for row in epochs)
    model, vocabulary = load(outcome.folder / "best")
    assert len(vocabulary) == model.config.vocab_size
    record = json.loads((outcome.folder / "run.json").read_text())
    assert record["command"] == "test"
    assert record["hardware"]["device"] == "cpu"
    assert str(experiment.data.train[0].path) in record["data"]
    assert [Path(name).name for name in record["data"]] == ["dialogues.jsonl", "tokenizer.json"]
    assert len(next(iter(record["data"].values()))) == 64
    assert load_experiment(outcome.folder / "experiment.toml") == experiment
    assert "<svg" in (outcome.folder / "curves.svg").read_text()


def test_epoch_sums_are_those_of_its_steps(small: Small) -> None:
    whole = read_metrics(train(small("log.every=100", out="a"), device="cpu").folder)
    parts = read_metrics(train(small("log.every=2", out="b"), device="cpu").folder)
    for one, other in zip(
        *([r for r in rows if r["kind"] == "epoch"] for rows in (whole, parts)), strict=True
    ):
        assert one["nll"] == pytest.approx(other["nll"], rel=1e-9)
        assert one["valid_nll"] == other["valid_nll"]


def test_early_stop_and_plateau(small: Small) -> None:
    """With a rate of nearly nothing, only the first epoch is better than those before."""
    outcome = train(
        small(
            "optimiser.learning_rate=1e-30",
            "optimiser.schedule=plateau",
            "optimiser.patience=0",
            "optimiser.epochs=50",
            "optimiser.early_stop=2",
        ),
        device="cpu",
    )
    assert outcome.reason == "no better validation perplexity for 2 epochs"
    assert outcome.epoch == 3
    rates = [row["lr"] for row in read_metrics(outcome.folder) if row["kind"] == "epoch"]
    assert rates == pytest.approx([1e-30, 1e-30, 0.5e-30])
    assert (outcome.folder / "best").resolve() != (outcome.folder / "last").resolve()


def test_without_validation_the_newest_is_best(small: Small) -> None:
    outcome = train(small("data.valid_examples=0", "optimiser.early_stop=1"), device="cpu")
    assert outcome.epoch == 2
    assert (outcome.folder / "best").resolve() == (outcome.folder / "last").resolve()


def test_loss_that_is_no_number(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = small("log.every=1", "log.checkpoint_every=2")
    step = Loop._step

    def spoiled(self: Loop, batch: Any) -> None:
        if self.progress.step == 3:
            with torch.no_grad():
                next(self.core.parameters()).fill_(math.nan)
        step(self, batch)

    monkeypatch.setattr(Loop, "_step", spoiled)
    with pytest.raises(UserError, match="no longer a number") as error:
        train(experiment, device="cpu")
    assert "step-000000002" in error.value.hint
    model, _ = load(experiment.folder / "last")
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_out_of_memory_names_the_batch_to_try(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = loop_of(small())

    def greedy(**inputs: Any) -> TokenLoss:
        return TokenLoss(torch.empty(1 << 60), torch.zeros(()), torch.zeros(()))

    monkeypatch.setattr(loop, "model", greedy)
    with pytest.raises(UserError) as error:
        loop._step(loop.collate(loop.train.ids[:4]))
    assert error.value.hint == "try half the batch: --set optimiser.batch_size=8"

    def cuda(**inputs: Any) -> TokenLoss:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop, "model", cuda)
    with pytest.raises(UserError, match="not enough memory"):
        loop._step(loop.collate(loop.train.ids[:4]))
    by_tokens = out_of_memory(small("optimiser.batch_tokens=1000"), torch.device("cuda"))
    assert by_tokens.hint == "try half the batch: --set optimiser.batch_tokens=500"
    assert "the GPU" in by_tokens.message
    assert "max_context" in out_of_memory(small("optimiser.batch_size=1"), torch.device("cpu")).hint


def test_no_gpu_and_no_bf16(small: Small) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UserError, match="there is none"):
        train(small(), device="cuda")
    heard = Heard()
    train(small("optimiser.precision=bf16", "optimiser.max_steps=1"), device="cpu", watcher=heard)
    assert any("fp32 is used" in note for note in heard.notes)


class Heard:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.done: list[float] = []

    def row(self, row: dict[str, Any], done: float) -> None:
        self.done.append(done)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_the_watcher_hears_what_is_left_out(small: Small) -> None:
    heard = Heard()
    train(small(), device="cpu", watcher=heard)
    assert any("40 left out: the first turn of a dialogue" in note for note in heard.notes)
    assert heard.done == sorted(heard.done)
    assert heard.done[-1] == 1.0


def test_windows_and_token_budget(small: Small) -> None:
    experiment = small(
        "data.task=windows", "data.window=12", "optimiser.batch_tokens=400", "optimiser.epochs=1"
    )
    outcome = train(experiment, device="cpu")
    assert outcome.step > 5
    assert outcome.best_nll is not None


def test_word_vocabulary_in_seq2seq(sample: Path, small: Small, tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(
        f"""
[data]
train = [{{ path = "{sample / "dialogues.jsonl"}" }}]
history_turns = 1
valid_examples = 20
[vocabulary]
kind = "word"
size = 150
[model]
kind = "seq2seq"
embedding = 8
hidden = 8
layers = 2
[optimiser]
name = "sgd"
learning_rate = 1.0
schedule = "halve-after"
clip = 5.0
batch_size = 16
epochs = 1
"""
    )
    base = load_experiment(path).model_copy(update={"out": tmp_path / "base"})
    train(base, device="cpu")
    speaker = [f'model.initialise_from="{tmp_path / "base" / "best"}"', "model.conditioning=speaker"]
    tuned = load_experiment(path, [*speaker, 'data.speakers=["Ada", "Cleo"]']).model_copy(
        update={"out": tmp_path / "speaker"}
    )
    heard = Heard()
    train(tuned, device="cpu", watcher=heard)
    model, vocabulary = load(tmp_path / "speaker" / "best")
    assert model.config.speakers == ("Ada", "Cleo")
    assert vocabulary.signature == Vocabulary.load(tmp_path / "base" / "best").signature
    assert any("decoder.0.weight_ih: its first 16 columns taken" in note for note in heard.notes)
    assert "new: speaker.weight (2, 8)" in heard.notes
    assert any("by a speaker without an id" in note for note in heard.notes)
    person = [*speaker[:1], "model.conditioning=personality", f'data.ocean="{sample / "ocean.csv"}"']
    personal = load_experiment(path, person).model_copy(update={"out": tmp_path / "person"})
    train(personal, device="cpu")
    model, _ = load(tmp_path / "person" / "best")
    assert model.config.ocean["Ben"] == (3.0, 4.4, 2.1, 3.6, 3.8)
    with pytest.raises(UserError, match="never speak") as error:
        prepare(load_experiment(path, ['data.speakers=["Adda"]']))
    assert error.value.problems == ("'Adda' (did you mean 'Ada'?)",)


def test_weights_taken_from_a_checkpoint(small: Small, tmp_path: Path) -> None:
    base = train(small("optimiser.max_steps=1", out="base"), device="cpu").folder / "best"
    same = loop_of(small(f'model.initialise_from="{base}"'))
    source, _ = load(base)
    for name, weight in source.state_dict().items():
        assert torch.equal(same.core.state_dict()[name], weight)
    wider = loop_of(small("model.feed_forward=24"))
    notes = initialise(wider.core, base)
    assert any(note.startswith("new: encoder.0.feed.0.weight (24, 16), which was (16, 16)") for note in notes)
    assert "of" in notes[0]
    with pytest.raises(UserError, match="of another size"):
        initialise(loop_of(small("model.dim=32", "model.feed_forward=32", "vocabulary.size=300")).core, base)
    with pytest.raises(UserError, match="is not that of"):
        other = Vocabulary.train(["a b c d e f g hello hello"], kind="word", size=9)
        other.save(tmp_path / "other")
        prepare(small(f'model.initialise_from="{base}"', f'vocabulary.from="{tmp_path / "other"}"'))


def test_knowledge_reaches_the_model(small: Small) -> None:
    def select(dialogues: Iterable[Dialogue]) -> Iterator[tuple[Dialogue, Sequence[str | None]]]:
        for dialogue in dialogues:
            yield dialogue, [f"fact {i}" if i % 2 else None for i in range(len(dialogue.turns))]

    experiment = small("data.knowledge=oracle", "model.knowledge=true", "model.max_knowledge=6")
    with pytest.raises(UserError, match="no selector"):
        prepare(experiment)
    train_split, _ = open_splits(experiment, prepare(experiment, select=select))
    lengths = train_split.store.knowledge.lengths()
    assert set(lengths.tolist()) > {0}
    assert lengths.max() <= 6
    assert train(experiment, device="cpu", select=select).epoch == 2


def test_optimisers(small: Small) -> None:
    loop = loop_of(small("optimiser.weight_decay=0.1"))
    decays = {id(p): g["weight_decay"] for g in loop.optimiser.param_groups for p in g["params"]}
    assert all(decays[id(p)] == (0.1 if p.ndim > 1 else 0.0) for p in loop.core.parameters())
    assert isinstance(make_optimiser(loop.core, small("optimiser.name=sgd"), loop.device), torch.optim.SGD)


def test_no_training_data(small: Small) -> None:
    experiment = small("data.train=[]")
    with pytest.raises(UserError, match="no training data"):
        train(experiment, device="cpu")
    assert not experiment.folder.exists()
    with pytest.raises(ConfigError, match="mistake"):
        small("optimiser.epochs=0")


def test_two_processes_learn_what_one_learns_with_the_doubled_batch(
    small: Small, sample: Path, tmp_path: Path
) -> None:
    """Over gloo, through the command line; the last batch is too small for both to have an example."""
    common = ["model.dropout=0", "log.every=1", "data.valid_examples=21", "data.max_examples=182"]
    one = small(*common, "optimiser.batch_size=16", out="one")
    alone = read_metrics(train(one, device="cpu").folder)
    path = tmp_path / "two.toml"
    two = small(*common, "optimiser.batch_size=8", out="two")
    from palaver.training.experiment_file import experiment_toml

    path.write_text(experiment_toml(two))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    ran = subprocess.run(
        [*launch, "-m", "palaver", "train", "responder", str(path), "--device", "cpu"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("finished: 2 epochs") == 1
    together = read_metrics(two.folder)
    assert json.loads((two.folder / "run.json").read_text())["hardware"]["processes"] == 2
    assert [row["step"] for row in together] == [row["step"] for row in alone]
    for ours, theirs in zip(together, alone, strict=True):
        for key in ("loss", "nll", "grad_norm", "valid_nll", "ppl_word", "lr"):
            assert (key in ours) == (key in theirs)
            if key in ours:
                assert ours[key] == pytest.approx(theirs[key], rel=1e-4), (key, ours)
    with pytest.raises(UserError, match=r"begun with 2 process\(es\), found 1"):
        train(two, device="cpu")
