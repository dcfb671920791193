"""ROUGE against rouge-score."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import METRICS

SCORER = RougeScorer(["rouge1", "rouge2", "rougeL"])
texts = st.lists(
    st.sampled_from(["The", "cat's", "café", "x²", "ﬁn", "42", "…", "it", "it"]), max_size=8
).map(" ".join)
full = texts.map(lambda text: f"{text} end")


@settings(max_examples=100, deadline=None)
@given(texts, st.lists(full, min_size=1, max_size=3))
def test_rouge_is_that_of_rouge_score(said: str, references: list[str]) -> None:
    expected = SCORER.score_multi(references, said)
    examples = Examples.of([Example(said, tuple(references))])
    for name, theirs in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
        scores = METRICS.get(name).scores
        assert scores is not None
        assert scores(examples)[0] == pytest.approx(expected[theirs].fmeasure, abs=1e-12)
