"""Sent2Vec: a sentence is the average of the vectors of its words and bigrams.

M. Pagliardini, P. Gupta, M. Jaggi: Unsupervised Learning of Sentence Embeddings using Compositional n-Gram
Features. NAACL 2018. Equation 3: the average of what is left of a sentence without the word w_t should score
w_t above words drawn by chance (q ~ sqrt of the frequency). Here the most frequent bigrams have a vector of
their own; the authors hash all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.models.sentence.sentence_model import PAD, UNKNOWN, SentenceModel, Words


@dataclass(frozen=True)
class Sent2VecConfig:
    size: int = 100
    n_bigrams: int = 15_000


class Sent2Vec(SentenceModel):
    """Vectors of words and of bigrams; `targets` and `target_bias` of predicted words serve training alone.

    Without the bias all vectors take one direction first, the one that tells frequent words from rare ones,
    and cosines say little for many epochs.
    """

    kind: ClassVar[str] = "sent2vec"
    config_class: ClassVar[type] = Sent2VecConfig
    config: Sent2VecConfig

    def __init__(self, config: Sent2VecConfig, words: Words) -> None:
        super().__init__(config, words)
        self.unigrams = nn.Embedding(len(words), config.size, padding_idx=PAD)
        self.bigrams = nn.Embedding(config.n_bigrams + 1, config.size, padding_idx=0)
        self.targets = nn.Embedding(len(words), config.size, padding_idx=PAD)
        for table in (self.unigrams, self.bigrams):
            nn.init.uniform_(table.weight, -1 / config.size, 1 / config.size)
            table.weight.data[0] = 0
        nn.init.zeros_(self.targets.weight)
        self.target_bias = nn.Parameter(torch.zeros(len(words)))
        # (n_bigrams, 2) words of each bigram, sorted; rows of zeros are unused
        self.register_buffer("pairs", torch.zeros(config.n_bigrams, 2))
        self.pairs: Tensor
        self._keys: Tensor | None = None

    def set_bigrams(self, pairs: NDArray[np.int64]) -> None:
        """Choose which bigrams have a vector: (n, 2) numbers of words."""
        order = np.argsort(pairs[:, 0] * len(self.words) + pairs[:, 1])
        self.pairs[: len(pairs)] = torch.from_numpy(pairs[order]).to(self.pairs)
        self.pairs[len(pairs) :] = 0
        self._keys = None

    def kept(self) -> dict[str, Tensor]:
        kept = {n: w for n, w in self.state_dict().items() if not n.startswith("target")}
        # Numbers of words are kept in two parts, since half precision counts to 2048 only.
        high, low = torch.div(self.pairs, 256, rounding_mode="floor"), self.pairs.remainder(256)
        return {n: w for n, w in kept.items() if n != "pairs"} | {
            "pairs_high": high.flatten().to(torch.float16),
            "pairs_low": low.flatten().to(torch.float16),
        }

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True, assign: bool = False):  # type: ignore[no-untyped-def, override]
        state_dict = dict(state_dict)
        if "pairs_high" in state_dict:
            high, low = state_dict.pop("pairs_high"), state_dict.pop("pairs_low")
            state_dict["pairs"] = (high.float() * 256 + low.float()).reshape(-1, 2)
        self._keys = None
        return super().load_state_dict(state_dict, strict=strict, assign=assign)

    def bigram_ids(self, ids: Tensor) -> Tensor:
        """(B, T) words -> (B, T-1) bigrams, 0 where a pair has no vector."""
        if self._keys is None or self._keys.device != ids.device:
            pairs = self.pairs.long().to(ids.device)
            keys = pairs[:, 0] * len(self.words) + pairs[:, 1]
            self._keys = torch.where(keys == 0, torch.iinfo(torch.int64).max, keys)
        wanted = ids[:, :-1] * len(self.words) + ids[:, 1:]  # (B, T-1)
        at = torch.searchsorted(self._keys, wanted.contiguous()).clamp(max=len(self._keys) - 1)
        return torch.where(self._keys[at] == wanted, at + 1, 0)

    def vectors(self, ids: Tensor, lengths: Tensor) -> Tensor:
        bigrams = self.bigram_ids(ids)
        ids = ids.masked_fill(ids == UNKNOWN, PAD)
        total = self.unigrams(ids).sum(1) + self.bigrams(bigrams).sum(1)  # (B, D)
        count = (ids != PAD).sum(1) + (bigrams != 0).sum(1)  # (B,)
        return total / count.clamp(min=1)[:, None]

    def forward(self, ids: Tensor, weights: Tensor, noise: Tensor, n_negatives: int = 10) -> Tensor:
        """Loss of a batch. `ids` (B, T); `weights` (B, T): 1 for positions to predict; `noise` (K,) words."""
        bigrams = self.bigram_ids(ids)  # (B, T-1)
        ids = ids.masked_fill(ids == UNKNOWN, PAD)
        single, double = self.unigrams(ids), self.bigrams(bigrams)  # (B, T, D), (B, T-1, D)
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
