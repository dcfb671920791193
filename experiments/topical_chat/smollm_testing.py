"""One checkpoint at a time, on a GPU: its decoding chosen, tested, asked to be somebody."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from smollm_data import MADE, RUNS, TESTS, read_turns  # type: ignore[import-not-found]
from torch.nn import functional as F

from palaver.generation.decode import Decoded, Decoding, decode, pad
from palaver.models.pretrained import load
from palaver.models.turns import encode_knowledge, encode_turns, join_turns
from palaver.text.vocabulary import EOS

MAX_NEW = 60
SCORED_TOKENS = 32_768
"""Of a batch that is scored, with padding."""
ROWS = {"cuda": 1024, "cpu": 0}
"""Replies that are decoded together; 0: as many as the library thinks."""
SHORT = 4
"""Times as many of characters, whose contexts are short."""
PART = 2048
"""Turns whose replies are one file."""
MEMORY = 60e9
"""Bytes of a GPU that a process may take."""
N_VALID = 1500
"""Turns of valid_freq on which the decoding is chosen."""
GUIDANCE = (0.0, 1.0)
"""Strengths with which characters answer."""
N_REQUESTED = 200
"""Contexts to which each of the requested personalities answers."""
DECODINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "no 3-gram twice": {"no_repeat_ngram": 3},
    "no 2-gram twice": {"no_repeat_ngram": 2},
    "repetition penalty 1.05": {"repetition_penalty": 1.05},
    "repetition penalty 1.1": {"repetition_penalty": 1.1},
    "repetition penalty 1.15": {"repetition_penalty": 1.15},
    "repetition penalty 1.2": {"repetition_penalty": 1.2},
    "repetition penalty 1.3": {"repetition_penalty": 1.3},
}
LIKELY, DIVERSE, OVERLAP = 19.5, 0.86, 0.23
RULE = (
    f"of the checkpoints (best epoch on validation, last epoch) with a perplexity of at most {LIKELY} "
    f"and the decodings with Div-1 >= {DIVERSE} the pair with the largest F1; if no pair is so diverse, "
    f"of those with F1 >= {OVERLAP} the one with the largest Div-1"
)


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def limit_memory() -> None:
    """A process that wants more is told so at once, and others go on."""
    if torch.cuda.is_available():
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, MEMORY / total))


def used_memory() -> str:
    if not torch.cuda.is_available():
        return "no GPU"
    most, now = torch.cuda.max_memory_allocated() / 1e9, torch.cuda.memory_allocated() / 1e9
    return f"{most:.1f} GB at most, {now:.1f} now"


def share_keys() -> None:
    """One key serves several queries (grouped-query attention): do not copy it when one token is read.

    Queries of a group stand where the tokens of a text would, which is the same sum.
    """
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    plain = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **more: Any) -> Any:
        groups = getattr(module, "num_key_value_groups", 1)
        if query.shape[2] != 1 or groups == 1:
            return plain(module, query, key, value, attention_mask, **more)
        n, heads, _, width = query.shape
        folded = query.reshape(n, heads // groups, groups, width)
        output = F.scaled_dot_product_attention(
            folded, key, value, attn_mask=attention_mask, scale=more.get("scaling")
        )
        return output.reshape(n, 1, heads, width), None

    ALL_ATTENTION_FUNCTIONS.register("sdpa", attend)


def decode_in_memory(
    model: Any, contexts: Sequence[Any], how: Decoding, n_rows: int, **columns: Sequence[Any]
) -> list[Decoded]:
    """The longest first, `n_rows` at a time, or fewer where others use the memory, too."""
    facts = columns.get("knowledge") or [()] * len(contexts)
    order = sorted(range(len(contexts)), key=lambda i: -len(contexts[i]) - len(facts[i]))
    done: dict[int, Decoded] = {}
    n_rows = n_rows or len(order)
    while len(done) < len(order):
        some = order[len(done) : len(done) + n_rows]
        own = {name: [column[i] for i in some] for name, column in columns.items()}
        decoded = None
        try:
            decoded = decode(model, [contexts[i] for i in some], how, batch_size=n_rows, **own)
        except torch.OutOfMemoryError:
            if n_rows < 32:
                raise
        if decoded is None:  # not in the handler, where the error still holds what filled the memory
            n_rows //= 2
            torch.cuda.empty_cache()
            print(f"out of memory: on with {n_rows} rows", flush=True)
        else:
            done |= dict(zip(some, decoded, strict=True))
    return [done[i] for i in range(len(contexts))]


class Tester:
    """A checkpoint, and turns as the tokens it reads."""

    def __init__(self, folder: Path) -> None:
        torch.set_float32_matmul_precision("high")
        share_keys()
        self.model, self.vocabulary = load(folder, device=device())
        self.model.merge()

    def encode(self, turns: Sequence[dict[str, Any]]) -> None:
        c = self.model.config
        texts = list(dict.fromkeys(text for turn in turns for text in (*turn["history"], turn["response"])))
        ids = dict(zip(texts, encode_turns(self.vocabulary, texts), strict=True))
        histories = [[ids[text] for text in turn["history"]] for turn in turns]
        self.contexts = [join_turns(history, c.max_context, c.frame).tokens for history in histories]
        facts = [turn["knowledge"] if c.knowledge else "" for turn in turns]
        self.knowledge = [one.tokens for one in encode_knowledge(self.vocabulary, facts, c.max_knowledge)]
        self.responses = [[*ids[turn["response"]], EOS] for turn in turns]

    def score(self) -> list[float]:
        """What the true responses cost, in nats."""
        nll = [0.0] * len(self.contexts)
        parts = (self.contexts, self.knowledge, self.responses)
        lengths = [sum(map(len, one)) for one in zip(*parts, strict=True)]
        self.model.to(torch.float32)
        with torch.inference_mode():
            for batch in _batches(lengths):
                context, knowledge, response = (pad([part[i] for i in batch], device()) for part in parts)
                fact = {"knowledge": knowledge} if self.model.config.knowledge else {}
                costs = self.model.response_nll(context, response, **fact).tolist()  # type: ignore[operator]
                for i, cost in zip(batch, costs, strict=True):
                    nll[i] = cost
        return nll

    def longest_first(self) -> list[int]:
        """The numbers of the turns."""
        lengths = [
            len(context) + len(fact) for context, fact in zip(self.contexts, self.knowledge, strict=True)
        ]
        return sorted(range(len(lengths)), key=lambda i: -lengths[i])

    def reply(self, options: dict[str, Any], some: Sequence[int]) -> list[str]:
        """To the turns with these numbers."""
        if device().type == "cuda":
            self.model.to(torch.bfloat16)
        how = Decoding(method="greedy", max_length=MAX_NEW, **options)
        contexts = [self.contexts[i] for i in some]
        told = {"knowledge": [self.knowledge[i] for i in some]} if self.model.config.knowledge else {}
        decoded = decode_in_memory(self.model, contexts, how, ROWS[device().type], **told)
        return list(self.vocabulary.decode_batch([one.tokens for one in decoded]))


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of rows, sorted by length and cut by tokens."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > SCORED_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def word_f1(text: str, reference: str) -> float | None:
    """As `palaver.metrics.unigram_f1`, without numba."""
    from palaver.metrics.tokens import normalised_words

    own, other = Counter(normalised_words(text)), Counter(normalised_words(reference))
    return 2 * (own & other).total() / (own.total() + other.total()) if other else None


def diversity(text: str, n: int) -> float | None:
    """As `palaver.metrics.diversity_of`, without numba."""
    from palaver.text.words import words

    tokens = words(text)
    grams = list(zip(*(tokens[i:] for i in range(n)), strict=False))
    return len(set(grams)) / len(tokens) if grams else None


def checkpoints(key: str) -> dict[str, Path]:
    """The last epoch of a run, and the one with the best validation perplexity where that is another."""
    folder = RUNS / key
    found = {"last epoch": folder / "last"}
    metrics = folder / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    epochs = [row for row in rows if row["kind"] == "epoch"]
    if epochs and not epochs[-1]["best"] and (folder / "best").exists():
        found["best epoch"] = folder / "best"
    return found


def valid_perplexities(key: str) -> list[float]:
    """Per word, after each epoch."""
    rows = map(json.loads, (RUNS / key / "metrics.jsonl").read_text().splitlines())
    return [row["valid_ppl_word"] for row in rows if "valid_ppl_word" in row]


def choose_decoding(key: str, limit: int) -> dict[str, Any]:
    """Every decoding of both checkpoints on the same turns of valid_freq, and what `RULE` takes."""
    turns = read_turns("valid_freq")
    turns = random.Random(0).sample(turns, min(limit or N_VALID, len(turns)))
    perplexities = valid_perplexities(key)
    perplexity = {"last epoch": perplexities[-1], "best epoch": min(perplexities)} if perplexities else {}
    table, replies = [], {}
    for epoch, folder in checkpoints(key).items():
        tester = Tester(folder)
        tester.encode(turns)
        for name, options in DECODINGS.items():
            began = time.perf_counter()
            said = replies[f"{epoch}, {name}"] = tester.reply(options, range(len(turns)))
            row: dict[str, Any] = {"checkpoint": epoch, "decoding": name, "options": options}
            pairs = zip(said, turns, strict=True)
            row |= {"ppl_word": perplexity.get(epoch)}
            row |= {"f1": _mean(word_f1(text, turn["response"]) for text, turn in pairs)}
            row |= {f"div_{n}": _mean(diversity(text, n) for text in said) for n in (1, 2)}
            table.append(row | {"seconds": round(time.perf_counter() - began, 1)})
            print(row, flush=True)
    chosen = take_best(table)
    print("chosen:", chosen["checkpoint"], chosen["decoding"], flush=True)
    about = {"rule": RULE, "n": len(turns), **{k: chosen[k] for k in ("checkpoint", "decoding", "options")}}
    rows = [{"id": turn["id"], **{k: said[i] for k, said in replies.items()}} for i, turn in enumerate(turns)]
    return {**about, "valid_ppl_word": perplexities, "table": table, "replies": rows}


def _mean(values: Iterable[float | None]) -> float:
    """Of those that are defined."""
    defined = [value for value in values if value is not None]
    return sum(defined) / max(len(defined), 1)


def take_best(table: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `RULE` says."""
    likely = [row for row in table if row["ppl_word"] is None or row["ppl_word"] <= LIKELY] or table
    diverse = [row for row in likely if row["div_1"] >= DIVERSE]
    overlapping = [row for row in likely if row["f1"] >= OVERLAP]
    if diverse:
        return max(diverse, key=lambda row: row["f1"])
    return max(overlapping or likely, key=lambda row: row["div_1"])


def test(
    checkpoint: Path, run: str, seed: int, selector: str, options: dict[str, Any], out: Path, limit: int
) -> None:
    """What the true response of every turn costs, and what was said, in files of `PART` turns.

    Files that are there from an earlier call are not made again.
    """
    stem = f"{run.replace('/', '-')}-{seed}"
    tester = Tester(checkpoint)
    turns = {split: read_turns(split, selector, limit) for split in TESTS}
    for split in TESTS:  # all of them before the weights are rounded for decoding
        path = out / f"{stem}-{split}-costs.jsonl.gz"
        if not path.exists():
            began = time.perf_counter()
            tester.encode(turns[split])
            rows = zip(turns[split], tester.score(), tester.responses, strict=True)
            costs = [{"id": turn["id"], "nll": round(c, 4), "n_tokens": len(t)} for turn, c, t in rows]
            _write_rows(path, {"run": run, "seed": seed, "split": split}, costs)
            print(f"{split}: scored in {time.perf_counter() - began:.0f} s", flush=True)
    for split in TESTS:
        tester.encode(turns[split])
        order = tester.longest_first()
        for part, begin in enumerate(range(0, len(order), PART)):
            path = out / f"{stem}-{split}-replies-{part:02}.jsonl.gz"
            if not path.exists():
                began = time.perf_counter()
                some = order[begin : begin + PART]
                said = zip(some, tester.reply(options, some), strict=True)
                replies = [{"id": turns[split][i]["id"], "response": text} for i, text in said]
                _write_rows(path, {"run": run, "seed": seed, "split": split}, replies)
                seconds = time.perf_counter() - began
                print(f"{split} {part}: decoded in {seconds:.0f} s, {used_memory()}", flush=True)


def _write_rows(path: Path, about: dict[str, Any], rows: Iterable[dict[str, Any]]) -> None:
    """A file is whole or not there."""
    part = path.with_suffix(".part")
    with gzip.open(part, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({**about, **row}, ensure_ascii=False) + "\n" for row in rows)
    part.rename(path)


# Characters -----------------------------------------------------------------------------------------------


def answer_as_characters(checkpoint: Path, name: str, out: Path, limit: int) -> None:
    """What every character says to the same contexts; requested and extreme personalities, too."""
    from palaver.corpora.personalities import read_ocean_table

    share_keys()
    dtype = torch.bfloat16 if device().type == "cuda" else None
    model, vocabulary = load(checkpoint, device=device(), dtype=dtype)
    model.merge()
    c = model.config
    texts = (MADE / "contexts.txt").read_text(encoding="utf-8").splitlines()[: limit or None]
    encoded = [join_turns([t], c.max_context, c.frame).tokens for t in encode_turns(vocabulary, texts)]
    is_personal = c.conditioning == "personality"

    def system_of(guided: float) -> str:
        return f"smollm-{name}-guided-{guided:g}" if guided else f"smollm-{name}"

    def write(
        path: Path, guided: float, n: int, who: Sequence[str], scores: Sequence[Sequence[float]] | None
    ) -> None:
        began = time.perf_counter()
        how = Decoding(method="stochastic-greedy", k=5, max_length=40, seed=0, guidance=guided)
        system = system_of(guided)
        jobs = [(i, k) for i in range(n) for k in range(len(who))]
        options: dict[str, Any] = {"speaker": [k for _, k in jobs]}
        if is_personal:
            table = scores or [c.ocean[name] for name in who]
            options = {"ocean": [table[k] for _, k in jobs]}
        keys = [1000 * i + k for i, k in jobs]
        rows = ROWS[device().type] * SHORT // (2 if guided else 1)  # a guided row is decoded twice
        decoded = decode_in_memory(model, [encoded[i] for i, _ in jobs], how, rows, keys=keys, **options)
        said = vocabulary.decode_batch([one.tokens for one in decoded])
        with gzip.open(path, "at", encoding="utf-8", compresslevel=6) as file:
            for (i, k), text in zip(jobs, said, strict=True):
                row: dict[str, Any] = {"id": str(i + 1), "system": system, "speaker": who[k]}
                if scores is not None:
                    row["ocean"] = [round(score, 3) for score in scores[k]]
                file.write(json.dumps({**row, "response": text}, ensure_ascii=False) + "\n")
        print(f"{path.name}: {len(jobs):,} replies in {time.perf_counter() - began:.0f} s", flush=True)

    people = [*(c.ocean if is_personal else c.speakers)]
    requests, extremes = (read_ocean_table(MADE / f"{t}.csv") for t in ("requests-wide", "extremes"))
    kept = {kind: out / f"{kind}.jsonl.gz" for kind in ("requests", "extremes")}
    for path in kept.values() if is_personal else ():
        path.unlink(missing_ok=True)
    for guided in GUIDANCE:
        path = out / f"{system_of(guided)}.jsonl.gz"
        path.unlink(missing_ok=True)
        write(path, guided, len(texts), people, None)
    for guided in GUIDANCE if is_personal else ():
        n_asked = min(N_REQUESTED, len(texts))
        write(kept["requests"], guided, n_asked, [*requests], [*requests.values()])
    for guided in GUIDANCE if is_personal else ():
        write(kept["extremes"], guided, len(texts), [*extremes], [*extremes.values()])
