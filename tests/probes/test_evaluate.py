"""Scores against plain loops, and against encoders whose truth is known."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.models.encoders import Encoder
from palaver.probes.evaluate import TIE, compare, evaluate, share_of
from palaver.probes.probe import SAMPLE
from palaver.probes.recipe import SETS, Triplet
from palaver.probes.triplet_files import read_triplets
from palaver.probes.writing import other_case
from palaver.text.words import words


def triplet(
    set: str, original: str, plus: str, star: str, n: int = 0, case: str = "", corpus: str = "x"
) -> Triplet:
    kind = SETS[set]
    return Triplet(
        set,
        f"{set}:{n}",
        original,
        plus,
        star,
        kind.plus_rule,
        kind.star_rule,
        corpus,
        str(n),
        original,
        case,
    )


def encoder(function: Callable[[list[str]], Any], name: str = "e") -> Encoder:
    return Encoder(name, "", "a test", function)


def bag_of_words(texts: list[str]) -> np.ndarray:
    """Order-blind by construction."""
    found = np.zeros((len(texts), 512), np.float32)
    for row, text in zip(found, texts, strict=True):
        for word in words(text):
            if word.isalnum():
                row[zlib.crc32(word.encode()) % 512] += 1.1
    return found


def by_meaning(table: dict[str, list[float]]) -> Callable[[list[str]], Any]:
    """Case says nothing: the control of case asks for every S in another one."""
    return lambda texts: [table[text if text in table else other_case(text)] for text in texts]


def test_a_bag_of_words_cannot_see_order() -> None:
    found = evaluate([encoder(bag_of_words)], read_triplets(SAMPLE))
    assert found.score("e", "fixed-point-reorder").share.accuracy == 0
    assert found.score("e", "argument-sensitivity").share.accuracy == 0
    assert found.score("e", "argument-sensitivity").other_rule is not None
    assert found.score("e", "argument-sensitivity").other_rule.accuracy == 0  # type: ignore[union-attr]
    assert found.score("e", "fixed-point-reorder").star.mean == pytest.approx(1)


def test_an_encoder_that_knows_everything_is_always_right() -> None:
    triplets = read_triplets(SAMPLE)
    table: dict[str, list[float]] = {}
    for t in triplets:  # S and S+ alike, S* apart; of the variants of negation S apart
        near, far = [1.0, 0.0], [0.0, 1.0]
        table[t.original], table[t.plus], table[t.star] = near, near, far
        if t.set == "negation-variants":
            table[t.original], table[t.plus], table[t.star] = near, far, far
    found = evaluate([encoder(by_meaning(table))], triplets)
    assert all(s.share.accuracy == 1 for s in found.scores)
    assert all(s.failures == () for s in found.scores)
    assert found.encoders[0].mean_accuracy == 1


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(*[st.tuples(*[st.integers(-3, 3)] * 3)] * 3), min_size=1, max_size=8),
    st.sampled_from(list(SETS)),
)
def test_scores_by_brute_force(rows: list[Any], name: str) -> None:
    table, triplets = {}, []
    for n, vectors in enumerate(rows):
        texts = [f"{n} {part}" for part in ("S", "S+", "S*")]
        table |= dict(zip(texts, map(list, vectors), strict=True))
        triplets.append(triplet(name, *texts, n))
    score = evaluate([encoder(by_meaning(table))], triplets, n_replicates=100).scores[0]

    def cosine(a: Any, b: Any) -> float:
        size = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
        return sum(x * y for x, y in zip(a, b, strict=True)) / size if size else math.nan

    right, defined, sums = 0, 0, [0.0, 0.0, 0.0]
    counts = [0, 0, 0]
    for s, plus, star in rows:
        c = [cosine(s, plus), cosine(s, star), cosine(plus, star)]
        for k in range(3):
            if not math.isnan(c[k]):
                sums[k] += c[k]
                counts[k] += 1
        if name == "negation-variants":
            right += c[2] > c[0] + TIE and c[2] > c[1] + TIE
        else:
            right += c[0] > c[1] + TIE
        needed = c if name == "negation-variants" else c[:2]
        defined += not any(map(math.isnan, needed))
    assert score.share.right == right
    assert score.n_undefined == len(rows) - defined
    for k, spread in enumerate((score.plus, score.star, score.between)):
        if counts[k]:
            assert spread.mean == pytest.approx(sums[k] / counts[k], abs=1e-6)
        else:
            assert math.isnan(spread.mean)


def test_rounding_decides_nothing() -> None:
    rng = np.random.default_rng(0)
    triplets = [triplet("fixed-point-reorder", f"{n}", f"{n}+", f"{n}*", n) for n in range(50)]
    base = rng.normal(size=(50, 300)).astype(np.float32)
    table = {}
    for n, row in enumerate(base):
        order = rng.permutation(300)
        total = row[order].cumsum(dtype=np.float32)[-1]
        table |= {
            f"{n}": row.tolist(),
            f"{n}+": (row * np.float32(1 + 1e-7)).tolist(),
            f"{n}*": (row * total / row.sum()).tolist(),
        }
    assert evaluate([encoder(by_meaning(table))], triplets).scores[0].share.right == 0


def test_cases_and_corpora_are_told_apart() -> None:
    table = {"1": [1, 0], "2": [1, 0], "3": [0, 1]}
    triplets = [
        triplet("clause-relatedness", "1", "2", "3", 0, "a", "news"),
        triplet("clause-relatedness", "1", "2", "3", 1, "a", "sick"),
        triplet("clause-relatedness", "1", "3", "2", 2, "b", "news"),
    ]
    score = evaluate([encoder(by_meaning(table))], triplets).scores[0]
    assert [(p.by, p.name, p.share.right, p.share.n) for p in score.parts] == [
        ("case", "a", 2, 2),
        ("case", "b", 0, 1),
        ("corpus", "news", 1, 2),
        ("corpus", "sick", 1, 1),
    ]
    assert [f.id for f in score.failures] == ["clause-relatedness:2"]
    assert score.failures[0].margin == pytest.approx(-1)


def test_the_control_of_case_stands_beside_every_set() -> None:
    def letters(texts: list[str]) -> list[list[float]]:  # what a letter and its case are, and nothing else
        return [[float(ord(text[0])), 1000.0 * text[0].isupper(), 1.0] for text in texts]

    result = evaluate([encoder(letters, "cased"), encoder(bag_of_words, "words")], read_triplets(SAMPLE))
    for name in result.sets:
        for row in ("cased", "words"):
            score = result.score(row, name)
            [control] = [v for v in score.variants if v.name == "case"]
            assert control.share.n == control.same.n == score.share.n
            assert control.same.right == score.share.right
            if row == "words":
                assert control.share.right == 0
                assert control.star == pytest.approx(1)
    cased = result.score("cased", "negation-detection")
    assert cased.variants[-1].share.accuracy > 0.9  # S in another case is farther than anything


def test_variants_stand_beside_the_triplets_of_the_same_sentences() -> None:
    table = {"s": [1, 0], "near": [1, 0], "far": [0, 1], "t": [1, 0]}
    kind = "fixed-point-reorder"
    first, second, third = (triplet(kind, text, "near", "far", n) for n, text in enumerate(("s", "t", "s")))
    fronted = [replace(t, star="near", variant="fronted", id=f"{t.id}:fronted") for t in (first, second)]
    lost = replace(third, variant="fronted", id="elsewhere:fronted")
    result = evaluate([encoder(by_meaning(table))], [first, second, third, *fronted, lost])
    assert result.n_triplets == {kind: 3}
    assert result.corpora == {kind: {"x": 3}}
    [score] = result.scores
    assert score.share.right == 3
    assert [v.name for v in score.variants] == ["fronted", "case"]
    variant = score.variants[0]
    assert (variant.share.right, variant.share.n, variant.same.right, variant.same.n) == (0, 2, 2, 2)
    assert variant.star == pytest.approx(1)
    assert variant.p == pytest.approx(0.5)  # two of two go the other way: exact binomial, both sides
    assert any("1 variants were left out" in note for note in result.notes)
    assert result.to_polars("variants").height == 2
    with pytest.raises(UserError, match="no triplets"):
        evaluate([encoder(by_meaning(table))], fronted)


def test_pairs_of_verbs_are_the_unit_of_an_interval() -> None:
    table = {"s": [1, 0], "near": [1, 0], "far": [0, 1]}
    triplets = []
    for pair, n, is_right in (("jump, leap", 60, True), ("cut, slice", 30, False), ("run, dash", 10, True)):
        for k in range(n):
            texts = ("s", "near", "far") if is_right else ("s", "far", "near")
            made = triplet("negation-detection", *texts, len(triplets))
            triplets.append(replace(made, pair=pair, relation="wider" if k % 2 else "synonym"))
    [score] = evaluate([encoder(by_meaning(table))], triplets).scores
    assert score.share.accuracy == 0.7
    assert score.pairs is not None
    assert score.pairs.n_pairs == 3
    assert score.pairs.mean == pytest.approx(2 / 3)
    # Of 27 draws of three pairs 1 has the wrong one thrice (0) and 8 have it never (1): the whole range
    assert (score.pairs.low, score.pairs.high) == (0, 1)
    assert (score.pairs.mean_low, score.pairs.mean_high) == (0, 1)
    assert score.share.high - score.share.low < 0.2
    parts = {p.name: (p.share.right, p.share.n) for p in score.parts if p.by == "pair"}
    assert parts == {"jump, leap": (60, 60), "cut, slice": (0, 30), "run, dash": (10, 10)}
    assert [p.share.n for p in score.parts if p.by == "relation"] == [50, 50]


def test_intervals() -> None:
    rng = np.random.default_rng(0)
    none = share_of(np.zeros(100, bool), rng)
    assert (none.low, none.interval) == (0, "exact")
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 100))
    every = share_of(np.ones(100, bool), rng)
    assert (every.low, every.high) == (pytest.approx(1 - none.high), 1)
    half = share_of(np.arange(400) % 2 == 0, rng)
    assert half.low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=0.006)
    assert half.high == pytest.approx(0.5 + 1.96 * 0.5 / 20, abs=0.006)


def test_pairs_of_encoders_are_compared() -> None:
    right = {
        ("a", "s"): np.array([True] * 40 + [False] * 10),
        ("b", "s"): np.array([False] * 40 + [True] * 2 + [False] * 8),
        ("c", "s"): np.array([True] * 40 + [False] * 10),
    }
    tests = {(t.a, t.b): t for t in compare(["a", "b", "c"], right, ["s"])}
    assert (tests["a", "b"].only_a, tests["a", "b"].only_b) == (40, 2)
    assert tests["a", "b"].p <= tests["a", "b"].adjusted < 0.001
    assert math.isnan(tests["a", "c"].p)
    assert tests["a", "c"].note


def test_sentences_are_encoded_once_for_all_sets(tmp_path: Path) -> None:
    asked: list[str] = []

    def remember(texts: list[str]) -> Any:
        asked.extend(texts)
        return bag_of_words(texts)

    triplets = read_triplets(SAMPLE)
    found = evaluate([encoder(remember)], [*triplets, *triplets])
    assert len(asked) == len(set(asked)) == found.n_sentences


def test_the_result_is_json_with_everything(tmp_path: Path) -> None:
    triplets = [triplet("negation-detection", "a", "b", "c")]
    found = evaluate([encoder(by_meaning({"a": [0, 0], "b": [1, 0], "c": [0, 1]}))], triplets)
    said = json.loads(found.to_json())
    assert said["scores"][0]["plus"]["mean"] is None
    assert said["scores"][0]["share"]["accuracy"] == 0
    assert said["run"]["signature"] == found.run.signature
    assert "vector of zeros" in found.notes[0]


def test_nothing_to_do_is_told() -> None:
    with pytest.raises(UserError, match="no encoder"):
        evaluate([], read_triplets(SAMPLE))
    with pytest.raises(UserError, match="no triplets"):
        evaluate([encoder(bag_of_words)], [])
    with pytest.raises(UserError, match="same name"):
        evaluate([encoder(bag_of_words)] * 2, read_triplets(SAMPLE))
