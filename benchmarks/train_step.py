"""Training steps per second: our decoder loop, the same model with a plain loop of cells, and a Transformer.

    python -m benchmarks.train_step                     # the paper's model on a GPU
    python -m benchmarks.train_step --small             # a small one, also on a CPU

All three do forward, backward, clipping and an SGD step on the same random batches, one after the other in
one process. The plain loop shares our model's code but for the loop, and its gradients are checked to be the
same before anything is timed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from palaver.models.seq2seq import Memory, Seq2Seq, Seq2SeqConfig
from palaver.text.vocabulary import BOS


class PlainLoop(Seq2Seq):
    """The decoder as one would first write it: `nn.LSTMCell` after `nn.LSTMCell`, step after step."""

    def features(
        self, memory: Memory, response: Tensor, *, speaker: Tensor | None, ocean: Tensor | None
    ) -> Tensor:
        begin = response.new_full((len(response), 1), BOS)
        embedded = F.dropout(
            self.embed(torch.cat((begin, response[:, :-1]), 1)), self.config.dropout, self.training
        )
        hidden, cells = list(memory.hidden.unbind(1)), list(memory.cells.unbind(1))
        context = torch.zeros_like(hidden[0])
        v = self.condition(speaker, ocean)
        tops, contexts = [], []
        for t in range(response.shape[1]):
            fed = F.dropout(context, self.config.dropout, self.training)
            below = torch.cat([embedded[:, t], fed, *([v] if v is not None else [])], 1)
            for layer, cell in enumerate(self.decoder):
                hidden[layer], cells[layer] = cell(below, (hidden[layer], cells[layer]))
                below = F.dropout(hidden[layer], self.config.dropout, self.training)
            scores = torch.bmm(memory.keys, hidden[-1].unsqueeze(2)).squeeze(2)
            weighting = torch.softmax(scores + memory.bias, 1)
            context = torch.bmm(weighting.unsqueeze(1).to(memory.values.dtype), memory.values).squeeze(1)
            tops.append(hidden[-1])
            contexts.append(context)
        return torch.tanh(self.combine(torch.cat((torch.stack(contexts, 1), torch.stack(tops, 1)), 2)))


def transformer_of(parameters: int, vocab_size: int, length: int) -> torch.nn.Module:
    """A `transformers` encoder-decoder (BART's architecture) with about as many parameters."""
    from transformers import BartConfig, BartForConditionalGeneration

    best = None
    for width in (128, 256, 512, 768, 1024):
        for layers in range(1, 13):
            count = width * vocab_size + layers * (12 + 16) * width * width
            if best is None or abs(count - parameters) < abs(best[0] - parameters):
                best = (count, width, layers)
    _, width, layers = best
    config = BartConfig(
        vocab_size=vocab_size,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=width // 64,
        decoder_attention_heads=width // 64,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_position_embeddings=length + 2,
        dropout=0.2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return BartForConditionalGeneration(config)


def timed(step: Callable[[], object], device: str, repeats: int) -> float:
    """Median seconds of a step, after warming up."""
    for _ in range(4):
        step()
    seconds = []
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="2 layers of 256, vocabulary 4,000, batch 32")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--lengths", type=int, nargs="*", default=[16, 48])
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    size = {"embedding": 256, "hidden": 256, "layers": 2, "vocab_size": 4000}
    if not given.small:
        size = {"embedding": 1024, "hidden": 1024, "layers": 4, "vocab_size": 25000}
    batch = 32 if given.small else 128
    ours = Seq2Seq(Seq2SeqConfig(**size, conditioning="speaker", speakers=("a", "b"))).to(given.device)
    plain = PlainLoop(ours.config).to(given.device)
    plain.load_state_dict(ours.state_dict())
    parameters = sum(p.numel() for p in ours.parameters())
    name = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {parameters / 1e6:.0f} million parameters, batch {batch}")
    for precision in ("fp32", "bf16") if given.device == "cuda" else ("fp32",):
        for length in given.lengths:
            compare(ours, plain, precision, batch, length, given)


def compare(
    ours: Seq2Seq, plain: PlainLoop, precision: str, batch: int, length: int, given: argparse.Namespace
) -> None:
    """One line for this precision and length."""
    device = given.device
    vocab_size = ours.config.vocab_size
    context = torch.randint(5, vocab_size, (batch, length), device=device)
    response = torch.randint(5, vocab_size, (batch, length), device=device)
    speaker = torch.randint(0, 2, (batch,), device=device)
    cast = torch.autocast(device, torch.bfloat16, enabled=precision == "bf16")

    def step_of(model: torch.nn.Module, loss_of: Callable[[], Tensor]) -> Callable[[], float]:
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-6)

        def step() -> float:
            optimiser.zero_grad()
            with cast:
                loss = loss_of()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            return 0.0

        return step

    for model in (ours, plain):  # without dropout; in training mode, as the GPU's LSTM wants it
        model.config = replace(model.config, dropout=0.0)
        model.encoder.dropout = 0.0
        model.zero_grad()
        with cast:
            (model(context, response, speaker=speaker).loss / response.numel()).backward()
    pairs = zip(ours.parameters(), plain.parameters(), strict=True)
    apart = max(float((a.grad - b.grad).norm() / b.grad.norm()) for a, b in pairs)
    assert apart < (0.1 if precision == "bf16" else 1e-2), f"gradients differ by {apart}"
    for model in (ours, plain):
        model.config = replace(model.config, dropout=0.2)
        model.encoder.dropout = 0.2

    def of(model: Seq2Seq) -> Callable[[], Tensor]:
        return lambda: model(context, response, speaker=speaker).loss / response.numel()

    seconds = {
        "ours": timed(step_of(ours, of(ours)), device, given.repeats),
        "plain loop": timed(step_of(plain, of(plain)), device, given.repeats),
    }
    count = sum(p.numel() for p in ours.parameters())
    other = transformer_of(count, vocab_size, length).to(device).train()
    size = sum(p.numel() for p in other.parameters())
    lossy = step_of(other, lambda: other(input_ids=context, labels=response).loss)
    seconds[f"BART of {size / 1e6:.0f} million"] = timed(lossy, device, given.repeats)
    print(f"\n{precision}, context and response of {length} tokens (largest gradient difference {apart:.1e})")
    for name, taken in seconds.items():
        ratio = f"  {taken / seconds['ours']:.2f} x our time"
        print(f"  {name:<24} {response.numel() / taken:>12,.0f} response tokens/s {ratio}")


if __name__ == "__main__":
    main()
