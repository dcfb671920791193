"""The Transformer against PyTorch's own layers, and stepping with caches against whole responses."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from palaver.models.transformer import KnowledgeTransformer, KnowledgeTransformerConfig
from palaver.text.vocabulary import BOS, PAD

CONTEXT = torch.tensor([[5, 6, 7, 8], [9, 10, PAD, PAD], [11, PAD, PAD, PAD]])
KNOWLEDGE = torch.tensor([[12, 13, 14], [15, PAD, PAD], [PAD, PAD, PAD]])
RESPONSE = torch.tensor([[5, 9, 2, PAD, PAD], [6, 7, 8, 9, 2], [2, PAD, PAD, PAD, PAD]])


def model_of(**changes: object) -> KnowledgeTransformer:
    torch.manual_seed(1)
    sizes = {"vocab_size": 23, "dim": 24, "heads": 2, "layers": 2, "feed_forward": 10, "dropout": 0.0}
    limits = {"max_context": 8, "max_knowledge": 8, "max_response": 20}
    config = KnowledgeTransformerConfig(**{**sizes, **limits, **changes})  # type: ignore[arg-type]
    return KnowledgeTransformer(config).double().eval()


def scores(model: KnowledgeTransformer, **given: Tensor) -> Tensor:
    memory = model.encode(CONTEXT, given.pop("knowledge", None))
    return model.logits(model.features(memory, RESPONSE, **{"speaker": None, "ocean": None, **given}))


POSITIONS = ["one-hot", "sinusoidal", "learned", "rotary"]


@pytest.mark.parametrize(("positions", "norm"), list(itertools.product(POSITIONS, ["post", "pre"])))
def test_stepping_scores_as_the_whole_response_does(positions: str, norm: str) -> None:
    model = model_of(positions=positions, norm=norm, conditioning="speaker", speakers=("a", "b"))
    speaker = torch.tensor([0, 1, 1])
    with torch.inference_mode():
        whole = scores(model, knowledge=KNOWLEDGE, speaker=speaker)
        state = model.start(model.encode(CONTEXT, KNOWLEDGE), model.condition(speaker, None))
        tokens = torch.full((3,), BOS)
        for t in range(RESPONSE.shape[1]):
            logits, state = model.step(state, tokens)
            assert torch.allclose(logits, whole[:, t], atol=1e-12)
            tokens = RESPONSE[:, t]


def test_the_cache_grows_past_its_first_room() -> None:
    model = model_of(max_response=20)
    response = torch.randint(5, 20, (3, 20))
    with torch.inference_mode():
        memory = model.encode(CONTEXT, KNOWLEDGE)
        whole = model.logits(model.features(memory, response, speaker=None, ocean=None))
        state, tokens = model.start(memory), torch.full((3,), BOS)
        for t in range(20):
            logits, state = model.step(state, tokens)
            tokens = response[:, t]
        assert torch.allclose(logits, whole[:, 19], atol=1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_and_the_other_rows_change_nothing(positions: str) -> None:
    model = model_of(positions=positions)
    together = scores(model, knowledge=KNOWLEDGE)
    memory = model.encode(torch.tensor([[9, 10]]), torch.tensor([[15]]))
    alone = model.logits(model.features(memory, RESPONSE[1:2], speaker=None, ocean=None))
    assert torch.allclose(alone[0], together[1], atol=1e-12)


def test_without_a_sentence_it_is_the_plain_transformer() -> None:
    model = model_of()
    assert torch.allclose(scores(model, knowledge=KNOWLEDGE)[2], scores(model)[2], atol=1e-12)
    assert not torch.allclose(scores(model, knowledge=KNOWLEDGE)[0], scores(model)[0])


def test_a_later_word_does_not_reach_back() -> None:
    model = model_of()
    changed = RESPONSE.clone()
    changed[1, 3] = 20
    memory = model.encode(CONTEXT, None)
    before = model.features(memory, RESPONSE, speaker=None, ocean=None)
    after = model.features(memory, changed, speaker=None, ocean=None)
    assert torch.equal(before[1, :4], after[1, :4])
    assert not torch.allclose(before[1, 4], after[1, 4])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_encoder_is_pytorchs(norm: str) -> None:
    """The same weights in `nn.TransformerEncoderLayer` give the same states."""
    model = model_of(norm=norm, layers=1)
    mine = model.encoder[0]
    theirs = nn.TransformerEncoderLayer(
        24,
        2,
        10,
        0.0,
        activation="gelu" if norm == "pre" else "relu",
        batch_first=True,
        norm_first=norm == "pre",
    ).double()
    q, kv = mine.own.query, mine.own.key_value
    theirs.self_attn.in_proj_weight.data = torch.cat((q.weight.data, kv.weight.data))
    theirs.self_attn.in_proj_bias.data = torch.cat((q.bias.data, kv.bias.data))
    theirs.self_attn.out_proj.load_state_dict(mine.own.out.state_dict())
    theirs.linear1.load_state_dict(mine.feed[0].state_dict())
    theirs.linear2.load_state_dict(mine.feed[2].state_dict())
    theirs.norm1.load_state_dict(mine.norms[0].state_dict())
    theirs.norm2.load_state_dict(mine.norms[1].state_dict())
    expected = theirs(model.place_words(CONTEXT), src_key_padding_mask=CONTEXT == PAD)
    if model.last is not None:
        expected = model.last[0](expected)
    found, visible = model.read(CONTEXT)
    assert torch.allclose(found[visible], expected[visible], atol=1e-12)


def test_one_hot_positions_are_unit_vectors_and_are_not_learned() -> None:
    model = model_of()
    words = model.embed(CONTEXT) * 24**0.5
    added = model.place_words(CONTEXT) - words
    assert torch.allclose(added[0], torch.eye(4, 24).double())
    assert not any("fixed" in name for name, _ in model.named_parameters())


def test_personalities_are_embedded_by_one_linear_layer() -> None:
    model = model_of(conditioning="personality")
    ocean = torch.tensor([[1.0, 4, 7, 3.5, 2]])
    expected = ((ocean.double() - 4) / 3) @ model.personality.weight.t()
    assert torch.allclose(model.condition(None, ocean), expected)
