"""Decoding against exhaustive search, and its independence of batch size and order."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from palaver.errors import UserError
from palaver.generation import choose
from palaver.generation.decode import Decoding, decode, pad
from palaver.models.pretrained import Responder
from palaver.models.seq2seq import Seq2Seq, Seq2SeqConfig
from palaver.models.transformer import KnowledgeTransformer, KnowledgeTransformerConfig
from palaver.text.vocabulary import BOS, EOS, PAD, SEP, UNK

WORDS = [5, 6, 7]


def tiny(kind: str, vocab_size: int = 8) -> Responder:
    torch.manual_seed(2)
    if kind == "seq2seq":
        config = Seq2SeqConfig(
            vocab_size=vocab_size,
            embedding=6,
            hidden=8,
            layers=2,
            init_range=1.5,
            conditioning="speaker",
            speakers=("a", "b"),
        )
        model: Responder = Seq2Seq(config)
        model.output.weight.data[EOS] *= 3  # or hardly anything would end
        return model.double().eval()
    sizes = {"dim": 16, "heads": 2, "layers": 1, "feed_forward": 16, "max_context": 12, "max_response": 15}
    model = KnowledgeTransformer(
        KnowledgeTransformerConfig(vocab_size=vocab_size, max_knowledge=6, norm="pre", **sizes)
    )
    for parameter in model.parameters():
        parameter.data.mul_(2)
    model.output.weight.data[EOS] *= 3
    return model.double().eval()


def told(kind: str, n: int) -> dict[str, list]:
    if kind == "seq2seq":
        return {"speaker": [i % 2 for i in range(n)]}
    return {"knowledge": [[5 + i % 3] * (i % 4) for i in range(n)]}


def logprob(model: Responder, kind: str, context: list[int], tokens: list[int], n: int = 0) -> float:
    given = {name: values[n] for name, values in told(kind, n + 1).items()}
    arguments = {}
    if "speaker" in given:
        arguments["speaker"] = torch.tensor([given["speaker"]])
    if "knowledge" in given:
        arguments["knowledge"] = torch.tensor([given["knowledge"]], dtype=torch.int64)
    with torch.inference_mode():
        return -model(torch.tensor([context]), torch.tensor([tokens]), **arguments).nll.item()


@pytest.mark.parametrize("kind", ["seq2seq", "transformer"])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("context", [[5], [7, 6, 5, 5], [6, 6]])
def test_beam_search_is_exhaustive_when_the_beam_is_wide_enough(
    kind: str, penalty: float, context: list[int]
) -> None:
    model = tiny(kind)
    longest = 3
    every = []
    for length in range(1, longest):
        every += [[*s, EOS] for s in itertools.product(WORDS, repeat=length)]
    every += [list(s) for s in itertools.product(WORDS, repeat=longest)]  # cut off without an end
    scored = {tuple(s): logprob(model, kind, context, s) for s in every}
    best = max(every, key=lambda s: scored[tuple(s)] / len(s) ** penalty)
    settings = Decoding(method="beam", beam_size=30, length_penalty=penalty, max_length=longest)
    [found] = decode(model, [context], settings, **told(kind, 1))
    assert found.tokens == [t for t in best if t != EOS]
    assert found.logprob == pytest.approx(scored[tuple(best)], rel=1e-9)


def next_logprobs(model: Responder, kind: str, context: list[int], tokens: list[int], n: int) -> torch.Tensor:
    """ln p of every next token after `tokens`, from the beginning, one row by itself."""
    given = {name: torch.tensor(values[n : n + 1]) for name, values in told(kind, n + 1).items()}
    with torch.inference_mode():
        memory = model.encode(torch.tensor([context]), given.get("knowledge"))
        state = model.start(memory, model.condition(given.get("speaker"), None))
        for token in [BOS, *tokens]:
            logits, state = model.step(state, torch.tensor([token]))
    logp = torch.log_softmax(logits[0], 0)
    logp[[PAD, BOS, UNK, SEP]] = -torch.inf
    return logp


def beam_by_hand(
    model: Responder, kind: str, context: list[int], how: Decoding, longest: int, n: int
) -> tuple[list[int], float]:
    running: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, float, list[int]]] = []
    for length in range(1, longest + 1):
        grown = [
            (score + p, [*tokens, token])
            for score, tokens in running
            for token, p in enumerate(next_logprobs(model, kind, context, tokens, n).tolist())
            if p > -math.inf and not (token == EOS and length <= how.min_length)
        ]
        grown.sort(key=lambda one: -one[0])
        for score, tokens in grown[: how.beam_size]:
            if tokens[-1] == EOS or length == longest:
                finished.append((score / length**how.length_penalty, score, tokens))
        finished = sorted(finished, key=lambda one: -one[0])[: how.beam_size]
        running = [one for one in grown if one[1][-1] != EOS][: how.beam_size]
        full = len(finished) == how.beam_size
        if full and finished[-1][0] >= running[0][0] / length**how.length_penalty:
            break
    _, score, tokens = finished[0]
    return [t for t in tokens if t != EOS], score


@pytest.mark.parametrize("kind", ["seq2seq", "transformer"])
@pytest.mark.parametrize(("k", "penalty"), [(1, 1.0), (2, 0.0), (3, 1.0), (4, 2.0)])
def test_beam_search_is_that_by_hand(kind: str, k: int, penalty: float) -> None:
    model = tiny(kind, vocab_size=50)
    contexts = [[5, 6], [7, 8, 9], [10], [5, 5, 5, 5], [11, 6]]
    how = Decoding(method="beam", beam_size=k, length_penalty=penalty, max_length=9)
    found = decode(model, contexts, how, **told(kind, len(contexts)))
    lengths = set()
    for n, context in enumerate(contexts):
        tokens, score = beam_by_hand(model, kind, context, how, 9, n)
        assert found[n].tokens == tokens
        assert found[n].logprob == pytest.approx(score, rel=1e-9)
        lengths.add(len(tokens))
    assert len(lengths) > 1


def test_encoding_in_pieces_is_encoding_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("transformer", vocab_size=50)
    rng = random.Random(6)
    contexts = pad([[rng.randrange(5, 50) for _ in range(rng.randrange(13))] for _ in range(20)], "cpu")
    sentences = pad([[rng.randrange(5, 50) for _ in range(rng.randrange(7))] for _ in range(20)], "cpu")
    whole = model.encode(contexts, sentences)  # with gradients, so at once
    with torch.inference_mode():
        monkeypatch.setattr("palaver.models.transformer._PIECE", 20)
        pieces = model.encode(contexts, sentences)
    assert torch.equal(pieces.visible, whole.visible)
    seen = whole.visible
    assert torch.allclose(pieces.values[seen], whole.values[seen], rtol=1e-12)


METHODS = [
    Decoding(),
    Decoding(method="beam", beam_size=3, max_length=12),
    Decoding(method="beam", beam_size=4, length_penalty=0.0, no_repeat_ngram=2),
    Decoding(method="sample", seed=4),
    Decoding(method="sample", top_p=0.8, temperature=1.3, seed=5),
    Decoding(method="sample", top_k=6, top_p=0.9, no_repeat_ngram=2),
    Decoding(method="stochastic-greedy", k=4, seed=1),
    Decoding(repetition_penalty=1.5),
    Decoding(guidance=1.5),
    Decoding(method="sample", guidance=0.7, repetition_penalty=1.3, seed=2),
]


@pytest.mark.parametrize("kind", ["seq2seq", "transformer"])
@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_batch_size_and_order_change_nothing(kind: str, settings: Decoding) -> None:
    model = tiny(kind, vocab_size=200)
    rng = random.Random(3)
    n = 23
    contexts = [[rng.randrange(5, 200) for _ in range(rng.randrange(1, 9))] for _ in range(n)]
    contexts[4] = contexts[9]
    given = told(kind, n)
    keys = [rng.getrandbits(64) for _ in range(n)]
    alone = decode(model, contexts, settings, keys=keys, batch_size=1, **given)
    by_seven = decode(model, contexts, settings, keys=keys, batch_size=7, **given)
    assert [d.tokens for d in by_seven] == [d.tokens for d in alone]
    order = rng.sample(range(n), n)
    moved = {name: [values[i] for i in order] for name, values in given.items()}
    shuffled = decode(
        model,
        [contexts[i] for i in order],
        settings,
        keys=[keys[i] for i in order],
        batch_size=n,
        **moved,
    )
    for i, found in zip(order, shuffled, strict=True):
        assert found.tokens == alone[i].tokens
        assert found.logprob == pytest.approx(alone[i].logprob, rel=1e-9)
    assert len({tuple(d.tokens) for d in alone}) > 2
    if settings.method == "sample" and not settings.top_k:
        assert len({len(d.tokens) for d in alone}) > 1  # so that some rows left the batch before others


@pytest.mark.parametrize("kind", ["seq2seq", "transformer"])
@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_the_log_probability_is_the_models_own(kind: str, settings: Decoding) -> None:
    model = tiny(kind, vocab_size=50)
    contexts = [[5, 6], [7, 8, 9], [10]]
    for n, found in enumerate(decode(model, contexts, settings, **told(kind, 3))):
        longest = min(settings.max_length, model.config.max_response)
        whole = [*found.tokens, EOS] if len(found.tokens) < longest else found.tokens
        assert found.logprob == pytest.approx(logprob(model, kind, contexts[n], whole, n), rel=1e-9)


def test_the_best_token_and_the_total_on_cpu() -> None:
    logits = torch.randn(7, 300, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for exact, dtype in ((1e-12, torch.float64), (1e-5, torch.float32), (1e-2, torch.bfloat16)):
        assert torch.equal(choose.most_probable(logits.to(dtype)), logits.to(dtype).argmax(1))
        total = choose.total(logits.to(dtype)).double()
        assert torch.allclose(total, torch.logsumexp(logits, 1), atol=exact)


def test_drawn_tokens_have_the_probabilities_of_the_nucleus() -> None:
    logits = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05]).double().log().repeat(20000, 1)
    numbers = choose.uniform(3, torch.arange(20000), 0)
    cases = {(0, 1.0): 5, (3, 1.0): 3, (0, 0.72): 3, (2, 0.9): 2, (0, 0.4): 1}
    for (top_k, top_p), size in cases.items():
        found = Counter(choose.draw(logits, numbers, top_k=top_k, top_p=top_p).tolist())
        assert len(found) == size, (top_k, top_p)
        kept = logits[0, :size].exp() / logits[0, :size].exp().sum()
        for token, share in enumerate(kept.tolist()):
            assert abs(found[token] / 20000 - share) < 4 * math.sqrt(share * (1 - share) / 20000) + 1e-9


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.999), st.sampled_from([0.3, 1.0, 3.0]))
def test_the_quick_nucleus_is_the_sorted_one(seed: int, top_p: float, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(6, 1000, generator=generator, dtype=torch.float64) * scale
    numbers = choose.uniform(seed, torch.arange(6), 0)
    for row, token in enumerate(choose.draw(logits, numbers, top_p=top_p).tolist()):
        order = logits[row].argsort(descending=True)
        p = torch.softmax(logits[row], 0)[order]
        kept = (p.cumsum(0) - p < top_p).double() * p
        place = int((kept.cumsum(0) > numbers[row] * kept.sum()).double().argmax())
        assert token == order[place]


def test_random_numbers_are_uniform_and_differ_by_seed_key_and_step() -> None:
    keys = torch.arange(100000)
    numbers = choose.uniform(0, keys, 0).numpy()
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts, _ = np.histogram(numbers, 20, (0, 1))
    assert abs(counts - 5000).max() < 5 * math.sqrt(5000)
    for other in (choose.uniform(1, keys, 0), choose.uniform(0, keys, 1), choose.uniform(0, keys + 1, 0)):
        assert abs(np.corrcoef(numbers, other.numpy())[0, 1]) < 0.02


def test_no_repeated_ngrams_and_no_marks() -> None:
    model = tiny("seq2seq", vocab_size=9)
    for how in (Decoding(no_repeat_ngram=2), Decoding(method="beam", no_repeat_ngram=2, min_length=6)):
        for found in decode(model, [[5], [6, 7], [8]], how, speaker=[0, 1, 0]):
            pairs = list(itertools.pairwise(found.tokens))
            assert len(pairs) == len(set(pairs))
            assert min(found.tokens, default=5) >= 5
            assert len(found.tokens) >= how.min_length


def test_repetition_is_penalised_as_in_transformers() -> None:
    logits = torch.randn(4, 30, generator=torch.Generator().manual_seed(0))
    said = torch.randint(0, 30, (4, 9), generator=torch.Generator().manual_seed(1))
    theirs = RepetitionPenaltyLogitsProcessor(1.3)(said, logits.clone())
    assert torch.equal(choose.penalise(logits.clone(), said, 1.3), theirs)
    model = tiny("seq2seq", vocab_size=12)
    contexts, how = [[5], [6, 7], [8]], {"min_length": 20, "max_length": 20}
    plain, other = (
        decode(model, contexts, Decoding(repetition_penalty=p, **how), speaker=[0, 1, 0]) for p in (1.0, 10.0)
    )
    assert sum(len(set(one.tokens)) for one in plain) < sum(len(set(one.tokens)) for one in other)


@pytest.mark.parametrize("kind", ["seq2seq", "transformer"])
def test_guidance_moves_away_from_the_model_that_knows_the_history_alone(kind: str) -> None:
    model, strength = tiny(kind, vocab_size=50), 2.0
    contexts = [[5, 6], [7, 8, 9], [10], [5, 5, 5, 5]]
    who = told(kind, len(contexts))
    plain = decode(model, contexts, Decoding(max_length=9), **who)
    guided = decode(model, contexts, Decoding(max_length=9, guidance=strength), **who)
    assert [one.tokens for one in guided] != [one.tokens for one in plain]
    average = model.average_condition(1)
    for n, context in enumerate(contexts):
        tokens: list[int] = []
        while len(tokens) < 9:
            own = next_logprobs(model, kind, context, tokens, n)
            with torch.inference_mode():
                state = model.start(model.encode(torch.tensor([context])), average)
                for token in [BOS, *tokens]:
                    other, state = model.step(state, torch.tensor([token]))
            if not tokens:
                own[EOS] = -torch.inf
            score = own + strength * (own - torch.log_softmax(other[0], 0))
            score[own < own.max() + math.log(0.1)] = -torch.inf
            tokens.append(int(score.argmax()))
            if tokens[-1] == EOS:
                break
        assert guided[n].tokens == [token for token in tokens if token != EOS]


def test_guidance_needs_something_to_be_told() -> None:
    model, contexts = tiny("transformer", vocab_size=50), [[5, 6], [7, 8, 9]]
    assert decode(model, contexts, Decoding(guidance=3.0)) == decode(model, contexts, Decoding())
    model, beams = tiny("seq2seq", vocab_size=50), {"method": "beam", "beam_size": 3}
    guided, plain = (
        decode(model, contexts, Decoding(guidance=g, **beams), speaker=[0, 1]) for g in (3.0, 0.0)
    )
    assert guided == plain


def test_a_context_longer_than_the_model_keeps_its_end() -> None:
    model = tiny("transformer", vocab_size=50)
    long = [random.Random(1).randrange(5, 50) for _ in range(5000)]
    assert decode(model, [long], Decoding()) == decode(model, [long[-12:]], Decoding())


def test_empty_input_and_empty_context() -> None:
    model = tiny("seq2seq")
    assert decode(model, [], Decoding(), speaker=[]) == []
    assert len(decode(model, [[]], Decoding(), speaker=[0])) == 1
    assert pad([], "cpu").shape == (0, 1)


def test_wrong_settings_are_all_named() -> None:
    with pytest.raises(UserError, match="method") as caught:
        Decoding(method="sample", temperature=0, top_p=2, top_k=-1, max_length=0)
    assert len(caught.value.problems) == 4
    with pytest.raises(UserError, match="expected 'greedy', 'beam'"):
        Decoding(method="bean")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="min_length is 9, more than max_length"):
        Decoding(min_length=9, max_length=8)


def test_lists_of_different_lengths_are_an_error() -> None:
    with pytest.raises(UserError, match="2 contexts need 2 entries in speaker, found 1"):
        decode(tiny("seq2seq"), [[5], [6]], Decoding(), speaker=[0])


def test_who_speaks_must_be_said() -> None:
    with pytest.raises(UserError, match="needs a speaker"):
        decode(tiny("seq2seq"), [[5]], Decoding())
    with pytest.raises(UserError, match="without speakers"):
        decode(tiny("transformer"), [[5]], Decoding(), speaker=[0])
