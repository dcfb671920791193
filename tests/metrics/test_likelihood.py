"""Perplexity, likelihood given the context, and the gain over another context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from palaver.metrics import likelihood
from palaver.metrics.evaluate import evaluate
from palaver.metrics.examples import Example, Examples
from palaver.metrics.file_scores import score_files
from palaver.metrics.likelihood import other_contexts
from palaver.metrics.metric import open_metric
from palaver.models.likelihood import LanguageModel, Likelihoods, Reply
from palaver.schema import Turn


class Letters(LanguageModel):
    """A token a letter; a letter costs 1 nat, half of that where the context holds it."""

    name = "letters@1"

    def __init__(self) -> None:
        self.scored: list[Reply] = []

    def policy(self, *, has_context: bool) -> str:
        return f"bos:^|context:{has_context}"

    def likelihoods(self, replies: Sequence[Reply]) -> Likelihoods:
        self.scored += replies
        nats = [sum(0.5 if c in _text(r) else 1.0 for c in r.text) for r in replies]
        sizes = [len(r.text) for r in replies]
        return Likelihoods(np.array(nats), np.array(sizes), np.array([n > 20 for n in sizes]))


def _text(reply: Reply) -> str:
    return " ".join(turn.text for turn in reply.context)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Letters:
    letters = Letters()
    nats = likelihood.Nats.__new__(likelihood.Nats)
    nats.model = letters
    monkeypatch.setattr(likelihood, "_nats", lambda name, device: nats)
    return letters


def test_perplexities_are_exponentials_of_means(model: Letters) -> None:
    found = evaluate(["abcd efgh", "ab"], metrics=["perplexity=x", "word_perplexity"], n_replicates=50)
    per_token, per_word = found.rows
    assert per_token.value == pytest.approx(math.e)
    assert per_word.value == pytest.approx(math.exp(11 / 5))  # two words, one word, two ends
    assert (per_token.name, per_token.better) == ("perplexity=x", "lower")
    assert per_token.signature.startswith("perplexity=x|model:letters@1|bos:^|context:False|")
    assert open_metric("perplexity").scores is not None


def test_the_gain_is_over_the_context_of_another_item(model: Letters) -> None:
    said, context = ["ab", "cd", ""], ["ab", "cd", "ef"]
    found = evaluate(said, context=context, metrics=["likelihood", "context_gain"], n_replicates=0)
    assert found["likelihood"].value == pytest.approx(-0.5)
    assert found["context_gain"].value == pytest.approx(0.5)
    assert (found["context_gain"].n, found["context_gain"].n_undefined) == (2, 1)  # one is empty
    general = evaluate(["ab", "ab"], context=["ab x", "ab y"], metrics=["context_gain"], n_replicates=0)
    assert general["context_gain"].value == 0
    alone = evaluate(["ab"], context=["ab"], metrics=["context_gain"])["context_gain"]
    assert (math.isnan(alone.value), alone.reason) == (True, "no response has a score")


def test_each_distinct_reply_is_scored_once(model: Letters) -> None:
    context = (Turn(speaker="a", text="x"),)
    systems = [Examples.of([Example(said, (), "", context)] * 3) for said in ("ab", "ab", "cd")]
    metric = open_metric("likelihood")
    assert metric.prepare is not None
    assert metric.scores is not None
    metric.prepare(systems, lambda *_: None)
    assert sorted(reply.text for reply in model.scored) == ["ab", "cd"]
    assert metric.scores(systems[0]).tolist() == [-1, -1, -1]
    assert len(model.scored) == 2


def test_other_contexts_depend_on_the_texts_alone() -> None:
    contexts = [(Turn(speaker="a", text=str(n % 9)),) for n in range(12)]
    rows = [Example("x", (), "", context) for context in contexts]
    found = other_contexts([Examples.of(rows)])
    assert found == other_contexts([Examples.of(rows[:5]), Examples.of(rows[:3:-1])])
    assert len(found) == 9
    assert all(context != other for context, other in found.items())
    assert len(set(found.values())) == 9
    renamed = (Turn(speaker="b", text="0"),)
    more = other_contexts([Examples.of([*rows, Example("x", (), "", renamed)])])
    assert more[renamed] == more[contexts[0]]


def test_what_was_cut_is_counted(model: Letters) -> None:
    examples = Examples.of([Example("a" * 30), Example("a"), Example("")])
    metric = open_metric("perplexity")
    assert metric.n_cut is not None
    assert metric.n_cut(examples) == 1


def test_nats_of_a_beginning_are_not_divided_by_all_words(model: Letters) -> None:
    said = ["ab", "a" * 30, ""]
    found = evaluate(said, metrics=["perplexity", "word_perplexity"], n_replicates=0)
    assert (found["perplexity"].n, found["word_perplexity"].n) == (2, 1)
    assert found["word_perplexity"].n_undefined == 2
    assert found["word_perplexity"].value == pytest.approx(math.e)  # two nats, a word and its end


def test_a_note_says_that_the_context_may_be_what_was_cut(model: Letters, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("a" * 30 + "\nb\n")
    (note,) = score_files(tmp_path / "long.txt", ["perplexity"], n_replicates=0).notes
    assert note == (
        "perplexity: 1 response of long could not be read whole by the model: "
        "the response, its context or its reference was cut"
    )
