"""How likely the language model finds the system's words before it has learnt anything from ratings.

    python experiments/comparator/base_likelihoods.py PREPARED.npz --base BASE --out OUT

PREPARED is what language_model_data.py wrote. Writes base.npz: for every dialogue of every part the mean
log-likelihood of the system's tokens, of its least likely turn and of its last one, the same of all when each
of its turns stands alone, and their number. Seconds on a GPU; it needs torch, transformers and numpy only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from language_model import Trainer  # noqa: E402
from language_model_data import PARTS  # noqa: E402

from palaver.comparator.language_model import (  # noqa: E402
    SYSTEM,
    TokenRows,
    cut_by_tokens,
    open_base,
)


def turns_alone(rows: TokenRows) -> tuple[TokenRows, Any]:
    """Every turn of the system as a row of its own, and the dialogue it comes from."""
    begins = np.flatnonzero(np.diff(rows.roles, prepend=-1) != 0)
    begins = np.unique(np.concatenate([begins, rows.bounds[:-1]]))
    ends = np.append(begins[1:], len(rows.tokens))
    mine = np.flatnonzero((rows.roles[begins] == SYSTEM) & (ends - begins > 1))
    of_dialogue = np.searchsorted(rows.bounds, begins[mine], side="right") - 1
    lengths = ends[mine] - begins[mine]
    places = np.concatenate([np.arange(b, e) for b, e in zip(begins[mine], ends[mine], strict=True)])
    return TokenRows(rows.tokens[places], rows.roles[places], np.cumsum([0, *lengths])), of_dialogue


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=int, default=8192, help="tokens of a pass")
    parser.add_argument("--first", type=int, help="dialogues of each part, for a trial")
    given = parser.parse_args()
    from plain_llama import PlainLlama, reply_likelihoods

    trainer = Trainer(SimpleNamespace(prepared=given.prepared))  # type: ignore[arg-type]
    torch = trainer.torch
    base, _ = open_base(given.base, 30)
    network = PlainLlama(base, trainer.device, trainer.half)
    began = time.time()

    def measure(rows: TokenRows) -> Any:
        values = np.zeros((len(rows), 3), "f4")
        for piece in cut_by_tokens(rows.lengths, given.budget):
            tokens, roles = rows.padded(piece)
            told = np.flatnonzero(roles[:, 1:] == SYSTEM)
            tokens, roles, told = (torch.from_numpy(a).to(trainer.device) for a in (tokens, roles, told))
            if not len(told):
                continue
            hidden = network.states(tokens, network.weights)
            likelihoods = reply_likelihoods(hidden, network.embedding, tokens, roles, told)
            values[piece] = likelihoods.float().cpu().numpy()
        return values

    written: dict[str, Any] = {}
    with torch.inference_mode():
        for part in PARTS:
            bounds = trainer.arrays[f"{part}.bounds"]
            bounds = bounds[: given.first + 1] if given.first else bounds
            tokens, roles = (trainer.arrays[f"{part}.{kind}"][: bounds[-1]] for kind in ("tokens", "roles"))
            rows = TokenRows(tokens, roles, bounds)
            alone, of_dialogue = turns_alone(rows)
            counts = (alone.lengths - 1).astype(float)
            sums = np.bincount(of_dialogue, measure(alone)[:, 0] * counts, len(rows))
            n_tokens = np.bincount(of_dialogue, counts, len(rows))
            whole = measure(rows)
            written[part] = np.column_stack([whole, sums / np.maximum(n_tokens, 1), n_tokens]).astype("f4")
            print(part, written[part].mean(0).round(3), f"{time.time() - began:.0f} s", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.out / "base.npz", **written)
    machine = torch.cuda.get_device_name() if trainer.device.type == "cuda" else "CPU"
    about = {
        "command": "python experiments/comparator/base_likelihoods.py PREPARED.npz --base BASE --out OUT",
        "machine": f"{machine}, torch {torch.__version__}",
        "seconds": round(time.time() - began, 1),
    }
    (given.out / "base.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
