"""M(φ, f), an encoder and a linear layer: o = f(φ(x)), P(i ▷ j) = σ(o_i − o_j) (Liang et al. 2020, sec. 4).

φ is the encoder's first state or the mean of its states. The embedding of who speaks is added to that of the
word; it begins at zero, so that φ begins as the encoder was trained. With several outputs f is a classifier
and o its expected value (Rothe et al. 2015).

The lower layers of an encoder built like BERT can stay as they are (`frozen_layers`): what they make of a
token is then computed once for a whole training, and the embedding of who speaks is added above them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from palaver.comparator.cmade.inputs import N_ROLES, Inputs, cut_by_tokens, make_inputs
from palaver.errors import ConfigError, DataError, UserError, require
from palaver.files import check_writable
from palaver.models.devices import has_bfloat16
from palaver.models.encoders.transformer import Transformer, load_transformer, position_limit
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue

FORMAT = 1
_LIKE_BERT = ("bert", "roberta", "xlm-roberta", "electra")
_ABOUT, _WEIGHTS, _ENCODER = "comparator.json", "model.safetensors", "encoder"


@dataclass(frozen=True)
class NetworkConfig:
    """What a saved comparator says about itself."""

    encoder: str = "minilm"
    pooling: Literal["cls", "mean"] = "cls"
    max_tokens: int = 512
    centres: tuple[float, ...] = ()
    """The rating each class stands for; empty where f gives one number."""
    frozen_layers: int = 0
    """Lower layers of the encoder that are not trained."""


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
        self.frozen = _lower_part(encoder, config.frozen_layers)
        for module in self.frozen:
            module.requires_grad_(False)
        for name, module in encoder.named_modules():
            if name.endswith("attention.self.dropout"):
                module.p = 0.0  # on a processor, dropping attention takes as long as all the rest together

    def train(self, mode: bool = True) -> ComparatorNetwork:
        """As every module; frozen layers drop nothing."""
        super().train(mode)
        for module in self.frozen:
            module.eval()
        return self

    @property
    def device(self) -> torch.device:
        return self.role.weight.device

    def embed(self, ids: Tensor, mask: Tensor, roles: Tensor) -> Tensor:
        """φ, (B, C) float32, of `ids` (B, T) or of what the frozen layers made of them, (B, T, C)."""
        if self.frozen:
            lower = ids if ids.is_floating_point() else self.frozen_states(ids, mask)
            upper = self.encoder.encoder.layer[self.config.frozen_layers :]  # type: ignore[union-attr, index]
            states = through(upper, lower + self.role(roles), mask)
        else:
            words = self.encoder.get_input_embeddings()(ids)  # type: ignore[operator] # (B, T, C)
            states = self.encoder(
                inputs_embeds=words + self.role(roles), attention_mask=mask
            ).last_hidden_state  # (B, T, C)
        states = states.float()
        if self.config.pooling == "cls":
            first: Tensor = states[:, 0]
            return first
        weight = mask.unsqueeze(-1).float()  # (B, T, 1)
        mean: Tensor = (states * weight).sum(1) / weight.sum(1).clamp(min=1)
        return mean

    def frozen_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, T, C) what the frozen layers make of the tokens."""
        embeddings, *layers = self.frozen
        with torch.no_grad():
            return through(layers, embeddings(input_ids=ids), mask)

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
        """A padded batch where the network is: ids (B, T) or kept states (B, T, C), mask and roles (B, T)."""
        cuda = self.device.type == "cuda"
        padded = inputs.padded(rows, multiple=8 if cuda else 1)
        first = padded[0] if inputs.states is None else inputs.padded_states(rows, padded[0].shape[1])
        arrays = (first, *padded[1:])
        tokens, mask, roles = (torch.from_numpy(array).to(self.device, non_blocking=True) for array in arrays)
        limit = position_limit(self.encoder.config)  # rounding up must not go beyond the last position
        return tokens[:, :limit], mask[:, :limit], roles[:, :limit]

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
    frozen_layers: int = 0,
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
        frozen_layers=frozen_layers,
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


def through(layers: Iterable[nn.Module], states: Tensor, mask: Tensor) -> Tensor:
    """(B, T, C) after these layers of an encoder built like BERT."""
    seen = (mask != 0)[:, None, None]  # (B, 1, 1, T)
    for layer in layers:
        output = layer(states, seen)
        states = output[0] if isinstance(output, tuple) else output  # a tuple before transformers 5
    return states


def keep_frozen_states(
    network: ComparatorNetwork, inputs: Inputs, *, progress: Progress = no_progress
) -> Inputs:
    """The same dialogues with what the network's frozen layers make of them, if it has any."""
    if not network.frozen:
        return inputs
    states = np.empty((len(inputs.tokens), network.dim), np.float16)
    n_done = 0
    with torch.inference_mode(), autocast(network.device):
        for rows in cut_by_tokens(inputs.lengths, 8192):
            ids, mask, _ = network.to_device(inputs, rows)
            of_rows = network.frozen_states(ids, mask).half().cpu().numpy()
            for place, row in enumerate(rows):
                begin, end = inputs.bounds[row], inputs.bounds[row + 1]
                states[begin:end] = of_rows[place, : end - begin]
            n_done += len(rows)
            progress("reading with the frozen layers", n_done, len(inputs))
    return replace(inputs, states=states)


def _lower_part(encoder: Any, n_layers: int) -> tuple[nn.Module, ...]:
    """The encoder's embeddings and its lowest layers, for an encoder built like BERT."""
    if not n_layers:
        return ()
    layers = getattr(getattr(encoder, "encoder", None), "layer", None)
    kind = encoder.config.model_type
    if layers is None or kind not in _LIKE_BERT:
        raise ConfigError(
            "the lower layers of this encoder cannot be frozen",
            problems=[f"frozen_layers: needs one of {', '.join(_LIKE_BERT)}, found {kind}"],
        )
    if n_layers >= len(layers):
        raise ConfigError(
            "nothing of the encoder would be trained",
            problems=[f"frozen_layers should be below {len(layers)}, its number of layers, found {n_layers}"],
        )
    return (encoder.embeddings, *layers[:n_layers])


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 where the GPU, or the processor, multiplies it itself."""
    able = torch.cuda.is_bf16_supported() if device.type == "cuda" else has_bfloat16()
    return torch.autocast(device.type, torch.bfloat16, enabled=able)
