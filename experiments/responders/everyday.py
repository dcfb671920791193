"""Ten everyday conversations of two turns with `palaver chat`, and with the systems that were there before.

    python experiments/responders/everyday.py --out docs/results/everyday.json

Each prompt begins a conversation of its own, with the settings and the seed of `palaver chat`. Nothing is
chosen: the replies are kept as they came. None of the prompts is near what the adapter `default-chat` was
taught with (tests/test_everyday.py holds that); those who wrote the replies of `everyday` knew them.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import torch
import transformers

from palaver.cli.chat import DEFAULTS
from palaver.files import sha256_of
from palaver.generation.conversation import Conversation
from palaver.generation.system import settings
from palaver.generation.systems_file import CHAT, EVERYDAY, open_system
from palaver.models.catalogue import shipped_checkpoint
from palaver.models.packages import PACKAGES

PROMPTS = {
    "Hi, how are you?": "I'm good, thanks for asking.",
    "I lost my job today.": "I don't know how to tell my wife.",
    "What should I cook for dinner tonight?": "I have chicken and rice.",
    "I can't sleep. Any ideas?": "I have tried that already.",
    "Tell me something interesting about the sea.": "Wow, I didn't know that.",
    "My best friend moved to another city and I miss her.": "Her name is Laura.",
    "Can you recommend a book?": "I like crime stories.",
    "I passed my driving test!": "At the third attempt!",
    "Do you like music?": "I listen to jazz a lot.",
    "What should I do this weekend?": "I don't want to spend much money.",
}
"""Prompt -> what is said next, whatever the reply."""
SYSTEMS = (EVERYDAY, CHAT, "smollm2", "default")
SEED = 0


def converse(system: Any, *lines: str) -> list[str]:
    """The reply to each line."""
    conversation = Conversation([system], seed=SEED)
    return [conversation.say(line)[0].reply.text for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=SYSTEMS, help="ask these; what OUT has of others stays")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = [{"prompt": p, "follow_up": f} for p, f in PROMPTS.items()]
    if given.out.exists():
        before = {row["prompt"]: row for row in json.loads(given.out.read_text("utf-8"))["conversations"]}
        rows = [before.get(row["prompt"], {}) | row for row in rows]
    for name in given.only:
        system = open_system(name, device="cpu", defaults=DEFAULTS)
        for row in rows:
            row[name] = converse(system, row["prompt"], row["follow_up"])
            print(f"{name}  {row['prompt']}  ->  {'  ->  '.join(row[name])}", flush=True)
    content = {
        "command": "experiments/responders/everyday.py",
        "seed": SEED,
        "model": PACKAGES["smollm2"].provenance,
        EVERYDAY: settings(open_system(EVERYDAY)),
        "adapter": sha256_of(shipped_checkpoint(CHAT) / "model.safetensors"),
        "machine": platform.machine(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "conversations": rows,
    }
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
