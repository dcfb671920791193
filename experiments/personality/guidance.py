"""What guidance does to characters: docs/results/personality-guidance.json.

    python experiments/personality/guidance.py --data DATA --out docs/results/personality-guidance.json

The two small models that come with Palaver answer held-out utterances at several strengths of guidance:
`default-speaker` as each of its speakers, `default-personality` as 64 personalities drawn around those it was
trained on. Measured are how well its characters are told apart on unseen contexts, whether requested traits
show, and what it costs: how likely the replies are to SmolLM2 after their context, how long they are, and how
many differ. Needs DATA/dialogue and SmolLM2.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import measure  # type: ignore[import-not-found]
import prepare  # type: ignore[import-not-found]

from palaver.generation.checkpoint import CheckpointSystem
from palaver.generation.decode import Decoding
from palaver.models.catalogue import shipped_checkpoint
from palaver.models.likelihood import Reply, open_language_model
from palaver.personality.fidelity import measure_fidelity
from palaver.personality.pools import Choice
from palaver.personality.protocol import run_protocol
from palaver.personality.recogniser import load_recogniser
from palaver.personality.sources import read_pools
from palaver.reproduce.personality import DROPPED
from palaver.schema import Dialogue, Request, Turn
from palaver.text.words import count_words

STRENGTHS = (0.0, 0.5, 1.0, 2.0, 4.0)
N_CONTEXTS = {"default-speaker": 3000, "default-personality": 200}
N_SCORED = 300
"""Replies of each strength that SmolLM2 reads."""


def answer(name: str, texts: Sequence[str], guidance: float, path: Path) -> list[dict[str, Any]]:
    """Replies of everybody to every text, as a file and as rows."""
    how = Decoding(method="stochastic-greedy", k=5, max_length=40, guidance=guidance)
    system = CheckpointSystem(shipped_checkpoint(name), device="cpu", decoding=how)
    asked = prepare.requests(system.config.ocean) if "ocean" in system.takes else {}
    requests, rows = [], []
    for i, text in enumerate(texts):
        dialogue = Dialogue(id=str(i + 1), turns=(Turn(speaker="user", text=text),))
        for k, person in enumerate(asked or system.speakers):
            who = {"ocean": asked[person]} if asked else {"speaker": person}
            requests.append(Request(dialogue, key=1000 * i + k, **who))
            row: dict[str, Any] = {"id": dialogue.id, "system": name, "speaker": person}
            if asked:
                row["ocean"] = [round(score, 3) for score in asked[person]]
            rows.append(row)
    for row, reply in zip(rows, system.reply(requests), strict=True):
        row["response"] = reply.text
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return rows


def describe(rows: Sequence[dict[str, Any]], texts: Sequence[str], reader: Any) -> dict[str, Any]:
    """Length, variety, and what SmolLM2 thinks of some of them."""
    said = [row["response"] for row in rows]
    some = random.Random(0).sample(rows, N_SCORED)
    contexts = [(Turn(speaker="user", text=texts[int(row["id"]) - 1]),) for row in some]
    likely = reader.likelihoods(
        [Reply(row["response"], context) for row, context in zip(some, contexts, strict=True)]
    )
    return {
        "replies": len(said),
        "words": measure.number(sum(map(count_words, said)) / len(said)),
        "distinct": measure.number(len(set(said)) / len(said)),
        "nats_per_token": measure.number(likely.nats.sum() / likely.n_tokens.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("runs/guidance"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    texts = prepare.contexts(given.data, max(N_CONTEXTS.values()))
    reader, recogniser = open_language_model("smollm2"), load_recogniser()
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in N_CONTEXTS}
    for name, n_contexts in N_CONTEXTS.items():
        for guidance in STRENGTHS:
            path = given.work / f"{name}-{guidance:g}.jsonl"
            rows = answer(name, texts[:n_contexts], guidance, path)
            row = {"guidance": guidance} | describe(rows, texts, reader)
            if name == "default-speaker":
                pools = read_pools(path, recogniser, Choice(drop_common=DROPPED), n_words=0)
                row |= measure.summary(run_protocol(pools, measure.SETTINGS))
            else:
                row |= {
                    judge: measure.fidelity_row(measure_fidelity(path, measured_by=judge, choice=Choice()))
                    for judge in ("self-report", "default")
                }
            tables[name].append(row)
            print(name, row, flush=True)
    content = {
        "command": "python experiments/personality/guidance.py --data DATA --out docs/results/"
        + given.out.name,
        "date": datetime.now(UTC).date().isoformat(),
        "seed": 0,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "data": {"contexts": N_CONTEXTS, "corpora": list(prepare.ASKED), "scored": N_SCORED},
        "settings": dict(measure.QUICK) | {"dropped_common_responses": DROPPED},
        "reader": reader.name,
        **tables,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
