"""Sentence encoders of the probes' paper that have weights of their own: Sent2Vec, SkipThought, InferSent.

A model is a folder: `config.json`, `words.txt` (a word a line, its number is the line) and
`model.safetensors`. Matrices are kept as one byte a number with a scale for each row, which costs a cosine
in the third decimal at most and makes a model of four million numbers four megabytes. What serves training
alone is in experiments/probes.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from palaver.errors import DataError
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

    def encode(self, text: str, limit: int | None = None) -> list[int]:
        """The numbers of the words of `text`, at least one, at most `limit`."""
        numbers = [self.numbers.get(word, UNKNOWN) for word in words(text)[:limit]]
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

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], batch_size: int = 64) -> Vectors:
        """One row per text; texts of like length share a batch."""
        self.eval()
        device = next(self.parameters()).device
        ids = [self.words.encode(text, limit=256) for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        vectors = np.empty((len(texts), 0), dtype=np.float32)
        for begin in range(0, len(order), batch_size):
            part = order[begin : begin + batch_size]
            batch, lengths = padded([ids[i] for i in part], device)
            rows = self.vectors(batch, lengths).float().cpu().numpy()  # (B, D)
            if not begin:
                vectors = np.empty((len(texts), rows.shape[1]), dtype=np.float32)
            vectors[part] = rows
        return vectors

    def save(self, folder: Path, trained: Mapping[str, Any] | None = None) -> None:
        """Write the folder; each file takes its name only when it is whole."""
        check_writable(folder)
        config = {"format": FORMAT, "model": self.kind, **dataclasses.asdict(self.config)}
        with write_atomically(folder / "words.txt") as file:
            file.writelines(f"{word}\n" for word in self.words.known)
        with write_atomically(folder / "model.safetensors", "wb") as file:
            file.write(save(pack(self.state_dict())))
        with write_atomically(folder / "config.json") as file:
            json.dump(
                {**config, "trained": dict(trained or self.trained)}, file, indent=1, ensure_ascii=False
            )
            file.write("\n")

    @classmethod
    def load(cls, folder: Path, *, device: str = "cpu") -> Self:
        """The model in `folder`, ready to encode."""
        config = _read_config(folder)
        trained = config.pop("trained", {})
        kind = config.pop("model", None)
        if kind != cls.kind:
            raise DataError(
                f"{folder} holds the model {kind!r}, not {cls.kind!r}", f"give it as {kind}={folder}"
            )
        if config.pop("format", None) != FORMAT:
            raise DataError(f"{folder} was written by another version of Palaver")
        try:
            known = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
            model = cls(cls.config_class(**config), Words(known))
            model.load_state_dict(unpack(load_file(folder / "model.safetensors")))
        except (OSError, SafetensorError) as error:
            raise DataError(f"the model in {folder} is damaged or not whole: {error}") from None
        except (TypeError, RuntimeError) as error:  # unknown settings; weights of another shape
            raise DataError(f"the files in {folder} do not belong together: {error}") from None
        model.trained = dict(trained)
        return model.to(device).eval()


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"there is no sentence model in {folder}: {error}",
            "expected config.json, words.txt and model.safetensors",
        ) from None
    if not isinstance(config, dict):
        raise DataError(f"{folder / 'config.json'} should hold an object")
    return config


def padded(ids: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """(B, T) filled up with PAD, and (B,) lengths (on the CPU, where packing wants them)."""
    rows = [torch.tensor(row) for row in ids]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return batch.to(device), torch.tensor([len(row) for row in ids])


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


@dataclass(frozen=True)
class Sent2VecConfig:
    size: int = 100
    n_bigrams: int = 15_000


class Sent2Vec(SentenceModel):
    """A sentence is the average of the vectors of its words and bigrams.

    M. Pagliardini, P. Gupta, M. Jaggi: Unsupervised Learning of Sentence Embeddings using Compositional
    n-Gram Features. NAACL 2018. Here the most frequent bigrams have a vector of their own; the authors hash
    all of them.
    """

    kind: ClassVar[str] = "sent2vec"
    config_class: ClassVar[type] = Sent2VecConfig
    config: Sent2VecConfig
    pairs_high: Tensor
    pairs_low: Tensor

    def __init__(self, config: Sent2VecConfig, words: Words) -> None:
        super().__init__(config, words)
        self.unigrams = nn.Embedding(len(words), config.size, padding_idx=PAD)
        self.bigrams = nn.Embedding(config.n_bigrams + 1, config.size, padding_idx=0)
        # The two words of each bigram, sorted; zeros are unused. Their numbers are kept in two parts, since
        # half precision counts to 2048 only.
        self.register_buffer("pairs_high", torch.zeros(2 * config.n_bigrams))
        self.register_buffer("pairs_low", torch.zeros(2 * config.n_bigrams))

    @property
    def pairs(self) -> Tensor:
        """(n_bigrams, 2) words of each bigram."""
        return (self.pairs_high * 256 + self.pairs_low).long().reshape(-1, 2)

    def bigram_ids(self, ids: Tensor) -> Tensor:
        """(B, T) words -> (B, T-1) bigrams, 0 where a pair has no vector."""
        pairs = self.pairs
        keys = pairs[:, 0] * len(self.words) + pairs[:, 1]
        keys = torch.where(keys == 0, torch.iinfo(torch.int64).max, keys)
        wanted = ids[:, :-1] * len(self.words) + ids[:, 1:]  # (B, T-1)
        at = torch.searchsorted(keys, wanted.contiguous()).clamp(max=len(keys) - 1)
        return torch.where(keys[at] == wanted, at + 1, 0)

    def vectors(self, ids: Tensor, lengths: Tensor) -> Tensor:
        bigrams = self.bigram_ids(ids)
        ids = ids.masked_fill(ids == UNKNOWN, PAD)
        total = self.unigrams(ids).sum(1) + self.bigrams(bigrams).sum(1)  # (B, D)
        count = (ids != PAD).sum(1) + (bigrams != 0).sum(1)  # (B,)
        return total / count.clamp(min=1)[:, None]


@dataclass(frozen=True)
class SkipThoughtConfig:
    word_size: int = 100
    hidden: int = 600


class SkipThought(SentenceModel):
    """The last state of a GRU, trained to predict the sentences before and after.

    R. Kiros et al.: Skip-Thought Vectors. NIPS 2015, equations 1-8. The word vectors are GloVe's and stay as
    they are, so that words that the training text never had can be encoded too, which the authors reach by
    mapping word2vec into the space of the model (their section 2.2).
    """

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


@dataclass(frozen=True)
class InferSentConfig:
    word_size: int = 100
    hidden: int = 256
    """Of each direction; a sentence has twice as many numbers."""


class InferSent(SentenceModel):
    """The maximum over the states of a bidirectional LSTM, trained to tell what follows from what.

    A. Conneau et al.: Supervised Learning of Universal Sentence Representations from Natural Language
    Inference Data. EMNLP 2017, section 3. Word vectors are GloVe's and stay as they are.
    """

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


SENTENCE_MODELS: dict[str, type[SentenceModel]] = {
    model.kind: model for model in (Sent2Vec, SkipThought, InferSent)
}
