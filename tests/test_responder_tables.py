"""The rows of Topical-Chat's tables from training to figures, small and on the CPU."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

torch = pytest.importorskip("torch")
EXPERIMENTS = Path(__file__).parents[1] / "experiments/responders"
TURNS = ["Do you like tea?", "Tea is a plant, I think.", "It is. I drink it daily.", "So do I, with milk."]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[ModuleType, ModuleType, ModuleType]:
    """topical_chat, graphs and evaluate, in an empty folder."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    monkeypatch.chdir(tmp_path)
    for name in ("topical_chat", "graphs", "replies", "evaluate"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import graphs
    import topical_chat

    import evaluate

    return topical_chat, graphs, evaluate


def write_carried(folder: Path, selectors: tuple[str, ...]) -> None:
    folder.mkdir()
    for split in ("train", "valid_freq", "test_freq", "test_rare"):
        with lzma.open(folder / f"{split}.jsonl.xz", "wt", encoding="utf-8") as file:
            for n in range(3):
                turns = TURNS[n % 2 :] + (["Zebras!"] if split == "test_rare" else [])
                knowledge = {name: ["Tea is a plant."] * len(turns) for name in selectors}
                file.write(json.dumps({"id": f"{split}-{n}", "turns": turns, "knowledge": knowledge}) + "\n")


def test_a_row_is_trained_tested_and_measured(
    scripts: tuple[ModuleType, ModuleType, ModuleType],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topical_chat, graphs, evaluate = scripts
    monkeypatch.setitem(topical_chat.LIMITS, "word", topical_chat.Limits(512, 12, 128))
    monkeypatch.setattr(evaluate, "METRICS", ["unigram_f1", "diversity_1"])
    carried, out = tmp_path / "carried", tmp_path / "out"
    write_carried(carried, topical_chat.SELECTORS)
    topical_chat.write_vocabulary(carried, "word")
    for split in topical_chat.SPLITS:
        topical_chat.write_examples(carried, "word", split)
    train, valid = (topical_chat.open_examples("word", split) for split in ("train", "valid_freq"))
    settings = ["optimiser.epochs=2", "optimiser.batch_size=4", "model.layers=1", "model.max_response=12"]
    vocabulary = topical_chat.VOCABULARIES / "word"
    training = graphs.Training("tf", EXPERIMENTS / "tf.toml", vocabulary, train, valid, settings)
    before = [weight.clone() for weight in training.parameters]
    while not training.ended:
        training.advance()
    assert training.ended == "2 epochs, as planned"
    assert training.epochs[1]["valid_ppl_word"] < training.epochs[0]["valid_ppl_word"]
    assert any((one != two).any() for one, two in zip(before, training.parameters, strict=True))
    assert training.save(topical_chat.RUNS / "tf" / "best")
    out.mkdir()
    (out / "tf.json").write_text(json.dumps(training.describe()), encoding="utf-8")
    topical_chat.shutil.copytree(vocabulary, out / "word")
    topical_chat.test("tf", out, 0)
    topical_chat.test("tf", out, 0)  # everything is there: nothing is done again
    assert capsys.readouterr().out.count("tested in") == 2
    monkeypatch.setattr(
        sys, "argv", ["evaluate.py", "--from", str(out), "--carried", str(carried), "--out", "results.json"]
    )
    evaluate.main()
    row = json.loads(Path("results.json").read_text(encoding="utf-8"))["tf"]
    assert row["end"] == "2 epochs, as planned"
    costs = np.load(out / "tf.npz")["test_freq.nll"]
    figures = row["test"]["test_freq"]
    assert figures["n"] == len(costs) == 8
    assert figures["ppl_token"] == pytest.approx(np.exp(costs.sum() / n_target_tokens(topical_chat)))
    rare = row["test"]["test_rare"]
    assert rare["unknown_share"] > 0  # Zebras
    assert rare["ppl_word"][0] > rare["ppl_token"]


def n_target_tokens(topical_chat: ModuleType) -> int:
    store = topical_chat.open_examples("word", "test_freq")
    return int(store.response.lengths().sum())


def test_costs_are_those_of_the_model(
    scripts: tuple[ModuleType, ModuleType, ModuleType], tmp_path: Path
) -> None:
    """With padding, a short last batch and a context narrower than the store's."""
    from palaver.generation.decode import pad

    topical_chat, graphs, _ = scripts
    import replies

    write_carried(tmp_path / "carried", topical_chat.SELECTORS)
    topical_chat.write_vocabulary(tmp_path / "carried", "word")
    for split in ("train", "valid_freq"):
        topical_chat.write_examples(tmp_path / "carried", "word", split)
    train, valid = (topical_chat.open_examples("word", split) for split in ("train", "valid_freq"))
    settings = ["optimiser.batch_size=16", "model.layers=1", "model.max_context=6"]
    vocabulary = topical_chat.VOCABULARIES / "word"
    training = graphs.Training(
        "tf-knowledge", EXPERIMENTS / "tf-knowledge.toml", vocabulary, train, valid, settings
    )
    model = training.model.eval()
    batches = graphs.Batches(training.train, 16, training.device)
    training.rows[True].copy_(batches.numbers[0])
    with torch.no_grad():
        _, nll, n_tokens = training._costs(training.train, training.rows[True], batches.widths[0])
        rows = [(train.context[i][-6:], train.response[i], train.knowledge[i]) for i in range(len(train))]
        context, response, knowledge = (pad([row[k].tolist() for row in rows], "cpu") for k in range(3))
        expected = model(context, response, knowledge=knowledge)
    assert int(n_tokens) == int(expected.n_tokens)
    assert float(nll) == pytest.approx(float(expected.nll), rel=1e-5)
    assert replies.score(model, training.train).sum() == pytest.approx(float(expected.nll), rel=1e-5)
