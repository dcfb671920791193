"""From contexts to responses: greedy, beam search, sampling. Batched by length; finished rows leave.

Responses do not depend on the batch size or the order of the examples: each is drawn with its own random
numbers (`palaver.generation.choose`), and padding changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palaver.engine import without_collector
from palaver.errors import UserError
from palaver.generation import choose
from palaver.generation.beam import FEW, search, take
from palaver.generation.options import decoding_options, layered
from palaver.models.pretrained import Responder
from palaver.text.vocabulary import BOS, EOS, PAD

Method = Literal["greedy", "beam", "sample", "stochastic-greedy"]
Hear = Callable[[int], None]
"""Is told the next token of a response."""


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How responses are made. Settings that a method does not use are ignored by it."""

    method: Method = "greedy"
    temperature: float = 1.0
    top_k: int = 0
    """`sample`: only among so many; 0 for all."""
    top_p: float = 1.0
    """`sample`: only among the fewest tokens that hold this share of the probability."""
    k: int = 5
    """`stochastic-greedy`: draw among the k most probable tokens at each step."""
    beam_size: int = 5
    length_penalty: float = 1.0
    """`beam`: scores are divided by the length to this power."""
    no_repeat_ngram: int = 0
    """No sequence of so many tokens twice in a response; 0 for no such rule."""
    repetition_penalty: float = 1.0
    """But for `beam`: how much less probable a token is once the response has it (Keskar et al. 2019)."""
    guidance: float = 0.0
    """But for `beam`: what speaker, personality and knowledge make likelier counts 1 + `guidance` times."""
    min_length: int = 1
    max_length: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        decoding_options(layered(vars(self)))

    @property
    def settings(self) -> dict[str, Any]:
        """What a record holds. `guidance` where it is used: files from before there was any still go on."""
        return {name: value for name, value in vars(self).items() if value or name != "guidance"}


class Decoded(NamedTuple):
    """A response without its end mark, and ln p of its tokens and end under the model itself."""

    tokens: list[int]
    logprob: float


class States(NamedTuple):
    """The decoder's state, and the one in which it is told the history alone; None without guidance."""

    own: Any
    uninformed: Any


@torch.inference_mode()
@without_collector()  # it would take half the time
def decode(
    model: Responder,
    contexts: Sequence[Sequence[int]],
    decoding: Decoding,
    *,
    knowledge: Sequence[Sequence[int]] | None = None,
    speaker: Sequence[int] | None = None,
    ocean: Sequence[Sequence[float]] | None = None,
    keys: Sequence[int] | None = None,
    batch_size: int = 0,
    hear: Hear | None = None,
) -> list[Decoded]:
    """A response to every context. `keys` are the examples' own seeds; without them their numbers serve.

    Equal contexts are encoded once, whoever is to answer them. `hear` is told the tokens of a single response
    as they are chosen; beam search knows them at the end.
    """
    n = len(contexts)
    for name, given in {"knowledge": knowledge, "speaker": speaker, "ocean": ocean, "keys": keys}.items():
        if given is not None and len(given) != n:
            raise UserError(f"{n} contexts need {n} entries in {name}, found {len(given)}")
    if model.training:
        raise UserError("the model is in training mode", "call model.eval() first")
    longest = min(decoding.max_length, model.config.max_response)
    tokens = np.full((n, longest), PAD, dtype=np.int32)
    logprobs = np.zeros(n, dtype=np.float64)
    seeds = np.arange(n) if keys is None else np.array([choose.as_signed(k) for k in keys], dtype=np.int64)
    told = zip(contexts, knowledge or [()] * n, strict=True)
    most = model.rows_at_once(max((len(context) + len(fact) for context, fact in told), default=0))
    has_beams = decoding.method == "beam"
    is_guided = decoding.guidance > 0 and not has_beams
    rows_each = decoding.beam_size if has_beams else 1
    if is_guided:
        rows_each = 2  # each row is decoded twice, told and not told
    size = batch_size or max(1, most // rows_each)
    for batch in _by_length(contexts, knowledge, size):
        # No name is given to the first state here: it would be kept until the batch is done.
        start = partial(_start, model, batch, contexts, knowledge, speaker, ocean, is_guided=is_guided)
        if has_beams:
            words, scores = search(model, start().own, len(batch), decoding, longest)
        else:
            own = torch.from_numpy(seeds[batch]).to(model.device)
            words, scores = _sample(model, start(), own, decoding, longest, hear)
        tokens[batch], logprobs[batch] = words, scores
    ended = tokens == EOS
    ends = np.where(ended.any(1), ended.argmax(1), longest)
    return [Decoded(tokens[i, : ends[i]].tolist(), float(logprobs[i])) for i in range(n)]


def _by_length(
    contexts: Sequence[Sequence[int]], knowledge: Sequence[Sequence[int]] | None, size: int
) -> Iterator[np.ndarray]:
    """Numbers of the examples in batches of about equal length, the longest first (it needs most memory)."""
    if not len(contexts):
        return
    lengths = np.array([len(c) for c in contexts])
    more = np.array([len(k) for k in knowledge]) if knowledge is not None else np.zeros_like(lengths)
    order = np.lexsort((np.arange(len(lengths)), -more, -lengths))
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def _start(
    model: Responder,
    batch: np.ndarray,
    contexts: Sequence[Sequence[int]],
    knowledge: Sequence[Sequence[int]] | None,
    speaker: Sequence[int] | None,
    ocean: Sequence[Sequence[float]] | None,
    *,
    is_guided: bool,
) -> States:
    """The decoder's first state for a batch; what several rows share is encoded once."""
    places: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    row_of = []
    for i in batch:
        told = (tuple(contexts[i]), tuple(knowledge[i]) if knowledge is not None else ())
        row_of.append(places.setdefault(told, len(places)))
    device = model.device
    limits = model.config
    context = pad([c[-limits.max_context :] for c, _ in places], device)
    sentences = None
    if knowledge is not None and limits.knowledge:
        sentences = pad([k[: limits.max_knowledge] for _, k in places], device)
    rows = torch.tensor(row_of, device=device) if len(places) < len(batch) else None

    def encode(sentences: Tensor | None) -> Any:
        memory = model.encode(context, sentences)
        return memory if rows is None else take(memory, rows)

    who = None if speaker is None else torch.tensor([speaker[i] for i in batch], device=device)
    traits = None if ocean is None else torch.tensor([list(ocean[i]) for i in batch], device=device)
    memory, condition = encode(sentences), model.condition(who, traits)
    own = model.start(memory, condition)
    if not is_guided or (sentences is None and condition is None):
        return States(own, None)
    without = memory if sentences is None else encode(None)
    return States(own, model.start(without, model.average_condition(len(batch))))


def pad(rows: Sequence[Sequence[int]], device: torch.device | str) -> Tensor:
    """Token ids as (B, longest), filled up on the right; at least one column."""
    lengths = np.array([len(row) for row in rows])
    filled = np.full((len(rows), max(1, int(lengths.max(initial=0)))), PAD, dtype=np.int64)
    filled[np.arange(filled.shape[1]) < lengths[:, None]] = np.fromiter(
        (token for row in rows for token in row), dtype=np.int64, count=int(lengths.sum())
    )
    return torch.from_numpy(filled).to(device)


def _sample(
    model: Responder, states: States, keys: Tensor, decoding: Decoding, longest: int, hear: Hear | None
) -> tuple[np.ndarray, np.ndarray]:
    """Greedy and random decoding. `keys` (B,) are the rows' own seeds."""
    device = model.device
    n = len(keys)
    place = torch.arange(n, device=device)
    output = torch.full((n, longest), PAD, device=device)
    logprobs = torch.zeros(n, dtype=torch.float64, device=device)
    last = torch.full((n,), BOS, device=device)
    running = torch.ones(n, dtype=torch.bool, device=device)
    for step in range(longest):
        own, state = model.step(states.own, last)  # (B, V)
        total = choose.total(own)  # before any token is forbidden: the model's own probabilities
        choose.forbid(own, step, decoding.min_length)
        if decoding.no_repeat_ngram:
            choose.forbid_repeats(own, output[place, :step], decoding.no_repeat_ngram)
        logits, uninformed = own, None
        if states.uninformed is not None:
            other, uninformed = model.step(states.uninformed, last)
            logits = choose.guide(own, other, decoding.guidance)
        if decoding.repetition_penalty != 1:
            logits = choose.penalise(logits.clone(), output[place, :step], decoding.repetition_penalty)
        states = States(state, uninformed)
        if decoding.method == "greedy":
            last = choose.most_probable(logits)
        else:
            stochastic = decoding.method == "stochastic-greedy"
            last = choose.draw(
                logits,
                choose.uniform(decoding.seed, keys, step),
                temperature=1.0 if stochastic else decoding.temperature,
                top_k=decoding.k if stochastic else decoding.top_k,
                top_p=1.0 if stochastic else decoding.top_p,
            )
        chosen = own.gather(1, last.unsqueeze(1)).squeeze(1).to(total.dtype)
        last = torch.where(running, last, PAD)
        output[place, step] = last
        logprobs[place] += torch.where(running, (chosen - total).double(), 0.0)
        running = running & (last != EOS)
        left = int(running.sum())
        if not left:
            break
        if hear is not None:
            hear(int(last[0]))
        if left <= FEW * len(place):
            kept = running.nonzero().squeeze(1)
            place, keys, last, running = place[kept], keys[kept], last[kept], running[kept]
            states = take(states, kept)
    return output.cpu().numpy(), logprobs.cpu().numpy()
