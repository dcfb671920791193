"""M(φ, f), an encoder and a linear layer: o = f(φ(x)), P(i ▷ j) = σ(o_i − o_j) (Liang et al. 2020, sec. 4).

φ is the encoder's first state or the mean of its states. The embedding of who speaks is added to that of the
word; it begins at zero, so that φ begins as the encoder was trained. With several outputs f is a classifier
and o its expected value (Rothe et al. 2015).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from palaver.comparator.cmade.inputs import N_ROLES, Inputs, cut_by_tokens, make_inputs
from palaver.errors import DataError, UserError, require
from palaver.files import check_writable
from palaver.models.encoders.transformer import Transformer, load_transformer, position_limit
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue

FORMAT = 1
_ABOUT, _WEIGHTS, _ENCODER = "comparator.json", "model.safetensors", "encoder"


@dataclass(frozen=True)
class NetworkConfig:
    """What a saved comparator says about itself."""

    encoder: str = "minilm"
    pooling: Literal["cls", "mean"] = "cls"
    max_tokens: int = 512
    centres: tuple[float, ...] = ()
    """The rating each class stands for; empty where f gives one number."""


class ComparatorNetwork(nn.Module):
    """Tokens, mask and roles (B, T) to scores (B,) and embeddings (B, C)."""

    def __init__(self, encoder: nn.Module, tokenizer: Any, config: NetworkConfig) -> None:
        super().__init__()
        self.encoder, self.tokenizer, self.config = encoder, tokenizer, config
        self.dim = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.role = nn.Embedding(N_ROLES, self.dim)
        nn.init.zeros_(self.role.weight)
        self.head = nn.Linear(self.dim, max(1, len(config.centres)))
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        self.register_buffer("centres", torch.tensor(config.centres, dtype=torch.float32), persistent=False)

    @property
    def device(self) -> torch.device:
        return self.role.weight.device

    def embed(self, ids: Tensor, mask: Tensor, roles: Tensor) -> Tensor:
        """φ, (B, C) float32."""
        words = self.encoder.get_input_embeddings()(ids)  # type: ignore[operator] # (B, T, C)
        states = self.encoder(
            inputs_embeds=words + self.role(roles), attention_mask=mask
        ).last_hidden_state.float()  # (B, T, C)
        if self.config.pooling == "cls":
            first: Tensor = states[:, 0]
            return first
        weight = mask.unsqueeze(-1).float()  # (B, T, 1)
        mean: Tensor = (states * weight).sum(1) / weight.sum(1).clamp(min=1)
        return mean

    def logits(self, embeddings: Tensor) -> Tensor:
        """f before anything is made of it, (B, 1 or classes)."""
        with torch.autocast(embeddings.device.type, enabled=False):
            logits: Tensor = self.head(embeddings)
        return logits

    def scores_of(self, logits: Tensor) -> Tensor:
        """o, (B,)."""
        if not self.config.centres:
            return logits[:, 0]
        return logits.softmax(-1) @ self.centres  # type: ignore[operator]

    def forward(self, ids: Tensor, mask: Tensor, roles: Tensor) -> tuple[Tensor, Tensor]:
        embeddings = self.embed(ids, mask, roles)
        return self.scores_of(self.logits(embeddings)), embeddings

    def inputs(self, dialogues: Sequence[Dialogue]) -> Inputs:
        return make_inputs(dialogues, self.tokenizer, self.config.max_tokens)

    def to_device(self, inputs: Inputs, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        """A padded batch (B, T) three times, where the network is."""
        cuda = self.device.type == "cuda"
        arrays = inputs.padded(rows, multiple=8 if cuda else 1)
        ids, mask, roles = (torch.from_numpy(array).to(self.device, non_blocking=True) for array in arrays)
        limit = position_limit(self.encoder.config)  # rounding up must not go beyond the last position
        return ids[:, :limit], mask[:, :limit], roles[:, :limit]

    def save(self, folder: Path) -> None:
        """Everything needed to score without the encoder it came from."""
        check_writable(folder)
        tensors = {name: t.detach().cpu().contiguous() for name, t in self.state_dict().items()}
        self.encoder.config.save_pretrained(folder / _ENCODER)  # type: ignore[operator, union-attr]
        self.tokenizer.save_pretrained(folder / _ENCODER)
        part = folder / f".{_WEIGHTS}"
        save_file(tensors, part)
        part.replace(folder / _WEIGHTS)
        about = {"format": FORMAT, **dataclasses.asdict(self.config)}
        (folder / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, *, device: str | torch.device = "cpu") -> ComparatorNetwork:
        """A comparator that `save` wrote."""
        folder = Path(folder)
        transformers = require("transformers", "models")
        if not (folder / _ABOUT).is_file():
            raise UserError(f"there is no comparator in {folder}", f"expected a folder with {_ABOUT}")
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            if about.pop("format") != FORMAT:
                raise ValueError("it was written by another version of Palaver")
            config = NetworkConfig(**about | {"centres": tuple(about["centres"])})
            kind = transformers.AutoConfig.from_pretrained(
                folder / _ENCODER, local_files_only=True, trust_remote_code=False
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder / _ENCODER, local_files_only=True, trust_remote_code=False
            )
            # a model that was read from half precision says so in its config, and would be made so again
            network = cls(
                transformers.AutoModel.from_config(kind, trust_remote_code=False).float(), tokenizer, config
            )
            network.load_state_dict(load_file(folder / _WEIGHTS))
        except Exception as error:  # safetensors, transformers and torch each raise their own
            first = " ".join(str(error).split())[:200]
            raise DataError(f"the comparator in {folder} cannot be read: {first}") from error
        return network.to(device).eval()


def build_network(
    encoder: str | Path | Transformer | None = None,
    *,
    pooling: Literal["auto", "cls", "mean"] = "auto",
    max_tokens: int | None = None,
    centres: Sequence[float] = (),
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> ComparatorNetwork:
    """A new comparator around an encoder. `auto` pools as the encoder's makers did."""
    loaded = encoder if isinstance(encoder, Transformer) else load_transformer(encoder)
    config = NetworkConfig(
        encoder=loaded.name,
        pooling=loaded.pooling if pooling == "auto" else pooling,
        max_tokens=min(max_tokens or loaded.max_tokens, loaded.max_tokens),
        centres=tuple(float(c) for c in centres),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ComparatorNetwork(loaded.model, loaded.tokenizer, config)
    return network.to(device)


def apply_network(
    network: ComparatorNetwork,
    inputs: Inputs,
    *,
    batch_tokens: int = 65536,
    progress: Progress = no_progress,
    what: str = "scoring dialogues",
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scores (N,) and embeddings (N, C) of all dialogues, batches of like length together."""
    scores = np.zeros(len(inputs), np.float32)
    embeddings = np.zeros((len(inputs), network.dim), np.float32)
    budget = batch_tokens if network.device.type == "cuda" else min(batch_tokens, 8192)
    was_training, n_done = network.training, 0
    network.eval()
    with torch.inference_mode(), autocast(network.device):
        for rows in cut_by_tokens(inputs.lengths, budget):
            o, phi = network(*network.to_device(inputs, rows))
            scores[rows], embeddings[rows] = o.float().cpu().numpy(), phi.float().cpu().numpy()
            n_done += len(rows)
            progress(what, n_done, len(inputs))
    network.train(was_training)
    return scores, embeddings


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 where the GPU can do it."""
    able = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16, enabled=able)
