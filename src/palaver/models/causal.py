"""A causal language model of `transformers` that answers: all of it is trained, or an adapter (LoRA).

One text holds everything, knowledge k, history H and response Y, with the marks of the model's chat format
around them (`turns.Frame`); the loss is that of the response and its end alone:

    p(Y | H, k, v) = Π_t p(y_t | k, H, v, y_<t)

v is a learned vector of the speaker, or W_o (o - 4)/3 of the OCEAN scores o, and stands where a token would,
right before the response (a prefix in the sense of Li & Liang 2021). What is before it does not depend on
who speaks and is read once for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.errors import UserError, require
from palaver.models.causal_base import (
    MOVED,
    SMOLLM2,
    base_folder,
    load_language_model,
    make_language_model,
)
from palaver.models.pretrained import Responder, ResponderConfig, Size, TokenLoss
from palaver.models.turns import Frame
from palaver.text.vocabulary import EOS, PAD, UNK, Vocabulary

ALL_LINEAR = "all-linear"
_IGNORED = -100


@dataclass(frozen=True, kw_only=True)
class CausalConfig(ResponderConfig):
    """Which language model, and how much of it is trained."""

    model: ClassVar[str] = "causal"
    base: Annotated[
        str, Field(min_length=1, description="the language model: `smollm2`, or a folder of `transformers`")
    ] = SMOLLM2
    lora_rank: Annotated[
        int, Field(ge=0, description="0: all weights are trained; else an adapter of this rank (LoRA)")
    ] = 0
    lora_alpha: Annotated[float, Field(gt=0, description="the adapter counts alpha / rank")] = 16.0
    lora_layers: Annotated[
        tuple[str, ...], Field(strict=False, min_length=1, description="layers that have an adapter")
    ] = (ALL_LINEAR,)
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    max_context: Size = 384
    max_response: Size = 96
    max_knowledge: int = 96
    architecture: dict[str, Any] = field(default_factory=dict)
    """The base's configuration."""
    frame: Frame | None = None  # type: ignore[misc]  # a field here
    end: int = 0
    """Our id of the base's end of a turn."""

    def contradictions(self) -> list[str]:
        problems = super().contradictions()
        if self.tied:
            problems.append("tied follows from the language model; do not give it")
        if self.knowledge and self.max_knowledge < 1:
            problems.append(f"max_knowledge should be 1 or more, found {self.max_knowledge}")
        longest = self.architecture.get("max_position_embeddings") or self.architecture.get("n_positions")
        wanted = self.max_context + self.max_response + (self.max_knowledge if self.knowledge else 0)
        if isinstance(longest, int) and wanted + _MARKS > longest:
            problems.append(
                f"max_context, max_knowledge and max_response need {wanted + _MARKS} places with the marks "
                f"around them; the language model has {longest}"
            )
        return problems


_MARKS = 32
"""Room for what stands around knowledge and response."""


_CACHE = {"cpu": 16_384, "cuda": 400_000}
"""By device, the tokens whose keys and values are kept at a time: of SmolLM2, 45 kB each in float32."""


_ROOM = 32
"""For how many more tokens there is room when the cache of a running decoder grows."""


class Memory(NamedTuple):
    """What the model keeps of a text; padding is on the right."""

    cache: tuple[tuple[Tensor, Tensor], ...]  # per layer (B, heads, S, d): keys and values
    visible: Tensor  # (B, S) bool


class State(NamedTuple):
    """The model between two steps. Every tensor has the batch in front; each beam has a cache of its own."""

    cache: tuple[tuple[Tensor, Tensor], ...]  # per layer (B, k, heads, S + t and some room, d)
    visible: Tensor  # (B, S) bool
    length: int  # t
    condition: Tensor | None  # (B, C)


class CausalResponder(Responder):
    """Any causal language model, by `config.base`."""

    config_class = CausalConfig
    moving = ("cache",)
    takes_width = True

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        self.config: CausalConfig = config
        if config.lora_rank:
            self.language_model = _with_adapter(load_language_model(base_folder(config.base)), config)
        else:
            self.language_model = make_language_model(config.architecture)
        embedding = self.language_model.get_input_embeddings()
        spread = float(embedding.weight.detach().std())  # of the tokens among which the vectors stand
        if config.conditioning == "speaker":
            self.speaker = nn.Embedding(len(config.speakers), embedding.weight.shape[1])
            nn.init.normal_(self.speaker.weight, std=spread)
        elif config.conditioning == "personality":
            self.personality = nn.Linear(5, embedding.weight.shape[1], bias=False)
            nn.init.normal_(self.personality.weight, std=spread)
        assert config.frame is not None
        self._last_read: tuple[Tensor, Memory] | None = None
        for name, tokens in _named_parts(config.frame).items():
            self.register_buffer(f"_{name}", torch.tensor(tokens, dtype=torch.int64), persistent=False)

    # What a checkpoint keeps ------------------------------------------------------------------------------

    def weights(self) -> dict[str, Tensor]:
        """Tied weights once; with an adapter, nothing of the base."""
        left_out = {name for name, _ in self.named_parameters(remove_duplicate=False)}
        left_out -= {n for n, p in self.named_parameters() if p.requires_grad or not self.config.lora_rank}
        return {name: w for name, w in self.state_dict().items() if name not in left_out}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        expected = self.weights()
        wrong = [f"missing: {name}" for name in expected if name not in weights]
        wrong += [f"unexpected: {name}" for name in weights if name not in expected]
        if wrong:
            raise RuntimeError("\n".join(["these weights do not fit:", *wrong]))
        self.load_state_dict(weights, strict=False)

    def load_base(self) -> None:
        """The weights that the base was published with, in place of random ones."""
        if not self.config.lora_rank:
            theirs = load_language_model(base_folder(self.config.base))
            self.language_model.load_state_dict(theirs.state_dict())

    def merge(self) -> None:
        """Add the adapter to the base, so that answering costs no more than it does for the base."""
        self._last_read = None
        if self.config.lora_rank:
            peft = require("peft", "llm")
            for module in self.language_model.modules():
                if isinstance(module, peft.tuners.tuners_utils.BaseTunerLayer) and not module.merged:
                    module.merge()

    def open_vocabulary(self, folder: Path) -> Vocabulary:
        """An adapter may come without: its base has the same."""
        here = folder if (folder / "tokenizer.json").is_file() else base_folder(self.config.base)
        return Vocabulary.load(here, foreign=True)

    # Scoring ----------------------------------------------------------------------------------------------

    def forward(
        self,
        context: Tensor,
        response: Tensor,
        *,
        knowledge: Tensor | None = None,
        speaker: Tensor | None = None,
        ocean: Tensor | None = None,
        width: int | None = None,
        label_smoothing: float = 0.0,
    ) -> TokenLoss:
        """The cost of `response`. With `width`, nobody has to wait for a GPU to know how long texts are."""
        scores, targets = self._predict(context, response, knowledge, self.condition(speaker, ocean), width)
        nll = F.cross_entropy(scores, targets, reduction="sum", ignore_index=_IGNORED)
        loss = nll
        if label_smoothing:
            loss = F.cross_entropy(
                scores, targets, reduction="sum", ignore_index=_IGNORED, label_smoothing=label_smoothing
            )
        return TokenLoss(loss, nll.detach(), (response != PAD).sum())

    def response_nll(
        self,
        context: Tensor,
        response: Tensor,
        *,
        knowledge: Tensor | None = None,
        speaker: Tensor | None = None,
        ocean: Tensor | None = None,
    ) -> Tensor:
        """The cost of each response by itself: (B,)."""
        scores, targets = self._predict(context, response, knowledge, self.condition(speaker, ocean), None)
        each = F.cross_entropy(scores, targets, reduction="none", ignore_index=_IGNORED)  # (B T,)
        return each.view(response.shape).sum(1)

    def _predict(
        self,
        context: Tensor,
        response: Tensor,
        knowledge: Tensor | None,
        condition: Tensor | None,
        width: int | None,
    ) -> tuple[Tensor, Tensor]:
        """Scores (B T, V) of all tokens where the response is, and the tokens (B T,) that stand there."""
        prompt = self._prompt(context, knowledge, with_slot=condition is not None)
        lengths = sum((part != PAD).sum(1) for part in prompt)  # (B,)
        n_marks = sum(part.shape[1] for part in prompt) - context.shape[1]
        n_marks -= knowledge.shape[1] if knowledge is not None else 0
        text = pack([*prompt, response], None if width is None else width + n_marks)  # (B, W)
        embedded = self._embed(text)  # (B, W, C)
        if condition is not None:
            place = (lengths - 1).view(-1, 1, 1).expand(-1, 1, embedded.shape[2])
            embedded = embedded.scatter(1, place, condition.unsqueeze(1).to(embedded.dtype))
        embedded = F.dropout(embedded, self.config.dropout, self.training)
        # Padding is on the right, where no token that counts looks.
        states = self.language_model.base_model(inputs_embeds=embedded, use_cache=False).last_hidden_state
        steps = torch.arange(response.shape[1], device=response.device)
        place = (lengths.unsqueeze(1) - 1 + steps).clamp(max=states.shape[1] - 1)  # (B, T)
        states = states.gather(1, place.unsqueeze(2).expand(-1, -1, states.shape[2]))  # (B, T, C)
        scores = self._scores(states).flatten(0, 1)  # (B T, V)
        targets = torch.where(response != PAD, self._own_ids(response), _IGNORED).flatten()
        return scores.to(torch.promote_types(scores.dtype, torch.float32)), targets

    def _prompt(self, context: Tensor, knowledge: Tensor | None, *, with_slot: bool) -> list[Tensor]:
        """Everything before the response, (B, n) each, with padding in any place."""
        n = len(context)
        parts = [self._begin.expand(n, -1)]
        if knowledge is not None:
            there = (knowledge != PAD).any(1, keepdim=True)  # (B, 1): no sentence has no marks
            before, after = (there * mark for mark in (self._knowledge_before, self._knowledge_after))
            parts += [before, knowledge, after]
        parts += [context, self._own_before.expand(n, -1)]
        if with_slot:
            parts.append(context.new_full((n, 1), UNK))
        return parts

    def _own_ids(self, tokens: Tensor) -> Tensor:
        """The language model's own ids."""
        return torch.where(tokens == EOS, self.config.end, tokens).sub(MOVED).clamp(min=0)

    def _embed(self, tokens: Tensor) -> Tensor:
        return self.language_model.get_input_embeddings()(self._own_ids(tokens))

    def _scores(self, states: Tensor) -> Tensor:
        """Of the tokens that the tokenizer knows, in its order; some models have room for more."""
        scores: Tensor = self.language_model.get_output_embeddings()(states)
        return scores[..., : self.config.vocab_size - MOVED]

    def logits(self, features: Tensor) -> Tensor:
        scores = self._scores(features)  # (…, V - 5)
        logits = scores.new_full((*scores.shape[:-1], self.config.vocab_size), -torch.inf)
        logits[..., MOVED:] = scores
        logits[..., EOS] = logits[..., self.config.end]
        logits[..., self.config.end] = -torch.inf
        return logits

    def rows_at_once(self, longest: int) -> int:
        """Few where texts are long: what is kept of them fills the memory."""
        room = _CACHE.get(self.device.type, _CACHE["cpu"])
        return max(1, min(super().rows_at_once(longest), room // (longest + self.config.max_response)))

    # Answering --------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        self._last_read = None  # weights may change
        return super().train(mode)

    def encode(self, context: Tensor, knowledge: Tensor | None = None) -> Memory:
        """All but what the first step reads: the last mark, or the vector of who speaks."""
        prompt = self._prompt(context, knowledge, with_slot=False)
        if self.config.conditioning == "none":
            prompt[-1] = prompt[-1][:, :-1]
        text = pack(prompt)  # (B, S)
        cache = require("transformers", "models").DynamicCache()
        n_known = self._recall(text, cache)
        embedded = self._embed(text[:, n_known:])
        self.language_model.base_model(inputs_embeds=embedded, past_key_values=cache, use_cache=True)
        memory = Memory(tuple((layer.keys, layer.values) for layer in cache.layers), text != PAD)
        if len(text) == 1 and torch.is_inference_mode_enabled():
            self._last_read = (text, memory)
        return memory

    def _recall(self, text: Tensor, cache: Any) -> int:
        """Put into `cache` what is known of a single text, since the last one began alike; how many tokens.

        So the next turn of a conversation costs no more than what is new in it.
        """
        if self._last_read is None or len(text) > 1 or not torch.is_inference_mode_enabled():
            return 0
        before, memory = self._last_read
        n = min(before.shape[1], text.shape[1] - 1)  # one is left to read
        same = (before[0, :n] == text[0, :n]).long().cumprod(0)
        n_known = int(same.sum())
        if n_known and memory.cache[0][0].dtype == self.dtype:
            for layer, (keys, values) in enumerate(memory.cache):
                cache.update(keys[:, :, :n_known], values[:, :, :n_known], layer)
            return n_known
        return 0

    def start(self, memory: Memory, condition: Tensor | None = None) -> State:
        cache = tuple((keys.unsqueeze(1), values.unsqueeze(1)) for keys, values in memory.cache)
        return State(cache, memory.visible, 0, condition)

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        embedded = self._embed(tokens) if state.length else self._first(state)  # (B k, C)
        states, state = self._go_on(state, embedded.unsqueeze(1))
        return self.logits(states[:, -1]), state

    def features(
        self, memory: Memory, response: Tensor, *, speaker: Tensor | None, ocean: Tensor | None
    ) -> Tensor:
        state = self.start(memory, self.condition(speaker, ocean))
        embedded = torch.cat((self._first(state).unsqueeze(1), self._embed(response[:, :-1])), 1)
        return self._go_on(state, embedded)[0]

    def _first(self, state: State) -> Tensor:
        """What is read before the first token: (B, C)."""
        if state.condition is not None:
            return state.condition.to(self.dtype)
        return self._embed(self._own_before[-1:]).expand(len(state.visible), -1)

    def _go_on(self, state: State, embedded: Tensor) -> tuple[Tensor, State]:
        """Read `embedded` (B k, t, C) on top of what was read: outputs (B k, t, C), and the new state."""
        k = state.cache[0][0].shape[1]
        n_new = embedded.shape[1]
        n_kept = state.visible.shape[1] + state.length
        kept = state.cache
        if kept[0][0].shape[3] < n_kept + n_new:
            more = (0, 0, 0, max(n_new, _ROOM))
            kept = tuple((F.pad(keys, more), F.pad(values, more)) for keys, values in kept)
        make = _roomy_layer()
        layers = [make(keys.flatten(0, 1), values.flatten(0, 1), n_kept) for keys, values in kept]
        visible = F.pad(state.visible, (0, state.length + n_new), value=True).repeat_interleave(k, 0)
        n_read = (state.visible.sum(1) + state.length).repeat_interleave(k, 0)  # (B k,)
        places = n_read.unsqueeze(1) + torch.arange(n_new, device=embedded.device)
        output = self.language_model.base_model(
            inputs_embeds=embedded,
            attention_mask=visible.long(),
            position_ids=places,
            past_key_values=require("transformers", "models").Cache(layers=layers),
            use_cache=True,
        )
        return output.last_hidden_state, state._replace(cache=kept, length=state.length + n_new)


@functools.cache
def _roomy_layer() -> Any:
    """The class of a layer's cache that writes into room behind its tokens. The library's own copies it all.

    It must not refer to itself, not even by a closure: while texts are decoded nobody looks for circles, and
    the keys and values of every batch would stay.
    """
    cache_utils = require("transformers.cache_utils", "models")

    class RoomyLayer(cache_utils.DynamicLayer):  # type: ignore[name-defined,misc]
        def __init__(self, keys: Tensor, values: Tensor, n_kept: int) -> None:
            super().__init__()
            self.is_initialized, self.dtype, self.device = True, keys.dtype, keys.device
            self.room = keys, values
            self.keys, self.values = keys[:, :, :n_kept], values[:, :, :n_kept]

        def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
            begin = self.keys.shape[2]
            end = begin + keys.shape[2]
            all_keys, all_values = self.room
            all_keys[:, :, begin:end], all_values[:, :, begin:end] = keys, values
            self.keys, self.values = all_keys[:, :, :end], all_values[:, :, :end]
            return self.keys, self.values

    return RoomyLayer


def pack(parts: Sequence[Tensor], width: int | None = None) -> Tensor:
    """Rows of several parts (B, n), padded anywhere, as one text (B, W) with its padding on the right."""
    tokens = torch.cat(list(parts), 1)  # (B, N)
    there = tokens != PAD
    place = there.cumsum(1) - 1
    if width is None:
        width = int(place.max()) + 1
    beyond = place.masked_fill(~there, width)  # padding goes into a column that is cut off
    text = tokens.new_full((len(tokens), width + 1), PAD).scatter(1, beyond, tokens)
    return text[:, :width]


def _named_parts(frame: Frame) -> dict[str, tuple[int, ...]]:
    before, after = frame.knowledge
    return {
        "begin": frame.begin,
        "knowledge_before": before,
        "knowledge_after": after,
        "own_before": frame.own[0],
    }


def _with_adapter(language_model: Any, config: CausalConfig) -> Any:
    peft = require("peft", "llm")
    layers = ALL_LINEAR if config.lora_layers == (ALL_LINEAR,) else list(config.lora_layers)
    settings = peft.LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.dropout,
        target_modules=layers,
        task_type="CAUSAL_LM",
    )
    try:
        peft.inject_adapter_in_model(settings, language_model)
    except ValueError as error:
        raise UserError(f"no adapter can be put into this language model: {error}") from None
    for name, parameter in language_model.named_parameters():
        parameter.requires_grad_("lora_" in name)
    return language_model
