"""Vectors on disk by (encoder signature, hash of the text): each distinct text is encoded once, ever.

One file per encoder, only ever appended to: a line of JSON, then records of equal size (hash of the text,
vector, check sum). A record that was cut short by a kill, and all after it, are cut off at the next opening.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from palaver.artefacts import lock_file
from palaver.engine import Engine, Recipe, map_shards
from palaver.errors import DataError, UserError
from palaver.files import cache_home
from palaver.models.encoders.encoder import Encoder, Vectors, checked
from palaver.progress import Progress, no_progress

_HASH = 16
_CHUNK = 512
"""Texts that are encoded before they are put on disk."""


@dataclass
class TextVectors:
    """The vectors of some texts and what it took."""

    vectors: dict[str, Vectors]
    n_new: int
    """Texts that were not on disk and had to be encoded."""
    encoder_seconds: float


def cache_folder() -> Path:
    """Where vectors are kept unless told otherwise."""
    return cache_home() / "vectors"


def text_hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=_HASH).digest()


class _Encoding:
    """Encodes texts, in whichever process it is, and takes the time."""

    def __init__(self, recipe: Recipe[Encoder]) -> None:
        self.recipe = recipe

    def __call__(self, texts: list[str]) -> tuple[Any, float]:
        encoder = self.recipe.model
        began = time.perf_counter()
        encoded = encoder.encode(list(texts))
        return encoded, time.perf_counter() - began


def encode_texts(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    folder: Path | None = None,
    engine: Engine | str = "local",
    opener: Callable[[], Encoder] | None = None,
    progress: Progress = no_progress,
) -> TextVectors:
    """A vector for each distinct text; what `folder` holds is not encoded again, new ones go there.

    Workers of an `engine` open the encoder by `opener`; without one it is sent to them.
    """
    distinct = list(dict.fromkeys(texts))
    store = Store(folder, encoder) if folder is not None and encoder.signature else None
    known = store.read() if store is not None else {}
    hashes = {text: text_hash(text) for text in distinct}
    missing = [text for text in distinct if hashes[text] not in known]
    missing.sort(key=len)  # texts of like length share a batch
    size = len(next(iter(known.values()))) if known else None
    seconds = 0.0
    parts = [missing[begin : begin + _CHUNK] for begin in range(0, len(missing), _CHUNK)]
    work = _Encoding(Recipe.of(encoder, opener))
    n_done = 0
    for part, (encoded, spent) in zip(
        parts, map_shards(work, parts, engine=engine, wants_gpu=True), strict=True
    ):
        seconds += spent
        n_done += len(part)
        rows = checked(encoded, part, encoder.name, size)
        size = rows.shape[1]
        if store is not None:
            store.append([hashes[text] for text in part], rows)
        known.update(zip((hashes[text] for text in part), rows, strict=True))
        progress(encoder.name, n_done, len(missing))
    return TextVectors({text: known[hashes[text]] for text in distinct}, len(missing), seconds)


class Store:
    """The file of one encoder."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        slug = re.sub(r"[^a-z0-9]+", "-", encoder.name.lower()).strip("-")[:40]
        self.path = folder / f"{slug or 'encoder'}-{encoder.signature}.vectors"
        self._signature = encoder.signature
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"vectors cannot be kept in {folder}: {error.strerror or error}",
                "use --cache FOLDER or --no-cache",
            ) from None

    def read(self) -> dict[bytes, Vectors]:
        """Hash of a text -> its vector. What is damaged at the end is cut off."""
        if not self.path.is_file():
            return {}
        with self._locked("rb+") as file:
            head = file.readline()
            size = self._size(head)
            if size is None:
                file.seek(0)
                file.truncate()
                return {}
            record = _HASH + 4 * size + 4
            data = file.read()
            vectors: dict[bytes, Vectors] = {}
            good = 0
            for begin in range(0, len(data) - record + 1, record):
                body = data[begin : begin + record - 4]
                if zlib.crc32(body).to_bytes(4, "little") != data[begin + record - 4 : begin + record]:
                    break
                vectors[body[:_HASH]] = np.frombuffer(body, dtype="<f4", offset=_HASH)
                good = begin + record
            if good < len(data):
                file.truncate(len(head) + good)
        return vectors

    def append(self, hashes: Sequence[bytes], rows: Vectors) -> None:
        """Add records with one write, so that a kill leaves at most one of them torn."""
        records = []
        for key, row in zip(hashes, rows, strict=True):
            body = key + row.astype("<f4").tobytes()
            records.append(body + zlib.crc32(body).to_bytes(4, "little"))
        with self._locked("ab") as file:
            if file.tell() == 0:
                head = {"format": "palaver-vectors-1", "signature": self._signature, "size": rows.shape[1]}
                file.write((json.dumps(head) + "\n").encode())
            file.write(b"".join(records))

    def _size(self, head: bytes) -> int | None:
        """Numbers of a vector, or nothing where the first line itself was cut short."""
        if not head.endswith(b"\n"):
            return None
        try:
            fields = json.loads(head)
            if fields["format"] == "palaver-vectors-1" and fields["signature"] == self._signature:
                return int(fields["size"])
        except (ValueError, KeyError, TypeError):
            pass
        raise DataError(
            f"{self.path} is not a file of vectors of this encoder", "remove it, or use --cache FOLDER"
        )

    @contextlib.contextmanager
    def _locked(self, mode: str) -> Iterator[IO[bytes]]:
        """The file, for this process alone where the system can do that."""
        try:
            with open(self.path, mode) as file:
                lock_file(file, wait=True)
                if mode == "ab":
                    file.seek(0, os.SEEK_END)
                yield file
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be used: {error.strerror or error}", "use --cache FOLDER or --no-cache"
            ) from None
