"""What all response models share: the call they answer, their configuration, the folder they are kept in.

A checkpoint folder holds `config.json`, `model.safetensors` and `tokenizer.json`, as with `transformers`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.artefacts import digest
from palaver.errors import ConfigError, DataError, UserError, explain_mistake, nearest
from palaver.files import check_writable, write_atomically
from palaver.models.turns import Frame
from palaver.text.vocabulary import PAD, Vocabulary

FORMAT = 1
Conditioning = Literal["none", "speaker", "personality"]
Size = Annotated[int, Field(ge=1)]
Score = Annotated[float, Field(ge=1, le=7)]


class TokenLoss(NamedTuple):
    """What a batch cost. Sums, so that batches of any size and on any number of processes add up."""

    loss: Tensor
    """What is back-propagated, with label smoothing."""
    nll: Tensor
    n_tokens: Tensor


@dataclass(frozen=True, kw_only=True)
class ResponderConfig:
    """What every response model is told. `speakers` are names; a speaker's id is the place in the list."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    model: ClassVar[str]
    vocab_size: Size
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    tied: bool = False
    max_context: Size = 50
    max_response: Size = 50
    max_knowledge: int = 0
    knowledge: bool = False
    conditioning: Conditioning = "none"
    speakers: tuple[str, ...] = ()
    ocean: dict[str, tuple[Score, Score, Score, Score, Score]] = field(default_factory=dict)
    """Personality models: the OCEAN scores of the speakers they were trained on, by name."""
    vocabulary: str = ""
    """`fingerprint` of the vocabulary it was trained with; another of equal size would fit, and babble."""
    history_turns: int = 0
    """How many turns before a response the model was taught to read; 0: all of them."""
    frame: ClassVar[Frame | None] = None
    """What stands around turns, for models that do not join them by `<sep>`."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """The configuration out of plain values, which may come from a damaged file."""
        names = [f.name for f in dataclasses.fields(cls)]
        try:
            config = TypeAdapter(cls).validate_json(json.dumps(values))  # of JSON, where lists are tuples
            wrong = config.contradictions()
        except ValidationError as error:
            wrong = [f"{m['loc'][0]}: {explain_mistake(m, names)}" for m in error.errors()]
        if wrong:
            count = "1 mistake" if len(wrong) == 1 else f"{len(wrong)} mistakes"
            raise ConfigError(f"the settings of {cls.model} have {count}:", problems=wrong)
        return config

    def contradictions(self) -> list[str]:
        """Values that do not go together."""
        if self.conditioning == "speaker" and not self.speakers:
            return ["conditioning on speakers needs their names in `speakers`"]
        return []

    def to_json(self) -> dict[str, Any]:
        """The content of `config.json`."""
        return {"format": FORMAT, "model": self.model, **dataclasses.asdict(self)}


class Responder(nn.Module, ABC):
    """A model of p(response | history, speaker or personality, knowledge). Subclasses fill in the network.

    `step` goes on from a state one token at a time for decoding; `forward` scores whole responses.
    """

    config: ResponderConfig
    config_class: ClassVar[type[ResponderConfig]]
    embed: nn.Embedding
    output: nn.Linear | None
    """None: the embeddings serve."""
    speaker: nn.Embedding
    personality: nn.Linear
    moving: ClassVar[tuple[str, ...]]
    """Fields of the decoder's state that differ between beams of one example."""
    takes_width: ClassVar[bool] = False
    """Whether `forward` is told how many tokens a row has at most, all its parts together."""

    def forward(
        self,
        context: Tensor,
        response: Tensor,
        *,
        knowledge: Tensor | None = None,
        speaker: Tensor | None = None,
        ocean: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> TokenLoss:
        """The cost of `response` (B, T): tokens, end mark, padding; no beginning mark."""
        memory = self.encode(context, knowledge)  # (B, S, …)
        features = self.features(memory, response, speaker=speaker, ocean=ocean)  # (B, T, C)
        wanted = response != PAD
        targets = response[wanted]  # (N,)
        logits = self.logits(features[wanted])  # (N, V): padding costs no multiplication with the vocabulary
        return token_loss(logits, targets, label_smoothing)

    @abstractmethod
    def encode(self, context: Tensor, knowledge: Tensor | None = None) -> Any:
        """What the decoder looks at. Does not depend on the speaker, so that many can share it."""

    @abstractmethod
    def features(
        self, memory: Any, response: Tensor, *, speaker: Tensor | None, ocean: Tensor | None
    ) -> Tensor:
        """Decoder outputs (B, T, C) that predict each token of `response` from those before it."""

    def logits(self, features: Tensor) -> Tensor:
        """(…, C) -> (…, V)."""
        return F.linear(features, self.embed.weight) if self.output is None else self.output(features)

    @abstractmethod
    def start(self, memory: Any, condition: Tensor | None = None) -> Any:
        """The state before the first token of a response; `condition` (B, C) is the vector of who speaks."""

    @abstractmethod
    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """One more token (B,) into `state`: logits (B, V) of the next, and the new state."""

    def merge(self) -> None:
        """Make ready to answer only. Weights that are kept apart for training are put together."""

    def rows_at_once(self, longest: int) -> int:
        """How many rows are decoded together if the longest text has so many tokens; a beam is a row."""
        return 8192 if self.device.type == "cuda" else 256

    def open_vocabulary(self, folder: Path) -> Vocabulary:
        """The vocabulary of the model in `folder`."""
        return Vocabulary.load(folder)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def compute_dtype(self) -> torch.dtype:
        """What matrix products are done in: autocast's type where that is on."""
        kind = self.device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.dtype

    def condition(self, speaker: Tensor | None, ocean: Tensor | None) -> Tensor | None:
        """The vector (B, C) of who speaks; OCEAN scores go from [1, 7] to [-1, 1] (Xing & Fernández 2018).

        A model says at once that it was not told who speaks, not by a wrong shape further down.
        """
        kind = self.config.conditioning
        if kind == "speaker":
            if speaker is None:
                raise UserError("this model needs a speaker", f"known: {', '.join(self.config.speakers)}")
            return self.speaker(speaker)
        if kind == "personality":
            if ocean is None:
                raise UserError("this model needs a personality", "give five OCEAN scores from 1 to 7")
            return self.personality((ocean.to(self.personality.weight.dtype) - 4) / 3)
        if speaker is not None or ocean is not None:
            raise UserError("this model was trained without speakers and personalities")
        return None

    def average_condition(self, n: int) -> Tensor | None:
        """The vectors (n, C) of nobody in particular: the mean of all speakers, or scores in the middle."""
        if self.config.conditioning == "speaker":
            return self.speaker.weight.mean(0).expand(n, -1)
        if self.config.conditioning == "personality":
            return self.personality.weight.new_zeros(n, self.personality.out_features)
        return None

    def weights(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return self.state_dict()

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """What a checkpoint kept. Raises `RuntimeError` where names or shapes do not fit."""
        self.load_state_dict(weights)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors`; what was there stays whole until both are written."""
        folder = Path(folder)
        check_writable(folder)
        weights = {name: w.detach().cpu().contiguous() for name, w in self.weights().items()}
        with write_atomically(folder / "model.safetensors", "wb") as file:
            file.write(save(weights, metadata={"format": "pt"}))
            file.flush()
            os.fsync(file.fileno())
            with write_atomically(folder / "config.json") as text:
                json.dump(self.config.to_json(), text, indent=1, ensure_ascii=False)
                text.write("\n")

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
    ) -> Self:
        """The model in `folder`, ready to answer (in evaluation mode), in float32 unless told otherwise."""
        folder = Path(folder)
        model = build(read_config(folder))
        if not isinstance(model, cls):
            raise DataError(f"{folder} holds a {model.config.model} model, not a {cls.config_class.model}")
        path = folder / "model.safetensors"
        if not path.is_file():
            raise DataError(f"there are no weights in {folder}", "expected model.safetensors")
        _check_access(path)  # safetensors says of a file that may not be read that it is not there
        try:
            weights = load_file(path)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} is damaged or cut short: {error}") from None
        wrong = [f"{name} holds {w.dtype}" for name, w in weights.items() if not w.is_floating_point()]
        if not wrong:
            try:
                model.load_weights(weights)
            except RuntimeError as error:
                wrong = [line.strip() for line in str(error).splitlines()[1:]]
        if wrong:
            raise DataError(f"{path} does not fit its config.json:", problems=wrong[:10])
        broken = [name for name, w in weights.items() if not w.isfinite().all()]
        if broken:
            raise DataError(
                f"{path} holds weights that are no numbers: {', '.join(broken[:3])}",
                "the training went wrong, or the file is damaged; use another checkpoint",
            )
        return model.to(device=device, dtype=dtype or torch.float32).eval()


def token_loss(logits: Tensor, targets: Tensor, label_smoothing: float) -> TokenLoss:
    """Cross-entropy summed over tokens, in float32 where the logits are less exact."""
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    nll = F.cross_entropy(exact, targets, reduction="sum")
    loss = nll
    if label_smoothing:
        loss = F.cross_entropy(exact, targets, reduction="sum", label_smoothing=label_smoothing)
    return TokenLoss(loss, nll.detach(), torch.tensor(len(targets), device=targets.device))


def _classes() -> dict[str, type[Responder]]:
    from palaver.models.causal import CausalResponder
    from palaver.models.seq2seq import Seq2Seq
    from palaver.models.transformer import KnowledgeTransformer

    return {cls.config_class.model: cls for cls in (Seq2Seq, KnowledgeTransformer, CausalResponder)}


def build(config: dict[str, Any]) -> Responder:
    """A new model from `{"model": "seq2seq" | "knowledge-transformer" | "causal", …}`.

    Its weights are random, except for those of a language model that has an adapter.
    """
    classes = _classes()
    kind = config.get("model", "")
    if not isinstance(kind, str) or kind not in classes:
        known = ", ".join(classes)
        raise ConfigError(f"there is no model {kind!r}{nearest(str(kind), list(classes))}", f"known: {known}")
    cls = classes[kind]
    settings = cls.config_class.parse({k: v for k, v in config.items() if k not in ("model", "format")})
    try:
        return cls(settings)
    except (RuntimeError, TypeError) as error:  # torch has no error of its own for memory on the CPU
        if not any(word in str(error) for word in ("memory", "Overflow", "overflow")):
            raise
        raise UserError(
            "there is not enough memory for a model of this size", "are all sizes of the model meant so?"
        ) from None


def _check_access(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def fingerprint(vocabulary: Vocabulary) -> str:
    """A short hash of what every id of a vocabulary stands for, whatever wrote its file."""
    words = vocabulary.decode_batch([i] for i in range(len(vocabulary)))
    return digest(b"".join(word.encode() + b"\0" for word in words))


def load(
    folder: str | Path, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
) -> tuple[Responder, Vocabulary]:
    """A whole checkpoint: the model, ready to answer, and its vocabulary."""
    folder = Path(folder)
    model = Responder.from_pretrained(folder, device=device, dtype=dtype)
    vocabulary = model.open_vocabulary(folder)
    if len(vocabulary) != model.config.vocab_size:
        raise DataError(
            f"{folder}: the vocabulary has {len(vocabulary)} tokens, the model expects "
            f"{model.config.vocab_size}",
            "tokenizer.json and model.safetensors come from different runs",
        )
    if model.config.vocabulary and model.config.vocabulary != fingerprint(vocabulary):
        raise DataError(
            f"{folder}: tokenizer.json is not the vocabulary that the model was trained with",
            "tokenizer.json and model.safetensors come from different runs",
        )
    return model, vocabulary


def read_config(folder: Path) -> dict[str, Any]:
    """The content of `config.json`, which must be of this version of Palaver."""
    path = folder / "config.json"
    if not folder.is_dir():
        siblings = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
        raise DataError(f"there is no checkpoint folder {folder}{nearest(folder.name, siblings)}")
    if not path.is_file():
        best = folder / "best"
        is_run = (best / "config.json").is_file()
        hint = f"it is a run: {best} is one" if is_run else "expected config.json and model.safetensors in it"
        raise DataError(f"{folder} is not a checkpoint", hint)
    _check_access(path)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged or cut short: {error}") from None
    if not isinstance(config, dict) or "format" not in config:
        raise DataError(f"{path} was not written by Palaver", "for other models use a systems file")
    if config["format"] != FORMAT:
        raise DataError(
            f"{folder} is in checkpoint format {config['format']}, this version of Palaver reads {FORMAT}",
            "use the version that wrote it, or train again",
        )
    return config
