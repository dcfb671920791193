"""What an encoder is, and the checks on what it gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError, require
from palaver.registry import Named

Vectors = NDArray[np.float32]
Encode = Callable[[list[str]], Any]
"""(n texts) -> (n, d)."""


class TokenVectors(NamedTuple):
    """The tokens of one text."""

    ids: NDArray[np.int64]  # (T,)
    vectors: Vectors  # (T, C)
    is_text: NDArray[np.bool_]
    """(T,) False for the marks that a model puts around a text."""
    is_cut: bool
    """Whether the text was longer than the encoder reads."""


@dataclass(frozen=True, repr=False)
class Encoder(Named):
    """A function from texts to vectors with its name and where it comes from."""

    name: str
    signature: str
    """Changes whenever the vectors would; keys the vectors kept on disk. Empty: they are not kept."""
    provenance: str
    """Said beside every row of figures: whose weights, from which file, trained by whom."""
    encode: Encode
    tokens: Callable[[list[str]], list[TokenVectors]] | None = None
    """Vectors of each token, where the encoder has such."""


@dataclass(frozen=True)
class Places:
    """Where encoders look for files, on what they run, and how much of a text they read."""

    data: Path | None = None
    device: str = "cpu"
    """`auto`, `cpu`, `cuda` …, see `choose_device`."""
    max_tokens: int = 256
    """Of a longer text a Transformer reads this much."""
    keep_end: bool = False
    """Read the end of a long text, which matters in a history, and not its beginning."""
    batch_size: int = 32
    half: bool = False
    """Compute a BERT in bfloat16 where the processor has it: twice as fast, cosines to three digits."""

    def folders(self) -> tuple[Path, ...]:
        """Where vectors and sentences may lie: the folder given, or PALAVER_DATA; `sentences` in it."""
        named = os.environ.get("PALAVER_DATA")
        root = self.data
        if root is None and named:
            root = Path(named).expanduser()
        if root is None:
            return ()
        return tuple(folder for folder in (root, root / "sentences") if folder.is_dir())

    def torch_device(self) -> str:
        """The device, chosen and checked."""
        require("torch", "models")
        from palaver.models.devices import choose_device

        return str(choose_device(self.device))


Opener = Callable[[list[str], Places], Encoder]


def batches_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Places of texts of like length, the longest first; a padded batch has about `max_tokens` at most."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def remember(encode: Encode, most: int = 32_768) -> Encode:
    """The same encoder, which does not encode again what it has encoded lately: up to `most` texts."""
    known: dict[str, Any] = {}

    def encode_new(texts: list[str]) -> Any:
        vectors = {text: known[text] for text in texts if text in known}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            encoded = np.asarray(encode(new), dtype=np.float32)
            if encoded.ndim != 2 or len(encoded) != len(new):
                return encoded  # whoever asked says what is wrong with it
            of_new = dict(zip(new, encoded, strict=True))
            vectors |= of_new
            if len(known) + len(new) > most:
                known.clear()
            known.update(islice(of_new.items(), most))
        return np.stack([vectors[text] for text in texts])

    return encode_new


def checked(given: Any, texts: Sequence[str], name: str, size: int | None = None) -> Vectors:
    """What the encoder gave as an (n, d) array, or what is wrong with it."""
    wanted = f"expected an array of {len(texts)} rows, one per text"
    try:
        array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise UserError(f"{name} gave vectors of different sizes, or no numbers: {error}", wanted) from None
    if array.dtype == object:
        raise UserError(f"{name} gave vectors of different sizes, or no numbers", wanted)
    if array.ndim != 2:
        raise UserError(f"{name} gave an array of shape {array.shape}", wanted)
    if len(array) != len(texts):
        raise UserError(f"{name} gave {len(array)} vectors for {len(texts)} texts", wanted)
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"{name} gave {array.dtype} where numbers were expected", wanted)
    if array.shape[1] == 0:
        raise UserError(f"{name} gave vectors without any numbers", wanted)
    if size is not None and array.shape[1] != size:
        raise UserError(
            f"{name} gave vectors of {array.shape[1]} numbers, before it gave {size}",
            "an encoder's vectors must all be of one size; if it was changed, use --no-cache",
        )
    array = array.astype(np.float32, copy=False)
    wrong = ~np.isfinite(array).all(axis=1)
    if wrong.any():
        example = texts[int(np.argmax(wrong))]
        raise UserError(
            f"{name} gave numbers that are not finite (NaN or infinity) for {int(wrong.sum())} of "
            f"{len(texts)} texts",
            f"the first: {example[:80]!r}",
        )
    return array
