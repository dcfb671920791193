"""The script that trains the three sentence models, on a page of made-up text."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from palaver.models.sentence import (
    SENTENCE_MODELS,
    InferSent,
    InferSentConfig,
    Sent2Vec,
    Sent2VecConfig,
    SkipThought,
    SkipThoughtConfig,
    Words,
    padded,
)

SCRIPTS = Path(__file__).parents[2] / "experiments" / "probes"
WORDS = "how are you ? i am fine , thanks . is the dog happy it not a man"
KNOWN = ["a", "the", "man", "dog", "bites", "is", "not", "happy", ".", ","]
SICK = (
    "pair_ID sentence_A sentence_B entailment_label relatedness_score sentence_A_original sentence_B_original"
)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"probes_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"probes_{name}"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def reading() -> ModuleType:
    return script("reading")


@pytest.fixture
def objectives() -> ModuleType:
    return script("objectives")


@pytest.fixture
def words() -> Words:
    return Words(KNOWN)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "dialogue").mkdir()
    (tmp_path / "sentences").mkdir()
    turns = [
        {"t": t} for t in ("How are you?", "I am fine, thanks.", "Is the dog happy?", "It is not happy.")
    ]
    with gzip.open(tmp_path / "dialogue" / "small.jsonl.gz", "wt") as file:
        for n in range(40):
            file.write(json.dumps({"id": str(n), "turns": turns[n % 3 :] + turns[: n % 3]}) + "\n")
    words = WORDS.split()
    vectors = np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float16)
    np.savez(tmp_path / "sentences" / "glove_small.npz", words=np.array(words), vecs=vectors)
    pairs = [
        "A man is happy.\tA man is not happy.\tcontradiction",
        "The dog is fine.\tThe dog is a dog.\tneutral",
    ]
    (tmp_path / "sentences" / "cad_nli_train.tsv").write_text(
        "sentence1\tsentence2\tgold_label\n" + "\n".join(pairs * 30) + "\n"
    )
    rows = [
        ("1", "A cat runs", "A cat is running", "cap1", "cap1", "TRAIN"),
        ("2", "A cat sleeps", "A cat rests", "cap1", "cap2", "TRAIN"),  # made from the same caption as 1
        ("3", "A bird sings", "A bird is singing", "cap3", "cap3", "TRAIN"),
        ("4", "A fish swims", "A fish is swimming", "cap4", "cap4", "TEST"),
    ]
    lines = [f"{i}\t{a}\t{b}\tENTAILMENT\t4.5\t{c}\t{d}\t{part}" for i, a, b, c, d, part in rows]
    head = "\t".join([*SICK.split(), "SemEval_set"])
    (tmp_path / "sentences" / "SICK.txt").write_text("\n".join([head, *lines]) + "\n")
    triplet = {"original": "A cat runs.", "plus": "A cat races.", "star": "The dog is fine!"}
    (tmp_path / "triplets.jsonl").write_text(json.dumps(triplet) + "\n")
    return tmp_path


def test_no_sentence_of_the_probes_is_trained_on(data: Path, reading: ModuleType) -> None:
    pairs = reading.read_pairs(data / "sentences", data / "triplets.jsonl")
    assert dict(pairs.sources) == {"cad_nli": 30, "SICK": 1}
    assert dict(pairs.left_out) == {
        "cad_nli: a sentence of the triplets": 30,
        "SICK: a sentence of the triplets": 1,
        "SICK: made from a caption of the triplets": 1,
        "SICK: not of the training part": 1,
    }
    assert [row for row in pairs.rows if "bird" in row[0]]
    assert reading.read_pairs(data / "sentences", None).sources["SICK"] == 3


def test_neighbours_stay_inside_their_dialogue(data: Path, reading: ModuleType) -> None:
    text = reading.read_text(data / "dialogue")
    assert len(text.turns) == sum(4 for _ in range(40))
    middles = text.middles()
    assert len(middles) == 2 * 40
    begins = set(text.begin)
    assert not any(int(m) in begins or int(m) + 1 in begins for m in middles)


def test_all_three_are_trained_and_kept(data: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(SCRIPTS / "train.py"), "--data", str(data),
         "--triplets", str(data / "triplets.jsonl"), "--out", str(tmp_path / "out"), "--tiny",
         "--minutes", "0.03", "--device", "cpu"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for kind in ("sent2vec", "skipthought", "infersent"):
        model = SENTENCE_MODELS[kind].load(tmp_path / "out" / kind)
        assert np.isfinite(model.encode(["Is the dog happy?"])).all()
        assert model.trained["triplets_left_out"] is True
    assert model.trained["left_out"]["SICK: a sentence of the triplets"] == 1


def test_sent2vec_loss_leaves_the_predicted_word_out(words: Words, objectives: ModuleType) -> None:
    """Brute force of equation 3 for one target and given negatives."""
    torch.manual_seed(1)
    model = Sent2Vec(Sent2VecConfig(size=8, n_bigrams=6), words)
    bigrams = [("the", "man"), ("man", "bites"), ("the", "dog"), ("bites", "the")]
    objectives.set_bigrams(model, np.array([[words.numbers[a], words.numbers[b]] for a, b in bigrams]))
    prediction = objectives.WordPrediction(model)
    for weight in (model.unigrams.weight, model.bigrams.weight, prediction.targets.weight):
        torch.nn.init.normal_(weight)
        weight.data[0] = 0  # padding
    torch.nn.init.normal_(prediction.target_bias)
    ids, _ = padded([words.encode("the man bites the dog")])

    def score(context: torch.Tensor, word: int) -> torch.Tensor:
        return context @ prediction.targets.weight[word] + prediction.target_bias[word]

    noise = torch.tensor([words.numbers["happy"], words.numbers["man"]])
    for t in range(ids.shape[1]):
        weights = torch.zeros(ids.shape)
        weights[0, t] = 1
        loss = prediction(model, ids, weights, noise, n_negatives=4).item()
        tokens = ids[0].tolist()
        pairs = [tuple(map(int, row)) for row in model.pairs.tolist()]
        rows = [model.unigrams.weight[w] for i, w in enumerate(tokens) if i != t]
        for i, pair in enumerate(itertools.pairwise(tokens)):
            if pair in pairs and t not in (i, i + 1):
                rows.append(model.bigrams.weight[pairs.index(pair) + 1])
        context = torch.stack(rows).mean(0)
        cost = torch.nn.functional.softplus(-score(context, tokens[t]))
        for word in noise.tolist():
            if word != tokens[t]:
                cost = cost + 4 / 2 * torch.nn.functional.softplus(score(context, word))
        assert loss == pytest.approx(cost.item(), rel=1e-5)


def test_decoders_count_known_words_and_the_end(words: Words, objectives: ModuleType) -> None:
    config = SkipThoughtConfig(word_size=5, hidden=7)
    decoders = objectives.Decoders(config, n_targets=len(words))
    model = SkipThought(config, words)
    ids, lengths = padded([words.encode("the dog bites"), words.encode("zebra is happy .")])
    nats, count = decoders(0, model.vectors(ids, lengths), ids, model.embedding(ids))
    assert int(count) == (3 + 1) + (3 + 1)  # the zebra costs nothing
    assert nats.item() / int(count) == pytest.approx(np.log(len(words) + 1), rel=0.3)
    nats.backward()
    assert model.encoder.weight_hh_l0.grad is not None
    assert model.embedding.weight.grad is None


def test_models_learn(words: Words, objectives: ModuleType) -> None:
    """A few steps on a toy task bring the loss down."""
    torch.manual_seed(0)
    model = InferSent(InferSentConfig(word_size=5, hidden=8), words)
    top = objectives.Inference(16, 16, dropout=0.0)
    ids, lengths = padded(
        [words.encode(t) for t in ("man is happy", "man is not happy", "dog bites", "the man")]
    )
    labels = torch.tensor([0, 1, 2, 0])
    optimiser = torch.optim.Adam([*model.encoder.parameters(), *top.parameters()], lr=0.02)
    losses = []
    for _ in range(30):
        vectors = model.vectors(ids, lengths)
        loss = torch.nn.functional.cross_entropy(top(vectors, vectors.roll(1, 0)), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
