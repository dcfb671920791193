"""LSTM encoder, attention, LSTM decoder with input feeding, conditioned on a speaker or a personality.

Xing & Fernández (2018), section 2, after Li et al. (2016):

    p(Y | X) = Π_t p(y_t | y_<t, X)                               eq. 1
    P_t(w) = softmax(W · f(c_t, h_t)),  f(c, h) = tanh(W_f [c; h])   eq. 2
    h_t = g(h_{t-1}, y*_t, c_{t-1}, v)                            eq. 3, 4

c_t is the attention over the encoder's states (general score h_t · W_a e_s); v is a learned vector of the
speaker, or W_o (o - 4)/3 of the OCEAN scores o, and enters the first decoder layer at every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from palaver.models._input_feeding import InputFeeding
from palaver.models.pretrained import Responder, ResponderConfig, Size
from palaver.text.vocabulary import BOS, PAD


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(ResponderConfig):
    """The paper's sizes by default."""

    model: ClassVar[str] = "seq2seq"
    embedding: Size = 1024
    hidden: Size = 1024
    layers: Size = 4
    init_range: float = 0.1

    def contradictions(self) -> list[str]:
        problems = super().contradictions()
        if self.tied and self.embedding != self.hidden:
            problems.append(
                f"tied embeddings need embedding = hidden, found {self.embedding} and {self.hidden}"
            )
        if self.knowledge:
            problems.append("this model takes no knowledge; use knowledge-transformer")
        return problems


class Memory(NamedTuple):
    """What the encoder leaves: its states, the same as attention keys, and the decoder's first state."""

    values: Tensor  # (B, S, H)
    keys: Tensor  # (B, S, H)
    bias: Tensor  # (B, S): 0, or -inf where there is padding
    hidden: Tensor  # (B, L, H)
    cells: Tensor  # (B, L, H)


class State(NamedTuple):
    """The decoder between two steps. Every tensor has the batch in front, so that rows can be taken out.

    The k beams of an example share what it was told.
    """

    memory: Memory
    hidden: tuple[Tensor, ...]  # per layer (B, k, H)
    cells: tuple[Tensor, ...]  # per layer (B, k, H)
    context: Tensor  # (B, k, H)
    condition: Tensor | None  # (B, 1, H)


class Seq2Seq(Responder):
    """The Speaker Model, the Personality Model, or neither, by `config.conditioning`."""

    config_class = Seq2SeqConfig
    moving = ("hidden", "cells", "context")

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config: Seq2SeqConfig = config
        c = config
        self.embed = nn.Embedding(c.vocab_size, c.embedding)
        self.encoder = nn.LSTM(
            c.embedding, c.hidden, c.layers, batch_first=True, dropout=c.dropout if c.layers > 1 else 0.0
        )
        condition = 0
        if c.conditioning == "speaker":
            self.speaker = nn.Embedding(len(c.speakers), c.hidden)
            condition = c.hidden
        elif c.conditioning == "personality":
            self.personality = nn.Linear(5, c.hidden, bias=False)
            condition = c.hidden
        first = c.embedding + c.hidden + condition  # [y*_t ; c_{t-1} ; v]
        self.decoder = nn.ModuleList(
            nn.LSTMCell(c.hidden if layer else first, c.hidden) for layer in range(c.layers)
        )
        self.attention = nn.Linear(c.hidden, c.hidden, bias=False)
        self.combine = nn.Linear(2 * c.hidden, c.hidden, bias=False)
        self.output = nn.Linear(c.hidden, c.vocab_size, bias=False) if not c.tied else None
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -c.init_range, c.init_range)

    def encode(self, context: Tensor, knowledge: Tensor | None = None) -> Memory:
        lengths = (context != PAD).sum(1).clamp(min=1)  # (B,)
        embedded = F.dropout(self.embed(context), self.config.dropout, self.training)  # (B, S, E)
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        with torch.autocast(context.device.type, enabled=False):  # it would copy all weights at every step
            states, (hidden, cells) = self.encoder(packed)
        values, _ = pad_packed_sequence(states, batch_first=True, total_length=context.shape[1])  # (B, S, H)
        values = values.to(self.compute_dtype)
        place = torch.arange(context.shape[1], device=context.device)
        exact = torch.promote_types(values.dtype, torch.float32)
        bias = torch.zeros(context.shape, device=context.device, dtype=exact)
        bias.masked_fill_(place >= lengths.unsqueeze(1), -torch.inf)
        return Memory(values, self.attention(values), bias, hidden.transpose(0, 1), cells.transpose(0, 1))

    def features(
        self, memory: Memory, response: Tensor, *, speaker: Tensor | None, ocean: Tensor | None
    ) -> Tensor:
        c = self.config
        dtype = memory.values.dtype
        begin = response.new_full((len(response), 1), BOS)
        given = torch.cat((begin, response[:, :-1]), 1).t()  # (T, B)
        embedded = F.dropout(self.embed(given), c.dropout, self.training)  # (T, B, E)
        v = self.condition(speaker, ocean)
        first = self.decoder[0]
        by_word, by_context, by_condition = first.weight_ih.split(
            (c.embedding, c.hidden, first.weight_ih.shape[1] - c.embedding - c.hidden), dim=1
        )
        projected = F.linear(embedded, by_word, first.bias_ih + first.bias_hh)  # (T, B, 4H)
        if v is not None:
            projected = projected + F.linear(v, by_condition)
        weights = [torch.cat((by_context, first.weight_hh), 1).to(dtype)]
        weights += [torch.cat((cell.weight_ih, cell.weight_hh), 1).to(dtype) for cell in self.decoder[1:]]
        biases = [(cell.bias_ih + cell.bias_hh).to(dtype) for cell in self.decoder[1:]]
        masks = None
        if self.training and c.dropout:
            shape = (c.layers, *given.shape, c.hidden)
            masks = F.dropout(torch.ones(shape, device=given.device, dtype=dtype), c.dropout)
        hidden, contexts = InputFeeding.apply(
            projected.to(dtype),
            memory.hidden.transpose(0, 1).to(dtype),
            memory.cells.transpose(0, 1).to(torch.promote_types(dtype, torch.float32)),
            memory.keys.to(dtype),
            memory.values,
            memory.bias,
            masks,
            torch.is_grad_enabled(),
            *weights,
            *biases,
        )  # (T, B, H) each
        return torch.tanh(self.combine(torch.cat((contexts, hidden), 2))).transpose(0, 1)  # (B, T, H)

    def start(self, memory: Memory, condition: Tensor | None = None) -> State:
        none_yet = torch.zeros_like(memory.hidden[:, :1])
        return State(
            memory,
            tuple(h.unsqueeze(1) for h in memory.hidden.unbind(1)),
            tuple(c.unsqueeze(1) for c in memory.cells.unbind(1)),
            none_yet,
            None if condition is None else condition.unsqueeze(1),
        )

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        memory, shape = state.memory, state.context.shape  # (B, k, H)
        parts = [self.embed(tokens), state.context.flatten(0, 1)]
        if state.condition is not None:
            parts.append(state.condition.expand(shape).flatten(0, 1))
        below = torch.cat(parts, 1)  # (B k, E + H [+ H])
        hidden, cells = [], []
        for cell, h, c in zip(self.decoder, state.hidden, state.cells, strict=True):
            below, kept = cell(below, (h.flatten(0, 1), c.flatten(0, 1)))  # (B k, H)
            hidden.append(below.view(shape))
            cells.append(kept.view(shape))
        scores = torch.bmm(hidden[-1], memory.keys.transpose(1, 2))  # (B, k, S)
        scores = scores.to(memory.bias.dtype) + memory.bias.unsqueeze(1)
        context = torch.bmm(torch.softmax(scores, 2).to(below.dtype), memory.values)  # (B, k, H)
        features = torch.tanh(self.combine(torch.cat((context.flatten(0, 1), below), 1)))  # (B k, H)
        new = State(memory, tuple(hidden), tuple(cells), context, state.condition)
        return self.logits(features), new
