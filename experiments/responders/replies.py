"""Testing a row of Topical-Chat's tables: what true responses cost, and replies by beam search.

Every piece is written as soon as it is there, and what is there is not done again.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from graphs import Examples
from torch.nn import functional as F

from palaver.generation.decode import Decoding, decode
from palaver.models.pretrained import Responder, load
from palaver.text.vocabulary import PAD
from palaver.training.prepare import Split
from palaver.training.store import Store

BATCH = 64
PIECE = 2048
"""Replies that are decoded before they are written."""


@torch.inference_mode()
def score(model: Responder, examples: Examples) -> np.ndarray:
    """What each true response costs in nats. (N,)"""
    order = np.lexsort((examples.lengths[:, 1],))
    costs = torch.zeros(len(order), dtype=torch.float64, device=model.device)
    for begin in range(0, len(order), BATCH):
        rows = order[begin : begin + BATCH]
        c, k, r = examples.widths(rows)
        at = torch.from_numpy(rows).to(model.device)
        response = examples.response[at, :r].long()
        memory = model.encode(
            examples.context[at, :c].long(), examples.knowledge[at, :k].long() if k else None
        )
        logits = model.logits(model.features(memory, response, speaker=None, ocean=None))
        nll = F.cross_entropy(
            logits.flatten(0, 1).float(), response.flatten(), reduction="none", ignore_index=PAD
        )
        costs[at] = nll.view(response.shape).sum(1, dtype=torch.float64)
    return costs.cpu().numpy()


def test(name: str, folder: Path, stores: dict[str, Store], out: Path, limit: int) -> None:
    """Score and decode each of the `stores` with the model in `folder`."""
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, _ = load(folder, device=device)
    how = Decoding(method="beam", beam_size=5, max_length=model.config.max_response)
    path = out / f"{name}.npz"
    arrays: dict[str, np.ndarray] = dict(np.load(path)) if path.is_file() else {}
    for key, store in stores.items():
        if f"{key}.seconds" in arrays:
            continue
        began = time.perf_counter()
        ids = np.arange(min(limit or len(store), len(store)))
        examples = Examples(Split(store, ids), model.config, device)
        arrays[f"{key}.nll"] = score(model, examples)
        tokens = arrays.get(f"{key}.tokens", np.empty(0, np.uint16))
        lengths = arrays.get(f"{key}.lengths", np.empty(0, np.int32))
        for begin in range(len(lengths), len(ids), PIECE):
            some = ids[begin : begin + PIECE]
            contexts = [store.context[i][-model.config.max_context :].tolist() for i in some]
            knowledge = [store.knowledge[i].tolist() for i in some] if model.config.knowledge else None
            replies = decode(model, contexts, how, knowledge=knowledge, batch_size=256)
            tokens = np.concatenate([tokens, *(np.array(r.tokens, np.uint16) for r in replies)])
            lengths = np.concatenate([lengths, np.array([len(r.tokens) for r in replies], np.int32)])
            arrays |= {f"{key}.tokens": tokens, f"{key}.lengths": lengths}
            _write(path, arrays)
        arrays[f"{key}.seconds"] = np.array(time.perf_counter() - began)
        _write(path, arrays)
        print(f"{name} {key}: tested in {arrays[f'{key}.seconds']:.0f} s", flush=True)


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    partial = path.with_suffix(".part.npz")
    np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]  # its stub takes no other keywords
    partial.replace(path)
