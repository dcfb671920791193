"""InferSent: the maximum over the states of a bidirectional LSTM, trained to tell what follows from what.

A. Conneau et al.: Supervised Learning of Universal Sentence Representations from Natural Language Inference
Data. EMNLP 2017, section 3. Word vectors are GloVe's and stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from palaver.errors import DataError
from palaver.models.sentence.sentence_model import PAD, SentenceModel, Words


@dataclass(frozen=True)
class InferSentConfig:
    word_size: int = 100
    hidden: int = 256
    """Of each direction; a sentence has twice as many numbers."""


class InferSent(SentenceModel):
    """BiLSTM with max pooling. `Inference` is put on top of it while it is trained."""

    kind: ClassVar[str] = "infersent"
    config_class: ClassVar[type] = InferSentConfig
    config: InferSentConfig

    def __init__(self, config: InferSentConfig, words: Words) -> None:
        super().__init__(config, words)
        self.embedding = nn.Embedding(len(words), config.word_size, padding_idx=PAD)
        self.embedding.weight.requires_grad_(False)
        self.encoder = nn.LSTM(config.word_size, config.hidden, batch_first=True, bidirectional=True)

    def vectors(self, ids: Tensor, lengths: Tensor) -> Tensor:
        return max_states(self.encoder, self.embedding(ids), lengths)


def max_states(network: nn.LSTM, embedded: Tensor, lengths: Tensor) -> Tensor:
    """(B, T, E) -> (B, 2H), the maximum over the states of each sentence, without those of the padding."""
    packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(network(packed)[0], batch_first=True, padding_value=-torch.inf)
    return states.amax(dim=1)  # (B, 2H)


class Inference(nn.Module):
    """Three classes from (u, v, |u - v|, u * v)."""

    def __init__(self, size: int, hidden: int = 512, dropout: float = 0.2) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * size, hidden),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 3),
        )

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return self.layers(torch.cat([u, v, (u - v).abs(), u * v], dim=1))  # (B, 3)


def official_lstm(weights: Mapping[str, Tensor]) -> nn.LSTM:
    """The encoder of the authors' `infersent1.pkl` or `infersent2.pkl` (a state dict with `enc_lstm.*`)."""
    lstm_weights = {
        name.removeprefix("enc_lstm."): w.float()
        for name, w in weights.items()
        if name.startswith("enc_lstm.")
    }
    if "weight_ih_l0" not in lstm_weights or "weight_ih_l0_reverse" not in lstm_weights:
        raise DataError(
            "these are no weights of InferSent: no enc_lstm.weight_ih_l0 and enc_lstm.weight_ih_l0_reverse",
            f"found: {', '.join(list(weights)[:6]) or 'nothing'}",
        )
    four_hidden, size = lstm_weights["weight_ih_l0"].shape
    network = nn.LSTM(size, four_hidden // 4, batch_first=True, bidirectional=True)
    network.load_state_dict(lstm_weights)
    return network.eval()
