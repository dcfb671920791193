"""How fast `palaver chat` speaks on two cores: tokens a second, and the wait for the first.

    python -m benchmarks.chat_speed --out docs/results/chat-speed.json      # a few minutes; idle machine

Twenty everyday prompts (`experiments/responders/everyday-development.txt`) go to each system in conversations
of two turns, the second of which is the same for all. Time for reading what was said is counted. Of a system
without tokens, words are counted. The same adapter with weights of 32 bits shows what 16 bits bring; greedy
replies of both are compared. With --out the section on speed of docs/results/everyday.md is written anew.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import machine
from palaver.generation.streaming import stream_reply
from palaver.generation.systems_file import CHAT, EVERYDAY, find_system
from palaver.schema import Dialogue, Request, System, Turn

PAGE = Path(__file__).parents[1] / "docs/results/everyday.md"
PROMPTS = Path(__file__).parents[1] / "experiments/responders/everyday-development.txt"
SECOND = "Thank you. What do you think about it?"
TARGET = 15.0
"""Tokens a second: faster than people read."""


def open_with(name: str, **changes: Any) -> System:
    """A system with other options than its own."""
    spec = find_system(name)
    options = spec.options.model_copy(update=changes)
    return type(spec)(spec.name, options)(device="cpu")


def measure(system: System, n: int) -> dict[str, Any]:
    """Speed over all replies; the replies themselves."""
    n_tokens, seconds, waits, replies = 0, 0.0, [], []
    _ask(system, "warm", "Hello.", SECOND)  # compiles, and the first reply of a process is slower
    for number, prompt in enumerate(PROMPTS.read_text(encoding="utf-8").splitlines()[:n]):
        for reply, first, whole in _ask(system, f"d{number}", prompt, SECOND):
            own = len(reply.text.split()) if reply.n_tokens is None else reply.n_tokens
            n_tokens += own + 1  # the end mark takes its time, too
            seconds += whole
            waits.append(first)
            replies.append(reply.text)
    return {
        "tokens_per_second": round(n_tokens / seconds, 1),
        "first_piece_seconds": round(statistics.median(waits), 3),
        "n_tokens": n_tokens,
        "replies": replies,
    }


def _ask(system: System, id: str, *lines: str) -> list[tuple[Any, float, float]]:
    """Reply, seconds to its first piece and to its end, for each line in turn."""
    turns: list[Turn] = []
    answers = []
    for line in lines:
        turns.append(Turn(speaker="you", text=line))
        heard: list[float] = []
        began = time.perf_counter()
        reply = stream_reply(
            system,
            Request(Dialogue(id=id, turns=tuple(turns))),
            lambda piece, heard=heard: heard.append(time.perf_counter()),  # type: ignore[misc]
        )
        ended = time.perf_counter()
        answers.append((reply, (heard[0] if heard else ended) - began, ended - began))
        turns.append(Turn(speaker=system.name, text=reply.text))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--n", type=int, default=20, help="only the first so many prompts")
    given = parser.parse_args()
    torch.set_num_threads(2)
    greedy = find_system(CHAT).options.decoding.model_copy(
        update={"method": "greedy", "temperature": None, "top_p": None}
    )
    systems = {
        EVERYDAY: open_with(EVERYDAY),
        CHAT: open_with(CHAT),
        f"{CHAT}, greedy": open_with(CHAT, decoding=greedy),
        f"{CHAT}, greedy, 32 bits": open_with(CHAT, decoding=greedy, dtype="float32"),
        "smollm2": open_with("smollm2"),
    }
    results = {}
    for name, system in systems.items():
        results[name] = measure(system, given.n)
        speed, wait = results[name]["tokens_per_second"], results[name]["first_piece_seconds"]
        print(f"{name:<32} {speed:5.1f} tokens a second, first piece after {wait:.2f} s", flush=True)
    pairs = zip(*(results[f"{CHAT}, greedy{bits}"]["replies"] for bits in ("", ", 32 bits")), strict=True)
    n_equal = sum(rounded == exact for rounded, exact in pairs)
    print(f"greedy replies equal to those with 32 bits: {n_equal} of {2 * given.n}")
    reached = results[EVERYDAY]["tokens_per_second"] >= TARGET
    print(f"target {TARGET:g} tokens a second: {'reached' if reached else 'MISSED'}")
    if given.out is not None:
        content = {
            "command": "python -m benchmarks.chat_speed",
            "machine": machine(),
            "threads": 2,
            "equal_greedy_replies": [n_equal, 2 * given.n],
            "systems": {n: {k: v for k, v in r.items() if k != "replies"} for n, r in results.items()},
        }
        given.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        before = PAGE.read_text(encoding="utf-8").split("## Speed")[0]
        PAGE.write_text(f"{before}## Speed\n\n{section(content)}", encoding="utf-8")


def section(results: dict[str, Any]) -> str:
    """What the page says about the results."""
    rows = [
        f"| {name} | {row['tokens_per_second']:.1f} | {row['first_piece_seconds']:.2f} |"
        for name, row in results["systems"].items()
    ]
    n_equal, n = results["equal_greedy_replies"]
    return f"""Twenty other prompts in conversations of two turns, with the time for reading what was said
(`{results["command"]}`, [chat-speed.json](chat-speed.json); {results["machine"]},
{results["threads"]} threads):

| system | tokens a second | seconds to the first word |
|---|---|---|
{chr(10).join(rows)}

`everyday` has no tokens: its words are counted, and its reply comes in one piece. The adapter needs no prompt
that is read before each reply; what was read of a conversation is kept, so that a
turn costs no more than what is new in it; and weights of 16 bits halve what comes out of the memory for each
token. {n_equal} of {n} greedy replies are the same as with 32 bits.
"""


if __name__ == "__main__":
    main()
