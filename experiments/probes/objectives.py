"""What serves the training of the three sentence models alone: their losses, which are not kept."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.models.sentence import PAD, UNKNOWN, Sent2Vec, SkipThoughtConfig


def set_bigrams(model: Sent2Vec, pairs: NDArray[np.int64]) -> None:
    """Choose which bigrams have a vector: (n, 2) numbers of words."""
    order = np.argsort(pairs[:, 0] * len(model.words) + pairs[:, 1])
    numbers = torch.zeros(model.config.n_bigrams, 2, dtype=torch.int64)
    numbers[: len(pairs)] = torch.from_numpy(pairs[order])
    model.pairs_high.copy_(numbers.flatten() // 256)
    model.pairs_low.copy_(numbers.flatten() % 256)


class WordPrediction(nn.Module):
    """Equation 3 of Sent2Vec: what is left of a sentence without the word w_t should score w_t above words
    drawn by chance.

    Without the bias all vectors take one direction first, the one that tells frequent words from rare ones,
    and cosines say little for many epochs.
    """

    def __init__(self, model: Sent2Vec) -> None:
        super().__init__()
        size, n_words = model.config.size, len(model.words)
        for table in (model.unigrams, model.bigrams):
            nn.init.uniform_(table.weight, -1 / size, 1 / size)
            table.weight.data[0] = 0
        self.targets = nn.Embedding(n_words, size, padding_idx=PAD)
        nn.init.zeros_(self.targets.weight)
        self.target_bias = nn.Parameter(torch.zeros(n_words))

    def forward(
        self, model: Sent2Vec, ids: Tensor, weights: Tensor, noise: Tensor, n_negatives: int = 10
    ) -> Tensor:
        """Loss of a batch. `ids` (B, T); `weights` (B, T): 1 for positions to predict; `noise` (K,) words."""
        bigrams = model.bigram_ids(ids)  # (B, T-1)
        ids = ids.masked_fill(ids == UNKNOWN, PAD)
        single, double = model.unigrams(ids), model.bigrams(bigrams)  # (B, T, D), (B, T-1, D)
        has_double = (bigrams != 0).to(single.dtype)  # (B, T-1)
        around = F.pad(double, (0, 0, 1, 0)) + F.pad(double, (0, 0, 0, 1))  # (B, T, D): those that hold w_t
        n_around = F.pad(has_double, (1, 0)) + F.pad(has_double, (0, 1))  # (B, T)
        total = single.sum(1) + double.sum(1)  # (B, D)
        count = (ids != PAD).sum(1) + has_double.sum(1)  # (B,)
        left = (count[:, None] - 1 - n_around).clamp(min=1)  # (B, T)
        context = (total[:, None] - single - around) / left[..., None]  # (B, T, D) without w_t
        chosen = (weights > 0) & (ids != PAD) & (count[:, None] - 1 - n_around > 0)
        context = context[chosen]  # (N, D)
        wanted = ids[chosen]
        positive = (context * self.targets(wanted)).sum(-1) + self.target_bias[wanted]  # (N,)
        negative = context @ self.targets(noise).T + self.target_bias[noise]  # (N, K)
        apart = noise[None, :] != wanted[:, None]
        cost = F.softplus(-positive) + n_negatives * (F.softplus(negative) * apart).mean(-1)  # (N,)
        return cost.mean()


class Decoders(nn.Module):
    """Two conditional GRUs that predict the turn before and the turn after from the encoder's vector.

    They predict the `n_targets` first words of the vocabulary; other words of a target cost nothing.
    """

    def __init__(self, config: SkipThoughtConfig, n_targets: int) -> None:
        super().__init__()
        self.n_targets = n_targets
        self.end = n_targets
        """The number of the class "the sentence ends"."""
        self.begin = nn.Parameter(torch.zeros(config.word_size))
        sizes = (config.word_size + config.hidden, config.hidden)
        self.networks = nn.ModuleList(nn.GRU(*sizes, batch_first=True) for _ in range(2))
        self.output = nn.Linear(config.hidden, n_targets + 1)

    def forward(self, which: int, vector: Tensor, ids: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """The cost in nats of `ids` (B, T) after `vector` (B, H), summed, and how many words it is of."""
        batch, length = ids.shape
        start = self.begin.expand(batch, 1, -1)
        inputs = torch.cat([start, embedded], dim=1)  # (B, T+1, E)
        thought = vector[:, None].expand(-1, length + 1, -1)  # (B, T+1, H)
        states, _ = self.networks[which](torch.cat([inputs, thought], dim=2))  # (B, T+1, H)
        lengths = (ids != PAD).sum(1)  # (B,)
        targets = F.pad(ids, (0, 1)).clone()  # (B, T+1)
        counted = (targets > UNKNOWN) & (targets < self.n_targets)
        targets[torch.arange(batch, device=ids.device), lengths] = self.end
        counted[torch.arange(batch, device=ids.device), lengths] = True
        logits = self.output(states[counted])  # (N, V)
        return F.cross_entropy(logits.float(), targets[counted], reduction="sum"), counted.sum()


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
