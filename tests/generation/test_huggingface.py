"""`transformers` models as systems: tiny random ones, made here, never from the network."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UserError
from palaver.generation.huggingface import HuggingFaceSystem, _Sampler
from palaver.generation.options import HuggingFaceOptions
from palaver.generation.system import Conditioned
from palaver.schema import Dialogue, Request

Talk = Callable[..., Dialogue]
WORDS = (
    "hello there how are you fine moon pizza cheese far away what like eat i we : . ? user assistant system"
)
TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'assistant' and loop.first %}{{ raise_exception('user first') }}{% endif %}"
    "{{ m.role }} : {{ m.content }} </s> {% endfor %}{% if add_generation_prompt %}assistant :{% endif %}"
)
STRICT = TEMPLATE.replace(
    "{{ m.role }}", "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.role }}"
)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    import transformers as t
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace, WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    torch.set_num_threads(1)
    torch.manual_seed(1)
    root = tmp_path_factory.mktemp("models")
    names = ["<pad>", "</s>", "<unk>", *WORDS.split()]
    small = {"vocab_size": len(names), "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    t5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    llama = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    llama |= {"max_position_embeddings": 128, "num_key_value_heads": 1}
    made: dict[str, Any] = {
        "t5": t.T5ForConditionalGeneration(t.T5Config(**small, **t5)),
        "gpt2": t.GPT2LMHeadModel(t.GPT2Config(**small, n_positions=64, n_embd=16, n_layer=1, n_head=2)),
        "llama": t.LlamaForCausalLM(t.LlamaConfig(**small, **llama)),
    }
    made["strict"] = made["llama"]
    for name, model in made.items():
        with torch.no_grad():
            for weights in model.parameters():
                if weights.dim() > 1:
                    weights.normal_(std=0.6)
        raw = Tokenizer(WordLevel({w: i for i, w in enumerate(names)}, unk_token="<unk>"))
        raw.pre_tokenizer = Whitespace() if name == "t5" else WhitespaceSplit()
        if name == "t5":
            raw.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        marks = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
        if name == "gpt2":
            del marks["pad_token"]
        tokenizer = t.PreTrainedTokenizerFast(tokenizer_object=raw, **marks)
        if name in ("llama", "strict"):
            tokenizer.chat_template = TEMPLATE if name == "llama" else STRICT
        tokenizer.save_pretrained(root / name)
        model.save_pretrained(root / name)
    return root


def system(models: Path, name: str, **options: Any) -> HuggingFaceSystem:
    given = {"kind": "huggingface", "model": str(models / name), "local_files_only": True, **options}
    given["decoding"] = {"max_length": 8, **options.get("decoding", {})}
    return HuggingFaceSystem(name, HuggingFaceOptions.model_validate(given))


@pytest.mark.parametrize("name", ["t5", "gpt2", "llama"])
@pytest.mark.parametrize("method", ["greedy", "sample", "stochastic-greedy", "beam"])
def test_replies_depend_on_the_request_alone(name: str, method: str, models: Path, talk: Talk) -> None:
    found = system(
        models, name, decoding={"method": method, "no_repeat_ngram": 2}, batch_size=3, dtype="float64"
    )
    texts = ["hello there", "how are you ?", "moon", "i like pizza . what like you ?", "fine"]
    requests = [Request(talk(*texts[:i], texts[i], id=str(i))) for i in range(5)]
    together = found.reply(requests)
    for request, reply in zip(requests, together, strict=True):
        (alone,) = found.reply([request])
        assert alone.text == reply.text
        assert alone.logprob == pytest.approx(reply.logprob, abs=1e-4)
        assert reply.n_tokens is not None
        assert reply.n_tokens <= 8
    assert len({reply.text for reply in together}) > 1


def test_repetition_of_the_reply_is_penalised(models: Path, talk: Talk) -> None:
    options = {"min_length": 8, "no_repeat_ngram": 2}
    said = [
        system(models, "gpt2", decoding={**options, "repetition_penalty": penalty}).reply(
            [Request(talk("hello there", id=str(i))) for i in range(3)]
        )
        for penalty in (1.0, 10.0)
    ]
    distinct = [sum(len(set(reply.text.split())) for reply in replies) for replies in said]
    assert distinct[0] < distinct[1]


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_logprob_is_that_of_the_model(
    name: str, method: str, models: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    found = system(models, name, decoding={"method": method}, dtype="float64")
    prompt = found._input_ids(Request(talk("hello there")))
    made: list[list[int]] = []
    reply = found._reply
    monkeypatch.setattr(found, "_reply", lambda ids, scores: made.append(ids) or reply(ids, scores))
    replies = found.reply([Request(talk("hello there", id=str(i))) for i in range(12)])
    for tokens, said in zip(made, replies, strict=True):
        full = tokens if len(tokens) == 8 else [*tokens, 1]
        with torch.no_grad():
            if name == "t5":
                before = torch.tensor([[0, *full[:-1]]])
                logits = found.model(input_ids=torch.tensor([prompt]), decoder_input_ids=before).logits[0]
            else:
                logits = found.model(input_ids=torch.tensor([[*prompt, *full]])).logits[
                    0, len(prompt) - 1 : -1
                ]
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(full)[:, None]).sum()
        assert said.logprob == pytest.approx(float(chosen), rel=1e-4)
        assert said.n_tokens == len(tokens)
    assert method != "sample" or len({len(tokens) for tokens in made}) > 1


def test_no_pair_of_tokens_twice(models: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("greedy", "beam", "sample"):
        found = system(models, "gpt2", decoding={"method": method, "no_repeat_ngram": 2, "max_length": 30})
        made: list[list[int]] = []
        reply = found._reply
        monkeypatch.setattr(found, "_reply", lambda ids, scores: made.append(ids) or reply(ids, scores))  # noqa: B023
        found.reply([Request(talk("hello there", id=str(i))) for i in range(4)])
        for tokens in made:
            pairs = list(itertools.pairwise(tokens))
            assert len(pairs) == len(set(pairs))


def test_keys_change_samples(models: Path, talk: Talk) -> None:
    found = system(models, "gpt2", decoding={"method": "sample"})
    texts = [found.reply([Request(talk("hello"), key=k)])[0].text for k in (1, 1, 2, 3, 4)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_the_sampler_draws_what_it_should() -> None:
    import torch

    from palaver.generation.decode import Decoding

    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(4000, 1)
    for decoding, expected in (
        (Decoding(method="sample"), [0.5, 0.3, 0.15, 0.05]),
        (Decoding(method="sample", top_k=2), [0.625, 0.375, 0, 0]),
        (Decoding(method="sample", top_p=0.9), [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0]),
        (Decoding(method="sample", top_p=0.5), [1, 0, 0, 0]),
        (Decoding(method="stochastic-greedy", k=1), [1, 0, 0, 0]),
        (
            Decoding(method="sample", temperature=0.5),
            [0.25 / 0.365, 0.09 / 0.365, 0.0225 / 0.365, 0.0025 / 0.365],
        ),
    ):
        left = _Sampler(decoding, range(4000))(torch.zeros(4000, 1), logits)
        assert torch.isfinite(left).sum(1).eq(1).all()
        shares = torch.isfinite(left).double().mean(0)
        assert shares.tolist() == pytest.approx(expected, abs=0.03)


def test_the_chat_template_is_used(models: Path, talk: Talk) -> None:
    found = system(models, "llama", system_prompt="you like {speaker}")
    assert found.templated
    ids = found._input_ids(Request(talk("hello", "fine", "how are you ?"), speaker="pizza"))
    assert found.tokenizer.decode(ids) == (
        "system : you like pizza </s> user : hello </s> assistant : fine </s> "
        "user : how are you ? </s> assistant :"
    )
    with pytest.raises(UserError, match="llama takes no personality"):
        found.reply([Request(talk("hi"), speaker="x", ocean=(4.0,) * 5)])


def test_templates_that_insist(models: Path, talk: Talk) -> None:
    ids = system(models, "llama")._rendered([{"role": "assistant", "content": "hello"}])
    assert ids.startswith("user : (The conversation begins.) </s> assistant : hello")
    strict = system(models, "strict", system_prompt="like pizza")
    assert strict._rendered(
        [{"role": "system", "content": "like pizza"}, {"role": "user", "content": "hello"}]
    ).startswith("user : like pizza\n\nhello </s>")


def test_turns_are_joined_without_a_template(models: Path, talk: Talk) -> None:
    gpt2 = system(models, "gpt2", separator=" . ")
    assert gpt2.tokenizer.decode(gpt2._input_ids(Request(talk("hello", "fine")))) == "hello . fine ."
    t5 = system(models, "t5")
    assert t5.tokenizer.decode(t5._input_ids(Request(talk("hello", "fine")))) == "hello fine </s>"
    for key in range(10):
        (reply,) = system(models, "gpt2", separator=".", decoding={"method": "sample"}).reply(
            [Request(talk("hello"), key=key)]
        )
        assert "." not in reply.text


@pytest.mark.parametrize(("name", "room"), [("t5", 40), ("gpt2", 56), ("llama", 120)])
def test_a_hundred_thousand_words(name: str, room: int, models: Path, talk: Talk) -> None:
    found = system(models, name, system_prompt="like pizza", max_context=room)
    ids = found._input_ids(Request(talk("moon " * 100_000 + "how are you ?")))
    assert len(ids) <= room
    assert "how are you ?" in found.tokenizer.decode(ids)
    assert found.reply([Request(talk("moon " * 100_000))])
    assert list(found.notes) == [
        f"{name} reads the last {room} tokens of a history, not those before",
        f"{name} stops a reply after 8 tokens, whole or not; a larger max_length lets it go on",
    ]
    if name == "llama":  # the prompt stays, old turns go
        many = found.tokenizer.decode(found._input_ids(Request(talk(*["hello there"] * 500, "far away"))))
        assert many.startswith("system : like pizza")
        assert many.endswith("user : far away </s> assistant :")


def test_no_room_for_a_context(models: Path) -> None:
    with pytest.raises(UserError, match="leave no room") as caught:
        system(models, "gpt2", decoding={"max_length": 64})
    assert "64 tokens in all" in caught.value.hint


@pytest.mark.parametrize("name", ["t5", "gpt2", "llama"])
def test_text_outside_the_vocabulary(name: str, models: Path, talk: Talk) -> None:
    (reply,) = system(models, name).reply([Request(talk("日本語 😀"))])
    assert reply.logprob is not None


def test_models_that_are_not_there(tmp_path: Path, models: Path) -> None:
    with pytest.raises(UserError, match="transformers cannot load"):
        system(tmp_path, "nothing")
    with pytest.raises(UserError, match="transformers cannot load"):
        system(models, "t5", task="causal")


def test_code_that_comes_with_a_model_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody is asked on the terminal whether it may be."""
    folder = tmp_path / "own"
    folder.mkdir()
    about = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")

    def ask(*args: object) -> str:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr("builtins.input", ask)
    with pytest.raises(UserError, match="contains custom code"):
        system(tmp_path, "own")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_pieces_that_are_streamed_are_the_reply(name: str, models: Path, talk: Talk) -> None:
    found = system(models, name, decoding={"method": "sample", "seed": 3, "max_length": 12})
    request = Request(talk("Hello there."))
    pieces: list[str] = []
    streamed = found.stream(request, pieces.append)
    assert streamed == found.reply([request])[0]
    assert "".join(pieces) == streamed.text
    assert found.templated == (name == "llama")


def test_a_speaker_is_told_while_streaming_too(models: Path, talk: Talk) -> None:
    found = system(models, "llama", system_prompt="You are {speaker}.", decoding={"max_length": 4})
    as_joey = Conditioned(found, speaker="Joey", ocean=None)
    assert (
        as_joey.stream(Request(talk("Hi.")), lambda piece: None) == as_joey.reply([Request(talk("Hi."))])[0]
    )
