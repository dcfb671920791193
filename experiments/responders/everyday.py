"""Ten everyday prompts to `palaver chat`, and what it replies; beside it, the small model that is shipped.

    python experiments/responders/everyday.py --out docs/results/chat.json

Each prompt begins a conversation of its own, with the settings and the seed of `palaver chat`. Nothing is
chosen: the replies are kept as they came. The tokens a second are those of the machine as it was; measure
them where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import torch
import transformers

from palaver.cli.chat import DEFAULTS
from palaver.generation.conversation import Conversation
from palaver.generation.systems_file import open_system
from palaver.models.packages import PACKAGES

PROMPTS = (
    "Hi, how are you?",
    "I lost my job today.",
    "What should I cook for dinner tonight?",
    "I can't sleep. Any ideas?",
    "Tell me something interesting about the sea.",
    "My best friend moved to another city and I miss her.",
    "Can you recommend a book?",
    "I passed my driving test!",
    "Do you like music?",
    "What should I do this weekend?",
)
SYSTEMS = ("smollm2", "default")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    replies: list[dict[str, str]] = [{"prompt": prompt} for prompt in PROMPTS]
    speed = {}
    for name in SYSTEMS:
        system = open_system(name, device="cpu", defaults=DEFAULTS)
        Conversation([system]).say("Hello.")  # the first reply of a process is slower
        n_tokens, began = 0, time.perf_counter()
        for row in replies:
            (said,) = Conversation([system], seed=0).say(row["prompt"])
            row[name] = said.reply.text
            n_tokens += said.reply.n_tokens or 0
            print(f"{name}  {row['prompt']}  ->  {said.reply.text}", flush=True)
        speed[name] = round(n_tokens / (time.perf_counter() - began), 1)
        print(f"{name}: {speed[name]} tokens a second, prompts included", flush=True)
    machine = {"processor": platform.machine(), "cores": os.cpu_count(), "threads": given.threads}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    content = {
        "command": "experiments/responders/everyday.py",
        "model": PACKAGES["smollm2"].provenance,
        "seed": 0,
        "machine": machine | versions,
        "tokens_per_second": speed,
        "replies": replies,
    }
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
