"""BLEU, chrF and self-BLEU against sacrebleu."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.metrics.bleu import bleu, bleu_statistics, self_bleu, sentence_bleu
from palaver.metrics.chrf import chrf, chrf_statistics
from palaver.metrics.examples import Example, Examples

WORDS = [
    "the",
    "cat",
    "Cat",
    "sat.",
    "3,5",
    "1-2",
    "don't",
    "&quot;hi&quot;",
    "<skipped>",
    "-\n",
    "é,",
    "…",
    "a/b",
]
texts = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
rows = st.lists(st.tuples(texts, st.lists(texts, min_size=2, max_size=2)), min_size=1, max_size=6)


def examples_of(pairs: list[tuple[str, list[str]]]) -> Examples:
    return Examples.of([Example(said, tuple(references)) for said, references in pairs])


@settings(max_examples=60, deadline=None)
@given(rows)
def test_bleu_is_that_of_sacrebleu(pairs: list[tuple[str, list[str]]]) -> None:
    said = [text for text, _ in pairs]
    streams = [list(stream) for stream in zip(*(references for _, references in pairs), strict=True)]
    table = bleu_statistics(examples_of(pairs))
    assert bleu(table.sum(axis=0)) == pytest.approx(sacrebleu.corpus_bleu(said, streams).score, abs=1e-9)
    each = [sacrebleu.sentence_bleu(text, references).score for text, references in pairs]
    assert sentence_bleu(table) == pytest.approx(each, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(rows)
def test_chrf_is_that_of_sacrebleu(pairs: list[tuple[str, list[str]]]) -> None:
    said = [text for text, _ in pairs]
    streams = [list(stream) for stream in zip(*(references for _, references in pairs), strict=True)]
    table = chrf_statistics(examples_of(pairs))
    assert chrf(table.sum(axis=0)) == pytest.approx(sacrebleu.corpus_chrf(said, streams).score, abs=1e-9)
    each = [sacrebleu.sentence_chrf(text, references).score for text, references in pairs]
    assert chrf(table) == pytest.approx(each, abs=1e-9)


def test_any_text_is_tokenised_as_by_sacrebleu() -> None:
    """Hyphens at ends of lines, entities, marks in a row, white space of all kinds."""
    hard = [
        "hy-\nphen of all -\n", "a-\n\nb", "a -\n b", "&amp;lt; &lt;b&gt;", "...,,.1.2,3",
        "\u00a0x\u2003y\u0085z", "1-2-3 a-b", "a\tb\rc\x1fd",
        "'tis \"so\" (he) {said} [it] ~`@#$%^*", ".5 5. ,x, $1,000.50",
    ]  # fmt: skip
    pairs = [(text, [hard[0], text[::-1]]) for text in hard]
    table = bleu_statistics(examples_of(pairs))
    for row, (text, references) in zip(sentence_bleu(table), pairs, strict=True):
        assert row == pytest.approx(sacrebleu.sentence_bleu(text, references).score, abs=1e-9), text


def test_responses_without_references_have_no_score_and_do_not_count() -> None:
    table = bleu_statistics(Examples.of([Example("a b c d e", ("a b c d e",)), Example("f")]))
    assert np.isnan(table[1]).all()
    assert bleu(np.nansum(table, axis=0)) == pytest.approx(100)
    assert math.isnan(chrf(chrf_statistics(Examples.of([Example("f")])))[0])


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=2, max_size=6))
def test_self_bleu_is_the_mean_over_all_others(said: list[str]) -> None:
    each = [sacrebleu.sentence_bleu(text, said[:i] + said[i + 1 :]).score for i, text in enumerate(said)]
    blocks = [Examples.of([Example(text) for text in said])]
    assert self_bleu(blocks) == pytest.approx(np.mean(each), abs=1e-9)


def test_self_bleu_of_one_response_is_undefined() -> None:
    assert math.isnan(self_bleu([Examples.of([Example("hello there")])]))
