"""Skip-thoughts: the last state of a GRU, trained to predict the sentences before and after.

R. Kiros et al.: Skip-Thought Vectors. NIPS 2015, equations 1-8: an encoder, and two decoders that see its
vector at every step. The word vectors are GloVe's and stay as they are, so that words that the training
text never had can be encoded too, which the authors reach by mapping word2vec into the space of the model
(their section 2.2). The decoders are not kept.

`official_gru` reads the authors' own parameters, whose GRU has the same equations as PyTorch's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.models.sentence.sentence_model import PAD, UNKNOWN, SentenceModel, Words


@dataclass(frozen=True)
class SkipThoughtConfig:
    word_size: int = 100
    hidden: int = 600


class SkipThought(SentenceModel):
    """The encoder. `Decoders` are put beside it while it is trained."""

    kind: ClassVar[str] = "skipthought"
    config_class: ClassVar[type] = SkipThoughtConfig
    config: SkipThoughtConfig

    def __init__(self, config: SkipThoughtConfig, words: Words) -> None:
        super().__init__(config, words)
        self.embedding = nn.Embedding(len(words), config.word_size, padding_idx=PAD)
        self.embedding.weight.requires_grad_(False)
        self.encoder = nn.GRU(config.word_size, config.hidden, batch_first=True)
        nn.init.orthogonal_(self.encoder.weight_hh_l0)

    def vectors(self, ids: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.encoder(self.embedding(ids))  # (B, T, H); what is after the end is not looked at
        last = (lengths.to(ids.device) - 1)[:, None, None].expand(-1, 1, states.shape[2])
        return states.gather(1, last).squeeze(1)  # (B, H)


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


def official_gru(parameters: Mapping[str, Any], prefix: str = "encoder") -> nn.GRU:
    """A GRU with the parameters of the authors' Theano code (`uni_skip.npz`; the second of `bi_skip.npz`
    has the prefix `encoder_r`). Theirs: h' = u h + (1-u) tanh(r * (h Ux) + x Wx + bx), gates in order r, u.
    """

    def part(name: str) -> Tensor:
        return torch.from_numpy(np.asarray(parameters[f"{prefix}_{name}"], dtype=np.float32))

    size, hidden = part("Wx").shape
    gru = nn.GRU(size, hidden, batch_first=True)
    with torch.no_grad():
        gru.weight_ih_l0.copy_(torch.cat([part("W"), part("Wx")], dim=1).T)
        gru.weight_hh_l0.copy_(torch.cat([part("U"), part("Ux")], dim=1).T)
        gru.bias_ih_l0.copy_(torch.cat([part("b"), part("bx")]))
        gru.bias_hh_l0.zero_()
    return gru.eval()
