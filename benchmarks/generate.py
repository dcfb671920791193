"""Responses per second, ours against `transformers.generate` on the same network with the same weights.

    python -m benchmarks.generate                                     # the shipped Transformer, on this CPU
    python -m benchmarks.generate --throughput runs/xing-speaker/best --contexts lines.txt   # on a GPU

The first copies our weights into a Pegasus of `transformers` (the same pre-norm encoder-decoder), lets both
answer the same contexts greedily and by beam search, and says how many answers are the same. The second draws
one response per context and speaker and estimates the time for the 32.5 million of Xing & Fernández (2018).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from palaver.generation.decode import Decoding, decode, pad
from palaver.models.pretrained import load
from palaver.models.transformer import KnowledgeTransformer
from palaver.models.turns import encode_turns, join_turns
from palaver.text.vocabulary import BOS, EOS, PAD, SEP, UNK, Vocabulary

PAPER = 2_500_000 * 13
SHIPPED = Path(__file__).parent.parent / "src/palaver/generation/checkpoints/default"
Tokens = list[int]


def as_pegasus(model: KnowledgeTransformer) -> Any:
    """Our weights in a network of `transformers`."""
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    c = model.config
    if (c.norm, c.tied, c.positions) != ("pre", True, "learned"):
        raise SystemExit("only a pre-norm model with tied embeddings and learned positions has a twin")
    config = PegasusConfig(
        vocab_size=c.vocab_size,
        d_model=c.dim,
        encoder_layers=c.layers,
        decoder_layers=c.layers,
        encoder_attention_heads=c.heads,
        decoder_attention_heads=c.heads,
        encoder_ffn_dim=c.feed_forward,
        decoder_ffn_dim=c.feed_forward,
        max_position_embeddings=c.longest,
        activation_function="gelu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    twin = PegasusForConditionalGeneration(config).eval()
    missing, unexpected = twin.load_state_dict(pegasus_weights(model), strict=False)
    tied = ("embed_tokens.weight", "lm_head.weight", "final_logits_bias")
    if unexpected or not all(name.endswith(tied) for name in missing):
        raise SystemExit(f"the twin's weights have other names now: {missing}, {unexpected}")
    return twin


def pegasus_weights(model: KnowledgeTransformer) -> dict[str, torch.Tensor]:
    """Ours by the other network's names."""
    weights = {"model.shared.weight": model.embed.weight}
    for side, layers, last in zip(
        ("encoder", "decoder"), (model.encoder, model.decoder), model.last, strict=True
    ):
        weights[f"model.{side}.embed_positions.weight"] = model.place.weight * model.config.dim**0.5
        weights |= {f"model.{side}.layer_norm.{k}": v for k, v in last.state_dict().items()}
        for n, layer in enumerate(layers):
            named = {"fc1": layer.feed[0], "fc2": layer.feed[2], "final_layer_norm": layer.norms[-1]}
            attentions = [("self_attn", layer.own, layer.norms[0])]
            if layer.cross is not None:
                attentions.append(("encoder_attn", layer.cross, layer.norms[1]))
            for name, attention, norm in attentions:
                named[f"{name}.q_proj"] = attention.query
                named[f"{name}.out_proj"] = attention.out
                named[f"{name}_layer_norm"] = norm
                for kind, whole in attention.key_value.state_dict().items():
                    keys, values = whole.chunk(2)
                    weights[f"model.{side}.layers.{n}.{name}.k_proj.{kind}"] = keys
                    weights[f"model.{side}.layers.{n}.{name}.v_proj.{kind}"] = values
            for name, module in named.items():
                at = f"model.{side}.layers.{n}.{name}"
                weights |= {f"{at}.{kind}": weight for kind, weight in module.state_dict().items()}
    return weights


@torch.inference_mode()
def theirs(twin: Any, contexts: Sequence[Tokens], size: int, longest: int, beams: int) -> list[Tokens]:
    """The answers of `transformers.generate`, batch by batch."""
    answers = []
    for begin in range(0, len(contexts), size):
        ids = pad(contexts[begin : begin + size], twin.device)
        out = twin.generate(
            ids,
            attention_mask=(ids != PAD).long(),
            max_new_tokens=longest,
            min_new_tokens=1,
            num_beams=beams,
            do_sample=False,
            length_penalty=1.0,
            suppress_tokens=[PAD, BOS, UNK, SEP],
        )
        answers += [[t for t in row[1:].tolist() if t > SEP] for row in out]
    return answers


def timed(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turns after warming up, so that a busy machine is fair to all."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            if repeat:
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def compare(model: KnowledgeTransformer, contexts: list[Tokens], size: int, repeats: int) -> None:
    twin = as_pegasus(model)
    longest = model.config.max_response
    by_length = sorted(contexts, key=len)
    print(f"{len(contexts)} contexts, {torch.get_num_threads()} threads, torch {torch.__version__}")
    for beams in (1, 5):
        compare_one(model, twin, contexts, by_length, size, longest, beams, repeats)


def compare_one(
    model: KnowledgeTransformer,
    twin: Any,
    contexts: list[Tokens],
    by_length: list[Tokens],
    size: int,
    longest: int,
    beams: int,
    repeats: int,
) -> None:
    how = Decoding(method="greedy" if beams == 1 else "beam", beam_size=beams, max_length=longest)
    mine = [d.tokens for d in decode(model, by_length, how)]
    other = theirs(twin, by_length, size, longest, beams)
    same = sum(a == b for a, b in zip(mine, other, strict=True)) / len(mine)
    seconds = timed(
        {
            "ours": lambda: decode(model, contexts, how),
            f"transformers, batches of {size}": lambda: theirs(twin, contexts, size, longest, beams),
            "transformers, also sorted by length": lambda: theirs(twin, by_length, size, longest, beams),
        },
        repeats,
    )
    words = statistics.mean(map(len, mine))
    print(f"\n{how.method}: {same:.1%} of the answers are the same, {words:.1f} tokens on average")
    for name, taken in seconds.items():
        rate, ratio = len(contexts) / taken, taken / seconds["ours"]
        print(f"  {name:<36} {rate:>8.1f} responses/s   {ratio:.2f} x our time")


def throughput(folder: Path, contexts_at: Path | None, size: int, n: int, k: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, vocabulary = load(folder, device=device, dtype=torch.bfloat16 if device == "cuda" else None)
    contexts = read_contexts(contexts_at, vocabulary, model.config.max_context)[:n]
    n_speakers = len(model.config.speakers)
    every = [c for c in contexts for _ in range(n_speakers or 1)]
    given = {"speaker": [s for _ in contexts for s in range(n_speakers)]} if n_speakers else {}
    how = Decoding(method="stochastic-greedy", k=k, max_length=model.config.max_response)
    decode(model, every[:size], how, batch_size=size, **{key: v[:size] for key, v in given.items()})
    began = time.perf_counter()
    found = decode(model, every, how, batch_size=size, **given)
    taken = time.perf_counter() - began
    began = time.perf_counter()
    texts = vocabulary.decode_batch([d.tokens for d in found])
    in_words = time.perf_counter() - began
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    words = statistics.mean(len(d.tokens) for d in found)
    print(f"{name}: {len(found):,} responses ({how}, batches of {size}), {words:.1f} tokens on average")
    minutes = PAPER / len(found) * taken / 60
    print(f"  {len(found) / taken:,.0f} responses/s as ids; the paper's {PAPER:,}: {minutes:.1f} minutes")
    print(f"  into text: {in_words / len(found) * 1e6:.1f} µs more each, on one core; such as {texts[:3]}")


def read_contexts(at: Path | None, vocabulary: Vocabulary, longest: int) -> list[Tokens]:
    """Every turn that something answers, with those before it; or the lines of a text file."""
    if at is not None and at.suffix == ".txt":
        lines = at.read_text(encoding="utf-8").splitlines()
        return [ids[-longest:] for ids in vocabulary.encode_batch(lines) if ids]
    if at is None:
        from palaver.training.sample import sample_dialogues

        dialogues: Any = sample_dialogues(300)
    else:
        from palaver.corpora.catalogue import read_corpus

        dialogues = read_corpus(at)
    talks = [
        encode_turns(vocabulary, [turn.text for turn in d.turns])
        for d, _ in zip(dialogues, range(2000), strict=False)
    ]
    return [join_turns(turns[:i], longest).tokens for turns in talks for i in range(1, len(turns))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=SHIPPED)
    parser.add_argument("--throughput", type=Path, metavar="MODEL", help="draw responses from this model")
    parser.add_argument("--contexts", type=Path, help="dialogues, or a .txt of lines; default: small talk")
    parser.add_argument("--batch-size", type=int, default=0)
    parser.add_argument("-n", type=int, default=0, help="how many contexts")
    parser.add_argument("-k", type=int, default=5, help="stochastic greedy sampling among so many")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.throughput:
        throughput(given.throughput, given.contexts, given.batch_size or 16384, given.n or 20000, given.k)
        return
    model, vocabulary = load(given.model)
    if not isinstance(model, KnowledgeTransformer):
        raise SystemExit("only a knowledge-transformer has a twin in transformers")
    contexts = read_contexts(given.contexts, vocabulary, model.config.max_context)[: given.n or 512]
    compare(model, contexts, given.batch_size or 64, given.repeats)


if __name__ == "__main__":
    main()
