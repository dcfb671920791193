"""A causal language model as a responder, on a tiny Llama: one text, the cost of the response, steps."""

from __future__ import annotations

import gc
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.causal_base import CHATML, write_base
from torch import Tensor
from torch.nn import functional as F

from palaver.errors import ConfigError, UserError
from palaver.generation.decode import Decoding, decode
from palaver.models.causal import CausalResponder, pack
from palaver.models.causal_base import MOVED, read_base
from palaver.models.likelihood import CheckpointModel, Reply
from palaver.models.pretrained import Responder, build, fingerprint, load
from palaver.models.turns import encode_knowledge, encode_turns, join_turns
from palaver.schema import Turn
from palaver.text.vocabulary import BOS, EOS, PAD, Vocabulary

torch.set_num_threads(1)
HISTORIES = [["Do you like tea?"], ["Hello.", "A cup of tea!", "With milk?"], ["xyz"]]
FACTS = ["Tea keeps warm.", "", "abc xyz"]
RESPONSES = ["I love it.", "A little milk, and it keeps me warm.", "0123"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


def model_of(base: Path, **changes: Any) -> tuple[CausalResponder, Vocabulary]:
    about = read_base(str(base))
    vocabulary = Vocabulary.load(base, foreign=True)
    filled = {"architecture": about.architecture, "frame": asdict(about.frame), "end": about.end}
    fields = {"model": "causal", "base": str(base), "vocab_size": len(vocabulary), **filled, **changes}
    torch.manual_seed(0)
    model = build({**fields, "vocabulary": fingerprint(vocabulary)})
    assert isinstance(model, CausalResponder)
    model.load_base()
    return model.double().eval(), vocabulary


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(1, *map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def tensors(model: CausalResponder, vocabulary: Vocabulary) -> dict[str, Tensor]:
    frame = model.config.frame
    contexts = [join_turns(encode_turns(vocabulary, turns), 300, frame).tokens for turns in HISTORIES]
    facts = [fact.tokens for fact in encode_knowledge(vocabulary, FACTS, 50)]
    responses = [[*tokens, EOS] for tokens in encode_turns(vocabulary, RESPONSES)]
    return {
        "context": padded(contexts),
        "knowledge": padded(facts),
        "response": padded(responses),
    }


def by_template(base: Path, model: CausalResponder) -> list[float]:
    """The cost of each response in the text that the tokenizer's own template writes."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    costs = []
    for turns, fact, response in zip(HISTORIES, FACTS, RESPONSES, strict=True):
        said = list(reversed(turns))
        messages = [
            {"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(said)
        ]
        messages = [*([{"role": "system", "content": fact}] if fact else []), *reversed(messages)]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
        target = tokenizer(response + "<|im_end|>", add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logits = model.language_model(torch.tensor([prompt + target])).logits[0, :, : len(tokenizer)]
        costs.append(
            float(F.cross_entropy(logits[len(prompt) - 1 : -1], torch.tensor(target), reduction="sum"))
        )
    return costs


def test_the_metrics_of_likelihood_read_the_text_that_was_learnt(base: Path) -> None:
    model, vocabulary = model_of(base, knowledge=True)
    said = [tuple(Turn(speaker="ab"[n % 2], text=text) for n, text in enumerate(own)) for own in HISTORIES]
    replies = [Reply(*one) for one in zip(RESPONSES, said, FACTS, strict=True)]
    with torch.inference_mode():
        expected = model.response_nll(**tensors(model, vocabulary)).tolist()
    assert CheckpointModel("tiny", model, vocabulary).likelihoods(replies).nats == pytest.approx(expected)


def test_the_cost_is_that_of_the_response_in_the_models_own_chat_format(base: Path) -> None:
    model, vocabulary = model_of(base, knowledge=True)
    given = tensors(model, vocabulary)
    with torch.inference_mode():
        each = model.response_nll(**given)
        total = model(**given)
    assert each.tolist() == pytest.approx(by_template(base, model), rel=1e-9)
    assert float(total.nll) == pytest.approx(float(each.sum()), rel=1e-9)
    assert int(total.n_tokens) == int((given["response"] != PAD).sum())


def test_batch_padding_and_width_change_nothing(base: Path) -> None:
    model, vocabulary = model_of(base, knowledge=True)
    given = tensors(model, vocabulary)
    wider = {name: F.pad(x, (0, 5), value=PAD) for name, x in given.items()}
    longest = int(sum((x != PAD).sum(1) for x in given.values()).max())
    with torch.inference_mode():
        together = model.response_nll(**given)
        alone = [model.response_nll(**{n: x[i : i + 1] for n, x in given.items()}) for i in range(3)]
        assert torch.allclose(together, torch.cat(alone), rtol=1e-9)
        assert torch.allclose(together, model.response_nll(**wider), rtol=1e-9)
        for width in (longest, longest + 3):
            assert float(model(**given, width=width).nll) == pytest.approx(float(together.sum()), rel=1e-9)


@pytest.mark.parametrize("conditioning", ["none", "speaker", "personality"])
def test_stepping_scores_as_the_whole_response_does(base: Path, conditioning: str) -> None:
    people = {"speakers": ("a", "b")} if conditioning == "speaker" else {}
    model, vocabulary = model_of(base, knowledge=True, conditioning=conditioning, **people)
    given = tensors(model, vocabulary)
    response = given.pop("response")
    who: dict[str, Tensor] = {}
    if conditioning == "speaker":
        who = {"speaker": torch.tensor([0, 1, 1])}
    elif conditioning == "personality":
        who = {"ocean": torch.rand(3, 5).double() * 6 + 1}
    with torch.inference_mode():
        memory = model.encode(**given)
        who = {"speaker": None, "ocean": None, **who}
        whole = model.logits(model.features(memory, response, **who))
        state, tokens = model.start(memory, model.condition(**who)), torch.full((3,), BOS)
        for t in range(response.shape[1]):
            logits, state = model.step(state, tokens)
            assert torch.allclose(logits, whole[:, t], atol=1e-9)
            tokens = response[:, t]
        chosen = torch.log_softmax(whole, 2).gather(2, response.unsqueeze(2)).squeeze(2)
        summed = -torch.where(response != PAD, chosen, 0.0).sum(1)
        assert torch.allclose(summed, model.response_nll(**given, response=response, **who), rtol=1e-9)


def test_what_was_read_of_a_conversation_is_not_read_again(base: Path) -> None:
    model, vocabulary = model_of(base)
    lengths = []
    model.language_model.base_model.register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(kwargs["inputs_embeds"].shape[1]), with_kwargs=True
    )
    turns = ["Hello.", "A cup of tea!", "With milk?", "I love it.", "abc xyz"]
    texts = [turns[:1], turns[:3], turns, ["Hello, you.", *turns[1:]], turns[:1]]
    contexts = [join_turns(encode_turns(vocabulary, t), 300, model.config.frame).tokens for t in texts]
    with torch.inference_mode():
        known = [model.encode(padded([context])) for context in contexts]
        n_read, lengths[:] = list(lengths), []
        for context, memory in zip(contexts, known, strict=True):
            model.eval()  # forgets
            fresh = model.encode(padded([context]))
            assert torch.equal(fresh.visible, memory.visible)
            for (keys, values), (fresh_keys, fresh_values) in zip(memory.cache, fresh.cache, strict=True):
                assert torch.allclose(keys, fresh_keys, atol=1e-9)
                assert torch.allclose(values, fresh_values, atol=1e-9)
    assert sum(n_read[:3]) == lengths[2]
    assert lengths[3] / 2 < n_read[3] < lengths[3]  # only the mark in front is the same
    assert n_read[4] < lengths[4]


def test_a_speaker_changes_the_answer_and_must_be_named(base: Path) -> None:
    model, vocabulary = model_of(base, conditioning="speaker", speakers=("a", "b"))
    given = tensors(model, vocabulary) | {"knowledge": None}
    with torch.inference_mode():
        first, second = (model.response_nll(**given, speaker=torch.tensor([i] * 3)) for i in (0, 1))
    assert not torch.allclose(first, second)
    with pytest.raises(UserError, match="needs a speaker"):
        model(**given)
    assert build({**model.config.to_json(), "format": 1}).speaker.weight.shape == (2, 16)


def test_nothing_of_a_batch_stays_when_nobody_looks_for_circles(base: Path) -> None:
    """`decode` switches the collector off: circles of tensors would fill the memory batch by batch."""
    model, _ = model_of(base, knowledge=True)
    contexts, facts = [[30 + i, 40] for i in range(9)], [[50, 51 + i] for i in range(9)]

    def live_tensors(n_batches: int) -> int:
        gc.collect()
        gc.disable()
        try:
            before = sum(type(thing) is Tensor for thing in gc.get_objects())
            how = Decoding(max_length=34, min_length=34)
            decode(model, contexts[: 3 * n_batches], how, knowledge=facts[: 3 * n_batches], batch_size=3)
            return sum(type(thing) is Tensor for thing in gc.get_objects()) - before
        finally:
            gc.enable()

    live_tensors(1)  # what is made once
    assert live_tensors(3) == 0


def test_parts_are_packed_to_the_left() -> None:
    parts = [torch.tensor([[1, 0], [2, 3]]), torch.tensor([[0, 4], [0, 0]])]
    assert pack(parts).tolist() == [[1, 4], [2, 3]]
    assert pack(parts, 3).tolist() == [[1, 4, 0], [2, 3, 0]]


def test_all_is_kept_once_or_the_adapter_alone(base: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="the extra llm is not installed")
    sizes = {}
    for rank in (0, 2):
        model, vocabulary = model_of(base, lora_rank=rank, conditioning="speaker", speakers=("a", "b"))
        given = tensors(model, vocabulary) | {"knowledge": None, "speaker": torch.tensor([0, 1, 0])}
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.05 * torch.randn_like(parameter))
        folder = tmp_path / str(rank)
        model.save_pretrained(folder)
        if not rank:
            vocabulary.save(folder)
        again, words = load(folder, dtype=torch.float64)
        assert len(words) == len(vocabulary)
        with torch.inference_mode():
            assert torch.allclose(again.response_nll(**given), model.response_nll(**given), rtol=1e-5)
            again.merge()
            assert torch.allclose(again.response_nll(**given), model.response_nll(**given), rtol=1e-5)
        sizes[rank] = (folder / "model.safetensors").stat().st_size
    assert "lora" in " ".join(model.weights())
    assert not [name for name in model.weights() if "embed" in name]
    assert sizes[2] < sizes[0] / 2


def test_weights_of_something_else_are_refused(base: Path) -> None:
    model, _ = model_of(base)
    with pytest.raises(RuntimeError, match="missing: language_model"):
        model.load_weights({"other": torch.zeros(1)})


def test_without_a_template_turns_get_plain_marks(tmp_path: Path) -> None:
    about = read_base(str(write_base(tmp_path, template=None)))
    vocabulary = Vocabulary.load(tmp_path, foreign=True)
    assert not about.has_template
    assert [vocabulary.decode(part) for part in about.frame.own] == ["B:", ""]
    assert about.end == 2 + MOVED
    joined = join_turns(encode_turns(vocabulary, ["Hello.", "Tea?"]), 50, about.frame)
    assert vocabulary.decode(joined.tokens) == "B:Hello.\nA: Tea?"


@pytest.mark.parametrize("template", ["{{ raise_exception('no') }}", "the same whatever is said"])
def test_a_template_that_cannot_be_taken_apart_is_left(tmp_path: Path, template: str) -> None:
    assert not read_base(str(write_base(tmp_path, template=template))).has_template


def test_a_template_with_a_mark_in_front_of_everything(tmp_path: Path) -> None:
    about = read_base(str(write_base(tmp_path, template="<|endoftext|>" + CHATML)))
    assert about.has_template
    assert about.frame.theirs[0][0] == 1 + MOVED


def test_the_end_of_a_turn_is_the_mark_that_the_template_closes_it_with(tmp_path: Path) -> None:
    """Whatever the tokenizer calls its end: some converted models name the mark of the beginning there."""
    folder = write_base(tmp_path)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    for wrong in ("<|im_start|>", "<|endoftext|>", None):
        path.write_text(json.dumps(settings | {"eos_token": wrong}), encoding="utf-8")
        assert read_base(str(folder)).end == 2 + MOVED


def test_history_is_cut_from_the_left_and_keeps_its_marks(base: Path) -> None:
    frame = read_base(str(base)).frame
    vocabulary = Vocabulary.load(base, foreign=True)
    turns = encode_turns(vocabulary, ["Do you like tea?", "I love it.", "With milk?"])
    whole = join_turns(turns, 500, frame)
    assert not whole.is_cut
    for longest in range(len(whole.tokens) + 1):
        part = join_turns(turns, longest, frame)
        assert len(part.tokens) <= longest
        assert part.is_cut == (longest < len(whole.tokens))
        openings = [list(before) for before, _ in (frame.theirs, frame.own)]
        assert not part.tokens or any(part.tokens[: len(before)] == before for before in openings)


def test_bad_bases_are_told(tmp_path: Path, base: Path) -> None:
    with pytest.raises(UserError, match="there is no language model 'smolm2'.*did you mean 'smollm2'"):
        read_base("smolm2")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"no tokenizer\.json"):
        read_base(str(tmp_path))
    with pytest.raises(UserError, match="no end of text"):
        read_base(str(write_base(tmp_path / "endless", template=None, marks=False)))
    with pytest.raises(ConfigError, match="the language model has 1024"):
        model_of(base, max_context=900)


def test_weights_that_are_cut_short_are_told(tmp_path: Path) -> None:
    folder = write_base(tmp_path / "cut")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="cannot be read"):
        model_of(folder)


def test_it_is_a_responder(base: Path) -> None:
    model, _ = model_of(base)
    assert isinstance(model, Responder)
    assert not torch.isfinite(model.logits(torch.zeros(1, 16).double())[0, [PAD, BOS]]).any()
