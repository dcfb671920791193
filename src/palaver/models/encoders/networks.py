"""Sent2Vec, SkipThought and InferSent: the models trained here, or the authors' own weights.

Without an argument the model that comes along is used, where there is one; a folder is one that
experiments/probes/train.py made; anything else is a file of the authors:

- Sent2Vec: a .bin, read by their Python package sent2vec if that is installed; or text, a word (or two words
  joined by `_`) and its numbers a line, as exported from it.
- SkipThought: their folder with uni_skip.npz, bi_skip.npz, utable.npy, btable.npy and dictionary.txt.
- InferSent: infersent1.pkl or infersent2.pkl, and the word vectors it was trained with: `FILE,VECTORS`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from palaver.artefacts import digest, digest_files
from palaver.errors import DataError, UserError, require
from palaver.models.catalogue import missing_data, models_on
from palaver.models.encoders.averages import WordVectors, read_vectors
from palaver.models.encoders.encoder import Encoder, Places, Vectors
from palaver.text.words import words

_CASED = re.compile(r"n't|'\w+|\w+(?:-\w+)*|[^\w\s]")


def open_sent2vec(arguments: list[str], places: Places) -> Encoder:
    """`sent2vec`, `sent2vec=FOLDER`, or the authors' weights `sent2vec=FILE`."""
    path = _one_path("sent2vec", arguments)
    if path.is_dir():
        return _ours("sent2vec", path, arguments, places)
    if path.suffix == ".bin":
        return _official_bin(path)
    vectors = read_vectors(path)

    def encode(texts: list[str]) -> Vectors:
        rows = np.zeros((len(texts), vectors.table.shape[1]), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            single = words(text)
            at = [vectors.at[w] for w in (*single, *map("_".join, pairwise(single))) if w in vectors.at]
            if at:
                row[:] = vectors.table[at].mean(axis=0)
        return rows

    return Encoder(
        f"sent2vec={path.name}",
        digest("sent2vec-text", vectors.signature),
        f"exported vectors of Sent2Vec, {path.name} ({len(vectors.at):,} words and bigrams)",
        encode,
    )


def _official_bin(path: Path) -> Encoder:
    try:
        package = require("sent2vec", "probes")
    except UserError:
        raise UserError(
            f"{path.name} can only be read by the authors' Python package sent2vec, which is not installed",
            "install it from github.com/epfml/sent2vec, or export the vectors as text: a word and its "
            "numbers a line",
        ) from None
    model = package.Sent2vecModel()
    model.load_model(str(path))
    return Encoder(
        f"sent2vec={path.name}",
        digest("sent2vec-bin", digest_files([path])),
        f"the authors' weights {path.name}",
        lambda texts: model.embed_sentences([" ".join(words(text)) for text in texts]),
    )


def open_skipthought(arguments: list[str], places: Places) -> Encoder:
    """`skipthought`, `skipthought=FOLDER` (ours, or the authors')."""
    path = _one_path("skipthought", arguments)
    if not path.is_dir():
        raise UserError(
            f"there is no folder {path}", "expected a trained model, or the authors' uni_skip.npz … in it"
        )
    if (path / "uni_skip.npz").is_file():
        return _official_skipthought(path, places)
    return _ours("skipthought", path, arguments, places)


def _official_skipthought(folder: Path, places: Places) -> Encoder:
    """combine-skip: the unidirectional and the bidirectional vector, each of length 1, side by side."""
    torch = require("torch", "models")
    from palaver.models.sentence import official_gru

    names = ("dictionary.txt", "utable.npy", "btable.npy", "uni_skip.npz", "bi_skip.npz")
    missing = [f"no file {name}" for name in names if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{folder} does not hold the authors' model of SkipThought", "", missing)
    known = (folder / "dictionary.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    at = {word.strip(): n for n, word in enumerate(known) if word.strip()}
    try:
        tables = [
            np.load(folder / name, allow_pickle=False).astype(np.float32)
            for name in ("utable.npy", "btable.npy")
        ]
        with (
            np.load(folder / "uni_skip.npz", allow_pickle=False) as uni,
            np.load(folder / "bi_skip.npz", allow_pickle=False) as bi,
        ):
            forward = official_gru(uni), official_gru(bi)
            backward = official_gru(bi, "encoder_r")
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"the model in {folder} is damaged: {error}") from None

    def run(gru: Any, rows: Vectors) -> Vectors:
        with torch.inference_mode():
            last: Vectors = gru(torch.from_numpy(rows)[None])[1][0, 0].numpy()  # (H,)
        return last

    def encode(texts: list[str]) -> Vectors:
        thoughts = []
        unknown = at.get("UNK", 1)
        for text in texts:
            numbers = [at.get(word, unknown) for word in words(text)] or [unknown]
            uni = run(forward[0], tables[0][numbers])
            bi = np.concatenate(
                [run(forward[1], tables[1][numbers]), run(backward, tables[1][numbers[::-1]])]
            )
            thoughts.append(np.concatenate([v / max(float(np.linalg.norm(v)), 1e-12) for v in (uni, bi)]))
        return np.stack(thoughts)

    sign = digest("skipthought-official", digest_files(folder / name for name in names))
    return Encoder(
        f"skipthought={folder.name}", sign, f"the authors' weights in {folder.name} (combine-skip)", encode
    )


def open_infersent(arguments: list[str], places: Places) -> Encoder:
    """`infersent`, `infersent=FOLDER`, or the authors' weights and vectors, `infersent=FILE,VECTORS`."""
    if len(arguments) != 2:
        return _ours("infersent", _one_path("infersent", arguments), arguments, places)
    torch = require("torch", "models")
    from palaver.models.sentence import max_states, official_lstm

    path, vectors = Path(arguments[0]), read_vectors(Path(arguments[1]))
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)  # nothing in the file is executed
    except Exception as error:  # a damaged file may raise almost anything
        raise DataError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(stored, dict):
        raise DataError(f"{path} should hold a state dict, found {type(stored).__name__}")
    device = places.torch_device()
    network = official_lstm(stored).to(device)
    if network.input_size != vectors.table.shape[1]:
        raise UserError(
            f"InferSent takes word vectors of {network.input_size} numbers, {vectors.name} has "
            f"{vectors.table.shape[1]}",
            "version 1 was trained with glove.840B.300d, version 2 with fastText crawl-300d-2M",
        )

    def encode(texts: list[str]) -> Vectors:
        states = []
        for text in texts:  # cased, with marks of beginning and end, as the authors do
            tokens = ["<s>", *_CASED.findall(text.replace("n't", " n't")), "</s>"]
            numbers = [vectors.at[word] for word in tokens if word in vectors.at]
            rows = vectors.table[numbers] if numbers else np.zeros((1, network.input_size), dtype=np.float32)
            with torch.inference_mode():
                embedded = torch.from_numpy(rows)[None].to(device)  # (1, T, E)
                states.append(max_states(network, embedded, torch.tensor([len(rows)]))[0].cpu().numpy())
        return np.stack(states)

    sign = digest("infersent-official", digest_files([path]), vectors.signature)
    return Encoder(
        f"infersent={path.name}", sign, f"the authors' weights {path.name} over {vectors.name}", encode
    )


def _one_path(name: str, arguments: list[str]) -> Path:
    if len(arguments) > 1:
        raise UserError(f"{name} takes one file or folder", f"found: {', '.join(arguments)}")
    if arguments:
        path = Path(arguments[0]).expanduser()
        if not path.exists():
            raise UserError(f"{name}: there is no file or folder {path}")
        return path
    folders = models_on("encoders")
    if name not in folders:
        raise missing_data([name])
    return folders[name]


def _ours(name: str, folder: Path, arguments: list[str], places: Places) -> Encoder:
    require("torch", "models")
    from palaver.models.sentence import SENTENCE_MODELS

    model = SENTENCE_MODELS[name].load(folder, device=places.torch_device())
    templates = {
        "seed": "seed {}",
        "turns": "{:,} dialogue turns",
        "triples": "{:,} turns with their neighbours",
        "pairs": "{:,} inference pairs",
    }
    about = [text.format(model.trained[key]) for key, text in templates.items() if key in model.trained]
    content = digest_files(p for p in folder.iterdir() if p.is_file())
    origin = f"folder {folder.name}" if arguments else "comes with Palaver"
    return Encoder(
        name if not arguments else f"{name}={folder.name}",
        digest(name, content),
        f"trained here ({', '.join([*about, origin])}, digest {content[:12]})",
        model.encode,
    )


def stored_vectors() -> WordVectors | None:
    """GloVe's vectors as they lie, a byte a number, inside the InferSent that comes along."""
    folder = models_on("encoders").get("infersent")
    if folder is None:
        return None
    require("torch", "models")
    from palaver.models.sentence import InferSent

    model = InferSent.load(folder)
    table: Vectors = model.embedding.weight.detach().numpy()[2:]
    at = {word: n for n, word in enumerate(model.words.known)}
    name = "GloVe 6B, 100 numbers, as kept inside the InferSent that comes along"
    return WordVectors(name, at, table, digest("stored", digest_files(folder.glob("*.safetensors"))))
