"""Responses per second, ours against `transformers.generate` on the same network with the same weights.

    python -m benchmarks.generate                                        # the shipped Transformer, on this CPU
    python -m benchmarks.generate --throughput runs/xing-speaker/best --contexts lines.txt   # a GPU, all speakers

The first copies our weights into a Pegasus of `transformers` (the same pre-norm encoder-decoder), lets both
answer the same contexts greedily and by beam search, and checks that the greedy answers are the same. The second
draws one response per context and speaker and estimates the time for the 32.5 million of Xing & Fernández (2018).
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
from palaver.models import KnowledgeTransformer, load
from palaver.text.vocabulary import BOS, EOS, PAD, SEP, UNK, Vocabulary

PAPER = 2_500_000 * 13


def as_pegasus(model: KnowledgeTransformer) -> Any:
    """Our weights in a network of `transformers`."""
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    c = model.config
    assert c.norm == "pre" and c.tied and c.positions == "learned", "only these settings have a twin"
    sizes = {
        f"{side}_{what}": n
        for side in ("encoder", "decoder")
        for what, n in (("layers", c.layers), ("attention_heads", c.heads), ("ffn_dim", c.feed_forward))
    }
    twin = PegasusForConditionalGeneration(
        PegasusConfig(
            vocab_size=c.vocab_size,
            d_model=c.dim,
            **sizes,
            max_position_embeddings=c.longest,
            activation_function="gelu",
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    ).eval()
    weights = {"model.shared.weight": model.embed.weight}
    for side, layers, last in (
        ("encoder", model.encoder, model.last[0]),
        ("decoder", model.decoder, model.last[1]),
    ):
        weights[f"model.{side}.embed_positions.weight"] = model.place.weight * c.dim**0.5
        for n, layer in enumerate(layers):
            at = f"model.{side}.layers.{n}"
            parts = [("self_attn", layer.own, layer.norms[0])]
            if layer.cross is not None:
                parts.append(("encoder_attn", layer.cross, layer.norms[1]))
            named = {"fc1": layer.feed[0], "fc2": layer.feed[2], "final_layer_norm": layer.norms[-1]}
            for name, attention, norm in parts:
                named |= {
                    f"{name}.q_proj": attention.query,
                    f"{name}.out_proj": attention.out,
                    f"{name}_layer_norm": norm,
                }
                for which, half in (("k_proj", 0), ("v_proj", 1)):
                    for kind in ("weight", "bias"):
                        whole = getattr(attention.key_value, kind)
                        weights[f"{at}.{name}.{which}.{kind}"] = whole.chunk(2)[half]
            weights |= {
                f"{at}.{name}.{k}": v
                for name, module in named.items()
                for k, v in module.state_dict().items()
            }
        weights |= {f"model.{side}.layer_norm.{k}": v for k, v in last.state_dict().items()}
    missing, unexpected = twin.load_state_dict(weights, strict=False)
    tied = ("embed_tokens.weight", "lm_head.weight", "final_logits_bias")
    assert not unexpected and all(name.endswith(tied) for name in missing), (missing, unexpected)
    return twin


def theirs(twin: Any, contexts: Sequence[list[int]], size: int, longest: int, beams: int) -> list[list[int]]:
    answers = []
    for begin in range(0, len(contexts), size):
        some = contexts[begin : begin + size]
        ids = pad(some, twin.device)
        with torch.inference_mode():
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


def timed(run: Callable[[], object], repeats: int) -> float:
    run()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def compare(folder: Path, contexts_at: Path | None, size: int, n: int, repeats: int) -> None:
    model, vocabulary = load(folder)
    assert isinstance(model, KnowledgeTransformer)
    contexts = read_contexts(contexts_at, vocabulary, model.config.max_context)[:n]
    twin = as_pegasus(model)
    longest = model.config.max_response
    print(
        f"{len(contexts)} contexts, batches of {size}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    )
    by_length = sorted(contexts, key=len)
    for beams in (1, 5):
        how = Decoding(method="greedy" if beams == 1 else "beam", beam_size=beams, max_length=longest)
        mine = [d.tokens for d in decode(model, by_length, how, batch_size=size)]
        other = theirs(twin, by_length, size, longest, beams)
        same = sum(a == b for a, b in zip(mine, other, strict=True)) / len(mine)
        ours = timed(lambda: decode(model, contexts, how, batch_size=size), repeats)
        as_given = timed(lambda: theirs(twin, contexts, size, longest, beams), repeats)
        in_order = timed(lambda: theirs(twin, by_length, size, longest, beams), repeats)
        words = statistics.mean(map(len, mine))
        print(f"\n{how.method}: {same:.1%} of the answers are the same, {words:.1f} tokens on average")
        print(f"  ours                              {len(contexts) / ours:>9.1f} responses/s")
        for name, taken in (("as given", as_given), ("sorted by length", in_order)):
            rate, ratio = len(contexts) / taken, taken / ours
            print(f"  transformers, {name:<19} {rate:>9.1f} responses/s   {ratio:.2f} x our time")


def throughput(folder: Path, contexts_at: Path | None, size: int, n: int, k: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, vocabulary = load(folder, device=device, dtype=torch.bfloat16 if device == "cuda" else None)
    contexts = read_contexts(contexts_at, vocabulary, model.config.max_context)[:n]
    speakers = range(len(model.config.speakers))
    given = {"speaker": [s for _ in contexts for s in speakers]} if speakers else {}
    every = [c for c in contexts for _ in (speakers or (0,))]
    how = Decoding(method="stochastic-greedy", k=k, max_length=model.config.max_response)
    first = min(len(every), size)
    decode(model, every[:first], how, batch_size=size, **{key: v[:first] for key, v in given.items()})
    began = time.perf_counter()
    found = decode(model, every, how, batch_size=size, **given)
    taken = time.perf_counter() - began
    began = time.perf_counter()
    texts = [vocabulary.decode(d.tokens) for d in found]
    in_words = time.perf_counter() - began
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(
        f"{name}: {len(found):,} responses ({how}, batches of {size}), mean {statistics.mean(len(d.tokens) for d in found):.1f} tokens"
    )
    print(
        f"  {len(found) / taken:,.0f} responses/s as token ids; the paper's {PAPER:,}: {PAPER / len(found) * taken / 60:.1f} minutes"
    )
    print(
        f"  turning ids into text takes {in_words / len(found) * 1e6:.1f} µs more each, on one core; such as {texts[:3]}"
    )


def read_contexts(at: Path | None, vocabulary: Vocabulary, longest: int) -> list[list[int]]:
    """Every turn that something answers, with those before it; or the lines of a text file."""
    if at is None:
        from palaver.training.sample import sample_dialogues

        dialogues: Any = sample_dialogues(300)
    elif at.suffix == ".txt":
        return [
            ids[-longest:]
            for ids in vocabulary.encode_batch(at.read_text(encoding="utf-8").splitlines())
            if ids
        ]
    else:
        from palaver.corpora import read_corpus

        dialogues = read_corpus(at)
    turns = [[turn.text for turn in d.turns] for d in dialogues]
    return [vocabulary.history(some[:i], longest) for some in turns for i in range(1, len(some))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shipped = Path(__file__).parent.parent / "src/palaver/generation/checkpoints/default"
    parser.add_argument("--model", type=Path, default=shipped)
    parser.add_argument(
        "--throughput", type=Path, help="a checkpoint to draw responses from, on a GPU if there is one"
    )
    parser.add_argument(
        "--contexts", type=Path, help="dialogues, or a .txt of utterances; default: made-up small talk"
    )
    parser.add_argument("--batch-size", type=int, default=0)
    parser.add_argument("-n", type=int, default=0, help="how many contexts")
    parser.add_argument("-k", type=int, default=5, help="stochastic greedy sampling among so many")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.throughput:
        throughput(given.throughput, given.contexts, given.batch_size or 16384, given.n or 20000, given.k)
    else:
        compare(given.model, given.contexts, given.batch_size or 64, given.n or 512, given.repeats)


if __name__ == "__main__":
    main()
