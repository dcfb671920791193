"""Do the conversations that `palaver chat` was taught with help it as examples? Replies and verdicts.

    python experiments/responders/everyday_examples.py reply --part development --out replies.json
    python experiments/responders/everyday_examples.py sheet replies.json
    python experiments/responders/everyday_examples.py judge replies.json --accepted 3 5 6a … --out FILE

`reply` asks three systems the conversations of a part of everyday-prompts.jsonl: `default-chat` as it is; the
same with the four nearest written conversations in front, greedily; and the reply of the nearest one itself.
Near is the cosine of MiniLM's vectors of what the person says: the last turn, later also all turns. `sheet`
prints the conversations without the systems' names, in random order, for a judge who goes by
everyday-rule.md; `judge` takes the numbers of what was accepted, with a letter for the turn where there are
several. FILE is docs/results/everyday-examples.json.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PLAIN, EXAMPLES, NEAREST = "default-chat", "default-chat, four examples", "nearest reply"
JOINED = "nearest reply if near, else default-chat"
NEAR = 0.6
"""From this cosine on a written conversation is near; chosen on the development part."""
N_EXAMPLES = 4
SHUFFLED = 99


class Written:
    """The written conversations by what the person says in them."""

    def __init__(self) -> None:
        from palaver.models.encoders import open_encoder

        self._encoder = open_encoder("minilm")
        talks = [
            [turn["text"] for turn in json.loads(line)["turns"]]
            for name in ("train", "more", "valid")
            for line in (HERE / f"everyday-{name}.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        self.parts = [talk[:end] for talk in talks for end in range(2, len(talk) + 1, 2)]
        self._last = self._encode([part[-2] for part in self.parts])
        self._all = self._encode([" ".join(part[::2]) for part in self.parts])

    def _encode(self, texts: list[str]) -> np.ndarray:
        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def nearest(self, turns: Sequence[str], n: int) -> list[tuple[float, list[str]]]:
        """The `n` nearest, each with its cosine; of one conversation the nearest part."""
        said = turns[::2]
        cosines = self._last @ self._encode([said[-1]])[0]
        if len(said) > 1:
            cosines = (cosines + self._all @ self._encode([" ".join(said)])[0]) / 2
        chosen: dict[str, tuple[float, list[str]]] = {}
        for place in np.argsort(-cosines):
            part = self.parts[place]
            chosen.setdefault(part[0], (float(cosines[place]), part))
            if len(chosen) == n:
                break
        return list(chosen.values())


def reply(part: str) -> list[dict[str, Any]]:
    """What each system says, and the cosine of each first line to the nearest written one."""
    import torch

    from palaver.generation.checkpoint import CheckpointSystem
    from palaver.generation.decode import Decoding, decode
    from palaver.generation.systems_file import CHAT, find_system
    from palaver.models.catalogue import shipped_checkpoint
    from palaver.models.turns import encode_turns, join_turns

    torch.set_num_threads(1)
    written = Written()
    model = CheckpointSystem(shipped_checkpoint(CHAT), device="cpu", dtype="float32")
    own = Decoding(**find_system(CHAT).options.decoding.given())
    greedy = Decoding(no_repeat_ngram=own.no_repeat_ngram, max_length=own.max_length)

    def generate(histories: list[list[str]], n_examples: int, decoding: Decoding) -> list[str]:
        contexts = []
        for turns in histories:
            shown = [part for _, part in written.nearest(turns, n_examples)][::-1] if n_examples else []
            texts = [text for talk in [*shown, turns] for text in talk]
            ids = encode_turns(model.vocabulary, texts, model.config.max_context)
            contexts.append(join_turns(ids, model.config.max_context, model.config.frame).tokens)
        decoded = decode(model.model, contexts, decoding, keys=[0] * len(contexts), batch_size=8)
        return [model.vocabulary.decode(one.tokens) for one in decoded]

    ways = {
        PLAIN: lambda histories: generate(histories, 0, own),
        EXAMPLES: lambda histories: generate(histories, N_EXAMPLES, greedy),
        NEAREST: lambda histories: [written.nearest(turns, 1)[0][1][-1] for turns in histories],
    }
    rows = [
        row
        for row in map(json.loads, (HERE / "everyday-prompts.jsonl").read_text("utf-8").splitlines())
        if row["part"] == part
    ]
    for row in rows:
        row["cosine"] = round(written.nearest(row["lines"][:1], 1)[0][0], 2)
        row["replies"] = {}
    for name, way in ways.items():
        turns: list[list[str]] = [[] for _ in rows]
        for number in range(max(len(row["lines"]) for row in rows)):
            asked = [place for place, row in enumerate(rows) if len(row["lines"]) > number]
            for place in asked:
                turns[place].append(rows[place]["lines"][number])
            for place, text in zip(asked, way([turns[place] for place in asked]), strict=True):
                turns[place].append(text)
        for row, said in zip(rows, turns, strict=True):
            row["replies"][name] = said[1::2]
    return rows


def sheet(rows: list[dict[str, Any]]) -> list[tuple[int, list[str], list[str]]]:
    """Of each distinct conversation: its row, the systems that had it, their replies; in random order."""
    rng = random.Random(SHUFFLED)
    entries = []
    for place, row in enumerate(rows):
        systems: dict[tuple[str, ...], list[str]] = {}
        for name, replies in row["replies"].items():
            systems.setdefault(tuple(replies), []).append(name)
        mixed = list(systems.items())
        rng.shuffle(mixed)
        entries += [(place, names, list(replies)) for replies, names in mixed]
    return entries


def judge(rows: list[dict[str, Any]], accepted: Sequence[str]) -> dict[str, Any]:
    """The results file: every reply with its verdict, and how many of each system were accepted."""
    for row in rows:
        row["accepted"] = {}
    for number, (place, names, replies) in enumerate(sheet(rows)):
        letters = [""] if len(replies) == 1 else "abc"[: len(replies)]
        for name in names:
            rows[place]["accepted"][name] = [f"{number}{letter}" in accepted for letter in letters]
    first = {name: [row["accepted"][name][0] for row in rows] for name in (PLAIN, EXAMPLES, NEAREST)}
    near = [row["cosine"] >= NEAR for row in rows]
    first[JOINED] = [
        a if is_near else b for a, b, is_near in zip(first[NEAREST], first[PLAIN], near, strict=True)
    ]
    totals = {
        name: {"first": sum(verdicts), "n_first": len(rows), "p": sign_test(verdicts, first[PLAIN])}
        for name, verdicts in first.items()
    }
    for name in (PLAIN, EXAMPLES, NEAREST):
        verdicts = [verdict for row in rows for verdict in row["accepted"][name]]
        totals[name] |= {"all": sum(verdicts), "n_all": len(verdicts)}
    return {
        "command": "experiments/responders/everyday_examples.py",
        "part": rows[0]["part"],
        "near": NEAR,
        "n_near": sum(near),
        "shuffled_with": SHUFFLED,
        "accepted": totals,
        "conversations": rows,
    }


def sign_test(one: Sequence[bool], other: Sequence[bool]) -> float:
    """Two-sided, exact, on the conversations of which only one of the two replies was accepted."""
    wins = sum(a and not b for a, b in zip(one, other, strict=True))
    losses = sum(b and not a for a, b in zip(one, other, strict=True))
    n = wins + losses
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(wins, losses) + 1)) / 2**n)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["reply", "sheet", "judge"])
    parser.add_argument("replies", type=Path, nargs="?")
    parser.add_argument("--part", choices=["development", "held-out"], default="development")
    parser.add_argument("--accepted", nargs="*", default=[])
    parser.add_argument("--note", default="", help="what else is to be known of the replies")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    content: Any
    if given.what == "reply":
        content = reply(given.part)
    else:
        content = json.loads(given.replies.read_text(encoding="utf-8"))
    if given.what == "sheet":
        for number, (place, _, replies) in enumerate(sheet(content)):
            print(" / ".join(content[place]["lines"]), f"{number}:", " / ".join(replies), sep="\n  ")
        return
    if given.what == "judge":
        content = {"note": given.note, **judge(content, given.accepted)}
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
