"""The loss over all pairs beside one plain forward and backward pass of the network (MiniLM's size).

    python -m benchmarks.ranking_loss                           # 200 dialogues on a CPU, 5,000 on a GPU
    python -m benchmarks.ranking_loss --dialogues 2000 --tokens 64
    python -m benchmarks.ranking_loss --out docs/results/comparator-loss.json

Plain: every dialogue forward and back once, a sum of scores as the loss. Ours: the same network, all pairs of
all dialogues; once with the graph of all batches kept, once with a second forward pass. A siamese network
would need the plain pass (dialogues - 1) times. Then the loss alone at 5,000 and 50,000 dialogues, with the
memory it takes. Ends with 1 if a target was missed: 1.2 times the plain pass, 4 GB.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import machine
from palaver.comparator.cmade.ranking_loss import pair_weights
from palaver.errors import count_of

TIMES, GIGABYTES = 1.2, 4.0


def seconds(calls: Sequence[Callable[[], Any]], repeats: int, cuda: bool) -> list[float]:
    """The shortest of several runs of each after one that is not counted. They take turns, so that a machine
    that is busy for a while is so for all of them."""
    best = [float("inf")] * len(calls)
    for run in range(repeats + 1):
        for c, call in enumerate(calls):
            if cuda:
                torch.cuda.synchronize()
            begin = time.perf_counter()
            call()
            if cuda:
                torch.cuda.synchronize()
            if run:
                best[c] = min(best[c], time.perf_counter() - begin)
    return best


def measure_network(n: int, tokens: int, batch: int, device: str, repeats: int) -> dict[str, Any]:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    encoder, head = BertModel(config).to(device), torch.nn.Linear(384, 1).to(device)
    ids = torch.randint(1000, config.vocab_size, (n, tokens), device=device)
    targets = torch.rand(n, device=device)
    batches = list(ids.split(batch))

    def forward(part: Any) -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            hidden = encoder(part).last_hidden_state[:, 0]  # (B, 384)
        return head(hidden.float()).squeeze(1)  # (B,)

    def clear() -> None:
        encoder.zero_grad(set_to_none=True)
        head.zero_grad(set_to_none=True)

    def plain() -> None:
        clear()
        for part in batches:
            forward(part).sum().backward()

    def graph_kept() -> None:
        clear()
        scores = torch.cat([forward(part) for part in batches])
        scores.backward(pair_weights(scores, targets)[1])

    def second_pass() -> None:
        clear()
        with torch.no_grad():
            scores = torch.cat([forward(part) for part in batches])
        _, lambdas = pair_weights(scores, targets)
        for part, gradient in zip(batches, lambdas.split(batch), strict=True):
            forward(part).backward(gradient)

    cuda = device == "cuda"
    base, kept, twice = seconds([plain, graph_kept, second_pass], repeats, cuda)
    precision = "bfloat16" if cuda else "float32"
    print(f"{n:,} dialogues of {tokens} tokens, batches of {batch}, {device}, {precision}")
    print(f"  plain forward and backward            {base:8.3f} s")
    every = f"all {n * (n - 1) // 2:,} pairs, graph kept"
    print(f"  {every:<36}  {kept:8.3f} s  {kept / base:5.2f} x   target {TIMES} x")
    print(f"  all pairs, second forward pass        {twice:8.3f} s  {twice / base:5.2f} x")
    print(
        f"  a siamese network over all pairs      {base * (n - 1):8.0f} s  {n - 1:5d} x   (not run: counted)"
    )
    return {
        "dialogues": n,
        "tokens": tokens,
        "batch": batch,
        "plain_seconds": base,
        "graph_kept_seconds": kept,
        "second_pass_seconds": twice,
    }


def measure_loss(device: str) -> list[dict[str, Any]]:
    rows = []
    for n in (5_000, 50_000):
        scores, targets = torch.randn(n, device=device), torch.rand(n, device=device)
        [took] = seconds([lambda s=scores, t=targets: pair_weights(s, t)], 2, device == "cuda")
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            pair_weights(scores, targets)
            memory = torch.cuda.max_memory_allocated()
        else:
            tracemalloc.start()
            pair_weights(scores, targets)
            memory = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        rows.append({"dialogues": n, "seconds": took, "megabytes": round(memory / 1e6)})
        pairs = n * (n - 1) / 2
        speed = f"{took:8.4f} s  {took / pairs * 1e9:5.2f} ns a pair"
        print(f"loss alone, {n:>6,} dialogues  {speed}  {memory / 1e6:,.0f} MB")
    return rows


def main() -> None:
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dialogues", type=int, default=5000 if cuda else 200)
    parser.add_argument("--tokens", type=int, default=128 if cuda else 32)
    parser.add_argument("--batch", type=int, default=250 if cuda else 50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = "cuda" if cuda else "cpu"
    where = (
        torch.cuda.get_device_name()
        if cuda
        else f"{machine()}, {count_of(torch.get_num_threads(), 'thread')}"
    )
    print(where)
    torch.manual_seed(0)
    losses = measure_loss(device)
    network = measure_network(options.dialogues, options.tokens, options.batch, device, options.repeats)
    if options.out is not None:
        record = {
            "command": f"python -m benchmarks.ranking_loss --dialogues {options.dialogues} "
            f"--repeats {options.repeats} --out docs/results/comparator-loss.json",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{where}, torch {torch.__version__}",
            "seed": 0,
            "loss alone": losses,
            "network": network,
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    ratio = network["graph_kept_seconds"] / network["plain_seconds"]
    memory = max(row["megabytes"] for row in losses) / 1000
    if ratio > TIMES or memory > GIGABYTES:
        sys.exit(f"missed: {ratio:.2f} x the plain pass, {memory:.2f} GB")


if __name__ == "__main__":
    main()
