"""A Transformer that answers from the history and one knowledge sentence, both through the same encoder.

Gopalakrishnan et al. (2019), sections 4.1 and 4.2: history H and the selected sentence k are encoded by a
shared encoder, the outputs are concatenated, and the decoder attends to both. Without knowledge it is the
plain Transformer. The paper's sizes are the defaults; "one-hot" positions add a unit vector per position,
which is not learned. A speaker's vector or W_o (o - 4)/3 of OCEAN scores may be added to its input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.models.pretrained import Responder, ResponderConfig, Size
from palaver.text.vocabulary import BOS, PAD

Positions = Literal["one-hot", "sinusoidal", "learned", "rotary"]
_ROOM = 16
"""For how many more steps there is room when the cache of a running decoder grows."""
_PIECE = 1024
"""Tokens encoded at once where no gradient is wanted: as many as a processor's own cache holds."""


@dataclass(frozen=True, kw_only=True)
class KnowledgeTransformerConfig(ResponderConfig):
    """The paper's sizes by default."""

    model: ClassVar[str] = "knowledge-transformer"
    dim: Size = 300
    heads: Size = 2
    layers: Size = 2
    feed_forward: Size = 300
    positions: Positions = "one-hot"
    norm: Literal["post", "pre"] = "post"
    knowledge: bool = True
    max_context: Size = 32
    max_knowledge: int = 128
    max_response: Size = 64

    @property
    def longest(self) -> int:
        """Of all sequences; a response has the beginning mark in front."""
        return max(self.max_context, self.max_knowledge if self.knowledge else 0, self.max_response + 1)

    def contradictions(self) -> list[str]:
        problems = super().contradictions()
        if self.dim % self.heads:
            problems.append(f"dim ({self.dim}) should be a multiple of heads ({self.heads})")
        if self.positions == "one-hot" and self.dim < self.longest:
            problems.append(f"one-hot positions need dim of {self.longest} or more, found {self.dim}")
        if self.positions == "rotary" and self.dim // self.heads % 2:
            problems.append(f"rotary positions need an even size per head, found {self.dim // self.heads}")
        if self.knowledge and self.max_knowledge < 1:
            problems.append(f"max_knowledge should be 1 or more, found {self.max_knowledge}")
        return problems


class Memory(NamedTuple):
    """What the encoder leaves of history and knowledge."""

    values: Tensor  # (B, S [+ K], C)
    visible: Tensor  # (B, S [+ K]) bool


class State(NamedTuple):
    """The decoder between two steps; tensors have the batch in front.

    The k beams of an example share its memory and its cache, which holds the tokens of all its beams: those a
    beam consists of are marked in `seen`. So nothing but the marks moves when beams change places.
    """

    memory: Tensor  # (B, S, C)
    bias: Tensor  # (B, 1, 1, S): 0, or -inf where the memory is padding
    cache: tuple[tuple[Tensor, Tensor], ...]  # per layer (B, heads, room, d): keys and values of the tokens
    seen: Tensor  # (B, k, N) of the N tokens in the cache
    length: int  # of a beam
    condition: Tensor | None  # (B, 1, C)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Rotary positions: pairs of features of x (…, T, d) turned by `turns` (T, d/2)."""
    a, b = x.unflatten(-1, (2, -1)).unbind(-2)
    cos, sin = turns.cos().to(x.dtype), turns.sin().to(x.dtype)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def bias_of(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where something is visible, elsewhere -inf."""
    return torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, -torch.inf)


def _grown(cached: Tensor, beams: int) -> Tensor:
    return F.pad(cached, (0, 0, 0, _ROOM * beams))


class Attention(nn.Module):
    """Multi-head attention; `source` is what is looked at."""

    def __init__(self, config: KnowledgeTransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)  # (B, T, C) -> (B, heads, T, d)

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self.key_value(source).chunk(2, -1)
        return self.split(keys), self.split(values)

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None, causal: bool = False
    ) -> Tensor:
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=visible, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))  # (B, T, C)

    def recall(self, x: Tensor, memory: Tensor, bias: Tensor) -> Tensor:
        """Attention of x (B, k, C) to `memory` (B, S, C), of which neither keys nor values are made.

        As q · (W m + b) = (q W) · m + a constant, queries go through the keys' weights instead, and what was
        found goes through the values'. For the few tokens of a response that is less work, and every layer
        reads the same memory.
        """
        size, k, width = x.shape
        heads, rows = self.heads, size * k
        by_key, by_value = self.key_value.weight.view(2, heads, -1, width)  # (heads, d, C)
        query = self.query(x).view(rows, heads, -1).transpose(0, 1)
        query = torch.bmm(query, by_key).view(heads, size, k, width)
        query = query.transpose(0, 1).reshape(size, 1, heads * k, width)  # to the memory all heads are one
        memory = memory.unsqueeze(1)  # (B, 1, S, C)
        scale = (width // heads) ** -0.5
        mixed = F.scaled_dot_product_attention(query, memory, memory, attn_mask=bias, scale=scale)
        mixed = mixed.view(size, heads, k, width).transpose(0, 1).reshape(heads, rows, width)
        shift = self.key_value.bias[width:].view(heads, 1, -1)
        mixed = torch.baddbmm(shift, mixed, by_value.transpose(1, 2))  # (heads, B k, d)
        return self.out(mixed.transpose(0, 1).reshape(size, k, width))


class Layer(nn.Module):
    """Self-attention, in the decoder attention to the memory, feed-forward; norm before or after each."""

    def __init__(self, config: KnowledgeTransformerConfig, *, decoder: bool) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.own = Attention(config)
        self.cross = Attention(config) if decoder else None
        self.feed = nn.Sequential(
            nn.Linear(config.dim, config.feed_forward),
            nn.GELU() if self.pre else nn.ReLU(),
            nn.Linear(config.feed_forward, config.dim),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(config.dim) for _ in range(3 if decoder else 2))
        self.dropout = nn.Dropout(config.dropout)

    def before(self, x: Tensor, norm: int) -> Tensor:
        return self.norms[norm](x) if self.pre else x

    def after(self, x: Tensor, change: Tensor, norm: int) -> Tensor:
        x = x + self.dropout(change)
        return x if self.pre else self.norms[norm](x)


class KnowledgeTransformer(Responder):
    """Encoder and decoder share the word embeddings (and the output layer too when `tied`)."""

    config_class = KnowledgeTransformerConfig
    moving = ("seen",)
    angles: Tensor

    def __init__(self, config: KnowledgeTransformerConfig) -> None:
        super().__init__()
        self.config: KnowledgeTransformerConfig = config
        c = config
        self.embed = nn.Embedding(c.vocab_size, c.dim, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=c.dim**-0.5)
        self.place = nn.Embedding(c.longest, c.dim) if c.positions == "learned" else None
        if self.place is not None:
            nn.init.normal_(self.place.weight, std=c.dim**-0.5)
        self.register_buffer("fixed", self._fixed_positions(), persistent=False)
        self.register_buffer("angles", self._angles(), persistent=False)
        self.encoder = nn.ModuleList(Layer(c, decoder=False) for _ in range(c.layers))
        self.decoder = nn.ModuleList(Layer(c, decoder=True) for _ in range(c.layers))
        self.last = nn.ModuleList(nn.LayerNorm(c.dim) for _ in range(2)) if c.norm == "pre" else None
        if c.conditioning == "speaker":
            self.speaker = nn.Embedding(len(c.speakers), c.dim)
            nn.init.normal_(self.speaker.weight, std=1.0)
        elif c.conditioning == "personality":
            self.personality = nn.Linear(5, c.dim, bias=False)
        self.output = None if c.tied else nn.Linear(c.dim, c.vocab_size, bias=False)
        self.dropout = nn.Dropout(c.dropout)

    def _fixed_positions(self) -> Tensor | None:
        c = self.config
        if c.positions == "one-hot":
            return torch.eye(c.longest, c.dim)
        if c.positions != "sinusoidal":
            return None
        rates = torch.exp(-math.log(10000) * torch.arange(0, c.dim, 2) / c.dim)  # (C/2,)
        turns = torch.arange(c.longest).unsqueeze(1) * rates  # (T, C/2)
        return torch.stack((turns.sin(), turns.cos()), 2).flatten(1)[:, : c.dim]

    def _angles(self) -> Tensor | None:
        c = self.config
        if c.positions != "rotary":
            return None
        half = c.dim // c.heads // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half) / half)
        return torch.arange(c.longest).unsqueeze(1) * rates  # (T, d/2)

    def place_words(self, tokens: Tensor, begin: int = 0) -> Tensor:
        """Embeddings of `tokens` (B, T) at positions `begin`, `begin` + 1, …: (B, T, C)."""
        x = self.embed(tokens) * self.config.dim**0.5
        end = begin + tokens.shape[1]
        if self.place is not None:
            x = x + self.place.weight[begin:end] * self.config.dim**0.5
        elif self.fixed is not None:
            x = x + self.fixed[begin:end].to(x.dtype)
        return self.dropout(x)

    def turned(self, x: Tensor, at: int | None = None) -> Tensor:
        """Queries or keys (B, heads, T, d) with rotary positions 0, 1, …, or all `at`, if those are used."""
        if self.angles is None:
            return x
        return rotate(x, self.angles[: x.shape[2]] if at is None else self.angles[at : at + 1])

    def read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The shared encoder: states (B, S, C) and which of them are no padding."""
        visible = tokens != PAD
        visible[:, 0] = True  # an empty text still leaves something to look at
        if torch.is_grad_enabled() or tokens.is_cuda:
            return self._read(tokens, visible), visible
        lengths = visible.sum(1).tolist()
        values = self.embed.weight.new_zeros((*tokens.shape, self.config.dim))  # (B, S, C)
        begin = 0
        while begin < len(lengths):
            width = lengths[begin]
            end = begin + max(1, _PIECE // width)
            width = max(lengths[begin:end])
            values[begin:end, :width] = self._read(tokens[begin:end, :width], visible[begin:end, :width])
            begin = end
        return values, visible

    def _read(self, tokens: Tensor, visible: Tensor) -> Tensor:
        x = self.place_words(tokens)
        mask = visible[:, None, None, :]  # (B, 1, 1, S)
        for layer in self.encoder:
            normed = layer.before(x, 0)
            keys, values = layer.own.keys_values(normed)
            query = self.turned(layer.own.split(layer.own.query(normed)))
            x = layer.after(x, layer.own.attend(query, self.turned(keys), values, mask), 0)
            x = layer.after(x, layer.feed(layer.before(x, 1)), 1)
        return x if self.last is None else self.last[0](x)

    def encode(self, context: Tensor, knowledge: Tensor | None = None) -> Memory:
        values, visible = self.read(context)
        if self.config.knowledge and knowledge is not None and knowledge.shape[1]:
            more, also = self.read(knowledge)
            also = also & (knowledge != PAD)  # a turn without knowledge looks at the history alone
            values, visible = torch.cat((values, more), 1), torch.cat((visible, also), 1)
        return Memory(values, visible)

    def features(
        self, memory: Memory, response: Tensor, *, speaker: Tensor | None, ocean: Tensor | None
    ) -> Tensor:
        begin = response.new_full((len(response), 1), BOS)
        x = self.place_words(torch.cat((begin, response[:, :-1]), 1))  # (B, T, C)
        v = self.condition(speaker, ocean)
        if v is not None:
            x = x + v.unsqueeze(1)
        visible = memory.visible[:, None, None, :]
        for layer in self.decoder:
            normed = layer.before(x, 0)
            keys, values = layer.own.keys_values(normed)
            query = self.turned(layer.own.split(layer.own.query(normed)))
            x = layer.after(x, layer.own.attend(query, self.turned(keys), values, None, causal=True), 0)
            query = layer.cross.split(layer.cross.query(layer.before(x, 1)))
            keys, values = layer.cross.keys_values(memory.values)
            x = layer.after(x, layer.cross.attend(query, keys, values, visible), 1)
            x = layer.after(x, layer.feed(layer.before(x, 2)), 2)
        return x if self.last is None else self.last[1](x)

    def start(self, memory: Memory, condition: Tensor | None = None) -> State:
        size, dim = len(memory.values), self.config.dim
        nothing = memory.values.new_empty((size, self.config.heads, 0, dim // self.config.heads))
        return State(
            memory.values,
            bias_of(memory.visible[:, None, None, :], memory.values.dtype),
            tuple((nothing, nothing) for _ in self.decoder),
            memory.visible.new_empty((size, 1, 0)),
            0,
            None if condition is None else condition.unsqueeze(1),
        )

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        size, beams, before = state.seen.shape
        after, t = before + beams, state.length
        x = self.place_words(tokens.unsqueeze(1), t).view(size, beams, -1)  # (B, k, C)
        if state.condition is not None:
            x = x + state.condition
        itself = torch.eye(beams, dtype=torch.bool, device=tokens.device).expand(size, -1, -1)
        seen = torch.cat((state.seen, itself), 2)  # (B, k, N)
        bias = bias_of(seen.unsqueeze(1), x.dtype) if beams > 1 else None
        cache = state.cache
        if after > cache[0][0].shape[2]:
            cache = tuple((_grown(keys, beams), _grown(values, beams)) for keys, values in cache)
        for layer, (keys, values) in zip(self.decoder, cache, strict=True):
            normed = layer.before(x, 0)
            key, values[:, :, before:after] = layer.own.keys_values(normed)
            keys[:, :, before:after] = self.turned(key, t)
            query = self.turned(layer.own.split(layer.own.query(normed)), t)
            mixed = layer.own.attend(query, keys[:, :, :after], values[:, :, :after], bias)  # (B, k, C)
            x = layer.after(x, mixed, 0)
            x = layer.after(x, layer.cross.recall(layer.before(x, 1), state.memory, state.bias), 1)
            x = layer.after(x, layer.feed(layer.before(x, 2)), 2)
        features = x if self.last is None else self.last[1](x)
        new = state._replace(cache=cache, seen=seen, length=t + 1)
        return self.logits(features.flatten(0, 1)), new
