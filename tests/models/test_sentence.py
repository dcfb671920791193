"""The three sentence models: what they compute, against plain loops, and how they are kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from palaver.errors import DataError, UserError
from palaver.models.sentence import (
    InferSent,
    InferSentConfig,
    Sent2Vec,
    Sent2VecConfig,
    SentenceModel,
    SkipThought,
    SkipThoughtConfig,
    Words,
    load_sentence_model,
)
from palaver.models.sentence.infersent import Inference, official_lstm
from palaver.models.sentence.sentence_model import pack, padded, unpack
from palaver.models.sentence.skipthought import Decoders, official_gru

torch.set_num_threads(1)
KNOWN = ["a", "the", "man", "dog", "bites", "is", "not", "happy", ".", ","]
TEXTS = ["The man bites the dog.", "The dog bites the man.", "A happy man", "zebra", ""]


@pytest.fixture
def words() -> Words:
    return Words(KNOWN)


def make(kind: str, words: Words) -> SentenceModel:
    torch.manual_seed(1)
    if kind == "sent2vec":
        model = Sent2Vec(Sent2VecConfig(size=8, n_bigrams=6), words)
        pairs = [("the", "man"), ("man", "bites"), ("the", "dog"), ("bites", "the")]
        model.set_bigrams(np.array([[words.numbers[a], words.numbers[b]] for a, b in pairs]))
        torch.nn.init.normal_(model.unigrams.weight)
        torch.nn.init.normal_(model.bigrams.weight)
        for table in (model.unigrams, model.bigrams):
            table.weight.data[0] = 0  # padding
        return model.eval()
    if kind == "skipthought":
        return SkipThought(SkipThoughtConfig(word_size=5, hidden=7), words).eval()
    return InferSent(InferSentConfig(word_size=5, hidden=4), words).eval()


def test_words_are_closed_and_never_empty(words: Words) -> None:
    assert words.encode("The zebra!") == [words.numbers["the"], 1, 1]
    assert words.encode("") == [1]
    assert words.encode("a a a a", limit=2) == [2, 2]
    assert len(words) == len(KNOWN) + 2


@pytest.mark.parametrize("kind", ["sent2vec", "skipthought", "infersent"])
def test_batches_and_padding_change_nothing(kind: str, words: Words) -> None:
    model = make(kind, words)
    together = model.encode(TEXTS, batch_size=3)
    alone = np.concatenate([model.encode([text]) for text in TEXTS])
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_sent2vec_is_the_mean_of_words_and_known_bigrams(words: Words) -> None:
    model = make("sent2vec", words)
    assert isinstance(model, Sent2Vec)
    single, double = model.unigrams.weight.detach().numpy(), model.bigrams.weight.detach().numpy()
    pairs = [tuple(map(int, row)) for row in model.pairs.tolist()]
    ids = words.encode("the man bites the dog .")
    rows = [single[i] for i in ids]
    rows += [double[pairs.index(p) + 1] for p in itertools.pairwise(ids) if p in pairs]
    assert len(rows) == len(ids) + 4
    np.testing.assert_allclose(model.encode(["the man bites the dog ."])[0], np.mean(rows, axis=0), atol=1e-6)
    assert not model.encode(["zebra"]).any()


def test_sent2vec_loss_leaves_the_predicted_word_out(words: Words) -> None:
    """Brute force of equation 3 for one target and given negatives."""
    model = make("sent2vec", words)
    assert isinstance(model, Sent2Vec)
    torch.nn.init.normal_(model.targets.weight)
    torch.nn.init.normal_(model.target_bias)
    ids, _ = padded([words.encode("the man bites the dog")])

    def score(context: torch.Tensor, word: int) -> torch.Tensor:
        return context @ model.targets.weight[word] + model.target_bias[word]

    noise = torch.tensor([words.numbers["happy"], words.numbers["man"]])
    for t in range(ids.shape[1]):
        weights = torch.zeros(ids.shape)
        weights[0, t] = 1
        found = model(ids, weights, noise, n_negatives=4).item()
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
        assert found == pytest.approx(cost.item(), rel=1e-5)


def test_order_matters_to_the_recurrent_ones_alone(words: Words) -> None:
    model = Sent2Vec(Sent2VecConfig(size=8, n_bigrams=1), words)
    same = model.encode(TEXTS[:2])
    np.testing.assert_allclose(same[0], same[1], atol=1e-7)
    for kind in ("skipthought", "infersent"):
        other = make(kind, words).encode(TEXTS[:2])
        assert np.abs(other[0] - other[1]).max() > 1e-3


@pytest.mark.parametrize("kind", ["sent2vec", "skipthought", "infersent"])
def test_what_is_saved_comes_back(kind: str, words: Words, tmp_path: Path) -> None:
    model = make(kind, words)
    model.save(tmp_path / "m", {"seed": 3})
    again = load_sentence_model(tmp_path / "m")
    assert again.kind == kind
    assert again.trained == {"seed": 3}
    before, after = model.encode(TEXTS[:4]), again.encode(TEXTS[:4])
    assert np.abs(before - after).max() < 0.02 * max(1.0, np.abs(before).max())
    again.save(tmp_path / "n")  # what went through bytes once does not change any more
    np.testing.assert_allclose(
        load_sentence_model(tmp_path / "n").encode(TEXTS), again.encode(TEXTS), atol=1e-4
    )


def test_pack_is_within_half_a_step() -> None:
    weight = torch.randn(7, 50) * torch.logspace(-3, 2, 7)[:, None]
    back = unpack(pack({"w": weight, "b": torch.ones(3)}))
    step = weight.abs().amax(1) / 127
    assert ((back["w"] - weight).abs() <= 0.51 * step[:, None] + 1e-6).all()
    assert pack({"w": weight})["w"].dtype == torch.int8
    assert back["b"].tolist() == [1, 1, 1]


def test_damaged_and_foreign_folders_are_told(words: Words, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sentence model"):
        load_sentence_model(tmp_path)
    model = make("infersent", words)
    model.save(tmp_path / "m")
    with pytest.raises(DataError, match="does not hold a skipthought"):
        SkipThought.load(tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged"):
        load_sentence_model(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text('{"model": "bert"}')
    with pytest.raises(UserError, match="'bert'"):
        load_sentence_model(tmp_path / "m")


def test_decoders_count_known_words_and_the_end(words: Words) -> None:
    config = SkipThoughtConfig(word_size=5, hidden=7)
    decoders = Decoders(config, n_targets=len(words))
    model = SkipThought(config, words)
    ids, lengths = padded([words.encode("the dog bites"), words.encode("zebra is happy .")])
    nats, count = decoders(0, model.vectors(ids, lengths), ids, model.embedding(ids))
    assert int(count) == (3 + 1) + (3 + 1)  # the zebra costs nothing
    assert nats.item() / int(count) == pytest.approx(np.log(len(words) + 1), rel=0.3)
    nats.backward()
    assert model.encoder.weight_hh_l0.grad is not None
    assert model.embedding.weight.grad is None


def test_models_learn(words: Words) -> None:
    """A few steps on a toy task bring the loss down."""
    torch.manual_seed(0)
    model, top = InferSent(InferSentConfig(word_size=5, hidden=8), words), Inference(16, 16, dropout=0.0)
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


def test_official_gru_follows_the_authors_equations() -> None:
    rng = np.random.default_rng(0)
    size, hidden = 4, 3
    shapes = {"W": (size, 2 * hidden), "U": (hidden, 2 * hidden), "b": (2 * hidden,)}
    shapes |= {"Wx": (size, hidden), "Ux": (hidden, hidden), "bx": (hidden,)}
    p = {f"encoder_{name}": rng.normal(size=shape) for name, shape in shapes.items()}
    x = rng.normal(size=(6, size))
    h = np.zeros(hidden)
    for row in x:
        gates = 1 / (1 + np.exp(-(h @ p["encoder_U"] + row @ p["encoder_W"] + p["encoder_b"])))
        r, u = gates[:hidden], gates[hidden:]
        new = np.tanh(r * (h @ p["encoder_Ux"]) + row @ p["encoder_Wx"] + p["encoder_bx"])
        h = u * h + (1 - u) * new
    found = official_gru(p)(torch.from_numpy(x.astype(np.float32))[None])[1][0, 0]
    np.testing.assert_allclose(found.detach().numpy(), h, atol=1e-5)


def test_official_lstm_reads_only_its_own() -> None:
    network = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)
    stored = {f"enc_lstm.{name}": w for name, w in network.state_dict().items()}
    x = torch.randn(1, 5, 4)
    torch.testing.assert_close(official_lstm({**stored, "other": x})(x)[0], network(x)[0])
    with pytest.raises(DataError, match="no weights of InferSent"):
        official_lstm({"bert.layer": x})
