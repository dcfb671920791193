"""The three sentence models: what they compute, against plain loops, and how they are kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from palaver.errors import DataError
from palaver.models.sentence import (
    SENTENCE_MODELS,
    InferSent,
    InferSentConfig,
    Sent2Vec,
    Sent2VecConfig,
    SentenceModel,
    SkipThought,
    SkipThoughtConfig,
    Words,
    official_gru,
    official_lstm,
    pack,
    unpack,
)

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
        numbers = sorted([words.numbers[a], words.numbers[b]] for a, b in pairs)
        model.pairs_low[: 2 * len(pairs)] = torch.tensor(numbers).flatten()
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
    again = SENTENCE_MODELS[kind].load(tmp_path / "m")
    assert again.kind == kind
    assert again.trained == {"seed": 3}
    before, after = model.encode(TEXTS[:4]), again.encode(TEXTS[:4])
    assert np.abs(before - after).max() < 0.02 * max(1.0, np.abs(before).max())
    again.save(tmp_path / "n")  # what went through bytes once does not change any more
    third = SENTENCE_MODELS[kind].load(tmp_path / "n")
    np.testing.assert_allclose(third.encode(TEXTS), again.encode(TEXTS), atol=1e-4)


def test_pack_is_within_half_a_step() -> None:
    weight = torch.randn(7, 50) * torch.logspace(-3, 2, 7)[:, None]
    back = unpack(pack({"w": weight, "b": torch.ones(3)}))
    step = weight.abs().amax(1) / 127
    assert ((back["w"] - weight).abs() <= 0.51 * step[:, None] + 1e-6).all()
    assert pack({"w": weight})["w"].dtype == torch.int8
    assert back["b"].tolist() == [1, 1, 1]


def test_damaged_and_foreign_folders_are_told(words: Words, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sentence model"):
        InferSent.load(tmp_path)
    model = make("infersent", words)
    model.save(tmp_path / "m")
    with pytest.raises(DataError, match="holds the model 'infersent', not 'skipthought'"):
        SkipThought.load(tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged"):
        InferSent.load(tmp_path / "m")
    config = '{"model": "infersent", "format": 1, "hiden": 3}'
    (tmp_path / "m" / "config.json").write_text(config)
    with pytest.raises(DataError, match="do not belong together.*hiden"):
        InferSent.load(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text(config.replace("hiden", "hidden"))
    make("infersent", words).save(tmp_path / "n")
    weights.write_bytes((tmp_path / "n" / "model.safetensors").read_bytes())
    with pytest.raises(DataError, match="do not belong together"):
        InferSent.load(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text('{"model": "bert"}')
    with pytest.raises(DataError, match="holds the model 'bert'"):
        InferSent.load(tmp_path / "m")


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
    last = official_gru(p)(torch.from_numpy(x.astype(np.float32))[None])[1][0, 0]
    np.testing.assert_allclose(last.detach().numpy(), h, atol=1e-5)


def test_official_lstm_reads_only_its_own() -> None:
    network = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)
    stored = {f"enc_lstm.{name}": w for name, w in network.state_dict().items()}
    x = torch.randn(1, 5, 4)
    torch.testing.assert_close(official_lstm({**stored, "other": x})(x)[0], network(x)[0])
    with pytest.raises(DataError, match="no weights of InferSent"):
        official_lstm({"bert.layer": x})
