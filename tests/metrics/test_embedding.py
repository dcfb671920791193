"""Metrics on vectors of tokens, beside bert_score and beside their definitions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from palaver.errors import UserError
from palaver.metrics import embedding
from palaver.metrics.embedding import COLUMNS, Matches, TokenEncoder, compare, token_encoder
from palaver.metrics.evaluate import evaluate
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import METRICS, open_metric
from palaver.models.encoders import Encoder, open_encoder
from palaver.models.encoders.encoder import TokenVectors, batches_by_length

DATA = Path(__file__).parents[1] / "data" / "model-metrics"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
SAID, REFERENCES = zip(*EXPECTED["pairs"], strict=True)
SCRIPTS = {
    "Latin": "Wie schön, das freut mich!",
    "Thai": "ฉันชอบแมวมาก",
    "Chinese": "我很喜欢这只猫。",
    "Japanese": "私は猫が好きです。",
    "Korean": "나는 고양이를 좋아해요.",
    "Arabic": "أنا أحب القطط كثيرا",
    "Hebrew": "אני אוהב חתולים",
    "Cyrillic": "Я очень люблю кошек.",
    "Greek": "Μου αρέσουν οι γάτες.",
    "Devanagari": "मुझे बिल्लियाँ पसंद हैं",
    "Khmer": "ខ្ញុំចូលចិត្តឆ្មា",
    "Amharic": "ድመቶችን እወዳለሁ",
}


class Counting:
    """An encoder that gives each word a vector of its letters, and counts the texts it is given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> list[TokenVectors]:
        self.texts += texts
        return [self._of(text.split()) for text in texts]

    def _of(self, words: list[str]) -> TokenVectors:
        rows = [[word.count(letter) - 0.1 for letter in "abcdefgh"] for word in words]
        ids = np.array([sum(map(ord, word)) for word in words], dtype=np.int64)
        vectors = np.array(rows, dtype=np.float32).reshape(-1, 8)
        return TokenVectors(ids, vectors, np.ones(len(words), bool), len(words) > 5)


def counting() -> tuple[Counting, TokenEncoder]:
    count = Counting()
    return count, TokenEncoder(Encoder("count", "s", "", lambda texts: texts, tokens=count))


def test_bertscore_is_that_of_bert_score() -> None:
    names = ["bertscore_precision", "bertscore_recall", "bertscore", "bertscore_idf"]
    examples = Examples.of([Example(s, (r,)) for s, r in zip(SAID, REFERENCES, strict=True)])
    metrics = [open_metric(name, "cpu") for name in names]
    plain, idf = EXPECTED["plain"], EXPECTED["idf"]
    for metric, theirs in zip(
        metrics, (plain["precision"], plain["recall"], plain["f"], idf["f"]), strict=True
    ):
        assert metric.scores is not None
        np.testing.assert_allclose(metric.scores(examples), theirs, atol=2e-4)
    found = evaluate(list(SAID), list(REFERENCES), metrics=metrics, n_replicates=20)
    assert found["bertscore"].value == pytest.approx(np.mean(plain["f"]), abs=1e-4)
    assert "encoder:minilm@" in found["bertscore"].signature


def test_the_figures_by_hand() -> None:
    own = np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    reference = np.array([[3.0, 4.0]], dtype=np.float32)
    texts = [
        embedding._ready(TokenVectors(np.arange(len(v)), v, np.ones(len(v), bool), False))
        for v in (own, reference)
    ]
    found = dict(zip(COLUMNS, compare(*texts), strict=True))
    assert found["average"] == pytest.approx((0.5 * 0.6 + 1 * 0.8) / np.hypot(0.5, 1))
    assert found["extrema"] == pytest.approx((1 * 0.6 + 2 * 0.8) / np.hypot(1, 2))
    assert found["greedy"] == pytest.approx(((0.6 + 0.8) / 2 + 0.8) / 2)
    assert (found["precision"], found["recall"]) == pytest.approx((0.7, 0.8))
    assert found["f"] == pytest.approx(2 * 0.7 * 0.8 / 1.5)
    extreme = embedding._ready(TokenVectors(np.arange(2), -own, np.ones(2, bool), False)).extrema
    np.testing.assert_allclose(extreme, np.array([-1, -2]) / np.hypot(1, 2), rtol=1e-6)


def test_each_distinct_text_is_encoded_once_for_all_systems() -> None:
    count, encoder = counting()
    matches = Matches(encoder, idf=False)
    references = [f"abc {'e' * n} gg" for n in range(1, 30)]
    systems = [
        Examples.of([Example(f"{said} {n % 7 * 'h'}", (r,)) for n, r in enumerate(references)])
        for said in ("abba", "cafe", "abba", "egg")
    ]
    matches.prepare(systems)
    assert len(count.texts) == len(set(count.texts)) == len(references) + 3 * 7
    values = matches.column(systems[1], "f")
    assert len(count.texts) == len(references) + 3 * 7  # it was all done
    alone = Matches(counting()[1], idf=False).column(systems[1], "f")
    np.testing.assert_array_equal(values, alone)
    for name in ("average", "greedy"):
        assert not np.array_equal(matches.column(systems[1], name), values)


def test_vectors_that_find_no_room_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_CACHE_BYTES", 300)
    monkeypatch.setattr(embedding, "_PAIRS", 4)
    _, encoder = counting()
    examples = Examples.of([Example(f"abc {n * 'd'}", ("bad cab",)) for n in range(1, 20)])
    values = Matches(encoder, idf=False).column(examples, "f")
    np.testing.assert_array_equal(values, Matches(counting()[1], idf=False).column(examples, "f"))
    assert len(encoder._kept) < 20


def test_idf_weighs_by_each_systems_own_references() -> None:
    rows = [Example("abc dad", ("abc bed",)), Example("dad fed", ("abc gag",))]
    _, encoder = counting()
    matches = Matches(encoder, idf=True)
    both = [Examples.of(rows), Examples.of(rows[:1])]
    matches.prepare(both)
    weights = embedding.rarity(["abc bed", "abc gag"], encoder)
    assert weights[sum(map(ord, "abc"))] == 0
    assert weights[sum(map(ord, "bed"))] == pytest.approx(np.log(3 / 2))
    assert weights[-1] == pytest.approx(np.log(3))
    assert matches.column(both[0], "f")[0] != matches.column(both[1], "f")[0]


def test_empty_and_long_texts() -> None:
    _, encoder = counting()
    matches = Matches(encoder, idf=False)
    long = "abc " * 9
    examples = Examples.of(
        [Example("", ("abc",)), Example("abc", ("",)), Example(long, ("abc", "")), Example("a")]
    )
    np.testing.assert_allclose(matches.column(examples, "f"), [0, np.nan, 1, np.nan], rtol=1e-6)
    assert matches.n_cut(examples) == 1


def test_an_identical_pair_has_one_in_every_script() -> None:
    texts = list(SCRIPTS.values())
    names = [name for name in METRICS if METRICS.get(name).model == "minilm"]
    assert {"bertscore", "embedding_greedy", "mauve"} <= set(names)
    examples = Examples.of([Example(text, (text,)) for text in texts])
    for metric in map(open_metric, names):
        values = metric.runs(examples) if metric.scores is None else metric.scores(examples)
        np.testing.assert_allclose(values, 1, atol=1e-4, err_msg=metric.name)


def test_metrics_take_any_encoder_that_has_tokens() -> None:
    found = evaluate(
        ["cats and dogs"], ["cats and birds"], metrics=["bertscore=glove", "embedding_average=glove"]
    )
    assert [row.name for row in found] == ["bertscore=glove", "embedding_average=glove"]
    assert 0.5 < found["bertscore=glove"].value < 1
    glove = open_encoder("glove")
    assert glove.tokens is not None
    [tokens] = glove.tokens(["cats and dogs"])
    np.testing.assert_allclose(tokens.vectors.mean(axis=0), glove.encode(["cats and dogs"])[0], atol=1e-6)
    with pytest.raises(UserError, match="p-means has no vectors of tokens"):
        open_metric("bertscore=p-means")
    with pytest.raises(UserError, match="there is no encoder 'minilmm'"):
        open_metric("bertscore=minilmm")
    with pytest.raises(UserError, match="bleu takes nothing after '='"):
        open_metric("bleu=4")


def test_tokens_are_what_a_transformer_pools_and_its_cuts_are_told() -> None:
    encoder = token_encoder("minilm", "cpu")
    short, long = "A cat sat here.", "cat " * 700
    found = encoder.vectors([short, long, ""])
    assert found[short].n_tokens == 5
    assert (found[long].is_cut, found[long].n_tokens) == (True, 510)
    assert found[""].n_tokens == 0
    minilm = open_encoder("minilm")
    assert minilm.tokens is not None
    [tokens] = minilm.tokens([short])
    np.testing.assert_allclose(tokens.vectors.mean(axis=0), minilm.encode([short])[0], atol=1e-5)


def test_batches_hold_texts_of_like_length() -> None:
    lengths = [3, 9, 1, 9, 4, 30]
    batches = list(batches_by_length(lengths, 20))
    assert sorted(n for batch in batches for n in batch) == list(range(6))
    assert batches[0] == [5]  # longer than a batch may be: alone
    assert all(max(lengths[n] for n in b) * len(b) <= 20 for b in batches[1:])
