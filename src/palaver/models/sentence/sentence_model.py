"""What the three sentence models share: words to numbers, batches of like length, and a small file format.

A model is a folder: `config.json`, `words.txt` (a word a line, its number is the line) and
`model.safetensors`. Matrices are kept as one byte a number with a scale for each row, which costs a cosine
in the third decimal at most and makes a model of four million numbers four megabytes.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from palaver.errors import DataError, UserError, nearest
from palaver.files import check_writable, write_atomically
from palaver.text.words import words

PAD, UNKNOWN = 0, 1
"""The first two numbers of every `Words`."""
FORMAT = 1
_SCALE = ".scale"
Vectors = NDArray[np.float32]


class Words:
    """A closed list of words; 0 is padding, 1 stands for all others."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known = tuple(dict.fromkeys(known))
        self.numbers = {word: n for n, word in enumerate(self.known, 2)}

    def __len__(self) -> int:
        return len(self.known) + 2

    def encode(self, text: str, limit: int = 0) -> list[int]:
        """The numbers of the words of `text`, at least one, at most `limit`."""
        numbers = [self.numbers.get(word, UNKNOWN) for word in words(text)]
        if limit:
            numbers = numbers[:limit]
        return numbers or [UNKNOWN]


class SentenceModel(nn.Module, ABC):
    """A network from the words of a sentence to one vector. Subclasses fill in `vectors`."""

    kind: ClassVar[str]
    config_class: ClassVar[type]
    config: Any
    words: Words
    trained: dict[str, Any]
    """What it was trained on, as `config.json` tells it."""

    def __init__(self, config: Any, words: Words) -> None:
        super().__init__()
        self.config, self.words, self.trained = config, words, {}

    @abstractmethod
    def vectors(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """(B, T) padded numbers of words, (B,) how many -> (B, D)."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], batch_size: int = 64) -> Vectors:
        """One row per text; texts of like length share a batch."""
        self.eval()
        ids = [self.words.encode(text, limit=256) for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        vectors: Vectors | None = None
        for begin in range(0, len(order), batch_size):
            part = order[begin : begin + batch_size]
            batch, lengths = padded([ids[i] for i in part], self.device)
            rows = self.vectors(batch, lengths).float().cpu().numpy()  # (B, D)
            if vectors is None:
                vectors = np.empty((len(texts), rows.shape[1]), dtype=np.float32)
            vectors[part] = rows
        return vectors if vectors is not None else np.empty((0, 0), dtype=np.float32)

    def kept(self) -> dict[str, Tensor]:
        """What is saved: all of the state, unless a part serves training alone."""
        return self.state_dict()

    def save(self, folder: Path, trained: Mapping[str, Any] | None = None) -> None:
        """Write the folder; each file takes its name only when it is whole."""
        check_writable(folder)
        said = {"format": FORMAT, "model": self.kind, **dataclasses.asdict(self.config)}
        with write_atomically(folder / "words.txt") as file:
            file.writelines(f"{word}\n" for word in self.words.known)
        with write_atomically(folder / "model.safetensors", "wb") as file:
            file.write(save(pack(self.kept())))
        with write_atomically(folder / "config.json") as file:
            json.dump({**said, "trained": dict(trained or self.trained)}, file, indent=1, ensure_ascii=False)
            file.write("\n")

    @classmethod
    def load(cls, folder: Path, *, device: str = "cpu") -> Self:
        """The model in `folder`, ready to encode."""
        said = _config(folder)
        trained = said.pop("trained", {})
        if said.pop("model", None) != cls.kind:
            raise DataError(f"{folder} does not hold a {cls.kind} model")
        if said.pop("format", None) != FORMAT:
            raise DataError(f"{folder} was written by another version of Palaver")
        names = [f.name for f in dataclasses.fields(cls.config_class)]
        unknown = [f"{name!r} is unknown{nearest(name, names)}" for name in said if name not in names]
        if unknown:
            raise DataError(f"{folder / 'config.json'} cannot be used", "", unknown)
        try:
            lines = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
            weights = unpack(load_file(folder / "model.safetensors"))
        except (OSError, SafetensorError) as error:
            raise DataError(f"the model in {folder} is damaged or not whole: {error}") from None
        model = cls(cls.config_class(**said), Words(lines))
        model.trained = dict(trained)
        wanted = model.kept()
        wrong = [n for n in wanted if n not in weights or weights[n].shape != wanted[n].shape]
        if wrong or set(weights) - set(wanted):
            other = sorted(set(weights) - set(wanted))
            raise DataError(
                f"the weights in {folder} are not those of this model",
                "",
                [f"{n}: missing, or of another shape" for n in wrong] + [f"{n}: not expected" for n in other],
            )
        model.load_state_dict(weights, strict=False)
        return model.to(device).eval()


def _config(folder: Path) -> dict[str, Any]:
    try:
        said = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"there is no sentence model in {folder}: {error}",
            "expected config.json, words.txt and model.safetensors",
        ) from None
    if not isinstance(said, dict):
        raise DataError(f"{folder / 'config.json'} should hold an object")
    return said


def load_sentence_model(folder: Path, *, device: str = "cpu") -> SentenceModel:
    """Whichever of the three models `folder` holds."""
    from palaver.models.sentence.infersent import InferSent
    from palaver.models.sentence.sent2vec import Sent2Vec
    from palaver.models.sentence.skipthought import SkipThought

    kinds: dict[str, type[SentenceModel]] = {c.kind: c for c in (Sent2Vec, SkipThought, InferSent)}
    kind = _config(folder).get("model")
    if kind not in kinds:
        raise UserError(f"{folder} holds a model {kind!r}", f"known: {', '.join(kinds)}")
    return kinds[kind].load(folder, device=device)


def padded(ids: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """(B, T) filled up with PAD, and (B,) lengths (on the CPU, where packing wants them)."""
    lengths = torch.tensor([len(row) for row in ids])
    batch = np.zeros((len(ids), int(lengths.max())), dtype=np.int64)
    for row, numbers in zip(batch, ids, strict=True):
        row[: len(numbers)] = numbers
    return torch.from_numpy(batch).to(device), lengths


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 and a scale per row, all else in half precision."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        weight = weight.detach().float().cpu()
        if weight.ndim != 2:
            packed[name] = weight.half()
            continue
        scale = (weight.abs().amax(dim=1) / 127).clamp(min=1e-7).half().float()  # (R,)
        packed[name] = (weight / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        packed[name + _SCALE] = scale
    return packed


def unpack(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights again in single precision."""
    unpacked = {}
    for name, weight in stored.items():
        if not name.endswith(_SCALE):
            scale = stored.get(name + _SCALE)
            unpacked[name] = weight.float() if scale is None else weight.float() * scale[:, None]
    return unpacked
