"""Likelihoods of replies: equal whatever the batch, and equal to a model's own loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from palaver.errors import UserError
from palaver.models.catalogue import shipped_checkpoint
from palaver.models.likelihood import (
    CheckpointModel,
    HuggingFaceModel,
    Reply,
    nats_of_tokens,
    open_language_model,
)
from palaver.models.pretrained import build, load
from palaver.schema import Turn
from palaver.text.vocabulary import EOS, Vocabulary

torch.set_num_threads(1)
TEXTS = ["a", "the cat sat", "dogs and cats and birds and fish and all", "", "b c", "the end of it all " * 4]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)


def tokenizer(*, bos: bool = True, template: str | None = None) -> PreTrainedTokenizerFast:
    tokens = Vocabulary.train([*TEXTS, "a long text about the cat"] * 3, size=300)._tokenizer
    marks: dict[str, Any] = {"pad_token": "<pad>", "eos_token": "</s>"} | (
        {"bos_token": "<s>"} if bos else {}
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokens, chat_template=template, model_max_length=64, **marks
    )


def llama() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=300, max_position_embeddings=64, **sizes)).eval()


def gpt2() -> Any:
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(vocab_size=300, n_positions=64, n_embd=16, n_layer=2, n_head=2)).eval()


def bart() -> Any:
    torch.manual_seed(2)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
    more = {"decoder_ffn_dim": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    marks = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = BartConfig(
        vocab_size=300, max_position_embeddings=64, forced_eos_token_id=None, **sizes, **more, **marks
    )
    return BartForConditionalGeneration(config).eval()


def turns(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(speaker="ab"[n % 2], text=text) for n, text in enumerate(texts))


REPLIES = [Reply(text, turns(*TEXTS[:n])) for n, text in enumerate(TEXTS)]


@pytest.mark.parametrize("make", [llama, gpt2, bart])
@pytest.mark.parametrize("side", ["left", "right"])
def test_neither_batch_nor_padding_side_changes_a_figure(make: Any, side: str) -> None:
    words = tokenizer(template=None if make is gpt2 else TEMPLATE)
    words.padding_side = side
    model = HuggingFaceModel("tiny", make(), words)
    found = []
    for max_tokens in (1, 50, 10_000):
        model.max_tokens = max_tokens
        found.append(model.likelihoods(REPLIES))
    for other in found[1:]:
        np.testing.assert_allclose(other.nats, found[0].nats, atol=1e-4)
        np.testing.assert_array_equal(other.n_tokens, found[0].n_tokens)
    reverse = model.likelihoods(REPLIES[::-1])
    np.testing.assert_allclose(reverse.nats[::-1], found[0].nats, atol=1e-4)


def test_the_nats_are_the_models_own_loss_also_padded_on_the_left() -> None:
    model, words = llama(), tokenizer()
    prefixes = [[1], [1, 40, 41], [1, 7]]
    replies = [[50, 51, 2], [9, 2], [60, 61, 62, 63, 2]]
    ours = nats_of_tokens(model, prefixes, replies)
    for prefix, reply, nats in zip(prefixes, replies, ours, strict=True):
        labels = torch.tensor([[-100] * len(prefix) + reply])
        loss = model(torch.tensor([prefix + reply]), labels=labels).loss.item()
        assert nats == pytest.approx(loss * len(reply), abs=1e-4)
    words.padding_side = "left"
    rows = [p + r for p, r in zip(prefixes, replies, strict=True)]
    batch = words.pad({"input_ids": rows}, return_tensors="pt")
    places = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"], position_ids=places).logits
    steps = logits.log_softmax(-1)[:, :-1].gather(2, batch["input_ids"][:, 1:, None]).squeeze(2)
    for row, reply, nats in zip(steps, replies, ours, strict=True):
        assert nats == pytest.approx(-row[-len(reply) :].sum().item(), abs=1e-4)


def test_what_stands_before_a_reply() -> None:
    plain = HuggingFaceModel("tiny", gpt2(), tokenizer())
    assert "bos:'<s>'" in plain.policy(has_context=False)
    assert "context:turns joined by '</s>'|bos:<s>" in plain.policy(has_context=True)
    chat = HuggingFaceModel("tiny", llama(), tokenizer(template=TEMPLATE))
    assert "<|assistant|>" in chat.policy(has_context=False)
    assert "context:chat-template" in chat.policy(has_context=True)
    nothing = HuggingFaceModel("tiny", gpt2(), tokenizer(bos=False))
    assert "the first token is left out" in nothing.policy(has_context=False)
    counts = [m.likelihoods([Reply("the cat sat"), Reply("")]).n_tokens.tolist() for m in (plain, nothing)]
    assert counts[1] == [counts[0][0] - 1, 0]
    assert counts[0][1] == 1  # the end alone
    assert chat._tokenizer.decode(chat._source(turns("a", "b", "c"))).count("<|user|>") == 2
    assert "<|user|>" in chat._tokenizer.decode(chat._source(turns("a", "b"))[:12])


@pytest.mark.parametrize("make", [llama, bart])
def test_what_is_longer_than_the_window_is_cut_and_told(make: Any) -> None:
    model = HuggingFaceModel("tiny", make(), tokenizer())
    replies = [Reply("a", turns("the cat sat " * 30)), Reply("cat " * 200), Reply("a", turns("b"))]
    found = model.likelihoods(replies)
    assert found.is_cut.tolist() == [True, True, False]
    assert np.isfinite(found.nats).all()
    assert found.n_tokens[1] in (63, 64)
    assert found.n_tokens[0] == found.n_tokens[2]


def test_own_checkpoints_give_what_their_forward_gives() -> None:
    folder = shipped_checkpoint("default")
    responder, vocabulary = load(folder)
    model = CheckpointModel("default", responder, vocabulary)
    found = model.likelihoods(REPLIES)
    for reply, nats, n_tokens in zip(REPLIES, found.nats, found.n_tokens, strict=True):
        alone = model.likelihoods([reply])
        assert nats == pytest.approx(alone.nats[0], abs=1e-4)
        assert n_tokens == len(vocabulary.encode(reply.text.strip())) + 1
    response = torch.tensor([[*vocabulary.encode("the cat sat"), EOS]])
    context = torch.tensor([vocabulary.encode("a")])
    with torch.inference_mode():
        loss = responder(context, response)
    assert model.likelihoods([Reply("the cat sat", turns("a"))]).nats[0] == pytest.approx(
        loss.nll.item(), abs=1e-4
    )


def test_knowledge_reaches_a_model_that_reads_it_and_speakers_are_refused() -> None:
    vocabulary = Vocabulary.train(TEXTS * 3, size=300)
    sizes = {"vocab_size": len(vocabulary), "embedding": 8, "hidden": 8}
    torch.manual_seed(0)
    reads = {"knowledge": True, "max_knowledge": 8}
    reader = build({"model": "knowledge-transformer", "vocab_size": len(vocabulary), **reads}).eval()
    model = CheckpointModel("k", reader, vocabulary)
    with_it, without = model.likelihoods([Reply("a", turns("b"), "the cat sat"), Reply("a", turns("b"))]).nats
    assert with_it != without
    speaker = build({"model": "seq2seq", "layers": 1, "conditioning": "speaker", "speakers": ["x"], **sizes})
    with pytest.raises(UserError, match="a model of a speaker"):
        CheckpointModel("s", speaker, vocabulary)


def test_models_are_opened_by_name_or_folder(tmp_path: Path) -> None:
    model, words = llama(), tokenizer()
    model.save_pretrained(tmp_path / "mine")
    words.save_pretrained(tmp_path / "mine")
    opened = open_language_model(str(tmp_path / "mine"), "cpu")
    assert opened.name.startswith("mine@")
    direct = HuggingFaceModel("mine", model, words).likelihoods(REPLIES)
    np.testing.assert_allclose(opened.likelihoods(REPLIES).nats, direct.nats, atol=1e-5)
    assert open_language_model("default", "cpu").name.startswith("default@")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text(json.dumps({"model_type": "llama"}))
    for name in (str(tmp_path / "bad"), "nowhere"):
        with pytest.raises(UserError, match="cannot be loaded"):
            open_language_model(name, "cpu")
    with pytest.raises(UserError, match="did you mean 'default-speaker'") as caught:
        open_language_model("default-speker", "cpu")
    assert "hf download" in str(caught.value)
