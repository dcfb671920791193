"""What a language model holds of responses: perplexity, likelihood given the context, gain by the context.

`perplexity` is that of the responses by themselves, `likelihood` the mean log-likelihood of a token of the
reply given the turns before it. `context_gain` is how much higher that is than with the turns of another
item: a reply that fits any context gains nothing, however fluent it is. Which other item is drawn with a
fixed seed from all contexts of the file, in an order that depends on nothing but their texts.
`palaver.models.likelihood` says what stands before a reply. An empty response has no score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from palaver.errors import require
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import Floats, Metric, divide
from palaver.progress import Progress, no_progress
from palaver.schema.dialogue import Turn
from palaver.text.words import count_words

Before = Literal["nothing", "context", "another context"]
SEED = 0
_REPLIES = 1024
"""Replies that are scored between two words about progress."""
_NATS, _TOKENS, _CUT = range(3)

Turns = tuple[Turn, ...]


class Nats:
    """What each response costs one language model, in nats, after nothing, its context or another one."""

    def __init__(self, name: str, device: str) -> None:
        require("torch", "models")
        from palaver.models.likelihood import open_language_model

        self.model = open_language_model(name, device)

    def _key(self, before: Before) -> tuple[str, ...]:
        return ("nats", self.model.name, before)

    def prepare(self, systems: Sequence[Examples], before: Before, progress: Progress = no_progress) -> None:
        """Score all responses of all systems, each distinct one once."""
        from palaver.models.likelihood import Reply

        new = [examples for examples in systems if self._key(before) not in examples.by_models]
        others = other_contexts(new) if before == "another context" else {}
        replies_of = []
        for examples in new:
            assert examples.rows is not None
            contexts = [_context(row, before, others) for row in examples.rows]
            replies_of.append(
                [
                    Reply(row.prediction, context, row.knowledge if before != "nothing" else "")
                    for row, context in zip(examples.rows, contexts, strict=True)
                    if row.prediction.strip() and (context or before == "nothing")
                ]
            )
        distinct = list(dict.fromkeys(reply for replies in replies_of for reply in replies))
        distinct.sort(key=lambda reply: sum(len(turn.text) for turn in reply.context) + len(reply.text))
        found: dict[Reply, tuple[float, int, bool]] = {}
        for begin in range(0, len(distinct), _REPLIES):
            progress("scoring responses", begin, len(distinct))
            part = distinct[begin : begin + _REPLIES]
            found.update(zip(part, zip(*self.model.likelihoods(part), strict=True), strict=True))
        for examples, replies in zip(new, replies_of, strict=True):
            table = np.full((len(examples), 3), np.nan)
            table[_scored(examples, before, others)] = [found[reply] for reply in replies] or np.empty((0, 3))
            examples.by_models[self._key(before)] = table

    def table(self, examples: Examples, before: Before) -> Floats:
        """Nats, tokens and whether something was cut, of each response; nan where it has no score."""
        self.prepare([examples], before)
        return examples.by_models[self._key(before)]


def _context(row: Example, before: Before, others: dict[Turns, Turns]) -> Turns:
    if before == "nothing":
        return ()
    return row.context if before == "context" else others.get(row.context, ())


def _scored(examples: Examples, before: Before, others: dict[Turns, Turns]) -> list[int]:
    assert examples.rows is not None
    return [
        n
        for n, row in enumerate(examples.rows)
        if row.prediction.strip() and (before == "nothing" or _context(row, before, others))
    ]


def other_contexts(systems: Sequence[Examples]) -> dict[Turns, Turns]:
    """For each context one that says something else, drawn at random; none where there is but one."""
    by_text: dict[tuple[str, ...], Turns] = {}
    contexts: set[Turns] = set()
    for examples in systems:
        for row in examples.rows or ():
            if row.context:
                by_text.setdefault(_texts(row.context), row.context)
                contexts.add(row.context)
    texts = sorted(by_text)
    if len(texts) < 2:
        return {}
    order = np.random.default_rng(SEED).permutation(len(texts)).tolist()
    after = {texts[a]: by_text[texts[b]] for a, b in zip(order, order[1:] + order[:1], strict=True)}
    return {context: after[_texts(context)] for context in contexts}


def _texts(context: Turns) -> tuple[str, ...]:
    return tuple(turn.text for turn in context)


@lru_cache(maxsize=2)
def _nats(name: str, device: str) -> Nats:
    return Nats(name, device)


def _token_table(nats: Nats, examples: Examples) -> Floats:
    return nats.table(examples, "nothing")[:, [_NATS, _TOKENS]]


def _word_table(nats: Nats, examples: Examples) -> Floats:
    """Nats and words, one more for the end of the response.

    A response that was cut has none: its nats are of fewer words than it has.
    """
    table = nats.table(examples, "nothing")
    n_words = [count_words(row.prediction) + 1 for row in examples.rows or ()]
    pairs = np.column_stack([table[:, _NATS], n_words])
    pairs[table[:, _CUT] != 0] = np.nan  # nan where it has no score
    return pairs


def _exp_mean(sums: Floats) -> Floats:
    return np.exp(divide(sums[..., 0], sums[..., 1], sums[..., 1] > 0))


def _per_token(nats: Nats, examples: Examples, before: Before) -> Floats:
    table = nats.table(examples, before)
    return divide(-table[:, _NATS], table[:, _TOKENS], table[:, _TOKENS] > 0)


def _gain(nats: Nats, examples: Examples) -> Floats:
    return _per_token(nats, examples, "context") - _per_token(nats, examples, "another context")


def _declare(befores: tuple[Before, ...], make: Callable[[Callable[[], Nats]], Metric]) -> Metric:
    """The metric that `make` gives, opened with SmolLM2 at its first use unless another model is named."""

    def opened(which: str, device: str) -> Metric:
        def nats() -> Nats:
            return _nats(which, device)

        def prepare(systems: Sequence[Examples], progress: Progress) -> None:
            for before in befores:
                nats().prepare(systems, before, progress)

        return replace(
            make(nats),
            needs=() if befores == ("nothing",) else ("context",),
            of_texts=True,
            together="another context" in befores,
            model="smollm2",
            with_model=with_model,
            prepare=prepare,
            n_cut=lambda examples: int(np.nansum(nats().table(examples, befores[0])[:, _CUT])),
        )

    def with_model(which: str, device: str) -> Metric:
        metric, model = opened(which, device), _nats(which, device).model
        policy = model.policy(has_context="context" in befores)
        return replace(metric, settings=f"model:{model.name}|{policy}|{metric.settings}")

    return opened("smollm2", "auto")


def _perplexity(name: str, title: str, settings: str, table: Callable[[Nats, Examples], Floats]) -> Metric:
    return _declare(
        ("nothing",),
        lambda nats: Metric(
            name=name,
            title=title,
            better="lower",
            settings=settings,
            scores=lambda examples: _exp_mean(table(nats(), examples)),
            statistics=lambda examples: table(nats(), examples),
            figure=_exp_mean,
        ),
    )


PERPLEXITY = _perplexity(
    "perplexity", "Perplexity of the responses, per token", "per:token|corpus", _token_table
)
WORD_PERPLEXITY = _perplexity(
    "word_perplexity", "Perplexity of the responses, per word", "per:word|words:palaver|corpus", _word_table
)
LIKELIHOOD = _declare(
    ("context",),
    lambda nats: Metric(
        name="likelihood",
        title="Log-likelihood of the reply given its context, per token",
        better="higher",
        settings="unit:nats|per:token|mean:responses",
        scores=lambda examples: _per_token(nats(), examples, "context"),
    ),
)
CONTEXT_GAIN = _declare(
    ("context", "another context"),
    lambda nats: Metric(
        name="context_gain",
        title="Log-likelihood that the context adds over another one, per token",
        better="higher",
        settings=f"unit:nats|per:token|other:drawn|seed:{SEED}|mean:responses",
        scores=lambda examples: _gain(nats(), examples),
    ),
)
